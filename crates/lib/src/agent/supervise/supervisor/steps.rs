//! Choice and preparation of the next run of a task loop.

use proq_base::fail_points;
use proq_base::run_class::RunClass;
use proq_git::CommitId;
use proq_store::base::record::Record;
use proq_store::records::lane_state::RunState;
use proq_store::records::run::RunRecord;

use super::retry_state::RetryState;
use super::state::{NextRun, Supervisor};
use crate::agent::Error;
use crate::agent::launch::run_spec::RunSpec;
use crate::agent::launch::task_loop_start::prepare_next_step;
use crate::agent::supervise::classify::{RunClassifier, RunOutcome};
use crate::agent::task_loop::active_task::{ActiveTask, FinishedRun, completes_iteration};
use crate::agent::task_loop::loop_planner::NextAction as Coming;

impl Supervisor<'_> {
    /// Records a finished run in the record of its task loop, if it belongs to one. Returns the reason why
    /// the loop cannot continue, or `None`.
    ///
    /// # Errors
    /// Fails when the record cannot be written.
    pub(crate) fn record_step_run(
        &mut self,
        finished_run: &RunClassifier<'_>,
        verdict: &RunOutcome,
    ) -> Result<Option<String>, Error> {
        let spec = finished_run.spec;
        if spec.step_run.is_none() {
            return Ok(None);
        }
        let (project, lane) = (self.project, self.lane.clone());
        let step_result = FinishedRun {
            class: verdict.class,
            detail: verdict.detail.as_deref(),
            answer: finished_run.run_exit.summary.answer.as_deref(),
            missing_verdict_is_failure: counts_as_step_run(spec, verdict.class),
        };
        self.write_with_retries(|| {
            let path = project.store.layout().run_record(&lane.name, spec.run_number);
            let recorded = RunRecord::load(&path).map_err(Error::from).and_then(|run| {
                let task_loop = ActiveTask::find(project, &lane)?;
                task_loop.map_or(Ok(None), |mut task_loop| task_loop.record_run(&run, step_result))
            });
            match recorded {
                // A full disk may have free space again.
                Err(e @ Error::Store(_)) => Err(e),
                Err(e) => Ok(Some(e.to_string())),
                stop_reason => stop_reason,
            }
        })
    }

    /// Decides what follows a run of a task loop, and writes it into the verdict. If `stop_reason` is given,
    /// the task fails with it.
    pub(crate) fn plan_next_step(
        &mut self,
        spec: &RunSpec,
        verdict: &mut RunOutcome,
        stop_reason: Option<String>,
    ) -> NextRun {
        let mut end_task = |state, reason: String| {
            (verdict.state, verdict.detail) = (state, Some(reason));
            NextRun::End
        };
        if let Some(reason) = stop_reason {
            return end_task(RunState::Failed, reason);
        }
        if !counts_as_step_run(spec, verdict.class) {
            return if self.is_wrap_up_requested() { NextRun::End } else { self.plan_retry(spec, verdict) };
        }
        let planned = ActiveTask::find(self.project, &self.lane).and_then(|task_loop| match task_loop {
            None => Ok((Coming::Done, String::new(), None)),
            Some(task_loop) => {
                Ok((task_loop.next_action()?, task_loop.describe_progress()?, Some(task_loop.record().start)))
            }
        });
        match planned {
            Err(e) => end_task(RunState::Failed, e.to_string()),
            Ok((Coming::Fail(reason), progress_text, _)) => {
                let next = end_task(RunState::Failed, format!("{reason}; {progress_text}"));
                verdict.class = RunClass::GivenUp;
                next
            }
            Ok((Coming::Done, progress_text, start)) => {
                let state = if self.has_result(start) { RunState::Done } else { RunState::NoChange };
                end_task(state, progress_text)
            }
            Ok((Coming::Run { .. }, progress_text, _)) if self.is_wrap_up_requested() => {
                end_task(RunState::Stopped, format!("asked to wrap up; {progress_text}"))
            }
            Ok((Coming::Run { .. }, progress_text, _)) => {
                self.retry_state = RetryState::default();
                verdict.detail = Some(progress_text);
                NextRun::Step
            }
        }
    }

    /// Returns whether the task, which started at commit `start`, produced a commit or an uncommitted change.
    fn has_result(&self, start: Option<CommitId>) -> bool {
        let Ok(lane) = self.lane.clone().into_owned_lane() else { return true };
        let tip = self.project.repo.branch_tip(&lane.kind.branch).ok().flatten();
        tip != start
            || !proq_git::status::status_query::status(&self.project.repo, &lane.path, true)
                .is_ok_and(|dirty_state| dirty_state.is_clean())
    }

    /// Prepares the next run of the task loop. If that fails, ends the lane as failed and returns `None`.
    pub(crate) fn prepare_step_run(&mut self) -> Result<Option<RunSpec>, Error> {
        fail_points::hit("step.written");
        match prepare_next_step(self.project, &self.lane) {
            Ok(spec) => {
                fail_points::hit("step.prepared");
                Ok(Some(spec))
            }
            Err(Error::TaskLoopStopped { reason, .. }) => {
                self.end_run(RunState::Failed, &reason)?;
                Ok(None)
            }
            Err(e) => {
                self.end_run(RunState::Failed, &format!("it could not continue with its next step: {e}"))?;
                Ok(None)
            }
        }
    }
}

/// Returns whether a run that ended with this class counts in its task loop. A run that does not count is
/// retried, or ends the task.
fn counts_as_step_run(spec: &RunSpec, class: RunClass) -> bool {
    if !spec.is_review() {
        return completes_iteration(class);
    }
    match class {
        RunClass::Stopped | RunClass::Timeout | RunClass::Budget => false,
        RunClass::RateLimited | RunClass::Unavailable => !spec.may_retry,
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
