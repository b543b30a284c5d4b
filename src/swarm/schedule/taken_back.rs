//! Owns what becomes of tasks whose landing was taken back, and of what stands on their work.

use super::action::Action;
use super::lane::Use;
use super::standing::Standing;
use super::state::State;

impl State {
    /// A task counts as not landed again. With its work `kept` in its lane it lands once more; otherwise another run does it anew, and
    /// so is done anew what stands on the work that is gone.
    pub(super) fn is_taken_back(&mut self, task: usize, kept: bool) {
        if self.tasks.get(task).is_none_or(|slip| slip.standing != Standing::Landed) {
            return;
        }
        // The branch is not where the landings before have left it.
        self.tips += 1;
        if kept {
            if let Some(lane) = self.tasks[task].lane.filter(|lane| self.lanes[*lane].at == Use::Gone) {
                self.turn(lane, Use::Aside);
            }
            self.resolved.insert(task);
            self.set(task, Standing::Done);
        } else {
            self.set(task, Standing::Waiting);
            self.leave_what_stands_on(task);
        }
        self.out.push(Action::MarkWaiting { task });
        self.reopen();
    }

    fn leave_what_stands_on(&mut self, task: usize) {
        for other in 0..self.tasks.len() {
            if !self.work.graph().depends(other, task) {
                continue;
            }
            self.tasks[other].cut_off = false;
            let anew = match self.standing(other) {
                Standing::Done => Standing::Waiting,
                Standing::Skipped { done: true } => Standing::Skipped { done: false },
                _ => continue,
            };
            self.leave_work(other);
            self.set(other, anew);
        }
    }
}
