//! Errors about agents and their runs, with hints for the user.

use std::ffi::OsString;

use proq_base::explain::{Explain, rename_command, shell_quote, shell_quote_path};
use proq_base::hint::Hint;
use proq_base::lane_name::LaneName;
use proq_base::process;
use proq_git as git;
use proq_store as store;

use crate::lane;

/// An error about an agent or one of its runs.
#[derive(Debug, thiserror::Error, Explain)]
pub enum Error {
    /// A prompt that cannot be passed to a program.
    #[error("cannot use the prompt: it {reason}")]
    #[exit(Usage)]
    #[hint(with = [hint.clone()])]
    InvalidPrompt {
        /// Reason why the prompt is invalid, as the end of a sentence.
        reason: &'static str,
        /// Hint how to avoid the error.
        hint: Hint,
    },
    /// No command line was given for the agent.
    #[error("no agent or command given")]
    #[exit(Usage)]
    #[hint("list installed agents: git proq agents")]
    NoCommand,
    /// The agent's program is not installed.
    #[error("cannot start '{program}': {}there is no such program on PATH", not_installed_prefix(about.as_deref()))]
    #[hint(if let Some(install) = install, "install it: {install}")]
    #[hint(if let Some(similar) = similar, "did you mean '{similar}'?")]
    #[hint(if !*is_command, "list installed agents: git proq agents")]
    NotInstalled {
        /// Name of the program that was searched on `PATH`.
        program: String,
        /// What the agent is, such as `Claude Code`; none for a program that is no known agent.
        about: Option<String>,
        /// Command that installs the agent, where it is known.
        install: Option<String>,
        /// Name of a known agent that is similar to the program's.
        similar: Option<String>,
        /// Whether the program is that of a user's command line, and not of an agent.
        is_command: bool,
    },
    /// No agent was named, and none can be chosen.
    #[error("cannot choose an agent: {}", describe_choice(installed))]
    #[exit(Usage)]
    #[hint(if let Some(first) = installed.first(), "name one: git proq spawn {first} \"implement payments\"")]
    #[hint(if let Some(first) = installed.first(), "or choose the default: git config --global proq.agent.default {first}")]
    #[hint(if installed.is_empty(), "see which agents are known: git proq agents")]
    NoDefaultAgent {
        /// Names of the known agents that are installed.
        installed: Vec<String>,
    },
    /// A profile in the user's configuration that is invalid.
    #[error("cannot use {key} of {}: {reason}", path.display())]
    #[hint("correct it, or move it away: {}", rename_command(path, "broken"))]
    InvalidProfile {
        /// Configuration file that defines the profile.
        path: std::path::PathBuf,
        /// Key of the invalid entry.
        key: String,
        /// Reason why the entry is invalid.
        reason: String,
    },
    /// A profile without a program, which only serves as a base of others.
    #[error("cannot start '{agent}': it has no program of its own")]
    #[hint(
        if agent != "command",
        "name it behind '--': git proq spawn {agent} \"implement payments\" -- my-agent"
    )]
    #[hint(
        "or add [agents.my-agent] with like = \"{agent}\" and a program to ~/.config/git-proq/config.toml"
    )]
    ProfileWithoutProgram {
        /// Name of the agent.
        agent: String,
    },
    /// A file of the user that cannot be merged with the file that git-proq would put in its place.
    #[error("cannot merge {path} ({key}) with the file that the agent needs: {reason}", path = .path.display())]
    #[hint("make {} a JSON object without comments", path.display())]
    CannotMergeUserFile {
        /// Environment variable that names the file.
        key: String,
        /// Path of the user's file.
        path: std::path::PathBuf,
        /// Reason why the file cannot be merged.
        reason: String,
    },
    /// A command was given for an agent that already has one.
    #[error("cannot start '{agent}': it has a command of its own, and another was given")]
    #[hint(if agent == "command", "start the command alone: git proq spawn -- my-command")]
    #[hint(else, "leave out the command behind '--'")]
    #[hint(
        if agent != "command",
        "or, if it speaks the Agent Client Protocol: git proq spawn acp \"implement payments\" -- my-agent"
    )]
    UnexpectedCommand {
        /// Name of the agent.
        agent: String,
    },
    /// Permission `read` was requested for an agent that cannot be prevented from changing files.
    #[error("cannot start '{agent}' with permission read: it has no read-only mode")]
    #[hint("show the permissions of each agent: git proq agents --wide")]
    NoReadPermission {
        /// Name of the agent.
        agent: String,
    },
    /// A read-only run was requested with options that it cannot have.
    #[error("cannot use mode {purpose}: it {reason}")]
    #[exit(Usage)]
    #[hint("for example: git proq spawn claude --mode answer \"where is the tax computed?\"")]
    InvalidReadOnlyRun {
        /// Purpose of the lane, which is the mode that was requested.
        purpose: String,
        /// Reason for the refusal, as the end of a sentence.
        reason: &'static str,
    },
    /// A text that is not a pattern of commands.
    #[error("cannot allow '{pattern}': {reason}")]
    #[exit(Usage)]
    #[hint(if *origin == "--allow", "for example: git proq spawn claude \"implement payments\" --allow 'cargo *'")]
    #[hint(else, "see where it is set: git proq config list")]
    InvalidAllowPattern {
        /// The text.
        pattern: String,
        /// Flag or setting that it comes from.
        origin: &'static str,
        /// Reason why it is not a pattern, as the end of a sentence.
        reason: String,
    },
    /// A pattern of commands was given that the agent cannot express.
    #[error("cannot allow '{pattern}' for '{agent}': {reason}")]
    #[exit(Usage)]
    #[hint(if let Some(instead) = instead, "allow more than that: --allow {}", shell_quote(instead))]
    #[hint(else, "leave --allow out")]
    AllowUnsupported {
        /// Name of the agent.
        agent: String,
        /// The pattern.
        pattern: String,
        /// Reason why it cannot, as the end of a sentence.
        reason: String,
        /// Pattern to use instead.
        instead: Option<String>,
    },
    /// Patterns of commands were given at another permission level than `edit`.
    #[error("cannot use --allow with permission {permission}: it adds commands to those of permission edit")]
    #[exit(Usage)]
    #[hint("leave --allow out, or use it with --permission edit")]
    AllowNeedsEdit {
        /// The permission level.
        permission: String,
    },
    /// An option was given that the agent does not support.
    #[error("cannot start '{agent}': it does not support {flag}")]
    #[hint("leave {flag} out, or define it in [agents.{agent}.options] of ~/.config/git-proq/config.toml")]
    UnsupportedOption {
        /// Name of the agent.
        agent: String,
        /// Flag of git-proq that was given.
        flag: &'static str,
    },
    /// The agent cannot resume an earlier session.
    #[error("cannot start '{agent}': it cannot resume a session")]
    ResumeUnsupported {
        /// Name of the agent.
        agent: String,
    },
    /// The agent of a new lane could not be started. The lane exists.
    #[error("created lane '{lane}', but its agent did not start: {reason}")]
    #[exit(Agent)]
    #[hint("remove the lane: git proq discard {lane}")]
    NewLaneAgentNotStarted {
        /// Name of the lane.
        lane: LaneName,
        /// Reason for the failure.
        reason: String,
    },
    /// A further run could not be started. The lane is unchanged.
    #[error("cannot start the agent of lane '{lane}': {reason}")]
    #[exit(Agent)]
    #[hint("list installed agents: git proq agents")]
    NextRunNotStarted {
        /// Name of the lane.
        lane: LaneName,
        /// Reason for the failure.
        reason: String,
    },
    /// The agent for resolving a conflict could not be started.
    #[error("cannot start the agent that resolves lane '{lane}': {reason}")]
    #[exit(Agent)]
    #[hint("resolve it yourself: git proq resolve {lane} --shell")]
    ResolverNotStarted {
        /// Name of the lane.
        lane: LaneName,
        /// Reason for the failure.
        reason: String,
    },
    /// The lane has no running agent.
    #[error("cannot stop lane '{lane}': it has no running agent")]
    #[hint("show the lane: git proq show {lane}")]
    NotRunning {
        /// Name of the lane.
        lane: LaneName,
    },
    /// The lane has no conversation that can be resumed.
    #[error("cannot send to lane '{lane}': it has no conversation that can be resumed")]
    #[hint(
        if *is_running,
        "once its run has ended, start a new one: git proq wait {lane}; git proq run {lane} claude {}",
        prompt_argument(message)
    )]
    #[hint(else, "start a new one: git proq run {lane} claude {}", prompt_argument(message))]
    NoSession {
        /// Name of the lane.
        lane: LaneName,
        /// Text that was to be sent.
        message: String,
        /// Whether a run of the lane has not ended, so that none can be started.
        is_running: bool,
    },
    /// No message waits for the lane's agent.
    #[error("cannot send to lane '{lane}': no message is queued")]
    #[hint("send one: git proq send {lane} \"also handle refunds\"")]
    NoMessageToSend {
        /// Name of the lane.
        lane: LaneName,
    },
    /// The waiting messages are for another conversation than the one that would be continued.
    #[error("cannot send to lane '{lane}': the queued messages are for another conversation ({agent})")]
    #[hint("send them after that run: git proq wait {lane} && git proq send {lane}")]
    MessagesForOtherConversation {
        /// Name of the lane.
        lane: LaneName,
        /// Agent whose conversation the messages are for.
        agent: String,
    },
    /// A conflict of the lane is being resolved.
    #[error("cannot send to lane '{lane}': its conflict is being resolved")]
    #[hint("abort that; its work is saved: git proq resolve {lane} --abort")]
    ConflictBeingResolved {
        /// Name of the lane.
        lane: LaneName,
    },
    /// The lane's agent runs without its supervisor, which would pass on messages.
    #[error("cannot send to lane '{lane}': its agent runs without a supervisor")]
    #[hint("stop it: git proq stop {lane}")]
    AgentWithoutSupervisor {
        /// Name of the lane.
        lane: LaneName,
    },
    /// A tmux window was requested for the agent, and tmux is not installed.
    #[error("cannot start the agent in a window: tmux is not installed")]
    #[hint("install tmux, or leave --tmux out")]
    NoTmux,
    /// The agent's profile has no command line for a terminal.
    #[error("cannot start '{agent}' in a window: its profile has no interactive command line")]
    #[hint("leave --tmux out, or set interactive in [agents.{agent}.args] of ~/.config/git-proq/config.toml")]
    NoInteractiveMode {
        /// Name of the agent.
        agent: String,
    },
    /// The agent's command line for a terminal takes no prompt.
    #[error(
        "cannot start '{agent}' in a window: it takes no prompt there (its args.interactive has neither {{prompt}} nor {{prompt_file}}); nothing was created"
    )]
    #[hint("leave --tmux out")]
    NoInteractivePrompt {
        /// Name of the agent.
        agent: String,
    },
    /// The tmux window could not be created, or its program could not be started.
    #[error("cannot create a tmux window: {reason}")]
    #[hint("leave --tmux out")]
    WindowFailed {
        /// Reason for the failure.
        reason: String,
    },
    /// The lane's agent runs in a window, where the user can type messages directly.
    #[error("cannot send to lane '{lane}': its agent runs in a tmux window")]
    #[hint("type your message there: git proq open {lane}")]
    AgentInWindow {
        /// Name of the lane.
        lane: LaneName,
    },
    /// The lane has no agent in a window.
    #[error("lane '{lane}' has no tmux window")]
    #[hint("follow its output: git proq logs -f {lane}")]
    #[hint("open a shell in its worktree: git proq open {lane} --shell")]
    NoWindow {
        /// Name of the lane.
        lane: LaneName,
    },
    /// The command that shows a window was not run on a terminal.
    #[error("cannot attach: not a terminal")]
    NoTerminal,
    /// The agent did not exit in time.
    #[error("cannot stop the agent of lane '{lane}': it still runs after {seconds} s")]
    #[hint("try again: git proq stop {lane}")]
    StillRunning {
        /// Name of the lane.
        lane: LaneName,
        /// Seconds that git-proq waited.
        seconds: u64,
    },
    /// A leftover process of the agent left the agent's process group, or the record of the group is wrong.
    #[error("cannot stop a process that the agent of lane '{lane}' started: its process id is unknown")]
    #[hint("find it by the file that it has open: sudo lsof {}", shell_quote_path(file))]
    #[hint("kill it, which ends the run; then show the lane: git proq show {lane}")]
    UnknownLeftoverProcess {
        /// Name of the lane.
        lane: LaneName,
        /// File that the process keeps open.
        file: std::path::PathBuf,
    },
    /// The hooks folder is in the main checkout and outside the git directory, so a hook there would be one
    /// of the project's files.
    #[error("hooks are in {}, among the project's files; nothing was written", folder.display())]
    #[hint(
        "call this from a post-commit hook of yours ({} with husky): git proq hooks run",
        folder.parent().unwrap_or(folder).join("post-commit").display()
    )]
    HooksInProjectFiles {
        /// Path of the hooks folder.
        folder: std::path::PathBuf,
    },
    /// The hooks folder is outside the repository, so other repositories may use it too.
    #[error("hooks are in {}, outside of this repository, where other repositories may use it too; nothing was written", folder.display())]
    #[hint(
        "call this from a hook of yours ({}); it does nothing outside of lanes: git proq hooks run",
        folder.join("post-commit").display()
    )]
    HooksOutsideRepository {
        /// Path of the hooks folder.
        folder: std::path::PathBuf,
    },
    /// The backup file for the present hook already exists.
    #[error("{} exists already, where the present hook would be saved; nothing was written", path.display())]
    #[hint("move it away: {}", rename_command(path, "old"))]
    HookBackupExists {
        /// Path of the file.
        path: std::path::PathBuf,
    },
    /// A hook was changed after git-proq had installed it.
    #[error("cannot remove the hook {}: {change}; nothing was changed", path.display())]
    #[hint(
        "remove the call by hand; the earlier hook is {}.before-git-proq",
        path.display()
    )]
    HookChanged {
        /// Path of the hook.
        path: std::path::PathBuf,
        /// Description of the change.
        change: &'static str,
    },
    /// A file in a task's folder is invalid.
    #[error("cannot use the task folder: {path} {reason}")]
    #[hint("read what a task folder needs: git proq spawn --help")]
    InvalidTaskFolder {
        /// Path of the file.
        path: String,
        /// Reason why the file is invalid, as the end of a sentence.
        reason: String,
    },
    /// No agent was named for a lane whose task is not a folder with steps.
    #[error(
        "cannot start an agent in lane '{lane}': its task is not a folder with steps, so an agent has to be named"
    )]
    #[hint("name one: git proq run {lane} claude \"implement payments\"")]
    TaskIsNoFolder {
        /// Name of the lane.
        lane: LaneName,
    },
    /// A command was given for an existing lane. A command is always run in a new lane, because it has no
    /// prompt and receives no messages.
    #[error("cannot run a command in lane '{lane}': a command always runs in a new lane")]
    #[hint("run it in a new lane: git proq spawn -- {command}")]
    CommandInLane {
        /// Name of the lane.
        lane: LaneName,
        /// Command line, quoted for a shell.
        command: String,
    },
    /// The task loop of a lane does not continue.
    #[error("cannot continue the task of lane '{lane}': {reason}")]
    #[hint("show its progress: git proq show {lane}")]
    #[hint("or start an agent with a new prompt: git proq run {lane} claude \"fix the failing step\"")]
    TaskLoopStopped {
        /// Name of the lane.
        lane: LaneName,
        /// Reason why the loop does not continue.
        reason: String,
    },
    /// An error of a lane.
    #[error(transparent)]
    Lane(#[from] lane::Error),
    /// An error of git.
    #[error(transparent)]
    Git(#[from] git::Error),
    /// An error of the store.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// An error of a process.
    #[error(transparent)]
    Process(#[from] process::Error),
}

/// Returns the beginning of a message about a known agent that is not installed; empty for any other program.
fn not_installed_prefix(about: Option<&str>) -> String {
    about.map(|about| format!("{about} is not installed: ")).unwrap_or_default()
}

/// Returns a message as the arguments of `git proq run LANE claude`: quoted for a shell, or as a file to be
/// written, if it is no single line.
fn prompt_argument(message: &str) -> String {
    match message.trim_end().chars().any(char::is_control) {
        true => "--file message.md".to_owned(),
        false => shell_quote(message.trim_end()),
    }
}

/// Describes why none of the installed agents is chosen.
fn describe_choice(installed: &[String]) -> String {
    match installed.split_last() {
        None => "no known agent is installed".to_owned(),
        Some((last, others)) => format!("{} and {last} are installed", others.join(", ")),
    }
}

impl Error {
    /// Returns the error for a program that is not on `PATH` and belongs to no known agent. `similar` is the
    /// name of a known agent that may have been meant.
    pub fn missing_program(program: &str, similar: Option<String>) -> Error {
        let program = program.to_owned();
        Error::NotInstalled { program, about: None, install: None, similar, is_command: false }
    }

    /// Converts [`Error::NotInstalled`] into one about the program of a user's command line; returns any other
    /// error unchanged.
    pub(crate) fn into_missing_command(self) -> Error {
        match self {
            Error::NotInstalled { program, about, install, similar, .. } => {
                Error::NotInstalled { program, about, install, similar, is_command: true }
            }
            other => other,
        }
    }

    /// Converts an error about an agent that is named `command` into [`Error::CommandInLane`]; returns any
    /// other error unchanged.
    pub fn into_command_in_lane(self, lane: &LaneName, command: &[OsString]) -> Error {
        match self {
            Error::UnexpectedCommand { agent } | Error::ProfileWithoutProgram { agent }
                if agent == "command" =>
            {
                Error::command_in_lane_error(lane, command)
            }
            other => other,
        }
    }

    /// Returns the error for a command in an existing lane.
    pub fn command_in_lane_error(lane: &LaneName, command: &[OsString]) -> Error {
        let quoted_words: Vec<String> =
            command.iter().map(|argument| shell_quote(&argument.to_string_lossy())).collect();
        let command = if quoted_words.is_empty() { "my-command".to_owned() } else { quoted_words.join(" ") };
        Error::CommandInLane { lane: lane.clone(), command }
    }
}
