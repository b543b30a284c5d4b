//! Access to git: the gix library for reading, the git program for changes.

pub(crate) mod base;
pub(crate) mod checkout;
pub(crate) mod history;
pub(crate) mod hooks;
pub(crate) mod index;
pub(crate) mod merge;
pub(crate) mod program;
pub(crate) mod references;
pub(crate) mod repository;
pub(crate) mod snapshots;
pub(crate) mod status;
pub(crate) mod worktrees;

pub(crate) use crate::git::base::error::Error;
pub use crate::git::base::oid::Oid;
pub use crate::git::base::path::RepoPath;
pub(crate) use crate::git::repository::repo::Repo;
