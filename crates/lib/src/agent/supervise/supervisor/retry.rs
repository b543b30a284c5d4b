//! Retries of failed runs: whether and when a run is retried, and how its lane is rewound.

use std::time::Duration;

use proq_base::fail_points;
use proq_store::base::clock::now;
use proq_store::base::record::Record;
use proq_store::base::run_number::RunNumber;
use proq_store::records::lane_state::RunState;
use proq_store::records::run::RunRecord;

use super::retry_state::{BUDGET_SPENT_REASON, Retry};
use super::state::{NextRun, Supervisor};
use crate::agent::Error;
use crate::agent::launch::prepare_run;
use crate::agent::launch::run_spec::RunSpec;
use crate::agent::supervise::classify::{RunOutcome, append_detail};
use crate::agent::supervise::retry_policy::RetryPolicy;
use crate::agent::task_loop::active_task::ActiveTask;
use crate::lane;
use crate::lane::messages::inbox::Inbox;
use crate::run::rewind;
use crate::run::rewind::LaneFingerprint;
use crate::session::in_place_finish;

/// Extra delay after a usage limit resets, for clocks that differ.
const LIMIT_RESET_MARGIN: Duration = Duration::from_secs(1);

impl Supervisor<'_> {
    /// Decides whether and when a failed run is retried, and adds the decision to the verdict's detail.
    pub(crate) fn plan_retry(&mut self, spec: &RunSpec, verdict: &mut RunOutcome) -> NextRun {
        if verdict.state == RunState::Done || verdict.state == RunState::NoChange || !spec.may_retry {
            return NextRun::End;
        }
        self.retry_state.failed_classes.push(verdict.class);
        let default_policy = RetryPolicy::from_settings(&self.project.settings);
        let policy = if spec.is_batch_task { default_policy.without_crash_retries() } else { default_policy };
        let delay = policy.next_wait(&self.retry_state.failed_classes);
        let mut add_note = |note: String| verdict.detail = append_detail(verdict.detail.take(), Some(note));
        let reset = self.retry_state.limit_reset_at.map(|at| (at, at.duration_since(now())));
        if let Some((at, _)) =
            reset.filter(|(_, remaining)| delay.is_none() || *remaining > self.project.settings.reset_wait)
        {
            add_note(format!("its limit is lifted at {}, which it does not wait for", at.to_local_text()));
            return NextRun::End;
        }
        let Some(delay) = delay else { return NextRun::End };
        if self.retry_state.is_budget_spent {
            add_note(BUDGET_SPENT_REASON.to_owned());
            return NextRun::End;
        }
        let (retry_delay, when) = match reset.filter(|(_, remaining)| *remaining > delay) {
            // With a margin, for clocks that differ.
            Some((at, remaining)) => (
                remaining + LIMIT_RESET_MARGIN,
                format!("at {}, when its limit is lifted", at.to_local_text()),
            ),
            None => (delay, format!("in {} s", delay.as_secs())),
        };
        let announcement = format!("; it is tried again {when}");
        let retry_note = format!("{}{announcement}", verdict.class);
        verdict.detail =
            Some(verdict.detail.take().map_or_else(|| retry_note.clone(), |d| format!("{d}: {retry_note}")));
        NextRun::Retry(Retry { delay: retry_delay, end_fingerprint: self.lane_fingerprint(), announcement })
    }

    /// Waits for the delay, rewinds the lane to its state before the run, and prepares the retry. If a user
    /// stops the lane or the retry is impossible, ends the lane and returns `None`.
    pub(crate) fn prepare_retry(&mut self, spec: &RunSpec, retry: Retry) -> Result<Option<RunSpec>, Error> {
        let announcement = retry.announcement.clone();
        let next = self.wait_and_prepare_retry(spec, retry)?;
        if next.is_none() {
            self.withdraw_announcement(spec.run_number, &announcement);
        }
        Ok(next)
    }

    /// Removes the announcement of a retry that does not happen from the run's record, if that can be written.
    fn withdraw_announcement(&self, run_number: RunNumber, announcement: &str) {
        let path = self.project.store.layout().run_record(&self.lane.name, run_number);
        let Ok(Some(mut run)) = RunRecord::load_if_exists(&path) else { return };
        if let Some(detail) = &mut run.detail {
            *detail = detail.replace(announcement, "");
            drop(run.save(&path));
        }
    }

    fn wait_and_prepare_retry(&mut self, spec: &RunSpec, retry: Retry) -> Result<Option<RunSpec>, Error> {
        fail_points::hit("again.told");
        let stopped = self.runtime.block_on(async {
            tokio::select! {
                () = self.shutdown_signals.wait() => true,
                () = tokio::time::sleep(retry.delay) => false,
            }
        });
        if stopped {
            self.end_run(RunState::Stopped, "stopped before it was tried again")?;
            return Ok(None);
        }
        let run = match self.rewind_for_retry(spec.run_number, retry.end_fingerprint) {
            Ok(run) => run,
            Err(reason) => {
                self.end_run(RunState::Failed, &format!("it is not tried again: {reason}"))?;
                return Ok(None);
            }
        };
        // The work for messages received during the run was reverted too, so they wait again.
        let returned = Inbox::new(&self.project.store, &self.lane.name).requeue(spec.run_number);
        if let Err(e) = returned.map_err(|e| e.to_string()).and_then(|()| self.restore_status_file(spec)) {
            self.end_run(RunState::Failed, &format!("it is not tried again: {e}"))?;
            return Ok(None);
        }
        match prepare_run::prepare_retry(self.project, &self.lane, &run, self.retry_state.spent) {
            Ok(retry_spec) => Ok(Some(retry_spec)),
            Err(e) => {
                self.end_run(RunState::Failed, &format!("it could not be tried again: {e}"))?;
                Ok(None)
            }
        }
    }

    /// Restores STATUS.md to its text before a run that is retried from its start.
    fn restore_status_file(&self, spec: &RunSpec) -> Result<(), String> {
        if spec.step_run.is_none() {
            return Ok(());
        }
        let task_loop = ActiveTask::find(self.project, &self.lane).map_err(|e| e.to_string())?;
        task_loop
            .map_or(Ok(()), |task_loop| task_loop.restore_status(spec.run_number))
            .map_err(|e| e.to_string())
    }

    /// Returns the fingerprint of the lane's tip and uncommitted files, or `None` for a guest lane.
    fn lane_fingerprint(&self) -> Result<Option<LaneFingerprint>, lane::Error> {
        self.lane
            .clone()
            .into_owned_lane()
            .ok()
            .map(|lane| LaneFingerprint::capture(&self.project.repo, &lane))
            .transpose()
    }

    /// Rewinds the lane to its state before a run, notes in the run's record where the work is saved, and
    /// returns that record. If the lane differs from `end_fingerprint`, rewinds nothing and returns the
    /// reason as an error.
    fn rewind_for_retry(
        &self,
        run_number: RunNumber,
        end_fingerprint: Result<Option<LaneFingerprint>, lane::Error>,
    ) -> Result<RunRecord, String> {
        let project = self.project;
        let current_fingerprint = self.lane_fingerprint().map_err(|e| e.to_string())?;
        if end_fingerprint.map_err(|e| e.to_string())? != current_fingerprint {
            return Err("the lane was changed meanwhile, and these changes are kept".to_owned());
        }
        let path = project.store.layout().run_record(&self.lane.name, run_number);
        let mut run = RunRecord::load(&path).map_err(|e| e.to_string())?;
        if self.lane.works_in_place() {
            return match in_place_finish::has_in_place_changes(project, &self.lane, &run) {
                Ok(false) => Ok(run),
                Ok(true) => Err("the main checkout has changed and is not restored".to_owned()),
                Err(e) => Err(e.to_string()),
            };
        }
        let Ok(lane) = self.lane.clone().into_owned_lane() else { return Ok(run) };
        let reason = format!("what run {run_number} of lane {} had done when it failed", lane.name);
        let rewind_outcome =
            rewind::rewind_lane(project, &lane, run.tip_before, &reason).map_err(|e| e.to_string())?;
        if let Some(saved_note) = rewind_outcome.describe() {
            run.detail = Some(
                run.detail
                    .take()
                    .map_or_else(|| saved_note.clone(), |detail| format!("{detail}; {saved_note}")),
            );
            // The work is saved, whether or not the note could be written.
            drop(run.save(&path));
        }
        Ok(run)
    }
}
