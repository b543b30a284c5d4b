//! Owns the course of a batch as a whole: going on, pausing, stopping, and its end.

use super::action::{Action, Outcome, PauseReason};
use super::standing::Standing;
use super::state::State;

/// Where a batch is bound. A weaker wish never stands against a stronger one that was there before; only going on, which a
/// person asks for, takes any of them back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Course {
    /// It has not begun.
    New,
    /// It goes on.
    Going,
    /// Nothing starts; what runs ends and lands.
    Pausing(PauseReason),
    /// So it has.
    Paused(PauseReason),
    /// As with a pause, but then it is over.
    Winding,
    /// What runs is stopped, and nothing lands any more.
    Stopping {
        /// What it will have been.
        outcome: Outcome,
        /// At once.
        hard: bool,
    },
    /// It is over.
    Over(Outcome),
}

impl State {
    pub(super) fn begin(&mut self) {
        if self.course != Course::New {
            return;
        }
        self.course = Course::Going;
        for task in 0..self.tasks.len() {
            if self.work.tasks()[task].done {
                self.set(task, Standing::Already);
            } else if self.tasks[task].failures >= self.options.max_attempts.max(1) {
                // Nothing has failed now, so that no policy acts.
                self.set(task, Standing::SetAside);
                self.out.push(Action::MarkSetAside { task });
            }
        }
        for task in 0..self.tasks.len() {
            if self.standing(task).is_in_the_way() {
                self.skip_dependents(task);
            }
        }
    }

    /// Whether the batch may cost more.
    pub(super) fn is_within_budget(&self) -> bool {
        self.options.budget.is_none_or(|most| self.spent < most)
    }

    /// Whether agents may be started.
    pub(super) fn may_spend(&self) -> bool {
        self.course == Course::Going && self.is_within_budget()
    }

    pub(super) fn pause(&mut self, why: PauseReason) {
        match (self.course, why) {
            (Course::Going, _) | (Course::Pausing(_) | Course::Paused(_), PauseReason::Merge(_)) => {
                self.course = Course::Pausing(why);
            }
            _ => {}
        }
    }

    pub(super) fn wind_down(&mut self) {
        if matches!(self.course, Course::Going | Course::Pausing(_) | Course::Paused(_)) {
            self.course = Course::Winding;
        }
    }

    pub(super) fn resume(&mut self) {
        if self.course != Course::New {
            self.course = Course::Going;
        }
    }

    pub(super) fn abort(&mut self, outcome: Outcome, hard: bool) {
        self.course = match self.course {
            Course::New | Course::Over(_) => return,
            Course::Stopping { hard: before, .. } => Course::Stopping { outcome, hard: hard || before },
            Course::Going | Course::Pausing(_) | Course::Paused(_) | Course::Winding => {
                Course::Stopping { outcome, hard }
            }
        };
        for task in 0..self.tasks.len() {
            let is_run = matches!(self.standing(task), Standing::Starting | Standing::Running);
            let told = self.tasks[task].stopping;
            if (is_run || self.tally.resolving.contains(&task)) && told.is_none_or(|before| hard && !before) {
                self.tasks[task].stopping = Some(hard);
                self.say_stop(task, hard);
            }
        }
    }

    /// Asks for the end of a run, or of whoever resolves a conflict.
    pub(super) fn say_stop(&mut self, task: usize, hard: bool) {
        if matches!(self.standing(task), Standing::Conflict { .. }) {
            self.out.push(Action::StopResolve { task, hard });
        } else {
            let attempt = self.tasks[task].attempts;
            self.out.push(Action::StopRun { task, attempt, hard });
        }
    }

    /// Does all that can be done as things are now.
    pub(super) fn advance(&mut self) {
        if matches!(self.course, Course::New | Course::Over(_)) {
            return;
        }
        loop {
            self.land_due();
            self.ask_for_resolutions();
            let short = self.start_due();
            let stuck =
                self.tally.is_quiet() && !short && (self.may_spend() || self.course == Course::Winding);
            // Work that was to land together with what cannot start before it has landed.
            if !(stuck && self.land_early()) {
                break;
            }
        }
        self.tidy_lanes();
        if self.tally.is_quiet() {
            self.conclude();
        }
    }

    /// Says what has come of the batch, when nothing is on its way any more.
    fn conclude(&mut self) {
        let through = self.tally.unsettled == 0;
        match self.course {
            Course::Going if through => self.end(self.outcome()),
            Course::Going if !self.is_within_budget() => self.rest(PauseReason::Budget),
            // It waits for room, or for what another batch has.
            Course::Going | Course::New | Course::Over(_) => {}
            Course::Pausing(why) | Course::Paused(why) => {
                let holds = matches!(why, PauseReason::Merge(task) if self.standing(task).is_stuck());
                if through && !holds {
                    self.end(self.outcome());
                } else if self.course == Course::Pausing(why) {
                    self.rest(why);
                }
            }
            Course::Winding => self.end(self.outcome_unless(Outcome::Stopped)),
            Course::Stopping { outcome, .. } => self.end(self.outcome_unless(outcome)),
        }
    }

    fn outcome(&self) -> Outcome {
        if self.tally.there == self.tasks.len() { Outcome::Complete } else { Outcome::Partly }
    }

    /// A batch that was to be stopped, but had nothing left to do by then, is complete.
    fn outcome_unless(&self, stopped: Outcome) -> Outcome {
        if self.outcome() == Outcome::Complete { Outcome::Complete } else { stopped }
    }

    fn rest(&mut self, why: PauseReason) {
        self.course = Course::Paused(why);
        self.out.push(Action::MarkPaused { why });
    }

    fn end(&mut self, outcome: Outcome) {
        self.course = Course::Over(outcome);
        for task in 0..self.tasks.len() {
            self.release(task);
        }
        for lane in self.open.clone() {
            // The batch may go on in what has work in it.
            if self.has_work(lane) { self.keep(lane) } else { self.let_go(lane) }
        }
        self.touched.clear();
        self.out.push(Action::MarkOver { outcome });
    }
}
