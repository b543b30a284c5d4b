//! An opened repository: its directories, settings, attributes, identity and objects.

pub(crate) mod attributes;
pub(crate) mod git_dir;
pub(crate) mod head_file;
pub(crate) mod identity;
pub(crate) mod loose_objects;
pub(crate) mod main_checkout;
pub(crate) mod objects;
pub(crate) mod open_operation;
pub(crate) mod open_settings;
pub(crate) mod ownership;
pub(crate) mod repo;
pub(crate) mod repo_sync;
pub(crate) mod settings;
pub(crate) mod shared_repository;
pub(crate) mod tree_reader;
pub(crate) mod worktree_context;
