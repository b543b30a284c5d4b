//! Builder for a child process: argument vector, never a shell string, and an environment without this
//! repository's variables.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::PipeWriter;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::strays::RUN_MARK_VAR;
use super::{Error, inherited_fds};

/// Environment variables of an outer agent that would confuse an inner one.
const OUTER_AGENT_VARS: &[&str] =
    &["CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT"];

/// A program to start, with its arguments, folder, environment and streams.
#[derive(Debug)]
pub struct CommandBuilder {
    program: PathBuf,
    args: Vec<OsString>,
    dir: PathBuf,
    env: Vec<(OsString, OsString)>,
    /// Names of variables that the child does not inherit from this process.
    removed_vars: &'static [&'static str],
    /// Whether the child inherits no variable of this process.
    clear_env: bool,
    stdin: Option<File>,
    /// Files for standard output and standard error; none discards standard output.
    output_files: Option<(File, File)>,
    /// File for standard error where `output_files` is none; none discards it.
    stderr_file: Option<File>,
}

/// Child process of the async event loop.
pub type AsyncChild = tokio::process::Child;

impl CommandBuilder {
    /// Creates a builder for a program in a folder, with empty standard input and discarded output.
    pub fn new(program: &Path, dir: &Path) -> CommandBuilder {
        CommandBuilder {
            program: program.to_owned(),
            args: Vec::new(),
            dir: dir.to_owned(),
            env: Vec::new(),
            removed_vars: &[],
            clear_env: false,
            stdin: None,
            output_files: None,
            stderr_file: None,
        }
    }

    /// Adds arguments.
    pub fn args<S: Into<OsString>>(mut self, args: impl IntoIterator<Item = S>) -> CommandBuilder {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets an environment variable.
    pub fn env(mut self, key: impl Into<OsString>, value: impl Into<OsString>) -> CommandBuilder {
        self.env.push((key.into(), value.into()));
        self
    }

    /// Sets environment variables.
    pub fn envs(mut self, vars: impl IntoIterator<Item = (OsString, OsString)>) -> CommandBuilder {
        self.env.extend(vars);
        self
    }

    /// Removes variables with these names from the environment that the child inherits from this process.
    pub fn without_vars(mut self, keys: &'static [&'static str]) -> CommandBuilder {
        self.removed_vars = keys;
        self
    }

    /// Gives the child only the variables that are set on this builder, and none of this process.
    pub fn with_cleared_env(mut self) -> CommandBuilder {
        self.clear_env = true;
        self
    }

    /// Connects a file to standard input; the end of the file is the end of input.
    pub fn stdin(mut self, file: File) -> CommandBuilder {
        self.stdin = Some(file);
        self
    }

    /// Connects a new pipe to standard input and returns its write end. The child's input ends when that end
    /// is closed.
    pub fn with_piped_stdin(self) -> Result<(CommandBuilder, Option<PipeWriter>), Error> {
        let start_error = |source| Error::not_started(&self.program, source);
        let (reader, writer) = std::io::pipe().map_err(start_error)?;
        Ok((self.stdin(File::from(OwnedFd::from(reader))), Some(writer)))
    }

    /// Redirects standard output and standard error to files, which may be the same one.
    pub fn with_output_files(mut self, out: File, err: File) -> CommandBuilder {
        self.output_files = Some((out, err));
        self
    }

    /// Redirects standard error to a file, if there is one.
    pub fn with_stderr_file(mut self, file: Option<File>) -> CommandBuilder {
        self.stderr_file = file;
        self
    }

    /// Starts the program under a running event loop, in a new process group.
    pub fn spawn_in_group_async(self) -> Result<AsyncChild, Error> {
        let program = self.program.clone();
        let mut command = tokio::process::Command::from(self.build());
        command.process_group(0).kill_on_drop(false);
        command.spawn().map_err(|source| Error::not_started(&program, source))
    }

    /// Starts the program in a new process group.
    pub(super) fn spawn_in_group(self) -> Result<std::process::Child, Error> {
        use std::os::unix::process::CommandExt;
        let program = self.program.clone();
        let mut command = self.build();
        command.process_group(0);
        command.spawn().map_err(|source| Error::not_started(&program, source))
    }

    /// Starts the program detached: in a new session, without the process mark of this process's run, and
    /// without the locks that this process inherited.
    pub fn spawn_detached(mut self) -> Result<(), Error> {
        self.env.push((RUN_MARK_VAR.into(), OsString::new()));
        let (program, mut command) = self.into_parts();
        let result = spawn_in_new_session(&mut command);
        result.map(drop).map_err(|source| Error::not_started(&program, source))
    }

    /// Starts the program in a new session with a pipe on its standard output; the other streams are as set.
    /// It inherits none of the locks that this process inherited.
    pub fn spawn_detached_piped(self) -> Result<std::process::Child, Error> {
        let (program, mut command) = self.into_parts();
        command.stdout(Stdio::piped());
        let result = spawn_in_new_session(&mut command);
        result.map_err(|source| Error::not_started(&program, source))
    }

    /// Runs the program on this process's terminal and waits for it to exit.
    pub fn run_on_terminal(self) -> Result<std::process::ExitStatus, Error> {
        let program = self.program.clone();
        let start_error = |source| Error::not_started(&program, source);
        let mut command = self.build();
        command.stdin(Stdio::inherit()).stdout(Stdio::inherit()).stderr(Stdio::inherit());
        command.status().map_err(start_error)
    }

    /// Runs the program on this process's terminal, with `input` on its standard input, and waits for it to exit.
    /// A program that exits before it has read everything is no error.
    pub fn run_as_pager(self, input: &[u8]) -> Result<std::process::ExitStatus, Error> {
        let program = self.program.clone();
        let start_error = |source| Error::not_started(&program, source);
        let mut command = self.build();
        command.stdin(Stdio::piped()).stdout(Stdio::inherit()).stderr(Stdio::inherit());
        let mut child = command.spawn().map_err(start_error)?;
        if let Some(mut stdin) = child.stdin.take() {
            drop(std::io::Write::write_all(&mut stdin, input));
        }
        child.wait().map_err(start_error)
    }

    /// Starts the program under a running event loop, on this process's terminal and in its process group.
    pub fn spawn_on_terminal(self) -> Result<AsyncChild, Error> {
        let program = self.program.clone();
        let mut command = self.build();
        command.stdin(Stdio::inherit()).stdout(Stdio::inherit()).stderr(Stdio::inherit());
        let mut command = tokio::process::Command::from(command);
        command.kill_on_drop(false);
        command.spawn().map_err(|source| Error::not_started(&program, source))
    }

    /// Starts the program under a running event loop, in this process's group, with pipes on its standard
    /// input and output. It shares this process's standard error.
    pub fn spawn_with_pipes(self) -> Result<AsyncChild, Error> {
        let program = self.program.clone();
        let mut command = self.build();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut command = tokio::process::Command::from(command);
        command.kill_on_drop(false);
        command.spawn().map_err(|source| Error::not_started(&program, source))
    }

    /// Runs the program, waits for it to exit, and returns its status with standard output and standard error
    /// joined.
    pub fn run_with_output(self) -> Result<(std::process::ExitStatus, Vec<u8>), Error> {
        let program = self.program.clone();
        let start_error = |source| Error::not_started(&program, source);
        let (mut reader, writer) = std::io::pipe().map_err(start_error)?;
        let stderr_writer = writer.try_clone().map_err(start_error)?;
        let mut command = self.build();
        command.stdout(writer).stderr(stderr_writer);
        let mut child = command.spawn().map_err(start_error)?;
        // `command` owns the parent's write ends of the pipe. With them open, the read would never end.
        drop(command);
        let mut out = Vec::new();
        std::io::Read::read_to_end(&mut reader, &mut out).map_err(start_error)?;
        let status = child.wait().map_err(start_error)?;
        Ok((status, out))
    }

    /// Returns the program path, for errors, and the command to start.
    pub(super) fn into_parts(self) -> (PathBuf, std::process::Command) {
        (self.program.clone(), self.build())
    }

    /// Builds the command to start, with its environment and streams.
    fn build(self) -> std::process::Command {
        let mut command = std::process::Command::new(&self.program);
        command.args(&self.args).current_dir(&self.dir);
        for (key, _) in std::env::vars_os().filter(|(key, _)| !is_inherited(key, self.removed_vars)) {
            command.env_remove(key);
        }
        if self.clear_env {
            command.env_clear();
        }
        // A shell sets `PWD` on `cd`, and some programs (opencode) trust it over their real working folder.
        if self.dir.is_absolute() {
            command.env("PWD", &self.dir);
        }
        command.envs(self.env);
        command.stdin(self.stdin.map_or_else(Stdio::null, Stdio::from));
        match self.output_files {
            Some((out, err)) => command.stdout(out).stderr(err),
            None => {
                command.stdout(Stdio::null()).stderr(self.stderr_file.map_or_else(Stdio::null, Stdio::from))
            }
        };
        command
    }
}

/// Starts a program in a new session from its first moment, with none of the file descriptors that this
/// process inherited. Stopping an agent's leftover processes, by group or by lock, then does not affect it.
fn spawn_in_new_session(command: &mut std::process::Command) -> std::io::Result<std::process::Child> {
    use std::os::unix::process::CommandExt;
    let fds = inherited_fds::inheritable_fds();
    let before_exec = move || {
        inherited_fds::set_close_on_exec(&fds);
        rustix::process::setsid().map(drop).map_err(std::io::Error::from)
    };
    // SAFETY: the closure only makes system calls that are allowed between fork and exec; it allocates
    // nothing.
    #[expect(unsafe_code, reason = "the standard library cannot do this by itself")]
    unsafe {
        command.pre_exec(before_exec);
    }
    command.spawn()
}

/// Returns the variables of this process that a child inherits if started with
/// [`CommandBuilder::without_vars`] of `removed`.
pub fn inherited_vars(removed: &[&str]) -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os().filter(|(key, _)| is_inherited(key, removed))
}

/// Returns whether a child inherits the variable with this name.
fn is_inherited(key: &OsStr, removed: &[&str]) -> bool {
    let name = key.to_string_lossy();
    let contains_name = |list: &[&str]| list.contains(&name.as_ref());
    !(contains_name(OUTER_AGENT_VARS) || contains_name(removed) || is_repository_var(&name))
}

/// Returns whether a variable ties git to one repository, worktree, index or set of `-c` options. A lane's
/// agent works in its own.
fn is_repository_var(name: &str) -> bool {
    const REPOSITORY_VARS: &[&str] = &[
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
    REPOSITORY_VARS.contains(&name)
}
