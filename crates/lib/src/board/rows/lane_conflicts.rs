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
    /// Names of the lanes on the same base that conflict with the lane.
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
        let with_base = forecast.pairs.iter().find(|p| p.with_base && p.theirs == *lane)?;
        let base = with_base.result.is_known().then(|| with_base.result.is_conflict());
        let mut lanes = Vec::new();
        let mut complete = base.is_some();
        for pair in forecast.pairs.iter().filter(|p| !p.with_base) {
            let other = match (*lane == pair.ours.as_str(), pair.theirs == *lane) {
                (true, _) => pair.theirs.as_str(),
                (_, true) => pair.ours.as_str(),
                _ => continue,
            };
            complete &= pair.result.is_known();
            lanes.extend(LaneName::parse(other).ok().filter(|_| pair.result.is_conflict()));
        }
        Some(LaneConflicts { base, lanes, complete })
    }

    /// Returns whether the lane is known to conflict with neither its base nor any lane of `lanes`.
    #[must_use]
    pub fn is_compatible_with(&self, lanes: &[&LaneName]) -> bool {
        self.base == Some(false) && self.complete && !self.lanes.iter().any(|lane| lanes.contains(&lane))
    }
}
