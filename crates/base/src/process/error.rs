//! Errors of starting and stopping other programs.

use std::io::ErrorKind;
use std::path::Path;

use crate::explain::{Explain, shell_quote};
use crate::regular_file::{self, LinkPolicy};

/// Length of the longest interpreter line that Linux reads.
const MAX_INTERPRETER_LINE: usize = 256;

/// Error of starting or stopping a program.
#[derive(Debug, thiserror::Error, Explain)]
pub enum Error {
    /// The program does not exist.
    #[error("cannot start '{program}': there is no such program on PATH")]
    #[hint("list installed agents: git proq agents")]
    NotFound {
        /// Name or path of the program.
        program: String,
    },
    /// The program exists but cannot be started.
    #[error("cannot start '{program}'")]
    #[hint("check its interpreter: head -n 1 \"$(command -v {})\"", shell_quote(program))]
    NotStarted {
        /// Path of the program.
        program: String,
        /// I/O error of the start.
        #[source]
        source: std::io::Error,
    },
    /// The program is a script whose interpreter does not exist. The system's own error, that there is no such
    /// file, seems to be about the script.
    #[error("cannot start '{program}': its interpreter '{interpreter}' does not exist")]
    #[hint("check its interpreter: head -n 1 \"$(command -v {})\"", shell_quote(program))]
    NoInterpreter {
        /// Path of the script.
        program: String,
        /// Path of the interpreter, from the first line of the script.
        interpreter: String,
    },
    /// A signal could not be sent.
    #[error("cannot signal process {pid}")]
    NotSignaled {
        /// Process id.
        pid: u32,
        /// Error of the system call.
        #[source]
        source: std::io::Error,
    },
}

impl Error {
    /// Returns the error of a program that could not be started, from the error of the operating system.
    pub(super) fn not_started(program: &Path, source: std::io::Error) -> Error {
        let name = program.display().to_string();
        if source.kind() == ErrorKind::NotFound
            && program.is_absolute()
            && let Some(interpreter) = missing_interpreter(program)
        {
            return Error::NoInterpreter { program: name, interpreter };
        }
        Error::NotStarted { program: name, source }
    }
}

/// Returns the interpreter in the first line of a script if it does not exist; none for any other program.
fn missing_interpreter(program: &Path) -> Option<String> {
    let (file, _) = regular_file::open(program, LinkPolicy::Follow).ok()?;
    let mut start = Vec::new();
    std::io::Read::read_to_end(&mut std::io::Read::take(file, MAX_INTERPRETER_LINE as u64), &mut start)
        .ok()?;
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = String::from_utf8_lossy(line);
    // A carriage return at the end of the line is part of the path: a frequent reason why it does not exist.
    let interpreter = line.trim_matches([' ', '\t']).split([' ', '\t']).next()?.to_owned();
    (!Path::new(&interpreter).exists()).then_some(interpreter)
}
