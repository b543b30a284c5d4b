//! Claims of a batch on its tasks, which keep other batches from running them, and the failure counts that
//! batches share.

use std::collections::BTreeSet;

use proq_plan::schedule::event::ScheduleEvent;
use proq_plan::schedule::task_phase::TaskOutcome;
use proq_store::base::batch_id::BatchId;
use proq_store::locks::lock::LockName;

use super::runner::Runner;
use crate::swarm::Error;
use crate::swarm::batch::ledger::{Ledger, TaskKey};
use crate::swarm::batch::log::EventFacts;
use crate::swarm::batch::record::Batch;
use crate::swarm::batch::scheduler::wake_other_schedulers;

impl Runner<'_> {
    /// Claims all tasks that have not landed yet, except those that another batch has claimed.
    pub(super) fn claim_open_tasks(&mut self) -> Result<(), Error> {
        let is_landed = |task: &usize| {
            let item = &self.batch.tasks[*task];
            item.done
                || matches!(
                    self.state.task_outcome(*task),
                    Some(TaskOutcome::Landed | TaskOutcome::AlreadyDone)
                )
        };
        let open: Vec<usize> = (0..self.batch.tasks.len()).filter(|task| !is_landed(task)).collect();
        self.claim_tasks(&open)
    }

    /// Claims the tasks that another batch had claimed, if it has released them.
    pub(super) fn claim_released_tasks(&mut self) -> Result<(), Error> {
        let claimed_elsewhere: Vec<usize> = self.log_summary.claimed_elsewhere.keys().copied().collect();
        if claimed_elsewhere.is_empty() { Ok(()) } else { self.claim_tasks(&claimed_elsewhere) }
    }

    /// Claims tasks, and logs which of them another batch has claimed or has released.
    pub(super) fn claim_tasks(&mut self, tasks: &[usize]) -> Result<(), Error> {
        let keys: Vec<TaskKey> = tasks.iter().map(|task| self.batch.tasks[*task].key()).collect();
        let mut holders = Ledger::claim(&self.project.store, self.batch.id(), &keys)?;
        if self.release_finished_batches(&holders)? {
            holders = Ledger::claim(&self.project.store, self.batch.id(), &keys)?;
        }
        for (task, holder) in tasks.iter().copied().zip(holders) {
            match (self.log_summary.claimed_elsewhere.get(&task), &holder) {
                (known_holder, Some(_)) if known_holder != Some(&holder) => {
                    let facts = EventFacts { claiming_batch: holder, ..EventFacts::default() };
                    self.pending_events.push_back((ScheduleEvent::ClaimedElsewhere { task }, facts));
                }
                (Some(_), None) => {
                    self.pending_events
                        .push_back((ScheduleEvent::ClaimEnded { task }, EventFacts::default()));
                }
                _ => {}
            }
        }
        self.process_pending_events()
    }

    /// Releases the claims of batches that have finished and whose scheduler was killed before it released
    /// them. Returns whether there were any.
    fn release_finished_batches(&self, holders: &[Option<BatchId>]) -> Result<bool, Error> {
        let holders: BTreeSet<&BatchId> = holders.iter().flatten().collect();
        let mut has_released = false;
        for id in holders {
            // While this lock is held, no process can resume the batch.
            let Some(_lock) = self.project.store.locks().try_acquire(&LockName::Batch(id.clone()))? else {
                continue;
            };
            let is_finished = match Batch::load(&self.project.store, id) {
                Ok(batch) => {
                    batch.fold_state(&batch.read_log_lines(&self.project.store)?).final_outcome().is_some()
                }
                Err(_) => !self.project.store.layout().batch(id).exists(),
            };
            if is_finished {
                Ledger::release_all(&self.project.store, id)?;
                has_released = true;
            }
        }
        Ok(has_released)
    }

    /// Releases the claim on a task and wakes the schedulers of other batches.
    pub(super) fn release_task(&mut self, task: usize) -> Result<(), Error> {
        Ledger::release(&self.project.store, self.batch.id(), &[self.batch.tasks[task].key()])?;
        wake_other_schedulers(&self.project.store, self.batch.id());
        Ok(())
    }

    /// Saves the current failure counts of the tasks of an event, for other batches.
    pub(super) fn save_failure_counts(&mut self, event: &ScheduleEvent) -> Result<(), Error> {
        let tasks = match event {
            ScheduleEvent::RunEnded { task, .. } | ScheduleEvent::Retry { task } => vec![*task],
            ScheduleEvent::Landed { tasks } => tasks.clone(),
            // A kill may have prevented some counts from being written.
            ScheduleEvent::BatchTakenOver { .. } => (0..self.batch.tasks.len()).collect(),
            _ => return Ok(()),
        };
        let ledger = Ledger::read(&self.project.store)?;
        for task in tasks {
            let key = self.batch.tasks[task].key();
            let is_landed =
                matches!(self.state.task_outcome(task), Some(TaskOutcome::Landed | TaskOutcome::AlreadyDone));
            let failures = if is_landed { 0 } else { self.state.failures(task) };
            if ledger.failures(&key) != failures {
                Ledger::set_failures(&self.project.store, &key, failures)?;
            }
        }
        Ok(())
    }
}
