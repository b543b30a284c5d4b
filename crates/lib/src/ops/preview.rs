//! Preview of a lane in the main checkout: show, refresh and leave.

use proq_base::lane_name::LaneName;
use proq_store::records::lane::LaneRecord;
use serde::Serialize;

use super::error::Error;
use super::snapshot::result_name;
use crate::lane::Project;
use crate::preview::enter::EnterResult;
use crate::preview::leave::LeaveResult;
use crate::preview::plan::PreviewAction;
use crate::preview::refresh::RefreshResult;
use crate::preview::{enter, leave, plan as forecast, refresh};

/// What the main checkout is to show.
#[derive(Debug, Clone, Default)]
pub enum PreviewRequest {
    /// This lane.
    Show(Box<LaneRecord>),
    /// The newest commit of the lane that it shows.
    Refresh,
    /// What it showed before the preview.
    #[default]
    Leave,
}

/// Preview that is possible in this repository.
#[derive(Debug)]
pub struct PreviewPlan<'r>(&'r PreviewRequest);

/// What was or would be done.
#[derive(Debug)]
pub enum PreviewChange {
    /// The main checkout shows this lane.
    Entered(LaneName, EnterResult),
    /// The main checkout shows the newest commit of its lane.
    Refreshed(RefreshResult),
    /// The main checkout is back.
    Left(LeaveResult),
    /// Nothing was changed; the changes that would be made.
    Forecast(forecast::PreviewPlan),
}

/// Result or forecast of a preview.
#[derive(Debug, Serialize)]
pub struct PreviewOutcome {
    /// Name of the lane that the main checkout shows now, if any.
    pub lane: Option<LaneName>,
    /// Branch, lane or commit that the main checkout is on now.
    #[serde(rename = "on")]
    pub head: String,
    /// Id of the lane's commit that is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tip: Option<String>,
    /// Whether the user's changes are parked until the preview ends.
    #[serde(rename = "waiting")]
    pub has_parked_changes: bool,
    /// How the user's changes were restored: `exactly`, `merged` or `conflict`.
    #[serde(rename = "restored", skip_serializing_if = "Option::is_none")]
    pub restore_result: Option<&'static str>,
    /// Id of the stash-shaped commit that holds the user's changes, if a conflict prevented their restore.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    /// Paths whose conflicts prevented the restore.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<String>,
    /// Whether nothing was changed.
    pub dry_run: bool,
    /// Details of what was or would be done.
    #[serde(skip)]
    pub change: PreviewChange,
}

/// Checks that there is a main checkout for previews. All other conditions are checked under its lock.
///
/// # Errors
/// Fails in a bare repository.
pub fn plan<'r>(project: &Project, request: &'r PreviewRequest) -> Result<PreviewPlan<'r>, Error> {
    project.repo.require_main()?;
    Ok(PreviewPlan(request))
}

impl PreviewPlan<'_> {
    /// Returns what [`PreviewPlan::execute`] would do.
    ///
    /// # Errors
    /// Those of [`PreviewPlan::execute`].
    pub fn forecast(self, project: &Project) -> Result<PreviewOutcome, Error> {
        let action = match self.0 {
            PreviewRequest::Show(lane) => PreviewAction::Show(lane),
            PreviewRequest::Refresh => PreviewAction::Refresh,
            PreviewRequest::Leave => PreviewAction::Leave,
        };
        Ok(PreviewOutcome::new(PreviewChange::Forecast(forecast::plan_preview(project, action)?)))
    }

    /// Shows, refreshes or leaves the preview. The user's uncommitted changes are parked in a snapshot while
    /// a lane is shown.
    ///
    /// # Errors
    /// [`crate::preview::Error`]; nothing was changed then.
    pub fn execute(self, project: &Project) -> Result<PreviewOutcome, Error> {
        Ok(PreviewOutcome::new(match self.0 {
            PreviewRequest::Show(lane) => {
                PreviewChange::Entered(lane.name.clone(), enter::enter_preview(project, &lane.name)?)
            }
            PreviewRequest::Refresh => PreviewChange::Refreshed(refresh::refresh_preview(project)?),
            PreviewRequest::Leave => PreviewChange::Left(leave::leave_preview(project)?),
        }))
    }
}

impl PreviewOutcome {
    fn new(change: PreviewChange) -> PreviewOutcome {
        let mut outcome = PreviewOutcome {
            lane: None,
            head: String::new(),
            tip: None,
            has_parked_changes: false,
            restore_result: None,
            snapshot: None,
            conflicts: Vec::new(),
            dry_run: false,
            change,
        };
        match &outcome.change {
            PreviewChange::Entered(lane, entered) => {
                outcome.lane = Some(lane.clone());
                outcome.head = lane.to_string();
                outcome.tip = Some(entered.tip.to_string());
                outcome.has_parked_changes = entered.changes_parked;
            }
            PreviewChange::Refreshed(refreshed) => {
                outcome.lane = Some(refreshed.lane.clone());
                outcome.head = refreshed.lane.to_string();
                outcome.tip = Some(refreshed.new_commit.to_string());
                outcome.has_parked_changes = refreshed.has_parked_changes;
            }
            PreviewChange::Left(left) => {
                outcome.head = left.head.to_string();
                outcome.restore_result = left.restore_outcome.as_ref().map(result_name);
                outcome.snapshot = left.conflicting_snapshot.map(|id| id.to_string());
                outcome.conflicts = left.conflicts().iter().map(ToString::to_string).collect();
            }
            PreviewChange::Forecast(plan) => {
                outcome.lane.clone_from(&plan.lane);
                outcome.head.clone_from(&plan.target_head);
                outcome.has_parked_changes = !plan.parked_paths.is_empty() || plan.has_parked_changes;
                outcome.dry_run = true;
            }
        }
        outcome
    }
}
