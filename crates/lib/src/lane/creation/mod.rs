//! Creation of lanes, one or many, and files synced into them.

pub mod create;
pub mod create_many;
pub mod create_worktree;
pub mod free_name;
pub mod sync_files;
pub mod undo_creation;
