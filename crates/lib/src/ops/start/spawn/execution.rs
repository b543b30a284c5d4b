//! Execution of a spawn: creates the lanes, all or none, and starts their agents.

use std::path::PathBuf;

use proq_store::locks::lock::LockGuard;
use proq_store::records::lane::{AnyLane, LaneRecord};

use super::plan::SpawnPlan;
use super::uncommitted::UncommittedCheck;
use crate::agent::command::agent_command::AgentCommand;
use crate::agent::launch::folder_task::FolderTask;
use crate::agent::launch::{start_supervisor, task_loop_start};
use crate::lane::Project;
use crate::lane::creation::create::CreatedLane;
use crate::lane::creation::{create, create_many};
use crate::lane::messages::attached_files;
use crate::ops::approvals::request_set_up_approval;
use crate::ops::error::Error;
use crate::ops::reporter::Reporter;

/// Lanes that were created. Serializes to the output of `git proq spawn`.
#[derive(Debug)]
pub struct SpawnOutcome {
    /// The new lanes, in order.
    pub lanes: Vec<SpawnedLane>,
    /// Check for uncommitted changes that the lanes lack.
    pub uncommitted: UncommittedCheck,
}

/// A new lane, in which a program was started or could not be.
#[derive(Debug)]
pub struct SpawnedLane {
    /// The lane as it is after the start.
    pub lane: LaneRecord,
    /// The started command; none in an empty lane.
    pub command: Option<AgentCommand>,
    /// Reason why the command could not be started.
    pub failure: Option<Error>,
}

impl SpawnedLane {
    /// Returns the lane.
    ///
    /// # Errors
    /// The reason why its command could not be started.
    pub fn into_started(self) -> Result<LaneRecord, Error> {
        self.failure.map_or(Ok(self.lane), Err)
    }
}

impl SpawnPlan<'_> {
    /// Creates the lanes, and starts an agent or command in each.
    ///
    /// # Errors
    /// Fails when a lane cannot be created; then none is. A failed start is part of the outcome.
    pub fn execute(self, project: &Project, reporter: &dyn Reporter) -> Result<SpawnOutcome, Error> {
        let _scope = reporter.enter_cancellation();
        if self.commands.iter().any(Option::is_some) {
            // No lane is created whose agent could not be started.
            project.git_proq_path()?;
        }
        request_set_up_approval(project, reporter, self.new_lane.set_up)?;
        let agents = self.agent_names();
        let created = match self.lanes.as_slice() {
            [single] if single.group().is_none() => {
                let created = create::create_lane(project, single)?;
                project.register_repository();
                vec![created]
            }
            _ => create_many::create_attempts(project, &self.new_lane, &agents, self.lanes)?,
        };
        let unchanged = created.first().and_then(|first| first.unchanged_checkout.clone());
        let to_spawned = |(CreatedLane { lane, run_lock, .. }, command): (_, Option<AgentCommand>)| {
            let start = command.as_ref().map(|command| {
                let task =
                    FirstTask { folder_task: self.folder_task.as_ref(), attachments: self.attachments };
                task.start(project, &lane.clone().into_any(), run_lock, command)
            });
            let (started, failure) = match start.transpose() {
                Ok(started) => (started.and_then(|started| started.into_owned_lane().ok()), None),
                Err(e) => (project.lane(&lane.name).ok(), Some(e)),
            };
            SpawnedLane { lane: started.unwrap_or(lane), command, failure }
        };
        let lanes = created.into_iter().zip(self.commands).map(to_spawned).collect();
        Ok(SpawnOutcome { lanes, uncommitted: self.uncommitted.without_unchanged(unchanged.as_deref()) })
    }
}

/// Task of the first run in a new lane.
pub(crate) struct FirstTask<'a> {
    pub(crate) folder_task: Option<&'a FolderTask>,
    /// Files to attach to the task.
    pub(crate) attachments: &'a [PathBuf],
}

impl FirstTask<'_> {
    /// Starts the first run of a new lane, after copying the attachments.
    ///
    /// # Errors
    /// Fails when a file cannot be copied, or the agent cannot be started.
    pub(crate) fn start(
        &self,
        project: &Project,
        lane: &AnyLane,
        lock: LockGuard,
        command: &AgentCommand,
    ) -> Result<AnyLane, Error> {
        attached_files::attach(&project.store, &lane.name, self.attachments)?;
        Ok(match self.folder_task {
            Some(task) => task_loop_start::launch_task_loop(project, lane, lock, command, task)?,
            None => start_supervisor::launch(project, lane, lock, command)?,
        })
    }
}
