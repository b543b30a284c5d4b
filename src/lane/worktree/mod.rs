//! Worktrees of lanes: population, set-up, ports, the pool and the trash.

pub(crate) mod checkout_mode;
pub(crate) mod checks_dir;
pub(crate) mod detached_worktree;
pub(crate) mod lanes_folder;
pub(crate) mod pool;
pub(crate) mod populate;
pub(crate) mod populate_lanes;
pub(crate) mod ports;
pub(crate) mod resident_processes;
pub(crate) mod resolve_worktree;
pub(crate) mod rollback_create;
pub(crate) mod set_up;
pub(crate) mod trash;
