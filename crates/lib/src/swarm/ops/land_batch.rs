//! Landing of a batch's branch on its base through a lane of its own, and marks in the plan for what has
//! landed.

use proq_base::diagnostics::Listener;
use proq_base::explain::Exit;
use proq_git::CommitId;
use proq_store::base::batch_id::BatchId;
use proq_store::records::lane::LaneRecord;

use crate::lane::Project;
use crate::merge::types::options::LandingOptions;
use crate::merge::types::outcome::{LandingReport, LaneOutcome, Verdict};
use crate::ops::error::Error;
use crate::ops::land::merge;
use crate::ops::land::merge::{MergeOutcome, MergeRequest, PushChoice};
use crate::ops::reporter::{Reporter, SilentReporter};
use crate::swarm;
use crate::swarm::batch::create;
use crate::swarm::batch::record::BatchRecord;
use crate::swarm::landing::plan_marks::PlanMarks;
use crate::swarm::landing::{batch_landing, landed_marks};

/// Request to land a batch.
#[derive(Debug, Clone, Default)]
pub struct LandBatchRequest {
    /// Id of the batch or a prefix of it.
    pub batch_name: String,
    /// Branch to land on; none for the batch's base.
    pub onto: Option<String>,
    /// Whether a strict batch lands although not all of its criteria are met.
    pub force: bool,
}

/// A batch whose landing lane would land.
pub struct LandBatchPlan {
    /// The landing lane as it is, or as it would be.
    lane: LaneRecord,
    /// Whether the landing lane exists and has everything that is to land.
    is_lane_up_to_date: bool,
    batch: BatchRecord,
    onto: String,
}

/// What became of the landing of a batch.
pub struct LandBatchOutcome {
    /// Outcome of the landing lane. Where nothing could land, it is that of a forecast, and no lane was created.
    pub merge: MergeOutcome,
    /// Marks in the plan; none if nothing has landed.
    pub marks: Option<BatchMarks>,
}

/// What was marked in the plan of a batch.
pub struct BatchMarks {
    /// Id of the batch.
    pub batch: BatchId,
    /// Branch on which the tasks have landed.
    pub onto: String,
    /// The marks. A failure does not undo the landing.
    pub result: Result<PlanMarks, swarm::Error>,
}

/// Finds the batch and its landing lane.
///
/// # Errors
/// Fails when the batch is unknown or has nothing to land, its base is gone, or its criteria are not met.
pub fn plan(project: &Project, request: &LandBatchRequest) -> Result<LandBatchPlan, Error> {
    let batch = create::find_batch(project, &request.batch_name)?;
    if !request.force {
        batch_landing::require_criteria_met(project, &batch)?;
    }
    if request.onto.is_none() {
        batch_landing::require_base(project, &batch)?;
    }
    let forecast = batch_landing::forecast_landing_lane(project, &batch)?;
    let onto = request.onto.clone().unwrap_or_else(|| batch.base.clone());
    Ok(LandBatchPlan { lane: forecast.lane, is_lane_up_to_date: forecast.is_up_to_date, batch, onto })
}

impl LandBatchPlan {
    /// Forecasts the landing of the landing lane as it would be, without a change. `request` is about how it
    /// lands; its lanes are ignored.
    ///
    /// # Errors
    /// As [`merge::MergePlan::forecast`].
    pub fn forecast(
        self,
        project: &Project,
        request: MergeRequest,
        reporter: &dyn Reporter,
    ) -> Result<MergeOutcome, Error> {
        let stop = request.stop && self.is_lane_up_to_date;
        let request = MergeRequest { stop, ..self.landing_request(request) };
        merge::plan(project, &request)?.forecast(project, reporter)
    }

    /// Creates or advances the landing lane, lands it by `request`, and marks the landed tasks in the plan.
    /// A lane that would change nothing is not created, and one that was created for nothing is removed.
    /// `on_landed` receives the outcome of the landing before anything that may fail after it.
    ///
    /// # Errors
    /// As the landing of any lane; fails when the landing lane cannot be created.
    pub fn execute(
        self,
        project: &Project,
        request: MergeRequest,
        reporter: &dyn Reporter,
        on_landed: &dyn Fn(&MergeOutcome),
    ) -> Result<LandBatchOutcome, Error> {
        let _scope = reporter.enter_cancellation();
        let request = self.landing_request(request);
        let mark = |outcome: &MergeOutcome, tip: Option<CommitId>| {
            let is_landed = outcome.report.exit() == Exit::Success;
            tip.filter(|_| is_landed).map(|tip| mark_landed_tasks(project, &self.batch, &self.onto, tip))
        };
        if request.simulated_lane.is_some()
            && let Some(merge) = forecast_without_effect(&request)?
        {
            on_landed(&merge);
            let marks = mark(&merge, project.repo.branch_tip(&self.batch.branch)?);
            return Ok(LandBatchOutcome { merge, marks });
        }
        let request = MergeRequest { simulated_lane: None, ..request };
        let (lane, is_new) = batch_landing::open_landing_lane(project, &self.batch)?;
        // The lane's current tip is what lands. More tasks may land on the batch's branch concurrently.
        let tip = project.repo.branch_tip(&lane.kind.branch)?;
        let result = merge::plan(project, &request).and_then(|plan| plan.execute(project, reporter));
        result.iter().for_each(on_landed);
        let is_all_refused = |merge: &MergeOutcome| {
            merge.report.lanes.iter().all(|outcome| outcome.result == Verdict::Refused)
        };
        let removal = match is_new && result.as_ref().map_or(true, is_all_refused) {
            true => batch_landing::remove_landing_lane(project, &lane.name),
            false => Ok(()),
        };
        // The reason why no lane landed is reported before a failed removal of the landing lane.
        let merge = result?;
        removal?;
        let marks = mark(&merge, tip);
        Ok(LandBatchOutcome { merge, marks })
    }

    /// Returns the request for the landing lane: simulated, unless it exists with all that is to land.
    fn landing_request(&self, request: MergeRequest) -> MergeRequest {
        MergeRequest {
            lanes: vec![self.lane.name.to_string()],
            simulated_lane: (!self.is_lane_up_to_date).then(|| Box::new(self.lane.clone())),
            options: LandingOptions { force: false, ..request.options },
            ..request
        }
    }
}

/// Forecasts a landing, and returns its outcome if it would have no effect; `None` if something would land.
/// Runs no hook of the repository, and shows nothing.
fn forecast_without_effect(request: &MergeRequest) -> Result<Option<MergeOutcome>, Error> {
    let project = Project::open(&request.current_dir, Listener::silent())?;
    let request = MergeRequest {
        push: PushChoice::Keep,
        stop: false,
        options: LandingOptions { skip_hooks: true, ..request.options.clone() },
        ..request.clone()
    };
    let outcome = merge::plan(&project, &request)?.forecast(&project, &SilentReporter)?;
    let has_no_effect =
        |outcome: &LaneOutcome| matches!(outcome.result, Verdict::Refused | Verdict::AlreadyLanded);
    let is_without_effect = outcome.report.lanes.iter().all(has_no_effect);
    Ok(is_without_effect.then_some(MergeOutcome { dry_run: false, conflict_agent: None, ..outcome }))
}

/// Marks the landed tasks of batches whose landing lanes were landed by name, for example after a conflict.
pub fn mark_tasks_of_landed_batches(project: &Project, report: &LandingReport) -> Vec<BatchMarks> {
    let is_landed = |outcome: &&LaneOutcome| matches!(outcome.result, Verdict::Landed | Verdict::Resolved);
    let mut out = Vec::new();
    for outcome in report.lanes.iter().filter(is_landed) {
        if let Some((batch, tips)) = batch_landing::batch_of_landing_lane(project, &outcome.lane) {
            out.extend(tips.into_iter().map(|tip| mark_landed_tasks(project, &batch, &outcome.onto, tip)));
        }
    }
    out
}

fn mark_landed_tasks(project: &Project, batch: &BatchRecord, onto: &str, tip: CommitId) -> BatchMarks {
    let result = landed_marks::mark_landed(project, batch, onto, tip);
    BatchMarks { batch: batch.id.clone(), onto: onto.to_owned(), result }
}
