//! Validated options of a new batch, checked before anything is created.

use std::path::PathBuf;

use proq_base::config::settings::SwarmSettings;
use proq_base::money::NanoDollars;
use proq_base::terminal_text;
use proq_git as git;
use proq_git::Repo;
use proq_git::base::error;
use proq_git::status::status_query;
use proq_lib::agent::command::agent_command::{AgentCommand, RunOptions};
use proq_lib::event::approval::{Approvals, ShellCommand};
use proq_lib::lane::Project;
use proq_lib::lane::inspection::base::Base;
use proq_lib::lane::inspection::{base, evidence};
use proq_lib::lane::worktree::set_up::commands;
use proq_lib::merge::resolution::resolve_agent;
use proq_lib::swarm::batch::create::NewBatch;
use proq_lib::swarm::batch::error::BatchError;
use proq_lib::swarm::batch::ledger::Ledger;
use proq_lib::swarm::batch::plan_tasks::TaskDefaults;
use proq_lib::swarm::batch::record::{Batch, BatchRecord};
use proq_lib::swarm::batch::{create, plan_commands, plan_tasks, scheduler, task};
use proq_lib::swarm::landing::batch_landing;
use proq_lib::swarm::run::{scheduler_process, task_folders};
use proq_lib::{lane, merge, swarm};
use proq_plan::plan_format::PlanFormat;
use proq_plan::plan_source::LoadedPlan;
use proq_plan::schedule::action::BatchOutcome;
use proq_plan::schedule::options::{
    BatchOptions, LandingFailurePolicy, LandingMode, LaneAssignment, TaskFailurePolicy,
};
use proq_plan::toml_plan::write;
use proq_store::locks::lock::LockName;

use super::swarm_args::Swarm;
use crate::cli::arguments::run_args::refuse_or_warn_before_start;
use crate::cli::invocation::context::CommandContext;
use crate::cli::invocation::failure::Failure;
use crate::cli::invocation::usage_error::UsageError;

/// Everything that a new batch needs except the plan.
pub(crate) struct BatchRequest {
    pub(crate) base: Base,
    pub(crate) options: BatchOptions,
    tasks: Vec<task::BatchTask>,
    auto_merge: bool,
    /// Folder that the command was started in, for relative paths.
    start_dir: PathBuf,
}

impl BatchRequest {
    /// Builds the request from the command line, the settings and the plan. Fails if a task's agent cannot be
    /// started.
    pub(crate) fn from_args(
        context: &CommandContext,
        project: &Project,
        args: &Swarm,
        loaded_plan: &LoadedPlan,
    ) -> Result<BatchRequest, Failure> {
        let settings = &project.settings;
        let top = project.repo.current_worktree().unwrap_or(project.repo.command_dir());
        let top = std::fs::canonicalize(top).unwrap_or_else(|_| top.to_owned());
        // A draft is given by its name and lies in the folder of drafts.
        let drafts = project.store.layout().plan_drafts();
        let defaults = TaskDefaults {
            agent: args.agent.as_deref().or(settings.swarm.agent.as_deref()),
            model: args.model.as_deref(),
            plan_dir: if loaded_plan.format == PlanFormat::Draft { &drafts } else { &context.dir },
            worktree_top: &top,
            ledger: &Ledger::read(&project.store)?,
        };
        let plan_name = terminal_text::escape_line(&args.source.source_names().join(" "));
        let mut tasks = plan_tasks::build_batch_tasks(loaded_plan, &defaults)?;
        for name in &args.retry {
            let matches_name = |task: &&mut task::BatchTask| {
                task.name.eq_ignore_ascii_case(name) || task.id.eq_ignore_ascii_case(name)
            };
            let no_such_task = || BatchError::UnknownPlanTask { name: name.clone(), plan: plan_name.clone() };
            tasks
                .iter_mut()
                .find(matches_name)
                .ok_or_else(no_such_task)
                .map_err(swarm::Error::from)?
                .failures = 0;
        }
        if tasks.iter().all(|task| task.done) {
            return Err(swarm::Error::from(BatchError::AllDone { plan: plan_name }).into());
        }
        let mut agent_commands = Vec::new();
        for task in tasks.iter().filter(|task| !task.done) {
            agent_commands.push(build_agent_command(project, task)?);
        }
        refuse_or_warn_before_start(context, project, &agent_commands)?;
        let needs_review = |criterion: &&String| plan_commands::criterion_command(criterion).is_none();
        if let (Some(agent), Some(_)) =
            (&settings.swarm.verify_agent, loaded_plan.plan.criteria.iter().find(needs_review))
        {
            proq_lib::agent::launch::start_supervisor::require_installed(
                &project.layers,
                agent,
                project.repo.command_dir(),
            )?;
        }
        Ok(BatchRequest {
            base: resolve_base(project, args)?,
            options: batch_options(&project.settings.swarm, args)?,
            tasks,
            auto_merge: args.auto_merge || settings.swarm.auto_merge,
            start_dir: context.dir.clone(),
        })
    }

    /// Returns the latest unfinished batch of the same plan, and a word for its state.
    pub(crate) fn find_unfinished_batch(&self, project: &Project) -> Option<(BatchRecord, String)> {
        self.batches_of_plan(project).find_map(|batch| {
            let state = batch.fold_state(&batch.read_log_lines(&project.store).ok()?);
            let state_word = match state.final_outcome() {
                Some(BatchOutcome::Complete | BatchOutcome::Partial) => return None,
                Some(BatchOutcome::Aborted) => "aborted",
                Some(BatchOutcome::Stopped) => "stopped",
                // The log shows the batch as running, but no scheduler process works on it.
                None if state.status_word() != "paused"
                    && !scheduler::is_running(&project.store, batch.id()).ok()? =>
                {
                    "interrupted"
                }
                None => state.status_word(),
            };
            Some((batch.record, state_word.to_owned()))
        })
    }

    /// Returns the batches of this plan, the latest first. Another milestone of the same roadmap is another
    /// plan.
    fn batches_of_plan<'a>(&'a self, project: &'a Project) -> impl Iterator<Item = Batch> + 'a {
        let has_same_files =
            |batch: &BatchRecord| self.tasks.iter().any(|task| batch.files.contains(&task.file));
        let milestone = |tasks: &[task::BatchTask]| tasks.first().map(|task| task.milestone.clone());
        let candidates = create::list_batches(project, false).into_iter().rev().filter(has_same_files);
        let loaded_batches = candidates.filter_map(|batch| Batch::load(&project.store, &batch.id).ok());
        loaded_batches.filter(move |batch| milestone(&batch.tasks) == milestone(&self.tasks))
    }

    /// Refuses a plan whose last batch is done and has not landed: all of it would be done, and paid for,
    /// again.
    pub(crate) fn require_last_batch_landed(&self, project: &Project) -> Result<(), Failure> {
        let Some(Batch { record: last_batch, .. }) = self.batches_of_plan(project).next() else {
            return Ok(());
        };
        let tip = if last_batch.auto_merge { None } else { project.repo.branch_tip(&last_batch.branch)? };
        let (Some(tip), Some(base)) = (tip, project.repo.branch_tip(&last_batch.base)?) else {
            return Ok(());
        };
        if tip == last_batch.start || evidence::is_contained(project, tip, base)? {
            return Ok(());
        }
        let help = batch_landing::landing_hint(project, &last_batch, "land it");
        Err(swarm::Error::from(BatchError::PreviousBatchUnlanded {
            hint: help,
            id: last_batch.id,
            base: last_batch.base,
        })
        .into())
    }

    /// Refuses uncommitted changes of tracked files, because no lane would have them.
    pub(crate) fn require_clean(&self, repo: &Repo, ignore_dirty: bool) -> Result<(), Failure> {
        let worktree = repo.current_worktree().or(repo.main_worktree());
        let (Some(worktree), false) = (worktree, ignore_dirty) else { return Ok(()) };
        let dirty = status_query::status(repo, worktree, false)?;
        let paths: Vec<git::RepoPath> = dirty.tracked().map(|entry| entry.path.clone()).collect();
        if paths.is_empty() {
            return Ok(());
        }
        Err(swarm::Error::from(BatchError::UncommittedChanges { files: error::list_paths(&paths) }).into())
    }

    /// Refuses unapproved commands of the repository, as every landing would. That includes the commands of
    /// the plan if the plan is part of a repository.
    pub(crate) fn require_approved(
        &self,
        project: &Project,
        args: &Swarm,
        plan_commands: &[ShellCommand],
    ) -> Result<(), Failure> {
        let unapproved: Vec<&ShellCommand> =
            plan_commands.iter().filter(|command| !command.approved).collect();
        if let Some(path) = unapproved.first().and_then(|command| command.source_file.clone()) {
            let commands =
                unapproved.iter().map(|command| terminal_text::escape_line(&command.line)).collect();
            let plan = terminal_text::escape_line(&args.source.approve_args());
            return Err(swarm::Error::from(BatchError::UnapprovedCommands {
                path,
                commands,
                approve_args: plan,
            })
            .into());
        }
        let approvals = Approvals::load(&project.repo, &project.store)?;
        let checks = project.landing_checks(&self.base.branch)?;
        let commands = approvals.commands_for_verify(&checks.layers, &checks.commands);
        let unapproved: Vec<_> = commands.into_iter().filter(|command| !command.approved).collect();
        if let Some(path) = unapproved.first().and_then(|command| command.source_file.clone()) {
            let commands = unapproved.into_iter().map(|command| command.line).collect();
            let base = self.base.branch.clone();
            return Err(merge::Error::UnapprovedChecks { path, commands, base }.into());
        }
        commands::require_set_up_approved(project, commands::SetUpLevel::Full)?;
        if let Some(agent) = &project.settings.conflict_agent {
            resolve_agent::require_agent_approved(project, agent)?;
        }
        Ok(())
    }

    /// Describes in one line when and where the tasks land.
    pub(crate) fn describe_landing(&self) -> String {
        let Base { branch, start } = &self.base;
        let landing_text = match self.options.mode {
            LandingMode::Continuous => "each task lands as it is done",
            LandingMode::Waves => "each wave lands together",
            LandingMode::Phases => "each phase lands together",
            LandingMode::OneLane => "all of it is done in one lane and lands together",
        };
        let target_text =
            if self.auto_merge { format!("on {branch} itself") } else { "on a branch of its own".to_owned() };
        format!("From {branch} ({}): {landing_text}, {target_text}.", start.short())
    }

    /// Creates the batch and starts its scheduler. `overlaps` are groups of tasks that change the same files.
    ///
    /// # Errors
    /// Fails if another batch of the same plan is unfinished, unless `--new` is given.
    pub(crate) fn create_and_start(
        self,
        project: &Project,
        args: &Swarm,
        loaded_plan: &LoadedPlan,
        overlaps: Vec<Vec<usize>>,
    ) -> Result<BatchRecord, Failure> {
        // If two processes start the same plan at once, the second one finds the other's batch here.
        let ledger_lock = project.store.locks().acquire(&LockName::Ledger)?;
        if let Some((BatchRecord { id, .. }, state)) =
            self.find_unfinished_batch(project).filter(|_| !args.new)
        {
            return Err(swarm::Error::from(BatchError::PlanBatchUnfinished { id, state }).into());
        }
        let plan = &loaded_plan.plan;
        let progress_file = args.progress_file.as_ref().map(|file| self.start_dir.join(file));
        let new_batch = NewBatch {
            summary: terminal_text::escape_line(&plan.summary),
            base: self.base.branch,
            start: self.base.start,
            auto_merge: self.auto_merge,
            sources: args.source.source_names(),
            format: loaded_plan.format.name(),
            milestone: args.source.milestone(),
            criteria: plan.criteria.clone(),
            strict: args.strict || project.settings.swarm.strict,
            overlaps,
            phases: plan_tasks::scheduler_phases(plan),
            options: self.options,
            tasks: self.tasks,
            plan_toml: write::plan_to_toml(plan),
            progress_file,
        };
        let (batch, lock) = create::create_batch(project, new_batch)?;
        drop(ledger_lock);
        scheduler_process::start_scheduler(project, &batch.id, lock)?;
        Ok(batch)
    }
}

/// Resolves the branch that the batch is for.
fn resolve_base(project: &Project, args: &Swarm) -> Result<Base, Failure> {
    base::resolve(project, args.base.as_deref(), None).map_err(|e| match e {
        lane::Error::NeedsOnto { reason: why } => {
            swarm::Error::from(BatchError::UnknownBase { reason: why }).into()
        }
        e => e.into(),
    })
}

/// Builds the command of a task's agent. Fails if the agent cannot be started as requested.
fn build_agent_command(project: &Project, task: &task::BatchTask) -> Result<AgentCommand, Failure> {
    let run_options = RunOptions { model: task.model.clone(), ..RunOptions::default() };
    let name = task.agent.as_deref().unwrap_or_default();
    let agent_command =
        AgentCommand::from_profile(project, name, &task.prompt, project.repo.command_dir(), &run_options)?;
    if let Some(folder_task) = task_folders::read_task_folder(&project.settings, task, None)? {
        folder_task.check_reviewer(project, &agent_command)?;
    }
    Ok(agent_command)
}

/// Returns the options of the batch, from the flags or else the settings.
fn batch_options(settings: &SwarmSettings, args: &Swarm) -> Result<BatchOptions, Failure> {
    let mode = match (args.waves, args.phases, args.one_lane) {
        (true, _, _) => "waves",
        (_, true, _) => "phases",
        (_, _, true) => "one-lane",
        _ => settings.mode.as_str(),
    };
    let budget = match &args.budget {
        None => settings.budget,
        Some(text) => {
            let reason = "--budget takes US dollars";
            let example = "git proq swarm plan.toml --budget 12.50";
            Some(
                NanoDollars::parse(text)
                    .filter(|cost| !cost.is_zero())
                    .ok_or(UsageError::MissingArgument { problem: reason, example })?,
            )
        }
    };
    let flag_or_setting =
        |flag: &Option<String>, setting: &str| flag.clone().unwrap_or_else(|| setting.to_owned());
    Ok(BatchOptions {
        mode: LandingMode::from_setting(mode),
        lane_assignment: LaneAssignment::from_setting(&flag_or_setting(&args.strategy, &settings.strategy)),
        max_parallel: args.max_parallel.map_or(settings.max_parallel, usize::from).max(1),
        max_attempts: settings.max_attempts.max(1),
        on_failure: match flag_or_setting(&args.on_task_failure, &settings.on_task_failure).as_str() {
            "stop-wave" => TaskFailurePolicy::StopWave,
            "stop-all" => TaskFailurePolicy::StopAll,
            _ => TaskFailurePolicy::SkipDependents,
        },
        on_merge_failure: match flag_or_setting(&args.on_merge_failure, &settings.on_merge_failure).as_str() {
            "abort" => LandingFailurePolicy::Abort,
            _ => LandingFailurePolicy::Pause,
        },
        resolve_conflicts: true,
        budget,
    })
}
