//! `git proq spawn`: creates a lane and starts an agent in it.

use std::path::{Path, PathBuf};

use proq_base::explain::Exit;
use proq_lib::agent::command::agent_command::AgentCommand;
use proq_lib::agent::hook_events::stop_gate;
use proq_lib::agent::launch::start_supervisor;
use proq_lib::lane::Project;
use proq_lib::lane::creation::create;
use proq_lib::lane::creation::create::CreatedLane;
use proq_lib::lane::inspection::base;
use proq_lib::lane::messages::attached_files;
use proq_store::locks::lock::LockGuard;
use proq_store::records::lane::{AnyLane, LaneRecord};

use super::attempts::AttemptArgs;
use super::new_lane::{UncommittedWarning, report_or_follow_spawned};
use super::spawn_args::Spawn;
use super::spawn_request::SpawnRequest;
use super::{read_only_run, task_folder};
use crate::cli::arguments::lane_args;
use crate::cli::arguments::run_args::refuse_or_warn_before_start;
use crate::cli::invocation::approval_prompt;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::failure::Failure;
use crate::cli::invocation::usage_error::UsageError;
use crate::cli::runs::lane_output::print_plan;

pub(crate) fn run(context: &CommandContext, args: &Spawn) -> CommandResult {
    if let Some(folder) = &args.folder {
        return task_folder::run(context, args, folder);
    }
    if let Some(purpose) = args.purpose() {
        return read_only_run::run(context, args, purpose);
    }
    if args.isolated {
        return Err(UsageError::IsolatedRefused.into());
    }
    let attempt_set = AttemptArgs::from_args(args)?;
    let args = attempt_set.as_ref().map_or(args, AttemptArgs::first);
    let (checks, scope) = (lane_args::validate_checks(&args.check)?, lane_args::validate_scope(&args.scope)?);
    let project = context.project_for_write()?;
    let mut request = SpawnRequest::from_args(context, &project, args)?;
    let base = base::resolve(&project, args.base.as_deref(), args.onto.as_deref())?;
    if let Some(agent_command) = request.agent_command.take() {
        request.agent_command =
            Some(agent_command.with_checks(stop_gate::merge_checks(&project, &base.branch, &checks)?));
    }
    let current_worktree =
        project.repo.current_worktree().or(project.repo.main_worktree()).map(Path::to_owned);
    let new_lane = request.new_lane(args, base, checks, scope, current_worktree.as_deref())?;
    if let Some(attempt_set) = attempt_set {
        return attempt_set.spawn_all(context, &project, &new_lane, current_worktree.as_deref());
    }
    let plan = create::plan_lane(&project, new_lane)?;
    lane_args::warn_of_overlapping_lanes(context, &project, &plan);
    refuse_or_warn_before_start(context, &project, request.agent_command.as_ref())?;
    let uncommitted = UncommittedWarning::from_args(&project, args, current_worktree.as_deref());
    if args.dry_run {
        uncommitted.warn(context, None);
        print_plan(context, &plan, request.agent_command.as_ref(), &request.attachments);
        return Ok(Exit::Success);
    }
    approval_prompt::prompt_set_up_approval(context, &project, args.set_up_level())?;
    let CreatedLane { lane, run_lock: lock, unchanged_checkout: unchanged } =
        create::create_lane(&project, &plan)?;
    project.register_repository();
    let start_result = request
        .agent_command
        .as_ref()
        .map(|agent_command| start_agent(&project, &lane, lock, agent_command, &request.attachments))
        .transpose();
    let warn_uncommitted = || uncommitted.warn(context, unchanged.as_deref());
    report_or_follow_spawned(
        context,
        &project,
        (lane, request.agent_command.as_ref()),
        start_result,
        args.wait,
        warn_uncommitted,
    )
}

/// Starts the agent of a new lane, after copying the attachments.
fn start_agent(
    project: &Project,
    lane: &LaneRecord,
    lock: LockGuard,
    agent_command: &AgentCommand,
    attachments: &[PathBuf],
) -> Result<AnyLane, Failure> {
    // No attachment is copied for an agent that could not be started.
    project.git_proq_path()?;
    attached_files::attach(&project.store, &lane.name, attachments)?;
    Ok(start_supervisor::launch(project, &lane.clone().into_any(), lock, agent_command)?)
}
