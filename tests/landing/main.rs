//! Landings: merges, strategies, pushes, the queue, and conflicts.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod auto_merge;
mod auto_merge_status;
mod autostash_races;
mod concurrent_merges;
mod conflict_agent;
mod landing_messages;
mod landing_order;
mod landing_refusals;
mod manual_landing;
mod merge;
mod merge_autostash;
mod merge_checked_out_base;
mod merge_drivers;
mod merge_forecast;
mod merge_git_settings;
mod merge_hooks;
mod merge_local_changes;
mod merge_push;
mod merge_stop;
mod merge_uncommitted;
mod pick;
mod pinned_plan;
mod pull_request;
mod queue;
#[cfg(target_os = "linux")]
mod record_reads;
mod resolve;
mod resolve_modes;
mod strategies;
