//! Owns what can go wrong with a preview, in the user's words.

use std::borrow::Cow;

use crate::explain::{Exit, Explain, quoted_path};
use crate::git::Head;
use crate::{git, lane, store};

/// An error about a preview.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing is previewed.
    #[error("no preview is open; nothing was changed")]
    NotOpen,
    /// The checkout was switched by hand to a third place.
    #[error("the main checkout shows '{now}', not lane '{lane}' any more; nothing was changed")]
    ByHand {
        /// The lane that was previewed.
        lane: String,
        /// Where HEAD is.
        now: String,
        /// Where the preview was entered from.
        came_from: Head,
    },
    /// The checkout was switched by hand to a branch without a commit.
    #[error(
        "the main checkout is on '{now}', a branch without a commit, not on lane '{lane}' any more; nothing was changed"
    )]
    Orphan {
        /// The lane that was previewed.
        lane: String,
        /// The branch.
        now: String,
        /// The hidden branch that shows the lane.
        preview: String,
    },
    /// The branch that the preview was entered from is checked out elsewhere.
    #[error("branch '{branch}' is checked out in {} now; nothing was changed", dir.display())]
    OriginTaken {
        /// The branch.
        branch: String,
        /// The other worktree.
        dir: std::path::PathBuf,
    },
    /// Something stands where the user's changes belong.
    #[error(
        "your changes from before the preview are kept, but these stand in their way: {}",
        git::names(paths)
    )]
    InTheWay {
        /// The files.
        paths: Vec<git::RepoPath>,
    },
    /// The lane has no branch.
    #[error("lane '{lane}' cannot be shown: its branch is gone; nothing was changed")]
    NoTip {
        /// The lane.
        lane: String,
    },
    /// The main checkout has no commit.
    #[error("the main checkout is on a branch without a commit; nothing was changed")]
    Unborn,
    /// Where the preview was entered from is gone.
    #[error("branch '{branch}', which the preview was entered from, is gone; nothing was changed")]
    OriginGone {
        /// The branch.
        branch: String,
        /// Where it was by then.
        commit: git::Oid,
    },
    /// The preview has commits that the lane does not have, and the lane moved.
    #[error("lane '{lane}' and its preview both have commits of their own; nothing was changed")]
    Diverged {
        /// The lane.
        lane: String,
    },
    /// The preview has commits that the lane does not have, and the lane has none to show.
    #[error(
        "cannot refresh the preview of lane '{lane}': it has commits that the lane has not, and the lane has nothing new; nothing was changed"
    )]
    Ahead {
        /// The lane.
        lane: String,
    },
    /// From a lane.
    #[error(transparent)]
    Lane(#[from] lane::Error),
    /// From git.
    #[error(transparent)]
    Git(#[from] git::Error),
    /// From the store.
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
            Error::NotOpen => vec!["open one: git proq preview LANE".into()],
            Error::ByHand { came_from, .. } => {
                let how = if matches!(came_from, Head::Detached(_)) { "--detach " } else { "" };
                vec![format!("go back first: git switch {how}{came_from} && git proq preview --back").into()]
            }
            Error::Orphan { preview, .. } => {
                vec![format!("go back first: git switch {preview}").into()]
            }
            Error::OriginTaken { dir, .. } => {
                vec![format!("free it: git -C {} switch --detach", quoted_path(dir)).into()]
            }
            Error::InTheWay { .. } => {
                vec!["move them aside, then bring your changes back: git proq preview --back".into()]
            }
            Error::NoTip { lane } => vec![format!("see what is left of it: git proq show {lane}").into()],
            Error::Unborn => vec!["make a first commit: git commit --allow-empty -m 'Start'".into()],
            Error::OriginGone { branch, commit } => {
                vec![format!("make it again: git branch {branch} {}", commit.short()).into()]
            }
            Error::Diverged { .. } | Error::Ahead { .. } => {
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
