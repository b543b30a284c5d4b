//! Error about a lane that cannot be renamed, with its hints.

use std::path::PathBuf;

use proq_base::explain::{Explain, shell_quote_path};
use proq_base::lane_name::LaneName;
use proq_store::base::batch_id::BatchId;

/// Reason why a lane cannot get another name, now or ever.
#[derive(Debug, thiserror::Error, Explain)]
pub enum RenameError {
    /// The new name is the old one, or that of another lane.
    #[error("cannot rename lane '{lane}': there is a lane '{name}' already")]
    #[hint("show that lane: git proq show {name}")]
    NameTaken {
        /// Name of the lane.
        lane: LaneName,
        /// New name.
        name: LaneName,
    },
    /// The lane belongs to a batch, which knows it by its name.
    #[error("cannot rename lane '{lane}': it belongs to batch {batch}, which knows it by its name")]
    #[hint("change its title instead: git proq help edit")]
    InBatch {
        /// Name of the lane.
        lane: LaneName,
        /// Id of the batch.
        batch: BatchId,
    },
    /// The main checkout shows the lane.
    #[error("cannot rename lane '{lane}': it is previewed in the main checkout")]
    #[decision]
    #[hint("leave the preview: git proq preview --back")]
    Previewed {
        /// Name of the lane.
        lane: LaneName,
    },
    /// A process is landing the lane, or waits for its turn to do so.
    #[error("cannot rename lane '{lane}': a landing of it is in progress")]
    #[decision]
    #[hint("show the merge queue: git proq queue")]
    Landing {
        /// Name of the lane.
        lane: LaneName,
    },
    /// The conflict of the lane is being resolved, in a worktree of its own.
    #[error("cannot rename lane '{lane}': its conflict is being resolved")]
    #[decision]
    #[hint("finish the resolution: git proq resolve {lane} --continue")]
    #[hint("or give it up: git proq resolve {lane} --abort")]
    Resolving {
        /// Name of the lane.
        lane: LaneName,
    },
    /// HEAD of the lane's worktree is not on the lane's branch, or a rebase or another act of git is in progress.
    #[error(
        "cannot rename lane '{lane}': its worktree is not on {branch}, or git is in the middle of something there"
    )]
    #[decision]
    #[hint("show its state: git -C {} status", shell_quote_path(path))]
    NotOnBranch {
        /// Name of the lane.
        lane: LaneName,
        /// Branch of the lane.
        branch: String,
        /// Top folder of the lane's worktree.
        path: PathBuf,
    },
    /// The worktree has submodules, whose settings name its folder. Git does not move such worktrees either.
    #[error("cannot rename lane '{lane}': its worktree has submodules, and git cannot move such a worktree")]
    #[hint("change its title instead: git proq help edit")]
    Submodules {
        /// Name of the lane.
        lane: LaneName,
    },
    /// Another worktree lies in the lane's, and git would not find it any more.
    #[error("cannot rename lane '{lane}': another worktree is in its folder: {}", nested.display())]
    #[decision]
    #[hint(
        "move it elsewhere: git worktree move {} {}",
        shell_quote_path(nested),
        shell_quote_path(elsewhere)
    )]
    Nested {
        /// Name of the lane.
        lane: LaneName,
        /// Top folder of the other worktree.
        nested: PathBuf,
        /// Folder beside the main checkout.
        elsewhere: PathBuf,
    },
    /// The lane has commits since it was renamed, which an undo would leave without a branch.
    #[error("cannot undo the rename of lane '{lane}': it has new commits")]
    #[decision]
    #[hint("rename it back, with its commits: git proq rename {lane} {old_name}")]
    NewCommits {
        /// Name of the lane.
        lane: LaneName,
        /// Name that the lane had before.
        old_name: LaneName,
    },
    /// The user has locked the worktree.
    #[error("cannot rename lane '{lane}': its worktree is locked")]
    #[decision]
    #[hint("unlock it: git worktree unlock {}", shell_quote_path(path))]
    Locked {
        /// Name of the lane.
        lane: LaneName,
        /// Top folder of the lane's worktree.
        path: PathBuf,
    },
}
