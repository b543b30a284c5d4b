//! Release of lanes that a batch no longer needs.

use super::action::Action;
use super::lane::{LaneUse, ScheduledLane};
use super::state::State;

impl State {
    /// Releases or retains each lane that the current event changed, where that is due.
    pub(crate) fn tidy_touched_lanes(&mut self) {
        for lane in std::mem::take(&mut self.touched_lanes) {
            self.tidy_lane(lane);
        }
    }

    /// Releases or retains one lane, where that is due.
    fn tidy_lane(&mut self, lane: usize) {
        let it = &self.lanes[lane];
        if it.unlanded_task_count > 0 {
            let is_stuck = |task: &usize| {
                self.has_unlanded_work_in(*task, lane) && self.task_phase(*task).could_not_land()
            };
            if it.current_use == LaneUse::Retired && !it.retain_reported && it.tasks.iter().any(is_stuck) {
                self.report_retained_lane(lane);
            }
            return;
        }
        match it.current_use {
            LaneUse::Retired => self.release_lane(lane),
            LaneUse::Idle if !self.is_lane_needed(lane) => self.release_lane(lane),
            LaneUse::Idle | LaneUse::SettingUp(_) | LaneUse::Running(_) | LaneUse::Removed => {}
        }
    }

    /// Returns whether a lane contains the work of a task that has not landed.
    pub(crate) fn has_unlanded_work_in(&self, task: usize, lane: usize) -> bool {
        self.tasks[task].lane == Some(lane) && self.task_phase(task).has_unlanded_work()
    }

    /// Returns whether a lane contains work that has not landed, including abandoned work and that of a
    /// failed run.
    pub(crate) fn lane_has_unlanded_work(&self, lane: usize) -> bool {
        let it = &self.lanes[lane];
        let is_open = |task: usize| !self.task_phase(task).is_on_branch();
        // A retired lane may contain abandoned work of multiple tasks, which run again in other lanes.
        let has_abandoned_work =
            it.current_use == LaneUse::Retired && it.tasks.iter().any(|task| is_open(*task));
        it.unlanded_task_count > 0 || has_abandoned_work || it.failed_task.is_some_and(is_open)
    }

    /// Ends the use of a lane: it is retired if it has work, and removed otherwise.
    pub(crate) fn release_lane(&mut self, lane: usize) {
        if self.lane_has_unlanded_work(lane) {
            if self.lanes[lane].current_use != LaneUse::Retired {
                self.set_lane_use(lane, LaneUse::Retired);
            }
            self.report_retained_lane(lane);
        } else {
            self.set_lane_use(lane, LaneUse::Removed);
            self.actions.push(Action::DiscardLane { lane });
        }
    }

    /// Reports, once, that a lane is not removed.
    pub(crate) fn report_retained_lane(&mut self, lane: usize) {
        if !self.lanes[lane].retain_reported {
            self.lanes[lane].retain_reported = true;
            self.actions.push(Action::RetainLane { lane });
        }
    }

    /// Sets the use of a lane. Bundles are no longer bound to a lane that is retired or removed.
    pub(crate) fn set_lane_use(&mut self, lane: usize, new_use: LaneUse) {
        self.update_lane(lane, |it| it.current_use = new_use);
        if matches!(new_use, LaneUse::Retired | LaneUse::Removed) {
            for task in &self.lanes[lane].tasks {
                if self.lane_by_bundle.get(&self.order.bundle[*task]) == Some(&lane) {
                    self.lane_by_bundle.remove(&self.order.bundle[*task]);
                }
            }
        }
    }

    /// Edits a lane and updates the set of open lanes.
    pub fn update_lane(&mut self, lane: usize, edit: impl FnOnce(&mut ScheduledLane)) {
        let it = &mut self.lanes[lane];
        edit(it);
        if it.is_open() {
            self.open_lanes.insert(lane);
        } else {
            self.open_lanes.remove(&lane);
        }
        self.touched_lanes.insert(lane);
    }
}
