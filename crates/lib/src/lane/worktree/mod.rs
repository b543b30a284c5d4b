//! Worktrees of lanes: population, set-up, ports, the pool and the trash.

pub mod checkout_mode;
pub mod checks_dir;
pub mod detached_worktree;
pub mod lanes_folder;
pub mod move_path;
pub mod move_undo;
pub mod pool;
pub mod populate;
pub mod populate_lanes;
pub mod ports;
pub mod rename_worktree;
pub mod resident_processes;
pub mod resolve_worktree;
pub mod rollback_create;
pub mod set_up;
pub mod trash;
