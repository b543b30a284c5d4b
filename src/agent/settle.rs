//! Owns what a run came to: what it left is kept, and its state is judged by evidence.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use super::Error;
use super::activity::session_of;
use super::answer::{self, Kept};
use super::follow_up::FollowUp;
use super::launcher::Launcher;
use super::limits::Cause;
use super::order::Order;
use super::packet::is_iteration;
use super::stream::Class;
use super::watch::{Ended, Hint};
use crate::config::{Autocommit, dollars};
use crate::lane::{self, Leftovers, Project, commit_leftovers, copy_leftovers};
use crate::store::records::{Account, AnyLane, LaneRecord, LaneState, Purpose, RunClass, RunRecord};
use crate::store::{LockName, Record, now};
use crate::{event, git};

/// What a run came to.
#[derive(Debug, Clone)]
pub(super) struct Verdict {
    pub(super) state: LaneState,
    pub(super) class: RunClass,
    /// Why, in a line.
    pub(super) detail: Option<String>,
    /// Whether it changed nothing because its task had been done before.
    pub(super) already: bool,
}

/// A run that has ended.
pub(super) struct Settle<'a> {
    pub(super) project: &'a Project,
    pub(super) lane: &'a AnyLane,
    pub(super) attempt: u32,
    pub(super) order: &'a Order,
    pub(super) ended: &'a Ended,
}

impl Settle<'_> {
    /// Commits or copies what the run left uncommitted, and judges it. `outside` is what there is to say of what it did elsewhere.
    pub(super) fn judge(&self, outside: Option<String>) -> Verdict {
        let judged = if self.order.resolves || self.order.reviews() {
            Ok(self.how_it_ended())
        } else {
            self.by_evidence()
        };
        let mut verdict = judged.unwrap_or_else(|e| Verdict {
            state: LaneState::Failed,
            class: RunClass::Failed,
            detail: Some(format!("its result could not be looked at: {e}")),
            already: false,
        });
        verdict.detail = with_remark(verdict.detail, outside);
        if let Some(e) = self.keep_leftovers() {
            let text = format!("what it left uncommitted is in the lane only, it could not be copied: {e}");
            verdict.detail = Some(verdict.detail.map_or_else(|| text.clone(), |d| format!("{d}; {text}")));
        }
        verdict
    }

    /// Writes how the run ended, while the lane goes on being run.
    pub(super) fn write_and_go_on(&self, verdict: &Verdict, then: event::Name) -> Result<AnyLane, Error> {
        let run = self.write_run(verdict)?;
        let lane = self.project.update_lane(&self.lane.name, |record| {
            record.detail.clone_from(&verdict.detail);
        })?;
        let mut text = shown(&lane, verdict);
        // The state is the lane's, which may have commits of an earlier run.
        if verdict.state == LaneState::Done && run.tip_after == Some(run.tip_before) {
            text.push_str(", with no new commit in this run");
        }
        self.project.tell(then, Some(&lane), text);
        Ok(lane)
    }

    fn write_run(&self, verdict: &Verdict) -> Result<RunRecord, Error> {
        let path = self.project.store.layout().run_record(&self.lane.name, self.attempt);
        let mut run = RunRecord::load(&path)?;
        run.ended = Some(now());
        run.outcome = Some(verdict.state);
        run.class = Some(verdict.class);
        run.detail.clone_from(&verdict.detail);
        run.exit_code = self.ended.status.code();
        run.signal = self.ended.status.signal();
        // Its result counts, also where that cannot be looked at any more.
        run.tip_after = match self.lane.branch() {
            Some(branch) => self.project.repo.branch_tip(branch).ok().flatten(),
            None => self.project.repo.head_of(&self.lane.path).ok().flatten(),
        };
        run.strays = self.ended.strays;
        let known = run.account.session.take();
        let session = known.or_else(|| session_of(self.project, &self.lane.name, self.attempt));
        run.account =
            Account { session: self.ended.account.session.clone().or(session), ..self.ended.account.clone() };
        run.totals = Some(self.ended.summary.totals.clone());
        run.save(&path)?;
        Ok(run)
    }

    /// Writes the run's record, then the lane's. What is to follow is found out in between: from the moment in which the lane is
    /// done, its landing lock says that it is being landed.
    ///
    /// None when there is something that the agent `is_to_hear`: then its lane is not over. That is looked at under the store's
    /// lock, and whoever sends something looks under it whether the lane is over: so either is seen by the other.
    pub(super) fn write(
        &self,
        verdict: &Verdict,
        is_to_hear: impl FnOnce() -> bool,
    ) -> Result<Option<(AnyLane, FollowUp)>, Error> {
        let run = self.write_run(verdict)?;
        let resolves = self.order.resolves;
        let then = if resolves { LaneState::Conflict } else { verdict.state };
        let can_move = !resolves && self.lane.branch().is_some();
        let moved = can_move && run.tip_after.is_some_and(|tip| tip != run.tip_before);
        let follow_up = FollowUp::prepare(self.project, self.lane, then, moved);
        let store = self.project.store.locks().take(&LockName::Store)?;
        if is_to_hear() {
            return Ok(None);
        }
        let lane = self.project.update_lane_held(&self.lane.name, &store, |record| {
            record.state = then;
            record.detail.clone_from(&verdict.detail);
            record.already = verdict.already;
            // That was about the run before; what waits for a person waits on.
            record.refused.take_if(|refused| !refused.lasting);
        })?;
        drop(store);
        self.project.tell(event::Name::RunEnded, Some(&lane), shown(&lane, verdict));
        Ok(Some((lane, follow_up)))
    }

    /// Copies what is left uncommitted in the lane to a second place. A conflict has to do without: no snapshot can hold it.
    fn keep_leftovers(&self) -> Option<Error> {
        let lane = self.lane.clone().with_tree().ok()?;
        let repo = &self.project.repo;
        let is_whole = || repo.is_own_worktree(&lane.path) && matches!(repo.missing_in(&lane.path), Ok(None));
        if self.order.resolves || self.order.reviews() || !is_whole() {
            return None;
        }
        let why = format!("left uncommitted in lane {} by its run {}", self.lane.name, self.attempt);
        match copy_leftovers(self.project, &lane, &why) {
            Ok(_) | Err(lane::Error::Git(git::Error::Unmerged { .. })) => None,
            Err(e) => Some(e.into()),
        }
    }

    /// How the agent ended, and nothing else: why it was ended, then what it said last, then its exit code.
    fn how_it_ended(&self) -> Verdict {
        let summary = &self.ended.summary;
        let by_itself = || match self.order.dialect.judges_its_end() {
            // Out of memory, most often.
            true if self.ended.status.signal() == Some(9) => (RunClass::Crashed, summary.detail.clone()),
            true => (class_of(summary.class), summary.detail.clone()),
            false => by_exit(self.ended.status),
        };
        let (class, detail) = match self.ended.cause {
            None => by_itself(),
            // Its last word was on its way already: it has cost what it has cost, and its result counts.
            Some(Cause::Budget) if by_itself().0 == RunClass::Done => by_itself(),
            Some(Cause::Lingering) => {
                let (class, detail) = by_itself();
                (class, detail.or_else(|| Some("it had to be ended after its last word".to_owned())))
            }
            Some(Cause::Asked) => (RunClass::Stopped, None),
            Some(Cause::Time) => (RunClass::Timeout, Some("it took longer than it may".to_owned())),
            Some(Cause::Stall) => (RunClass::Stalled, Some("nothing came of it for too long".to_owned())),
            Some(Cause::Budget) => (RunClass::Budget, Some("it cost more than it may".to_owned())),
            Some(Cause::Context) => {
                (RunClass::ContextFull, Some("its context was as full as it may get".to_owned()))
            }
            Some(Cause::Closed) => (RunClass::Interrupted, Some("its window was closed".to_owned())),
            Some(Cause::Lost) => {
                let why = self.ended.lost.clone().unwrap_or_default();
                (
                    RunClass::Interrupted,
                    Some(format!("it could not be watched any more, and was ended: {why}")),
                )
            }
            Some(Cause::Runaway) => (RunClass::Runaway, Some("it said the same over and over".to_owned())),
        };
        let detail = with_remark(detail, self.last_sign());
        let remark = self.overspent().filter(|_| class != RunClass::Budget);
        let detail = with_remark(detail, remark);
        let state = match class {
            RunClass::Done => LaneState::Done,
            RunClass::Stopped => LaneState::Stopped,
            RunClass::Stalled => LaneState::Stalled,
            _ => LaneState::Failed,
        };
        Verdict { state, class, detail, already: false }
    }

    /// A hint at why the run ended as it did, in words: failing requests that its agent sent again, the end of the agent's standard error
    /// or of its window, or a time limit that it reached in silence. None where the run's end needs no hint, or has none.
    fn last_sign(&self) -> Option<String> {
        let ended = self.ended;
        let failed = ended.cause.is_none() && ended.status.code().is_some_and(|code| code != 0);
        let is_out_of_time = ended.cause == Some(Cause::Time);
        let tells = match (ended.cause, &ended.hint) {
            (None, Some(Hint::Screen(words))) if failed => {
                return Some(format!("its window ended with: {words}"));
            }
            (Some(Cause::Time | Cause::Stall), Some(Hint::Retrying(words))) => return Some(words.clone()),
            (None, _) => self.order.dialect.judges_its_end() && ended.summary.wordless,
            (Some(cause), _) => matches!(cause, Cause::Time | Cause::Stall),
        };
        let errors = self.project.store.layout().run_errors(&self.lane.name, self.attempt);
        if let Some(words) = lane::last_words(&errors).filter(|_| tells) {
            return Some(format!("its errors end with: {words}"));
        }
        match (&ended.hint, self.order.limits.time) {
            // An agent that says nothing of requests that it sends again is like that.
            (Some(Hint::Silent(time)), Some(limit)) if is_out_of_time && *time >= limit / 2 => {
                Some(format!("it had written nothing for {} s", time.as_secs()))
            }
            _ => None,
        }
    }

    /// That it has cost more than it might, where nothing ended it in time.
    fn overspent(&self) -> Option<String> {
        let (budget, cost) = (self.order.limits.budget?, self.ended.account.cost?.nanos);
        let [said, allowed] = [cost, budget].map(dollars);
        (cost > budget).then(|| format!("it cost ${said}, more than the ${allowed} that it might"))
    }

    /// `done` needs evidence: the agent ended well and there is something to show.
    fn by_evidence(&self) -> Result<Verdict, Error> {
        match self.lane.clone().with_tree() {
            Ok(lane) => self.by_commits(&lane),
            Err(Purpose::InPlace) => self.by_changes(),
            Err(purpose) => self.by_answer(purpose),
        }
    }

    /// What a run that only looked has to show is what it said.
    fn by_answer(&self, purpose: Purpose) -> Result<Verdict, Error> {
        let mut verdict = self.how_it_ended();
        if verdict.state != LaneState::Done {
            return Ok(verdict);
        }
        let for_machines = self.order.dialect.is_for_machines();
        let kept = answer::keep(self.project, self.lane, self.attempt, &self.ended.summary, for_machines)?;
        match kept {
            Kept::Whole => {}
            Kept::Part => verdict.detail = Some(format!("its {purpose} is long; the log has all of it")),
            Kept::Nothing => {
                let why = match purpose {
                    Purpose::Plan => "it ended without a plan",
                    _ => "it ended without an answer",
                };
                return Ok(Verdict {
                    state: LaneState::Failed,
                    class: RunClass::Failed,
                    detail: Some(why.to_owned()),
                    already: false,
                });
            }
        }
        Ok(verdict)
    }

    /// What a run in the main checkout has to show is what is not as it was there.
    fn by_changes(&self) -> Result<Verdict, Error> {
        let mut verdict = self.how_it_ended();
        let well = verdict.state == LaneState::Done;
        let run = RunRecord::load(&self.project.store.layout().run_record(&self.lane.name, self.attempt))?;
        let message = self.message();
        let message = self.may_commit(&verdict).then_some(message.as_str());
        let found = lane::end_in_place(self.project, self.lane, &run, message)?;
        if let Some(there) = found.astray {
            let why = format!("the main checkout is on {there} now, and nothing was committed for it");
            (verdict.state, verdict.class) = (LaneState::Failed, RunClass::Failed);
            verdict.detail = Some(why);
        } else if well && !found.changed {
            verdict.state = LaneState::NoChange;
        }
        let parts: Vec<String> = verdict.detail.into_iter().chain(found.remarks).collect();
        verdict.detail = (!parts.is_empty()).then(|| parts.join("; "));
        Ok(verdict)
    }

    /// Whether what a run left is committed for it.
    fn may_commit(&self, verdict: &Verdict) -> bool {
        let well = verdict.state == LaneState::Done;
        match self.project.settings.autocommit {
            Autocommit::Always => true,
            // The next run of a task that is a folder goes on from there.
            Autocommit::Success => well || self.order.stint.is_some() && is_iteration(verdict.class),
            Autocommit::Never => false,
        }
    }

    /// The message of such a commit.
    fn message(&self) -> String {
        format!("{}\n\nLeft uncommitted by the agent of lane {}.\n", self.lane.title, self.lane.name)
    }

    /// What a run in a lane with a branch has to show is commits there.
    fn by_commits(&self, lane: &LaneRecord) -> Result<Verdict, Error> {
        let mut verdict = self.how_it_ended();
        let well = verdict.state == LaneState::Done;
        let failed = |class, why: String| Verdict {
            state: LaneState::Failed,
            class,
            detail: Some(why),
            already: false,
        };
        if !self.project.repo.is_own_worktree(&lane.path) {
            return Ok(failed(verdict.class, "its folder is no worktree any more".to_owned()));
        }
        if let Some(missing) = self.project.repo.missing_in(&lane.path)? {
            let why = format!("{}; what is in it was left as it is, uncommitted", missing.in_words());
            return Ok(failed(verdict.class, why));
        }
        if self.project.repo.branch_tip(&lane.place.branch)?.is_none() {
            let kept = lane::keep_last_commit(self.project, lane)?;
            let kept = kept.map(|last| format!("; its last commit {} is kept", last.short()));
            let why = format!("branch {} is gone{}", lane.place.branch, kept.unwrap_or_default());
            return Ok(failed(verdict.class, why));
        }
        if let Some(astray) = lane::follow_head(self.project, lane)? {
            return Ok(failed(verdict.class, astray));
        }
        if let (false, true) = (well, self.was_at_rest(lane)?) {
            let detail = Some("its session was ended while it was idle".to_owned());
            return Ok(Verdict { state: LaneState::Done, detail, ..verdict });
        }
        let mut uncommitted = false;
        if self.may_commit(&verdict) {
            match commit_leftovers(self.project, lane, &self.message(), false) {
                Ok(Leftovers::Nothing) => {}
                // HEAD may have left the branch before.
                Ok(Leftovers::Committed(_)) => {
                    lane::follow_head(self.project, lane)?;
                }
                Err(e) => {
                    uncommitted = true;
                    verdict.detail = verdict.detail.or(Some(format!("uncommitted work: {e}")));
                }
            }
        } else {
            uncommitted = !git::status(&self.project.repo, &lane.path, true)?.is_clean();
        }
        let Some(tip) = self.project.repo.branch_tip(&lane.place.branch)? else {
            return Ok(failed(verdict.class, format!("branch {} is gone", lane.place.branch)));
        };
        if well && tip == lane.start && !uncommitted {
            verdict.state = LaneState::NoChange;
        }
        Ok(verdict)
    }

    /// Whether a person's session came to its end after all was done in it.
    fn was_at_rest(&self, lane: &LaneRecord) -> Result<bool, Error> {
        let ended = matches!(self.ended.cause, Some(Cause::Asked | Cause::Closed | Cause::Time));
        let idle = ended && self.order.launcher == Launcher::Window && lane::is_idle(self.project, lane);
        Ok(idle && lane::has_work(self.project, lane, None)?)
    }
}

/// What there is to say of an end, and a remark about it.
pub(super) fn with_remark(detail: Option<String>, remark: Option<String>) -> Option<String> {
    let parts: Vec<String> = detail.into_iter().chain(remark).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// How a program ended whose output says nothing of that.
fn by_exit(status: ExitStatus) -> (RunClass, Option<String>) {
    match (status.code(), status.signal()) {
        (Some(0), _) => (RunClass::Done, None),
        (Some(code), _) => (RunClass::Failed, Some(format!("exit code {code}"))),
        (None, signal) => {
            (RunClass::Crashed, Some(format!("killed by signal {}", signal.unwrap_or_default())))
        }
    }
}

fn class_of(class: Class) -> RunClass {
    match class {
        Class::Done => RunClass::Done,
        Class::Failed => RunClass::Failed,
        Class::RateLimited => RunClass::RateLimited,
        Class::Unavailable => RunClass::Unavailable,
        Class::TokenLimit => RunClass::TokenLimit,
        Class::Auth => RunClass::Auth,
        Class::MaxTurns => RunClass::MaxTurns,
        Class::Budget => RunClass::Budget,
        Class::Refused => RunClass::Refused,
        Class::Crashed => RunClass::Crashed,
        Class::Interrupted => RunClass::Interrupted,
    }
}

/// What came of a run, in a line.
fn shown(lane: &AnyLane, verdict: &Verdict) -> String {
    let more = verdict.detail.as_ref().map(|d| format!(" ({d})")).unwrap_or_default();
    format!("lane '{}': {}{more}", lane.name, verdict.state)
}
