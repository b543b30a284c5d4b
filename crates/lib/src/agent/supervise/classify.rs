//! Classification of a finished run: its uncommitted work is saved, and its state is decided by evidence.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use proq_base::config::choices::Autocommit;
use proq_base::run_class::RunClass;
use proq_git as git;
use proq_git::status::status_query;
use proq_store::base::clock::now;
use proq_store::base::record::Record;
use proq_store::base::run_number::RunNumber;
use proq_store::locks::lock::LockName;
use proq_store::records::lane::{AnyLane, LanePurpose, LaneRecord};
use proq_store::records::lane_state::{LandingState, LaneStatus, RunState};
use proq_store::records::run::{RunRecord, RunSummary};
use proq_stream::base::run_end::ExitClass;

use super::answer;
use super::answer::SavedAnswer;
use super::follow_up::FollowUp;
use crate::agent::Error;
use crate::agent::base::limits::StopCause;
use crate::agent::hook_events::activity::reported_session;
use crate::agent::launch::launcher::Launcher;
use crate::agent::launch::run_spec::RunSpec;
use crate::agent::run::watch::{ExitHint, RunExit};
use crate::agent::task_loop::active_task::completes_iteration;
use crate::event::log;
use crate::lane;
use crate::lane::Project;
use crate::lane::context::head_ownership;
use crate::lane::inspection::{commit_subject, idle_lane};
use crate::lane::state::crash_reason;
use crate::run::leftovers::{LeftoversOutcome, commit_leftovers, snapshot_leftovers};
use crate::session::in_place_finish;

/// State and class of a finished run, with the reason.
#[derive(Debug, Clone)]
pub(crate) struct RunOutcome {
    pub state: RunState,
    pub class: RunClass,
    /// Reason for the state and class, in one line.
    pub detail: Option<String>,
    /// Whether the run changed nothing because its task had already been done.
    pub(crate) was_already_done: bool,
}

/// Classifier of a run that has ended.
pub(crate) struct RunClassifier<'a> {
    pub project: &'a Project,
    pub lane: &'a AnyLane,
    pub run_number: RunNumber,
    pub spec: &'a RunSpec,
    pub(crate) run_exit: &'a RunExit,
}

impl RunClassifier<'_> {
    /// Commits or copies what the run left uncommitted, and classifies the run. `outside_warning` describes
    /// changes that the run made outside its lane.
    pub fn classify(&self, outside_warning: Option<String>) -> RunOutcome {
        let classified = if self.spec.resolves_conflict || self.spec.is_review() {
            Ok(self.classify_exit())
        } else {
            self.classify_by_evidence()
        };
        let mut outcome = classified.unwrap_or_else(|e| RunOutcome {
            state: RunState::Failed,
            class: RunClass::Failed,
            detail: Some(format!("cannot inspect its result: {e}")),
            was_already_done: false,
        });
        outcome.detail = append_detail(outcome.detail, outside_warning);
        if let Some(e) = self.save_leftovers() {
            let text =
                format!("its uncommitted changes are only in the lane, because they could not be saved: {e}");
            outcome.detail = Some(outcome.detail.map_or_else(|| text.clone(), |d| format!("{d}; {text}")));
        }
        outcome
    }

    /// Writes the outcome to the run's record and to the lane's detail, and emits an event. The lane is in
    /// `run_state` until the run that follows starts.
    pub(crate) fn write_interim_outcome(
        &self,
        outcome: &RunOutcome,
        event_name: log::EventName,
        run_state: RunState,
    ) -> Result<AnyLane, Error> {
        let run = self.write_run_record(outcome)?;
        let lane = self.project.update_lane(&self.lane.name, |record| {
            record.status.run = run_state;
            record.detail.clone_from(&outcome.detail);
        })?;
        let mut text = outcome_line(&lane, outcome);
        // The state is the lane's, which may have commits of an earlier run.
        if outcome.state == RunState::Done && run.tip_after == Some(run.tip_before) {
            text.push_str(", with no new commit in this run");
        }
        self.project.emit(event_name, Some(&lane), text);
        Ok(lane)
    }

    /// Writes the outcome, exit and summary of the run to its record, and returns the record.
    fn write_run_record(&self, outcome: &RunOutcome) -> Result<RunRecord, Error> {
        let path = self.project.store.layout().run_record(&self.lane.name, self.run_number);
        let mut run = RunRecord::load(&path)?;
        run.ended = Some(now());
        run.outcome = Some(outcome.state);
        run.class = Some(outcome.class);
        run.detail.clone_from(&outcome.detail);
        run.exit_code = self.run_exit.status.code();
        run.signal = self.run_exit.status.signal();
        // An unreadable tip is ignored: the result of the run counts even where the tip can no longer be
        // read.
        run.tip_after = match self.lane.branch() {
            Some(branch) => self.project.repo.branch_tip(branch).ok().flatten(),
            None => self.project.repo.head_commit(&self.lane.path).ok().flatten(),
        };
        run.stopped_strays = self.run_exit.stray_count;
        let recorded_session = run.summary.session.take();
        let session = recorded_session
            .or_else(|| reported_session(&self.project.store, &self.lane.name, self.run_number));
        run.summary = RunSummary {
            session: self.run_exit.recorded_summary.session.clone().or(session),
            ..self.run_exit.recorded_summary.clone()
        };
        run.session_totals = Some(self.run_exit.summary.session_totals.clone());
        run.save(&path)?;
        Ok(run)
    }

    /// Writes the run's record, then the lane's. The follow-up is prepared between the two, so that its merge
    /// lock is held from the moment in which the lane is done.
    ///
    /// Returns none when `has_pending_message` reports a message for the agent, and does not finish the lane.
    /// The check happens under the store's lock. A sender checks under the same lock whether the lane is
    /// finished, so that no message is missed.
    pub(crate) fn write_outcome(
        &self,
        outcome: &RunOutcome,
        has_pending_message: impl FnOnce() -> bool,
    ) -> Result<Option<(AnyLane, FollowUp)>, Error> {
        let run = self.write_run_record(outcome)?;
        let resolves = self.spec.resolves_conflict;
        let landing = if resolves { LandingState::Conflict } else { LandingState::Open };
        let status = LaneStatus { run: outcome.state, landing };
        let can_move = !resolves && self.lane.branch().is_some();
        let has_new_commits = can_move && run.tip_after.is_some_and(|tip| tip != run.tip_before);
        let follow_up = FollowUp::prepare(&self.project.store, self.lane, status, has_new_commits);
        let store = self.project.store.locks().acquire(&LockName::Store)?;
        if has_pending_message() {
            return Ok(None);
        }
        let lane = self.project.update_lane_locked(&self.lane.name, &store, |record| {
            record.status = status;
            record.detail.clone_from(&outcome.detail);
            record.already_done = outcome.was_already_done;
            // A refusal that is not lasting was about the run before; one that waits for a person stays.
            record.auto_merge_refusal.take_if(|refused| !refused.is_refusal_final);
        })?;
        drop(store);
        self.project.emit(log::EventName::RunEnded, Some(&lane), outcome_line(&lane, outcome));
        Ok(Some((lane, follow_up)))
    }

    /// Copies the lane's uncommitted work to a snapshot, and returns the error if that fails. A lane with a
    /// conflict gets no snapshot, because a snapshot cannot hold unmerged paths.
    fn save_leftovers(&self) -> Option<Error> {
        let lane = self.lane.clone().into_owned_lane().ok()?;
        let repo = &self.project.repo;
        let is_complete = || {
            repo.is_registered_worktree(&lane.path)
                && matches!(repo.find_worktree_defect(&lane.path), Ok(None))
        };
        if self.spec.resolves_conflict || self.spec.is_review() || !is_complete() {
            return None;
        }
        let reason = format!("left uncommitted in lane {} by its run {}", self.lane.name, self.run_number);
        match snapshot_leftovers(self.project, &lane, &reason) {
            Ok(_) | Err(lane::Error::Git(git::Error::Unmerged { .. })) => None,
            Err(e) => Some(e.into()),
        }
    }

    /// Classifies the run by how its agent exited, and nothing else: first by why git-proq ended it, then by
    /// its last output, then by its exit code.
    fn classify_exit(&self) -> RunOutcome {
        let summary = &self.run_exit.summary;
        let reported_end = || match self.spec.dialect.reports_outcome() {
            // Signal 9 most often means out of memory.
            true if self.run_exit.status.signal() == Some(9) => (RunClass::Crashed, summary.detail.clone()),
            true => (to_run_class(summary.class), summary.detail.clone()),
            false => classify_exit_status(self.run_exit.status),
        };
        let (class, detail) = match self.run_exit.cause {
            None => reported_end(),
            // The result arrived while the budget was exceeded: the cost is spent, and the result counts.
            Some(StopCause::OverBudget) if reported_end().0 == RunClass::Done => reported_end(),
            Some(StopCause::DoneButRunning) => {
                let (class, detail) = reported_end();
                (class, detail.or_else(|| Some("it had to be stopped after its last message".to_owned())))
            }
            Some(StopCause::Requested) => (RunClass::Stopped, None),
            Some(StopCause::TimeLimit) => (RunClass::Timeout, Some("it reached its time limit".to_owned())),
            Some(StopCause::Stall) => {
                (RunClass::Stalled, Some("it made no progress for too long".to_owned()))
            }
            Some(StopCause::OverBudget) => (RunClass::Budget, Some("it reached its budget".to_owned())),
            Some(StopCause::ContextFull) => (RunClass::ContextFull, Some("its context is full".to_owned())),
            Some(StopCause::WindowClosed) => {
                (RunClass::Interrupted, Some("its window was closed".to_owned()))
            }
            Some(StopCause::WatchFailed) => {
                let reason = self.run_exit.watch_error.clone().unwrap_or_default();
                (
                    RunClass::Interrupted,
                    Some(format!("it could not be watched any longer and was stopped: {reason}")),
                )
            }
            Some(StopCause::RepeatedOutput) => {
                (RunClass::Runaway, Some("it repeated the same output".to_owned()))
            }
        };
        let detail = append_detail(detail, self.exit_hint());
        let over_budget = self.over_budget_detail().filter(|_| class != RunClass::Budget);
        let detail = append_detail(detail, over_budget);
        let state = match class {
            RunClass::Done => RunState::Done,
            RunClass::Stopped => RunState::Stopped,
            RunClass::Stalled => RunState::Stalled,
            _ => RunState::Failed,
        };
        RunOutcome { state, class, detail, was_already_done: false }
    }

    /// Returns a hint at why the run ended as it did: failing requests that the agent sent again, the end of
    /// its standard error or of its window, or a time limit that it reached in silence. None where the
    /// outcome needs no hint, or has none.
    fn exit_hint(&self) -> Option<String> {
        let run_exit = self.run_exit;
        let failed = run_exit.cause.is_none() && run_exit.status.code().is_some_and(|code| code != 0);
        let is_out_of_time = run_exit.cause == Some(StopCause::TimeLimit);
        let stderr_is_relevant = match (run_exit.cause, &run_exit.hint) {
            (None, Some(ExitHint::Screen(last_text))) if failed => {
                return Some(format!("its window ended with: {last_text}"));
            }
            (Some(StopCause::TimeLimit | StopCause::Stall), Some(ExitHint::Retrying(last_text))) => {
                return Some(last_text.clone());
            }
            (None, _) => self.spec.dialect.reports_outcome() && run_exit.summary.lacks_error_text,
            (Some(cause), _) => matches!(cause, StopCause::TimeLimit | StopCause::Stall),
        };
        let errors = self.project.store.layout().run_stderr(&self.lane.name, self.run_number);
        if let Some(last_text) = crash_reason::last_output(&errors).filter(|_| stderr_is_relevant) {
            return Some(format!("its errors end with: {last_text}"));
        }
        match (&run_exit.hint, self.spec.limits.time) {
            // Silence is typical of an agent that does not report the requests that it sends again.
            (Some(ExitHint::Silent(time)), Some(limit)) if is_out_of_time && *time >= limit / 2 => {
                Some(format!("it had written nothing for {} s", time.as_secs()))
            }
            _ => None,
        }
    }

    /// Describes the run's cost and its budget when the cost exceeds the budget; none otherwise.
    fn over_budget_detail(&self) -> Option<String> {
        let (allowed, spent) = (self.spec.limits.budget?, self.run_exit.recorded_summary.cost?.amount);
        (spent > allowed).then(|| format!("it cost ${spent}, more than the ${allowed} that it might"))
    }

    /// Classifies the run by evidence: the state `done` needs a successful exit and a result to show.
    fn classify_by_evidence(&self) -> Result<RunOutcome, Error> {
        match self.lane.clone().into_owned_lane() {
            Ok(lane) => self.classify_by_commits(&lane),
            Err(LanePurpose::InPlace) => self.classify_in_place_run(),
            Err(purpose) => self.classify_by_answer(purpose),
        }
    }

    /// Classifies a read-only run: its result is its last message, which is saved.
    fn classify_by_answer(&self, purpose: LanePurpose) -> Result<RunOutcome, Error> {
        let mut outcome = self.classify_exit();
        if outcome.state != RunState::Done {
            return Ok(outcome);
        }
        let is_machine_readable = self.spec.dialect.is_machine_readable();
        let saved = answer::save_answer(
            &self.project.store,
            self.lane,
            self.run_number,
            &self.run_exit.summary,
            is_machine_readable,
        )?;
        match saved {
            SavedAnswer::Complete => {}
            SavedAnswer::Truncated => {
                outcome.detail = Some(format!("its {purpose} is long; the log has all of it"));
            }
            SavedAnswer::Missing => {
                let reason = match purpose {
                    LanePurpose::Plan => "it ended without a plan",
                    _ => "it ended without an answer",
                };
                return Ok(RunOutcome {
                    state: RunState::Failed,
                    class: RunClass::Failed,
                    detail: Some(reason.to_owned()),
                    was_already_done: false,
                });
            }
        }
        Ok(outcome)
    }

    /// Finishes and classifies a run in the main checkout: commits its changes if the settings permit that.
    /// Its result is what differs from the state before the run.
    fn classify_in_place_run(&self) -> Result<RunOutcome, Error> {
        let mut outcome = self.classify_exit();
        let succeeded = outcome.state == RunState::Done;
        let run = RunRecord::load(&self.project.store.layout().run_record(&self.lane.name, self.run_number))?;
        let message = self.commit_message();
        let message = self.should_commit(&outcome).then_some(message.as_str());
        let in_place_end = in_place_finish::finish_in_place_run(self.project, self.lane, &run, message)?;
        if let Some(branch) = in_place_end.unexpected_branch {
            let reason = format!("the main checkout is on {branch} now, and nothing was committed for it");
            (outcome.state, outcome.class) = (RunState::Failed, RunClass::Failed);
            outcome.detail = Some(reason);
        } else if succeeded && !in_place_end.changed {
            outcome.state = RunState::NoChange;
        }
        let parts: Vec<String> = outcome.detail.into_iter().chain(in_place_end.notes).collect();
        outcome.detail = (!parts.is_empty()).then(|| parts.join("; "));
        Ok(outcome)
    }

    /// Returns whether git-proq commits what the run left uncommitted.
    fn should_commit(&self, outcome: &RunOutcome) -> bool {
        let succeeded = outcome.state == RunState::Done;
        match self.project.settings.autocommit {
            Autocommit::Always => true,
            // The next run of a task loop continues from that commit.
            Autocommit::Success => {
                succeeded || self.spec.step_run.is_some() && completes_iteration(outcome.class)
            }
            Autocommit::Never => false,
        }
    }

    /// Returns the message of the commit for uncommitted work.
    fn commit_message(&self) -> String {
        let note = format!("Left uncommitted by the agent of lane {}.", self.lane.name);
        commit_subject::commit_message(self.lane, &note)
    }

    /// Classifies a run in a lane with a branch: its result is the commits there.
    fn classify_by_commits(&self, lane: &LaneRecord) -> Result<RunOutcome, Error> {
        let mut outcome = self.classify_exit();
        let succeeded = outcome.state == RunState::Done;
        let failed = |class, reason: String| RunOutcome {
            state: RunState::Failed,
            class,
            detail: Some(reason),
            was_already_done: false,
        };
        if !self.project.repo.is_registered_worktree(&lane.path) {
            return Ok(failed(outcome.class, "its folder is no longer a worktree".to_owned()));
        }
        if let Some(missing_part) = self.project.repo.find_worktree_defect(&lane.path)? {
            let reason = format!("{}; its changes are still uncommitted", missing_part.describe());
            return Ok(failed(outcome.class, reason));
        }
        if self.project.repo.branch_tip(&lane.kind.branch)?.is_none() {
            let saved_commit = head_ownership::save_last_commit(self.project, lane)?;
            let saved_note = saved_commit.map(|last| format!("; its last commit {} is saved", last.short()));
            let reason = format!("branch {} is missing{}", lane.kind.branch, saved_note.unwrap_or_default());
            return Ok(failed(outcome.class, reason));
        }
        if let Some(head_problem) = head_ownership::move_branch_to_head(self.project, lane)? {
            return Ok(failed(outcome.class, head_problem));
        }
        if let (false, true) = (succeeded, self.was_idle_when_ended(lane)?) {
            let detail = Some("its session was ended while it was idle".to_owned());
            return Ok(RunOutcome { state: RunState::Done, detail, ..outcome });
        }
        let mut has_uncommitted_work = false;
        if self.should_commit(&outcome) {
            match commit_leftovers(self.project, lane, &self.commit_message(), false) {
                Ok(LeftoversOutcome::Nothing) => {}
                // HEAD may have left the branch before this commit.
                Ok(LeftoversOutcome::Committed(_)) => {
                    head_ownership::move_branch_to_head(self.project, lane)?;
                }
                Err(e) => {
                    has_uncommitted_work = true;
                    outcome.detail = outcome.detail.or(Some(format!("uncommitted work: {e}")));
                }
            }
        } else {
            has_uncommitted_work = !status_query::status(&self.project.repo, &lane.path, true)?.is_clean();
        }
        let Some(tip) = self.project.repo.branch_tip(&lane.kind.branch)? else {
            return Ok(failed(outcome.class, format!("branch {} is missing", lane.kind.branch)));
        };
        if succeeded && tip == lane.start && !has_uncommitted_work {
            outcome.state = RunState::NoChange;
        }
        Ok(outcome)
    }

    /// Returns whether an agent in a window was ended while it was idle, with all its work committed.
    fn was_idle_when_ended(&self, lane: &LaneRecord) -> Result<bool, Error> {
        let was_ended = matches!(
            self.run_exit.cause,
            Some(StopCause::Requested | StopCause::WindowClosed | StopCause::TimeLimit)
        );
        let idle = was_ended
            && self.spec.launcher == Launcher::Window
            && idle_lane::is_agent_idle(&self.project.store, lane);
        Ok(idle && idle_lane::has_committed_work(self.project, lane, None)?)
    }
}

/// Joins a detail and an addition to it with "; ".
pub(crate) fn append_detail(detail: Option<String>, addition: Option<String>) -> Option<String> {
    let parts: Vec<String> = detail.into_iter().chain(addition).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Classifies a program by its exit status, for output that does not report an outcome.
fn classify_exit_status(status: ExitStatus) -> (RunClass, Option<String>) {
    match (status.code(), status.signal()) {
        (Some(0), _) => (RunClass::Done, None),
        (Some(code), _) => (RunClass::Failed, Some(format!("exit code {code}"))),
        (None, signal) => {
            (RunClass::Crashed, Some(format!("killed by signal {}", signal.unwrap_or_default())))
        }
    }
}

fn to_run_class(class: ExitClass) -> RunClass {
    match class {
        ExitClass::Done => RunClass::Done,
        ExitClass::Failed => RunClass::Failed,
        ExitClass::RateLimited => RunClass::RateLimited,
        ExitClass::Unavailable => RunClass::Unavailable,
        ExitClass::TokenLimit => RunClass::TokenLimit,
        ExitClass::Auth => RunClass::Auth,
        ExitClass::MaxTurns => RunClass::MaxTurns,
        ExitClass::Budget => RunClass::Budget,
        ExitClass::Refused => RunClass::Refused,
        ExitClass::Crashed => RunClass::Crashed,
        ExitClass::Interrupted => RunClass::Interrupted,
    }
}

/// Returns the outcome of a run as one line for an event.
fn outcome_line(lane: &AnyLane, outcome: &RunOutcome) -> String {
    let detail_suffix = outcome.detail.as_ref().map(|d| format!(" ({d})")).unwrap_or_default();
    format!("lane '{}': {}{detail_suffix}", lane.name, outcome.state)
}
