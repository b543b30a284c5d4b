//! Owns going on as another program, with this one's arguments, input and environment: a hook that stands before another one.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::Error;

/// A program to go on as, in this process's folder and environment but for one variable.
#[derive(Debug)]
pub(crate) struct PassOn {
    program: PathBuf,
    command: Command,
}

impl PassOn {
    /// `program` with arguments, and `variable` as given; none takes it out.
    pub(crate) fn to(program: &Path, args: &[OsString], (variable, value): (&str, Option<&OsStr>)) -> PassOn {
        let mut command = Command::new(program);
        command.args(args);
        match value {
            Some(value) => command.env(variable, value),
            None => command.env_remove(variable),
        };
        PassOn { program: program.to_owned(), command }
    }

    /// Becomes it: input, output and exit code are its own. Returns only when that is not possible.
    pub(crate) fn become_it(mut self) -> Error {
        let source = self.command.exec();
        self.failed(source)
    }

    /// Runs it with something to read and returns its exit code, 128 + n for signal n.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(crate) fn feed(mut self, input: &[u8]) -> Result<u8, Error> {
        let mut child = self.command.stdin(Stdio::piped()).spawn().map_err(|source| self.failed(source))?;
        if let Some(mut stdin) = child.stdin.take() {
            // One that does not read to the end is free not to.
            drop(stdin.write_all(input));
        }
        let status = child.wait().map_err(|source| self.failed(source))?;
        let code = status.code().or(status.signal().map(|n| 128 + n)).unwrap_or(1);
        Ok(u8::try_from(code).unwrap_or(1))
    }

    fn failed(&self, source: std::io::Error) -> Error {
        Error::Start { program: self.program.display().to_string(), source }
    }
}
