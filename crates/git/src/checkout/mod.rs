//! The change of a worktree from one commit to another, with local changes kept.

pub mod displaced_files;
pub mod fast_checkout;
pub mod obstructions;
pub mod partial_files;
pub mod preconditions;
pub mod preflight;
pub mod quarantine;
pub mod rebuilt_files;
pub mod ref_recovery;
pub mod submodule;
pub mod transition;
