//! Loading of a list of lanes, observed while it loads.

use std::time::Duration;

use proq_git::worktrees::worktree::WorktreeList;
use proq_store::records::lane::{AnyLane, LaneRecord};

use super::lane_list::{LaneList, PartialList, StoredInfo};
use crate::agent::task_loop::loop_status;
use crate::board::cost;
use crate::lane::Project;
use crate::lane::context::commit_graph;
use crate::lane::inspection::list::LaneViewProgress;
use crate::lane::inspection::{attempts, list};
use crate::merge::comparison::forecast::compute;
use crate::merge::comparison::forecast::compute::ForecastRequest;
use crate::merge::comparison::forecast::report::Forecast;
use crate::ops::error::Error;
use crate::preview::main_checkout;
use crate::swarm::batch::folded_batch::ListedBatch;
use crate::swarm::landing::batch_landing;

/// Time limit of the conflict forecast in a list. Conflicts that are unknown by then are left blank.
const FORECAST_TIME_LIMIT: Duration = Duration::from_millis(150);

/// What a list has beside the present lanes.
#[derive(Debug, Clone, Copy, Default)]
pub struct ListRequest {
    /// Whether removed lanes are listed too.
    pub include_removed: bool,
    /// Whether the usage of all runs of each lane is summed up.
    pub include_usage: bool,
}

/// Loads all data of a list. `on_progress` is called repeatedly with what is known so far.
///
/// # Errors
/// Fails when the lanes' records or git's list of worktrees cannot be read.
pub fn load_list(
    project: &Project,
    request: ListRequest,
    on_progress: &mut dyn FnMut(PartialList<'_>),
) -> Result<LaneList, Error> {
    let mut lanes = project.all_lanes()?;
    lanes.sort_by_cached_key(attempts::group_sort_key);
    let lane_records: Vec<LaneRecord> =
        lanes.iter().filter_map(|lane| lane.clone().into_owned_lane().ok()).collect();
    let unrecorded_worktrees =
        list::unrecorded_worktrees(project, &lane_records, &WorktreeList::read(&project.repo)?)?;
    let stored = load_stored(project, request, &lanes)?;
    let mut report = |progress: &LaneViewProgress<'_, Option<Forecast>>| {
        on_progress(PartialList {
            views: progress.views,
            stored: &stored,
            forecast: progress.extra_result.and_then(Option::as_ref),
            compared_count: progress.compared_count,
            inspected: Some(progress.inspected),
        });
    };
    // A failed forecast does not fail the list.
    let forecast_request = ForecastRequest {
        lanes: lane_records,
        include_uncommitted: false,
        time_limit: Some(FORECAST_TIME_LIMIT),
        only_lane: None,
    };
    let (views, forecast) = list::lane_views_with_progress(project, lanes, &mut report, || {
        compute::forecast_lanes(project, forecast_request).ok()
    })?;
    if !views.is_empty() {
        commit_graph::start_commit_graph_if_due(project);
    }
    let batches = ListedBatch::list(project);
    let read_lanes = || {
        let past = match request.include_removed {
            true => stored.past_lanes.clone(),
            false => project.all_past_lanes(),
        };
        let present = views.iter().map(|view| view.lane.clone());
        past.into_iter().map(|(_, lane)| lane).chain(present).collect()
    };
    Ok(LaneList {
        unlanded_batches: batch_landing::unlanded_among(project, &batches, &read_lanes),
        batches,
        views,
        stored,
        unrecorded_worktrees,
        forecast,
    })
}

/// Loads what the records have beside the lanes themselves.
fn load_stored(project: &Project, request: ListRequest, lanes: &[AnyLane]) -> Result<StoredInfo, Error> {
    let layout = project.store.layout();
    let lane_usage = |lane: &AnyLane| {
        Some((lane.name.clone(), cost::summed_lane_usage(&layout.lane(&lane.name), lane.last_run)?))
    };
    let task_progress = |lane: &AnyLane| {
        let status = loop_status::read_loop_status(&layout.lane(&lane.name), lane);
        Some((lane.name.clone(), status.ok().flatten()?))
    };
    Ok(StoredInfo {
        task_loops: lanes.iter().filter_map(task_progress).collect(),
        usage: request.include_usage.then(|| lanes.iter().filter_map(lane_usage).collect()),
        past_lanes: if request.include_removed { project.all_past_lanes() } else { Vec::new() },
        preview: main_checkout::preview_status(project)?,
    })
}
