//! Errors of resolving a conflict, with hints and exit codes.

use std::path::PathBuf;

use proq_base::explain::{Explain, shell_quote_path};
use proq_base::lane_name::LaneName;

/// Error of resolving a conflict.
#[derive(Debug, thiserror::Error, Explain)]
#[decision]
pub enum ResolveError {
    /// The lane has no recorded conflict.
    #[error("lane '{lane}' has no conflict on record; nothing was changed")]
    #[hint("see whether it conflicts: git proq merge {lane} --dry-run")]
    NoConflict {
        /// Name of the lane that has no recorded conflict.
        lane: LaneName,
    },
    /// The user is already resolving the conflict.
    #[error("the conflict of lane '{lane}' is being resolved by hand in {}; nothing was changed", dir.display())]
    #[hint("go on from there: git proq resolve {lane} --continue")]
    #[hint("or give it up, all kept: git proq resolve {lane} --abort")]
    OpenByHand {
        /// Name of the lane whose conflict the user is resolving.
        lane: LaneName,
        /// Worktree of the resolution.
        dir: PathBuf,
    },
    /// No resolution is open.
    #[error("the conflict of lane '{lane}' is not laid out; nothing was changed")]
    #[hint("lay it out: git proq resolve {lane} --shell")]
    NotOpen {
        /// Name of the lane that has no open resolution.
        lane: LaneName,
    },
    /// The lane cannot be updated to a new tip.
    #[error("lane '{lane}' cannot take a resolution: {reason}; nothing was changed")]
    #[hint("look at it: git proq show {lane}")]
    LaneNotReady {
        /// Name of the lane that cannot be updated.
        lane: LaneName,
        /// Reason, as a clause.
        reason: String,
    },
    /// The lane has conflicts that no agent may decide.
    #[error("the conflict of lane '{lane}' is not for an agent alone: {}; nothing was changed", why.join("; "))]
    #[hint("decide it yourself: git proq resolve {lane} --shell")]
    NeedsUser {
        /// Name of the lane whose conflict needs the user's decision.
        lane: LaneName,
        /// Reasons, one phrase for each path.
        why: Vec<String>,
    },
    /// The check refused the resolution.
    #[error("what was made of the conflict of lane '{lane}' is refused: {}; it was left as it is", why.join("; "))]
    #[hint("look at it: git -C {} status", shell_quote_path(dir))]
    #[hint("put it right by hand: git proq resolve {lane} --shell")]
    #[hint("or give it up, all kept: git proq resolve {lane} --abort")]
    Refused {
        /// Name of the lane whose resolution was refused.
        lane: LaneName,
        /// Worktree of the resolution.
        dir: PathBuf,
        /// Reasons of the refusal.
        why: Vec<String>,
    },
    /// All attempts of an agent were refused.
    #[error("{agent} could not resolve the conflict of lane '{lane}' in {}: {reason}; the last try was left as it is", tries_in_words(*tries))]
    #[exit(Conflicts)]
    #[hint("look at it: git -C {} status", shell_quote_path(dir))]
    #[hint("put it right by hand: git proq resolve {lane} --shell")]
    #[hint("or give it up, all kept: git proq resolve {lane} --abort")]
    AttemptsExhausted {
        /// Name of the lane whose conflict is still unresolved.
        lane: LaneName,
        /// Agent that was run.
        agent: String,
        /// Number of attempts.
        tries: u32,
        /// Reason why the last attempt was refused.
        reason: String,
        /// Worktree of the last attempt.
        dir: PathBuf,
    },
    /// The agent was stopped.
    #[error(
        "the agent that resolved the conflict of lane '{lane}' was stopped; what it did was left as it is"
    )]
    #[exit(Agent)]
    #[hint("go on from there: git proq resolve {lane} --continue")]
    #[hint("or give it up, all kept: git proq resolve {lane} --abort")]
    Stopped {
        /// Name of the lane whose conflict the stopped agent was resolving.
        lane: LaneName,
    },
    /// The resolution was accepted, but the lane could not be updated.
    #[error(
        "the conflict of lane '{lane}' is resolved, but the lane could not take it: {reason}; it is kept as {saved_ref}"
    )]
    #[hint("put that right, then: git proq resolve {lane} --continue")]
    NotApplied {
        /// Name of the lane that was not updated to its resolution.
        lane: LaneName,
        /// Reason why the lane could not be updated.
        reason: String,
        /// Ref that the resolution is saved as.
        saved_ref: String,
    },
}

/// Returns a number of attempts in words: `one try`, `3 tries`.
fn tries_in_words(tries: u32) -> String {
    if tries == 1 { "one try".to_owned() } else { format!("{tries} tries") }
}
