//! Owns running a program to its end under an event loop: what it is told, and what it says on each stream.

use tokio::io::AsyncWriteExt;

use super::{Error, Start};

/// What a program answered.
#[derive(Debug)]
pub(crate) struct Answered {
    /// Its exit code; none when a signal ended it.
    pub(crate) code: Option<i32>,
    /// Its standard output.
    pub(crate) stdout: Vec<u8>,
    /// Its standard error.
    pub(crate) stderr: Vec<u8>,
}

impl Start {
    /// Runs it to its end in a process group of its own, with `input` to read. It goes on to its end by itself when nobody
    /// waits any more.
    ///
    /// # Errors
    /// [`Error::Start`] when it could not be started or listened to.
    pub(crate) async fn converse(self, input: Vec<u8>) -> Result<Answered, Error> {
        use std::process::Stdio;
        let (program, command) = self.into_command();
        let failed = |source| Error::Start { program: program.display().to_string(), source };
        let mut command = tokio::process::Command::from(command);
        command.process_group(0).kill_on_drop(false);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        let stdin = child.stdin.take();
        let tell = async move {
            if let Some(mut stdin) = stdin {
                // One that does not read to the end has its reasons; its answer is what counts.
                drop(stdin.write_all(&input).await);
            }
        };
        let (told, ()) = tokio::join!(child.wait_with_output(), tell);
        let out = told.map_err(failed)?;
        Ok(Answered { code: out.status.code(), stdout: out.stdout, stderr: out.stderr })
    }
}
