//! Errors of previews, with hints and exit codes.

use proq_base::explain::{Explain, shell_quote_path};
use proq_base::lane_name::LaneName;
use proq_git as git;
use proq_git::base::error;
use proq_git::base::head::Head;
use proq_store as store;

use crate::lane;

/// Error of a preview.
#[derive(Debug, thiserror::Error, Explain)]
#[decision]
pub enum Error {
    /// No preview is open.
    #[error("no preview is open")]
    #[hint("list lanes to preview: git proq list")]
    NoOpenPreview,
    /// The main checkout was switched by hand to another branch or commit.
    #[error(
        "cannot use the preview of lane '{lane}': the main checkout is on '{current_head}' now; nothing was changed"
    )]
    #[hint(
        if matches!(previous_head, Head::Detached(_)),
        "switch back and leave it: git switch --detach {previous_head} && git proq preview --back"
    )]
    #[hint(else, "switch back and leave it: git switch {previous_head} && git proq preview --back")]
    SwitchedByHand {
        /// Lane that was previewed.
        lane: LaneName,
        /// Branch or commit that HEAD names.
        current_head: String,
        /// Branch or commit that the preview was entered from.
        previous_head: Head,
    },
    /// The checkout was switched by hand to a branch without a commit.
    #[error(
        "cannot use the preview of lane '{lane}': the main checkout is on '{current_branch}' now, a branch without commits; nothing was changed"
    )]
    #[hint("switch back and leave it: git switch {preview_branch}")]
    OnUnbornBranch {
        /// Lane that was previewed.
        lane: LaneName,
        /// Branch that HEAD names.
        current_branch: String,
        /// Branch of the preview.
        preview_branch: String,
    },
    /// The branch that the preview was entered from is checked out in another worktree.
    #[error("cannot return to branch '{branch}': it is checked out in {}; nothing was changed", dir.display())]
    #[hint("free the branch: git -C {} switch --detach", shell_quote_path(dir))]
    OriginTaken {
        /// Branch that the preview was entered from.
        branch: String,
        /// Other worktree.
        dir: std::path::PathBuf,
    },
    /// Files are in the way of the user's parked changes.
    #[error(
        "cannot restore your changes from before the preview: these files are in the way: {}",
        error::list_paths(blocking_paths)
    )]
    #[hint("move them away, then restore your changes: git proq preview --back")]
    ChangesObstructed {
        /// Files that are in the way.
        blocking_paths: Vec<git::RepoPath>,
    },
    /// The lane's branch is missing.
    #[error("cannot preview lane '{lane}': its branch is missing")]
    #[hint("show the lane: git proq show {lane}")]
    LaneBranchGone {
        /// Name of the lane whose branch is missing.
        lane: LaneName,
    },
    /// The main checkout is on a branch without a commit.
    #[error("cannot preview: the main checkout is on a branch without commits")]
    #[hint("create a first commit: git commit --allow-empty -m 'Start'")]
    NoCommit,
    /// The branch that the preview was entered from is missing.
    #[error("cannot return to branch '{branch}': it no longer exists; nothing was changed")]
    #[hint("create it again: git branch {branch} {}", commit.short_in_command())]
    OriginGone {
        /// Branch that the preview was entered from.
        branch: String,
        /// Commit of that branch when the preview was entered.
        commit: git::CommitId,
    },
    /// The preview has commits that the lane lacks, and the lane has moved.
    #[error("cannot update: lane '{lane}' and its preview have diverged; nothing was changed")]
    #[hint("leave the preview; its commits are saved: git proq preview --back")]
    Diverged {
        /// Name of the lane that diverged from its preview.
        lane: LaneName,
    },
    /// The preview has commits that the lane lacks, and the lane has no new commits.
    #[error(
        "cannot refresh the preview of lane '{lane}': the preview has commits that the lane lacks, and the lane has no new ones"
    )]
    #[hint("leave the preview; its commits are saved: git proq preview --back")]
    PreviewAhead {
        /// Name of the lane whose preview is ahead of it.
        lane: LaneName,
    },
    /// Error of a lane.
    #[error(transparent)]
    #[decision(_0.is_decision())]
    Lane(#[from] lane::Error),
    /// Error of git.
    #[error(transparent)]
    #[decision(false)]
    Git(#[from] git::Error),
    /// Error of the store.
    #[error(transparent)]
    #[decision(false)]
    Store(#[from] store::Error),
}
