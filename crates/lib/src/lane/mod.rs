//! Lanes: names, states, creation and removal, worktree set-up, snapshots, trash, and the operations that
//! change them.

pub mod context;
pub mod creation;
pub mod errors;
pub mod execution;
pub mod inspection;
pub mod messages;
pub mod operation;
pub mod parking;
pub mod removal;
pub mod state;
pub mod worktree;

pub use crate::lane::context::project::Project;
pub use crate::lane::errors::error::Error;
