//! Lanes: names, states, creation and removal, worktree set-up, snapshots, trash, and the operations that
//! change them.

pub mod context;
pub mod creation;
pub mod inspection;
pub mod messages;
pub mod parking;
pub mod recovery;
pub mod removal;
pub mod state;
pub mod steps;
pub mod worktree;

pub use crate::errors::Error;
pub use crate::project::Project;
