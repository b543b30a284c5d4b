//! Owns when work lands, and what becomes of what does not.

use std::collections::BTreeSet;

use super::action::Action;
use super::course::Course;
use super::lane::Use;
use super::options::Mode;
use super::standing::{Standing, Why};
use super::state::State;

impl State {
    /// Lands what is due: each task at once, or a stage when all of it is done, or nothing more of it will be.
    pub(super) fn land_due(&mut self) {
        if matches!(self.course, Course::New | Course::Stopping { .. } | Course::Over(_)) {
            return;
        }
        for task in std::mem::take(&mut self.resolved) {
            if self.standing(task) == Standing::Done && !self.land(&[task]) {
                self.resolved.insert(task);
            }
        }
        let stages: Vec<usize> = self.tally.done.keys().copied().collect();
        for stage in stages {
            let tasks: Vec<usize> = self.tally.done[&stage].iter().copied().collect();
            let busy = self.tally.busy[stage];
            let through = match self.course {
                Course::Winding => busy.under_way == 0,
                _ => busy.under_way == 0 && busy.waiting == 0,
            };
            if self.options.mode == Mode::Continuous {
                for task in tasks {
                    self.land(&[task]);
                }
            } else if through {
                self.land(&tasks);
            }
        }
    }

    /// Lands what is done of stages that are not, since nothing else can go on. Says whether there was any.
    pub(super) fn land_early(&mut self) -> bool {
        let done: Vec<Vec<usize>> = self.tally.done.values().map(|d| d.iter().copied().collect()).collect();
        let mut any = false;
        for tasks in done {
            any |= self.land(&tasks);
        }
        any
    }

    /// Lands those of these tasks whose dependencies are there, or land with them. Says whether there are any.
    fn land(&mut self, tasks: &[usize]) -> bool {
        let mut order = tasks.to_vec();
        // The order in which they ended: in a lane the lower ones first, and each behind what it depends on.
        order.sort_unstable_by_key(|task| self.tasks[*task].ended);
        let mut with = BTreeSet::new();
        order.retain(|task| {
            let after = &self.work.tasks()[*task].after;
            let fits = after.iter().all(|before| self.standing(*before).is_there() || with.contains(before));
            if fits {
                with.insert(*task);
            }
            fits
        });
        if order.is_empty() {
            return false;
        }
        let landing = self.landings;
        self.landings += 1;
        for task in &order {
            self.set(*task, Standing::Landing(landing));
        }
        self.out.push(Action::Land { landing, tasks: order });
        true
    }

    pub(super) fn have_landed(&mut self, tasks: &[usize]) {
        let is_landing =
            |t: &usize| self.tasks.get(*t).is_some_and(|slip| matches!(slip.standing, Standing::Landing(_)));
        let tasks: Vec<usize> = tasks.iter().copied().filter(is_landing).collect();
        if tasks.is_empty() {
            return;
        }
        self.tips += 1;
        for task in tasks {
            self.tasks[task].landed = self.tips;
            self.settle(task, Standing::Landed);
        }
    }

    /// A task cannot land as it is: by a conflict, or for good. What depends on it and was to land with it is left for later.
    pub(super) fn does_not_land(&mut self, task: usize, why: Option<Why>) {
        let Some(Standing::Landing(landing)) = self.tasks.get(task).map(|slip| slip.standing) else { return };
        let mut left = vec![task];
        while let Some(below) = left.pop() {
            for other in self.work.graph().dependents(below).to_vec() {
                if self.standing(other) == Standing::Landing(landing) {
                    self.set(other, Standing::Done);
                    left.push(other);
                }
            }
        }
        if let Some(lane) = self.tasks[task].lane {
            self.turn(lane, Use::Aside);
        }
        self.tasks[task].again &= why == Some(Why::Check);
        match why {
            Some(why) => self.settle(task, Standing::Failed(why)),
            None if self.options.resolve => self.set(task, Standing::Conflict { asked: false }),
            None => self.settle(task, Standing::Failed(Why::Conflict)),
        }
    }

    /// Sends somebody to each conflict that nobody was sent to. It takes no place of a run.
    pub(super) fn ask_for_resolutions(&mut self) {
        if !(self.may_spend() || self.course == Course::Winding && self.is_within_budget()) {
            return;
        }
        for task in std::mem::take(&mut self.tally.conflicts) {
            self.set(task, Standing::Conflict { asked: true });
            self.out.push(Action::Resolve { task });
        }
    }

    pub(super) fn is_resolved(&mut self, task: usize) {
        let Some(slip) = self.tasks.get_mut(task) else { return };
        let was_given_up = matches!(slip.standing, Standing::Failed(Why::Conflict | Why::Check));
        if !was_given_up && !matches!(slip.standing, Standing::Conflict { .. }) {
            return;
        }
        slip.stopping = None;
        self.lands_after_all(task);
        if was_given_up {
            self.goes_on_after_all(task);
        }
    }

    /// Has a task land by itself, unless what it depends on has no result.
    fn lands_after_all(&mut self, task: usize) {
        self.resolved.insert(task);
        if !self.skip_if_in_vain(task, true) {
            self.set(task, Standing::Done);
        }
    }

    /// Goes on with a task that had come to its end, and with those that were skipped on its account.
    fn goes_on_after_all(&mut self, task: usize) {
        self.out.push(Action::MarkWaiting { task });
        self.take_skips_back(None);
        self.reopen();
    }

    /// Lands what is in the lane of a task whose run came to nothing, unless another one has used that lane since.
    pub(super) fn is_finished(&mut self, task: usize) {
        let Some(lane) = self.tasks.get(task).and_then(|slip| slip.lane) else { return };
        let came_to_nothing =
            matches!(self.standing(task), Standing::Failed(Why::Run(_)) | Standing::SetAside);
        if !came_to_nothing || self.lanes[lane].remains != Some(task) {
            return;
        }
        self.change_lane(lane, |it| it.remains = None);
        self.turn(lane, Use::Aside);
        self.ends += 1;
        (self.tasks[task].ended, self.tasks[task].failures) = (self.ends, 0);
        self.lands_after_all(task);
        self.goes_on_after_all(task);
    }

    /// Lands a task once more whose checks failed, as it is.
    pub(super) fn check_again(&mut self, task: usize) {
        let Some(slip) = self.tasks.get_mut(task) else { return };
        if slip.standing == Standing::Failed(Why::Check) {
            slip.again = true;
            self.is_resolved(task);
        }
    }

    pub(super) fn is_given_up(&mut self, task: usize) {
        let Some(slip) = self.tasks.get_mut(task) else { return };
        if !matches!(slip.standing, Standing::Conflict { .. }) {
            return;
        }
        if slip.stopping.take().is_some() {
            // Whoever was at it was stopped; somebody will be sent again if the batch goes on.
            self.set(task, Standing::Conflict { asked: false });
        } else {
            self.settle(task, Standing::Failed(Why::Conflict));
        }
    }
}
