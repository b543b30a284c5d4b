//! Errors of previews, with hints and exit codes.

use std::borrow::Cow;

use proq_base::explain::{Exit, Explain, shell_quote_path};
use proq_base::lane_name::LaneName;
use proq_git as git;
use proq_git::base::error;
use proq_git::base::head::Head;
use proq_store as store;

use crate::lane;

/// Error of a preview.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No preview is open.
    #[error("no preview is open; nothing was changed")]
    NoOpenPreview,
    /// The main checkout was switched by hand to another branch or commit.
    #[error("the main checkout shows '{current_head}', not lane '{lane}' any more; nothing was changed")]
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
        "the main checkout is on '{current_branch}', a branch without a commit, not on lane '{lane}' any more; nothing was changed"
    )]
    OnUnbornBranch {
        /// Lane that was previewed.
        lane: LaneName,
        /// Branch that HEAD names.
        current_branch: String,
        /// Branch of the preview.
        preview_branch: String,
    },
    /// The branch that the preview was entered from is checked out in another worktree.
    #[error("branch '{branch}' is checked out in {} now; nothing was changed", dir.display())]
    OriginTaken {
        /// Branch that the preview was entered from.
        branch: String,
        /// Other worktree.
        dir: std::path::PathBuf,
    },
    /// Files are in the way of the user's parked changes.
    #[error(
        "your changes from before the preview are kept, but these stand in their way: {}",
        error::list_paths(paths)
    )]
    ChangesObstructed {
        /// Files that are in the way.
        paths: Vec<git::RepoPath>,
    },
    /// The lane's branch is missing.
    #[error("lane '{lane}' cannot be shown: its branch is gone; nothing was changed")]
    LaneBranchGone {
        /// Name of the lane whose branch is missing.
        lane: LaneName,
    },
    /// The main checkout is on a branch without a commit.
    #[error("the main checkout is on a branch without a commit; nothing was changed")]
    NoCommit,
    /// The branch that the preview was entered from is missing.
    #[error("branch '{branch}', which the preview was entered from, is gone; nothing was changed")]
    OriginGone {
        /// Branch that the preview was entered from.
        branch: String,
        /// Commit of that branch when the preview was entered.
        commit: git::CommitId,
    },
    /// The preview has commits that the lane lacks, and the lane has moved.
    #[error("lane '{lane}' and its preview both have commits of their own; nothing was changed")]
    Diverged {
        /// Name of the lane that diverged from its preview.
        lane: LaneName,
    },
    /// The preview has commits that the lane lacks, and the lane has no new commits.
    #[error(
        "cannot refresh the preview of lane '{lane}': it has commits that the lane has not, and the lane has nothing new; nothing was changed"
    )]
    PreviewAhead {
        /// Name of the lane whose preview is ahead of it.
        lane: LaneName,
    },
    /// Error of a lane.
    #[error(transparent)]
    Lane(#[from] lane::Error),
    /// Error of git.
    #[error(transparent)]
    Git(#[from] git::Error),
    /// Error of the store.
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl Explain for Error {
    fn is_decision(&self) -> bool {
        match self {
            Error::Lane(e) => e.is_decision(),
            Error::Git(_) | Error::Store(_) => false,
            _ => true,
        }
    }

    fn hints(&self) -> Vec<Cow<'static, str>> {
        match self {
            Error::NoOpenPreview => vec!["open one: git proq preview LANE".into()],
            Error::SwitchedByHand { previous_head: came_from, .. } => {
                let flag = if matches!(came_from, Head::Detached(_)) { "--detach " } else { "" };
                vec![format!("go back first: git switch {flag}{came_from} && git proq preview --back").into()]
            }
            Error::OnUnbornBranch { preview_branch: preview, .. } => {
                vec![format!("go back first: git switch {preview}").into()]
            }
            Error::OriginTaken { dir, .. } => {
                vec![format!("free it: git -C {} switch --detach", shell_quote_path(dir)).into()]
            }
            Error::ChangesObstructed { .. } => {
                vec!["move them aside, then bring your changes back: git proq preview --back".into()]
            }
            Error::LaneBranchGone { lane } => {
                vec![format!("see what is left of it: git proq show {lane}").into()]
            }
            Error::NoCommit => vec!["make a first commit: git commit --allow-empty -m 'Start'".into()],
            Error::OriginGone { branch, commit } => {
                vec![format!("make it again: git branch {branch} {}", commit.short()).into()]
            }
            Error::Diverged { .. } | Error::PreviewAhead { .. } => {
                vec!["leave it; its commits are kept: git proq preview --back".into()]
            }
            Error::Lane(e) => e.hints(),
            Error::Git(e) => e.hints(),
            Error::Store(e) => e.hints(),
        }
    }

    fn exit(&self) -> Exit {
        match self {
            Error::Lane(e) => e.exit(),
            Error::Git(e) => e.exit(),
            Error::Store(e) => e.exit(),
            _ => Exit::Refused,
        }
    }
}
