//! Reasons why no request was opened for a lane.

use proq_base::explain::{Explain, shell_quote};
use proq_base::hint::Hint;
use proq_base::lane_name::LaneName;
use proq_git::worktrees::push::PushFailure;

/// Reason why no request was opened for a lane, or the existing one was not updated.
#[derive(Debug, thiserror::Error, Explain)]
pub enum OpenRequestError {
    /// The repository has no remote.
    #[error("cannot {action}: the repository has no remote")]
    #[hint("create one on GitHub: gh repo create --source . --push")]
    NoRemote {
        /// What the remote is needed for, as a verb with its object.
        action: String,
    },
    /// The repository has more than one remote, and no setting chooses one.
    #[error("cannot {action}: it is not known to which remote to push ({})", remotes.join(", "))]
    #[hint("choose one: git config remote.pushDefault {}", shell_quote(&remotes[0]))]
    #[hint(if remotes.len() > 1, "or the other: git config remote.pushDefault {}", shell_quote(&remotes[1]))]
    ManyRemotes {
        /// What the remote is needed for.
        action: String,
        /// Names of the remotes, at least two.
        remotes: Vec<String>,
    },
    /// The remote is a mirror.
    #[error("cannot {action}: {remote} is a mirror, and git push would push everything to it by force")]
    Mirror {
        /// What the remote is needed for.
        action: String,
        /// Name of the remote.
        remote: String,
    },
    /// The forge of the remote is unknown.
    #[error("cannot {action}: it is not known whether {remote} is on GitHub or GitLab")]
    #[hint("on GitHub: git config proq.merge.prCommand gh")]
    #[hint("on GitLab: git config proq.merge.prCommand glab")]
    UnknownHost {
        /// What the remote is needed for.
        action: String,
        /// Name of the remote.
        remote: String,
    },
    /// The lane may not be merged.
    #[error("cannot {action}: {reason}")]
    #[decision]
    #[hint(with = hints.clone())]
    LaneRefused {
        /// What was to be done.
        action: String,
        /// Why the lane may not be merged.
        reason: String,
        /// Commands that help.
        hints: Vec<Hint>,
    },
    /// The lane's branch no longer has the commits that were pushed, and git-proq did not rewrite it.
    #[error("cannot {action}: {branch} was rewritten since it was pushed to {remote}")]
    #[decision]
    #[hint("see what was pushed: git log {pushed} --not {tip}")]
    #[hint(
        "replace it there: git push --force-with-lease=refs/heads/{branch}:{pushed} {} {tip}:refs/heads/{branch}",
        shell_quote(remote)
    )]
    Rewritten {
        /// What was to be done.
        action: String,
        /// Branch of the lane.
        branch: String,
        /// Remote that it was pushed to.
        remote: String,
        /// Commit that was pushed.
        pushed: String,
        /// Tip of the lane.
        tip: String,
    },
    /// The push failed.
    #[error("cannot {action}: {}{}", failure.reason, quoted(&failure.output))]
    #[hint("{}", failure.hint)]
    NotPushed {
        /// What was to be done.
        action: String,
        /// The failure.
        failure: PushFailure,
    },
    /// The request was closed.
    #[error("cannot update {request} of '{lane}': it was closed")]
    #[decision]
    #[hint("reopen it: {reopen}")]
    #[hint("open another one: git proq merge --pr --force {lane}")]
    Closed {
        /// Name of the lane.
        lane: LaneName,
        /// The request, such as `pull request #7`.
        request: String,
        /// Command that opens it again.
        reopen: String,
    },
    /// The request was merged, with all that the lane has.
    #[error("cannot update {request} of '{lane}': it was merged, with all commits of the lane")]
    #[decision]
    #[hint("remove the lane: git proq cleanup {lane}")]
    AlreadyMerged {
        /// Name of the lane.
        lane: LaneName,
        /// The request, such as `pull request #7`.
        request: String,
    },
}

impl OpenRequestError {
    /// Returns the error that no remote, or more than one, could be meant.
    pub(super) fn no_single_remote(action: &str, remotes: Vec<String>) -> OpenRequestError {
        let action = action.to_owned();
        match remotes.is_empty() {
            true => OpenRequestError::NoRemote { action },
            false => OpenRequestError::ManyRemotes { action, remotes },
        }
    }
}

/// Formats the output of a failed push, on lines of its own.
fn quoted(output: &[String]) -> String {
    output.iter().flat_map(|line| ["\n  ", line.as_str()]).collect()
}
