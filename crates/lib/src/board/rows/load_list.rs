//! Loading of a list of lanes, observed while it loads.

use std::time::Duration;

use proq_git::worktrees::worktree::WorktreeList;
use proq_store::records::lane::{AnyLane, LaneRecord};
use proq_store::records::lane_state::LaneState;

use super::lane_list::{LaneList, PartialList, StoredInfo};
use crate::agent::task_loop::loop_status;
use crate::board::cost;
use crate::lane::Project;
use crate::lane::context::commit_graph;
use crate::lane::inspection::list::LaneViewProgress;
use crate::lane::inspection::pull_request_status::pull_request_status;
use crate::lane::inspection::{attempts, list};
use crate::merge::comparison::forecast::changed_lines::LineCounting;
use crate::merge::comparison::forecast::compute;
use crate::merge::comparison::forecast::compute::ForecastRequest;
use crate::merge::comparison::forecast::report::Forecast;
use crate::ops::error::Error;
use crate::preview::main_checkout;
use crate::swarm::batch::folded_batch::ListedBatch;
use crate::swarm::landing::batch_landing;

/// Time limit of the conflict forecast in a list. Conflicts that are unknown by then are left blank.
const FORECAST_TIME_LIMIT: Duration = Duration::from_millis(150);

/// Time for counting the changed lines of lanes in a list. Lanes whose lines are not counted by then have none,
/// until a list with more detail has counted them.
const LINE_COUNT_TIME: Duration = Duration::from_millis(100);

/// Which lanes a list has, and with how much detail.
#[derive(Debug, Clone, Copy, Default)]
pub struct ListRequest<'a> {
    /// Whether removed lanes are listed too.
    pub include_removed: bool,
    /// Whether the usage of all runs of each lane is summed up, and the lines of every lane are counted.
    pub include_usage: bool,
    /// Names of lanes or groups; empty for all lanes.
    pub names: &'a [String],
    /// Name of the agent of the listed lanes; none for any agent.
    pub agent: Option<&'a str>,
    /// States of the listed lanes; empty for all states.
    pub states: &'a [LaneState],
}

impl ListRequest<'_> {
    /// Returns whether a lane or its group has a requested name.
    fn matches_name(&self, lane: &AnyLane) -> bool {
        let is_named = |name: &String| lane.name == name.as_str() || lane.group.as_ref() == Some(name);
        self.names.is_empty() || self.names.iter().any(is_named)
    }

    /// Returns whether a lane's agent is the requested one.
    fn matches_agent(&self, lane: &AnyLane) -> bool {
        self.agent.is_none() || self.agent == lane.agent.as_deref()
    }

    /// Returns whether a lane is requested, by its record alone.
    fn matches_record(&self, lane: &AnyLane) -> bool {
        self.matches_name(lane) && self.matches_agent(lane) && self.matches_state(lane.state())
    }

    /// Returns whether a lane in this state is listed.
    fn matches_state(&self, state: LaneState) -> bool {
        self.states.is_empty() || self.states.contains(&state)
    }
}

/// Loads all data of a list. `on_progress` is called repeatedly with what is known so far.
///
/// # Errors
/// Fails when a requested lane does not exist, and when the lanes' records or git's list of worktrees cannot be
/// read.
pub fn load_list(
    project: &Project,
    request: ListRequest<'_>,
    on_progress: &mut dyn FnMut(PartialList<'_>),
) -> Result<LaneList, Error> {
    let mut lanes = project.all_lanes()?;
    lanes.sort_by_cached_key(attempts::group_sort_key);
    let lane_records: Vec<LaneRecord> =
        lanes.iter().filter_map(|lane| lane.clone().into_owned_lane().ok()).collect();
    let unrecorded_worktrees =
        list::unrecorded_worktrees(project, &lane_records, &WorktreeList::read(&project.repo)?)?;
    let all_lanes = lanes.clone();
    if request.include_removed {
        lanes.retain(|lane| request.matches_name(lane));
    } else if !request.names.is_empty() {
        lanes = attempts::any_lanes_by_name(project, request.names)?;
    }
    lanes.retain(|lane| request.matches_agent(lane));
    let past_lanes = if request.include_removed { project.all_past_lanes() } else { Vec::new() };
    let stored = load_stored(project, request, &lanes, &past_lanes)?;
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
        line_counting: match request.include_usage {
            true => LineCounting::All,
            false => LineCounting::Within(LINE_COUNT_TIME),
        },
    };
    let (mut views, forecast) = list::lane_views_with_progress(project, lanes, &mut report, || {
        compute::forecast_lanes(project, forecast_request).ok()
    })?;
    if !views.is_empty() {
        commit_graph::start_commit_graph_if_due(project);
    }
    let batches = ListedBatch::list(project);
    let read_lanes = || {
        let past = match request.include_removed {
            true => past_lanes.clone(),
            false => project.all_past_lanes(),
        };
        past.into_iter().map(|(_, lane)| lane).chain(all_lanes.clone()).collect()
    };
    let unlanded_batches = batch_landing::unlanded_among(project, &batches, &read_lanes);
    views.retain(|view| request.matches_state(view.state()));
    Ok(LaneList { views, stored, unrecorded_worktrees, batches, unlanded_batches, forecast })
}

/// Loads what the records have beside the lanes themselves.
fn load_stored(
    project: &Project,
    request: ListRequest<'_>,
    lanes: &[AnyLane],
    past_lanes: &[(String, AnyLane)],
) -> Result<StoredInfo, Error> {
    let layout = project.store.layout();
    let lane_usage = |lane: &AnyLane| {
        Some((lane.name.clone(), cost::summed_lane_usage(&layout.lane(&lane.name), lane.last_run)?))
    };
    let task_progress = |lane: &AnyLane| {
        let status = loop_status::read_loop_status(&layout.lane(&lane.name), lane);
        Some((lane.name.clone(), status.ok().flatten()?))
    };
    let pull_request = |lane: &AnyLane| Some((lane.name.clone(), pull_request_status(project, lane)?));
    Ok(StoredInfo {
        pull_requests: lanes.iter().filter_map(pull_request).collect(),
        task_loops: lanes.iter().filter_map(task_progress).collect(),
        usage: request.include_usage.then(|| lanes.iter().filter_map(lane_usage).collect()),
        past_lanes: past_lanes.iter().filter(|(_, lane)| request.matches_record(lane)).cloned().collect(),
        preview: main_checkout::preview_status(project)?,
    })
}
