//! Safety: kills, races, full disks, damaged files, odd start states, and random histories.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod checkout_states;
mod clock;
mod concurrency;
mod damaged_state;
mod data_loss;
mod failing_calls;
mod full_disk;
mod generated_merges;
mod git_failures;
#[cfg(debug_assertions)]
mod golden;
mod histories;
mod killed_processes;
mod mass_deletion;
mod races;
#[cfg(debug_assertions)]
mod recovery;
mod sync;
#[cfg(debug_assertions)]
mod trace;
mod unreadable;
mod unwritable;
