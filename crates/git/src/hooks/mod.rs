//! Hooks of the repository, and which repository a hook runs in.

pub mod hook;
pub mod hook_repo;
