//! Running a program to completion under an event loop, with input and captured output.

use tokio::io::AsyncWriteExt;

use super::Error;
use super::command_builder::CommandBuilder;

/// Exit code and output of a program.
#[derive(Debug)]
pub struct CapturedOutput {
    /// Exit code; none when a signal ended the program.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
}

impl CommandBuilder {
    /// Runs the program to completion in a new process group, with `input` on standard input. If the caller
    /// stops waiting, the program continues to run.
    ///
    /// # Errors
    /// [`Error::NotStarted`] if the program cannot be started or its output cannot be read.
    pub async fn run_with_input(self, input: Vec<u8>) -> Result<CapturedOutput, Error> {
        use std::process::Stdio;
        let (program, command) = self.into_parts();
        let start_error = |source| Error::not_started(&program, source);
        let mut command = tokio::process::Command::from(command);
        command.process_group(0).kill_on_drop(false);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(start_error)?;
        let stdin = child.stdin.take();
        let write_input = async move {
            if let Some(mut stdin) = stdin {
                // A program may exit without reading all of its input; only its output matters.
                drop(stdin.write_all(&input).await);
            }
        };
        let (result, ()) = tokio::join!(child.wait_with_output(), write_input);
        let out = result.map_err(start_error)?;
        Ok(CapturedOutput { code: out.status.code(), stdout: out.stdout, stderr: out.stderr })
    }
}
