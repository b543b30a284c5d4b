//! Owns the tasks that a batch has, so that no other runs them, and what it tells others of failures.

use std::collections::BTreeSet;

use super::runner::Runner;
use crate::store::LockName;
use crate::swarm::batch::{Batch, Facts, Key, wake_others};
use crate::swarm::schedule::{Event, Fate};
use crate::swarm::{Error, Ledger};

impl Runner<'_> {
    /// Takes all tasks that are not there yet, as far as no other batch has them.
    pub(super) fn claim(&mut self) -> Result<(), Error> {
        let there = |task: &usize| {
            let it = &self.batch.tasks[*task];
            it.done || matches!(self.state.fate(*task), Some(Fate::Landed | Fate::Already))
        };
        let open: Vec<usize> = (0..self.batch.tasks.len()).filter(|task| !there(task)).collect();
        self.claim_these(&open)
    }

    /// Takes those that another batch had, if it does not any more.
    pub(super) fn claim_again(&mut self) -> Result<(), Error> {
        let others: Vec<usize> = self.known.elsewhere.keys().copied().collect();
        if others.is_empty() { Ok(()) } else { self.claim_these(&others) }
    }

    pub(super) fn claim_these(&mut self, tasks: &[usize]) -> Result<(), Error> {
        let keys: Vec<Key> = tasks.iter().map(|task| self.batch.tasks[*task].key()).collect();
        let mut others = Ledger::claim(self.project, self.batch.id(), &keys)?;
        if self.free_those_of_the_past(&others)? {
            others = Ledger::claim(self.project, self.batch.id(), &keys)?;
        }
        for (task, other) in tasks.iter().copied().zip(others) {
            match (self.known.elsewhere.get(&task), other) {
                (before, Some(other)) if before != Some(&other) => {
                    let facts = Facts { batch: Some(other), ..Facts::default() };
                    self.due.push_back((Event::Claimed { task }, facts));
                }
                (Some(_), None) => self.due.push_back((Event::Unclaimed { task }, Facts::default())),
                _ => {}
            }
        }
        self.take_due()
    }

    /// Lets go of what batches have that are over, and whose scheduler was killed before it did that itself. Whether there
    /// was any.
    fn free_those_of_the_past(&self, holders: &[Option<String>]) -> Result<bool, Error> {
        let holders: BTreeSet<&String> = holders.iter().flatten().collect();
        let mut any = false;
        for id in holders {
            // Nobody begins to go on with it meanwhile.
            let Some(_lock) = self.project.store.locks().try_take(&LockName::Batch(id.clone()))? else {
                continue;
            };
            let is_over = match Batch::load(self.project, id) {
                Ok(batch) => batch.state(&batch.log(self.project)?).outcome_if_over().is_some(),
                Err(_) => !self.project.store.layout().batch(id).exists(),
            };
            if is_over {
                Ledger::release_all(self.project, id)?;
                any = true;
            }
        }
        Ok(any)
    }

    /// Lets other batches have a task.
    pub(super) fn release(&mut self, task: usize) -> Result<(), Error> {
        Ledger::release(self.project, self.batch.id(), &[self.batch.tasks[task].key()])?;
        wake_others(self.project, self.batch.id());
        Ok(())
    }

    /// Keeps for other batches how often a task has failed by now.
    pub(super) fn count_failures(&mut self, event: &Event) -> Result<(), Error> {
        let tasks = match event {
            Event::Ended { task, .. } | Event::Retry { task } => vec![*task],
            Event::Landed { tasks } => tasks.clone(),
            // Those that were not written any more before a kill.
            Event::TakenUp { .. } => (0..self.batch.tasks.len()).collect(),
            _ => return Ok(()),
        };
        let ledger = Ledger::read(self.project)?;
        for task in tasks {
            let key = self.batch.tasks[task].key();
            let there = matches!(self.state.fate(task), Some(Fate::Landed | Fate::Already));
            let failures = if there { 0 } else { self.state.failures(task) };
            if ledger.failures(&key) != failures {
                Ledger::set_failures(self.project, &key, failures)?;
            }
        }
        Ok(())
    }
}
