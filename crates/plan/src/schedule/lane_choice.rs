//! Choice of a lane for a task.

use super::options::LaneAssignment;
use super::state::State;

/// Lane in which a task is to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LaneChoice {
    /// An existing lane.
    Existing(usize),
    /// A lane that has to be created.
    New,
}

impl State {
    /// Returns the lane in which a task can run now, if any. A bundle stays in its lane. A task that is alone
    /// in its bundle prefers the lane of its last run, but does not wait for that lane.
    pub(crate) fn choose_lane(&self, task: usize) -> Option<LaneChoice> {
        let bundle = self.order.bundle[task];
        if let Some(lane) = self.lane_by_bundle.get(&bundle) {
            if self.can_run_in(task, *lane) {
                return Some(LaneChoice::Existing(*lane));
            }
            if self.order.bundle_sizes[bundle] > 1 {
                return None;
            }
        }
        let suitable_lanes = || self.open_lanes.iter().copied().filter(|lane| self.can_run_in(task, *lane));
        let all_landed = self.work.tasks()[task]
            .depends_on
            .iter()
            .all(|dependency| self.task_phase(*dependency).is_on_branch());
        let new_lane = all_landed.then_some(LaneChoice::New);
        let new_within_limit = new_lane.filter(|_| self.open_lanes.len() < self.options.max_parallel.max(1));
        match self.options.lane_assignment {
            LaneAssignment::AffinityFirst => {
                let is_same_family = |lane: &usize| {
                    let it = &self.lanes[*lane];
                    it.unlanded_task_count == 0
                        && it.family == self.order.family[task]
                        && !self.is_lane_reserved(*lane)
                };
                suitable_lanes()
                    .filter(is_same_family)
                    .min_by_key(|lane| self.is_for_other_agent(task, *lane))
                    .map(LaneChoice::Existing)
                    .or(new_lane)
            }
            LaneAssignment::RoundRobin => new_within_limit.or_else(|| {
                let turn_order = |lane: &usize| (*lane <= self.last_lane, *lane);
                suitable_lanes().min_by_key(turn_order).map(LaneChoice::Existing)
            }),
            LaneAssignment::LoadBalanced => new_within_limit.or_else(|| {
                let least_loaded =
                    |lane: &usize| (self.lanes[*lane].load, self.is_for_other_agent(task, *lane), *lane);
                suitable_lanes().min_by_key(least_loaded).map(LaneChoice::Existing)
            }),
        }
    }

    /// Returns whether the tasks of a bundle have to wait, since their lane is in use.
    pub(crate) fn is_bundle_busy(&self, bundle: usize) -> bool {
        self.order.bundle_sizes[bundle] > 1
            && self.lane_by_bundle.get(&bundle).is_some_and(|lane| !self.lanes[*lane].is_free())
    }

    /// Returns whether a task could start in a lane now: nothing runs there, and the lane contains the work
    /// of the task's dependencies. Until the lane's own work has landed, it lacks what landed after that work
    /// started.
    fn can_run_in(&self, task: usize, lane: usize) -> bool {
        let it = &self.lanes[lane];
        let dependencies = &self.work.tasks()[task].depends_on;
        if !it.is_free() {
            return false;
        }
        if it.unlanded_task_count == 0 {
            return dependencies.iter().all(|dependency| self.task_phase(*dependency).is_on_branch());
        }
        let lane_contains = |dependency: &usize| {
            if self.task_phase(*dependency).is_on_branch() {
                self.tasks[*dependency].landed_update <= it.base_updates
            } else {
                self.has_unlanded_work_in(*dependency, lane)
            }
        };
        // All unlanded work of a lane belongs to one stage.
        let top_task = it.tasks.iter().rev().find(|other| self.has_unlanded_work_in(**other, lane));
        top_task.is_none_or(|top_task| self.order.stage[*top_task] == self.order.stage[task])
            && dependencies.iter().all(lane_contains)
    }

    /// Returns whether a waiting bundle has to continue in this lane.
    fn is_lane_reserved(&self, lane: usize) -> bool {
        self.lanes[lane].tasks.iter().any(|task| {
            let bundle = self.order.bundle[*task];
            self.lane_by_bundle.get(&bundle) == Some(&lane) && self.counters.unsettled_by_bundle[bundle] > 0
        })
    }

    /// Returns whether the task is for another agent than the last task of the lane.
    fn is_for_other_agent(&self, task: usize, lane: usize) -> bool {
        let task_agent = |task: usize| &self.work.tasks()[task].agent;
        self.lanes[lane].tasks.last().is_some_and(|last| task_agent(*last) != task_agent(task))
    }

    /// Returns whether a lane without unlanded work may still be needed for a task.
    pub(crate) fn is_lane_needed(&self, lane: usize) -> bool {
        if self.counters.unsettled_count == 0 {
            return false;
        }
        let within_limit = self.open_lanes.len() <= self.options.max_parallel.max(1);
        self.is_lane_reserved(lane)
            || within_limit
                && match self.options.lane_assignment {
                    LaneAssignment::AffinityFirst => {
                        self.counters.unsettled_by_family[self.lanes[lane].family] > 0
                    }
                    LaneAssignment::RoundRobin | LaneAssignment::LoadBalanced => true,
                }
    }
}
