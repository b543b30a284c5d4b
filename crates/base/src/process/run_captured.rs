//! Running a program to completion with a time limit, and capturing the start of its output.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use super::command_builder::CommandBuilder;
use super::limited_process::ExitOutcome;

/// How long to wait for remaining output after a program has exited.
const PIPE_DRAIN_LIMIT: Duration = Duration::from_secs(2);

/// Limits of a captured run.
#[derive(Debug, Clone, Copy)]
pub struct CaptureOptions {
    /// Time limit of the run.
    pub limit: Duration,
    /// Time between TERM and KILL when the run is stopped.
    pub grace: Duration,
    /// Number of output bytes to keep, from the beginning of the output.
    pub max_output_bytes: usize,
}

/// Outcome and output of a captured run.
#[derive(Debug)]
pub struct CaptureResult {
    /// How the program exited; otherwise why it could not be started or was stopped, as text.
    pub outcome: Result<ExitOutcome, String>,
    /// Output of both streams, joined, without white space at its end; that of standard output alone, if the
    /// streams were captured separately.
    pub output: String,
    /// Output on standard error, if the streams were captured separately; otherwise empty.
    pub errors: String,
}

impl CaptureResult {
    fn of_error(error: String) -> CaptureResult {
        CaptureResult { outcome: Err(error), output: String::new(), errors: String::new() }
    }
}

/// Whether the two output streams are captured as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamMode {
    Joined,
    Apart,
}

impl CommandBuilder {
    /// Runs the program in a new process group, with `input` on standard input, until it exits or
    /// `should_stop` returns true. Processes that it leaves running in that group are stopped; processes that
    /// escaped from the group are not awaited.
    pub fn run_captured(
        self,
        input: Vec<u8>,
        options: CaptureOptions,
        should_stop: &dyn Fn() -> bool,
    ) -> CaptureResult {
        self.try_run_captured(input, options, StreamMode::Joined, should_stop)
            .unwrap_or_else(CaptureResult::of_error)
    }

    /// Runs the program as [`CommandBuilder::run_captured`] does, with the two output streams apart.
    pub fn run_captured_apart(
        self,
        input: Vec<u8>,
        options: CaptureOptions,
        should_stop: &dyn Fn() -> bool,
    ) -> CaptureResult {
        self.try_run_captured(input, options, StreamMode::Apart, should_stop)
            .unwrap_or_else(CaptureResult::of_error)
    }

    fn try_run_captured(
        self,
        input: Vec<u8>,
        options: CaptureOptions,
        streams: StreamMode,
        should_stop: &dyn Fn() -> bool,
    ) -> Result<CaptureResult, String> {
        let to_text = |e: std::io::Error| e.to_string();
        let (stdin, mut stdin_writer) = std::io::pipe().map_err(to_text)?;
        let (stdout_reader, stdout) = std::io::pipe().map_err(to_text)?;
        let (error_reader, stderr) = match streams {
            StreamMode::Joined => (None, stdout.try_clone().map_err(to_text)?),
            StreamMode::Apart => {
                let (reader, writer) = std::io::pipe().map_err(to_text)?;
                (Some(reader), writer)
            }
        };
        let to_file = |end: OwnedFd| File::from(end);
        let builder = self
            .stdin(to_file(stdin.into()))
            .with_output_files(to_file(stdout.into()), to_file(stderr.into()));
        let mut process = builder.spawn_limited(options.limit, options.grace).map_err(|e| e.to_string())?;
        // The program may not read its input, so another thread writes it.
        std::thread::spawn(move || drop(stdin_writer.write_all(&input)));
        let reader = OutputReader::start(stdout_reader, options.max_output_bytes);
        let error_reader = error_reader.map(|pipe| OutputReader::start(pipe, options.max_output_bytes));
        let mut pause = Duration::from_millis(1);
        let outcome = loop {
            match process.poll() {
                Ok(Some(outcome)) => break Ok(outcome),
                Ok(None) if should_stop() => break Err("interrupted".to_owned()),
                Ok(None) => {}
                Err(e) => break Err(e.to_string()),
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(40));
        };
        drop(process);
        let errors = error_reader.map(|reader| reader.wait_for_text()).unwrap_or_default();
        Ok(CaptureResult { outcome, output: reader.wait_for_text(), errors })
    }
}

/// Reads the output of a program while it runs.
struct OutputReader {
    /// Output so far, up to the size limit.
    bytes: Arc<Mutex<Vec<u8>>>,
    /// Channel that is disconnected once the pipe was read to its end.
    finished: mpsc::Receiver<()>,
}

impl OutputReader {
    /// Starts a thread that reads `pipe` to its end and keeps the first `max_bytes` bytes.
    fn start(mut pipe: std::io::PipeReader, max_bytes: usize) -> OutputReader {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let (done_sender, finished) = mpsc::channel::<()>();
        let shared = Arc::clone(&bytes);
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = pipe.read(&mut buffer) {
                let mut saved = shared.lock().unwrap_or_else(PoisonError::into_inner);
                let capacity = max_bytes.saturating_sub(saved.len());
                saved.extend_from_slice(&buffer[..count.min(capacity)]);
            }
            drop(done_sender);
        });
        OutputReader { bytes, finished }
    }

    /// Waits for the end of the output, up to [`PIPE_DRAIN_LIMIT`], and returns it as text. The output is
    /// incomplete if a process that left the group still holds the pipe.
    fn wait_for_text(&self) -> String {
        let _finished = self.finished.recv_timeout(PIPE_DRAIN_LIMIT);
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Instant;

    use super::*;

    const OPTIONS: CaptureOptions =
        CaptureOptions { limit: Duration::from_mins(1), grace: Duration::from_secs(5), max_output_bytes: 10 };

    fn shell(script: &str) -> CommandBuilder {
        CommandBuilder::new(Path::new("/bin/sh"), Path::new("/")).args(["-c", script])
    }

    #[test]
    fn passes_input_and_captures_output() {
        let result =
            shell("cat; echo 0123456789 >&2; exit 3").run_captured(b"abc ".to_vec(), OPTIONS, &|| false);
        assert_eq!(result.output, "abc 012345");
        assert_eq!(result.outcome.unwrap(), ExitOutcome::Code(3));
        assert_eq!(
            shell("sleep 600").run_captured(Vec::new(), OPTIONS, &|| true).outcome.unwrap_err(),
            "interrupted"
        );
    }

    #[test]
    fn captures_streams_apart() {
        let result = shell("echo out; echo err >&2").run_captured_apart(Vec::new(), OPTIONS, &|| false);
        assert_eq!((result.output.as_str(), result.errors.as_str()), ("out", "err"));
    }

    #[test]
    fn does_not_wait_for_escaped_process_with_pipe() {
        if !cfg!(target_os = "linux") {
            return;
        }
        let started = Instant::now();
        let result = shell("setsid sleep 30 & echo said").run_captured(Vec::new(), OPTIONS, &|| false);
        assert_eq!(result.output, "said");
        assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    }
}
