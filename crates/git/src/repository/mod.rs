//! An opened repository: its directories, settings, attributes, identity and objects.

pub mod approximate_date;
pub mod attributes;
pub mod editor;
pub mod git_dir;
pub mod head_file;
pub mod identity;
pub mod loose_objects;
pub mod main_checkout;
pub mod objects;
pub mod open_operation;
pub mod open_settings;
pub mod ownership;
pub mod repo;
pub mod repo_sync;
pub mod settings;
mod settings_copy;
pub mod shared_repository;
pub mod tree_reader;
pub mod worktree_context;
