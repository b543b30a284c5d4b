//! Owns what the end of a run means, for its task and for others.

use super::action::{Action, Outcome};
use super::course::Course;
use super::event::End;
use super::lane::Use;
use super::options::{MergePolicy, TaskPolicy};
use super::standing::{Standing, Why};
use super::state::State;
use crate::store::records::RunClass;

/// How often in a row a start may fail before its task has failed.
const STARTS: u32 = 3;

impl State {
    pub(super) fn run_is_at_work(&mut self, task: usize, attempt: u32) {
        if self.lane_of_run(task, attempt).is_some() && self.standing(task) == Standing::Starting {
            (self.tasks[task].cut_off, self.tasks[task].unstarted) = (false, 0);
            self.set(task, Standing::Running);
            if let Some(lane) = self.tasks[task].lane {
                self.change_lane(lane, |it| it.remains = None);
            }
        }
    }

    pub(super) fn run_has_ended(&mut self, task: usize, attempt: u32, end: End) {
        let Some(lane) = self.lane_of_run(task, attempt) else { return };
        let stopped = self.tasks[task].stopping.take().is_some();
        if end != End::NotStarted {
            self.change_lane(lane, |it| it.remains = None);
            (self.tasks[task].cut_off, self.tasks[task].unstarted) = (false, 0);
        }
        self.change_lane(lane, |it| it.at = Use::Idle);
        match end {
            End::NotStarted => self.run_was_not_started(task, stopped),
            End::Done => {
                self.ends += 1;
                self.tasks[task].ended = self.ends;
                if !self.skip_if_in_vain(task, true) {
                    self.set(task, Standing::Done);
                }
            }
            End::Already => {
                // What it was judged by had landed when it began.
                self.tasks[task].landed = self.lanes[lane].base;
                self.settle(task, Standing::Already);
            }
            End::NoChange => self.settle(task, Standing::NoChange),
            End::Failed(class) => {
                self.change_lane(lane, |it| it.remains = Some(task));
                if stopped && matches!(class, RunClass::Stopped | RunClass::Interrupted) {
                    self.tasks[task].cut_off = true;
                    self.wait_again(task);
                } else {
                    self.run_has_failed(task, class);
                }
            }
        }
    }

    /// No agent ran, so that nothing is counted as an attempt or held against the task; its lane is as it was.
    fn run_was_not_started(&mut self, task: usize, stopped: bool) {
        let slip = &mut self.tasks[task];
        slip.attempts -= 1;
        slip.unstarted += 1;
        if stopped || slip.unstarted < STARTS {
            self.wait_again(task);
        } else {
            self.settle(task, Standing::Failed(Why::Start));
        }
    }

    /// A task goes back among those that wait, or is skipped if nothing came of what it depends on meanwhile.
    pub(super) fn wait_again(&mut self, task: usize) {
        if !self.skip_if_in_vain(task, false) {
            self.set(task, Standing::Waiting);
        }
    }

    fn run_has_failed(&mut self, task: usize, class: RunClass) {
        if class != RunClass::Stopped {
            self.tasks[task].failures += 1;
        }
        if self.tasks[task].failures >= self.options.max_attempts.max(1) {
            self.settle(task, Standing::SetAside);
        } else if End::Failed(class).is_worth_another_try() {
            self.wait_again(task);
        } else {
            self.settle(task, Standing::Failed(Why::Run(class)));
        }
    }

    /// A task has come to its end: others are skipped or may start, and the policies see to failures.
    pub(super) fn settle(&mut self, task: usize, standing: Standing) {
        self.set(task, standing);
        let again = std::mem::take(&mut self.tasks[task].again);
        match standing {
            Standing::Failed(why) => self.out.push(Action::MarkFailed { task, why }),
            Standing::SetAside => self.out.push(Action::MarkSetAside { task }),
            _ => {}
        }
        self.release(task);
        if standing.is_in_the_way() {
            self.skip_dependents(task);
        }
        if standing.is_stuck() && again {
            // A person goes on with the others.
        } else if standing.is_stuck() {
            match self.options.on_merge_failure {
                MergePolicy::Pause => self.pause(super::PauseReason::Merge(task)),
                MergePolicy::Abort => self.abort(Outcome::Stopped, false),
            }
        } else if matches!(standing, Standing::Failed(_) | Standing::SetAside) {
            match self.options.on_failure {
                TaskPolicy::SkipDependents => {}
                TaskPolicy::StopWave => self.wind_down(),
                // Half of their work would be thrown away anyway: nobody waits for it.
                TaskPolicy::StopAll => self.abort(Outcome::Stopped, true),
            }
        }
    }

    /// A person wants a task tried again: all that was counted against it is forgotten.
    pub(super) fn retry(&mut self, task: usize) {
        let Some(slip) = self.tasks.get_mut(task) else { return };
        (slip.failures, slip.unstarted) = (0, 0);
        if !slip.standing.is_in_the_way() {
            return;
        }
        self.leave_work(task);
        if !self.skip_if_in_vain(task, false) {
            self.set(task, Standing::Waiting);
            self.out.push(Action::MarkWaiting { task });
        }
        self.take_skips_back(Some(task));
        self.reopen();
    }

    /// A task's work is not to land: another run is to do it anew. It stays in its lane, as a run's that came to nothing.
    pub(super) fn leave_work(&mut self, task: usize) {
        if let Some(lane) = self.tasks[task].lane.filter(|_| self.standing(task).has_work()) {
            self.change_lane(lane, |it| it.remains = Some(task));
        }
    }

    /// Goes on with a batch in which all had come to its end, now that something has not.
    pub(super) fn reopen(&mut self) {
        if matches!(self.course, Course::Over(Outcome::Complete | Outcome::Partly)) {
            self.course = Course::Going;
        }
    }
}
