//! Restart of a lane's task from the current tip of its base.

use std::path::{Path, PathBuf};

use proq_base::explain::Explain;
use proq_base::lane_name::LaneName;
use proq_base::regular_file;
use proq_store::paths::path_form;
use proq_store::records::lane::{AnyLane, LaneRecord};
use serde::{Serialize, Serializer};

use super::launch_checks::refuse_or_warn_before_start;
use super::spawn::execution::FirstTask;
use crate::agent::command::agent_command::{AgentCommand, RunOptions};
use crate::agent::command::conversation;
use crate::agent::launch::{folder_task, start_supervisor};
use crate::lane::Project;
use crate::lane::creation::create;
use crate::lane::creation::create::NewLane;
use crate::lane::inspection::base;
use crate::lane::inspection::base::Base;
use crate::lane::messages::attached_files;
use crate::lane::removal::remove_lane::RemovedLane;
use crate::lane::worktree::checkout_mode;
use crate::lane::worktree::set_up::commands::SetUpLevel;
use crate::operation::run_operation::operate;
use crate::ops::approvals::request_set_up_approval;
use crate::ops::error::Error;
use crate::ops::refusal::refuse_changed_lane;
use crate::ops::reporter::{Progress, Reporter};
use crate::preview::leave;
use crate::session::{in_place, read_only};

/// Request to start a lane's task again. The agent of a guest lane runs again in the same lane; any other
/// lane is removed, with all of its work saved, and created again.
#[derive(Debug)]
pub struct RedispatchRequest {
    /// The lane as it is on record.
    pub lane: AnyLane,
    /// Profile name of another agent than the one that the lane had.
    pub agent: Option<String>,
    /// Options of the run.
    pub options: RunOptions,
    /// How much of the configured set-up the new lane gets.
    pub set_up: SetUpLevel,
    /// Folder from which the caller names programs.
    pub dir: PathBuf,
    /// Lane in which the caller works, if any.
    pub calling_lane: Option<String>,
}

/// Reason why a lane's task cannot be started again.
#[derive(Debug, thiserror::Error, Explain)]
pub enum RedispatchError {
    /// The lane has no task for an agent.
    #[error("cannot restart lane '{lane}': it has no task")]
    #[hint("start a lane with a task: git proq spawn claude \"implement payments\"")]
    NoTask {
        /// Name of the lane.
        lane: LaneName,
    },
    /// The lane had no agent with a known name, and none was given.
    #[error("cannot restart lane '{lane}': its agent cannot be started again")]
    #[hint("name an agent: git proq redispatch {lane} --agent claude")]
    NoAgent {
        /// Name of the lane.
        lane: LaneName,
    },
}

/// Restart that would be made. Serializes to the output of a dry run.
#[derive(Debug)]
pub struct RedispatchPlan {
    /// The lane at the time of planning.
    pub lane: AnyLane,
    /// The branch and the commit that the task starts from; for a guest lane, what is read or worked on.
    pub base: Base,
    /// The command to start.
    pub command: AgentCommand,
    task: String,
    set_up: SetUpLevel,
}

/// Restart that was made. Serializes to the output of `git proq redispatch`.
#[derive(Debug)]
pub struct RedispatchOutcome {
    /// The lane in which the agent was started.
    pub lane: AnyLane,
    /// The branch and the commit that the task started from.
    pub base: Base,
    /// The started command.
    pub command: AgentCommand,
    /// The lane that was removed; none for a guest lane.
    pub removed: Option<RemovedLane>,
}

/// Plans a restart. Warns of what the user should know before the agent starts.
///
/// # Errors
/// Fails when an agent runs in the lane, the lane has no task or no known agent, its base does not exist, the
/// main checkout cannot be used, or the caller may not start such an agent.
pub fn plan(project: &Project, request: &RedispatchRequest) -> Result<RedispatchPlan, Error> {
    let lane = &request.lane;
    project.require_idle(lane)?;
    let task = regular_file::read_store_text(project.store.layout().task_prompt(&lane.name));
    let task = task.unwrap_or_default();
    if task.trim().is_empty() {
        return Err(RedispatchError::NoTask { lane: lane.name.clone() }.into());
    }
    let command = request.agent_command(project, &task)?;
    let base = if lane.purpose().is_some() {
        let target = read_only::current_read_target(project, lane)?;
        if lane.works_in_place() {
            in_place::require_in_place_possible(project, &lane.name, &target.rev_name)?;
        }
        Base { branch: target.rev_name, start: target.commit }
    } else {
        let base = base::resolve(project, Some(&lane.base), None)?;
        refuse_or_warn_before_start(project, request.calling_lane.as_deref(), [&command])?;
        base
    };
    Ok(RedispatchPlan { lane: lane.clone(), base, command, task, set_up: request.set_up })
}

impl RedispatchRequest {
    /// Returns the command for the lane's task.
    fn agent_command(&self, project: &Project, task: &str) -> Result<AgentCommand, Error> {
        let lane = &self.lane;
        // A user's own command is not recorded in full, so it cannot run again.
        let previous_agent = lane.agent.as_deref().filter(|agent| *agent != "command");
        let agent_command = match self.agent {
            None if previous_agent.is_some() => conversation::find_user_agent_command(&project.store, lane)?,
            _ => Vec::new(),
        };
        let agent = self.agent.as_deref().or(previous_agent);
        let agent = agent.ok_or_else(|| RedispatchError::NoAgent { lane: lane.name.clone() })?;
        let options = RunOptions { agent_command, purpose: lane.purpose(), ..self.options.clone() };
        Ok(AgentCommand::from_profile(project, agent, task, &self.dir, &options)?)
    }
}

impl RedispatchPlan {
    /// Removes the lane with its work saved, creates it again and starts its agent; in a guest lane, only
    /// starts its agent.
    ///
    /// # Errors
    /// Fails when a hook refuses, an agent runs in the lane, the lane has changed since the plan was made, or
    /// a step of the operation fails; then the lane is as it was. Fails also when the agent cannot be started.
    pub fn execute(self, project: &Project, reporter: &dyn Reporter) -> Result<RedispatchOutcome, Error> {
        let _scope = reporter.enter_cancellation();
        if self.lane.purpose().is_some() {
            return self.restart_guest(project);
        }
        let name = &self.lane.name;
        let folder_task = folder_task::reload_folder_task(project, &self.lane)?;
        request_set_up_approval(project, reporter, self.set_up)?;
        project.run_pre_remove_hooks(name)?;
        project.run_pre_spawn_hooks(name, &self.base.branch)?;
        let (lane, lock) = project.lock_idle_lane(name)?;
        refuse_changed_lane(&self.lane, &lane)?;
        let new_lane = self.replacement_lane(project, &lane);
        let (removed, created) = operate(project, "redispatch", |op| {
            if let Some(left) = leave::leave_preview_of(op, name)? {
                reporter.progress(Progress::PreviewLeft(&left));
                left.warn_conflict(project);
            }
            // The record is read again under the lock: leaving the preview may have added commits to the
            // lane.
            Ok::<_, Error>(create::recreate_lane(op, &project.lane(name)?, new_lane)?)
        })?;
        let attachments = attached_files::past_attachments(&project.store, &removed.history_name)?;
        let created = created.into_any();
        let task = FirstTask { folder_task: folder_task.as_ref(), attachments: &attachments };
        task.start(project, &created, lock, &self.command)?;
        let RedispatchPlan { base, command, .. } = self;
        Ok(RedispatchOutcome { lane: created, base, command, removed: Some(removed) })
    }

    /// Returns the lane to create in place of `lane`: with the same checks, scope, group and batch.
    fn replacement_lane(&self, project: &Project, lane: &LaneRecord) -> NewLane<'_> {
        NewLane {
            prompt: Some(&self.task),
            agent: Some(self.command.agent.clone()),
            checks: lane.checks.clone(),
            scope: lane.scope.clone(),
            sparse: checkout_mode::is_sparse_by_scope(&project.repo, lane),
            auto_merge: lane.auto_merge,
            group: lane.group.clone(),
            batch: lane.batch.clone(),
            set_up: self.set_up,
            ..NewLane::new(self.base.clone())
        }
    }

    /// Runs the agent of a guest lane again. Nothing has to be saved: each run's answer has its own file.
    fn restart_guest(self, project: &Project) -> Result<RedispatchOutcome, Error> {
        let (lane, lock) = project.lock_any_idle_lane(&self.lane.name)?;
        refuse_changed_lane(&self.lane, &lane)?;
        let RedispatchPlan { base, command, .. } = self;
        let lane = project.update_lane(&lane.name, |record| {
            record.base.clone_from(&base.branch);
            record.start = base.start;
        })?;
        start_supervisor::launch_with_prompt(project, &lane, lock, &command, None)?;
        Ok(RedispatchOutcome { lane, base, command, removed: None })
    }
}

/// JSON form of a restart.
#[derive(Serialize)]
struct RedispatchReport<'a> {
    lane: &'a LaneName,
    base: &'a str,
    /// Id of the commit that the task starts from.
    #[serde(rename = "start")]
    start_commit: String,
    agent: &'a str,
    #[serde(serialize_with = "path_form::serialize")]
    path: &'a Path,
    /// Name of the removed lane in the history: `name@N`.
    #[serde(rename = "history", skip_serializing_if = "Option::is_none")]
    history_name: Option<&'a str>,
    /// Ref that keeps the unlanded commits of the removed lane.
    #[serde(rename = "saved", skip_serializing_if = "Option::is_none")]
    saved_ref: Option<&'a str>,
    dry_run: bool,
}

impl<'a> RedispatchReport<'a> {
    fn new(lane: &'a AnyLane, base: &'a Base, command: &'a AgentCommand) -> RedispatchReport<'a> {
        RedispatchReport {
            lane: &lane.name,
            base: &base.branch,
            start_commit: base.start.to_string(),
            agent: &command.agent,
            path: &lane.path,
            history_name: None,
            saved_ref: None,
            dry_run: false,
        }
    }
}

impl Serialize for RedispatchPlan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let report = RedispatchReport::new(&self.lane, &self.base, &self.command);
        RedispatchReport { dry_run: true, ..report }.serialize(serializer)
    }
}

impl Serialize for RedispatchOutcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let report = RedispatchReport::new(&self.lane, &self.base, &self.command);
        RedispatchReport {
            history_name: self.removed.as_ref().map(|removed| removed.history_name.as_str()),
            saved_ref: self.removed.as_ref().and_then(|removed| removed.saved_ref.as_deref()),
            ..report
        }
        .serialize(serializer)
    }
}
