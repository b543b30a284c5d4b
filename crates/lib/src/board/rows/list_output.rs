//! JSON output of a list of lanes.

use std::path::PathBuf;

use proq_base::lane_name::LaneName;
use proq_git::status::diff::DiffStat;
use proq_git::worktrees::broken_worktree::WorktreeDefect;
use proq_store::base::batch_id::BatchId;
use proq_store::paths::path_form;
use proq_store::records::batched::BatchLane;
use proq_store::records::lane::{AnyLane, LanePurpose};
use proq_store::records::lane_state::{LandingState, LaneState, RunState};
use proq_store::records::pull_request::{PullRequest, PullRequestStatus};
use proq_store::records::run::RunSummary;
use serde::Serialize;

use super::lane_conflicts::LaneConflicts;
use super::lane_list::{LaneList, is_previewed, missing_parts};
use crate::agent::task_loop::loop_status::LoopStatus;
use crate::board::attention::Attention;
use crate::board::attention_reader::AttentionReader;
use crate::lane::Project;
use crate::lane::inspection::list::LaneView;

/// JSON record of one lane.
#[derive(Debug, Serialize)]
struct LaneRow {
    /// Name of the lane, or NAME@N of a removed one.
    name: String,
    title: String,
    state: LaneState,
    run: RunState,
    landing: LandingState,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    /// The purpose of a lane that has nothing to land.
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<LanePurpose>,
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    #[serde(with = "path_form")]
    path: PathBuf,
    base: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    /// The batch and the task of the lane.
    #[serde(skip_serializing_if = "Option::is_none")]
    batch: Option<BatchLane>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tip: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ahead: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    behind: Option<usize>,
    /// Number of files with uncommitted changes; `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    uncommitted: Option<usize>,
    /// Size of the difference between the lane's fork point and its tip; `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<DiffStat>,
    #[serde(skip_serializing_if = "Option::is_none")]
    conflicts: Option<LaneConflicts>,
    /// The usage of all runs of the lane, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "account")]
    usage: Option<RunSummary>,
    /// The progress of the task, if it is a folder with steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<LoopStatus>,
    /// The pull request of the lane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pull_request: Option<PullRequest>,
    /// Last known status of the pull request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pull_request_status: Option<PullRequestStatus>,
    /// Number of messages that wait for the lane's agent.
    #[serde(rename = "waiting", skip_serializing_if = "Option::is_none")]
    pending_message_count: Option<usize>,
    /// Whether the main checkout shows the lane.
    previewed: bool,
    /// What the lane has lost: `worktree`, `branch`, both or nothing.
    #[serde(rename = "missing")]
    missing_parts: Vec<&'static str>,
    /// The reason why the lane's worktree is broken.
    #[serde(rename = "broken", skip_serializing_if = "Option::is_none")]
    worktree_defect: Option<&'static str>,
    /// What needs a person.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attention: Vec<Attention>,
    created: String,
    updated: String,
    /// Time of the last output of a running agent, or else of the last change of state.
    active: String,
}

/// JSON output of a list of lanes.
#[derive(Debug, Serialize)]
pub struct ListOutput {
    lanes: Vec<LaneRow>,
    /// Lane of the open preview.
    #[serde(skip_serializing_if = "Option::is_none")]
    preview: Option<LaneName>,
    /// Paths of unrecorded worktrees.
    unrecorded: Vec<String>,
    /// Ids of the batches that no scheduler runs now, with work that has not landed on their bases.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unlanded_batches: Vec<BatchId>,
    /// What needs a person beside the lanes: in batches, and about commands of the repository.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attention: Vec<Attention>,
}

/// Converts a loaded list to its JSON output, with what needs a person.
#[must_use]
pub fn to_output(project: &Project, lane_list: &LaneList) -> ListOutput {
    let reader = AttentionReader::new(project);
    let row = |view: &LaneView| LaneRow {
        attention: reader.of_lane(view, lane_list.forecast.as_ref()),
        ..view_row(lane_list, view)
    };
    let mut lanes: Vec<LaneRow> = lane_list.views.iter().map(row).collect();
    for (name, lane) in &lane_list.stored.past_lanes {
        lanes.push(LaneRow { name: name.clone(), ..record_row(lane) });
    }
    ListOutput {
        lanes,
        preview: lane_list.stored.preview.as_ref().map(|s| s.lane.clone()),
        unrecorded: lane_list.unrecorded_worktrees.iter().map(|p| path_form::to_text(p)).collect(),
        unlanded_batches: lane_list.unlanded_batches.iter().map(|open| open.batch.id.clone()).collect(),
        attention: reader.of_repository(&lane_list.batches),
    }
}

/// Returns the row of a present lane, with what its inspection found.
fn view_row(lane_list: &LaneList, view: &LaneView) -> LaneRow {
    LaneRow {
        state: view.state(),
        run: view.status.run,
        landing: view.status.landing,
        detail: view.detail.clone(),
        tip: view.tip.map(|t| t.to_string()),
        ahead: view.distance.map(|d| d.ahead),
        behind: view.distance.map(|d| d.behind),
        uncommitted: view.dirty.as_ref().map(|d| d.entries.len()),
        lines: lane_list.as_partial().changed_lines(&view.lane.name),
        active: view.active_at.to_string(),
        conflicts: LaneConflicts::from_forecast(lane_list.forecast.as_ref(), &view.lane.name),
        pending_message_count: Some(view.pending_messages).filter(|n| *n > 0),
        pull_request_status: lane_list.stored.pull_requests.get(&view.lane.name).cloned(),
        task: lane_list.stored.task_loops.get(&view.lane.name).cloned(),
        usage: lane_list.stored.usage.as_ref().and_then(|all| all.get(&view.lane.name)).cloned(),
        previewed: is_previewed(&lane_list.stored, &view.lane.name),
        missing_parts: missing_parts(view),
        worktree_defect: view.worktree_defect.map(WorktreeDefect::describe),
        ..record_row(&view.lane)
    }
}

/// Returns the row of a lane from its record alone, as for a removed lane: nothing that needs an inspection.
fn record_row(lane: &AnyLane) -> LaneRow {
    LaneRow {
        name: lane.name.to_string(),
        title: lane.title.clone(),
        state: lane.state(),
        run: lane.status.run,
        landing: lane.status.landing,
        detail: lane.detail.clone(),
        mode: lane.purpose(),
        branch: lane.branch().map(str::to_owned),
        path: lane.path.clone(),
        base: lane.base.clone(),
        agent: lane.agent.clone(),
        group: lane.group.clone(),
        batch: lane.batch.clone(),
        tip: None,
        ahead: None,
        behind: None,
        uncommitted: None,
        lines: None,
        conflicts: None,
        usage: None,
        task: None,
        pull_request: lane.pull_request.clone(),
        pull_request_status: None,
        pending_message_count: None,
        previewed: false,
        missing_parts: Vec::new(),
        worktree_defect: None,
        attention: Vec::new(),
        created: lane.created.to_string(),
        updated: lane.state_changed_at.to_string(),
        active: lane.state_changed_at.to_string(),
    }
}
