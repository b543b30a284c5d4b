//! Owns what can go wrong where an agent makes a plan or looks for what is missing in one, in the user's words.

use std::borrow::Cow;
use std::path::PathBuf;

use crate::explain::{Exit, Explain};
use crate::{agent, git, lane, store};

/// Why there is no plan of an agent's, or nothing comes of one.
#[derive(Debug, thiserror::Error)]
pub enum DraftError {
    /// No draft is called that.
    #[error("there is no draft '{name}'")]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// There is none at all.
    #[error("there is no draft of a plan")]
    None,
    /// There are several, and none was named.
    #[error("there are several drafts, and none was named: {}", names.join(", "))]
    Several {
        /// Their names, the one changed last first.
        names: Vec<String>,
    },
    /// Nothing came of a draft so far.
    #[error("draft '{name}' has no plan yet{}", why.as_ref().map(|why| format!(": {why}")).unwrap_or_default())]
    NoPlan {
        /// The draft.
        name: String,
        /// Why not.
        why: Option<String>,
    },
    /// Somebody changed it after it was shown.
    #[error("draft '{name}' is another plan by now than the one that was shown; nothing was approved")]
    Changed {
        /// The draft.
        name: String,
    },
    /// Its agent is at work on it.
    #[error("the agent of draft '{name}' is at work on it")]
    Busy {
        /// The draft.
        name: String,
    },
    /// No agent that can be asked is installed.
    #[error("no agent is installed that can be kept from changing things; nothing was made")]
    NoAgent {
        /// Those that could be.
        known: Vec<String>,
    },
    /// An agent did not answer as it has to.
    #[error("{agent} did not come to {what}: {why}")]
    NoAnswer {
        /// The agent.
        agent: String,
        /// What it was to come to.
        what: &'static str,
        /// What is wrong with what it said last, or why it said nothing.
        why: String,
        /// The lane in which it was asked.
        lane: String,
        /// What it said last.
        file: Option<PathBuf>,
        /// Whether it is a draft, which can be gone on with.
        is_draft: bool,
    },
    /// Nobody can be asked, and nobody has agreed.
    #[error("nobody can be asked whether {what}; nothing was approved")]
    Unapproved {
        /// What it is about.
        what: String,
        /// The command that agrees.
        command: String,
    },
    /// A plan or its tasks.
    #[error(transparent)]
    Plan(#[from] super::Error),
    /// The run of an agent.
    #[error(transparent)]
    Agent(#[from] agent::Error),
    /// The lane in which it is asked.
    #[error(transparent)]
    Lane(#[from] lane::Error),
    /// What is kept.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The repository.
    #[error(transparent)]
    Git(#[from] git::Error),
}

impl Explain for DraftError {
    fn hints(&self) -> Vec<Cow<'static, str>> {
        match self {
            DraftError::Unknown { .. } => vec!["see those that there are: git proq plan --drafts".into()],
            DraftError::None => vec!["have one made: git proq plan --ai \"payments by card\"".into()],
            DraftError::Several { names } => {
                let last = names.first().map_or("", String::as_str);
                vec![format!("name one of them; the last one changed is {last}").into()]
            }
            DraftError::NoPlan { name, .. } => vec![
                format!("ask again: git proq plan --feedback \"…\" {name}").into(),
                format!("see what was said: git proq show {name}").into(),
            ],
            DraftError::Changed { name } => vec![format!("look at it: git proq plan {name}").into()],
            DraftError::Busy { name } => vec![
                format!("wait for it: git proq wait {name}").into(),
                format!("or stop it: git proq stop {name}").into(),
            ],
            DraftError::NoAgent { known } => vec![
                format!("install one of: {}", known.join(", ")).into(),
                "see what is known of each: git proq agents".into(),
            ],
            DraftError::NoAnswer { lane, file, is_draft, .. } => {
                let mut out = Vec::new();
                if let Some(file) = file {
                    out.push(format!("what it said: {}", file.display()).into());
                }
                if *is_draft {
                    out.push(format!("ask again, and say how: git proq plan --feedback \"…\" {lane}").into());
                }
                out.push(format!("see how it went: git proq logs {lane}").into());
                out
            }
            DraftError::Unapproved { command, .. } => vec![format!("agree to it as it is: {command}").into()],
            DraftError::Plan(e) => e.hints(),
            DraftError::Agent(e) => e.hints(),
            DraftError::Lane(e) => e.hints(),
            DraftError::Store(e) => e.hints(),
            DraftError::Git(e) => e.hints(),
        }
    }

    fn exit(&self) -> Exit {
        match self {
            DraftError::None | DraftError::Several { .. } => Exit::Usage,
            DraftError::NoAnswer { .. } => Exit::Agent,
            DraftError::Plan(e) => e.exit(),
            DraftError::Agent(e) => e.exit(),
            DraftError::Lane(e) => e.exit(),
            DraftError::Store(e) => e.exit(),
            DraftError::Git(e) => e.exit(),
            _ => Exit::Refused,
        }
    }
}
