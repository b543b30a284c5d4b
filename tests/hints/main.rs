//! Hints: each is followed in the scene that prints it, and does what it promises.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod agents;
mod answers;
mod approvals;
mod batches;
mod cut_off_processes;
mod drafts;
mod failures;
mod git_state;
mod landing;
mod lanes;
mod permissions;
mod plans;
mod requests;
mod runs;
mod scenes;
mod usage;
mod windows;
