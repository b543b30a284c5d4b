//! Worktrees of lanes: checkout, set-up, ports, pool, submodules, sparse and partial clones.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod doctor_pool;
mod durability;
mod lfs;
mod linked_head;
mod nested_repositories;
mod partial_clone;
mod pool;
mod populate_progress;
mod ports;
mod set_up;
mod set_up_builds;
mod set_up_commands;
mod sparse;
mod sparse_landings;
mod sparse_previews;
mod submodule_folders;
mod submodules;
mod worktree_baseline;
