//! Start of the scheduler process of a batch.

use std::fs::File;

use proq_base::fail_points;
use proq_base::process::command_builder::CommandBuilder;
use proq_base::process::strays::{RUN_CONTEXT_VARS, RUN_MARK_VAR};
use proq_store::base::batch_id::BatchId;
use proq_store::locks::lock::{LockGuard, LockName};

use super::runner;
use crate::agent::launch::start_supervisor;
use crate::agent::supervise::supervisor_start;
use crate::lane::Project;
use crate::swarm::Error;
use crate::swarm::batch::error::BatchError;

/// Result of resuming a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResumeOutcome {
    /// Another scheduler process is already running for the batch.
    AlreadyRunning,
    /// A scheduler process was started.
    Started,
}

/// Starts the scheduler process of a batch and returns once it runs. `lock` is the batch's lock; it passes to
/// the new process without a gap.
///
/// # Errors
/// Fails when the process cannot be started.
pub fn start_scheduler(project: &Project, id: &BatchId, lock: LockGuard) -> Result<(), Error> {
    let log = project.store.layout().batch_scheduler_log(id);
    let process = CommandBuilder::new(project.git_proq_path()?, project.repo.command_dir())
        .args(["_swarm", "--batch", id.as_str()])
        .without_vars(RUN_CONTEXT_VARS)
        .env(RUN_MARK_VAR, "")
        .stdin(lock.into_file())
        .with_stderr_file(File::options().append(true).create(true).open(&log).ok());
    match start_supervisor::spawn_and_await_start(process, &log, "scheduler") {
        None => Ok(()),
        Some(reason) => Err(BatchError::SchedulerNotStarted { id: id.clone(), reason }.into()),
    }
}

/// Runs a batch in this process, which [`start_scheduler`] has started, until the batch is over or paused. The
/// batch's lock is on standard input.
///
/// # Errors
/// Fails when the lock cannot be taken over or the batch cannot be read.
pub fn run_scheduler(project: &Project, id: &BatchId) -> Result<(), Error> {
    fail_points::hit("scheduler.begun");
    let lock = supervisor_start::adopt_lock_from_stdin(&project.store, &LockName::Batch(id.clone()))?;
    runner::run_batch(project, id, lock, supervisor_start::report_started)
}

/// Starts the scheduler process of a batch unless one is already running.
///
/// # Errors
/// Fails when the lock cannot be taken, or like [`start_scheduler`].
pub fn resume_scheduler(project: &Project, id: &BatchId) -> Result<ResumeOutcome, Error> {
    match project.store.locks().try_acquire(&LockName::Batch(id.clone()))? {
        None => Ok(ResumeOutcome::AlreadyRunning),
        Some(lock) => start_scheduler(project, id, lock).map(|()| ResumeOutcome::Started),
    }
}
