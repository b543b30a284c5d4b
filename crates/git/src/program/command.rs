//! Git subprocess runner: no shell, fixed language, scrubbed environment, captured stderr.

use std::borrow::Cow;
use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{BufReader, ErrorKind, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{OnceLock, mpsc};
use std::time::Duration;

use proq_base::trace::{Span, SpanKind};
use rustix::io::{FdFlags, fcntl_setfd};

use super::command_environment::{scrub_environment, set_fallback_date};
use super::exit_status::{describe_exit, describe_exit_status, is_kill};
use super::hook_output::{stderr_is_terminal, wait_and_forward};
use super::watchdog::{CancelCheck, Watchdog};
use crate::base::failed_program::FailedProgram;
use crate::base::unusable::UnusableRepoError;
use crate::{Error, Oid, TreeId};

/// Callback that receives git's output in chunks.
pub type PrintChunk<'a> = &'a mut dyn FnMut(&[u8]);

/// Maximum number of bytes of git's output passed on in one chunk.
const PRINT_CHUNK_BYTES: usize = 64 * 1024;

/// The git program, located once.
#[derive(Debug, Clone)]
pub struct Program {
    path: PathBuf,
}

impl Program {
    /// Finds git on `PATH`.
    pub fn find() -> Result<Program, Error> {
        which::which("git").map(|path| Program { path }).map_err(|_| Error::NoGit)
    }

    /// Returns the path of the program.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates a git command that runs in `dir`.
    pub fn command_in(&self, dir: &Path) -> Command {
        Command::new(&self.path, dir)
    }
}

/// Output of a successful git command.
#[derive(Debug)]
pub struct Output {
    /// Bytes written to standard output.
    pub stdout: Vec<u8>,
    /// Exit code of the command.
    pub code: i32,
}

impl Output {
    /// Returns standard output as text without trailing white space.
    pub(crate) fn trimmed_stdout(&self) -> String {
        String::from_utf8_lossy(&self.stdout).trim_end().to_owned()
    }

    /// Returns the non-empty NUL-separated fields of standard output.
    pub fn nul_separated_fields(&self) -> impl Iterator<Item = &[u8]> {
        self.stdout.split(|b| *b == 0).filter(|f| !f.is_empty())
    }
}

/// One git command to run.
#[derive(Debug)]
pub struct Command {
    inner: std::process::Command,
    args: Vec<OsString>,
    /// Bytes for standard input; `None` for empty input.
    stdin_bytes: Option<Vec<u8>>,
    accepted_codes: Vec<i32>,
    is_mutating: bool,
    inherited_lock: Option<Rc<File>>,
    /// Set to true when this command changes something and is killed.
    was_killed: Rc<Cell<bool>>,
    /// Span from the start of the command until this value is dropped; none before.
    span: Option<Span>,
}

impl Command {
    fn new(program: &Path, dir: &Path) -> Command {
        let mut inner = std::process::Command::new(program);
        scrub_environment(&mut inner);
        set_fallback_date(&mut inner);
        inner
            .current_dir(dir)
            .env("LC_ALL", "C")
            // A worktree whose `.git` is missing must not count as part of the surrounding repository.
            .env("GIT_CEILING_DIRECTORIES", dir.parent().unwrap_or(dir))
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Command {
            inner,
            args: Vec::new(),
            stdin_bytes: None,
            accepted_codes: vec![0],
            is_mutating: false,
            inherited_lock: None,
            was_killed: Rc::default(),
            span: None,
        }
    }

    /// Sets an open lock file that the program inherits if it is mutating: the kernel lock is released only
    /// once that program has exited too.
    pub(crate) fn inherit_lock(mut self, file: Option<Rc<File>>) -> Self {
        self.inherited_lock = file;
        self
    }

    /// Sets the flag that becomes true if the command is mutating and is killed, which leaves its locks.
    pub(crate) fn record_kill(mut self, flag: Rc<Cell<bool>>) -> Self {
        self.was_killed = flag;
        self
    }

    /// Adds one argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args.extend(args.into_iter().map(|a| a.as_ref().to_owned()));
        self
    }

    /// Sets an environment variable for this command only.
    pub fn env(mut self, key: &str, value: impl AsRef<OsStr>) -> Self {
        self.inner.env(key, value);
        self
    }

    /// Makes the command use the index in `file` in place of the worktree's own. The path must be absolute.
    pub fn use_index(self, file: &Path) -> Self {
        debug_assert!(file.is_absolute());
        self.env("GIT_INDEX_FILE", file)
    }

    /// Sets the bytes that the command reads from standard input.
    pub fn input(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin_bytes = Some(bytes.into());
        self
    }

    /// Marks the command as one that changes something. It gets its own process group, so that Ctrl-C does
    /// not stop it half-way. It does not recurse into submodules, which have separate transitions.
    pub fn mutating(mut self) -> Self {
        self.is_mutating = true;
        self.inner.process_group(0);
        self.inner.env_remove("GIT_OPTIONAL_LOCKS");
        self.args.splice(
            0..0,
            ["-c", "submodule.recurse=false", "-c", "core.fsmonitor=false"].map(OsString::from),
        );
        self
    }

    /// Makes git write new objects and refs durably before the command returns; git's default skips loose
    /// objects.
    pub(crate) fn durable(mut self) -> Self {
        self.args.splice(
            0..0,
            ["-c", "core.fsync=objects,reference", "-c", "core.fsyncMethod=fsync"].map(OsString::from),
        );
        self
    }

    /// Adds exit codes that count as success. Zero always counts.
    pub fn accept_exit_codes(mut self, codes: &[i32]) -> Self {
        self.accepted_codes.extend_from_slice(codes);
        self
    }

    /// Runs the command to its end and returns its output. An exit code that is not accepted is an error.
    pub fn run(self) -> Result<Output, Error> {
        self.run_with_watchdog(None)
    }

    /// Runs the command, and kills its process group when it exceeds `limit` or `is_cancelled` returns true.
    /// The command must be mutating, because only those have their own process group.
    pub fn run_with_timeout(self, limit: Duration, is_cancelled: CancelCheck<'_>) -> Result<Output, Error> {
        self.run_with_watchdog(Some(&Watchdog { limit, is_cancelled }))
    }

    /// Runs the command to its end, and kills its process group once `is_cancelled` returns true. Each line
    /// of stderr goes to `on_line`; lines for which that returns false become the error text. The command
    /// must be mutating and must not print to stdout.
    pub(crate) fn run_with_progress(
        mut self,
        is_cancelled: CancelCheck<'_>,
        on_line: &dyn Fn(&str) -> bool,
    ) -> Result<(), Error> {
        self.inner.stdout(Stdio::null());
        let mut child = self.spawn()?;
        let (group, killed) = (child.id(), AtomicBool::new(false));
        let watchdog = Watchdog { limit: Duration::MAX, is_cancelled };
        let (status, stderr) = std::thread::scope(|scope| {
            let (finished_sender, finished) = mpsc::channel();
            let killed = &killed;
            scope.spawn(move || killed.store(watchdog.kill_when_due(group, &finished), Ordering::Relaxed));
            let stderr =
                child.stderr.take().map_or_else(String::new, |stderr| forward_stderr_lines(stderr, on_line));
            let status = child.wait();
            drop::<mpsc::Sender<()>>(finished_sender);
            (status, stderr)
        });
        let status = status.map_err(|e| self.io_failure(&e))?;
        self.note_exit(status);
        if status.success() {
            return Ok(());
        }
        Err(self.failure(describe_exit(killed.into_inner(), status), stderr))
    }

    fn run_with_watchdog(mut self, watchdog: Option<&Watchdog<'_>>) -> Result<Output, Error> {
        let input = self.stdin_bytes.take();
        if input.is_some() {
            self.inner.stdin(Stdio::piped());
        }
        let mut child = self.spawn()?;
        let (stdin, group) = (child.stdin.take(), child.id());
        let (killed, write_error) = (AtomicBool::new(false), OnceLock::new());
        // Both pipes can fill up, so another thread writes the input.
        let output = std::thread::scope(|scope| {
            if let (Some(mut stdin), Some(input)) = (stdin, input) {
                let write_error = &write_error;
                scope.spawn(move || {
                    // A child that exits early closes the pipe; its exit status gives the reason. After any
                    // other error, the child would take part of the input for all of it.
                    if let Err(e) = stdin.write_all(&input)
                        && e.kind() != ErrorKind::BrokenPipe
                    {
                        drop(write_error.set(e));
                    }
                });
            }
            let (finished_sender, finished) = mpsc::channel();
            if let Some(watchdog) = watchdog {
                let killed = &killed;
                scope
                    .spawn(move || killed.store(watchdog.kill_when_due(group, &finished), Ordering::Relaxed));
            }
            let output = child.wait_with_output();
            drop::<mpsc::Sender<()>>(finished_sender);
            output
        })
        .map_err(|e| self.io_failure(&e))?;
        self.note_exit(output.status);
        if let Some(e) = write_error.get() {
            return Err(self.io_failure(e));
        }
        let code = output.status.code().unwrap_or(-1);
        if self.accepted_codes.contains(&code) {
            return Ok(Output { stdout: output.stdout, code });
        }
        let status = describe_exit(killed.into_inner(), output.status);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let dir = self.inner.get_current_dir().unwrap_or(Path::new(""));
        let filter = FailedProgram::from_clean_filter(dir, &stderr);
        let unusable = UnusableRepoError::from_stderr(&stderr);
        let failure = self.failure(status, stderr);
        Err(filter.map(Error::UserProgram).or(unusable.map(Error::Unusable)).unwrap_or(failure))
    }

    /// Runs a command that prints the id of the object it created, and returns that id.
    pub(crate) fn run_for_id(self) -> Result<Oid, Error> {
        let command_line = self.display_args();
        let line = self.run()?.trimmed_stdout();
        Oid::from_hex(line.as_bytes())
            .ok_or(Error::UnexpectedOutput { args: command_line, fault_or_output: line })
    }

    /// Runs the command as `git write-tree`, and returns the id of the tree that it created.
    pub(crate) fn run_write_tree(self) -> Result<TreeId, Error> {
        self.arg("write-tree").run_for_id().map(TreeId::from_oid)
    }

    /// Runs a hook through git and forwards its output, which git sends to stderr, to this process's stderr,
    /// made printable for a terminal. Waits for git only: a background process of the hook may hold the
    /// stream open.
    pub(crate) fn run_forwarding_output(mut self) -> Result<(), Error> {
        let io_failure_of = |command: &Self, e: &std::io::Error| command.io_failure(e);
        self.inner.stdout(Stdio::null());
        let status = if stderr_is_terminal() {
            let (output, stderr) = std::io::pipe().map_err(|e| io_failure_of(&self, &e))?;
            self.inner.stderr(stderr);
            let mut child = self.spawn()?;
            // Closes this process's copy of the writing end.
            self.inner.stderr(Stdio::null());
            wait_and_forward(&mut child, output).map_err(|e| io_failure_of(&self, &e))?
        } else {
            self.inner.stderr(Stdio::inherit());
            self.spawn().and_then(|mut c| c.wait().map_err(|e| io_failure_of(&self, &e)))?
        };
        self.note_exit(status);
        if status.success() {
            return Ok(());
        }
        Err(self.failure(describe_exit_status(status), String::new()))
    }

    /// Runs the command on this process's terminal, pager included. Quitting the pager early is not a
    /// failure.
    pub fn run_on_terminal(mut self) -> Result<(), Error> {
        self.use_terminal_stdio().stdout(Stdio::inherit());
        let status = self.spawn().and_then(|mut c| c.wait().map_err(|e| self.io_failure(&e)))?;
        self.check_terminal_exit(status)
    }

    /// Runs the command for the user without a pager: stdin and stderr are this process's, and output goes to
    /// `print` in chunks.
    pub(crate) fn run_printing(mut self, print: PrintChunk<'_>) -> Result<(), Error> {
        self.use_terminal_stdio().stdout(Stdio::piped());
        let mut child = self.spawn()?;
        if let Some(mut output) = child.stdout.take() {
            let mut chunk = vec![0; PRINT_CHUNK_BYTES];
            loop {
                match output.read(&mut chunk) {
                    Ok(0) => break,
                    Ok(length) => print(&chunk[..length]),
                    Err(e) if e.kind() == ErrorKind::Interrupted => {}
                    Err(e) => return Err(self.io_failure(&e)),
                }
            }
        }
        let status = child.wait().map_err(|e| self.io_failure(&e))?;
        self.check_terminal_exit(status)
    }

    /// Runs the command and returns the first `max_bytes` of its output, and whether there was more. The command
    /// is ended then.
    pub(crate) fn run_bounded(mut self, max_bytes: usize) -> Result<(Vec<u8>, bool), Error> {
        let mut child = self.spawn()?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let mut out = Vec::new();
        // Both pipes can fill up, so another thread reads the messages.
        let (read, messages) = std::thread::scope(|scope| {
            let messages = scope.spawn(move || {
                let mut bytes = Vec::new();
                drop(stderr.map(|mut pipe| pipe.read_to_end(&mut bytes)));
                bytes
            });
            let read = stdout.map(|pipe| pipe.take(max_bytes as u64 + 1).read_to_end(&mut out));
            if out.len() > max_bytes {
                drop(child.kill());
            }
            (read.transpose(), messages.join().unwrap_or_default())
        });
        read.map_err(|e| self.io_failure(&e))?;
        let status = child.wait().map_err(|e| self.io_failure(&e))?;
        let has_more = out.len() > max_bytes;
        out.truncate(max_bytes);
        if has_more || status.success() {
            return Ok((out, has_more));
        }
        let stderr = String::from_utf8_lossy(&messages).into_owned();
        Err(self.failure(describe_exit_status(status), stderr))
    }

    /// Makes the command inherit this process's stdin and stderr, and use the user's language.
    fn use_terminal_stdio(&mut self) -> &mut std::process::Command {
        self.inner.stdin(Stdio::inherit()).stderr(Stdio::inherit()).env_remove("LC_ALL");
        if let Some(locale) = std::env::var_os("LC_ALL") {
            self.inner.env("LC_ALL", locale);
        }
        &mut self.inner
    }

    fn check_terminal_exit(&self, status: ExitStatus) -> Result<(), Error> {
        if status.success() || status.signal() == Some(13) {
            return Ok(());
        }
        Err(self.failure(describe_exit_status(status), String::new()))
    }

    /// Starts the command in its own process group, without input or output, and does not wait for it.
    pub fn spawn_detached(mut self) -> Result<(), Error> {
        self.inner.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        self.spawn().map(drop)
    }

    /// Starts the command with open pipes, for an exchange of requests and replies.
    pub fn spawn_with_pipes(mut self) -> Result<Child, Error> {
        self.inner.stdin(Stdio::piped());
        self.spawn()
    }

    fn spawn(&mut self) -> Result<Child, Error> {
        self.span = Some(Span::begin(SpanKind::Git, &self.git_command_name()));
        self.inner.args(&self.args);
        let lock_file = self.inherited_lock.as_deref().filter(|_| self.is_mutating);
        // Applies to this start only: no other child process may hold the lock.
        set_descriptor_flags(lock_file, FdFlags::empty());
        let child = self.inner.spawn();
        set_descriptor_flags(lock_file, FdFlags::CLOEXEC);
        child.map_err(|e| self.io_failure(&e))
    }

    fn note_exit(&self, status: ExitStatus) {
        if self.is_mutating && is_kill(status) {
            self.was_killed.set(true);
        }
    }

    /// Returns the error of a command that could not be started, or whose input or output failed.
    fn io_failure(&self, source: &std::io::Error) -> Error {
        self.failure(source.to_string(), String::new())
    }

    /// Returns the error of this command, whose span counts as failed.
    fn failure(&self, status: String, stderr: String) -> Error {
        self.span.iter().for_each(Span::fail);
        Error::Command { args: self.display_args(), status, stderr }
    }

    /// Returns the name of git's command, such as `read-tree`, without anything that follows it.
    fn git_command_name(&self) -> Cow<'_, str> {
        let mut args = self.args.iter();
        while let Some(arg) = args.next() {
            if arg == "-c" {
                args.next();
            } else if !arg.as_bytes().starts_with(b"-") {
                return arg.to_string_lossy();
            }
        }
        Cow::Borrowed("(options only)")
    }

    /// Returns the arguments as the user would type them, without the `-c` settings that git-proq adds.
    pub(crate) fn display_args(&self) -> String {
        let mut visible_args = Vec::new();
        let mut args = self.args.iter();
        while let Some(arg) = args.next() {
            if arg == "-c" {
                args.next();
            } else {
                visible_args.push(arg.to_string_lossy());
            }
        }
        visible_args.join(" ")
    }
}

/// Reads a command's standard error to the end and passes each line to `on_line`. A line may also end in
/// `\r`, as for a terminal. Returns the lines for which `on_line` returned false.
fn forward_stderr_lines(stderr: impl Read, on_line: &dyn Fn(&str) -> bool) -> String {
    let (mut unhandled, mut line) = (Vec::new(), Vec::new());
    let mut bytes = BufReader::new(stderr).bytes();
    loop {
        let byte = bytes.next().and_then(Result::ok);
        line.extend(byte);
        if matches!(byte, None | Some(b'\r' | b'\n')) {
            if !on_line(String::from_utf8_lossy(&line).trim_end()) {
                unhandled.append(&mut line);
            }
            line.clear();
        }
        if byte.is_none() {
            return String::from_utf8_lossy(&unhandled).into_owned();
        }
    }
}

fn set_descriptor_flags(file: Option<&File>, flags: FdFlags) {
    if let Some(file) = file {
        // This cannot fail for an open descriptor; if it did, the lock would only cover this process.
        let _ = fcntl_setfd(file, flags);
    }
}
