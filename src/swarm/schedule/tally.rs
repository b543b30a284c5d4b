//! Owns counts over all tasks, so that no event needs a look at each of them.

use std::collections::{BTreeMap, BTreeSet};

use super::standing::Standing;

/// How many tasks are how far.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Tally {
    /// Those that take a place for runs.
    pub(super) under_way: usize,
    /// Those that are landing.
    pub(super) landing: usize,
    /// Those that have not come to an end.
    pub(super) unsettled: usize,
    /// Those that landed or were done before.
    pub(super) there: usize,
    /// Those whose conflict somebody was sent to resolve.
    pub(super) resolving: BTreeSet<usize>,
    /// Those whose conflict nobody was sent to resolve yet.
    pub(super) conflicts: BTreeSet<usize>,
    /// By stage, those whose work is to land.
    pub(super) done: BTreeMap<usize, BTreeSet<usize>>,
    /// By stage, those that are to be run or under way.
    pub(super) busy: Vec<Busy>,
    /// By stage that is not through, those that are not.
    pub(super) open: BTreeMap<usize, usize>,
    /// By family, those that have not come to an end.
    pub(super) families: Vec<usize>,
    /// The same by bundle.
    pub(super) bundles: Vec<usize>,
}

/// Tasks of a stage.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Busy {
    /// To be run.
    pub(super) waiting: usize,
    /// Taking a place for runs.
    pub(super) under_way: usize,
}

/// Who is counted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Who {
    pub(super) task: usize,
    pub(super) stage: usize,
    pub(super) family: usize,
    pub(super) bundle: usize,
}

impl Tally {
    /// Counts a task in.
    pub(super) fn enter(&mut self, who: Who, standing: Standing) {
        let busy = &mut self.busy[who.stage];
        busy.waiting += usize::from(standing == Standing::Waiting);
        busy.under_way += usize::from(standing.is_under_way());
        self.under_way += usize::from(standing.is_under_way());
        self.landing += usize::from(matches!(standing, Standing::Landing(_)));
        self.there += usize::from(standing.is_there());
        if !standing.is_settled() {
            self.unsettled += 1;
            self.families[who.family] += 1;
            self.bundles[who.bundle] += 1;
        }
        if !standing.is_past() {
            *self.open.entry(who.stage).or_default() += 1;
        }
        match standing {
            Standing::Done => {
                self.done.entry(who.stage).or_default().insert(who.task);
            }
            Standing::Conflict { asked: true } => {
                self.resolving.insert(who.task);
            }
            Standing::Conflict { asked: false } => {
                self.conflicts.insert(who.task);
            }
            _ => {}
        }
    }

    /// Counts a task out again.
    pub(super) fn leave(&mut self, who: Who, standing: Standing) {
        let busy = &mut self.busy[who.stage];
        busy.waiting -= usize::from(standing == Standing::Waiting);
        busy.under_way -= usize::from(standing.is_under_way());
        self.under_way -= usize::from(standing.is_under_way());
        self.landing -= usize::from(matches!(standing, Standing::Landing(_)));
        self.there -= usize::from(standing.is_there());
        if !standing.is_settled() {
            self.unsettled -= 1;
            self.families[who.family] -= 1;
            self.bundles[who.bundle] -= 1;
        }
        if !standing.is_past()
            && let Some(open) = self.open.get_mut(&who.stage)
        {
            *open -= 1;
            if *open == 0 {
                self.open.remove(&who.stage);
            }
        }
        match standing {
            Standing::Done => {
                if let Some(done) = self.done.get_mut(&who.stage) {
                    done.remove(&who.task);
                    if done.is_empty() {
                        self.done.remove(&who.stage);
                    }
                }
            }
            Standing::Conflict { .. } => {
                self.resolving.remove(&who.task);
                self.conflicts.remove(&who.task);
            }
            _ => {}
        }
    }

    /// The first stage that is not through.
    pub(super) fn first_open_stage(&self) -> Option<usize> {
        self.open.keys().next().copied()
    }

    /// Whether nothing was begun that will end by itself.
    pub(super) fn is_quiet(&self) -> bool {
        self.under_way == 0 && self.landing == 0 && self.resolving.is_empty()
    }
}
