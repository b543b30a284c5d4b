//! Runs without a worktree of their own: read-only runs, and runs in the main checkout.

pub mod in_place;
pub mod in_place_baseline;
pub mod in_place_commit;
pub mod in_place_finish;
pub mod read_only;
pub mod record_agent_commits;
