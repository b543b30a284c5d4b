//! Continuing as another program with the same arguments, input and environment: a hook of git-proq passes on
//! to the user's hook.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::Error;

/// A program to continue as, in this process's folder and environment except for one variable.
#[derive(Debug)]
pub struct ExecTarget {
    program: PathBuf,
    command: Command,
}

impl ExecTarget {
    /// Creates a target that runs `program` with `args` and sets `variable`, or removes it if the value is
    /// none.
    pub fn new(program: &Path, args: &[OsString], (variable, value): (&str, Option<&OsStr>)) -> ExecTarget {
        let mut command = Command::new(program);
        command.args(args);
        match value {
            Some(value) => command.env(variable, value),
            None => command.env_remove(variable),
        };
        ExecTarget { program: program.to_owned(), command }
    }

    /// Replaces this process with the program, which keeps the streams and sets the exit code. Returns only
    /// on failure.
    pub fn replace_process(mut self) -> Error {
        let source = self.command.exec();
        self.start_error(source)
    }

    /// Runs the program with `input` on standard input and returns its exit code, or 128 + n for signal n.
    ///
    /// # Errors
    /// Fails if the program cannot be started.
    pub fn run_with_input(mut self, input: &[u8]) -> Result<u8, Error> {
        let mut child =
            self.command.stdin(Stdio::piped()).spawn().map_err(|source| self.start_error(source))?;
        if let Some(mut stdin) = child.stdin.take() {
            // The program may exit without reading all of its input.
            drop(stdin.write_all(input));
        }
        let status = child.wait().map_err(|source| self.start_error(source))?;
        let code = status.code().or(status.signal().map(|n| 128 + n)).unwrap_or(1);
        Ok(u8::try_from(code).unwrap_or(1))
    }

    fn start_error(&self, source: std::io::Error) -> Error {
        Error::not_started(&self.program, source)
    }
}
