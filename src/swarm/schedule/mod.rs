//! Owns the decisions of a batch: which task runs when, in which lane and from where, and what becomes of the others.
//!
//! It is a function and nothing else: no files, processes, clock or chance. Whoever runs a batch writes each [`Event`] down
//! first, then gives it to [`State::on`], then carries out the [`Action`]s that it answers, in their order. So all that is known
//! here can be had again from the events. After a death that is done with what was written, and then [`Event::TakenUp`] says
//! which runs were found; it answers with all that is still owed. Actions may therefore come twice and have to be harmless
//! then; a run may not start twice, and does not, since it is known by its task and its attempt.
//!
//! # What holds
//!
//! - A run's base has the work of all that its task depends on: it landed, was there already, or, where a phase or a whole plan
//!   lands together, lies below it in the same lane.
//! - Never more runs than `max_parallel`, nor than there is room for over all batches. Who resolves a conflict is no run.
//! - Tasks of one stage whose files overlap, over others too, share a lane, one after the other; not so two of which one depends
//!   on the other, since that starts when the first has landed.
//! - Skipped is who depends on a task that has no result to build on, directly or not, and nobody else.
//! - When everything that was begun ends, the batch is over, or paused, or waits for others: for room, or for a task that
//!   another batch has.

mod action;
mod course;
mod ends;
mod event;
mod graph;
mod landing;
mod lane;
mod layout;
mod options;
mod outlook;
mod place;
mod skips;
mod standing;
mod start;
mod state;
mod taken_back;
mod takeover;
mod tally;
#[cfg(test)]
mod tests;
mod work;

pub(crate) use action::{Action, Base, Outcome, PauseReason};
pub(crate) use event::{End, Event};
pub(crate) use options::{MergePolicy, Mode, Options, Spread, TaskPolicy};
pub(crate) use outlook::Now;
pub(crate) use standing::{Fate, Left, Why};
pub(crate) use state::State;
pub(crate) use work::{Flaw, Phase, Task, Work};
