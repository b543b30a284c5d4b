//! Owns the tasks that a batch has, so that no other runs them, and what it tells others of failures.

use super::runner::Runner;
use crate::swarm::batch::{BatchTask, Facts, Key, wake_others};
use crate::swarm::schedule::{Event, Fate};
use crate::swarm::{Error, Ledger};

/// What a task is known by, whichever batch it is in.
pub(super) fn key_of(task: &BatchTask) -> Key {
    Key { source: task.file.clone(), task: task.name.clone() }
}

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

    fn claim_these(&mut self, tasks: &[usize]) -> Result<(), Error> {
        let keys: Vec<Key> = tasks.iter().map(|task| key_of(&self.batch.tasks[*task])).collect();
        let others = Ledger::claim(self.project, self.batch.id(), &keys)?;
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

    /// Lets other batches have a task.
    pub(super) fn release(&mut self, task: usize) -> Result<(), Error> {
        Ledger::release(self.project, self.batch.id(), &[key_of(&self.batch.tasks[task])])?;
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
            let key = key_of(&self.batch.tasks[task]);
            let there = matches!(self.state.fate(task), Some(Fate::Landed | Fate::Already));
            let failures = if there { 0 } else { self.state.failures(task) };
            if ledger.failures(&key) != failures {
                Ledger::set_failures(self.project, &key, failures)?;
            }
        }
        Ok(())
    }
}
