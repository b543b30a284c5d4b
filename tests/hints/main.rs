//! Hints: each is followed in the scene that prints it, and does what it promises.

mod agents;
mod answers;
mod approvals;
mod batches;
mod drafts;
mod git_state;
mod landing;
mod lanes;
mod plans;
mod requests;
mod runs;
mod scenes;
mod usage;
