//! Tasks of a batch that are task folders: starting and resuming their work, step by step.

use std::path::Path;

use proq_base::config::settings::Settings;
use proq_git::CommitId;
use proq_plan::task_folders::layout::PROMPT_FILE;
use proq_store::locks::lock::LockGuard;
use proq_store::records::batched::RunTask;
use proq_store::records::lane::LaneRecord;

use super::attempt_runs::RunChain;
use super::runner::{RunStart, Runner};
use super::task_runs::LaunchResult;
use crate::agent;
use crate::agent::command::agent_command::AgentCommand;
use crate::agent::launch::folder_task::FolderTask;
use crate::agent::launch::task_loop_start::LoopStart;
use crate::agent::launch::{start_supervisor, task_loop_start};
use crate::agent::task_loop::active_task;
use crate::swarm::Error;
use crate::swarm::batch::task::BatchTask;

/// Maximum number of times that one attempt is resumed after its supervisor crashed.
const MAX_CRASH_RESTARTS: usize = 3;

/// Reads the folder of a task; none where the task is not a folder. `lane_path` is the worktree of the task's
/// lane: a folder that is no longer in the main checkout may be there.
///
/// # Errors
/// When the folder cannot be copied into a lane.
pub fn read_task_folder(
    settings: &Settings,
    task: &BatchTask,
    lane_path: Option<&Path>,
) -> Result<Option<FolderTask>, agent::Error> {
    let (Some(folder), Some(dir)) = (&task.folder, task.file.parent()) else { return Ok(None) };
    let dir_in_lane = lane_path.map(|lane| lane.join(folder)).filter(|_| !dir.join(PROMPT_FILE).is_file());
    let dir = dir_in_lane.as_deref().unwrap_or(dir);
    let level = task.review.unwrap_or_default();
    FolderTask::load(settings, dir, &folder.to_string_lossy(), &task.title, level, None).map(Some)
}

impl Runner<'_> {
    /// Starts the work on a task in its lane, which is locked and clean. A task with steps runs all of them
    /// one after the other. `earlier_commits` is the base commit and the last commit of stopped runs of the
    /// task in the lane; the work then continues at their last step.
    pub(super) fn start_work(
        &self,
        start: RunStart,
        (lane, lock): (LaneRecord, LockGuard),
        command: AgentCommand,
        earlier_commits: Option<(CommitId, CommitId)>,
    ) -> Result<LaunchResult, Error> {
        let task = &self.batch.tasks[start.task];
        let task_ref = RunTask {
            batch: self.batch.id().clone(),
            task_number: start.task,
            task: task.name.clone(),
            attempt: start.attempt,
        };
        proq_base::fail_points::hit("batch.launch");
        let task_folder = read_task_folder(&self.project.settings, task, Some(&lane.path))?;
        let lane = lane.into_any();
        let previous_run = lane.last_run;
        let continues = earlier_commits.is_some() && active_task::has_task_loop(self.project, &lane)?;
        let started = if task_folder.is_some() && continues {
            match task_loop_start::resume_as_batch_attempt(
                self.project,
                &lane,
                lock,
                Some(&command),
                task_ref,
            )? {
                LoopStart::Running(lane) | LoopStart::Finished(lane) => lane,
            }
        } else if let Some(folder_run) = task_folder {
            let folder_run = folder_run
                .with_batch_task(task_ref, super::task_runs::folder_task_prompt(&self.batch, start.task));
            task_loop_start::launch_task_loop(self.project, &lane, lock, &command, &folder_run)?
        } else {
            start_supervisor::launch(self.project, &lane, lock, &command.with_batch_task(Some(task_ref)))?
        };
        let earlier_commits = earlier_commits.filter(|(from, to)| from != to);
        Ok(LaunchResult { lane: started.name, is_running: started.last_run > previous_run, earlier_commits })
    }

    /// Resumes the steps of a task whose supervisor crashed. Returns none if that has happened too often, or
    /// if a stop was requested; otherwise whether it was resumed, or why it could not be.
    pub(super) fn resume_steps(
        &self,
        task: usize,
        chain: &RunChain,
    ) -> Result<Option<Result<(), String>>, Error> {
        if !chain.has_task_loop_crashed()
            || chain.count_supervisor_crashes() > MAX_CRASH_RESTARTS
            || self.state.is_stopping(task)
        {
            return Ok(None);
        }
        let lock_result = self.project.lock_idle_lane(&chain.lane.name);
        let (lane, lock) = match lock_result {
            Ok(held) => held,
            Err(e) => return Ok(Some(Err(e.to_string()))),
        };
        match task_loop_start::resume_task_loop(self.project, &lane.into_any(), lock, None) {
            Ok(LoopStart::Running(_) | LoopStart::Finished(_)) => Ok(Some(Ok(()))),
            Err(e) => {
                proq_base::interrupt::require_no_signal().map_err(proq_store::Error::from)?;
                Ok(Some(Err(e.to_string())))
            }
        }
    }
}
