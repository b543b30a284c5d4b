//! Owns every start of the git program: no shell, fixed language, scrubbed environment, stderr kept.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{BufReader, ErrorKind, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::rc::Rc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, kill_process_group};

use super::failed_program::FailedProgram;
use super::hook_output::{stderr_is_terminal, wait_and_forward};
use super::{Error, Oid, Unusable, injected};

/// Whether what is waited for is unwanted by now.
pub(crate) type Unwanted<'a> = &'a (dyn Fn() -> bool + Sync);

/// Takes what git prints, a part at a time.
pub(crate) type Print<'a> = &'a mut dyn FnMut(&[u8]);

/// Variables of git's that describe the user or the machine, not one repository; all other `GIT_*` are dropped.
const KEPT: &[&str] = &[
    "GIT_ASKPASS",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_SYSTEM",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
    "GIT_EDITOR",
    "GIT_EXEC_PATH",
    "GIT_PAGER",
    "GIT_PROXY_COMMAND",
    "GIT_SSL_CAINFO",
    "GIT_TEMPLATE_DIR",
    "GIT_TEST_ASSUME_DIFFERENT_OWNER",
];

/// Prefixes of variables that are kept for the same reason.
const KEPT_PREFIXES: &[&str] =
    &["GIT_AUTHOR_", "GIT_COMMITTER_", "GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_", "GIT_SSH", "GIT_TRACE"];

/// How much of what git prints for a person goes on at once, in bytes.
const PRINTED_AT_ONCE: usize = 64 * 1024;

/// The git program, found once.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    path: PathBuf,
}

impl Program {
    /// Finds git on `PATH`.
    pub(crate) fn find() -> Result<Program, Error> {
        which::which("git").map(|path| Program { path }).map_err(|_| Error::NoGit)
    }

    /// Where it lies.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A call in `dir`.
    pub(crate) fn in_dir(&self, dir: &Path) -> Command {
        Command::new(&self.path, dir)
    }
}

/// What a successful call wrote.
#[derive(Debug)]
pub(crate) struct Output {
    /// Its answer.
    pub(crate) stdout: Vec<u8>,
    /// Its exit code.
    pub(crate) code: i32,
}

impl Output {
    /// The answer as one trimmed line of text.
    pub(crate) fn line(&self) -> String {
        String::from_utf8_lossy(&self.stdout).trim_end().to_owned()
    }

    /// The answer's NUL-separated fields.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &[u8]> {
        self.stdout.split(|b| *b == 0).filter(|f| !f.is_empty())
    }
}

/// One call of the git program.
#[derive(Debug)]
pub(crate) struct Command {
    inner: std::process::Command,
    args: Vec<OsString>,
    input: Option<Vec<u8>>,
    accepted: Vec<i32>,
    changes: bool,
    carried: Option<Rc<File>>,
}

impl Command {
    fn new(program: &Path, dir: &Path) -> Command {
        let mut inner = std::process::Command::new(program);
        scrub(&mut inner);
        date(&mut inner);
        inner
            .current_dir(dir)
            .env("LC_ALL", "C")
            // A worktree whose `.git` is gone must not be taken for a part of the repository around it.
            .env("GIT_CEILING_DIRECTORIES", dir.parent().unwrap_or(dir))
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Command { inner, args: Vec::new(), input: None, accepted: vec![0], changes: false, carried: None }
    }

    /// An open file that the program inherits if it changes something: its kernel lock is free only once that program
    /// has ended too.
    pub(super) fn carry(mut self, file: Option<Rc<File>>) -> Self {
        self.carried = file;
        self
    }

    /// Adds one argument.
    pub(crate) fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Adds several arguments.
    pub(crate) fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args.extend(args.into_iter().map(|a| a.as_ref().to_owned()));
        self
    }

    /// Sets a variable for this call only.
    pub(crate) fn env(mut self, key: &str, value: impl AsRef<OsStr>) -> Self {
        self.inner.env(key, value);
        self
    }

    /// Uses another index file, which must be an absolute path.
    pub(crate) fn index(self, file: &Path) -> Self {
        debug_assert!(file.is_absolute());
        self.env("GIT_INDEX_FILE", file)
    }

    /// Feeds these bytes to its standard input.
    pub(crate) fn input(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.input = Some(bytes.into());
        self
    }

    /// Marks a call that changes something: a process group of its own, so that a Ctrl-C meant for us
    /// does not stop it half-way, and submodules left to transitions of their own.
    pub(crate) fn changes(mut self) -> Self {
        self.changes = true;
        self.inner.process_group(0);
        self.inner.env_remove("GIT_OPTIONAL_LOCKS");
        self.args.splice(
            0..0,
            ["-c", "submodule.recurse=false", "-c", "core.fsmonitor=false"].map(OsString::from),
        );
        self
    }

    /// Makes new objects and refs durable before the call returns; git's default skips loose objects.
    pub(crate) fn durable(mut self) -> Self {
        self.args.splice(
            0..0,
            ["-c", "core.fsync=objects,reference", "-c", "core.fsyncMethod=fsync"].map(OsString::from),
        );
        self
    }

    /// Exit codes that are answers, not failures. Zero always is.
    pub(crate) fn accept(mut self, codes: &[i32]) -> Self {
        self.accepted.extend_from_slice(codes);
        self
    }

    /// Runs it to the end.
    pub(crate) fn run(self) -> Result<Output, Error> {
        self.run_watched(None)
    }

    /// The same, but ends it, with all that it started, when it takes longer than that or `is_unwanted` by now. It must be one that
    /// changes something: those have a process group of their own.
    pub(super) fn run_within(self, limit: Duration, is_unwanted: Unwanted<'_>) -> Result<Output, Error> {
        self.run_watched(Some(&Patience { limit, is_unwanted }))
    }

    /// Runs it to the end, unless it `is_unwanted` by then: it is ended then, with all that it started. What it says on stderr goes
    /// line by line to `tell`, and is kept as an error where that returns false. It must be one that changes something, and that
    /// has no answer.
    pub(super) fn run_with_progress(
        mut self,
        is_unwanted: Unwanted<'_>,
        tell: &dyn Fn(&str) -> bool,
    ) -> Result<(), Error> {
        self.inner.stdout(Stdio::null());
        let mut child = self.start()?;
        let (group, ended) = (child.id(), AtomicBool::new(false));
        let patience = Patience { limit: Duration::MAX, is_unwanted };
        let (status, stderr) = std::thread::scope(|scope| {
            let (over, is_over) = mpsc::channel();
            let ended = &ended;
            scope.spawn(move || ended.store(patience.watch(group, &is_over), Ordering::Relaxed));
            let stderr = child.stderr.take().map_or_else(String::new, |stderr| remainder(stderr, tell));
            let status = child.wait();
            drop::<mpsc::Sender<()>>(over);
            (status, stderr)
        });
        let status = status.map_err(|e| self.not_started(&e))?;
        if status.success() {
            return Ok(());
        }
        Err(Error::Command { args: self.shown(), status: told(ended.into_inner(), status), stderr })
    }

    fn run_watched(mut self, patience: Option<&Patience<'_>>) -> Result<Output, Error> {
        let input = self.input.take();
        if input.is_some() {
            self.inner.stdin(Stdio::piped());
        }
        let mut child = self.start()?;
        let (stdin, group) = (child.stdin.take(), child.id());
        let (ended, unwritten) = (AtomicBool::new(false), OnceLock::new());
        // Both pipes can fill up, so the input is written beside the reading.
        let output = std::thread::scope(|scope| {
            if let (Some(mut stdin), Some(input)) = (stdin, input) {
                let unwritten = &unwritten;
                scope.spawn(move || {
                    // A child that ends early closes the pipe; its exit status says why. After any other error it would take a part of
                    // the input for all of it.
                    if let Err(e) = stdin.write_all(&input)
                        && e.kind() != ErrorKind::BrokenPipe
                    {
                        drop(unwritten.set(e));
                    }
                });
            }
            let (over, is_over) = mpsc::channel();
            if let Some(patience) = patience {
                let ended = &ended;
                scope.spawn(move || ended.store(patience.watch(group, &is_over), Ordering::Relaxed));
            }
            let output = child.wait_with_output();
            drop::<mpsc::Sender<()>>(over);
            output
        })
        .map_err(|e| self.not_started(&e))?;
        if let Some(e) = unwritten.get() {
            return Err(self.not_started(e));
        }
        let code = output.status.code().unwrap_or(-1);
        if self.accepted.contains(&code) {
            return Ok(Output { stdout: output.stdout, code });
        }
        let status = told(ended.into_inner(), output.status);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let dir = self.inner.get_current_dir().unwrap_or(Path::new(""));
        if let Some(filter) = FailedProgram::clean_filter(dir, &stderr) {
            return Err(Error::Program(filter));
        }
        match Unusable::from_stderr(&stderr) {
            Some(unusable) => Err(Error::Unusable(unusable)),
            None => Err(Error::Command { args: self.shown(), status, stderr }),
        }
    }

    /// Runs it, to be answered with the id of what it made.
    pub(super) fn run_for_id(self) -> Result<Oid, Error> {
        let shown = self.shown();
        let line = self.run()?.line();
        Oid::from_hex(line.as_bytes()).ok_or(Error::Answer { args: shown, what: line })
    }

    /// Runs a hook by git: its output, which git sends to standard error, goes to this process's own, made printable for a
    /// terminal. Waits for git alone: a background process of the hook may keep the stream open.
    pub(crate) fn run_beside(mut self) -> Result<(), Error> {
        let failed = |command: &Self, e: &std::io::Error| command.not_started(e);
        self.inner.stdout(Stdio::null());
        let status = if stderr_is_terminal() {
            let (output, stderr) = std::io::pipe().map_err(|e| failed(&self, &e))?;
            self.inner.stderr(stderr);
            let mut child = self.start()?;
            // Closes this process's copy of the writing end.
            self.inner.stderr(Stdio::null());
            wait_and_forward(&mut child, output).map_err(|e| failed(&self, &e))?
        } else {
            self.inner.stderr(Stdio::inherit());
            self.start().and_then(|mut c| c.wait().map_err(|e| failed(&self, &e)))?
        };
        if status.success() {
            return Ok(());
        }
        Err(Error::Command { args: self.shown(), status: in_words(status), stderr: String::new() })
    }

    /// Runs it with this process's own terminal, pager included. A pager that is quit early is no failure.
    pub(crate) fn run_on_terminal(mut self) -> Result<(), Error> {
        self.speak_to_a_person().stdout(Stdio::inherit());
        let status = self.start().and_then(|mut c| c.wait().map_err(|e| self.not_started(&e)))?;
        self.shown_to_a_person(status)
    }

    /// Runs it for a person without a pager: input and errors are this process's own, and what it prints goes to `print`, a part at a
    /// time.
    pub(super) fn run_printing(mut self, print: Print<'_>) -> Result<(), Error> {
        self.speak_to_a_person().stdout(Stdio::piped());
        let mut child = self.start()?;
        if let Some(mut output) = child.stdout.take() {
            let mut part = vec![0; PRINTED_AT_ONCE];
            loop {
                match output.read(&mut part) {
                    Ok(0) => break,
                    Ok(length) => print(&part[..length]),
                    Err(e) if e.kind() == ErrorKind::Interrupted => {}
                    Err(e) => return Err(self.not_started(&e)),
                }
            }
        }
        let status = child.wait().map_err(|e| self.not_started(&e))?;
        self.shown_to_a_person(status)
    }

    /// Lets it use this process's input and errors, in the user's language.
    fn speak_to_a_person(&mut self) -> &mut std::process::Command {
        self.inner.stdin(Stdio::inherit()).stderr(Stdio::inherit()).env_remove("LC_ALL");
        if let Some(own) = std::env::var_os("LC_ALL") {
            self.inner.env("LC_ALL", own);
        }
        &mut self.inner
    }

    fn shown_to_a_person(&self, status: ExitStatus) -> Result<(), Error> {
        if status.success() || status.signal() == Some(13) {
            return Ok(());
        }
        Err(Error::Command { args: self.shown(), status: in_words(status), stderr: String::new() })
    }

    /// Starts it in a process group of its own, deaf and mute, and does not wait for it.
    pub(super) fn leave_running(mut self) -> Result<(), Error> {
        self.inner.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        self.start().map(drop)
    }

    /// Starts it with open pipes, for a conversation.
    pub(crate) fn converse(mut self) -> Result<Child, Error> {
        self.inner.stdin(Stdio::piped());
        self.start()
    }

    fn start(&mut self) -> Result<Child, Error> {
        self.inner.args(&self.args);
        let carried = self.carried.as_deref().filter(|_| self.changes);
        // Only for this one start: nothing else that is started may keep the lock alive.
        inherit(carried, FdFlags::empty());
        let started = self.inner.spawn();
        inherit(carried, FdFlags::CLOEXEC);
        started.map_err(|e| self.not_started(&e))
    }

    fn not_started(&self, source: &std::io::Error) -> Error {
        Error::Command { args: self.shown(), status: source.to_string(), stderr: String::new() }
    }

    /// The arguments as a person would type them, without the settings this program adds.
    pub(crate) fn shown(&self) -> String {
        let mut words = Vec::new();
        let mut args = self.args.iter();
        while let Some(arg) = args.next() {
            if arg == "-c" {
                args.next();
            } else {
                words.push(arg.to_string_lossy());
            }
        }
        words.join(" ")
    }
}

/// How a program has ended, which may have been `ended` by us.
fn told(ended: bool, status: ExitStatus) -> String {
    match ended {
        true => "it was ended: it took too long, or this was to be stopped".to_owned(),
        false => in_words(status),
    }
}

/// Reads until the end, and hands out each line, which may end for a terminal only. What is left of them: those that were not
/// taken.
fn remainder(stderr: impl Read, tell: &dyn Fn(&str) -> bool) -> String {
    let (mut left, mut line) = (Vec::new(), Vec::new());
    let mut bytes = BufReader::new(stderr).bytes();
    loop {
        let byte = bytes.next().and_then(Result::ok);
        line.extend(byte);
        if matches!(byte, None | Some(b'\r' | b'\n')) {
            if !tell(String::from_utf8_lossy(&line).trim_end()) {
                left.append(&mut line);
            }
            line.clear();
        }
        if byte.is_none() {
            return String::from_utf8_lossy(&left).into_owned();
        }
    }
}

/// How long somebody waits for a program that runs what others wrote.
struct Patience<'a> {
    limit: Duration,
    is_unwanted: Unwanted<'a>,
}

impl Patience<'_> {
    /// How often it is looked whether somebody asks.
    const GLANCE: Duration = Duration::from_millis(100);
    /// How long it may take to tidy up.
    const GRACE: Duration = Duration::from_secs(2);

    /// Waits until it is over, or ends its group; whether it did that.
    fn watch(&self, group: u32, is_over: &mpsc::Receiver<()>) -> bool {
        let begin = Instant::now();
        while begin.elapsed() < self.limit && !(self.is_unwanted)() {
            if is_over.recv_timeout(Patience::GLANCE) != Err(RecvTimeoutError::Timeout) {
                return false;
            }
        }
        let Some(group) = i32::try_from(group).ok().and_then(Pid::from_raw) else { return false };
        // It may end by itself at this moment.
        let _asked = kill_process_group(group, Signal::TERM);
        if is_over.recv_timeout(Patience::GRACE) == Err(RecvTimeoutError::Timeout) {
            let _ended = kill_process_group(group, Signal::KILL);
        }
        true
    }
}

fn inherit(file: Option<&File>, flags: FdFlags) {
    if let Some(file) = file {
        // It cannot fail for an open descriptor; if it did, the lock would only tell of this process alone.
        let _ = fcntl_setfd(file, flags);
    }
}

/// Takes every `GIT_*` variable out that ties a call to some other repository, and the hooks of an agent's run.
fn scrub(command: &mut std::process::Command) {
    for (key, _) in std::env::vars_os() {
        let Some(name) = key.to_str() else { continue };
        let kept = KEPT.contains(&name) || KEPT_PREFIXES.iter().any(|p| name.starts_with(p));
        if name.starts_with("GIT_") && !kept {
            command.env_remove(name);
        }
    }
    // What an agent in a lane may not do itself, this program may: it has rules and a journal of its own.
    match injected::own_parameters() {
        Some(parameters) => command.env(injected::VARIABLE, parameters),
        None => command.env_remove(injected::VARIABLE),
    };
}

/// Gives git the first moment that it knows where the clock shows an earlier one: `git fsck` calls a commit of then broken.
fn date(command: &mut std::process::Command) {
    if std::time::SystemTime::now() >= std::time::UNIX_EPOCH {
        return;
    }
    for variable in ["GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"] {
        if std::env::var_os(variable).is_none() {
            command.env(variable, "@0 +0000");
        }
    }
}

/// An exit status in words, a signal included.
pub(super) fn in_words(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}
