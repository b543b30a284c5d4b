//! Recovery: what the next command finds and does after a command was killed at a fault point.

mod branch_moves;
mod editor_races;
mod fault_points;
mod killed_resolve;
mod live_locks;
mod live_processes;
mod locks;
mod pool;
mod regressions;
mod relocation;
mod truncated_files;
mod unusual_states;
