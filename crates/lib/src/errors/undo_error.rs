//! Errors of undoing operations, with their hints.

use proq_base::explain::{Explain, shell_quote_path};
use proq_base::lane_name::LaneName;
use proq_git as git;
use proq_git::base::{error, local_changes_remedy};
use proq_store::base::operation_number::OperationNumber;

/// Reason why operations cannot be undone.
#[derive(Debug, thiserror::Error, Explain)]
pub enum UndoError {
    /// The log has no operation with this number.
    #[error("there is no operation {number} in the log")]
    #[hint("list operations: git proq op log")]
    NoOperation {
        /// Number of the operation.
        number: OperationNumber,
    },
    /// No trace of the operation is kept.
    #[error("{}", number.map_or_else(
        || "no failed operation outside of the log has a trace".to_owned(),
        |n| format!("operation {n} has no trace; only failed and interrupted operations have one")
    ))]
    #[hint(if number.is_some(), "show what it did: git proq op show {}", number.unwrap_or_default())]
    #[hint(if number.is_none(), "list operations: git proq op log")]
    NoTrace {
        /// Number of the operation; none for the last failed one without a number.
        number: Option<OperationNumber>,
    },
    /// There is nothing to undo or redo.
    #[error("{}", if *redo { "there is nothing to redo" } else { "there is nothing to undo" })]
    NothingToUndo {
        /// Whether a redo was requested.
        redo: bool,
    },
    /// The operation is in effect, but not the last one.
    #[error("cannot undo operation {requested}: it is not the last one in effect{}; nothing was changed", last.map_or_else(String::new, |n| format!(", {n} is")))]
    #[hint(
        "undo it and everything after it: git proq op restore {}",
        requested.previous()
    )]
    NotLast {
        /// Number of the requested operation.
        requested: OperationNumber,
        /// Number of the last operation in effect; `None` if there is none.
        last: Option<OperationNumber>,
    },
    /// The operation is not in effect: it was undone, or it is itself an undo or a redo.
    #[error(
        "cannot undo operation {requested}: {}; nothing was changed",
        if *is_undone { "it is already undone" } else { "it is itself an undo or a redo" }
    )]
    #[hint("list operations: git proq op log")]
    NotInEffect {
        /// Number of the requested operation.
        requested: OperationNumber,
        /// Whether it was undone.
        is_undone: bool,
    },
    /// Another terminal or another program started the operation, and the user cannot be prompted.
    #[error(
        "operation {number} was started in another terminal or by another program: {command}; nothing was changed"
    )]
    #[hint("show what it did: git proq op show {number}")]
    #[hint("undo it anyway: git proq undo {number}")]
    ConfirmationRequired {
        /// Number of the operation.
        number: OperationNumber,
        /// Command line by which it was started.
        command: String,
    },
    /// The branch has new commits on top of those to undo.
    #[error("'{branch}' has moved to {} since", tip.short())]
    BuiltOn {
        /// Name of the branch.
        branch: String,
        /// Current tip of the branch.
        tip: git::CommitId,
    },
    /// The branch from which a preview was opened has moved, independently of the operation to undo.
    #[error("'{branch}' has moved to {} since the checkout left it", tip.short())]
    #[hint("leave the preview instead: git proq preview --back")]
    PreviousBranchMoved {
        /// Name of the branch.
        branch: String,
        /// Current tip of the branch.
        tip: git::CommitId,
    },
    /// The branch that the checkout switched to has moved, independently of the operation to undo.
    #[error("'{branch}' has moved to {} since", tip.short())]
    #[hint(if let Some(argument) = preview_argument, "instead: git proq preview {argument}")]
    CurrentBranchMoved {
        /// Name of the branch.
        branch: String,
        /// Current tip of the branch.
        tip: git::CommitId,
        /// Argument of the `git proq preview` that comes closest to the undo.
        preview_argument: Option<String>,
    },
    /// The branch to which the checkout would return, or whose landing would be undone, is missing.
    #[error("branch '{branch}' no longer exists")]
    #[hint("create it again: git branch {branch} {last_tip}")]
    BranchGone {
        /// Name of the branch.
        branch: String,
        /// Last known tip of the branch.
        last_tip: git::CommitId,
    },
    /// The checkout is on neither of the two branches of the switch to undo.
    #[error("{} is no longer on '{branch}'", dir.display())]
    #[hint(
        if let Some(tip) = gone_tip,
        "create it again and switch to it: git -C {} switch -c {branch} {tip}",
        shell_quote_path(dir)
    )]
    #[hint(else, "switch back to it: git -C {} switch {branch}", shell_quote_path(dir))]
    NotOnBranch {
        /// Top folder of the worktree.
        dir: std::path::PathBuf,
        /// Branch that the checkout would switch back from.
        branch: String,
        /// Last known tip of that branch; `None` if the branch still exists.
        gone_tip: Option<git::CommitId>,
    },
    /// The branch that the checkout would switch back to is checked out in another worktree.
    #[error("'{branch}' is checked out in {} now", dir.display())]
    #[hint("free the branch: git -C {} switch --detach", shell_quote_path(dir))]
    CheckedOutElsewhere {
        /// Name of the branch.
        branch: String,
        /// Top folder of the other worktree.
        dir: std::path::PathBuf,
    },
    /// The changes that the open preview will restore are not those that the operation parked.
    #[error("the preview has saved your changes again since then")]
    #[hint("leave the preview instead: git proq preview --back")]
    PreviewChangesReplaced,
    /// The record of the changes that the open preview will restore is missing.
    #[error("the record of your changes from before the preview is missing")]
    #[hint("leave the preview instead: git proq preview --back")]
    PreviewRecordMissing,
    /// A remote already has the commits to undo.
    #[error("'{branch}' was pushed to {remote_branch}")]
    Pushed {
        /// Name of the branch.
        branch: String,
        /// Remote-tracking branch that has the commits.
        remote_branch: String,
    },
    /// Uncommitted changes would mix with the restored ones.
    #[error("{} has uncommitted changes: {}", dir.display(), error::list_paths(paths))]
    #[hint(if let Some(remedy) = flag_remedy, with = [remedy.hint_without_commit(dir)])]
    #[hint(else if *in_preview, "save them for its next preview: git proq preview --back")]
    #[hint(
        else,
        "stash them (`git stash pop` restores them): git -C {} stash push --include-untracked",
        shell_quote_path(dir)
    )]
    WorktreeEdits {
        /// Top folder of the worktree.
        dir: std::path::PathBuf,
        /// Changed paths.
        paths: Vec<git::RepoPath>,
        /// Whether the worktree shows the preview of a lane.
        in_preview: bool,
        /// Commands for files with an assume-unchanged or skip-worktree flag: a plain stash would destroy
        /// their contents.
        flag_remedy: Option<local_changes_remedy::LocalChangesRemedy>,
    },
    /// A lane would be removed with work that it did not have when it was removed before.
    #[error("lane '{name}' has uncommitted work: {}", error::list_paths(paths))]
    #[hint("remove it; everything is saved first: git proq discard --force {name}")]
    LaneUncommitted {
        /// Name of the lane.
        name: LaneName,
        /// Changed paths.
        paths: Vec<git::RepoPath>,
    },
    /// The main checkout shows the lane's preview.
    #[error("the main checkout shows lane '{name}'")]
    #[hint("leave the preview: git proq preview --back")]
    LanePreviewed {
        /// Name of the lane.
        name: LaneName,
    },
}
