//! Hints for errors about agents, by subject: commands, hooks, messages, windows and tasks.

use std::borrow::Cow;

use super::Error;

impl Error {
    /// Returns one list of hints for each subject. At most one list is not empty.
    pub(crate) fn subject_hints(&self) -> [Vec<Cow<'static, str>>; 5] {
        [
            self.command_hints(),
            self.hook_hints(),
            self.message_hints(),
            self.window_hints(),
            self.task_hints(),
        ]
    }

    /// Returns hints for errors about the command of an agent.
    fn command_hints(&self) -> Vec<Cow<'static, str>> {
        let profile_hint = |agent: &str| {
            format!(
                "describe yours in your configuration: [agents.NAME] with like = \"{agent}\" and a program"
            )
        };
        match self {
            Error::NoCommand => vec!["give one: git proq spawn -n NAME -- CMD ARGS…".into()],
            Error::NoProgram { agent } if agent == "command" => vec![profile_hint(agent).into()],
            Error::NoProgram { agent } => vec![
                format!("say which: git proq spawn {agent} \"what to do\" -- CMD ARGS…").into(),
                profile_hint(agent).into(),
            ],
            Error::CannotMergeFile { path, .. } => vec![format!("make {} a JSON object without comments", path.display()).into()],
            Error::UnexpectedCommand { agent } if agent == "command" => {
                vec!["a command gets a lane of its own: git proq spawn -- CMD ARGS…".into()]
            }
            Error::UnexpectedCommand { .. } => vec![
                "leave out what stands after '--'".into(),
                "or, if that speaks the Agent Client Protocol: git proq spawn acp \"what to do\" -- CMD ARGS…".into(),
            ],
            _ => Vec::new(),
        }
    }

    /// Returns hints for errors about the repository's hooks folder.
    fn hook_hints(&self) -> Vec<Cow<'static, str>> {
        match self {
            Error::HooksInProjectFiles { folder } => vec![
                format!(
                    "have a post-commit hook of your own there run this (with husky in {}): git proq hooks run",
                    folder.parent().unwrap_or(folder).join("post-commit").display()
                )
                .into(),
            ],
            Error::HooksOutsideRepository { folder } => vec![
                format!(
                    "have a hook of your own there ({}) run this, which does nothing outside of lanes: git proq hooks run",
                    folder.join("post-commit").display()
                )
                .into(),
            ],
            Error::HookBackupExists { path } => vec![format!("look at it, then move it away: {}", path.display()).into()],
            Error::HookChanged { path, .. } => vec![
                format!("put it right by hand; what was there before is {}.before-git-proq", path.display())
                    .into(),
            ],
            _ => Vec::new(),
        }
    }

    /// Returns hints for errors about messages that cannot be sent to an agent.
    fn message_hints(&self) -> Vec<Cow<'static, str>> {
        match self {
            Error::NoSession { lane } => {
                vec![format!("begin another one: git proq run {lane} AGENT \"what to do\"").into()]
            }
            Error::NoMessageToSend { lane } => {
                vec![format!("say what: git proq send {lane} \"also handle refunds\"").into()]
            }
            Error::OtherConversation { lane, .. } => {
                vec![format!("when that run has ended: git proq wait {lane} && git proq send {lane}").into()]
            }
            Error::ConflictBeingResolved { lane } => {
                vec![format!("finish it first, or give it up: git proq resolve {lane} --abort").into()]
            }
            Error::AgentWithoutSupervisor { lane } => {
                vec![format!("end it first: git proq stop {lane}").into()]
            }
            _ => Vec::new(),
        }
    }

    /// Returns hints for errors about a task that is a folder, and about a command in a lane.
    fn task_hints(&self) -> Vec<Cow<'static, str>> {
        match self {
            Error::InvalidTaskFolder { .. } => {
                vec!["put that right; what a task folder is: git proq spawn --help".into()]
            }
            Error::CommandInLane { command, .. } => {
                vec![format!("give it one: git proq spawn -- {command}").into()]
            }
            Error::TaskIsNoFolder { lane } => vec![format!("name one: git proq run {lane} claude").into()],
            Error::TaskLoopStopped { lane, .. } => vec![
                format!("see how far it is: git proq show {lane}").into(),
                format!(
                    "have an agent do something there all the same: git proq run {lane} AGENT \"what to do\""
                )
                .into(),
            ],
            _ => Vec::new(),
        }
    }

    /// Returns hints for errors about an agent in a window.
    fn window_hints(&self) -> Vec<Cow<'static, str>> {
        match self {
            Error::NoTmux => vec!["install it, or leave --tmux out".into()],
            Error::NoInteractiveMode { agent } => vec![
                format!("leave --tmux out, or say how in your configuration: [agents.{agent}.args] with interactive").into(),
            ],
            Error::NoInteractivePrompt { .. } | Error::WindowFailed { .. } => vec!["leave --tmux out".into()],
            Error::AgentInWindow { lane } => vec![format!("go there: git proq attach {lane}").into()],
            Error::NoWindow { lane } => vec![
                format!("see what its agent says: git proq logs -f {lane}").into(),
                format!("tell it more: git proq send {lane} \"also handle refunds\"").into(),
            ],
            Error::NoTerminal => vec!["run it in a terminal".into()],
            _ => Vec::new(),
        }
    }
}
