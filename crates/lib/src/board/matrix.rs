//! The matrix: which lanes conflict with their bases and with each other.

use proq_store::records::lane::LaneRecord;

use crate::lane::Project;
use crate::merge::Error;
use crate::merge::comparison::forecast::changed_lines::LineCounting;
use crate::merge::comparison::forecast::compute::{ForecastRequest, forecast_lanes};
use crate::merge::comparison::forecast::report::Forecast;
use crate::merge::comparison::overlap;

/// Forecasts the merges of the lanes that the user calls `names`, or of all lanes if there are none. New
/// conflicts between two lanes become events.
///
/// # Errors
/// Fails when a name is not a lane's, and when lanes or commits cannot be read.
pub fn read_matrix(
    project: &Project,
    names: &[String],
    include_uncommitted: bool,
) -> Result<Forecast, Error> {
    let all_lanes = project.owned_lanes()?;
    let lanes = if names.is_empty() { all_lanes.clone() } else { find_lanes(project, names)? };
    let request = ForecastRequest {
        lanes,
        include_uncommitted,
        time_limit: None,
        only_lane: None,
        line_counting: LineCounting::Skip,
    };
    let forecast = forecast_lanes(project, request)?;
    // The event log serves watchers. A forecast is returned even where the log cannot be written.
    drop(overlap::emit_new_overlaps(project, &all_lanes, &forecast, include_uncommitted, None));
    Ok(forecast)
}

/// Returns the records of the lanes that the user calls `names`, sorted by name and without duplicates, or of all
/// lanes if there are none.
///
/// # Errors
/// Fails when a name is not a lane's, and when lanes cannot be read.
pub fn find_lanes(project: &Project, names: &[String]) -> Result<Vec<LaneRecord>, Error> {
    if names.is_empty() {
        return Ok(project.owned_lanes()?);
    }
    let mut lanes = Vec::new();
    for name in names {
        lanes.push(project.find_lane(name)?);
    }
    lanes.sort_by(|a, b| a.name.cmp(&b.name));
    lanes.dedup_by(|a, b| a.name == b.name);
    Ok(lanes)
}
