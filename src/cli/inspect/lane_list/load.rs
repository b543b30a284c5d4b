//! Loading of a list of lanes, painted while it loads.

use std::time::Duration;

use proq_git::worktrees::worktree::WorktreeList;
use proq_lib::agent::task_loop::loop_status;
use proq_lib::lane::Project;
use proq_lib::lane::context::commit_graph;
use proq_lib::lane::inspection::list::LaneViewProgress;
use proq_lib::lane::inspection::{attempts, list};
use proq_lib::merge::comparison::forecast::compute;
use proq_lib::merge::comparison::forecast::compute::ForecastRequest;
use proq_lib::merge::comparison::forecast::report::Forecast;
use proq_lib::preview::main_checkout;
use proq_lib::swarm::landing::batch_landing;
use proq_store::records::lane::{AnyLane, LaneRecord};

use super::data::{LaneList, StoredInfo};
use super::painter::ListPainter;
use super::table::{TableInput, lane_table_lines};
use crate::cli::invocation::failure::Failure;
use crate::cli::terminal::usage;

/// Time limit of the conflict forecast in a list. Conflicts that are unknown by then are left blank.
const FORECAST_TIME_LIMIT: Duration = Duration::from_millis(150);

/// Loads all data of a list: with `all` also removed lanes, with `wide` also usage. Paints what is known so
/// far, if a painter is given.
pub(crate) fn load_list(
    project: &Project,
    all: bool,
    wide: bool,
    painter: Option<ListPainter>,
) -> Result<LaneList, Failure> {
    let mut lanes = project.all_lanes()?;
    lanes.sort_by_cached_key(attempts::group_sort_key);
    let lane_records: Vec<LaneRecord> =
        lanes.iter().filter_map(|lane| lane.clone().into_owned_lane().ok()).collect();
    let unrecorded_worktrees =
        list::unrecorded_worktrees(project, &lane_records, &WorktreeList::read(&project.repo)?)?;
    let layout = project.store.layout();
    let lane_usage = |lane: &AnyLane| {
        Some((lane.name.clone(), usage::summed_lane_usage(&layout.lane(&lane.name), lane.last_run)?))
    };
    let task_progress = |lane: &AnyLane| {
        let status = loop_status::read_loop_status(&layout.lane(&lane.name), lane);
        Some((lane.name.clone(), status.ok().flatten()?))
    };
    let stored = StoredInfo {
        task_loops: lanes.iter().filter_map(task_progress).collect(),
        usage: wide.then(|| lanes.iter().filter_map(lane_usage).collect()),
        past_lanes: if all { project.all_past_lanes() } else { Vec::new() },
        preview: main_checkout::preview_status(project)?,
    };
    let mut paint = painter;
    let mut repaint = |progress: &LaneViewProgress<'_, Option<Forecast>>| {
        if let Some(paint) = &mut paint {
            let forecast = progress.extra_result.and_then(Option::as_ref);
            let (views, compared, inspected) =
                (progress.views, progress.compared_count, Some(progress.inspected));
            paint.paint_if_due(|| {
                lane_table_lines(&TableInput {
                    views,
                    stored: &stored,
                    forecast,
                    compared_count: compared,
                    inspected,
                })
            });
        }
    };
    // A failed forecast does not fail the list.
    let request = ForecastRequest {
        lanes: lane_records,
        include_uncommitted: false,
        time_limit: Some(FORECAST_TIME_LIMIT),
        only_lane: None,
    };
    let (views, forecast) = list::lane_views_with_progress(project, lanes, &mut repaint, || {
        compute::forecast_lanes(project, request).ok()
    })?;
    if !views.is_empty() {
        commit_graph::start_commit_graph_if_due(project);
    }
    let unlanded = batch_landing::list_unlanded_batches(project);
    Ok(LaneList { views, stored, unrecorded_worktrees, unlanded_batches: unlanded, forecast })
}
