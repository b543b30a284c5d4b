//! Owns who is skipped on whose account, and who is not any more.

use super::action::Action;
use super::standing::Standing;
use super::state::State;

impl State {
    /// Skips what depends on a task that has no result to build on: directly or not, and nothing else.
    pub(super) fn skip_dependents(&mut self, cause: usize) {
        let mut next = vec![cause];
        while let Some(task) = next.pop() {
            for other in self.work.graph().dependents(task).to_vec() {
                match self.standing(other) {
                    Standing::Waiting => self.skip(other, cause, false),
                    Standing::Done => self.skip(other, cause, true),
                    // Its own dependents are skipped already, or will be when it ends.
                    _ => continue,
                }
                next.push(other);
            }
        }
    }

    fn skip(&mut self, task: usize, because: usize, done: bool) {
        self.set(task, Standing::Skipped { done });
        self.tasks[task].because = Some(because);
        self.out.push(Action::MarkSkipped { task, because });
        self.release(task);
    }

    /// Skips a task whose run has ended, or is not to start after all, if what it depends on has no result any more. Says
    /// whether.
    pub(super) fn skip_if_in_vain(&mut self, task: usize, done: bool) -> bool {
        let cause = self.cause(task);
        if let Some(cause) = cause {
            self.skip(task, cause, done);
            self.skip_dependents(task);
        }
        cause.is_some()
    }

    /// On whose account a task has to be skipped, if it has to.
    fn cause(&self, task: usize) -> Option<usize> {
        self.work.tasks()[task].after.iter().find_map(|before| match self.standing(*before) {
            Standing::Skipped { .. } => self.tasks[*before].because,
            standing if standing.is_in_the_way() => Some(*before),
            _ => None,
        })
    }

    /// Lets those wait again that nothing stands in the way of any more. What `anew` and all that depends on it has done stands
    /// on work that is not to land, and is done anew.
    pub(super) fn take_skips_back(&mut self, anew: Option<usize>) {
        for task in self.work.graph().order().to_vec() {
            let Standing::Skipped { done } = self.standing(task) else { continue };
            let stale = anew.is_some_and(|below| self.work.graph().depends(task, below));
            if done && stale {
                self.leave_work(task);
            }
            if let Some(cause) = self.cause(task) {
                self.tasks[task].because = Some(cause);
                if done && stale {
                    self.set(task, Standing::Skipped { done: false });
                }
            } else {
                self.tasks[task].because = None;
                self.out.push(Action::MarkWaiting { task });
                self.set(task, if done && !stale { Standing::Done } else { Standing::Waiting });
            }
        }
    }
}
