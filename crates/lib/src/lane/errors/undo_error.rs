//! Errors of undoing operations, with their hints.

use std::borrow::Cow;

use proq_base::explain::{Explain, shell_quote_path};
use proq_base::lane_name::LaneName;
use proq_git as git;
use proq_git::base::error;
use proq_git::base::local_changes_hint;
use proq_store::base::operation_number::OperationNumber;

/// Reason why operations cannot be undone.
#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    /// The log has no operation with this number.
    #[error("there is no operation {number} in the log")]
    NoOperation {
        /// Number of the operation.
        number: OperationNumber,
    },
    /// There is nothing to undo or redo.
    #[error("{}", if *redo { "there is no undo that could be taken back" } else { "there is nothing to undo" })]
    NothingToUndo {
        /// Whether a redo was requested.
        redo: bool,
    },
    /// The operation is not the last one in effect.
    #[error("operation {requested} is not the last one that stands{}; nothing was changed", last.map_or_else(String::new, |n| format!(", {n} is")))]
    NotLast {
        /// Number of the requested operation.
        requested: OperationNumber,
        /// Number of the last operation in effect; `None` if there is none.
        last: Option<OperationNumber>,
    },
    /// The branch has new commits on top of those to undo.
    #[error("'{branch}' has moved on to {} since", tip.short())]
    BuiltOn {
        /// Name of the branch.
        branch: String,
        /// Current tip of the branch.
        tip: git::CommitId,
    },
    /// The branch from which a preview was opened has moved, independently of the operation to undo.
    #[error("'{branch}' has moved on to {} since the checkout left it", tip.short())]
    PreviousBranchMoved {
        /// Name of the branch.
        branch: String,
        /// Current tip of the branch.
        tip: git::CommitId,
    },
    /// The branch that the checkout switched to has moved, independently of the operation to undo.
    #[error("'{branch}' has moved on to {} since", tip.short())]
    CurrentBranchMoved {
        /// Name of the branch.
        branch: String,
        /// Current tip of the branch.
        tip: git::CommitId,
        /// Command that comes closest to the undo.
        alternative: Option<String>,
    },
    /// The branch to which the checkout would return, or whose landing would be undone, is missing.
    #[error("there is no branch '{branch}' any more")]
    BranchGone {
        /// Name of the branch.
        branch: String,
        /// Last known tip of the branch.
        tip: git::CommitId,
    },
    /// The checkout is on neither of the two branches of the switch to undo.
    #[error("{} is not on '{branch}' any more", dir.display())]
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
    CheckedOutElsewhere {
        /// Name of the branch.
        branch: String,
        /// Top folder of the other worktree.
        dir: std::path::PathBuf,
    },
    /// The changes that the open preview will restore are not those that the operation parked.
    #[error("your changes were set aside anew since, and wait in the preview as they are now")]
    PreviewChangesReplaced,
    /// The record of the changes that the open preview will restore is missing.
    #[error("the record of your changes from before the preview is gone")]
    PreviewRecordMissing,
    /// A remote already has the commits to undo.
    #[error("'{branch}' was pushed: {remote} has it")]
    Pushed {
        /// Name of the branch.
        branch: String,
        /// Remote-tracking branch that has the commits.
        remote: String,
    },
    /// Uncommitted changes would mix with the restored ones.
    #[error("there are uncommitted changes in {}: {}", dir.display(), error::list_paths(paths))]
    WorktreeEdits {
        /// Top folder of the worktree.
        dir: std::path::PathBuf,
        /// Changed paths.
        paths: Vec<git::RepoPath>,
        /// Whether the worktree shows the preview of a lane.
        in_preview: bool,
        /// Commands for files with an assume-unchanged or skip-worktree flag: a plain stash would destroy
        /// their contents.
        flag_remedy: Option<local_changes_hint::LocalChangesHint>,
    },
    /// A lane would be removed with work that it did not have when it was removed before.
    #[error("lane '{name}' has uncommitted work: {}", error::list_paths(paths))]
    LaneUncommitted {
        /// Name of the lane.
        name: LaneName,
        /// Changed paths.
        paths: Vec<git::RepoPath>,
    },
    /// The main checkout shows the lane's preview.
    #[error("the main checkout shows lane '{name}'")]
    LanePreviewed {
        /// Name of the lane.
        name: LaneName,
    },
}

/// Wraps a text as a single hint.
fn single_hint(text: String) -> Vec<Cow<'static, str>> {
    vec![text.into()]
}

impl Explain for UndoError {
    fn hints(&self) -> Vec<Cow<'static, str>> {
        match self {
            UndoError::NoOperation { .. } => vec!["see what there is: git proq op log".into()],
            UndoError::NotLast { requested, .. } => {
                vec![
                    format!(
                        "undo it and all that came after it: git proq op restore {}",
                        requested.previous()
                    )
                    .into(),
                ]
            }
            UndoError::WorktreeEdits { flag_remedy: Some(remedy), dir, .. } => vec![remedy.stash_hint(dir)],
            UndoError::WorktreeEdits { in_preview: true, .. } => {
                vec!["set them aside for its next preview: git proq preview --back".into()]
            }
            UndoError::WorktreeEdits { dir, .. } => single_hint(format!(
                "set them aside first: git -C {} stash push --include-untracked",
                shell_quote_path(dir)
            )),
            UndoError::BranchGone { branch, tip } => {
                single_hint(format!("make it again: git branch {branch} {tip}"))
            }
            UndoError::NotOnBranch { dir, branch, gone_tip } => {
                single_hint(switch_hint(dir, branch, *gone_tip))
            }
            UndoError::LaneUncommitted { name, .. } => {
                vec![format!("remove it, saving everything first: git proq discard --force {name}").into()]
            }
            UndoError::LanePreviewed { .. } => vec!["go back first: git proq preview --back".into()],
            UndoError::CheckedOutElsewhere { dir, .. } => {
                single_hint(format!("free it: git -C {} switch --detach", shell_quote_path(dir)))
            }
            UndoError::PreviousBranchMoved { .. }
            | UndoError::PreviewChangesReplaced
            | UndoError::PreviewRecordMissing => {
                vec!["leave the preview instead: git proq preview --back".into()]
            }
            UndoError::CurrentBranchMoved { alternative, .. } => {
                alternative.iter().map(|command| format!("do this instead: {command}").into()).collect()
            }
            UndoError::NothingToUndo { .. } | UndoError::BuiltOn { .. } | UndoError::Pushed { .. } => vec![],
        }
    }
}

/// Returns the hint that switches a worktree to a branch. A branch that is gone is created again at
/// `gone_tip`.
fn switch_hint(dir: &std::path::Path, branch: &str, gone_tip: Option<git::CommitId>) -> String {
    let git_command = format!("git -C {}", shell_quote_path(dir));
    match gone_tip {
        None => format!("go back there first: {git_command} switch {branch}"),
        Some(tip) => format!("make it again and go there first: {git_command} switch -c {branch} {tip}"),
    }
}
