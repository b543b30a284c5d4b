//! Owns what others may ask about a batch.

use super::action::{Outcome, PauseReason};
use super::course::Course;
use super::lane::Use;
use super::standing::{Fate, Left, Standing};
use super::state::State;

impl State {
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
    pub(crate) fn tasks_of(&self, lane: usize) -> &[usize] {
        self.lanes.get(lane).map_or(&[], |it| &it.tasks)
    }
}
