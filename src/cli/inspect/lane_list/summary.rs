//! The lanes of a repository as JSON, as a table, and as brief descriptions for an agent.

use proq_base::lane_name::LaneName;
use proq_lib::errors::error;
use proq_lib::lane::Project;
use proq_lib::lane::inspection::list::LaneView;

use super::conflicts::LaneConflicts;
use super::json_output::to_output;
use super::load::load_list;
use super::table::{distinct_title, render_table};
use crate::cli::invocation::failure::Failure;
use crate::cli::terminal::ui;

/// Returns the list of a repository as JSON.
pub(crate) fn list_json(project: &Project, all: bool) -> Result<serde_json::Value, Failure> {
    Ok(serde_json::to_value(to_output(&load_list(project, all, false, None)?)).unwrap_or_default())
}

/// Returns the list of a repository as a table; `None` without lanes.
pub(crate) fn list_table(project: &Project, all: bool) -> Result<Option<String>, Failure> {
    let lane_list = load_list(project, all, false, None)?;
    let is_empty = lane_list.views.is_empty() && lane_list.stored.past_lanes.is_empty();
    Ok((!is_empty).then(|| render_table(&lane_list)))
}

/// Returns each lane's name with a one-line description for an agent.
pub(crate) fn lane_briefs(project: &Project) -> Result<Vec<(LaneName, String)>, Failure> {
    let lane_list = load_list(project, false, false, None)?;
    let brief = |view: &LaneView| {
        let LaneView { lane, status, detail, distance, dirty: dirt, pending_messages: waiting, .. } = view;
        let mut parts = vec![status.state().to_string()];
        parts.extend(detail.clone());
        parts.extend(lane.agent.as_ref().map(|agent| format!("agent {agent}")));
        parts.extend(
            lane.purpose().map(|purpose| format!("{}, nothing to land", error::purpose_phrase(purpose))),
        );
        parts.extend(distance.map(|d| format!("{} ahead of {}, {} behind", d.ahead, lane.base, d.behind)));
        let dirty = dirt.as_ref().map_or(0, |dirt| dirt.entries.len());
        parts.extend((dirty > 0).then(|| format!("{} uncommitted", ui::pluralize(dirty, "file"))));
        parts.extend((*waiting > 0).then(|| format!("{} to tell", ui::pluralize(*waiting, "message"))));
        if let Some(conflicts) = LaneConflicts::from_forecast(lane_list.forecast.as_ref(), &lane.name) {
            parts.extend((conflicts.base == Some(true)).then(|| format!("conflicts with {}", lane.base)));
            parts.extend(
                (!conflicts.lanes.is_empty())
                    .then(|| format!("conflicts with {}", conflicts.lanes.join(", "))),
            );
        }
        let title = distinct_title(lane);
        let title = if title.is_empty() { title } else { format!(" \"{title}\"") };
        (lane.name.clone(), format!("{}{title}: {}", lane.name, parts.join(", ")))
    };
    Ok(lane_list.views.iter().map(brief).collect())
}
