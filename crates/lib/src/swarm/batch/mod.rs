//! Files of a batch: one execution of a plan, in a folder below `proq/batches/`.
//!
//! - `batch.toml`, a [`BatchRecord`](record::BatchRecord): the branch it lands on and the options it runs
//!   with. It is written last and hardly ever changes.
//! - `tasks.json`, a list of [`BatchTask`](task::BatchTask): the tasks as the plan had them when it was read.
//!   A task's number is its index in the list.
//! - `plan.toml`, the plan in the form that [`plan_to_toml`](proq_plan::toml_plan::write::plan_to_toml)
//!   returns, and `sources/`, copies of the files that it was read from.
//! - `log.jsonl`, the `BatchLog`: a [`LogLine`](log::LogLine) for each event that the
//!   scheduler received, with its details, in order. A line is written and synced before its event takes
//!   effect. The state of a batch follows from this log alone, so a report needs no other file.
//! - `landed/N.toml`: records that task N landed, written by the step that landed it
//!   (`merge/land/parts.rs`).
//! - `criteria.json`, a [`CriteriaReport`](criteria_report::CriteriaReport): whether the plan's criteria are
//!   met; `criteria/N.log`, the output of a criterion's command.
//! - `wishes/`: the [`ControlRequest`](control_request::ControlRequest)s of users, until the scheduler has
//!   processed them.
//! - `scheduler.toml`: the process that schedules the batch. It is valid while the batch's lock is held.
//!
//! One [`Ledger`](ledger::Ledger) for all batches records which batch has claimed which task, and how often
//! each task has failed.

pub mod control_request;
pub mod create;
pub mod criteria_report;
pub mod error;
pub mod folded_batch;
pub mod lanes;
pub mod ledger;
pub mod log;
pub mod log_summary;
pub mod plan_commands;
pub mod plan_tasks;
pub mod record;
pub mod scheduler;
pub mod task;
