//! Owns what can go wrong with an agent, in the user's words.

use std::borrow::Cow;
use std::ffi::OsString;

use crate::explain::{Exit, Explain, quoted_path, word};
use crate::{git, lane, process, store};

/// An error about an agent or its run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A prompt that no program can be given.
    #[error("the prompt {why}; nothing was made")]
    Prompt {
        /// What is wrong with it.
        why: &'static str,
        /// What to do about it.
        helps: &'static str,
    },
    /// A command line without a command.
    #[error("nothing says what to start; nothing was made")]
    NoCommand,
    /// The program is not installed.
    #[error("there is no program '{program}' on PATH; nothing was made")]
    NotInstalled {
        /// What was looked for.
        program: String,
    },
    /// A profile of the user's that cannot be used.
    #[error("{key} (from {}) cannot be used: {why}", path.display())]
    Profile {
        /// The file.
        path: std::path::PathBuf,
        /// The key.
        key: String,
        /// What is wrong.
        why: String,
    },
    /// A profile that only others are made of.
    #[error("'{agent}' names no program of its own; nothing was made")]
    Incomplete {
        /// The agent.
        agent: String,
    },
    /// A file of the user's that ours would take the place of.
    #[error("what {path} says ({key}) cannot be joined with what the agent is to be told there: {why}", path = .path.display())]
    NotJoined {
        /// The variable.
        key: String,
        /// The file.
        path: std::path::PathBuf,
        /// Why not.
        why: String,
    },
    /// It is not to be started by another one.
    #[error("'{agent}' has a command of its own, and was given another one; nothing was made")]
    HasCommand {
        /// The agent.
        agent: String,
    },
    /// The agent cannot be kept from changing things.
    #[error(
        "nothing is known that keeps '{agent}' from changing things, so it cannot be started with permission read; nothing was made"
    )]
    NotLimited {
        /// The agent.
        agent: String,
    },
    /// A run that only looks cannot be like that.
    #[error("mode {purpose} {why}; nothing was made")]
    OnlyLooks {
        /// What it is for.
        purpose: String,
        /// Why not.
        why: &'static str,
    },
    /// The agent has no such option.
    #[error("'{agent}' cannot be told {flag}; nothing was made")]
    NotTaken {
        /// The agent.
        agent: String,
        /// The flag of ours.
        flag: &'static str,
    },
    /// The agent cannot go on in an earlier session.
    #[error("'{agent}' cannot go on in an earlier session; nothing was made")]
    NoResume {
        /// The agent.
        agent: String,
    },
    /// The agent could not be started; the lane is there.
    #[error("lane '{lane}' was made, but its agent could not be started: {why}")]
    NotStarted {
        /// The lane.
        lane: String,
        /// Why.
        why: String,
    },
    /// A further run could not be started; the lane is as it was.
    #[error("the agent could not be started: {why}; lane '{lane}' is as it was before")]
    NotBegun {
        /// The lane.
        lane: String,
        /// Why.
        why: String,
    },
    /// The agent that was to resolve a conflict could not be started.
    #[error("the agent that was to resolve the conflict of lane '{lane}' could not be started: {why}")]
    NotStartedThere {
        /// The lane.
        lane: String,
        /// Why.
        why: String,
    },
    /// Nothing runs there.
    #[error("lane '{lane}' has no running agent; nothing was stopped")]
    NotRunning {
        /// The lane.
        lane: String,
    },
    /// There is no conversation to go on with.
    #[error(
        "lane '{lane}' has no conversation to go on with: no agent of it has named one that it can be resumed by; nothing was sent"
    )]
    NoSession {
        /// The lane.
        lane: String,
    },
    /// There is nothing to send.
    #[error("nothing waits to be told to the agent of lane '{lane}'")]
    NothingWaits {
        /// The lane.
        lane: String,
    },
    /// What waits is for another conversation than the one that goes on.
    #[error(
        "what waits is for another conversation of lane '{lane}' ({agent}) than the one that goes on there; nothing was sent"
    )]
    OthersTurn {
        /// The lane.
        lane: String,
        /// Whom it is for.
        agent: String,
    },
    /// Its conflict is laid out.
    #[error("the conflict of lane '{lane}' is being resolved; nothing was sent")]
    Resolving {
        /// The lane.
        lane: String,
    },
    /// Its agent lives on without anybody who could pass anything on.
    #[error("the agent of lane '{lane}' lives on without its supervisor; nothing was sent")]
    OrphanListens {
        /// The lane.
        lane: String,
    },
    /// It needs tmux, and there is none.
    #[error("tmux is not installed, and the agent was to be in a window of it; nothing was made")]
    NoTmux,
    /// The agent is not known to have a screen of its own.
    #[error("nothing is known of how '{agent}' is started on a terminal; nothing was made")]
    NoScreen {
        /// The agent.
        agent: String,
    },
    /// The agent has a screen, and takes no prompt with it.
    #[error(
        "cannot start '{agent}' in a window: it takes no prompt there (its args.interactive name neither {{prompt}} nor {{prompt_file}}); nothing was made"
    )]
    NoPromptThere {
        /// The agent.
        agent: String,
    },
    /// The window could not be made, or what was to be in it not started.
    #[error("no window of tmux could be had for it: {why}")]
    Window {
        /// Why.
        why: String,
    },
    /// Its agent is talked to where it is.
    #[error("the agent of lane '{lane}' is in a window, where you can talk to it; nothing was sent")]
    Attended {
        /// The lane.
        lane: String,
    },
    /// It has no window.
    #[error("lane '{lane}' has no agent in a window")]
    NoWindow {
        /// The lane.
        lane: String,
    },
    /// There is no terminal to show it on.
    #[error("a window can be entered on a terminal only")]
    NoTerminal,
    /// It did not end in time.
    #[error("the agent of lane '{lane}' did not end within {seconds} s")]
    StillRunning {
        /// The lane.
        lane: String,
        /// How long was waited.
        seconds: u64,
    },
    /// What lives on left the agent's process group, or the record of it is wrong.
    #[error(
        "something that the agent of lane '{lane}' started lives on, and it is not known which process it is"
    )]
    Escaped {
        /// The lane.
        lane: String,
        /// The file that it keeps open.
        file: std::path::PathBuf,
    },
    /// The hooks are files of the project.
    #[error("hooks are in {}, among the project's own files; nothing was written", folder.display())]
    HooksOfTheProject {
        /// The folder.
        folder: std::path::PathBuf,
    },
    /// Hooks are in a folder that other repositories may have, too.
    #[error("hooks are in {}, outside of this repository, where others may have theirs too; nothing was written", folder.display())]
    HooksOfOthers {
        /// The folder.
        folder: std::path::PathBuf,
    },
    /// What would be kept there has no place.
    #[error("{} is there already, and is where the present hook would be kept; nothing was written", path.display())]
    HookInTheWay {
        /// The file.
        path: std::path::PathBuf,
    },
    /// Somebody changed a hook that was installed.
    #[error("{}: {what}; nothing was changed", path.display())]
    HookChanged {
        /// The hook.
        path: std::path::PathBuf,
        /// What was found.
        what: &'static str,
    },
    /// Something in a task's folder is not as it has to be.
    #[error("{path} {why}")]
    TaskFolder {
        /// What.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// A lane whose task is no folder.
    #[error(
        "the task of lane '{lane}' is no folder with steps, so it has to be said which agent is to be started; nothing was started"
    )]
    NoPacket {
        /// The lane.
        lane: String,
    },
    /// A command has no prompt, so that nothing can be said to it in a lane that is there.
    #[error(
        "cannot run a command in lane '{lane}': a command is run in a lane of its own, from its beginning"
    )]
    CommandInLane {
        /// The lane.
        lane: String,
        /// The command line, as a shell takes it.
        command: String,
    },
    /// The work at a task's steps is not gone on with.
    #[error("the task of lane '{lane}' is not gone on with: {why}")]
    PacketOver {
        /// The lane.
        lane: String,
        /// Why not.
        why: String,
    },
    /// From a lane.
    #[error(transparent)]
    Lane(#[from] lane::Error),
    /// From git.
    #[error(transparent)]
    Git(#[from] git::Error),
    /// From the store.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// From another program.
    #[error(transparent)]
    Process(#[from] process::Error),
}

impl Error {
    /// Makes the refusal of a command that was named in place of an agent, in a lane that is there, one of that lane.
    pub(crate) fn in_lane(self, lane: &str, command: &[OsString]) -> Error {
        match self {
            Error::HasCommand { agent } | Error::Incomplete { agent } if agent == "command" => {
                Error::command_in_lane(lane, command)
            }
            other => other,
        }
    }

    /// The refusal of a command in a lane that is there.
    pub(crate) fn command_in_lane(lane: &str, command: &[OsString]) -> Error {
        let words: Vec<String> = command.iter().map(|part| word(&part.to_string_lossy())).collect();
        let command = if words.is_empty() { "CMD ARGS…".to_owned() } else { words.join(" ") };
        Error::CommandInLane { lane: lane.to_owned(), command }
    }

    /// What helps where the repository's hooks folder is not as it should be.
    fn hints_on_hooks(&self) -> Vec<Cow<'static, str>> {
        match self {
            Error::HooksOfTheProject { folder } => vec![
                format!(
                    "have a post-commit hook of your own there run this (with husky in {}): git proq hooks run",
                    folder.parent().unwrap_or(folder).join("post-commit").display()
                )
                .into(),
            ],
            Error::HooksOfOthers { folder } => vec![
                format!(
                    "have a hook of your own there ({}) run this, which does nothing outside of lanes: git proq hooks run",
                    folder.join("post-commit").display()
                )
                .into(),
            ],
            Error::HookInTheWay { path } => vec![format!("look at it, then move it away: {}", path.display()).into()],
            Error::HookChanged { path, .. } => vec![
                format!("put it right by hand; what was there before is {}.before-git-proq", path.display())
                    .into(),
            ],
            _ => Vec::new(),
        }
    }

    /// What helps where it is not clear with which command an agent is started.
    fn hints_on_commands(&self) -> Vec<Cow<'static, str>> {
        let describe = |agent: &str| {
            format!(
                "describe yours in your configuration: [agents.NAME] with like = \"{agent}\" and a program"
            )
        };
        match self {
            Error::NoCommand => vec!["give one: git proq spawn -n NAME -- CMD ARGS…".into()],
            Error::Incomplete { agent } if agent == "command" => vec![describe(agent).into()],
            Error::Incomplete { agent } => vec![
                format!("say which: git proq spawn {agent} \"what to do\" -- CMD ARGS…").into(),
                describe(agent).into(),
            ],
            Error::NotJoined { path, .. } => vec![format!("make {} a JSON object without comments", path.display()).into()],
            Error::HasCommand { agent } if agent == "command" => {
                vec!["a command gets a lane of its own: git proq spawn -- CMD ARGS…".into()]
            }
            Error::HasCommand { .. } => vec![
                "leave out what stands after '--'".into(),
                "or, if that speaks the Agent Client Protocol: git proq spawn acp \"what to do\" -- CMD ARGS…".into(),
            ],
            _ => Vec::new(),
        }
    }

    /// What helps, by what it is about.
    fn hints_by_subject(&self) -> [Vec<Cow<'static, str>>; 4] {
        [self.hints_on_commands(), self.hints_on_hooks(), self.hints_on_windows(), self.hints_on_packets()]
    }

    /// What helps where the task is a folder.
    fn hints_on_packets(&self) -> Vec<Cow<'static, str>> {
        match self {
            Error::TaskFolder { .. } => {
                vec!["put that right; what a task folder is: git proq spawn --help".into()]
            }
            Error::CommandInLane { command, .. } => {
                vec![format!("give it one: git proq spawn -- {command}").into()]
            }
            Error::NoPacket { lane } => vec![format!("name one: git proq run {lane} claude").into()],
            Error::PacketOver { lane, .. } => vec![
                format!("see how far it is: git proq show {lane}").into(),
                format!(
                    "have an agent do something there all the same: git proq run {lane} AGENT \"what to do\""
                )
                .into(),
            ],
            _ => Vec::new(),
        }
    }

    /// What helps where an agent is, or was to be, in a window.
    fn hints_on_windows(&self) -> Vec<Cow<'static, str>> {
        match self {
            Error::NoTmux => vec!["install it, or leave --tmux out".into()],
            Error::NoScreen { agent } => vec![
                format!("leave --tmux out, or say how in your configuration: [agents.{agent}.args] with interactive").into(),
            ],
            Error::NoPromptThere { .. } | Error::Window { .. } => vec!["leave --tmux out".into()],
            Error::Attended { lane } => vec![format!("go there: git proq attach {lane}").into()],
            Error::NoWindow { lane } => vec![
                format!("see what its agent says: git proq logs -f {lane}").into(),
                format!("tell it more: git proq send {lane} \"also handle refunds\"").into(),
            ],
            Error::NoTerminal => vec!["run it in a terminal".into()],
            _ => Vec::new(),
        }
    }
}

impl Explain for Error {
    fn hints(&self) -> Vec<Cow<'static, str>> {
        match self {
            Error::Prompt { helps, .. } => vec![(*helps).into()],
            Error::NotInstalled { .. } => vec![
                "see which agents are installed: git proq agents".into(),
                "or give a command of your own: git proq spawn -n NAME -- CMD ARGS…".into(),
            ],
            Error::Profile { path, .. } => {
                vec![
                    format!("correct it in {}", path.display()).into(),
                    "see what is known: git proq agents --json".into(),
                ]
            }
            Error::OnlyLooks { .. } => {
                vec!["as in: git proq spawn claude --mode answer \"where is the tax computed?\"".into()]
            }
            Error::NotLimited { .. } => {
                vec!["see which agents have permissions: git proq agents --wide".into()]
            }
            Error::NotTaken { agent, flag } => {
                vec![
                    format!("leave {flag} out, or say how in your configuration: [agents.{agent}.options]")
                        .into(),
                ]
            }
            Error::NoResume { .. } => vec!["see which agents can: git proq agents --wide".into()],
            Error::NotStarted { lane, .. } => {
                vec![format!("take the lane away again: git proq discard {lane}").into()]
            }
            Error::NotBegun { .. } => vec!["see which agents can be started: git proq agents".into()],
            Error::NotStartedThere { lane, .. } => {
                vec![format!("give it up, or try another agent: git proq resolve {lane} --abort").into()]
            }
            Error::NotRunning { lane } => vec![format!("see its state: git proq show {lane}").into()],
            Error::NoSession { lane } => {
                vec![format!("begin another one: git proq run {lane} AGENT \"what to do\"").into()]
            }
            Error::NothingWaits { lane } => {
                vec![format!("say what: git proq send {lane} \"also handle refunds\"").into()]
            }
            Error::OthersTurn { lane, .. } => {
                vec![format!("when that run has ended: git proq wait {lane} && git proq send {lane}").into()]
            }
            Error::Resolving { lane } => {
                vec![format!("finish it first, or give it up: git proq resolve {lane} --abort").into()]
            }
            Error::OrphanListens { lane } => vec![format!("end it first: git proq stop {lane}").into()],
            Error::StillRunning { lane, .. } => vec![format!("try again: git proq stop {lane}").into()],
            Error::Escaped { lane, file } => vec![
                format!("find it by the file that it keeps open: lsof {}", quoted_path(file)).into(),
                format!("end it, then try again: git proq stop {lane}").into(),
            ],
            Error::Lane(e) => e.hints(),
            Error::Git(e) => e.hints(),
            Error::Store(e) => e.hints(),
            Error::Process(e) => e.hints(),
            _ => self.hints_by_subject().concat(),
        }
    }

    fn exit(&self) -> Exit {
        match self {
            Error::Prompt { .. } | Error::NoCommand | Error::OnlyLooks { .. } => Exit::Usage,
            Error::NotStarted { .. } | Error::NotBegun { .. } | Error::NotStartedThere { .. } => Exit::Agent,
            Error::Lane(e) => e.exit(),
            Error::Git(e) => e.exit(),
            Error::Store(e) => e.exit(),
            Error::Process(e) => e.exit(),
            _ => Exit::Refused,
        }
    }
}
