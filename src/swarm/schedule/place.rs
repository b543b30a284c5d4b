//! Owns the choice of a lane for a task.

use super::options::Spread;
use super::state::State;

/// Where a task is to be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In this lane.
    Lane(usize),
    /// In one that is to be made.
    New,
}

impl State {
    /// Where a task can be run now, if anywhere. A bundle stays in its lane. A task that is alone in its own prefers the lane that
    /// it has been in, but does not wait for it.
    pub(super) fn place(&self, task: usize) -> Option<Place> {
        let bundle = self.layout.bundle[task];
        if let Some(lane) = self.bound.get(&bundle) {
            if self.fits(task, *lane) {
                return Some(Place::Lane(*lane));
            }
            if self.layout.sizes[bundle] > 1 {
                return None;
            }
        }
        let fitting = || self.open.iter().copied().filter(|lane| self.fits(task, *lane));
        let new = self.work.tasks()[task].after.iter().all(|before| self.standing(*before).is_there());
        let new = new.then_some(Place::New);
        let spare = new.filter(|_| self.open.len() < self.options.max_parallel.max(1));
        match self.options.spread {
            Spread::AffinityFirst => {
                let kin = |lane: &usize| {
                    let it = &self.lanes[*lane];
                    it.unlanded == 0 && it.family == self.layout.family[task] && !self.is_spoken_for(*lane)
                };
                fitting().filter(kin).min_by_key(|lane| self.is_foreign(task, *lane)).map(Place::Lane).or(new)
            }
            Spread::RoundRobin => spare.or_else(|| {
                let next = |lane: &usize| (*lane <= self.last_lane, *lane);
                fitting().min_by_key(next).map(Place::Lane)
            }),
            Spread::LoadBalanced => spare.or_else(|| {
                let least = |lane: &usize| (self.lanes[*lane].load, self.is_foreign(task, *lane), *lane);
                fitting().min_by_key(least).map(Place::Lane)
            }),
        }
    }

    /// Whether the tasks of a bundle wait for one of them, or for others in its lane.
    pub(super) fn is_occupied(&self, bundle: usize) -> bool {
        self.layout.sizes[bundle] > 1
            && self.bound.get(&bundle).is_some_and(|lane| !self.lanes[*lane].is_free())
    }

    /// Whether the task could start in this lane now: nothing happens there, and what the task depends on is below. What has
    /// landed later than the lane's work began is not, as long as that has not landed itself.
    fn fits(&self, task: usize, lane: usize) -> bool {
        let it = &self.lanes[lane];
        let after = &self.work.tasks()[task].after;
        if !it.is_free() {
            return false;
        }
        if it.unlanded == 0 {
            return after.iter().all(|before| self.standing(*before).is_there());
        }
        let is_below = |before: &usize| {
            if self.standing(*before).is_there() {
                self.tasks[*before].landed <= it.base
            } else {
                self.holds(*before, lane)
            }
        };
        // All work in a lane that has not landed is of one stage.
        let top = it.tasks.iter().rev().find(|other| self.holds(**other, lane));
        top.is_none_or(|top| self.layout.stage[*top] == self.layout.stage[task]) && after.iter().all(is_below)
    }

    /// Whether a bundle waits that has to go on in this lane.
    fn is_spoken_for(&self, lane: usize) -> bool {
        self.lanes[lane].tasks.iter().any(|task| {
            let bundle = self.layout.bundle[*task];
            self.bound.get(&bundle) == Some(&lane) && self.tally.bundles[bundle] > 0
        })
    }

    /// Whether the task is for another agent than the last one in the lane was.
    fn is_foreign(&self, task: usize, lane: usize) -> bool {
        let agent = |task: usize| &self.work.tasks()[task].agent;
        self.lanes[lane].tasks.last().is_some_and(|last| agent(*last) != agent(task))
    }

    /// Whether a lane with nothing in it may be of use yet.
    pub(super) fn is_wanted(&self, lane: usize) -> bool {
        if self.tally.unsettled == 0 {
            return false;
        }
        let few = self.open.len() <= self.options.max_parallel.max(1);
        self.is_spoken_for(lane)
            || few
                && match self.options.spread {
                    Spread::AffinityFirst => self.tally.families[self.lanes[lane].family] > 0,
                    Spread::RoundRobin | Spread::LoadBalanced => true,
                }
    }
}
