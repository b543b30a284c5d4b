//! Owns going on with a batch whose process has died: what is still owed, going by what was found.

use std::collections::BTreeMap;

use super::action::Action;
use super::course::Course;
use super::event::End;
use super::lane::Use;
use super::standing::Standing;
use super::state::State;
use crate::store::records::RunClass;

impl State {
    /// Says once more all that was to be done and may not have been. Of runs it is known whether they were.
    pub(super) fn take_up(&mut self, runs: &[(usize, u32)]) {
        if self.course == Course::New {
            return;
        }
        // What is gone may be a failure that ends the batch. So that comes before anything is said.
        for task in 0..self.tasks.len() {
            self.compare(task, runs.contains(&(task, self.tasks[task].attempts)));
        }
        (0..self.tasks.len()).for_each(|task| self.say_mark_again(task));
        (0..self.lanes.len()).for_each(|lane| self.say_lane_again(lane));
        self.say_landings_again();
        (0..self.tasks.len()).for_each(|task| self.say_task_again(task));
        self.unsaid = self.ready.values().flatten().copied().collect();
        match self.course {
            Course::Paused(why) => self.out.push(Action::MarkPaused { why }),
            Course::Over(outcome) => self.out.push(Action::MarkOver { outcome }),
            Course::New | Course::Going | Course::Pausing(_) | Course::Winding | Course::Stopping { .. } => {}
        }
    }

    fn say_mark_again(&mut self, task: usize) {
        let slip = &self.tasks[task];
        match (slip.standing, slip.because) {
            (Standing::Skipped { .. }, Some(because)) => {
                self.out.push(Action::MarkSkipped { task, because });
            }
            (Standing::Failed(why), _) => self.out.push(Action::MarkFailed { task, why }),
            (Standing::SetAside, _) => self.out.push(Action::MarkSetAside { task }),
            _ => {}
        }
        if !slip.held && slip.lane.is_some() {
            self.out.push(Action::Release { task });
        }
    }

    fn say_lane_again(&mut self, lane: usize) {
        let it = &self.lanes[lane];
        match it.at {
            Use::SettingUp(task) => {
                self.out.push(Action::MakeLane { lane, task, from: it.base });
                self.out.push(Action::SetUpLane { lane });
            }
            Use::Gone => self.out.push(Action::DiscardLane { lane }),
            Use::Aside | Use::Idle if it.kept => self.out.push(Action::KeepLane { lane }),
            Use::Aside | Use::Idle | Use::Run(_) => {}
        }
    }

    fn say_landings_again(&mut self) {
        let mut landings: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (task, slip) in self.tasks.iter().enumerate() {
            if let Standing::Landing(landing) = slip.standing {
                landings.entry(landing).or_default().push(task);
            }
        }
        for (landing, mut tasks) in landings {
            tasks.sort_unstable_by_key(|task| self.tasks[*task].ended);
            self.out.push(Action::Land { landing, tasks });
        }
    }

    /// Compares what is known of a task's run with whether it was found.
    fn compare(&mut self, task: usize, found: bool) {
        let attempt = self.tasks[task].attempts;
        match self.standing(task) {
            Standing::Starting if found => self.run_is_at_work(task, attempt),
            Standing::Running if !found => {
                self.run_has_ended(task, attempt, End::Failed(RunClass::Interrupted));
            }
            _ => {}
        }
    }

    fn say_task_again(&mut self, task: usize) {
        match self.standing(task) {
            Standing::Starting if self.may_spend() => {
                if let Some(lane) = self.tasks[task].lane {
                    self.say_start(task, lane);
                }
            }
            Standing::Starting => return self.give_back(task),
            Standing::Conflict { asked: true } if self.tasks[task].stopping.is_none() => {
                self.out.push(Action::Resolve { task });
            }
            _ => {}
        }
        if let Some(hard) = self.tasks[task].stopping {
            self.say_stop(task, hard);
        }
    }

    /// A run was to start, did not, and is not to any more: as if it had never been meant to.
    fn give_back(&mut self, task: usize) {
        let slip = &mut self.tasks[task];
        slip.attempts -= 1;
        slip.stopping = None;
        if let Some(lane) = slip.lane {
            self.turn(lane, Use::Idle);
        }
        self.wait_again(task);
    }
}
