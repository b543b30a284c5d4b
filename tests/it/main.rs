//! Owns the tests through the real program: one file per command, all in one binary.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod agent_end;
mod agent_start;
mod bad_git;
mod bad_input;
mod carry;
mod cleanup;
mod concurrency;
mod config;
mod demo;
mod discard;
mod discovery;
mod doctor;
mod doctor_disk;
mod doctor_kept;
mod doctor_operations;
mod events;
mod failing_calls;
mod gc;
mod guard;
mod histories;
mod hooks;
mod library;
mod list;
mod logs;
mod losses;
mod manual;
mod merge;
mod merge_edges;
mod preview;
mod preview_by_hand;
mod preview_edges;
mod preview_identity;
mod property;
mod readme;
#[cfg(debug_assertions)]
mod recovery;
mod show;
mod snap;
mod snap_keep;
mod snapshot_setups;
mod snapshots;
mod spawn;
mod stop;
mod support;
mod undo;
