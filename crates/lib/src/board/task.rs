//! The task of a lane, as its agent reads it.

use std::path::PathBuf;

use proq_base::lane_name::LaneName;
use proq_base::regular_file::read_store_text;
use proq_store::base::record::Record;
use proq_store::paths::path_form;
use proq_store::records::agent::ReportRecord;
use proq_store::records::run::RunRecord;
use serde::Serialize;

use crate::lane::Project;
use crate::lane::messages::attached_files;
use crate::ops::error::Error;
use crate::run::report::CurrentLane;

/// JSON output: an agent's lane and task.
#[derive(Debug, Serialize)]
pub struct TaskOutput {
    /// Name of the lane.
    pub lane: LaneName,
    /// Name of the lane, under the key that it has in lists of lanes.
    name: LaneName,
    title: String,
    /// Purpose of the run: `task`, or `conflict` if the agent resolves the lane's conflict.
    #[serde(rename = "errand")]
    run_purpose: &'static str,
    /// Mode of the lane: `build` (commits), `in-place`, `plan` or `answer`.
    pub mode: String,
    /// Text of the task; empty if there is none.
    pub prompt: String,
    /// Branch that the agent commits to; none if there is nothing to land.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Branch that the lane lands on.
    pub base: String,
    #[serde(with = "path_form")]
    worktree: PathBuf,
    /// Folder that the agent works in, under the key that it has in lists of lanes.
    #[serde(with = "path_form")]
    path: PathBuf,
    /// Globs of the files that the task is expected to touch.
    pub scope: Vec<String>,
    /// Shell command lines that must succeed with the lane before it lands.
    pub checks: Vec<String>,
    /// Paths of the attachments, to be read where they are.
    #[serde(rename = "files", skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<String>,
    /// Last report of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<ReportRecord>,
}

impl TaskOutput {
    /// Loads the lane and its task; in a run that resolves a conflict, that run's prompt as the task.
    ///
    /// # Errors
    /// Fails when a record or the list of attachments cannot be read.
    pub fn load(project: &Project, current_lane: CurrentLane) -> Result<TaskOutput, Error> {
        let CurrentLane { lane, is_in_resolve_worktree: resolves } = current_lane;
        let layout = project.store.layout();
        let run = RunRecord::load_if_exists(&layout.run_record(&lane.name, lane.last_run))?;
        let prompt_path = match run {
            Some(run) if resolves && run.resolves_conflict => layout.run_prompt(&lane.name, run.number),
            _ => layout.task_prompt(&lane.name),
        };
        let worktree = project.repo.current_worktree().unwrap_or(&lane.path).to_owned();
        Ok(TaskOutput {
            run_purpose: if resolves { "conflict" } else { "task" },
            prompt: read_store_text(prompt_path).unwrap_or_default(),
            path: worktree.clone(),
            worktree,
            report: ReportRecord::load_if_exists(&layout.lane_report(&lane.name))?,
            attachments: attached_files::attachments(&project.store, &lane.name)?
                .iter()
                .map(|file| path_form::to_text(file))
                .collect(),
            mode: lane.purpose().map_or_else(|| "build".to_owned(), |purpose| purpose.to_string()),
            branch: lane.commit_branch().map(str::to_owned),
            name: lane.name.clone(),
            lane: lane.name,
            title: lane.title,
            base: lane.base,
            scope: lane.scope,
            checks: lane.checks,
        })
    }
}
