//! Owns going on from run to run of a task that is a folder.

use super::super::Error;
use super::super::order::Order;
use super::super::packet::{AtWork, Next as Coming, Told, is_iteration, order_of_step};
use super::super::settle::{Settle, Verdict};
use super::{Next, Supervisor, Tries};
use crate::fault;
use crate::git::Oid;
use crate::store::Record;
use crate::store::records::{LaneState, RunClass, RunRecord};

impl Supervisor<'_> {
    /// Takes into account what came of a run of such a task. Why the task is not gone on with, if that is so.
    ///
    /// # Errors
    /// When that cannot be written.
    pub(super) fn take_in(
        &mut self,
        settle: &Settle<'_>,
        verdict: &Verdict,
    ) -> Result<Option<String>, Error> {
        let order = settle.order;
        if order.stint.is_none() {
            return Ok(None);
        }
        let (project, lane) = (self.project, self.lane.clone());
        let told = Told {
            class: verdict.class,
            detail: verdict.detail.as_deref(),
            answer: settle.ended.summary.answer.as_deref(),
            counts: counts(order, verdict.class),
        };
        self.insist(|| {
            let path = project.store.layout().run_record(&lane.name, order.attempt);
            let taken = RunRecord::load(&path).map_err(Error::from).and_then(|run| {
                let at_work = AtWork::find(project, &lane)?;
                at_work.map_or(Ok(None), |mut at_work| at_work.take_in(&run, told))
            });
            match taken {
                // A disk that is full may have room again.
                Err(e @ Error::Store(_)) => Err(e),
                Err(e) => Ok(Some(e.to_string())),
                taken => taken,
            }
        })
    }

    /// What comes after a run of such a task, by what came of it. The verdict says so too.
    pub(super) fn next_step(&mut self, order: &Order, verdict: &mut Verdict, stands: Option<String>) -> Next {
        let mut end = |state, why: String| {
            (verdict.state, verdict.detail) = (state, Some(why));
            Next::End
        };
        if let Some(why) = stands {
            return end(LaneState::Failed, why);
        }
        if !counts(order, verdict.class) {
            return if self.wraps_up() { Next::End } else { self.tried_again(order, verdict) };
        }
        let coming = AtWork::find(self.project, &self.lane).and_then(|at_work| match at_work {
            None => Ok((Coming::Done, String::new(), None)),
            Some(at_work) => Ok((at_work.next()?, at_work.in_words()?, Some(at_work.record().start))),
        });
        match coming {
            Err(e) => end(LaneState::Failed, e.to_string()),
            Ok((Coming::Fail(why), words, _)) => {
                let next = end(LaneState::Failed, format!("{why}; {words}"));
                verdict.class = RunClass::GivenUp;
                next
            }
            Ok((Coming::Done, words, start)) => {
                let state = if self.has_something(start) { LaneState::Done } else { LaneState::NoChange };
                end(state, words)
            }
            Ok((Coming::Run { .. }, words, _)) if self.wraps_up() => {
                end(LaneState::Stopped, format!("asked to wrap up; {words}"))
            }
            Ok((Coming::Run { .. }, words, _)) => {
                self.tries = Tries::default();
                verdict.detail = Some(words);
                Next::Step
            }
        }
    }

    /// Whether anything that could land came of the task, which was begun at `start`.
    fn has_something(&self, start: Option<Oid>) -> bool {
        let Ok(lane) = self.lane.clone().with_tree() else { return true };
        let tip = self.project.repo.branch_tip(&lane.place.branch).ok().flatten();
        tip != start
            || !crate::git::status(&self.project.repo, &lane.path, true).is_ok_and(|dirt| dirt.is_clean())
    }

    /// Whether somebody wants it to come to its end once a run has ended by itself.
    pub(super) fn wraps_up(&self) -> bool {
        self.project.store.layout().wrap_up(&self.lane.name).exists()
    }

    /// What to run next of such a task.
    pub(super) fn order_of_step(&mut self) -> Result<Option<Order>, Error> {
        fault::point("step.written");
        match order_of_step(self.project, &self.lane, self.exe) {
            Ok(order) => {
                fault::point("step.prepared");
                Ok(Some(order))
            }
            Err(Error::PacketOver { why, .. }) => {
                self.end(LaneState::Failed, &why)?;
                Ok(None)
            }
            Err(e) => {
                self.end(LaneState::Failed, &format!("it could not go on with its next step: {e}"))?;
                Ok(None)
            }
        }
    }

    /// Has STATUS.md say what it said before a run that is tried again from where it began.
    pub(super) fn put_status_back(&self, order: &Order) -> Result<(), String> {
        if order.stint.is_none() {
            return Ok(());
        }
        let at_work = AtWork::find(self.project, &self.lane).map_err(|e| e.to_string())?;
        at_work.map_or(Ok(()), |at_work| at_work.put_status_back(order.attempt)).map_err(|e| e.to_string())
    }
}

/// Whether a run of such a task that ended so is taken into account, rather than tried again, or the end.
fn counts(order: &Order, class: RunClass) -> bool {
    if !order.reviews() {
        return is_iteration(class);
    }
    match class {
        RunClass::Stopped | RunClass::Timeout | RunClass::Budget => false,
        RunClass::RateLimited | RunClass::Unavailable => !order.may_try_again,
        RunClass::Done
        | RunClass::Failed
        | RunClass::TokenLimit
        | RunClass::Auth
        | RunClass::MaxTurns
        | RunClass::Refused
        | RunClass::ContextFull
        | RunClass::Crashed
        | RunClass::Interrupted
        | RunClass::Stalled
        | RunClass::Runaway
        | RunClass::GivenUp => true,
    }
}
