//! The lanes of a repository as brief descriptions for an agent.

use proq_base::lane_name::LaneName;
use proq_lib::board::rows::lane_conflicts::LaneConflicts;
use proq_lib::board::rows::load_list::{ListRequest, load_list};
use proq_lib::errors::error;
use proq_lib::lane::Project;
use proq_lib::lane::inspection::list::LaneView;

use super::table::distinct_title;
use crate::cli::invocation::failure::Failure;
use crate::cli::terminal::ui;

/// Returns each lane's name with a one-line description for an agent.
pub(crate) fn lane_briefs(project: &Project) -> Result<Vec<(LaneName, String)>, Failure> {
    let lane_list = load_list(project, ListRequest::default(), &mut |_| {})?;
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
        parts.extend((*waiting > 0).then(|| format!("{} queued", ui::pluralize(*waiting, "message"))));
        if let Some(conflicts) = LaneConflicts::from_forecast(lane_list.forecast.as_ref(), &lane.name) {
            let lanes = conflicts.lanes.iter().map(LaneName::as_str).collect::<Vec<_>>().join(", ");
            parts.extend((conflicts.base == Some(true)).then(|| format!("conflicts with {}", lane.base)));
            parts.extend((!lanes.is_empty()).then(|| format!("conflicts with {lanes}")));
        }
        let title = distinct_title(lane);
        let title = if title.is_empty() { title } else { format!(" \"{title}\"") };
        (lane.name.clone(), format!("{}{title}: {}", lane.name, parts.join(", ")))
    };
    Ok(lane_list.views.iter().map(brief).collect())
}
