//! `git proq spawn --folder`: a lane whose task is a folder with steps.

use std::path::Path;

use proq_base::explain::Exit;
use proq_base::lane_name::LaneName;
use proq_lib::agent::command::agent_command;
use proq_lib::agent::command::agent_command::AgentCommand;
use proq_lib::agent::launch::folder_task::FolderTask;
use proq_lib::agent::launch::task_loop_start;
use proq_lib::lane;
use proq_lib::lane::Project;
use proq_lib::lane::creation::create;
use proq_lib::lane::creation::create::{CreatedLane, LanePlan, NewLane};
use proq_lib::lane::inspection::base;
use proq_lib::lane::inspection::base::Base;
use proq_plan::task_folders;
use proq_plan::task_folders::SingleTask;
use proq_plan::task_folders::layout::TaskLayout;

use super::new_lane::{UncommittedWarning, report_or_follow_spawned};
use super::spawn_args::Spawn;
use crate::cli::arguments::lane_args;
use crate::cli::arguments::run_args::refuse_or_warn_before_start;
use crate::cli::invocation::approval_prompt;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::failure::Failure;
use crate::cli::invocation::usage_error::UsageError;
use crate::cli::runs::lane_output;

/// Maximum number of numbered names that are tried if a lane name is taken.
const MAX_NUMBERED_LANE_NAMES: u32 = 1000;

/// Validated arguments of `git proq spawn --folder`. Nothing is created before they are complete.
struct FolderSpawnRequest {
    single_task: SingleTask,
    folder_task: FolderTask,
    agent_command: AgentCommand,
    checks: Vec<String>,
    scope: Vec<String>,
}

pub(crate) fn run(context: &CommandContext, args: &Spawn, source: &str) -> CommandResult {
    let project = context.project_for_write()?;
    let request = FolderSpawnRequest::from_args(context, &project, args, source)?;
    let base = base::resolve(&project, args.base.as_deref(), args.onto.as_deref())?;
    let current_worktree =
        project.repo.current_worktree().or(project.repo.main_worktree()).map(Path::to_owned);
    let new_lane = request.new_lane(args, base, current_worktree.as_deref())?;
    let plan = plan_folder_lane(&project, new_lane, &request.single_task)?;
    lane_args::warn_of_overlapping_lanes(context, &project, &plan);
    refuse_or_warn_before_start(context, &project, [&request.agent_command])?;
    let uncommitted = UncommittedWarning::from_args(&project, args, current_worktree.as_deref());
    if args.dry_run {
        uncommitted.warn(context, None);
        lane_output::print_plan(context, &plan, Some(&request.agent_command), &[]);
        if !context.ui.json {
            context
                .ui
                .print_line(format!("  task      {}", request.folder_task.describe(&request.agent_command)));
        }
        return Ok(Exit::Success);
    }
    approval_prompt::prompt_set_up_approval(context, &project, args.set_up_level())?;
    // No lane is created whose agent could not be started.
    project.git_proq_path()?;
    let CreatedLane { lane, run_lock: lock, unchanged_checkout: unchanged } =
        create::create_lane(&project, &plan)?;
    project.register_repository();
    let any_lane = lane.clone().into_any();
    let launch_result = task_loop_start::launch_task_loop(
        &project,
        &any_lane,
        lock,
        &request.agent_command,
        &request.folder_task,
    );
    let wait = args.wait && launch_result.as_ref().is_ok_and(|started| started.state().is_busy());
    let warn_uncommitted = || uncommitted.warn(context, unchanged.as_deref());
    let start_result = launch_result.map(Some).map_err(Failure::from);
    report_or_follow_spawned(
        context,
        &project,
        (lane, Some(&request.agent_command)),
        start_result,
        wait,
        warn_uncommitted,
    )
}

impl FolderSpawnRequest {
    fn from_args(
        context: &CommandContext,
        project: &Project,
        args: &Spawn,
        source: &str,
    ) -> Result<FolderSpawnRequest, Failure> {
        let agent = args.agent.as_deref().ok_or(UsageError::MissingArgument {
            problem: "nothing says what to start",
            example: "git proq spawn claude --folder tasks/pay/PAY-3-refunds",
        })?;
        let single_task = load_task(context, project, source)?;
        let run_options =
            agent_command::RunOptions { agent_command: args.command.clone(), ..args.run_args.run_options() };
        let agent_command =
            AgentCommand::from_profile(project, agent, &single_task.task.title, &context.dir, &run_options)?;
        let review_level = single_task.task.review_level.unwrap_or_default();
        let reviewer = args.reviewer.clone();
        let folder_task = FolderTask::load(
            &project.settings,
            &single_task.path,
            &single_task.relative_path,
            &single_task.task.title,
            review_level,
            reviewer,
        )?;
        folder_task.check_reviewer(project, &agent_command)?;
        let scope: Vec<String> = args.scope.iter().chain(&single_task.task.scope).cloned().collect();
        let checks: Vec<String> = args.check.iter().chain(&single_task.task.checks).cloned().collect();
        Ok(FolderSpawnRequest {
            checks: lane_args::validate_checks(&checks)?,
            scope: lane_args::validate_scope(&scope)?,
            single_task,
            folder_task,
            agent_command,
        })
    }

    /// Returns the lane to make, on `base`. With `--carry` it begins with the uncommitted changes of
    /// `current_worktree`.
    fn new_lane(
        &self,
        args: &Spawn,
        base: Base,
        current_worktree: Option<&Path>,
    ) -> Result<NewLane<'_>, Failure> {
        let name = args.name.as_deref().map(LaneName::parse).transpose()?;
        Ok(NewLane {
            name,
            prompt: Some(&self.single_task.task.prompt),
            name_hint: None,
            agent: Some(self.agent_command.agent.clone()),
            base,
            carry_from: current_worktree.filter(|_| args.carry).map(Path::to_owned),
            checks: self.checks.clone(),
            sparse: lane_args::validate_sparse(args.sparse, &self.scope)?,
            scope: self.scope.clone(),
            auto_merge: args.auto_merge,
            group: None,
            batch: None,
            set_up: args.set_up_level(),
        })
    }
}

/// Loads the task of the folder. Warns about faults in its files, a task marked as done, and unmet needs.
fn load_task(context: &CommandContext, project: &Project, source: &str) -> Result<SingleTask, Failure> {
    let repo = &project.repo;
    let top = repo.current_worktree().unwrap_or(repo.command_dir());
    let top = std::fs::canonicalize(top).unwrap_or_else(|_| top.to_owned());
    let settings = &project.settings;
    let layout =
        TaskLayout { top: &top, tasks_dir: &settings.swarm.tasks_folder, areas: &settings.swarm.areas };
    let single_task = task_folders::read_single_task(&context.dir, source, &layout)?;
    context.ui.warn_each(&single_task.notes);
    if single_task.task.done {
        context.ui.warn(format!("task {} is marked as done", single_task.task.full_name()));
    }
    if !single_task.open_needs.is_empty() {
        context.ui.warn(format!(
            "task {} needs {}, which is not done",
            single_task.task.full_name(),
            single_task.open_needs.join(", ")
        ));
    }
    Ok(single_task)
}

/// Plans the lane. Without a given name, the lane is named after the folder, with a number if that name is
/// taken.
fn plan_folder_lane<'a>(
    project: &Project,
    new_lane: NewLane<'a>,
    single_task: &SingleTask,
) -> Result<LanePlan<'a>, lane::Error> {
    if new_lane.name.is_some() {
        return create::plan_lane(project, new_lane);
    }
    let folder_name = single_task.relative_path.rsplit('/').next().unwrap_or(&single_task.relative_path);
    let preferred = LaneName::from_prompt(&folder_name.replace('_', "-"));
    let mut number = 1;
    loop {
        let name = Some(preferred.numbered(number));
        match create::plan_lane(project, NewLane { name, ..new_lane.clone() }) {
            Err(e) if e.is_taken() && number < MAX_NUMBERED_LANE_NAMES => number += 1,
            plan => return plan,
        }
    }
}
