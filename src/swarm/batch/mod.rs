//! Owns what is kept of a batch: one execution of a plan, in a folder of its own below `proq/batches/`.
//!
//! - `batch.toml`, a [`BatchRecord`]: where it lands, how it is to be run. It is written last and hardly ever changes.
//! - `tasks.json`, a list of [`BatchTask`]: what is to be done, as the plan had it when it was read. A task is its place in it.
//! - `plan.toml`, the same plan in the form of [`written`](super::written), and `sources/`, copies of the files that it came from.
//! - `log.jsonl`, the [`Log`]: a [`Line`] for each event that the scheduler took in, with its facts, in order. It is written and
//!   synced before the event counts, so that all that is known of a batch can be had from it; a report needs nothing else.
//! - `landed/N.toml`: that task N landed, written by the very step that landed it (`merge/parts.rs`).
//! - `criteria.json`, a [`Proof`]: what was found out in the end of the plan's criteria; `criteria/N.log`, what a command wrote.
//! - `wishes/`: what people want of it, until its scheduler has taken it up ([`Wish`]).
//! - `scheduler.toml`: who goes on with it. It is true for as long as the batch's lock is held.
//!
//! Beside the batches lies the [`Ledger`]: which of them has which task, and how often each has failed.

mod error;
mod from_plan;
mod ledger;
mod log;
mod make;
mod proof;
mod record;
mod scheduler;
mod task;
mod wish;

pub(crate) use error::BatchError;
pub(crate) use from_plan::{Defaults, file_of, phases_of, tasks_of};
pub(crate) use ledger::{Key, Ledger};
pub(crate) use log::{Brought, Entry, Facts, Line, Log, LogTail, read_log};
pub(crate) use make::{NewBatch, all, find, make};
pub(crate) use proof::{Met, Proof};
pub(crate) use record::{Batch, BatchRecord};
pub(crate) use scheduler::{SchedulerRecord, runs, wake, wake_others};
pub(crate) use task::{BatchTask, read_tasks};
pub(crate) use wish::{Wish, WishKind, open_wishes};
