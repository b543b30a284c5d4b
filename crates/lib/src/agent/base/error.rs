//! Errors about agents and their runs, with hints for the user.

use std::ffi::OsString;

use proq_base::explain::{Explain, shell_quote, shell_quote_path};
use proq_base::lane_name::LaneName;
use proq_base::process;
use proq_git as git;
use proq_store as store;

use crate::lane;

/// An error about an agent or one of its runs.
#[derive(Debug, thiserror::Error, Explain)]
pub enum Error {
    /// A prompt that cannot be passed to a program.
    #[error("the prompt {reason}; nothing was made")]
    #[exit(Usage)]
    #[hint("{hint}")]
    InvalidPrompt {
        /// Reason why the prompt is invalid, as the end of a sentence.
        reason: &'static str,
        /// Hint how to avoid the error.
        hint: &'static str,
    },
    /// No command line was given for the agent.
    #[error("nothing says what to start; nothing was made")]
    #[exit(Usage)]
    #[hint("give one: git proq spawn -n NAME -- CMD ARGS…")]
    NoCommand,
    /// The agent's program is not installed.
    #[error("there is no program '{program}' on PATH; nothing was made")]
    #[hint("see which agents are installed: git proq agents")]
    #[hint("or give a command of your own: git proq spawn -n NAME -- CMD ARGS…")]
    NotInstalled {
        /// Name of the program that was searched on `PATH`.
        program: String,
    },
    /// A profile in the user's configuration that is invalid.
    #[error("{key} (from {}) cannot be used: {reason}", path.display())]
    #[hint("correct it in {}", path.display())]
    #[hint("see what is known: git proq agents --json")]
    InvalidProfile {
        /// Configuration file that defines the profile.
        path: std::path::PathBuf,
        /// Key of the invalid entry.
        key: String,
        /// Reason why the entry is invalid.
        reason: String,
    },
    /// A profile without a program, which only serves as a base of others.
    #[error("'{agent}' names no program of its own; nothing was made")]
    #[hint(
        if agent != "command",
        "say which: git proq spawn {agent} \"what to do\" -- CMD ARGS…"
    )]
    #[hint("describe yours in your configuration: [agents.NAME] with like = \"{agent}\" and a program")]
    ProfileWithoutProgram {
        /// Name of the agent.
        agent: String,
    },
    /// A file of the user that cannot be merged with the file that git-proq would put in its place.
    #[error("what {path} says ({key}) cannot be joined with what the agent is to be told there: {reason}", path = .path.display())]
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
    #[error("'{agent}' has a command of its own, and was given another one; nothing was made")]
    #[hint(if agent == "command", "a command gets a lane of its own: git proq spawn -- CMD ARGS…")]
    #[hint(else, "leave out what stands after '--'")]
    #[hint(
        if agent != "command",
        "or, if that speaks the Agent Client Protocol: git proq spawn acp \"what to do\" -- CMD ARGS…"
    )]
    UnexpectedCommand {
        /// Name of the agent.
        agent: String,
    },
    /// Permission `read` was requested for an agent that cannot be prevented from changing files.
    #[error(
        "nothing is known that keeps '{agent}' from changing things, so it cannot be started with permission read; nothing was made"
    )]
    #[hint("see which agents have permissions: git proq agents --wide")]
    NoReadPermission {
        /// Name of the agent.
        agent: String,
    },
    /// A read-only run was requested with options that it cannot have.
    #[error("mode {purpose} {reason}; nothing was made")]
    #[exit(Usage)]
    #[hint("as in: git proq spawn claude --mode answer \"where is the tax computed?\"")]
    InvalidReadOnlyRun {
        /// Purpose of the lane, which is the mode that was requested.
        purpose: String,
        /// Reason for the refusal, as the end of a sentence.
        reason: &'static str,
    },
    /// An option was given that the agent does not support.
    #[error("'{agent}' cannot be told {flag}; nothing was made")]
    #[hint("leave {flag} out, or say how in your configuration: [agents.{agent}.options]")]
    UnsupportedOption {
        /// Name of the agent.
        agent: String,
        /// Flag of git-proq that was given.
        flag: &'static str,
    },
    /// The agent cannot resume an earlier session.
    #[error("'{agent}' cannot go on in an earlier session; nothing was made")]
    #[hint("see which agents can: git proq agents --wide")]
    ResumeUnsupported {
        /// Name of the agent.
        agent: String,
    },
    /// The agent of a new lane could not be started. The lane exists.
    #[error("lane '{lane}' was made, but its agent could not be started: {reason}")]
    #[exit(Agent)]
    #[hint("take the lane away again: git proq discard {lane}")]
    NewLaneAgentNotStarted {
        /// Name of the lane.
        lane: LaneName,
        /// Reason for the failure.
        reason: String,
    },
    /// A further run could not be started. The lane is unchanged.
    #[error("the agent could not be started: {reason}; lane '{lane}' is as it was before")]
    #[exit(Agent)]
    #[hint("see which agents can be started: git proq agents")]
    NextRunNotStarted {
        /// Name of the lane.
        lane: LaneName,
        /// Reason for the failure.
        reason: String,
    },
    /// The agent for resolving a conflict could not be started.
    #[error("the agent that was to resolve the conflict of lane '{lane}' could not be started: {reason}")]
    #[exit(Agent)]
    #[hint("give it up, or try another agent: git proq resolve {lane} --abort")]
    ResolverNotStarted {
        /// Name of the lane.
        lane: LaneName,
        /// Reason for the failure.
        reason: String,
    },
    /// The lane has no running agent.
    #[error("lane '{lane}' has no running agent; nothing was stopped")]
    #[hint("see its state: git proq show {lane}")]
    NotRunning {
        /// Name of the lane.
        lane: LaneName,
    },
    /// The lane has no conversation that can be resumed.
    #[error(
        "lane '{lane}' has no conversation to go on with: no agent of it has named one that it can be resumed by; nothing was sent"
    )]
    #[hint("begin another one: git proq run {lane} AGENT \"what to do\"")]
    NoSession {
        /// Name of the lane.
        lane: LaneName,
    },
    /// No message waits for the lane's agent.
    #[error("nothing waits to be told to the agent of lane '{lane}'")]
    #[hint("say what: git proq send {lane} \"also handle refunds\"")]
    NoMessageToSend {
        /// Name of the lane.
        lane: LaneName,
    },
    /// The waiting messages are for another conversation than the one that would be continued.
    #[error(
        "what waits is for another conversation of lane '{lane}' ({agent}) than the one that goes on there; nothing was sent"
    )]
    #[hint("when that run has ended: git proq wait {lane} && git proq send {lane}")]
    MessagesForOtherConversation {
        /// Name of the lane.
        lane: LaneName,
        /// Agent whose conversation the messages are for.
        agent: String,
    },
    /// A conflict of the lane is being resolved.
    #[error("the conflict of lane '{lane}' is being resolved; nothing was sent")]
    #[hint("finish it first, or give it up: git proq resolve {lane} --abort")]
    ConflictBeingResolved {
        /// Name of the lane.
        lane: LaneName,
    },
    /// The lane's agent runs without its supervisor, which would pass on messages.
    #[error("the agent of lane '{lane}' lives on without its supervisor; nothing was sent")]
    #[hint("end it first: git proq stop {lane}")]
    AgentWithoutSupervisor {
        /// Name of the lane.
        lane: LaneName,
    },
    /// A tmux window was requested for the agent, and tmux is not installed.
    #[error("tmux is not installed, and the agent was to be in a window of it; nothing was made")]
    #[hint("install it, or leave --tmux out")]
    NoTmux,
    /// The agent's profile has no command line for a terminal.
    #[error("nothing is known of how '{agent}' is started on a terminal; nothing was made")]
    #[hint("leave --tmux out, or say how in your configuration: [agents.{agent}.args] with interactive")]
    NoInteractiveMode {
        /// Name of the agent.
        agent: String,
    },
    /// The agent's command line for a terminal takes no prompt.
    #[error(
        "cannot start '{agent}' in a window: it takes no prompt there (its args.interactive name neither {{prompt}} nor {{prompt_file}}); nothing was made"
    )]
    #[hint("leave --tmux out")]
    NoInteractivePrompt {
        /// Name of the agent.
        agent: String,
    },
    /// The tmux window could not be created, or its program could not be started.
    #[error("no window of tmux could be had for it: {reason}")]
    #[hint("leave --tmux out")]
    WindowFailed {
        /// Reason for the failure.
        reason: String,
    },
    /// The lane's agent runs in a window, where the user can type messages directly.
    #[error("the agent of lane '{lane}' is in a window, where you can talk to it; nothing was sent")]
    #[hint("go there: git proq attach {lane}")]
    AgentInWindow {
        /// Name of the lane.
        lane: LaneName,
    },
    /// The lane has no agent in a window.
    #[error("lane '{lane}' has no agent in a window")]
    #[hint("see what its agent says: git proq logs -f {lane}")]
    #[hint("tell it more: git proq send {lane} \"also handle refunds\"")]
    NoWindow {
        /// Name of the lane.
        lane: LaneName,
    },
    /// The command that shows a window was not run on a terminal.
    #[error("a window can be entered on a terminal only")]
    #[hint("run it in a terminal")]
    NoTerminal,
    /// The agent did not exit in time.
    #[error("the agent of lane '{lane}' did not end within {seconds} s")]
    #[hint("try again: git proq stop {lane}")]
    StillRunning {
        /// Name of the lane.
        lane: LaneName,
        /// Seconds that git-proq waited.
        seconds: u64,
    },
    /// A leftover process of the agent left the agent's process group, or the record of the group is wrong.
    #[error(
        "something that the agent of lane '{lane}' started lives on, and it is not known which process it is"
    )]
    #[hint("find it by the file that it keeps open: lsof {}", shell_quote_path(file))]
    #[hint("end it, then try again: git proq stop {lane}")]
    UnknownLeftoverProcess {
        /// Name of the lane.
        lane: LaneName,
        /// File that the process keeps open.
        file: std::path::PathBuf,
    },
    /// The hooks folder is in the main checkout and outside the git directory, so a hook there would be one
    /// of the project's files.
    #[error("hooks are in {}, among the project's own files; nothing was written", folder.display())]
    #[hint(
        "have a post-commit hook of your own there run this (with husky in {}): git proq hooks run",
        folder.parent().unwrap_or(folder).join("post-commit").display()
    )]
    HooksInProjectFiles {
        /// Path of the hooks folder.
        folder: std::path::PathBuf,
    },
    /// The hooks folder is outside the repository, so other repositories may use it too.
    #[error("hooks are in {}, outside of this repository, where others may have theirs too; nothing was written", folder.display())]
    #[hint(
        "have a hook of your own there ({}) run this, which does nothing outside of lanes: git proq hooks run",
        folder.join("post-commit").display()
    )]
    HooksOutsideRepository {
        /// Path of the hooks folder.
        folder: std::path::PathBuf,
    },
    /// The backup file for the present hook already exists.
    #[error("{} is there already, and is where the present hook would be kept; nothing was written", path.display())]
    #[hint("look at it, then move it away: {}", path.display())]
    HookBackupExists {
        /// Path of the file.
        path: std::path::PathBuf,
    },
    /// A hook was changed after git-proq had installed it.
    #[error("{}: {change}; nothing was changed", path.display())]
    #[hint(
        "put it right by hand; what was there before is {}.before-git-proq",
        path.display()
    )]
    HookChanged {
        /// Path of the hook.
        path: std::path::PathBuf,
        /// Description of the change.
        change: &'static str,
    },
    /// A file in a task's folder is invalid.
    #[error("{path} {reason}")]
    #[hint("put that right; what a task folder is: git proq spawn --help")]
    InvalidTaskFolder {
        /// Path of the file.
        path: String,
        /// Reason why the file is invalid, as the end of a sentence.
        reason: String,
    },
    /// No agent was named for a lane whose task is not a folder with steps.
    #[error(
        "the task of lane '{lane}' is no folder with steps, so it has to be said which agent is to be started; nothing was started"
    )]
    #[hint("name one: git proq run {lane} claude")]
    TaskIsNoFolder {
        /// Name of the lane.
        lane: LaneName,
    },
    /// A command was given for an existing lane. A command is always run in a new lane, because it has no
    /// prompt and receives no messages.
    #[error(
        "cannot run a command in lane '{lane}': a command is run in a lane of its own, from its beginning"
    )]
    #[hint("give it one: git proq spawn -- {command}")]
    CommandInLane {
        /// Name of the lane.
        lane: LaneName,
        /// Command line, quoted for a shell.
        command: String,
    },
    /// The task loop of a lane does not continue.
    #[error("the task of lane '{lane}' is not gone on with: {reason}")]
    #[hint("see how far it is: git proq show {lane}")]
    #[hint("have an agent do something there all the same: git proq run {lane} AGENT \"what to do\"")]
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

impl Error {
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
        let command = if quoted_words.is_empty() { "CMD ARGS…".to_owned() } else { quoted_words.join(" ") };
        Error::CommandInLane { lane: lane.clone(), command }
    }
}
