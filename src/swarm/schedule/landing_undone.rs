//! Effects of an undone landing on its task and on the work that is based on it.

use super::action::Action;
use super::lane::LaneUse;
use super::state::State;
use super::task_phase::TaskPhase;

impl State {
    /// Marks a landed task as not landed. With `work_kept` its work is still in its lane and lands again.
    /// Otherwise the task runs again, and so do the tasks whose work is based on it.
    pub(super) fn on_landing_undone(&mut self, task: usize, work_kept: bool) {
        if self.tasks.get(task).is_none_or(|task_state| task_state.phase != TaskPhase::Landed) {
            return;
        }
        // The branch has moved since the last landing.
        self.branch_updates += 1;
        if work_kept {
            if let Some(lane) =
                self.tasks[task].lane.filter(|lane| self.lanes[*lane].current_use == LaneUse::Removed)
            {
                self.set_lane_use(lane, LaneUse::Retired);
            }
            self.single_landings.insert(task);
            self.set_phase(task, TaskPhase::ReadyToLand);
        } else {
            self.set_phase(task, TaskPhase::Waiting);
            self.abandon_work_based_on(task);
        }
        self.actions.push(Action::MarkWaiting { task });
        self.reopen_batch();
    }

    fn abandon_work_based_on(&mut self, task: usize) {
        for dependent in 0..self.tasks.len() {
            if !self.work.graph().depends_on(dependent, task) {
                continue;
            }
            self.tasks[dependent].was_interrupted = false;
            let new_phase = match self.task_phase(dependent) {
                TaskPhase::ReadyToLand => TaskPhase::Waiting,
                TaskPhase::Skipped { has_work: true } => TaskPhase::Skipped { has_work: false },
                _ => continue,
            };
            self.abandon_work(dependent);
            self.set_phase(dependent, new_phase);
        }
    }
}
