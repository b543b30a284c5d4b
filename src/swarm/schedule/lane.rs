//! Owns what is known of a lane, and when it is needed no longer.

use super::action::Action;
use super::state::State;

/// What happens in a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// It is being set up, for this task.
    SettingUp(usize),
    /// Nothing.
    Idle,
    /// A run of this task.
    Run(usize),
    /// Nothing, ever again: what is in it could not land.
    Aside,
    /// It is not there any more.
    Gone,
}

/// One lane of the batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lane {
    /// What happens in it.
    pub(super) at: Use,
    /// The tasks that were run in it, in order.
    pub(super) tasks: Vec<usize>,
    /// How much work they were.
    pub(super) load: u64,
    /// The family of its first task.
    pub(super) family: usize,
    /// How many landings were below what is in it.
    pub(super) base: u32,
    /// How many of its tasks have work that has not landed.
    pub(super) unlanded: usize,
    /// How many of these are landing.
    pub(super) landing: usize,
    /// A run that came to nothing, whose work is on top.
    pub(super) remains: Option<usize>,
    /// It was said that it stays.
    pub(super) kept: bool,
}

impl Lane {
    /// Whether a run could start in it.
    pub(super) fn is_free(&self) -> bool {
        self.at == Use::Idle && self.landing == 0
    }

    /// Whether it counts as one of those that runs are spread over.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.at, Use::SettingUp(_) | Use::Idle | Use::Run(_)) && self.landing == 0
    }
}

impl State {
    /// Says of lanes that were touched by this event which go and which stay.
    pub(super) fn tidy_lanes(&mut self) {
        for lane in std::mem::take(&mut self.touched) {
            self.tidy_lane(lane);
        }
    }

    fn tidy_lane(&mut self, lane: usize) {
        let it = &self.lanes[lane];
        if it.unlanded > 0 {
            let stuck = |task: &usize| self.holds(*task, lane) && self.standing(*task).is_stuck();
            if it.at == Use::Aside && !it.kept && it.tasks.iter().any(stuck) {
                self.keep(lane);
            }
            return;
        }
        match it.at {
            Use::Aside => self.let_go(lane),
            Use::Idle if !self.is_wanted(lane) => self.let_go(lane),
            Use::Idle | Use::SettingUp(_) | Use::Run(_) | Use::Gone => {}
        }
    }

    /// Whether the work of a task that has not landed is in this lane.
    pub(super) fn holds(&self, task: usize, lane: usize) -> bool {
        self.tasks[task].lane == Some(lane) && self.standing(task).has_work()
    }

    /// Whether there is something in a lane that somebody might want to see.
    pub(super) fn has_work(&self, lane: usize) -> bool {
        let it = &self.lanes[lane];
        let is_open = |task: usize| !self.standing(task).is_there();
        // Several may have left work in one that nothing is done in any more, and be done anew elsewhere.
        let left = it.at == Use::Aside && it.tasks.iter().any(|task| is_open(*task));
        it.unlanded > 0 || left || it.remains.is_some_and(is_open)
    }

    /// Ends the use of a lane: it goes, or stays as it is.
    pub(super) fn let_go(&mut self, lane: usize) {
        if self.has_work(lane) {
            if self.lanes[lane].at != Use::Aside {
                self.turn(lane, Use::Aside);
            }
            self.keep(lane);
        } else {
            self.turn(lane, Use::Gone);
            self.out.push(Action::DiscardLane { lane });
        }
    }

    /// Says, once, that a lane stays.
    pub(super) fn keep(&mut self, lane: usize) {
        if !self.lanes[lane].kept {
            self.lanes[lane].kept = true;
            self.out.push(Action::KeepLane { lane });
        }
    }

    /// Changes what happens in a lane.
    pub(super) fn turn(&mut self, lane: usize, to: Use) {
        self.change_lane(lane, |it| it.at = to);
        if matches!(to, Use::Aside | Use::Gone) {
            for task in &self.lanes[lane].tasks {
                if self.bound.get(&self.layout.bundle[*task]) == Some(&lane) {
                    self.bound.remove(&self.layout.bundle[*task]);
                }
            }
        }
    }

    /// Changes a lane, and counts it among the open ones or not.
    pub(super) fn change_lane(&mut self, lane: usize, change: impl FnOnce(&mut Lane)) {
        let it = &mut self.lanes[lane];
        change(it);
        if it.is_open() {
            self.open.insert(lane);
        } else {
            self.open.remove(&lane);
        }
        self.touched.insert(lane);
    }
}
