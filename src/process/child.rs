//! Owns the start of a program: argument list, never a shell string; environment without this repository's variables.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::PipeWriter;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::{Error, MARK, descriptors};

/// Variables that an outer agent leaves behind and that would confuse an inner one.
const AGENT_MARKS: &[&str] =
    &["CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT"];

/// A program about to be started.
#[derive(Debug)]
pub(crate) struct Start {
    program: PathBuf,
    args: Vec<OsString>,
    dir: PathBuf,
    env: Vec<(OsString, OsString)>,
    without: &'static [&'static str],
    whole: bool,
    stdin: Option<File>,
    output: Option<(File, File)>,
    errors: Option<File>,
}

/// A program that runs in a process group of its own.
pub(crate) type Spawned = tokio::process::Child;

impl Start {
    /// A program in a folder, with nothing on its standard input and its output dropped.
    pub(crate) fn new(program: &Path, dir: &Path) -> Start {
        Start {
            program: program.to_owned(),
            args: Vec::new(),
            dir: dir.to_owned(),
            env: Vec::new(),
            without: &[],
            whole: false,
            stdin: None,
            output: None,
            errors: None,
        }
    }

    /// Adds arguments.
    pub(crate) fn args<S: Into<OsString>>(mut self, args: impl IntoIterator<Item = S>) -> Start {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets a variable.
    pub(crate) fn env(mut self, key: impl Into<OsString>, value: impl Into<OsString>) -> Start {
        self.env.push((key.into(), value.into()));
        self
    }

    /// Sets variables.
    pub(crate) fn envs(mut self, all: impl IntoIterator<Item = (OsString, OsString)>) -> Start {
        self.env.extend(all);
        self
    }

    /// Keeps variables of this process from it.
    pub(crate) fn without(mut self, keys: &'static [&'static str]) -> Start {
        self.without = keys;
        self
    }

    /// The variables that are set are all that it has: none of this process reach it.
    pub(crate) fn with_nothing_else(mut self) -> Start {
        self.whole = true;
        self
    }

    /// Gives it a file to read; its end is the end of input.
    pub(crate) fn stdin(mut self, file: File) -> Start {
        self.stdin = Some(file);
        self
    }

    /// Gives it a pipe to read. It ends when the other end does, which is returned.
    pub(crate) fn leashed(self) -> Result<(Start, Option<PipeWriter>), Error> {
        let failed = |source| Error::Start { program: self.program.display().to_string(), source };
        let (reader, writer) = std::io::pipe().map_err(failed)?;
        Ok((self.stdin(File::from(OwnedFd::from(reader))), Some(writer)))
    }

    /// Sends both output streams to files (the same one twice is fine).
    pub(crate) fn output(mut self, out: File, err: File) -> Start {
        self.output = Some((out, err));
        self
    }

    /// Sends its standard error to a file, if there is one.
    pub(crate) fn errors(mut self, file: Option<File>) -> Start {
        self.errors = file;
        self
    }

    /// Starts it under a running event loop, in a process group of its own.
    pub(crate) fn spawn_watched(self) -> Result<Spawned, Error> {
        let program = self.program.clone();
        let mut command = tokio::process::Command::from(self.command());
        command.process_group(0).kill_on_drop(false);
        command.spawn().map_err(|source| Error::Start { program: program.display().to_string(), source })
    }

    /// Starts it in a process group of its own.
    pub(super) fn spawn_in_group(self) -> Result<std::process::Child, Error> {
        use std::os::unix::process::CommandExt;
        let program = self.program.clone();
        let mut command = self.command();
        command.process_group(0);
        command.spawn().map_err(|source| Error::Start { program: program.display().to_string(), source })
    }

    /// Starts it and leaves it to itself: whichever run this process belongs to, it does not, and it holds none of the locks that
    /// this process was left.
    pub(crate) fn spawn_detached(mut self) -> Result<(), Error> {
        self.env.push((MARK.into(), OsString::new()));
        let (program, mut command) = self.into_command();
        let started = spawn_apart(&mut command);
        started.map(drop).map_err(|source| Error::Start { program: program.display().to_string(), source })
    }

    /// Starts it to go on by itself, and keeps a pipe to its standard output; the rest is as set. It holds none of the locks that
    /// this process was left.
    pub(crate) fn spawn_talking(self) -> Result<std::process::Child, Error> {
        let (program, mut command) = self.into_command();
        command.stdout(Stdio::piped());
        let started = spawn_apart(&mut command);
        started.map_err(|source| Error::Start { program: program.display().to_string(), source })
    }

    /// Runs it to the end on this process's own terminal.
    pub(crate) fn run_on_terminal(self) -> Result<std::process::ExitStatus, Error> {
        let program = self.program.display().to_string();
        let failed = |source| Error::Start { program, source };
        let mut command = self.command();
        command.stdin(Stdio::inherit()).stdout(Stdio::inherit()).stderr(Stdio::inherit());
        command.status().map_err(failed)
    }

    /// Starts it under a running event loop, on this process's own terminal and in its process group.
    pub(crate) fn spawn_beside(self) -> Result<Spawned, Error> {
        let program = self.program.display().to_string();
        let mut command = self.command();
        command.stdin(Stdio::inherit()).stdout(Stdio::inherit()).stderr(Stdio::inherit());
        let mut command = tokio::process::Command::from(command);
        command.kill_on_drop(false);
        command.spawn().map_err(|source| Error::Start { program, source })
    }

    /// Starts it under a running event loop, in this process's group, with pipes to its standard input and output. What it
    /// writes to its standard error goes where this process's goes.
    pub(crate) fn spawn_conversing(self) -> Result<Spawned, Error> {
        let program = self.program.display().to_string();
        let mut command = self.command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut command = tokio::process::Command::from(command);
        command.kill_on_drop(false);
        command.spawn().map_err(|source| Error::Start { program, source })
    }

    /// Runs it to the end, its output joined.
    pub(crate) fn run(self) -> Result<(std::process::ExitStatus, Vec<u8>), Error> {
        let program = self.program.display().to_string();
        let failed = |source| Error::Start { program: program.clone(), source };
        let (mut reader, writer) = std::io::pipe().map_err(failed)?;
        let second = writer.try_clone().map_err(failed)?;
        let mut command = self.command();
        command.stdout(writer).stderr(second);
        let mut child = command.spawn().map_err(failed)?;
        // The parent's ends of the pipe live in `command`; reading would never end with them open.
        drop(command);
        let mut out = Vec::new();
        std::io::Read::read_to_end(&mut reader, &mut out).map_err(failed)?;
        let status = child.wait().map_err(failed)?;
        Ok((status, out))
    }

    /// What it is called, and the command to start.
    pub(super) fn into_command(self) -> (PathBuf, std::process::Command) {
        (self.program.clone(), self.command())
    }

    fn command(self) -> std::process::Command {
        let mut command = std::process::Command::new(&self.program);
        command.args(&self.args).current_dir(&self.dir);
        for (key, _) in std::env::vars_os().filter(|(key, _)| !is_inherited(key, self.without)) {
            command.env_remove(key);
        }
        if self.whole {
            command.env_clear();
        }
        // A shell would say so when it goes there, and some programs (opencode) believe it over where they are.
        if self.dir.is_absolute() {
            command.env("PWD", &self.dir);
        }
        command.envs(self.env);
        command.stdin(self.stdin.map_or_else(Stdio::null, Stdio::from));
        match self.output {
            Some((out, err)) => command.stdout(out).stderr(err),
            None => command.stdout(Stdio::null()).stderr(self.errors.map_or_else(Stdio::null, Stdio::from)),
        };
        command
    }
}

/// Starts a program in a session of its own from its first moment, with nothing open that this process was left: who ends what
/// an agent leaves running, by its group or by its lock, does not mean it.
fn spawn_apart(command: &mut std::process::Command) -> std::io::Result<std::process::Child> {
    use std::os::unix::process::CommandExt;
    let left = descriptors::passed_on();
    let leave = move || {
        descriptors::keep(&left);
        rustix::process::setsid().map(drop).map_err(std::io::Error::from)
    };
    // SAFETY: these are system calls that may be made between fork and exec; nothing is allocated.
    #[expect(unsafe_code, reason = "the standard library cannot do this by itself")]
    unsafe {
        command.pre_exec(leave);
    }
    command.spawn()
}

/// The variables of this process that a program gets that is started with [`Start::without`] these.
pub(crate) fn inherited(without: &[&str]) -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os().filter(|(key, _)| is_inherited(key, without))
}

fn is_inherited(key: &OsStr, without: &[&str]) -> bool {
    let name = key.to_string_lossy();
    let unwanted = |list: &[&str]| list.contains(&name.as_ref());
    !(unwanted(AGENT_MARKS) || unwanted(without) || belongs_to_a_repository(&name))
}

/// Variables that tie git to one repository, worktree, index or set of `-c` options. A lane's agent works in its own.
fn belongs_to_a_repository(name: &str) -> bool {
    const OWN: &[&str] = &[
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_COMMON_DIR",
        "GIT_CONFIG",
        "GIT_CONFIG_PARAMETERS",
        "GIT_DIR",
        "GIT_GRAFT_FILE",
        "GIT_IMPLICIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_INTERNAL_SUPER_PREFIX",
        "GIT_NAMESPACE",
        "GIT_NO_REPLACE_OBJECTS",
        "GIT_OBJECT_DIRECTORY",
        "GIT_OPTIONAL_LOCKS",
        "GIT_PREFIX",
        "GIT_QUARANTINE_PATH",
        "GIT_REFLOG_ACTION",
        "GIT_REPLACE_REF_BASE",
        "GIT_SHALLOW_FILE",
        "GIT_WORK_TREE",
    ];
    OWN.contains(&name)
}
