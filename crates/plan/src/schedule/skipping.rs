//! Skipping of tasks whose dependencies have no result, and the undoing of skips.

use super::action::Action;
use super::state::State;
use super::task_phase::TaskPhase;

impl State {
    /// Skips the tasks that depend, directly or not, on a task that has no result to build on.
    pub(crate) fn skip_dependents(&mut self, cause: usize) {
        let mut unchecked = vec![cause];
        while let Some(task) = unchecked.pop() {
            for dependent in self.work.graph().dependents(task).to_vec() {
                match self.task_phase(dependent) {
                    TaskPhase::Waiting => self.skip_task(dependent, cause, false),
                    TaskPhase::ReadyToLand => self.skip_task(dependent, cause, true),
                    // The dependents of this task are skipped already, or are skipped when it ends.
                    _ => continue,
                }
                unchecked.push(dependent);
            }
        }
    }

    /// Skips a task because of the task `cause`, and releases the claim on it.
    fn skip_task(&mut self, task: usize, cause: usize, has_work: bool) {
        self.set_phase(task, TaskPhase::Skipped { has_work });
        self.tasks[task].skip_cause = Some(cause);
        self.actions.push(Action::MarkSkipped { task, cause });
        self.release_claim(task);
    }

    /// Skips a task if one of its dependencies has no result. The task's run has ended or is not to start any
    /// more. Returns whether the task was skipped.
    pub(crate) fn skip_if_blocked(&mut self, task: usize, has_work: bool) -> bool {
        let cause = self.find_skip_cause(task);
        if let Some(cause) = cause {
            self.skip_task(task, cause, has_work);
            self.skip_dependents(task);
        }
        cause.is_some()
    }

    /// Returns the task because of which `task` has to be skipped, if any.
    fn find_skip_cause(&self, task: usize) -> Option<usize> {
        self.work.tasks()[task].depends_on.iter().find_map(|dependency| match self.task_phase(*dependency) {
            TaskPhase::Skipped { .. } => self.tasks[*dependency].skip_cause,
            phase if phase.blocks_dependents() => Some(*dependency),
            _ => None,
        })
    }

    /// Returns skipped tasks that nothing blocks any more to the waiting ones. `redone_task` is to run again:
    /// work of its dependents is built on work that does not land, so they run again, too.
    pub(crate) fn undo_skips(&mut self, redone_task: Option<usize>) {
        for task in self.work.graph().topological_order().to_vec() {
            let TaskPhase::Skipped { has_work } = self.task_phase(task) else { continue };
            let is_outdated = redone_task.is_some_and(|redone| self.work.graph().waits_for(task, redone));
            if has_work && is_outdated {
                self.abandon_work(task);
            }
            if let Some(cause) = self.find_skip_cause(task) {
                self.tasks[task].skip_cause = Some(cause);
                if has_work && is_outdated {
                    self.set_phase(task, TaskPhase::Skipped { has_work: false });
                }
            } else {
                self.tasks[task].skip_cause = None;
                self.actions.push(Action::MarkWaiting { task });
                self.set_phase(
                    task,
                    if has_work && !is_outdated { TaskPhase::ReadyToLand } else { TaskPhase::Waiting },
                );
            }
        }
    }
}
