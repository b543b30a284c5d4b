//! Forecast conflicts of one lane, as a list has them.

use proq_base::lane_name::LaneName;
use serde::Serialize;

use crate::merge::comparison::forecast::report::Forecast;

/// The base and the lanes that a lane's committed work would conflict with, as far as known without running
/// git.
#[derive(Debug, Clone, Serialize)]
pub struct LaneConflicts {
    /// Whether the lane conflicts with its base; `None` if unknown.
    pub base: Option<bool>,
    /// Names of the lanes on the same base that conflict with the lane, but neither of which conflicts with the
    /// base already.
    pub lanes: Vec<LaneName>,
    /// Whether every result is known, so that none is left for git to compute.
    pub complete: bool,
}

impl LaneConflicts {
    /// Extracts a lane's conflicts from a forecast; `None` if the forecast has no commits of the lane to
    /// compare.
    #[must_use]
    pub fn from_forecast(forecast: Option<&Forecast>, lane: &LaneName) -> Option<LaneConflicts> {
        let forecast = forecast?;
        let with_base = forecast.base_result(lane)?;
        let base = with_base.is_known().then(|| with_base.is_conflict());
        let mut pairs = forecast.pairs.iter().filter(|pair| pair.other_lane(lane).is_some());
        let complete = base.is_some() && pairs.all(|pair| pair.result.is_known());
        Some(LaneConflicts { base, lanes: forecast.conflicting_lanes(lane), complete })
    }

    /// Returns whether the lane is known to conflict with neither its base nor any lane of `lanes`.
    #[must_use]
    pub fn is_compatible_with(&self, lanes: &[&LaneName]) -> bool {
        self.base == Some(false) && self.complete && !self.lanes.iter().any(|lane| lanes.contains(&lane))
    }
}
