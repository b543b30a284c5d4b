//! Errors of landings, with hints and exit codes.

use std::path::{Path, PathBuf};

use proq_base::explain::{Explain, shell_quote_path};
use proq_base::interrupt::Interrupted;
use proq_base::lane_name::LaneName;
use proq_base::process;
use proq_git as git;
use proq_git::CommitId;
use proq_git::base::error_hints;
use proq_store as store;

use super::resolve_error::ResolveError;
use crate::{agent, lane, preview};

/// Error of a landing.
#[derive(Debug, thiserror::Error, Explain)]
pub enum Error {
    /// The base, a lane or its worktree changed during every attempt.
    #[error(
        "'{base}' could not be moved in {attempts} tries: it, a lane or its worktree kept changing{}; nothing was moved",
        last.as_ref().map_or_else(String::new, |why| format!(", or is locked ({why})"))
    )]
    #[hint("try again; a lock file that nobody holds any more also does this: git status tells")]
    BaseKeptMoving {
        /// Branch that could not be moved.
        base: String,
        /// Number of attempts.
        attempts: u32,
        /// Last message of git, if git refused.
        last: Option<String>,
    },
    /// A worktree is in the middle of a git operation that will move the base.
    #[error("a {operation} of '{base}' is under way in {worktree}; nothing was moved")]
    #[hint("finish it there, or give it up: {}", error_hints::git_abort_command(operation))]
    GitOperationInProgress {
        /// Branch that the lanes would have landed on.
        base: String,
        /// Operation in progress.
        operation: &'static str,
        /// Worktree with the operation.
        worktree: String,
    },
    /// The worktree of a lane has the base checked out, and its local changes are in the way.
    #[error("lane '{lane}' has '{onto}' checked out: {reason}")]
    #[hint("bring it back to its branch first: {switch_command}")]
    LaneOnBase {
        /// Lane whose worktree is on the base.
        lane: LaneName,
        /// Branch that the lanes would have landed on.
        onto: String,
        /// Description of the local changes.
        reason: String,
        /// Command that switches the lane's worktree back to its own branch.
        switch_command: String,
    },
    /// The base has an option in `branch.<name>.mergeOptions` that a landing does not support.
    #[error("branch.{base}.mergeOptions has {option}, which a landing does not take; nothing was moved")]
    #[hint("see where it is set: git config --show-origin --get branch.{base}.mergeOptions")]
    UnsupportedMergeOption {
        /// Branch with the option.
        base: String,
        /// Unsupported option.
        option: String,
    },
    /// The tip of a landed lane is not on its base.
    #[error("lane '{lane}' was landed but its tip is not on '{base}'; it was kept")]
    #[exit(Bug)]
    #[hint("please report this; look at: git log --graph --all")]
    LandingLost {
        /// Lane that landed.
        lane: LaneName,
        /// Branch that it landed on.
        base: String,
    },
    /// The repository's check commands are not approved.
    #[error("{} wants lanes checked with commands that you have not approved: {}; nothing was moved", path.display(), commands.join("; "))]
    #[hint(
        if path.is_relative(),
        "read them and let them run: git proq approve --onto {}",
        shell_quote_path(Path::new(base))
    )]
    #[hint(else, "read them and let them run: git proq approve")]
    #[hint("or land without: git proq merge --no-checks …")]
    UnapprovedChecks {
        /// Settings file.
        path: PathBuf,
        /// Command lines.
        commands: Vec<String>,
        /// Branch that the commands check.
        base: String,
    },
    /// A check times out on the base itself, so its result does not depend on a lane.
    #[error(
        "cannot check lanes on '{base}': `{command}` timed out after {seconds} s on the base itself; nothing was moved"
    )]
    #[hint(
        "give it more time: git config proq.verify.timeout {}",
        (2 * seconds).max(3600)
    )]
    #[hint(with = skip_checks_hint(lanes))]
    CheckTimedOut {
        /// Command line.
        command: String,
        /// Branch that was checked.
        base: String,
        /// Time limit of a check in seconds.
        seconds: u64,
        /// Lanes that would have landed.
        lanes: Vec<LaneName>,
    },
    /// The repository's conflict agent is not approved.
    #[error("{} wants '{agent}' sent at conflicts, which you have not approved; nothing was moved", path.display())]
    #[hint("let it run: git proq approve")]
    #[hint("or land without: git proq merge --no-conflict-agent …")]
    UnapprovedAgent {
        /// Settings file.
        path: PathBuf,
        /// Agent that the settings name.
        agent: String,
    },
    /// What a landing depends on has changed since its plan was made.
    #[error("the repository has changed since the plan was made; nothing was moved")]
    #[hint("see what would land now: git proq merge --dry-run …")]
    PlanOutdated,
    /// No home folder exists for the check worktrees.
    #[error("there is no home folder to keep the worktrees for checks in; nothing was moved")]
    #[hint("name another folder: git config proq.verify.location /PATH")]
    NoHomeDir,
    /// The folder for check worktrees is inside the repository, so that checks would find its files.
    #[error("verify.location {} lies inside the repository; checks would find its files there; nothing was moved", dir.display())]
    #[hint("name another folder: git config proq.verify.location /PATH")]
    CheckDirInsideRepo {
        /// Folder of the setting `verify.location`.
        dir: PathBuf,
    },
    /// The folder for check worktrees contains something else.
    #[error("{} was not made by git-proq for this repository; it was left as it is, and nothing was moved", dir.display())]
    #[hint("look at it: ls -la {}", shell_quote_path(dir))]
    #[hint("or name another folder: git config proq.verify.location /PATH")]
    ForeignCheckDir {
        /// Folder that git-proq did not create for this repository.
        dir: PathBuf,
    },
    /// A check worktree could not be set to a commit.
    #[error("{} could not be brought to {}; nothing was moved", dir.display(), commit.short())]
    #[hint("is another program at work there? it may be deleted: rm -rf {}", shell_quote_path(dir))]
    CheckoutFailed {
        /// Check worktree.
        dir: PathBuf,
        /// Commit to check.
        commit: CommitId,
    },
    /// A check removed the worktree that it ran in, or the link file that makes it a worktree.
    #[error("the worktree of the checks was gone, or no worktree any more, after they ran: {}; nothing was moved", dir.display())]
    #[hint(with = skip_checks_hint(lanes))]
    CheckWorktreeGone {
        /// Check worktree.
        dir: PathBuf,
        /// Lanes that were checked.
        lanes: Vec<LaneName>,
    },
    /// Error of a child process.
    #[error(transparent)]
    Process(#[from] process::Error),
    /// Error of resolving a conflict.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// Error of an agent.
    #[error(transparent)]
    Agent(#[from] agent::Error),
    /// Error of a lane.
    #[error(transparent)]
    Lane(#[from] lane::Error),
    /// Error of a preview.
    #[error(transparent)]
    Preview(#[from] preview::Error),
    /// Error of git.
    #[error(transparent)]
    Git(#[from] git::Error),
    /// Error of the store.
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl From<Interrupted> for Error {
    fn from(interrupted: Interrupted) -> Error {
        Error::Store(interrupted.into())
    }
}

/// Returns the hint to land these lanes without checks; none without lanes.
fn skip_checks_hint(lanes: &[LaneName]) -> Option<String> {
    let names = lanes.join(" ");
    (!names.is_empty()).then(|| format!("land without checks: git proq merge --no-checks {names}"))
}
