//! Request for new lanes with what is started in them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use proq_base::explain::{Explain, shell_quote};
use proq_base::lane_name::LaneName;
use proq_plan::task_folders;
use proq_plan::task_folders::SingleTask;
use proq_plan::task_folders::layout::TaskLayout;
use proq_store::records::pull_request::IssueLink;

use crate::agent;
use crate::agent::command::agent_command::{AgentCommand, RunOptions};
use crate::lane::Project;
use crate::lane::worktree::set_up::commands::SetUpLevel;
use crate::ops::error::Error;

/// Request for new lanes that can land.
#[derive(Debug, Default)]
pub struct SpawnRequest {
    /// Name of the lane, or of the group of attempts; made from the task if none is given.
    pub name: Option<LaneName>,
    /// Prompt of the agents. A task folder has its own.
    pub prompt: Option<String>,
    /// Lanes to create.
    pub lanes: RequestedLanes,
    /// Options of the runs.
    pub options: RunOptions,
    /// Folder from which the caller names programs.
    pub dir: PathBuf,
    /// Lane in which the caller works, if any.
    pub calling_lane: Option<String>,
    /// Revision to start from; the current branch if none is given.
    pub base: Option<String>,
    /// Branch to land on; the one to start from if none is given.
    pub onto: Option<String>,
    /// Shell command lines that must succeed on a lane before it lands, beside those of a task folder.
    pub checks: Vec<String>,
    /// Globs of the files that the task is expected to touch, beside those of a task folder.
    pub scope: Vec<String>,
    /// Whether only the folders of the files in scope are checked out.
    pub sparse: bool,
    /// Whether the uncommitted changes of the current worktree become the first commit of a lane.
    pub carry: bool,
    /// How much of the configured set-up a lane gets.
    pub set_up: SetUpLevel,
    /// Whether a lane lands automatically when its run is done.
    pub auto_merge: bool,
    /// Absolute paths of the files to attach to the task.
    pub attachments: Vec<PathBuf>,
    /// Issue that the task comes from.
    pub issue: Option<IssueLink>,
}

/// Reason why a request for new lanes is incomplete.
#[derive(Debug, thiserror::Error, Explain)]
pub enum SpawnRequestError {
    /// A check is blank, and the user would take the lane for checked.
    #[error("--check names no command")]
    #[exit(Usage)]
    #[hint("for example: git proq spawn claude \"implement payments\" --check \"make test-payments\"")]
    BlankCheck,
    /// A sparse checkout was requested without a scope.
    #[error("cannot use --sparse: there is no --scope")]
    #[exit(Usage)]
    #[hint("for example: git proq spawn claude \"implement payments\" --sparse --scope src/pay/")]
    SparseWithoutScope,
}

/// Lanes of one request.
#[derive(Debug)]
pub enum RequestedLanes {
    /// One lane.
    Single(LaneProgram),
    /// A group of attempts at one task, each in a lane with its own program.
    Attempts(Vec<LaneProgram>),
    /// One lane whose task is a folder with steps.
    TaskFolder {
        /// Profile name of the agent that works.
        agent: String,
        /// The folder, as [`read_task_folder`] returns it.
        task: Box<SingleTask>,
        /// Profile name of the agent that reviews; that of the settings, else the one that works, if none.
        reviewer: Option<String>,
    },
}

impl SpawnRequest {
    /// Requests one lane in which an agent works at a prompt. The agent is a known one, or any program; a
    /// relative path to it starts from the current folder.
    pub fn agent(agent: impl Into<String>, prompt: impl Into<String>) -> SpawnRequest {
        SpawnRequest { prompt: Some(prompt.into()), ..SpawnRequest::single(LaneProgram::Agent(agent.into())) }
    }

    /// Requests one lane in which a command line runs; a relative path to its program starts from the current
    /// folder.
    pub fn command<S: Into<OsString>>(argv: impl IntoIterator<Item = S>) -> SpawnRequest {
        SpawnRequest::single(LaneProgram::Command(argv.into_iter().map(Into::into).collect()))
    }

    fn single(program: LaneProgram) -> SpawnRequest {
        let dir = std::env::current_dir().unwrap_or_default();
        SpawnRequest { lanes: RequestedLanes::Single(program), dir, ..SpawnRequest::default() }
    }
}

impl Default for RequestedLanes {
    fn default() -> RequestedLanes {
        RequestedLanes::Single(LaneProgram::default())
    }
}

/// Program to start in a new lane.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum LaneProgram {
    /// No program: the lane stays empty.
    #[default]
    None,
    /// A known agent, or any program on `PATH`.
    Agent(String),
    /// A command line of the user.
    Command(Vec<OsString>),
}

impl LaneProgram {
    /// Returns the command that starts the program; none for an empty lane. `dir` is the folder from which
    /// the user names programs.
    ///
    /// # Errors
    /// Fails when the program is not found, or cannot be run with these options or this prompt.
    pub(crate) fn agent_command(
        &self,
        project: &Project,
        prompt: &str,
        dir: &Path,
        options: &RunOptions,
    ) -> Result<Option<AgentCommand>, agent::Error> {
        match self {
            LaneProgram::None => Ok(None),
            LaneProgram::Agent(agent) => {
                AgentCommand::from_profile(project, agent, prompt, dir, options).map(Some)
            }
            LaneProgram::Command(argv) => {
                AgentCommand::from_user_command(&project.settings, argv, prompt, dir, options).map(Some)
            }
        }
    }

    /// Returns the user's command line as a shell reads it, after which a lane without a prompt is named.
    pub(crate) fn command_line(&self) -> Option<String> {
        let LaneProgram::Command(argv) = self else { return None };
        Some(argv.iter().map(|word| shell_quote(&word.to_string_lossy())).collect::<Vec<_>>().join(" "))
    }
}

/// Reads a task that is given as a folder, named from the folder `dir`.
///
/// # Errors
/// Fails when `source` does not name exactly one valid task.
pub fn read_task_folder(project: &Project, dir: &Path, source: &str) -> Result<SingleTask, Error> {
    let repo = &project.repo;
    let top = repo.current_worktree().unwrap_or(repo.command_dir());
    let top = std::fs::canonicalize(top).unwrap_or_else(|_| top.to_owned());
    let swarm = &project.settings.swarm;
    let layout = TaskLayout { top: &top, tasks_dir: &swarm.tasks_folder, areas: &swarm.areas };
    Ok(task_folders::read_single_task(dir, source, &layout)?)
}
