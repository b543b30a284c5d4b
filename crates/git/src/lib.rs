//! Access to git: the gix library for reading, the git program for changes.

pub mod base;
pub mod checkout;
pub mod history;
pub mod hooks;
pub mod index;
pub mod merge;
pub mod program;
pub mod references;
pub mod repository;
pub mod snapshots;
pub mod status;
pub mod worktrees;

pub use crate::base::error::Error;
pub use crate::base::oid::{BlobId, CommitId, CommitWithTree, Oid, TreeId};
pub use crate::base::path::RepoPath;
pub use crate::repository::repo::Repo;
