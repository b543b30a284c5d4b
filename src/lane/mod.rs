//! Lanes: names, states, creation and removal, worktree set-up, snapshots, trash, and the operations that
//! change them.

pub(crate) mod context;
pub(crate) mod creation;
pub(crate) mod errors;
pub(crate) mod execution;
pub(crate) mod inspection;
pub(crate) mod messages;
pub(crate) mod operation;
pub(crate) mod parking;
pub(crate) mod removal;
pub(crate) mod state;
pub(crate) mod worktree;

pub(crate) use crate::lane::context::project::Project;
pub(crate) use crate::lane::errors::error::Error;
