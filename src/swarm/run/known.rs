//! Owns what a batch's log says besides what the scheduler goes by: commits, lanes, costs.

use std::collections::{BTreeMap, BTreeSet};

use crate::git::Oid;
use crate::store::records::Cost;
use crate::swarm::batch::{Batch, Entry, Line};
use crate::swarm::schedule::{End, Event};

/// A task's own work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Work {
    /// The lane.
    pub(crate) lane: String,
    /// Where it begins there.
    pub(crate) from: Oid,
    /// Where it ends.
    pub(crate) to: Oid,
}

/// What is known by the log.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    /// Where the branch was after so many landings.
    pub(crate) tips: Vec<Oid>,
    /// The tasks that landed, each with the commit that it landed by, in order.
    pub(crate) landed: Vec<(usize, Oid)>,
    /// By task, the work of its last run that brought some.
    pub(crate) works: BTreeMap<usize, Work>,
    /// By task whose last run came to nothing, what that committed.
    pub(crate) tried: BTreeMap<usize, Work>,
    /// By such a task, the number of that run in its lane.
    pub(crate) last_runs: BTreeMap<usize, u32>,
    /// By task and attempt, what it cost; an agent that resolved a conflict has attempt nought.
    pub(crate) costs: BTreeMap<(usize, u32), Cost>,
    /// By task, the lane that it was in last.
    pub(crate) lanes: BTreeMap<usize, String>,
    /// By task, what was said last of how it went.
    pub(crate) details: BTreeMap<usize, String>,
    /// By task, what is to be known of its last run, which was done.
    pub(crate) endings: BTreeMap<usize, String>,
    /// Tasks that another batch has, and which.
    pub(crate) elsewhere: BTreeMap<usize, String>,
    /// The wishes that were heard.
    pub(crate) wishes: BTreeSet<String>,
    /// What was told last of room for runs.
    pub(crate) room: Option<usize>,
    /// Whether it has begun.
    pub(crate) begun: bool,
}

impl Known {
    /// What these lines say.
    pub(crate) fn of<'a>(batch: &Batch, lines: impl IntoIterator<Item = &'a Line>) -> Known {
        let mut known = Known { tips: vec![batch.record.start], ..Known::default() };
        lines.into_iter().for_each(|line| known.take(line));
        known
    }

    /// Takes one more line in.
    pub(crate) fn take(&mut self, line: &Line) {
        match line {
            Line::Entry(entry) => self.take_entry(entry),
            Line::Note { note, tasks, .. } => {
                self.details.extend(tasks.iter().map(|task| (*task, note.clone())));
            }
        }
    }

    fn take_entry(&mut self, entry: &Entry) {
        let facts = &entry.facts;
        self.wishes.extend(facts.wish.clone());
        if let Some(task) = task_of(&entry.event) {
            if let Some(lane) = &facts.lane {
                self.lanes.insert(task, lane.clone());
            }
            match &facts.detail {
                Some(detail) => drop(self.details.insert(task, detail.clone())),
                None => drop(self.details.remove(&task)),
            }
        }
        match &entry.event {
            Event::Begun => self.begun = true,
            Event::SetUpFailed { .. } => self.details.extend(facts.task.zip(facts.detail.clone())),
            Event::Slots { room } => self.room = *room,
            Event::Claimed { task } => {
                self.elsewhere.insert(*task, facts.batch.clone().unwrap_or_default());
            }
            Event::Unclaimed { task } => drop(self.elsewhere.remove(task)),
            Event::Ended { task, attempt, end } => {
                self.costs.extend(facts.cost.map(|cost| ((*task, *attempt), cost)));
                self.endings.remove(task);
                self.keep_try(*task, *end, entry);
                if *end == End::Done {
                    self.keep(*task, entry);
                    self.endings.extend(facts.detail.clone().map(|detail| (*task, detail)));
                }
            }
            Event::ConflictResolved { task } | Event::ConflictGivenUp { task } => {
                if let Some(cost) = facts.cost {
                    let sum = self.costs.entry((*task, 0)).or_insert(Cost { nanos: 0, estimated: false });
                    *sum = sum.plus(cost);
                }
                self.keep(*task, entry);
            }
            Event::Finished { task } => self.keep(*task, entry),
            Event::Landed { tasks } => {
                self.tips.extend(facts.tip);
                self.details.retain(|task, _| !tasks.contains(task));
                self.landed.retain(|(task, _)| facts.brought.iter().all(|brought| brought.task != *task));
                self.landed.extend(facts.brought.iter().map(|brought| (brought.task, brought.commit)));
            }
            Event::TakenBack { task, .. } => {
                self.tips.extend(facts.tip);
                self.landed.retain(|(landed, _)| landed != task);
            }
            _ => {}
        }
    }

    /// Keeps what an entry says of where a task's work is.
    fn keep(&mut self, task: usize, entry: &Entry) {
        let before = self.works.get(&task);
        let from = entry.facts.from.or(before.map(|work| work.from));
        let lane = entry.facts.lane.clone().or_else(|| before.map(|work| work.lane.clone()));
        if let (Some(lane), Some(from), Some(to)) = (lane, from, entry.facts.to) {
            self.works.insert(task, Work { lane, from, to });
        }
    }

    /// Keeps what a run that came to nothing has committed.
    fn keep_try(&mut self, task: usize, end: End, entry: &Entry) {
        let facts = &entry.facts;
        self.tried.remove(&task);
        self.last_runs.remove(&task);
        if let (End::Failed(_), Some(lane), Some(from)) = (end, &facts.lane, facts.from) {
            self.tried.insert(task, Work { lane: lane.clone(), from, to: facts.to.unwrap_or(from) });
            self.last_runs.extend(facts.run.map(|run| (task, run)));
        }
    }

    /// What all of it has cost so far, in billionths of a dollar.
    pub(crate) fn spent(&self) -> u64 {
        self.costs.values().fold(0, |sum, cost| sum.saturating_add(cost.nanos))
    }

    /// Where the branch was after so many landings.
    pub(crate) fn tip(&self, landings: u32) -> Option<Oid> {
        self.tips.get(landings as usize).or(self.tips.last()).copied()
    }
}

/// The one task that an event is about.
pub(crate) fn task_of(event: &Event) -> Option<usize> {
    match event {
        Event::Started { task, .. }
        | Event::Ended { task, .. }
        | Event::ConflictCaptured { task }
        | Event::ConflictResolved { task }
        | Event::CheckAgain { task }
        | Event::TakenBack { task, .. }
        | Event::Finished { task }
        | Event::ConflictGivenUp { task }
        | Event::CheckFailed { task }
        | Event::Claimed { task }
        | Event::Unclaimed { task }
        | Event::Retry { task } => Some(*task),
        Event::Begun
        | Event::TakenUp { .. }
        | Event::SetUp { .. }
        | Event::SetUpFailed { .. }
        | Event::Landed { .. }
        | Event::Pause
        | Event::Resume
        | Event::Abort { .. }
        | Event::Slots { .. }
        | Event::Spent { .. }
        | Event::BudgetSet { .. } => None,
    }
}
