//! A landing or its forecast: what became or would become of each lane and each base.

use proq_base::lane_name::LaneName;
use proq_git::status::diff::DiffStat;
use serde::Serialize;

use crate::merge::types::autostash::AutostashReport;
use crate::merge::types::outcome::{
    BaseForecast, CheckSummary, LandingReport, LaneForecast, LaneOutcome, PushReport,
};
use crate::ops::land::merge::MergeOutcome;

/// JSON output of a landing. A forecast, the landing's plan, also has what each base would have.
#[derive(Debug, Serialize)]
pub struct LandingOutput<'a> {
    /// Requested or eligible lanes, in the order in which they land; first those that were decided before.
    pub lanes: Vec<LandingRow<'a>>,
    /// Lanes that `--all` skipped, each with the reason.
    #[serde(rename = "left_out")]
    pub skipped: &'a [(LaneName, String)],
    /// Lanes whose agents were stopped first; in a forecast, would be.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub stopped: &'a [LaneName],
    /// Reasons why lanes are not in the default order.
    #[serde(rename = "order", skip_serializing_if = "<[_]>::is_empty")]
    pub order_notes: &'a [String],
    /// Checks; none without commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checks: Option<&'a CheckSummary>,
    /// Uncommitted changes that were saved and restored; in a forecast, would be.
    #[serde(rename = "autostash", skip_serializing_if = "<[_]>::is_empty")]
    pub autostashes: &'a [AutostashReport],
    /// Result of pushing each base that lanes landed on.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub pushed: &'a [PushReport],
    /// Whether this is a forecast.
    pub dry_run: bool,
    /// In a forecast, what each base would have that lanes would land on.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub bases: &'a [BaseForecast],
    /// In a forecast, the size of the differences of all bases together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diffstat: Option<DiffStat>,
}

/// One lane of a landing.
#[derive(Debug, Serialize)]
pub struct LandingRow<'a> {
    /// Result for the lane.
    #[serde(flatten)]
    pub outcome: &'a LaneOutcome,
    /// What the lane would add to its base; none unless this is a forecast in which it lands.
    #[serde(flatten)]
    pub forecast: Option<&'a LaneForecast>,
}

impl LandingOutput<'_> {
    /// Creates the output for the outcome of a landing or of its forecast.
    #[must_use]
    pub fn new(outcome: &MergeOutcome) -> LandingOutput<'_> {
        let LandingReport { lanes, skipped, stopped, order_notes, checks, autostashes, pushed, forecasts } =
            &outcome.report;
        let find_forecast = |outcome: &LaneOutcome| {
            let base = forecasts.iter().find(|base| base.onto == outcome.onto)?;
            base.lanes.iter().find(|forecast| forecast.lane == outcome.lane)
        };
        let row = |outcome| LandingRow { outcome, forecast: find_forecast(outcome) };
        LandingOutput {
            lanes: lanes.iter().map(row).collect(),
            skipped,
            stopped,
            order_notes,
            checks: checks.as_ref(),
            autostashes,
            pushed,
            dry_run: outcome.dry_run,
            bases: forecasts,
            diffstat: outcome.report.forecast_diffstat(),
        }
    }
}
