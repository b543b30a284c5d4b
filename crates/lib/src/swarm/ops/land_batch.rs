//! Landing of a batch's branch on its base through a lane of its own, and marks in the plan for what has
//! landed.

use proq_git::CommitId;
use proq_store::base::batch_id::BatchId;
use proq_store::records::lane::LaneRecord;

use crate::lane::Project;
use crate::merge::types::outcome::{LandingReport, LaneOutcome, Verdict};
use crate::ops::error::Error;
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
    pub lane: LaneRecord,
    /// Whether the landing lane exists and has everything that is to land.
    pub is_lane_up_to_date: bool,
    batch: BatchRecord,
    onto: String,
}

/// The two ways in which the caller lands the landing lane.
pub struct LandLane<'a> {
    /// Forecasts the landing of a lane as it would be, without checks and without effects.
    pub forecast: &'a dyn Fn(&LaneRecord) -> Result<LandingReport, Error>,
    /// Lands the existing landing lane.
    pub land: &'a dyn Fn() -> Result<LandingReport, Error>,
}

/// What became of the landing of a batch.
pub struct LandBatchOutcome {
    /// Report on the landing lane.
    pub report: LandingReport,
    /// Whether the report is a forecast without effect, for which no lane was created.
    pub is_forecast: bool,
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
    /// Creates or advances the landing lane, lands it, and marks the landed tasks in the plan. A lane that would
    /// change nothing is not created, and one that was created for nothing is removed.
    ///
    /// # Errors
    /// As the landing of any lane; fails when the landing lane cannot be created.
    pub fn execute(self, project: &Project, land_lane: &LandLane<'_>) -> Result<LandBatchOutcome, Error> {
        let LandBatchPlan { lane, is_lane_up_to_date, batch, onto } = self;
        let mark = |report: &LandingReport, tip: Option<CommitId>| {
            let is_landed = report.exit() == proq_base::explain::Exit::Success;
            tip.filter(|_| is_landed).map(|tip| mark_landed_tasks(project, &batch, &onto, tip))
        };
        if !is_lane_up_to_date {
            let report = (land_lane.forecast)(&lane)?;
            let has_no_effect =
                |outcome: &LaneOutcome| matches!(outcome.result, Verdict::Refused | Verdict::AlreadyLanded);
            if report.lanes.iter().all(has_no_effect) {
                let marks = mark(&report, project.repo.branch_tip(&batch.branch)?);
                return Ok(LandBatchOutcome { report, is_forecast: true, marks });
            }
        }
        let (lane, is_new) = batch_landing::open_landing_lane(project, &batch)?;
        // The lane's current tip is what lands. More tasks may land on the batch's branch concurrently.
        let tip = project.repo.branch_tip(&lane.kind.branch)?;
        let result = (land_lane.land)();
        let is_all_refused =
            |report: &LandingReport| report.lanes.iter().all(|outcome| outcome.result == Verdict::Refused);
        let removal = match is_new && result.as_ref().map_or(true, is_all_refused) {
            true => batch_landing::remove_landing_lane(project, &lane.name),
            false => Ok(()),
        };
        // The reason why no lane landed is reported before a failed removal of the landing lane.
        let report = result?;
        removal?;
        let marks = mark(&report, tip);
        Ok(LandBatchOutcome { report, is_forecast: false, marks })
    }
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
