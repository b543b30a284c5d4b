//! Hooks of the repository, and which repository a hook runs in.

pub(crate) mod hook;
pub(crate) mod hook_repo;
