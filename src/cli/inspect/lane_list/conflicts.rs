//! Forecast conflicts of one lane for a list: as text for users, as fields for JSON.

use proq_base::lane_name::LaneName;
use proq_lib::merge::comparison::forecast::report::Forecast;
use serde::Serialize;

use crate::cli::terminal::ui;

/// The base and the lanes that a lane's committed work would conflict with, as far as known without running
/// git.
#[derive(Serialize)]
pub(crate) struct LaneConflicts {
    /// Whether the lane conflicts with its base; `None` if unknown.
    pub(crate) base: Option<bool>,
    /// Names of the lanes on the same base that conflict with the lane.
    pub(crate) lanes: Vec<String>,
    /// Whether every result is known, so that none is left for git to compute.
    complete: bool,
}

impl LaneConflicts {
    /// Extracts a lane's conflicts from a forecast; `None` if the forecast has no commits of the lane to
    /// compare.
    pub(crate) fn from_forecast(forecast: Option<&Forecast>, lane: &LaneName) -> Option<LaneConflicts> {
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
            lanes.extend(pair.result.is_conflict().then(|| other.to_owned()));
        }
        Some(LaneConflicts { base, lanes, complete })
    }

    /// Returns whether the lane is known to conflict with neither its base nor any lane of `lanes`.
    pub(crate) fn is_compatible_with(&self, lanes: &[&LaneName]) -> bool {
        self.base == Some(false)
            && self.complete
            && self.lanes.iter().all(|lane| lanes.iter().all(|other| **other != lane.as_str()))
    }

    /// Formats the conflicts for a table: `base`, `2 lanes`, `base + 1 lane`, `-` for none, and an empty cell
    /// if unknown.
    pub(crate) fn to_text(&self) -> String {
        let base = (self.base == Some(true)).then(|| "base".to_owned());
        let lanes = (!self.lanes.is_empty()).then(|| ui::pluralize(self.lanes.len(), "lane"));
        let parts: Vec<String> = base.into_iter().chain(lanes).collect();
        match (parts.is_empty(), self.complete) {
            (true, true) => "-".to_owned(),
            _ => console::style(parts.join(" + ")).yellow().to_string(),
        }
    }
}
