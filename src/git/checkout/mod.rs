//! The change of a worktree from one commit to another, with local changes kept.

pub(crate) mod fast_checkout;
pub(crate) mod obstructions;
pub(crate) mod partial_files;
pub(crate) mod preconditions;
pub(crate) mod preflight;
pub(crate) mod quarantine;
pub(crate) mod rebuilt_files;
pub(crate) mod ref_recovery;
pub(crate) mod submodule;
pub(crate) mod transition;
