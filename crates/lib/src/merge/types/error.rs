//! Errors of landings, with hints and exit codes.

use std::path::{Path, PathBuf};

use proq_base::explain::{Explain, describe_with_causes, list_lines, shell_quote_path};
use proq_base::hint;
use proq_base::hint::Hint;
use proq_base::interrupt::Interrupted;
use proq_base::lane_name::LaneName;
use proq_base::process;
use proq_base::process::limited_process::ExitOutcome;
use proq_git as git;
use proq_git::CommitId;
use proq_git::base::error_hints;
use proq_store as store;

use super::candidate::Candidate;
use super::outcome::{CheckFailure, LaneOutcome, describe_state};
use super::resolve_error::ResolveError;
use crate::{agent, lane, preview};

/// Names of the placeholders in templates of commit messages, in alphabetical order.
pub(crate) const PLACEHOLDERS: [&str; 7] = ["agent", "base", "body", "commits", "lane", "subject", "title"];

/// Error of a landing.
#[derive(Debug, thiserror::Error, Explain)]
pub enum Error {
    /// The base, a lane or its worktree changed during every attempt.
    #[error(
        "cannot merge into '{base}': the branch, a lane or its worktree kept changing in {attempts} attempts{}; nothing was changed",
        last.as_ref().map_or_else(String::new, |why| format!(", or is locked ({why})"))
    )]
    #[hint("check for a leftover lock file, then try again: git status")]
    BaseKeptMoving {
        /// Branch that could not be moved.
        base: String,
        /// Number of attempts.
        attempts: u32,
        /// Last message of git, if git refused.
        last: Option<String>,
    },
    /// A worktree is in the middle of a git operation that will move the base.
    #[error(
        "cannot merge into '{base}': a {operation} of '{base}' is in progress in {worktree}; nothing was changed"
    )]
    #[hint("finish it, or abort it: {}", error_hints::git_abort_command(operation))]
    GitOperationInProgress {
        /// Branch that the lanes would have landed on.
        base: String,
        /// Operation in progress.
        operation: &'static str,
        /// Worktree with the operation.
        worktree: String,
    },
    /// The worktree of a lane has the base checked out, and its local changes are in the way.
    #[error("cannot merge into '{onto}': lane '{lane}' has it checked out: {reason}")]
    #[hint("switch the lane back to its branch: {switch_command}")]
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
    #[error("cannot merge into '{base}': branch.{base}.mergeOptions has {option}, which is not supported")]
    #[hint("show where it is set: git config --show-origin --get branch.{base}.mergeOptions")]
    UnsupportedMergeOption {
        /// Branch with the option.
        base: String,
        /// Unsupported option.
        option: String,
    },
    /// A template of commit messages has a placeholder that does not exist.
    #[error(
        "cannot write the commit message: {setting} has the unknown placeholder '{placeholder}'; known are {}",
        placeholder_list()
    )]
    #[hint("see where it is set: git proq config list")]
    UnknownPlaceholder {
        /// Setting with the template.
        setting: &'static str,
        /// Placeholder, or a single brace.
        placeholder: String,
    },
    /// The tip of a landed lane is not on its base.
    #[error("lane '{lane}' was merged, but its tip is not on '{base}'; the lane is kept")]
    LandingLost {
        /// Lane that landed.
        lane: LaneName,
        /// Branch that it landed on.
        base: String,
    },
    /// The repository's check commands are not approved.
    #[error("cannot merge: you have not approved these checks of {}:{}", path.display(), list_lines(commands))]
    #[hint(
        if path.is_relative(),
        "read and approve them: git proq approve --onto {}",
        shell_quote_path(Path::new(base))
    )]
    #[hint(else, "read and approve them: git proq approve")]
    #[hint("or add --no-checks to merge without them")]
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
        "cannot check lanes on '{base}': `{command}` timed out after {seconds} s on '{base}' itself; nothing was changed"
    )]
    #[hint(
        "raise the time limit: git config proq.verify.timeout {}",
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
    /// A check fails on the base itself, so its result does not depend on a lane.
    #[error("cannot check lanes on '{base}': `{}` fails on {base} itself ({})", check.command, check.ended)]
    #[exit(Agent)]
    #[hint("read its output: cat {}", shell_quote_path(&check.log))]
    #[hint(with = ignore_base_failure_hint(lanes))]
    CheckFailsOnBase {
        /// Branch that was checked.
        base: String,
        /// Check that fails, and its output.
        check: Box<CheckFailure>,
        /// Lanes that would have landed.
        lanes: Vec<LaneName>,
    },
    /// The program of a check is missing or not executable, which is no fault of a lane.
    #[error("cannot run check `{}` on {}: {}", check.command, describe_state(base, &check.lanes_below), unrunnable_reason(check.ended))]
    #[exit(Agent)]
    #[hint("read its output: cat {}", shell_quote_path(&check.log))]
    #[hint(with = skip_checks_hint(check.task_lane.as_ref().map_or(&check.lanes_below, std::slice::from_ref)))]
    CheckNotRunnable {
        /// Branch that the lanes would have landed on.
        base: String,
        /// Check that cannot be run, with the lanes that it was started on.
        check: Box<CheckFailure>,
    },
    /// A command that prepares the worktree of the checks failed, which is no fault of a lane.
    #[error("cannot prepare the worktree for checks: `{}` failed ({})", check.command, check.ended)]
    #[exit(Agent)]
    #[hint("read its output: cat {}", shell_quote_path(&check.log))]
    #[hint(with = skip_checks_hint(lanes))]
    CheckSetUpFailed {
        /// Command of `verify.setup`, and its output.
        check: Box<CheckFailure>,
        /// Lanes that would have been checked.
        lanes: Vec<LaneName>,
    },
    /// The repository's conflict agent is not approved.
    #[error("cannot merge: you have not approved conflict agent '{agent}' of {}; nothing was changed", path.display())]
    #[hint("read and approve it: git proq approve")]
    #[hint("or add --no-conflict-agent to merge without it")]
    UnapprovedAgent {
        /// Settings file.
        path: PathBuf,
        /// Agent that the settings name.
        agent: String,
    },
    /// What a landing depends on has changed since its plan was made.
    #[error("cannot merge: the repository has changed since the plan was computed; nothing was changed")]
    #[hint("show what would be merged now: git proq merge --all --dry-run")]
    PlanOutdated,
    /// No home folder exists for the check worktrees.
    #[error("cannot create check worktrees: HOME is not set; nothing was changed")]
    #[hint("set their folder: git config proq.verify.location \"$(mktemp -d)\"")]
    NoHomeDir,
    /// The folder for check worktrees is inside the repository, so that checks would find its files.
    #[error("cannot create check worktrees in {}: verify.location is inside the repository; nothing was changed", dir.display())]
    #[hint("set a folder outside of it: git config proq.verify.location /var/tmp/git-proq")]
    CheckDirInsideRepo {
        /// Folder of the setting `verify.location`.
        dir: PathBuf,
    },
    /// The folder for check worktrees contains something else.
    #[error("cannot create check worktrees in {}: git-proq did not create this folder for this repository; nothing was changed", dir.display())]
    #[hint("list its files: ls -la {}", shell_quote_path(dir))]
    #[hint("or set another folder: git config proq.verify.location /var/tmp/git-proq")]
    ForeignCheckDir {
        /// Folder that git-proq did not create for this repository.
        dir: PathBuf,
    },
    /// A check worktree could not be set to a commit.
    #[error("cannot check out {} in {}; nothing was changed", commit.short(), dir.display())]
    #[hint("if no other program uses the folder, delete it: rm -rf {}", shell_quote_path(dir))]
    CheckoutFailed {
        /// Check worktree.
        dir: PathBuf,
        /// Commit to check.
        commit: CommitId,
    },
    /// A check removed the worktree that it ran in, or the link file that makes it a worktree.
    #[error("the checks removed their worktree: {}; nothing was changed", dir.display())]
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

impl Error {
    /// Returns the check that is the reason of this error; none for other reasons.
    pub(crate) fn check(&self) -> Option<&CheckFailure> {
        match self {
            Error::CheckFailsOnBase { check, .. }
            | Error::CheckNotRunnable { check, .. }
            | Error::CheckSetUpFailed { check, .. } => Some(check),
            _ => None,
        }
    }

    /// Returns a refusal of each candidate because of this error, with the check that is its reason.
    pub(crate) fn refuse(&self, onto: &str, candidates: &[Candidate]) -> Vec<LaneOutcome> {
        let refuse = |candidate: &Candidate| LaneOutcome {
            hints: self.hints(),
            check: self.check().cloned(),
            exit_code: Some(self.exit()),
            part_key: candidate.part_key(),
            ..LaneOutcome::refused(&candidate.lane.name, onto, describe_with_causes(self))
        };
        candidates.iter().map(refuse).collect()
    }
}

/// Lists the placeholders of commit messages.
fn placeholder_list() -> String {
    PLACEHOLDERS.map(|name| format!("{{{name}}}")).join(", ")
}

/// Returns the reason, in words, why a shell could not run a command that exited like this.
fn unrunnable_reason(ended: ExitOutcome) -> String {
    let reason = if ended == ExitOutcome::Code(126) { "permission denied" } else { "command not found" };
    format!("{reason} ({ended})")
}

/// Returns the hint to land these lanes although a check fails on their base; none without lanes.
fn ignore_base_failure_hint(lanes: &[LaneName]) -> Option<Hint> {
    let names = lanes.join(" ");
    (!names.is_empty())
        .then(|| hint!("land without that check: git proq merge --ignore-base-failures {names}"))
}

/// Returns the hint to land these lanes without checks; none without lanes.
fn skip_checks_hint(lanes: &[LaneName]) -> Option<Hint> {
    let names = lanes.join(" ");
    (!names.is_empty()).then(|| hint!("merge without checks: git proq merge --no-checks {names}"))
}
