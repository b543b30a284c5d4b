//! Verification of a batch's criteria at its end, by commands or by an agent that only reads.

use std::path::Path;
use std::time::Duration;

use proq_base::interrupt;
use proq_plan::schedule::action::BatchOutcome;
use proq_plan::schedule::task_phase::{FailureReason, TaskOutcome};
use proq_store as store;
use proq_store::base::atomic::write as write_atomically;
use proq_store::base::run_number::RunNumber;
use proq_store::records::lane::{AnyLane, LanePurpose};
use proq_store::records::lane_state::LaneState;

use super::runner::Runner;
use crate::lane::state::lane_state::effective_state;
use crate::merge::checks::verification;
use crate::merge::checks::verification::{VerifyRequest, VerifyResult};
use crate::swarm::Error;
use crate::swarm::batch::criteria_report::{CriteriaReport, CriterionStatus};
use crate::swarm::batch::plan_commands::criterion_command;
use crate::swarm::planner::agent_query::AgentQuery;
use crate::swarm::planner::criteria_review::{
    CriteriaReview, CriterionVerdict, ReviewOutcome, remove_review_lane,
};
use crate::swarm::planner::draft_error::DraftError;

/// Maximum number of prompts to an agent whose answers are unusable.
const MAX_ANSWER_ATTEMPTS: usize = 3;

/// Interval at which an agent's state is checked while its answer is awaited.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

impl Runner<'_> {
    /// Verifies the criteria of a finished batch. Results of a previous process count, and its unfinished
    /// verification is continued.
    ///
    /// # Errors
    /// When this process is to exit, or the report cannot be written.
    pub(super) fn verify_criteria(&mut self, outcome: BatchOutcome) -> Result<Option<CriteriaReport>, Error> {
        let record = &self.batch.record;
        if record.criteria.is_empty() {
            return Ok(None);
        }
        let tip = self.project.repo.branch_tip(&record.branch)?;
        let tip = tip.or(self.log_summary.branch_tips.last().copied()).unwrap_or(record.start);
        let path = self.project.store.layout().batch_criteria_results(self.batch.id());
        let previous_report = record
            .criteria_report(&self.project.store)
            .filter(|report| report.tip == tip && report.skipped.is_none());
        let mut report = previous_report.unwrap_or_else(|| CriteriaReport::new(tip, &record.criteria));
        if report.is_complete {
            return Ok(Some(report));
        }
        report.skipped = self.skip_reason(outcome);
        if report.skipped.is_none() {
            self.log_note("its criteria are being checked", &[])?;
            self.run_command_criteria(&mut report, &path)?;
            self.query_verify_agent(&mut report, &path)?;
        }
        if let Some(lane) = &report.lane {
            // A leftover lane of the verification does no harm.
            drop(remove_review_lane(self.project, lane, report.lane_created));
        }
        report.is_complete = true;
        proq_base::fail_points::hit("criteria.known");
        report.save(&path)?;
        proq_base::fail_points::hit("criteria.written");
        self.log_note(&report.describe(), &[])?;
        Ok(Some(report))
    }

    /// Returns the reason for which the criteria are not verified, if there is one.
    fn skip_reason(&self, outcome: BatchOutcome) -> Option<String> {
        let has_conflict = |task: &usize| {
            self.state.task_outcome(*task) == Some(TaskOutcome::Failed(FailureReason::ConflictUnresolved))
        };
        if let Some(task) = (0..self.batch.tasks.len()).find(has_conflict) {
            return Some(format!("the conflict of {} is not resolved", self.batch.task_name(task)));
        }
        match outcome {
            BatchOutcome::Aborted => Some("the batch was aborted".to_owned()),
            BatchOutcome::Stopped => Some("a failure ended the batch".to_owned()),
            BatchOutcome::Complete | BatchOutcome::Partial => None,
        }
    }

    /// Runs the criteria that are commands and have no result yet, and saves the report after each.
    fn run_command_criteria(&self, report: &mut CriteriaReport, path: &Path) -> Result<(), Error> {
        let id = self.batch.id();
        for index in 0..report.criteria.len() {
            let criterion = &report.criteria[index];
            let Some(command_line) = criterion_command(&criterion.text)
                .filter(|_| criterion.status.is_none())
                .map(ToOwned::to_owned)
            else {
                continue;
            };
            proq_base::fail_points::hit("criteria.command");
            let name = format!("swarm-{id}");
            let verification = VerifyRequest {
                command: &command_line,
                commit: report.tip,
                branch: &self.batch.record.branch,
                queue_name: &name,
            };
            match verification::verify_command(self.project, &verification) {
                Ok(VerifyResult::Passed { is_flaky: false }) => {
                    report.set_status(index, CriterionStatus::Yes, "it succeeds");
                }
                Ok(VerifyResult::Passed { is_flaky: true }) => {
                    report.set_status(
                        index,
                        CriterionStatus::Yes,
                        "it failed at first, and succeeds the second time",
                    );
                }
                Ok(VerifyResult::Failed { exit: how, log }) => {
                    let log_path = self.project.store.layout().batch_criterion_log(id, index + 1);
                    write_atomically(&log_path, &log)?;
                    report.criteria[index].log = Some(log_path);
                    report.set_status(index, CriterionStatus::No, format!("it fails ({how})"));
                }
                Err(e) => {
                    interrupt::require_no_signal().map_err(store::Error::from)?;
                    report.set_status(index, CriterionStatus::Unknown, format!("it could not be run: {e}"));
                }
            }
            report.save(path)?;
        }
        Ok(())
    }

    /// Lets the agent of the setting `swarm.verify_agent` judge the criteria that have no result yet.
    fn query_verify_agent(&self, report: &mut CriteriaReport, path: &Path) -> Result<(), Error> {
        let is_unverified = |index: &usize| report.criteria[*index].status.is_none();
        let unverified: Vec<usize> = (0..report.criteria.len()).filter(is_unverified).collect();
        if unverified.is_empty() {
            return Ok(());
        }
        let Some(agent) = self.project.settings.swarm.verify_agent.clone() else {
            for index in unverified {
                report.set_status(index, CriterionStatus::NotVerified, "swarm.verify_agent is not set");
            }
            return Ok(());
        };
        let texts: Vec<String> =
            unverified.iter().map(|index| report.criteria[*index].text.clone()).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let tip = report.tip.to_string();
        let query = AgentQuery {
            project: self.project,
            agent: &agent,
            model: None,
            purpose: LanePurpose::Answer,
            revision: Some(&tip),
        };
        let review = CriteriaReview::new(query, &self.batch.record.summary, &texts);
        let verdicts_or_reason = match self.request_verdicts(&review, report, path) {
            Ok(verdicts_or_reason) => verdicts_or_reason,
            Err(e) => {
                interrupt::require_no_signal().map_err(store::Error::from)?;
                Err(format!("it could not be started: {e}"))
            }
        };
        match verdicts_or_reason {
            Ok(verdicts) => {
                for verdict in verdicts {
                    report.set_status(
                        unverified[verdict.index],
                        verdict.status,
                        format!("{agent}: {}", verdict.evidence),
                    );
                }
            }
            Err(reason) => {
                for index in unverified {
                    report.set_status(index, CriterionStatus::Unknown, format!("{agent}: {reason}"));
                }
            }
        }
        Ok(report.save(path)?)
    }

    /// Prompts the agent until its answer is usable, a limited number of times. The inner error is the reason
    /// why the last answer was not usable.
    fn request_verdicts(
        &self,
        review: &CriteriaReview<'_>,
        report: &mut CriteriaReport,
        path: &Path,
    ) -> Result<Result<Vec<CriterionVerdict>, String>, DraftError> {
        let existing_lane = match &report.lane {
            Some(lane) => review.find_lane(lane, report.lane_created)?,
            None => None,
        };
        let mut lane = match existing_lane {
            Some(lane) if lane.last_run != RunNumber::NONE => lane,
            Some(lane) => review.retry(&lane)?,
            None => review.start(|lane| {
                (report.lane, report.lane_created) = (Some(lane.name.clone()), Some(lane.created));
                Ok(report.save(path)?)
            })?,
        };
        proq_base::fail_points::hit("criteria.asked");
        let mut answer = Err(String::new());
        for attempt in 1..=MAX_ANSWER_ATTEMPTS {
            let state = self.wait_for_answer(&mut lane)?;
            let is_last = attempt == MAX_ANSWER_ATTEMPTS;
            match review.read_outcome(&lane, state)? {
                ReviewOutcome::Verdicts(verdicts) => {
                    answer = Ok(verdicts);
                    break;
                }
                ReviewOutcome::Invalid { reason, answer: invalid_answer } => {
                    if !is_last {
                        lane = review.reject_answer(&lane, &invalid_answer, &reason)?;
                    }
                    answer = Err(reason);
                }
                ReviewOutcome::NoAnswer { reason } => {
                    if !is_last {
                        lane = review.retry(&lane)?;
                    }
                    answer = Err(reason);
                }
            }
        }
        report.cost = review.cost(&lane)?;
        Ok(answer)
    }

    /// Waits until the run in the lane has finished, reads the lane again, and returns its state.
    fn wait_for_answer(&self, lane: &mut AnyLane) -> Result<LaneState, DraftError> {
        loop {
            *lane = self.project.any_lane(&lane.name)?;
            let (state, detail) = effective_state(self.project, lane)?;
            if !state.is_busy() {
                lane.detail = detail;
                return Ok(state);
            }
            interrupt::require_no_signal().map_err(store::Error::from)?;
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}
