//! Start of a batch: a plan that is checked, approved and run.

use std::path::PathBuf;

use proq_base::money::NanoDollars;
use proq_base::terminal_text;
use proq_git::base::error::list_paths;
use proq_git::status::status_query;
use proq_git::{Repo, RepoPath};
use proq_plan::plan_format::PlanFormat;
use proq_plan::plan_source::LoadedPlan;
use proq_plan::schedule::options::{
    BatchOptions, LandingFailurePolicy, LandingMode, LaneAssignment, TaskFailurePolicy,
};
use proq_plan::toml_plan::write;
use proq_store::base::batch_id::BatchId;
use proq_store::locks::lock::LockName;
use serde::{Serialize, Serializer};

use super::earlier_batches::{find_unfinished_batch, require_last_batch_landed, unfinished_error};
use super::follow::BatchFollower;
use super::named_plan::NamedPlan;
use super::plan_view::PlanView;
use crate::agent::command::agent_command::{AgentCommand, RunOptions};
use crate::agent::launch::start_supervisor;
use crate::event::approval::{Approvals, ShellCommand};
use crate::lane::Project;
use crate::lane::inspection::base;
use crate::lane::inspection::base::Base;
use crate::lane::worktree::set_up::commands;
use crate::merge::resolution::resolve_agent;
use crate::ops::approvals::{request_approval, request_landing_approval};
use crate::ops::error::Error;
use crate::ops::refusal::{Refusal, refuse_in_lane};
use crate::ops::reporter::{Progress, Question, Reporter};
use crate::ops::start::launch_checks::refuse_or_warn_before_start;
use crate::swarm::batch::control_request::ControlRequestKind;
use crate::swarm::batch::create::NewBatch;
use crate::swarm::batch::error::BatchError;
use crate::swarm::batch::ledger::Ledger;
use crate::swarm::batch::plan_tasks::TaskDefaults;
use crate::swarm::batch::record::{Batch, BatchRecord};
use crate::swarm::batch::task::BatchTask;
use crate::swarm::batch::{create, plan_commands, plan_tasks};
use crate::swarm::planner::draft_error::DraftError;
use crate::swarm::planner::drafts;
use crate::swarm::planner::drafts::Draft;
use crate::swarm::run::{control_requests, scheduler_process, task_folders};
use crate::{lane, merge};

/// Request to run a plan. Options that are not set are as in the settings.
#[derive(Debug, Clone, Default)]
pub struct SwarmRequest {
    /// The plan, or an agent's draft.
    pub plan: NamedPlan,
    /// Agent of tasks that name none.
    pub agent: Option<String>,
    /// Model of tasks that name none.
    pub model: Option<String>,
    /// Branch that the batch is for; none for the current one.
    pub base: Option<String>,
    /// Maximum number of concurrent runs.
    pub max_parallel: Option<usize>,
    /// Unit in which tasks land.
    pub mode: Option<LandingMode>,
    /// Strategy by which tasks get their lanes.
    pub lane_assignment: Option<LaneAssignment>,
    /// Whether tasks land on the base itself.
    pub auto_merge: bool,
    /// Effect of a failed task.
    pub on_task_failure: Option<TaskFailurePolicy>,
    /// Effect of a task that cannot land.
    pub on_landing_failure: Option<LandingFailurePolicy>,
    /// Cost at which the batch pauses.
    pub budget: Option<NanoDollars>,
    /// Whether unmet criteria make the batch count as failed.
    pub strict: bool,
    /// Names of tasks that are tried again, however often they have failed.
    pub retry: Vec<String>,
    /// Whether earlier batches of the same plan do not matter.
    pub ignore_earlier: bool,
    /// Whether uncommitted changes, which no lane has, do not matter.
    pub ignore_dirty: bool,
    /// File to which the scheduler writes the progress.
    pub progress_file: Option<PathBuf>,
    /// Whether the caller has approved the run and an agent's draft.
    pub is_approved: bool,
    /// Whether the plan is only shown. An unfinished batch of it is then refused.
    pub dry_run: bool,
    /// Lane in which the caller works, if any.
    pub calling_lane: Option<String>,
}

/// What running a plan would do.
pub enum SwarmPlan {
    /// An unfinished batch of the same plan continues.
    Resume(Box<UnfinishedBatch>),
    /// A new batch starts.
    Start(Box<NewBatchPlan>),
}

/// An unfinished batch of a plan.
pub struct UnfinishedBatch {
    batch: BatchRecord,
    /// State of the batch in a word.
    state: &'static str,
    /// Names of tasks that are tried again.
    retry: Vec<String>,
}

/// A batch that would start. It serializes to the JSON output of a dry run.
pub struct NewBatchPlan {
    /// The plan.
    pub view: PlanView,
    /// The branch that the batch is for, and the commit that it starts from.
    pub base: Base,
    /// Options of the scheduler.
    pub options: BatchOptions,
    /// Whether tasks land on the base itself.
    pub auto_merge: bool,
    tasks: Vec<BatchTask>,
    /// The draft that the plan comes from.
    draft: Option<Draft>,
    request: SwarmRequest,
}

/// A batch that was started or continues. It serializes to the JSON output of a command that does not follow it.
pub struct SwarmOutcome {
    /// The batch's record.
    pub batch: BatchRecord,
    /// Reader of what happens in an unfinished batch from now on; none for a new batch.
    pub follower: Option<BatchFollower>,
}

/// JSON output about a batch. A batch that does not exist yet has neither an id nor a branch.
#[derive(Serialize)]
struct BatchOutput<'a> {
    batch: &'a BatchId,
    base: &'a str,
    branch: &'a str,
    dry_run: bool,
}

impl Serialize for NewBatchPlan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (batch, base) = (&BatchId::new(String::new()), &self.base.branch);
        BatchOutput { batch, base, branch: "", dry_run: true }.serialize(serializer)
    }
}

impl Serialize for SwarmOutcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let BatchRecord { id: batch, base, branch, .. } = &self.batch;
        BatchOutput { batch, base, branch, dry_run: false }.serialize(serializer)
    }
}

/// Reads and checks the plan: its tasks, their agents, and earlier batches of it. Warns of what the agents'
/// settings do not cover.
///
/// # Errors
/// Fails when the plan is invalid or done, an agent cannot be started, the base is unknown, or the last batch
/// of the plan has not landed.
pub fn plan(project: &Project, request: &SwarmRequest) -> Result<SwarmPlan, Error> {
    let draft = request.plan.draft_name(&project.store);
    let draft = draft.map(|name| drafts::read_draft(&project.store, name)).transpose()?;
    let loaded = request.plan.read_or_draft(project)?;
    let tasks = checked_tasks(project, request, &loaded)?;
    let base = resolve_base(project, request.base.as_deref())?;
    let options = batch_options(project, request);
    if !request.ignore_earlier {
        if let Some((batch, state)) = find_unfinished_batch(project, &tasks) {
            if request.dry_run {
                return Err(unfinished_error(&batch, state).into());
            }
            let unfinished = UnfinishedBatch { batch, state, retry: request.retry.clone() };
            return Ok(SwarmPlan::Resume(Box::new(unfinished)));
        }
        require_last_batch_landed(project, &tasks)?;
    }
    let view = PlanView::compute(project, loaded, request.plan.sources.clone(), &options)?;
    let auto_merge = request.auto_merge || project.settings.swarm.auto_merge;
    let request = request.clone();
    Ok(SwarmPlan::Start(Box::new(NewBatchPlan { view, base, options, auto_merge, tasks, draft, request })))
}

impl SwarmPlan {
    /// Starts the new batch after requesting the approvals that it needs, or continues the unfinished one if
    /// the reporter's person agrees.
    ///
    /// # Errors
    /// Fails for uncommitted changes, without an approval, if another process has started the same plan since,
    /// and when the batch or its scheduler cannot be created. [`BatchError::PlanBatchUnfinished`] without
    /// agreement to continue; continuing fails as well when a task is unknown.
    pub fn execute(self, project: &Project, reporter: &dyn Reporter) -> Result<SwarmOutcome, Error> {
        let _scope = reporter.enter_cancellation();
        match self {
            SwarmPlan::Resume(unfinished) => unfinished.resume(project, reporter),
            SwarmPlan::Start(plan) => plan.start(project, reporter),
        }
    }
}

impl UnfinishedBatch {
    /// Continues the batch, if the reporter's person agrees.
    fn resume(self, project: &Project, reporter: &dyn Reporter) -> Result<SwarmOutcome, Error> {
        let UnfinishedBatch { batch, state, retry } = self;
        let id = &batch.id;
        if !reporter.can_prompt_user() || !reporter.confirm(Question::ResumeBatch { batch: id, state }) {
            return Err(unfinished_error(&batch, state).into());
        }
        let loaded = Batch::load(&project.store, id)?;
        let mut requests = vec![ControlRequestKind::Resume];
        for name in &retry {
            requests.push(ControlRequestKind::Retry { task: loaded.find_task(name)? });
        }
        let follower = BatchFollower::from_now(project, id)?;
        control_requests::submit_requests(project, id, requests)?;
        Ok(SwarmOutcome { batch, follower: Some(follower) })
    }
}

impl NewBatchPlan {
    /// Checks that the batch would start, and changes nothing. At a terminal, approvals are requested only when
    /// the batch starts.
    ///
    /// # Errors
    /// As [`SwarmPlan::execute`] fails before it creates the batch.
    pub fn forecast(&self, project: &Project, reporter: &dyn Reporter) -> Result<(), Error> {
        self.require_clean(project)?;
        if reporter.can_prompt_user() {
            return Ok(());
        }
        let commands =
            plan_commands::collect_plan_commands(project, &self.view.loaded, &self.request.plan.dir)?;
        self.require_approved_commands(project, &commands)?;
        self.require_confirmation(reporter, self.unapproved_draft(project))
    }

    fn require_clean(&self, project: &Project) -> Result<(), Error> {
        if self.request.ignore_dirty { Ok(()) } else { require_clean(&project.repo) }
    }

    fn unapproved_draft(&self, project: &Project) -> Option<&Draft> {
        self.draft.as_ref().filter(|draft| !drafts::is_approved(&project.repo, draft))
    }

    /// Requests the approvals that the batch needs, creates it and starts its scheduler.
    fn start(self, project: &Project, reporter: &dyn Reporter) -> Result<SwarmOutcome, Error> {
        self.require_clean(project)?;
        reporter.progress(Progress::StartingBatch);
        self.require_approvals(project, reporter)?;
        // No batch is recorded whose scheduler could not be started.
        project.git_proq_path()?;
        let batch = self.create_and_start(project)?;
        project.register_repository();
        Ok(SwarmOutcome { batch, follower: None })
    }

    /// Requires all approvals that the batch needs: of the checks of its landings, of the commands in its plan,
    /// and of the run itself. Approves the draft that the plan comes from, if it is not approved yet.
    fn require_approvals(&self, project: &Project, reporter: &dyn Reporter) -> Result<(), Error> {
        let conflict_agent = project.settings.conflict_agent.as_deref();
        request_landing_approval(project, reporter, [self.base.branch.clone()], conflict_agent)?;
        let dir = &self.request.plan.dir;
        let commands = || plan_commands::collect_plan_commands(project, &self.view.loaded, dir);
        request_approval(project, reporter, &commands()?)?;
        self.require_approved_commands(project, &commands()?)?;
        let draft = self.unapproved_draft(project);
        self.require_confirmation(reporter, draft)?;
        if let Some(draft) = draft {
            refuse_in_lane(self.request.calling_lane.as_deref())?;
            drop(drafts::approve(project, draft)?);
            if self.request.is_approved {
                reporter.progress(Progress::DraftApproved { name: &draft.record.name });
            }
        }
        Ok(())
    }

    /// Requires the person's agreement to run the plan. A plan drafted by an agent is refused if there is no
    /// person and it was not approved in advance.
    fn require_confirmation(&self, reporter: &dyn Reporter, draft: Option<&Draft>) -> Result<(), Error> {
        match (reporter.can_prompt_user(), draft) {
            _ if self.request.is_approved => Ok(()),
            (false, Some(draft)) => {
                let name = &draft.record.name;
                Err(DraftError::ApprovalRequired {
                    question: format!("the plan '{name}', which an agent made, may be run"),
                    approve_command: format!("git proq plan --approve {name}"),
                }
                .into())
            }
            (false, None) => Ok(()),
            (true, _) if reporter.confirm(Question::RunPlan) => Ok(()),
            (true, _) => Err(Refusal::Declined.into()),
        }
    }

    /// Refuses unapproved commands of the repository, as every landing would. That includes the commands of
    /// the plan if the plan is part of a repository.
    fn require_approved_commands(
        &self,
        project: &Project,
        plan_commands: &[ShellCommand],
    ) -> Result<(), Error> {
        let unapproved = |commands: &[ShellCommand]| -> (Option<PathBuf>, Vec<String>) {
            let pending = commands.iter().filter(|command| !command.approved);
            (
                pending.clone().next().and_then(|command| command.source_file.clone()),
                pending.map(|command| command.line.clone()).collect(),
            )
        };
        if let (Some(path), lines) = unapproved(plan_commands) {
            let commands = lines.iter().map(|line| terminal_text::escape_line(line)).collect();
            let approve_args = terminal_text::escape_line(self.request.plan.approve_args().trim_start());
            return Err(BatchError::UnapprovedCommands { path, commands, approve_args }.into());
        }
        let approvals = Approvals::load(&project.repo, &project.store)?;
        let checks = project.landing_checks(&self.base.branch)?;
        let mut landing_commands = approvals.commands_for_verify(&checks.layers, &checks.commands);
        landing_commands.extend(approvals.check_set_up_commands(&checks.layers, &checks.set_up));
        if let (Some(path), commands) = unapproved(&landing_commands) {
            let base = self.base.branch.clone();
            return Err(merge::Error::UnapprovedChecks { path, commands, base }.into());
        }
        commands::require_set_up_approved(project, commands::SetUpLevel::Full)?;
        if let Some(agent) = &project.settings.conflict_agent {
            resolve_agent::require_agent_approved(project, agent)?;
        }
        Ok(())
    }

    /// Creates the batch and starts its scheduler.
    fn create_and_start(self, project: &Project) -> Result<BatchRecord, Error> {
        let NewBatchPlan { view, base, options, auto_merge, tasks, request, .. } = self;
        // If two processes start the same plan at once, the second one finds the other's batch here.
        let ledger_lock = project.store.locks().acquire(&LockName::Ledger)?;
        if !request.ignore_earlier
            && let Some((batch, state)) = find_unfinished_batch(project, &tasks)
        {
            return Err(unfinished_error(&batch, state).into());
        }
        let plan = &view.loaded.plan;
        let new_batch = NewBatch {
            summary: terminal_text::escape_line(&plan.summary),
            base: base.branch,
            start: base.start,
            auto_merge,
            sources: &request.plan.sources,
            format: view.loaded.format.name(),
            milestone: request.plan.milestone.as_deref(),
            criteria: plan.criteria.clone(),
            strict: request.strict || project.settings.swarm.strict,
            overlaps: view.sharing.shared_lanes(),
            phases: plan_tasks::scheduler_phases(plan),
            options,
            tasks,
            plan_toml: write::plan_to_toml(plan),
            progress_file: request.progress_file.as_ref().map(|file| request.plan.dir.join(file)),
        };
        let (batch, lock) = create::create_batch(project, new_batch)?;
        drop(ledger_lock);
        scheduler_process::start_scheduler(project, &batch.id, lock)?;
        Ok(batch)
    }
}

/// Returns the tasks of the batch, after a check that all agents can be started.
fn checked_tasks(
    project: &Project,
    request: &SwarmRequest,
    loaded: &LoadedPlan,
) -> Result<Vec<BatchTask>, Error> {
    let settings = &project.settings.swarm;
    let top = project.repo.current_worktree().unwrap_or(project.repo.command_dir());
    let top = std::fs::canonicalize(top).unwrap_or_else(|_| top.to_owned());
    // A draft is given by its name and lies in the folder of drafts.
    let drafts = project.store.layout().plan_drafts();
    let defaults = TaskDefaults {
        agent: request.agent.as_deref().or(settings.agent.as_deref()),
        model: request.model.as_deref(),
        plan_dir: if loaded.format == PlanFormat::Draft { &drafts } else { &request.plan.dir },
        worktree_top: &top,
        ledger: &Ledger::read(&project.store)?,
    };
    let plan_name = request.plan.display_name();
    let mut tasks = plan_tasks::build_batch_tasks(loaded, &defaults)?;
    for name in &request.retry {
        let matches_name = |task: &&mut BatchTask| {
            task.name.eq_ignore_ascii_case(name) || task.id.eq_ignore_ascii_case(name)
        };
        let no_such_task = || BatchError::UnknownPlanTask { name: name.clone(), plan: plan_name.clone() };
        tasks.iter_mut().find(matches_name).ok_or_else(no_such_task)?.failures = 0;
    }
    if tasks.iter().all(|task| task.done) {
        return Err(BatchError::AllDone { plan: plan_name }.into());
    }
    let open_tasks = tasks.iter().filter(|task| !task.done);
    let agent_commands: Vec<AgentCommand> =
        open_tasks.map(|task| build_agent_command(project, task)).collect::<Result<_, _>>()?;
    refuse_or_warn_before_start(project, request.calling_lane.as_deref(), &agent_commands)?;
    let needs_review = |criterion: &&String| plan_commands::criterion_command(criterion).is_none();
    if let (Some(agent), Some(_)) = (&settings.verify_agent, loaded.plan.criteria.iter().find(needs_review)) {
        start_supervisor::require_installed(&project.layers, agent, project.repo.command_dir())?;
    }
    Ok(tasks)
}

/// Builds the command of a task's agent. Fails if the agent cannot be started as requested.
fn build_agent_command(project: &Project, task: &BatchTask) -> Result<AgentCommand, Error> {
    let run_options = RunOptions { model: task.model.clone(), ..RunOptions::default() };
    let name = task.agent.as_deref().unwrap_or_default();
    let agent_command =
        AgentCommand::from_profile(project, name, &task.prompt, project.repo.command_dir(), &run_options)?;
    if let Some(folder_task) = task_folders::read_task_folder(&project.settings, task, None)? {
        folder_task.check_reviewer(project, &agent_command)?;
    }
    Ok(agent_command)
}

/// Resolves the branch that the batch is for.
fn resolve_base(project: &Project, name: Option<&str>) -> Result<Base, Error> {
    base::resolve(project, name, None).map_err(|e| match e {
        lane::Error::NeedsOnto { reason } => BatchError::UnknownBase { reason }.into(),
        e => e.into(),
    })
}

/// Returns the options of the batch, from the request or else the settings.
fn batch_options(project: &Project, request: &SwarmRequest) -> BatchOptions {
    let settings = &project.settings.swarm;
    BatchOptions {
        mode: request.mode.unwrap_or_else(|| LandingMode::from_setting(&settings.mode)),
        lane_assignment: request
            .lane_assignment
            .unwrap_or_else(|| LaneAssignment::from_setting(&settings.strategy)),
        max_parallel: request.max_parallel.unwrap_or(settings.max_parallel).max(1),
        max_attempts: settings.max_attempts.max(1),
        on_failure: request
            .on_task_failure
            .unwrap_or_else(|| TaskFailurePolicy::from_setting(&settings.on_task_failure)),
        on_merge_failure: request
            .on_landing_failure
            .unwrap_or_else(|| LandingFailurePolicy::from_setting(&settings.on_merge_failure)),
        resolve_conflicts: true,
        budget: request.budget.or(settings.budget),
    }
}

/// Refuses uncommitted changes of tracked files, because no lane would have them.
fn require_clean(repo: &Repo) -> Result<(), Error> {
    let Some(worktree) = repo.current_worktree().or(repo.main_worktree()) else { return Ok(()) };
    let dirty = status_query::status(repo, worktree, false)?;
    let paths: Vec<RepoPath> = dirty.tracked().map(|entry| entry.path.clone()).collect();
    match paths.is_empty() {
        true => Ok(()),
        false => Err(BatchError::UncommittedChanges { files: list_paths(&paths) }.into()),
    }
}
