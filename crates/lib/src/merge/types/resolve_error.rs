//! Errors of resolving a conflict, with hints and exit codes.

use std::path::PathBuf;

use proq_base::explain::{Explain, list_lines, shell_quote};
use proq_base::lane_name::LaneName;
use proq_git::RepoPath;

/// A reason to refuse the resolution of a conflict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Reason, as a phrase.
    pub reason: String,
    /// File for which `--allow` accepts the resolution; `None` if nothing accepts it.
    pub allowable_path: Option<RepoPath>,
}

impl Refusal {
    /// Returns a refusal that no option lifts.
    pub(crate) fn final_because(reason: String) -> Refusal {
        Refusal { reason, allowable_path: None }
    }

    /// Returns a refusal that `--allow` with this path lifts.
    pub(crate) fn unless_allowed(path: &RepoPath, reason: String) -> Refusal {
        Refusal { reason, allowable_path: Some(path.clone()) }
    }

    /// Returns the reasons of all refusals.
    pub(crate) fn reasons(refusals: &[Refusal]) -> Vec<String> {
        refusals.iter().map(|refusal| refusal.reason.clone()).collect()
    }
}

/// Error of resolving a conflict.
#[derive(Debug, thiserror::Error, Explain)]
#[decision]
pub enum ResolveError {
    /// The lane has no conflict with its base.
    #[error("cannot resolve lane '{lane}': it does not conflict with {base}")]
    #[hint("see what would land: git proq merge {lane} --dry-run")]
    NoConflict {
        /// Name of the lane that has no conflict.
        lane: LaneName,
        /// Branch that the lane lands on.
        base: String,
    },
    /// The user is already resolving the conflict.
    #[error("cannot resolve lane '{lane}': you are resolving its conflict by hand in {}", dir.display())]
    #[hint("finish that: git proq resolve {lane} --continue")]
    #[hint("or abort; your work is saved: git proq resolve {lane} --abort")]
    OpenByHand {
        /// Name of the lane whose conflict the user is resolving.
        lane: LaneName,
        /// Worktree of the resolution.
        dir: PathBuf,
    },
    /// No resolution is open.
    #[error("cannot continue: no resolution of lane '{lane}' is open")]
    #[hint("start one: git proq resolve {lane} --shell")]
    NotOpen {
        /// Name of the lane that has no open resolution.
        lane: LaneName,
    },
    /// The lane cannot be updated to a new tip.
    #[error("cannot resolve lane '{lane}': {reason}")]
    #[hint("show the lane: git proq show {lane}")]
    LaneNotReady {
        /// Name of the lane that cannot be updated.
        lane: LaneName,
        /// Reason, as a clause.
        reason: String,
    },
    /// The lane has conflicts that no agent may decide.
    #[error("cannot let an agent resolve lane '{lane}': {}", why.join("; "))]
    #[hint("resolve it yourself: git proq resolve {lane} --shell")]
    NeedsUser {
        /// Name of the lane whose conflict needs the user's decision.
        lane: LaneName,
        /// Reasons, one phrase for each path.
        why: Vec<String>,
    },
    /// The check refused the resolution.
    #[error("cannot accept the resolution of lane '{lane}':{}", list_lines(&Refusal::reasons(refusals)))]
    #[hint("fix it in {}: git proq resolve {lane} --shell", dir.display())]
    #[hint(if let Some(command) = allow_command(lane, refusals), "or accept it as it is: {command}")]
    #[hint(else, "or abort; your work is saved: git proq resolve {lane} --abort")]
    Refused {
        /// Name of the lane whose resolution was refused.
        lane: LaneName,
        /// Worktree of the resolution.
        dir: PathBuf,
        /// Reasons of the refusal.
        refusals: Vec<Refusal>,
    },
    /// All attempts of an agent were refused.
    #[error("{agent} could not resolve the conflict of lane '{lane}' in {}: {reason}", attempts_in_words(*tries))]
    #[exit(Conflicts)]
    #[hint("fix it in {}: git proq resolve {lane} --shell", dir.display())]
    #[hint("or abort; its work is saved: git proq resolve {lane} --abort")]
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
    #[error("cannot resolve lane '{lane}': its agent was stopped; its work is kept")]
    #[exit(Agent)]
    #[hint("finish it by hand: git proq resolve {lane} --shell")]
    #[hint("or abort; its work is saved: git proq resolve {lane} --abort")]
    Stopped {
        /// Name of the lane whose conflict the stopped agent was resolving.
        lane: LaneName,
    },
    /// The resolution was accepted, but the lane could not be updated.
    #[error(
        "cannot update lane '{lane}' to its resolution: {reason}; the resolution is saved as {saved_ref}"
    )]
    #[hint("once that is fixed: git proq resolve {lane} --continue")]
    NotApplied {
        /// Name of the lane that was not updated to its resolution.
        lane: LaneName,
        /// Reason why the lane could not be updated.
        reason: String,
        /// Ref that the resolution is saved as.
        saved_ref: String,
    },
}

/// Returns the command that accepts a refused resolution; `None` if a reason remains.
fn allow_command(lane: &LaneName, refusals: &[Refusal]) -> Option<String> {
    let paths = refusals.iter().map(|refusal| refusal.allowable_path.as_ref());
    let mut words: Vec<String> = paths
        .map(|path| path.map(|path| shell_quote(&String::from_utf8_lossy(path.as_bytes()))))
        .collect::<Option<_>>()?;
    words.dedup();
    Some(format!("git proq resolve {lane} --continue --allow {}", words.join(" --allow ")))
}

/// Returns a number of attempts in words: `1 attempt`, `3 attempts`.
fn attempts_in_words(tries: u32) -> String {
    if tries == 1 { "1 attempt".to_owned() } else { format!("{tries} attempts") }
}
