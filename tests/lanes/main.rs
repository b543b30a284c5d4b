//! Lanes: creation, inspection, edits, removal, and what a person does to their folders.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod approve;
mod attempts;
mod broken_lane;
mod carry;
mod changes_outside_lane;
mod cleanup;
mod compare;
mod diff;
mod discard;
mod edit;
mod lane_arguments;
mod lane_location;
mod list;
#[cfg(target_os = "linux")]
mod list_reads;
mod misplaced_lanes;
mod misplaced_work;
mod open;
mod redispatch;
mod rename;
mod scope;
mod show;
mod spawn;
mod task;
