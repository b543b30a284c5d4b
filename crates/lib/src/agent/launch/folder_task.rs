//! Task that is given as a folder: its files, its batch and its reviews.

use std::path::Path;

use proq_base::config::settings::Settings;
use proq_store::records::batched::RunTask;
use proq_store::records::lane::AnyLane;

use super::step_command::reviewer_options;
use crate::agent::Error;
use crate::agent::command::agent_command::AgentCommand;
use crate::agent::task_loop::active_task::ActiveTask;
use crate::agent::task_loop::task_folder::{PROMPT_FILE, TaskFile, read_task_files};
use crate::lane::Project;

/// Task given as a folder, with its files and the options of its task loop.
#[derive(Debug, Clone)]
pub struct FolderTask {
    /// Path of the folder, relative to the top of the worktree.
    pub folder: String,
    /// Title of the task, in one line.
    pub title: String,
    /// Review level: 0 reviews nothing, 1 the plan of each step, 2 its code too.
    pub review_level: u8,
    /// Profile name of the agent that reviews; none for the agent that works at the task.
    pub reviewer: Option<String>,
    /// Files to copy into the lane, with their contents.
    pub files: Vec<TaskFile>,
    /// Batch task that the folder belongs to; none for a task outside of a batch.
    pub batch_task: Option<RunTask>,
    /// Text added to the prompt of each run that works at the task; empty outside of a batch.
    pub extra_prompt: String,
}

impl FolderTask {
    /// Loads the folder `dir`, whose path in a worktree is `folder`. `review_level` is what is reviewed: 0
    /// nothing, 1 the plan of each step, 2 its code too. `reviewer` is the agent that reviews; without one,
    /// that of the settings, else the agent that works.
    ///
    /// # Errors
    /// [`Error::InvalidTaskFolder`] for a folder that cannot be copied into a lane.
    pub fn load(
        settings: &Settings,
        dir: &Path,
        folder: &str,
        title: &str,
        review_level: u8,
        reviewer: Option<String>,
    ) -> Result<FolderTask, Error> {
        let folder_error = |reason: &str| Error::InvalidTaskFolder {
            path: proq_base::terminal_text::escape_line(folder),
            reason: reason.to_owned(),
        };
        if folder.is_empty() || folder.chars().any(char::is_control) {
            return Err(folder_error("is empty or has control characters"));
        }
        Ok(FolderTask {
            folder: folder.to_owned(),
            title: title.to_owned(),
            review_level: review_level.min(2),
            reviewer: reviewer.or_else(|| settings.swarm.reviewer.clone()),
            files: read_task_files(dir)?,
            batch_task: None,
            extra_prompt: String::new(),
        })
    }

    /// Returns the task as part of a batch. `extra_prompt` is added to the prompt of the runs that work at
    /// it.
    pub(crate) fn with_batch_task(self, batch: RunTask, extra_prompt: String) -> FolderTask {
        FolderTask { batch_task: Some(batch), extra_prompt, ..self }
    }

    /// Describes the task and its reviews in one line.
    pub fn describe(&self, worker: &AgentCommand) -> String {
        let reviewer = self.reviewer.as_deref().unwrap_or(&worker.agent);
        let review_text = match self.review_level {
            0 => "no reviews".to_owned(),
            1 => format!("{reviewer} reviews the plan of each step"),
            _ => format!("{reviewer} reviews the plan and the code of each step"),
        };
        format!("{}, one run after the other; {review_text}", self.folder)
    }

    /// Refuses a reviewer that cannot be started or cannot be limited to reading, before anything is created.
    ///
    /// # Errors
    /// As [`AgentCommand::from_profile`].
    pub fn check_reviewer(&self, project: &Project, worker: &AgentCommand) -> Result<(), Error> {
        if self.review_level == 0 {
            return Ok(());
        }
        let worker_command = worker.user_agent_command();
        let (agent, options) =
            reviewer_options(self.reviewer.as_deref(), &worker.agent, &worker_command, worker.model.clone());
        AgentCommand::from_profile(project, &agent, &self.title, project.repo.command_dir(), &options)
            .map(drop)
    }
}

/// Loads the folder task of a lane that is created again: from the main checkout as it is now, or, if the
/// main checkout does not have the folder, from the lane without its progress. None for a lane without such a
/// task.
///
/// # Errors
/// As [`FolderTask::load`].
pub fn reload_folder_task(project: &Project, lane: &AnyLane) -> Result<Option<FolderTask>, Error> {
    let Some(active) = ActiveTask::find(project, lane)? else { return Ok(None) };
    let record = active.record();
    let (folder, title, review_level) = (&record.folder, &record.title, record.review_level);
    let dir = project.repo.command_dir().join(folder);
    let reviewer = record.reviewer.clone();
    if dir.join(PROMPT_FILE).is_file() {
        return FolderTask::load(&project.settings, &dir, folder, title, review_level, reviewer).map(Some);
    }
    let mut task =
        FolderTask::load(&project.settings, &lane.path.join(folder), folder, title, review_level, reviewer)?;
    task.files.retain(|file| !file.is_status());
    Ok(Some(task))
}
