//! Scheduler of a batch: which task runs when, in which lane and from which commit, and what happens to the
//! other tasks.
//!
//! It is a pure function, without files, processes, clock or randomness. The process that runs a batch writes
//! each [`ScheduleEvent`](event::ScheduleEvent) to the log first, then passes it to
//! [`State::handle`](state::State::handle), then carries out the returned [`Action`](action::Action)s in
//! their order. The state can therefore be rebuilt from the events. After a crash, the log is replayed. Then
//! [`ScheduleEvent::BatchTakenOver`](event::ScheduleEvent::BatchTakenOver) reports which runs were found, and
//! the scheduler returns all actions that are still due. Actions may therefore come twice and must be
//! idempotent. A run must not start twice, and does not, since its task and attempt identify it.
//!
//! # Invariants
//!
//! - The base of a run contains the work of all dependencies of its task. That work landed, was there
//!   already, or, where a phase or an entire plan lands together, lies below the run in the same lane.
//! - There are never more runs than `max_parallel`, nor more than the capacity over all batches allows. An
//!   agent that resolves a conflict does not count as a run.
//! - Tasks of one stage whose files overlap, directly or through other tasks, share a lane and run one after
//!   the other. This does not apply to two tasks of which one depends on the other, since the dependent
//!   starts when its dependency has landed.
//! - A task is skipped exactly if it depends, directly or not, on a task that has no result to build on.
//! - When everything that was started has ended, the batch is finished or paused, or waits for others: for
//!   capacity, or for a task that another batch has claimed.

pub mod action;
pub mod batch_status;
pub mod counters;
pub mod event;
pub mod landing;
pub mod lane;
pub mod lane_choice;
pub mod lane_release;
pub mod layout;
pub mod options;
pub mod run_end;
pub mod skipping;
pub mod start;
pub mod state;
pub mod status_queries;
pub mod takeover;
pub mod task_phase;
#[cfg(test)]
mod tests;
pub mod workload;
