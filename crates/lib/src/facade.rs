//! A repository for programs that use the library: a method per use case, each a call of [`crate::ops`].

use std::path::{Path, PathBuf};

use proq_base::diagnostics::Listener;
use proq_store::base::batch_id::BatchId;

use crate::board::rows::lane_details::ShownLane;
use crate::board::rows::lane_list::LaneList;
use crate::board::rows::load_list::{ListRequest, load_list};
use crate::lane::Project;
use crate::merge::types::options::{LandingOptions, StackOrder};
use crate::operation::undo_plan::UndoTarget;
use crate::ops;
use crate::ops::error::Error;
use crate::ops::land::merge::conflict_agent::ConflictAgentChoice;
use crate::ops::land::merge::{MergeOutcome, MergeRequest};
use crate::ops::land::pick::{PickOutcome, PickRequest};
use crate::ops::land::resolve::{ResolveOutcome, ResolveRequest};
use crate::ops::preview::{PreviewOutcome, PreviewRequest};
use crate::ops::pull_request::open_request::{OpenRequest, OpenRequestOutcome};
use crate::ops::remove::cleanup::{CleanupOutcome, CleanupRequest};
use crate::ops::remove::discard::DiscardRequest;
use crate::ops::remove::removal::RemovalOutcome;
use crate::ops::reporter::{Reporter, SilentReporter};
use crate::ops::send::{SendOutcome, SendRequest};
use crate::ops::start::spawn::execution::SpawnOutcome;
use crate::ops::start::spawn::request::SpawnRequest;
use crate::ops::stop::{StopOutcome, StopRequest};
use crate::ops::undo::{UndoOutcome, UndoRequest};
use crate::ops::wait::{WaitOutcome, WaitRequest};
use crate::swarm::landing::batch_records::BatchRecords;
use crate::swarm::ops::control::{Halt, HaltOutcome, HaltRequest};
use crate::swarm::ops::follow::BatchFollower;
use crate::swarm::ops::resume::{ResumeOutcome, ResumeRequest};
use crate::swarm::ops::start::{SwarmOutcome, SwarmRequest};
use crate::swarm::ops::{control, resume, start};
use crate::swarm::status::progress::BatchProgress;

/// A repository with its lanes. Each method is a use case with its usual options; with others, or for a
/// forecast, call the use case itself with `project`. Lanes are named by their names or branches.
pub struct Proq {
    /// The open repository.
    pub project: Project,
    /// Receiver of progress, which also answers what only a person may decide. Its token cancels a use case,
    /// but not `list`, `show`, `send`, `preview`, `preview_back`, `pause`, `abort` and `resume`.
    pub reporter: Box<dyn Reporter>,
}

impl Proq {
    /// Opens the repository that contains `dir`, after recovery of what crashed processes left there. The
    /// `git-proq` on `PATH` supervises agents. Nothing is shown, and what needs a person's consent is refused.
    ///
    /// # Errors
    /// Fails if there is no repository or no git, or the recovery fails.
    pub fn open(dir: impl AsRef<Path>) -> Result<Proq, Error> {
        let project = Project::open_recovered(dir.as_ref(), Listener::silent())?;
        Ok(Proq { project, reporter: Box::new(SilentReporter) })
    }

    /// Sets another `git-proq` program to supervise agents.
    #[must_use]
    pub fn with_program(mut self, program: impl Into<PathBuf>) -> Proq {
        self.project.other_git_proq = Some(program.into());
        self
    }

    /// Creates lanes, all or none, and starts their agents or commands. Returns once those run, not when they
    /// have exited. The outcome has why one could not be started.
    ///
    /// # Errors
    /// Fails if the name is taken, the base does not exist, the scope is not a list of globs, or a program is
    /// not found. No lane is created then.
    pub fn spawn(&self, request: &SpawnRequest) -> Result<SpawnOutcome, Error> {
        ops::start::spawn::plan::plan(&self.project, request)?.execute(&self.project, &*self.reporter)
    }

    /// Returns all present lanes, attempts of a group next to each other and those of batches last, with a
    /// short forecast of their conflicts.
    ///
    /// # Errors
    /// Fails if the lanes' records or git's list of worktrees cannot be read.
    pub fn list(&self) -> Result<LaneList, Error> {
        load_list(&self.project, ListRequest::default(), &mut |_| {})
    }

    /// Returns all about one lane. A removed lane is named `NAME@N`, and a task of a batch names its lane.
    ///
    /// # Errors
    /// Fails if there is no such lane, or a record cannot be read.
    pub fn show(&self, name: impl AsRef<str>) -> Result<ShownLane, Error> {
        ShownLane::load(&self.project, name.as_ref())
    }

    /// Waits for a lane's agent to exit.
    ///
    /// # Errors
    /// Fails if there is no such lane, or it disappears without a record.
    pub fn wait(&self, name: impl AsRef<str>) -> Result<WaitOutcome, Error> {
        let request =
            WaitRequest { lanes: vec![self.project.find_any_lane(name.as_ref())?], ..WaitRequest::default() };
        ops::wait::plan(&self.project, &request)?.execute(&self.project, &*self.reporter)
    }

    /// Stops a lane's agent. One that cannot be stopped is reported, and is not in the outcome.
    ///
    /// # Errors
    /// Fails if there is no such lane.
    pub fn stop(&self, name: impl AsRef<str>) -> Result<StopOutcome, Error> {
        let lanes = Some(vec![self.project.find_any_lane(name.as_ref())?]);
        let plan = ops::stop::plan(&self.project, &StopRequest { lanes, ..StopRequest::default() })?;
        Ok(plan.execute(&self.project, &*self.reporter))
    }

    /// Sends a message to a lane's agent. One that runs gets it at the end of its turn; one that has ended
    /// continues with it.
    ///
    /// # Errors
    /// Fails if there is no such lane, or its agent cannot continue; nothing was sent then.
    pub fn send(&self, name: impl AsRef<str>, text: impl Into<String>) -> Result<SendOutcome, Error> {
        let lane = self.project.find_any_lane(name.as_ref())?;
        let request = SendRequest { lane, text: Some(text.into()), attachments: Vec::new() };
        ops::send::plan(&self.project, &request)?.execute(&self.project)
    }

    /// Previews a lane in the main checkout; uncommitted changes there are saved in a snapshot.
    ///
    /// # Errors
    /// Fails in a bare repository, or if the main checkout cannot show the lane; nothing was changed then.
    pub fn preview(&self, name: impl AsRef<str>) -> Result<PreviewOutcome, Error> {
        let request = PreviewRequest::Show(Box::new(self.project.find_lane(name.as_ref())?));
        ops::preview::plan(&self.project, &request)?.execute(&self.project)
    }

    /// Leaves the preview and restores the changes. If they conflict with what landed since, the outcome has
    /// the commit that still holds them; `git stash apply` reads it.
    ///
    /// # Errors
    /// Fails if there is no preview, or the main checkout cannot go back; nothing was changed then.
    pub fn preview_back(&self) -> Result<PreviewOutcome, Error> {
        ops::preview::plan(&self.project, &PreviewRequest::Leave)?.execute(&self.project)
    }

    /// Lands lanes in this order, each on its base, after the checks of the settings and of their tasks
    /// succeed. Of two conflicting lanes, the first lands. With `merge.push`, bases are pushed afterwards;
    /// the result of that is in the report and is not an error. No agent resolves conflicts, regardless of
    /// `merge.conflict_agent`. Automatic merges that waited for this landing are retried in the background.
    ///
    /// # Errors
    /// Fails if a lane does not exist, nothing could be tried, or an approval is missing.
    pub fn merge(&self, lanes: &[impl AsRef<str>]) -> Result<MergeOutcome, Error> {
        let lanes = lanes.iter().map(|name| name.as_ref().to_owned()).collect();
        self.land(lanes, LandingOptions { order: StackOrder::Given, ..LandingOptions::default() })
    }

    /// Lands every finished lane as [`Proq::merge`] does, in the order in which most of them land.
    ///
    /// # Errors
    /// As [`Proq::merge`].
    pub fn merge_all(&self) -> Result<MergeOutcome, Error> {
        self.land(Vec::new(), LandingOptions { all: true, ..LandingOptions::default() })
    }

    fn land(&self, lanes: Vec<String>, options: LandingOptions) -> Result<MergeOutcome, Error> {
        let conflict_agent = ConflictAgentChoice::Nobody;
        let request = MergeRequest { lanes, conflict_agent, options, ..MergeRequest::default() };
        ops::land::merge::plan(&self.project, &request)?.execute(&self.project, &*self.reporter)
    }

    /// Pushes a lane's branch and opens its pull or merge request by the program of its forge, or updates the
    /// open one. Nothing lands here.
    ///
    /// # Errors
    /// Fails if the lane may not be merged, its branch cannot be pushed, or the program is missing or fails.
    pub fn open_pull_request(&self, request: &OpenRequest) -> Result<OpenRequestOutcome, Error> {
        ops::pull_request::open_request::plan(&self.project, request)?.execute(&self.project, &*self.reporter)
    }

    /// Lands one of several attempts at a task, and discards the others.
    ///
    /// # Errors
    /// Fails if the lane is no attempt, agents run in others, or nothing could be tried.
    pub fn pick(&self, request: &PickRequest) -> Result<PickOutcome, Error> {
        ops::land::pick::plan(&self.project, request)?.execute(&self.project, &*self.reporter, &|_| {})
    }

    /// Resolves a lane's conflict by an agent, in a shell or merge tool on this terminal, or with what is in
    /// the open worktree; or gives an open resolution up.
    ///
    /// # Errors
    /// Fails if the lane does not exist or the resolution is refused; its worktree stays open then.
    pub fn resolve(&self, request: ResolveRequest) -> Result<ResolveOutcome, Error> {
        ops::land::resolve::plan(&self.project, request)?.execute(&self.project, &*self.reporter)
    }

    /// Discards lanes. With `force`, saves their content first and stops running agents. Without it, a lane
    /// with work that is not on its base is retained. The outcome has an error for each retained lane.
    ///
    /// # Errors
    /// Fails if the operation itself fails.
    pub fn discard(&self, request: &DiscardRequest) -> Result<RemovalOutcome, Error> {
        ops::remove::discard::plan(request).execute(&self.project, &*self.reporter)
    }

    /// Removes lanes that are landed or otherwise no longer needed, and deletes what has expired.
    ///
    /// # Errors
    /// Fails if the lanes or worktrees cannot be read, or the operation itself fails.
    pub fn cleanup(&self, request: &CleanupRequest) -> Result<CleanupOutcome, Error> {
        let plan = ops::remove::cleanup::plan(&self.project, request, &BatchRecords)?;
        plan.execute(&self.project, &*self.reporter)
    }

    /// Undoes the last operation; one of another terminal only if the reporter's person agrees.
    ///
    /// # Errors
    /// Fails if there is nothing to undo, or later commits or a batch build on it; nothing was changed then.
    pub fn undo(&self) -> Result<UndoOutcome, Error> {
        self.undo_target(UndoTarget::Last(None))
    }

    /// Takes the last undo back.
    ///
    /// # Errors
    /// Fails if the last operation is no undo, or it cannot be taken back; nothing was changed then.
    pub fn redo(&self) -> Result<UndoOutcome, Error> {
        self.undo_target(UndoTarget::LastUndo)
    }

    fn undo_target(&self, target: UndoTarget) -> Result<UndoOutcome, Error> {
        let request = UndoRequest { target, force: false, is_named: target == UndoTarget::LastUndo };
        ops::undo::plan(&self.project, &request, &BatchRecords)?.execute(&self.project, &*self.reporter)
    }

    /// Starts a batch that runs a plan, or continues the unfinished one of the same plan if the reporter's
    /// person agrees. Returns once its scheduler runs.
    ///
    /// # Errors
    /// Fails if the plan is invalid or done, an agent cannot be started, there are uncommitted changes, or an
    /// approval is missing.
    pub fn swarm(&self, request: &SwarmRequest) -> Result<SwarmOutcome, Error> {
        start::plan(&self.project, request)?.execute(&self.project, &*self.reporter)
    }

    /// Waits until a batch is over or paused, or its scheduler is gone, and returns how far it is.
    ///
    /// # Errors
    /// Fails if there is no such batch, its log cannot be read, or the reporter's token is canceled; the batch
    /// goes on then.
    pub fn wait_for_batch(&self, batch: &BatchId) -> Result<BatchProgress, Error> {
        let _scope = self.reporter.enter_cancellation();
        BatchFollower::from_start(&self.project, batch)?.wait_for_end(&self.project)
    }

    /// Pauses a batch: what runs is ended and landed first. Returns once its scheduler has received that.
    ///
    /// # Errors
    /// Fails if there is no such batch, it was cleaned up, or its scheduler does not answer in time.
    pub fn pause(&self, batch: &BatchId) -> Result<HaltOutcome, Error> {
        self.halt(batch, Halt::Pause)
    }

    /// Aborts a batch: its agents are requested to finish. Returns once its scheduler has received that.
    ///
    /// # Errors
    /// As [`Proq::pause`].
    pub fn abort(&self, batch: &BatchId) -> Result<HaltOutcome, Error> {
        self.halt(batch, Halt::Abort { hard: false })
    }

    fn halt(&self, batch: &BatchId, halt: Halt) -> Result<HaltOutcome, Error> {
        let request = HaltRequest { batch_name: Some(batch.to_string()), halt };
        control::plan(&self.project, &request)?.execute(&self.project)
    }

    /// Continues a batch. Returns once its scheduler has received that.
    ///
    /// # Errors
    /// Fails if there is no such batch or task, the batch was cleaned up, or no scheduler can be started.
    pub fn resume(&self, request: &ResumeRequest) -> Result<ResumeOutcome, Error> {
        resume::plan(&self.project, request)?.execute(&self.project)
    }
}
