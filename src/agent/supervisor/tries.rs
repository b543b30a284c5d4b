//! Owns trying again what a run did not bring to its end: whether, when, from where, and what may still be spent on it.

use std::time::Duration;

use super::super::Error;
use super::super::again::Patience;
use super::super::launch;
use super::super::order::Order;
use super::super::settle::{Verdict, with_remark};
use super::super::stream::Lift;
use super::super::watch::Ended;
use super::{Next, Supervisor};
use crate::fault;
use crate::lane::{self, Inbox, Traces};
use crate::store::records::{LaneState, RunClass, RunRecord};
use crate::store::{Moment, Record, now};

/// Why nothing more is begun by itself.
pub(super) const SPENT: &str = "it has cost all that it may, so it does not go on by itself";

/// How long after a limit is lifted it is tried again.
const AFTER_LIFT: Duration = Duration::from_secs(1);

/// The runs of what was asked last.
#[derive(Default)]
pub(super) struct Tries {
    /// How they ended that are being tried again.
    former: Vec<RunClass>,
    /// What all of them have cost, in 1e-9 USD.
    pub(super) spent: u64,
    /// Whether that is all that they may cost.
    pub(super) has_spent_all: bool,
    /// When the limit is lifted that ended the last of them.
    lifted: Option<Moment>,
}

impl Tries {
    /// Takes into account what a run has cost, and until when it is of no use to try again.
    pub(super) fn take_in(&mut self, order: &Order, ended: &Ended) {
        let cost = ended.account.cost.map_or(0, |cost| cost.nanos);
        self.spent = self.spent.saturating_add(cost);
        self.has_spent_all = order.limits.budget.is_some_and(|budget| cost >= budget);
        self.lifted = ended.summary.lift.as_ref().and_then(|lift| match lift {
            Lift::At(second) => Moment::at_second(*second),
            Lift::After(span) => Some(now().after(*span)),
            Lift::Clock(clock) => {
                now().next_at((clock.hour, clock.minute), clock.date, clock.zone.as_deref())
            }
        });
    }
}

/// Another try.
pub(super) struct Again {
    /// How long to wait before it.
    wait: Duration,
    /// The lane's tip and uncommitted files at the end of the run, looked at before its failure is on record.
    left: Result<Option<Traces>, lane::Error>,
}

impl Supervisor<'_> {
    /// The same for a run that failed.
    pub(super) fn tried_again(&mut self, order: &Order, verdict: &mut Verdict) -> Next {
        if verdict.state == LaneState::Done || verdict.state == LaneState::NoChange || !order.may_try_again {
            return Next::End;
        }
        self.tries.former.push(verdict.class);
        let patience = Patience::of(&self.project.settings);
        let patience = if order.of_batch { patience.of_batch() } else { patience };
        let wait = patience.wait(&self.tries.former);
        let mut say = |more: String| verdict.detail = with_remark(verdict.detail.take(), Some(more));
        let lifted = self.tries.lifted.map(|at| (at, at.since(now())));
        if let Some((at, _)) =
            lifted.filter(|(_, left)| wait.is_none() || *left > self.project.settings.reset_wait)
        {
            say(format!("its limit is lifted at {}, which it does not wait for", at.on_the_wall()));
            return Next::End;
        }
        let Some(wait) = wait else { return Next::End };
        if self.tries.has_spent_all {
            say(SPENT.to_owned());
            return Next::End;
        }
        let (wait, when) = match lifted.filter(|(_, left)| *left > wait) {
            // A moment later, for clocks that differ.
            Some((at, left)) => {
                (left + AFTER_LIFT, format!("at {}, when its limit is lifted", at.on_the_wall()))
            }
            None => (wait, format!("in {} s", wait.as_secs())),
        };
        let again = format!("{}; it is tried again {when}", verdict.class);
        verdict.detail =
            Some(verdict.detail.take().map_or_else(|| again.clone(), |d| format!("{d}: {again}")));
        Next::Again(Again { wait, left: self.traces() })
    }

    /// Waits, brings the lane back to where it was before the run, and says what to run then. None when somebody stops it
    /// meanwhile, or nothing can be tried again.
    pub(super) fn again(&mut self, order: &Order, again: Again) -> Result<Option<Order>, Error> {
        fault::point("again.told");
        let stopped = self.runtime.block_on(async {
            tokio::select! {
                () = self.wishes.any() => true,
                () = tokio::time::sleep(again.wait) => false,
            }
        });
        if stopped {
            self.end(LaneState::Stopped, "stopped before it was tried again")?;
            return Ok(None);
        }
        let run = match self.make_room(order.attempt, again.left) {
            Ok(run) => run,
            Err(why) => {
                self.end(LaneState::Failed, &format!("it is not tried again: {why}"))?;
                return Ok(None);
            }
        };
        // The work of what it was told meanwhile is taken back too.
        let put_back = Inbox::of(self.project, &self.lane.name).put_back(order.attempt);
        if let Err(e) = put_back.map_err(|e| e.to_string()).and_then(|()| self.put_status_back(order)) {
            self.end(LaneState::Failed, &format!("it is not tried again: {e}"))?;
            return Ok(None);
        }
        match launch::order_again(self.project, &self.lane, &run, self.tries.spent, self.exe) {
            Ok(order) => Ok(Some(order)),
            Err(e) => {
                self.end(LaneState::Failed, &format!("it could not be tried again: {e}"))?;
                Ok(None)
            }
        }
    }

    /// What the lane is like; one that only looks has nothing of its own.
    fn traces(&self) -> Result<Option<Traces>, lane::Error> {
        self.lane.clone().with_tree().ok().map(|lane| Traces::of(self.project, &lane)).transpose()
    }

    /// Brings the lane back to where it was before a run, and notes in that run's record where its work is kept. What a person
    /// did there since stays: then why not is returned.
    fn make_room(
        &self,
        attempt: u32,
        left: Result<Option<Traces>, lane::Error>,
    ) -> Result<RunRecord, String> {
        let project = self.project;
        let now = self.traces().map_err(|e| e.to_string())?;
        if left.map_err(|e| e.to_string())? != now {
            return Err("somebody worked in the lane meanwhile, and that stays as it is".to_owned());
        }
        let path = project.store.layout().run_record(&self.lane.name, attempt);
        let mut run = RunRecord::load(&path).map_err(|e| e.to_string())?;
        if self.lane.works_in_place() {
            return match lane::has_changed_in_place(project, &self.lane, &run) {
                Ok(false) => Ok(run),
                Ok(true) => Err("the main checkout is not as it was, and is not put back".to_owned()),
                Err(e) => Err(e.to_string()),
            };
        }
        let Ok(lane) = self.lane.clone().with_tree() else { return Ok(run) };
        let why = format!("what run {attempt} of lane {} had done when it failed", lane.name);
        let kept = lane::put_back(project, &lane, run.tip_before, &why).map_err(|e| e.to_string())?;
        if let Some(kept) = kept.in_words() {
            run.detail = Some(run.detail.take().map_or_else(|| kept.clone(), |why| format!("{why}; {kept}")));
            // It is kept, whether that could be noted or not.
            drop(run.save(&path));
        }
        Ok(run)
    }
}
