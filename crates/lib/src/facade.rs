//! Public library interface: the operations of the commands, for programs. Results are the data that `--json`
//! prints.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use proq_base::diagnostics::Listener;
use proq_base::lane_name::LaneName;
use proq_store::records::lane::{AnyLane, LaneRecord};
use proq_store::records::lane_state::LaneState;
use serde::Serialize;

use crate::agent::command::agent_command::RunOptions;
use crate::lane;
use crate::lane::Project;
use crate::lane::inspection::list::LaneView;
use crate::lane::recovery;
use crate::merge::types::options::{LandingOptions, StackOrder};
use crate::merge::types::outcome;
use crate::ops;
use crate::ops::discard::DiscardRequest;
pub use crate::ops::error::Error;
use crate::ops::merge::MergeRequest;
use crate::ops::merge::conflict_agent::ConflictAgentChoice;
use crate::ops::preview::PreviewRequest;
use crate::ops::reporter::SilentReporter;
use crate::ops::spawn::execution::SpawnedLane;
use crate::ops::spawn::request::{LaneProgram, RequestedLanes, SpawnRequest};
use crate::ops::wait::WaitRequest;
use crate::ops::{merge, spawn};

/// Options of a new lane.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Spawn {
    /// Name of the lane; derived from the prompt or the command if none.
    pub name: Option<String>,
    /// Prompt of the agent.
    pub prompt: Option<String>,
    /// A known agent, or any program on `PATH`.
    pub agent: Option<String>,
    /// Command line to run instead of an agent. Without an agent and a command, the lane stays empty.
    pub command: Vec<OsString>,
    /// Starting point other than the current branch.
    pub base: Option<String>,
    /// Branch to land on other than the starting point.
    pub onto: Option<String>,
    /// Shell command lines that must succeed with the lane before it lands.
    pub checks: Vec<String>,
    /// Files that the task is expected to touch, as globs from the top of the repository.
    pub scope: Vec<String>,
    /// Whether the lane is merged automatically when its run is done.
    pub auto_merge: bool,
}

impl Spawn {
    /// Creates options for an agent with a prompt.
    #[must_use]
    pub fn agent(agent: impl Into<String>, prompt: impl Into<String>) -> Spawn {
        Spawn { agent: Some(agent.into()), prompt: Some(prompt.into()), ..Spawn::default() }
    }

    /// Creates options for a command line.
    #[must_use]
    pub fn command<S: Into<OsString>>(args: impl IntoIterator<Item = S>) -> Spawn {
        Spawn { command: args.into_iter().map(Into::into).collect(), ..Spawn::default() }
    }

    /// Sets the name of the lane.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Spawn {
        self.name = Some(name.into());
        self
    }
}

/// Current state of a lane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Lane {
    /// Name of the lane.
    pub name: String,
    /// Title of the lane; at first the first line of its task.
    pub title: String,
    /// State of the lane's run or landing.
    pub state: LaneState,
    /// Reason or further detail of the state; none if there is none.
    pub detail: Option<String>,
    /// Branch of the lane.
    pub branch: String,
    /// Top folder of the lane's worktree.
    pub path: PathBuf,
    /// Branch that the lane lands on.
    pub base: String,
    /// Name of the lane's agent; none for an empty lane.
    pub agent: Option<String>,
    /// Number of commits on the lane's branch that its base lacks; none when one of the two branches is gone.
    pub ahead: Option<usize>,
    /// Number of commits on the lane's base that its branch lacks; none when one of the two branches is gone.
    pub behind: Option<usize>,
    /// Number of uncommitted files; none when that could not be determined.
    pub uncommitted: Option<usize>,
}

impl From<LaneView> for Lane {
    fn from(view: LaneView) -> Lane {
        Lane {
            state: view.state(),
            detail: view.detail,
            ahead: view.distance.map(|d| d.ahead),
            behind: view.distance.map(|d| d.behind),
            uncommitted: view.dirty.map(|d| d.entries.len()),
            branch: view.lane.branch().unwrap_or_default().to_owned(),
            name: view.lane.name.into(),
            title: view.lane.title,
            path: view.lane.path,
            base: view.lane.base,
            agent: view.lane.agent,
        }
    }
}

/// A repository with its lanes.
pub struct Proq {
    project: Project,
}

impl Proq {
    /// Opens the repository that contains `dir`. The `git-proq` on `PATH` supervises agents.
    ///
    /// # Errors
    /// Fails if there is no repository or no git.
    pub fn open(dir: impl AsRef<Path>) -> Result<Proq, Error> {
        let project = Project::open(dir.as_ref(), Listener::silent())?;
        recovery::recover(&project)?;
        Ok(Proq { project })
    }

    /// Sets another `git-proq` program to supervise agents.
    #[must_use]
    pub fn with_program(mut self, program: impl Into<PathBuf>) -> Proq {
        self.project.other_git_proq = Some(program.into());
        self
    }

    /// Creates a lane and starts its agent or command, if any. Returns once that is running, not when it has
    /// exited.
    ///
    /// # Errors
    /// Fails if the name is taken or invalid, the base does not exist, the scope is not a list of globs, or
    /// the program is not found. No lane is created then.
    pub fn spawn(&self, request: &Spawn) -> Result<Lane, Error> {
        let project = &self.project;
        let program = match (&request.agent, request.command.as_slice()) {
            (Some(agent), _) => LaneProgram::Agent(agent.clone()),
            (None, []) => LaneProgram::None,
            (None, argv) => LaneProgram::Command(argv.to_vec()),
        };
        let request = SpawnRequest {
            name: request.name.as_deref().map(LaneName::parse).transpose()?,
            prompt: request.prompt.clone(),
            lanes: RequestedLanes::Single(program),
            options: RunOptions { agent_command: request.command.clone(), ..RunOptions::default() },
            dir: project.repo.command_dir().to_owned(),
            base: request.base.clone(),
            onto: request.onto.clone(),
            checks: request.checks.clone(),
            scope: request.scope.clone(),
            auto_merge: request.auto_merge,
            ..SpawnRequest::default()
        };
        let mut outcome = spawn::plan::plan(project, &request)?.execute(project, &SilentReporter)?;
        let SpawnedLane { lane, failure, .. } = outcome.lanes.swap_remove(0);
        match failure {
            Some(e) => Err(e),
            None => self.lane_from_record(lane.into_any()),
        }
    }

    /// Returns every lane that can be landed, by name.
    pub fn list(&self) -> Result<Vec<Lane>, Error> {
        let lanes = self.project.owned_lanes()?.into_iter().map(LaneRecord::into_any).collect();
        let views = crate::lane::inspection::list::lane_views(&self.project, lanes)?;
        Ok(views.into_iter().map(Lane::from).collect())
    }

    /// Returns the current state of one lane.
    pub fn show(&self, name: &str) -> Result<Lane, Error> {
        self.lane_from_record(self.project.find_lane(name)?.into_any())
    }

    /// Waits for a lane's agent to exit.
    pub fn wait(&self, name: &str) -> Result<Lane, Error> {
        let lanes = vec![self.project.find_lane(name)?.into_any()];
        let plan = ops::wait::plan(&self.project, &WaitRequest { lanes, ..WaitRequest::default() })?;
        let waited = plan.execute(&self.project, &SilentReporter)?.waited.pop();
        let unknown_lane = || lane::Error::UnknownLane { name: name.to_owned(), similar: None };
        self.lane_from_record(waited.ok_or_else(unknown_lane)?.lane)
    }

    /// Previews a lane in the main checkout; uncommitted changes there are saved in a snapshot.
    pub fn preview(&self, name: &str) -> Result<(), Error> {
        self.project.repo.require_main()?;
        let request = PreviewRequest::Show(Box::new(self.project.find_lane(name)?));
        ops::preview::plan(&self.project, &request)?.execute(&self.project).map(drop)
    }

    /// Leaves the preview and restores the changes. If they conflict with what landed since, returns the
    /// commit that still holds them; `git stash apply` reads it.
    pub fn preview_back(&self) -> Result<Option<String>, Error> {
        let plan = ops::preview::plan(&self.project, &PreviewRequest::Leave)?;
        Ok(plan.execute(&self.project)?.snapshot)
    }

    /// Lands lanes in this order, each on its base, after the checks of the settings and of their tasks
    /// succeed. Of two conflicting lanes, the first lands. With `merge.push`, bases are pushed afterwards;
    /// the result of that is in the report and is not an error. No agent resolves conflicts, regardless of
    /// `merge.conflict_agent`. Automatic merges that waited for this landing are retried in the background.
    pub fn merge(&self, lanes: &[String]) -> Result<outcome::LandingReport, Error> {
        self.land_lanes(lanes, false)
    }

    /// Lands every finished lane, in the order in which most of them land.
    pub fn merge_all(&self) -> Result<outcome::LandingReport, Error> {
        self.land_lanes(&[], true)
    }

    /// Discards a lane. With `force`, saves its content first and stops a running agent.
    ///
    /// # Errors
    /// Fails without `force` if the lane has work that is not on its base; nothing is changed then.
    pub fn discard(&self, name: &str, force: bool) -> Result<(), Error> {
        let lanes = vec![self.project.find_lane(name)?.into_any()];
        let plan = ops::discard::plan(&DiscardRequest { lanes, force });
        let removals = plan.execute(&self.project, &SilentReporter)?.lanes;
        removals.into_iter().find_map(|removal| removal.error).map_or(Ok(()), Err)
    }

    /// Lands these lanes, or with `all` every finished lane, with the settings of the repository.
    fn land_lanes(&self, lanes: &[String], all: bool) -> Result<outcome::LandingReport, Error> {
        let request = MergeRequest {
            lanes: lanes.to_vec(),
            conflict_agent: ConflictAgentChoice::Nobody,
            options: LandingOptions {
                all,
                order: if all { StackOrder::Best } else { StackOrder::Given },
                ..LandingOptions::default()
            },
            ..MergeRequest::default()
        };
        Ok(merge::plan(&self.project, &request)?.execute(&self.project, &SilentReporter)?.report)
    }

    /// Returns the current state of the lane with this record.
    fn lane_from_record(&self, record: AnyLane) -> Result<Lane, Error> {
        let name = record.name.to_string();
        let view = crate::lane::inspection::list::lane_views(&self.project, vec![record])?.pop();
        view.map(Lane::from).ok_or_else(|| lane::Error::UnknownLane { name, similar: None }.into())
    }
}
