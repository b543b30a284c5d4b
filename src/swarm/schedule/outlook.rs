//! Owns what others may ask about a batch.

use super::action::{Outcome, PauseReason};
use super::course::Course;
use super::lane::Use;
use super::standing::{Fate, Left, Standing};
use super::state::State;

/// How far a task is, for whoever looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Now {
    /// It waits for others of its batch, for room, or for another batch.
    Waiting,
    /// Its lane is being made.
    Preparing,
    /// Its run is to start.
    Starting,
    /// Its run is at work.
    Running,
    /// It is done and is to land.
    Done,
    /// It is landing.
    Landing,
    /// It has a conflict.
    Conflict,
    /// It has come to its end.
    Over(Fate),
}

impl State {
    /// How far a task is.
    pub(crate) fn now(&self, task: usize) -> Now {
        if let Some(fate) = self.fate(task) {
            return Now::Over(fate);
        }
        match self.standing(task) {
            Standing::Preparing => Now::Preparing,
            Standing::Starting => Now::Starting,
            Standing::Running => Now::Running,
            Standing::Done => Now::Done,
            Standing::Landing(_) => Now::Landing,
            Standing::Conflict { .. } => Now::Conflict,
            _ => Now::Waiting,
        }
    }

    /// The tasks that still have to be done before a task can start.
    pub(crate) fn waits_for(&self, task: usize) -> Vec<usize> {
        let after = &self.work.tasks()[task].after;
        after.iter().copied().filter(|before| !self.standing(*before).is_there()).collect()
    }

    /// On whose account a task is skipped.
    pub(crate) fn skipped_for(&self, task: usize) -> Option<usize> {
        self.tasks[task].because
    }

    /// Whether somebody was told to stop a task's run.
    pub(crate) fn is_stopping(&self, task: usize) -> bool {
        self.tasks[task].stopping.is_some()
    }

    /// Where the batch is bound, in a word: `new`, `running`, `pausing`, `paused`, `stopping`, `over`.
    pub(crate) fn word(&self) -> &'static str {
        match self.course {
            Course::New => "new",
            Course::Going => "running",
            Course::Pausing(_) => "pausing",
            Course::Paused(_) => "paused",
            Course::Winding | Course::Stopping { .. } => "stopping",
            Course::Over(_) => "over",
        }
    }

    /// How the batch ended, if it is over.
    pub(crate) fn outcome_if_over(&self) -> Option<Outcome> {
        if let Course::Over(outcome) = self.course { Some(outcome) } else { None }
    }

    /// Why the batch rests, if it is paused and nothing is on its way.
    pub(crate) fn pause_reason(&self) -> Option<PauseReason> {
        if let Course::Paused(why) = self.course { Some(why) } else { None }
    }

    /// What became of a task. None while that is open.
    pub(crate) fn fate(&self, task: usize) -> Option<Fate> {
        let slip = &self.tasks[task];
        let left = match slip.standing {
            Standing::Landed => return Some(Fate::Landed),
            Standing::Already => return Some(Fate::Already),
            Standing::NoChange => return Some(Fate::NoChange),
            Standing::Failed(why) => return Some(Fate::Failed(why)),
            Standing::SetAside => return Some(Fate::SetAside),
            Standing::Skipped { .. } => return Some(Fate::Skipped),
            Standing::Done | Standing::Landing(_) | Standing::Conflict { .. } => Left::NotLanded,
            Standing::Waiting | Standing::Preparing | Standing::Starting | Standing::Running => {
                if slip.attempts > 0 { Left::CutOff } else { Left::NotStarted }
            }
        };
        self.outcome_if_over().map(|_| Fate::Left(left))
    }

    /// The task that a lane is being set up for.
    pub(crate) fn set_up_for(&self, lane: usize) -> Option<usize> {
        match self.lanes.get(lane)?.at {
            Use::SettingUp(task) => Some(task),
            _ => None,
        }
    }

    /// How many runs of a task were started, or are to be.
    pub(crate) fn attempts(&self, task: usize) -> u32 {
        self.tasks[task].attempts
    }

    /// How often a task has failed, over all batches. To be given with the task next time.
    pub(crate) fn failures(&self, task: usize) -> u32 {
        self.tasks[task].failures
    }

    /// The runs that no end is known of, by task and attempt.
    pub(crate) fn open_runs(&self) -> Vec<(usize, u32)> {
        let of = |lane: &super::lane::Lane| if let Use::Run(task) = lane.at { Some(task) } else { None };
        self.lanes.iter().filter_map(of).map(|task| (task, self.tasks[task].attempts)).collect()
    }

    /// The tasks that were run in a lane, in order.
    #[cfg(test)]
    pub(crate) fn tasks_of(&self, lane: usize) -> &[usize] {
        self.lanes.get(lane).map_or(&[], |it| &it.tasks)
    }
}
