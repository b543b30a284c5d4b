//! JSON output about one lane: its records as they are, and what only an inspection of the repository yields.

use std::path::PathBuf;

use proq_base::usage::Cost;
use proq_git::RepoPath;
use proq_git::status::diff::DiffStat;
use proq_git::status::worktree_status::WorktreeStatus;
use proq_store::paths::path_form;
use proq_store::records::agent::ReportRecord;
use proq_store::records::check::FailedCheckRecord;
use proq_store::records::conflict::{ConflictRecord, ResolutionRecord};
use proq_store::records::lane::AnyLane;
use proq_store::records::message::MessageRecord;
use proq_store::records::pull_request::PullRequestStatus;
use proq_store::records::run::RunRecord;
use serde::Serialize;

use super::lane_details::{LaneDetails, ShownLane};
use crate::agent::task_loop::loop_status::LoopStatus;
use crate::board::attention::Attention;
use crate::board::attention_reader::AttentionReader;
use crate::board::cost;
use crate::lane::Project;
use crate::lane::inspection::list::LaneView;
use crate::ops::error::Error;

/// JSON output about one lane.
#[derive(Debug, Serialize)]
pub struct ShowOutput {
    #[serde(flatten)]
    lane: AnyLane,
    /// Word for the current status; that of the record may be older.
    current_state: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    current_detail: Option<String>,
    /// What needs a person.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attention: Vec<Attention>,
    /// Id of the lane's tip; `None` if the branch is gone or the lane has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    tip: Option<String>,
    /// Commits that the lane has and its base lacks; `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    ahead: Option<usize>,
    /// Commits that the base has and the lane lacks; `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    behind: Option<usize>,
    /// Size of the difference that the lane's commits make; `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    diffstat: Option<DiffStat>,
    /// Paths of files with uncommitted changes in the lane's worktree.
    uncommitted: Vec<RepoPath>,
    /// Text of the lane's task.
    task: String,
    /// Answer or plan of an agent whose lane has nothing to land.
    #[serde(rename = "answer", skip_serializing_if = "Option::is_none")]
    last_answer: Option<String>,
    /// File that holds the answer.
    #[serde(rename = "answer_file", skip_serializing_if = "Option::is_none")]
    last_answer_file: Option<String>,
    runs: Vec<RunRecord>,
    /// Cost of the runs per line that landed, `None` if nothing has landed or no agent reports its cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_per_line: Option<Cost>,
    /// Progress of a task that is a folder with steps.
    #[serde(rename = "steps", skip_serializing_if = "Option::is_none")]
    task_loop: Option<LoopStatus>,
    /// Messages sent to the lane's agent and not delivered yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    waiting: Vec<MessageRecord>,
    /// Report that the agent wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    report: Option<ReportRecord>,
    #[serde(skip_serializing_if = "Option::is_none")]
    conflict: Option<ConflictRecord>,
    /// Check that the lane failed, while its state is still that.
    #[serde(skip_serializing_if = "Option::is_none")]
    check: Option<FailedCheckRecord>,
    /// Open resolution of the lane's conflict, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    resolving: Option<ResolutionRecord>,
    /// Last known status of the lane's pull request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pull_request_status: Option<PullRequestStatus>,
    /// Whether the lane's base has the same changes in other commits.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    landed_by_hand: bool,
    /// Folder of the lane's records.
    #[serde(with = "path_form")]
    records: PathBuf,
}

impl ShowOutput {
    /// Loads the output about the lane that the user calls `name`.
    ///
    /// # Errors
    /// Fails when `name` names no lane, and when a record or the repository cannot be read.
    pub fn load(project: &Project, name: &str) -> Result<ShowOutput, Error> {
        let ShownLane { lane, view, details } = ShownLane::load(project, name)?;
        Ok(ShowOutput::new(project, lane, view.as_ref(), details))
    }

    /// Builds the output from a lane's record, its inspection and its details. `view` is `None` for a removed
    /// lane.
    #[must_use]
    pub fn new(
        project: &Project,
        lane: AnyLane,
        view: Option<&LaneView>,
        details: LaneDetails,
    ) -> ShowOutput {
        let (last_answer, last_answer_file) =
            details.last_answer.map(|(text, file)| (text, path_form::to_text(&file))).unzip();
        ShowOutput {
            attention: view
                .map(|view| AttentionReader::new(project).of_single_lane(view))
                .unwrap_or_default(),
            cost_per_line: cost::of_landed_line(&project.repo, &lane, &details.runs),
            last_answer,
            last_answer_file,
            current_state: view.map_or(lane.state(), LaneView::state).to_string(),
            current_detail: view.and_then(|v| v.detail.clone()).or_else(|| lane.detail.clone()),
            tip: view.and_then(|v| v.tip).map(|t| t.to_string()),
            ahead: view.and_then(|v| v.distance).map(|d| d.ahead),
            behind: view.and_then(|v| v.distance).map(|d| d.behind),
            diffstat: details.changed_files.as_deref().map(DiffStat::of_files),
            uncommitted: view.and_then(|v| v.dirty.as_ref()).map(WorktreeStatus::paths).unwrap_or_default(),
            task: details.task_text,
            runs: details.runs,
            task_loop: details.task_loop,
            waiting: details.pending_messages,
            report: details.report,
            conflict: details.conflict,
            check: details.failed_check,
            resolving: details.open_resolution,
            pull_request_status: details.pull_request_status,
            landed_by_hand: details.landed_by_hand,
            records: details.record_dir,
            lane,
        }
    }
}
