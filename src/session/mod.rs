//! Runs without a worktree of their own: read-only runs, and runs in the main checkout.

pub(crate) mod in_place;
pub(crate) mod in_place_baseline;
pub(crate) mod in_place_commit;
pub(crate) mod in_place_finish;
pub(crate) mod read_only;
