//! Owns what can go wrong with resolving a conflict, in the user's words.

use std::borrow::Cow;
use std::path::PathBuf;

use crate::explain::{Exit, Explain, quoted_path};
use crate::git::{self, RepoPath};

/// An error about resolving a conflict.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// Nothing is on record.
    #[error("lane '{lane}' has no conflict on record; nothing was changed")]
    NoConflict {
        /// The lane.
        lane: String,
    },
    /// Somebody resolves it already.
    #[error("the conflict of lane '{lane}' is being resolved by hand in {}; nothing was changed", dir.display())]
    Open {
        /// The lane.
        lane: String,
        /// Where.
        dir: PathBuf,
    },
    /// Nobody resolves it.
    #[error("the conflict of lane '{lane}' is not laid out; nothing was changed")]
    NotOpen {
        /// The lane.
        lane: String,
    },
    /// The lane cannot take a new tip.
    #[error("lane '{lane}' cannot take a resolution: {why}; nothing was changed")]
    Unready {
        /// The lane.
        lane: String,
        /// Why, as a sentence.
        why: String,
    },
    /// Conflicts that no agent decides.
    #[error("the conflict of lane '{lane}' is not for an agent alone: {}; nothing was changed", why.join("; "))]
    NeedsPerson {
        /// The lane.
        lane: String,
        /// One phrase for each path.
        why: Vec<String>,
    },
    /// The result is not accepted.
    #[error("what was made of the conflict of lane '{lane}' is refused: {}; it was left as it is", why.join("; "))]
    Refused {
        /// The lane.
        lane: String,
        /// Where it lies.
        dir: PathBuf,
        /// What speaks against it.
        why: Vec<String>,
    },
    /// No try of an agent was accepted.
    #[error("{agent} could not resolve the conflict of lane '{lane}' in {}: {why}; the last try was left as it is", tries_in_words(*tries))]
    GaveUp {
        /// The lane.
        lane: String,
        /// The agent.
        agent: String,
        /// How often.
        tries: u32,
        /// Why the last one was refused.
        why: String,
        /// Where it lies.
        dir: PathBuf,
    },
    /// The agent was stopped.
    #[error(
        "the agent that resolved the conflict of lane '{lane}' was stopped; what it did was left as it is"
    )]
    Stopped {
        /// The lane.
        lane: String,
    },
    /// The result is good, but cannot go to the lane.
    #[error(
        "the conflict of lane '{lane}' is resolved, but the lane could not take it: {why}; it is kept as {saved}"
    )]
    Kept {
        /// The lane.
        lane: String,
        /// Why.
        why: String,
        /// The ref that keeps it.
        saved: String,
    },
}

fn tries_in_words(tries: u32) -> String {
    if tries == 1 { "one try".to_owned() } else { format!("{tries} tries") }
}

impl Explain for ResolveError {
    fn is_decision(&self) -> bool {
        true
    }

    fn hints(&self) -> Vec<Cow<'static, str>> {
        let go_on = |lane: &str| format!("go on from there: git proq resolve {lane} --continue").into();
        let give_up = |lane: &str| format!("or give it up, all kept: git proq resolve {lane} --abort").into();
        match self {
            ResolveError::NoConflict { lane } => {
                vec![format!("see whether it conflicts: git proq merge {lane} --dry-run").into()]
            }
            ResolveError::Open { lane, .. } | ResolveError::Stopped { lane } => {
                vec![go_on(lane), give_up(lane)]
            }
            ResolveError::NotOpen { lane } => {
                vec![format!("lay it out: git proq resolve {lane} --shell").into()]
            }
            ResolveError::Unready { lane, .. } => vec![format!("look at it: git proq show {lane}").into()],
            ResolveError::NeedsPerson { lane, .. } => {
                vec![format!("decide it yourself: git proq resolve {lane} --shell").into()]
            }
            ResolveError::Refused { lane, dir, .. } | ResolveError::GaveUp { lane, dir, .. } => vec![
                format!("look at it: git -C {} status", quoted_path(dir)).into(),
                format!("put it right by hand: git proq resolve {lane} --shell").into(),
                give_up(lane),
            ],
            ResolveError::Kept { lane, .. } => {
                vec![format!("put that right, then: git proq resolve {lane} --continue").into()]
            }
        }
    }

    fn exit(&self) -> Exit {
        match self {
            ResolveError::GaveUp { .. } => Exit::Conflicts,
            ResolveError::Stopped { .. } => Exit::Agent,
            _ => Exit::Refused,
        }
    }
}

/// Why a lane cannot take a new tip: its uncommitted paths, by name.
pub(super) fn uncommitted(paths: &[RepoPath]) -> String {
    format!("it has uncommitted work: {}", git::names(paths))
}
