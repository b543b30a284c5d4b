//! The `git proq redispatch` command: runs a lane's task again from the current base.

use std::path::Path;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use proq_base::explain::{Exit, Explain};
use proq_base::lane_name::LaneName;
use proq_git::Repo;
use proq_lib::agent::command::agent_command::{AgentCommand, RunOptions};
use proq_lib::agent::command::conversation;
use proq_lib::agent::launch::{folder_task, start_supervisor, task_loop_start};
use proq_lib::lane::Project;
use proq_lib::lane::creation::create;
use proq_lib::lane::creation::create::NewLane;
use proq_lib::lane::inspection::base;
use proq_lib::lane::inspection::base::Base;
use proq_lib::lane::messages::attached_files;
use proq_lib::lane::removal::remove_lane::{RemovalReason, RemovedLane};
use proq_lib::lane::worktree::checkout_mode;
use proq_lib::lane::worktree::set_up::commands::SetUpLevel;
use proq_lib::operation::run_operation::operate;
use proq_lib::preview::leave;
use proq_lib::session::{in_place, read_only};
use proq_store::paths::path_form;
use proq_store::records::lane::{AnyLane, LanePurpose, LaneRecord};
use serde::Serialize;

use super::lane_removal;
use crate::cli::arguments::candidates::{any_lane_names, installed_agent_names};
use crate::cli::arguments::run_args::{RunArgs, refuse_or_warn_before_start};
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::failure::Failure;
use crate::cli::invocation::{approval_prompt, caller};

/// Start a lane's task afresh from today's base
///
/// For work that has become too old to resolve, or went wrong. The lane is thrown away, with its commits and uncommitted
/// files saved as by `discard --force`, and made anew: the same name, task, checks and scope, cut from where its base is
/// now. Its agent, or AGENT, is started in it; where the task is a folder with steps, at the first. `git proq undo` brings the old one back. A question is asked anew; what was
/// answered before stays in the lane's folder of records.
///
/// Examples:
///     git proq redispatch payments
///     git proq redispatch payments --agent codex
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Redispatch {
    /// The lane
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(any_lane_names))]
    pub(crate) lane: String,
    /// Another agent than the one it had
    #[arg(long, value_name = "AGENT", add = ArgValueCompleter::new(installed_agent_names))]
    pub(crate) agent: Option<String>,
    /// What its run is to be like
    #[command(flatten)]
    pub(crate) run_args: RunArgs,
    /// Start it in a window of tmux, on its own screen; `git proq attach` goes there
    #[arg(long, conflicts_with_all = ["max_turns", "stall", "budget"])]
    pub(crate) tmux: bool,
    /// Run none of the lane.setup commands in the new one
    #[arg(long)]
    pub(crate) no_setup: bool,
    /// Say what would be done, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// JSON output of the command.
#[derive(Serialize)]
struct RedispatchOutput<'a> {
    lane: &'a LaneName,
    base: &'a str,
    /// Id of the commit that the new lane starts from.
    #[serde(rename = "start")]
    start_commit: String,
    agent: &'a str,
    #[serde(serialize_with = "path_form::serialize")]
    path: &'a Path,
    /// Name of the removed lane in the history: `name@N`.
    #[serde(rename = "history", skip_serializing_if = "Option::is_none")]
    history_name: Option<&'a str>,
    /// Ref that keeps the unlanded commits of the removed lane.
    #[serde(rename = "saved", skip_serializing_if = "Option::is_none")]
    saved_ref: Option<&'a str>,
    dry_run: bool,
}

/// Reason why a lane cannot be started afresh.
#[derive(Debug, thiserror::Error, Explain)]
pub enum RedispatchError {
    /// The lane has no task for an agent.
    #[error("lane '{lane}' has no task to start afresh; nothing was changed")]
    #[hint("make a lane with one: git proq spawn AGENT \"what to do\"")]
    NoTask {
        /// Name of the lane.
        lane: LaneName,
    },
    /// The lane had no agent with a known name, and none was given.
    #[error("lane '{lane}' was not made by an agent that can be started again; nothing was changed")]
    #[hint("name one: git proq redispatch {lane} --agent claude")]
    NoAgent {
        /// Name of the lane.
        lane: LaneName,
    },
}

pub(crate) fn run(context: &CommandContext, args: &Redispatch) -> CommandResult {
    let project = context.project_for_write()?;
    caller::refuse_agent_for_other_lanes(std::slice::from_ref(&args.lane), args.dry_run)?;
    let lane = match project.find_any_lane(&args.lane)?.into_owned_lane() {
        Ok(lane) => lane,
        Err(purpose) => return restart_guest_lane(context, &project, args, purpose),
    };
    let plan = RestartPlan::from_args(context, &project, &lane, args)?;
    refuse_or_warn_before_start(context, &project, [&plan.command])?;
    if args.dry_run {
        print_result(context, &plan, &lane, None);
        return Ok(Exit::Success);
    }
    let folder_task = folder_task::reload_folder_task(&project, &lane.clone().into_any())?;
    let set_up_level = if args.no_setup { SetUpLevel::NoCommands } else { SetUpLevel::Full };
    approval_prompt::prompt_set_up_approval(context, &project, set_up_level)?;
    project.run_pre_remove_hooks(&lane.name)?;
    project.run_pre_spawn_hooks(&lane.name, &plan.base.branch)?;
    let (lane, lock) = project.lock_idle_lane(&lane.name)?;
    let new_lane = plan.replacement_lane(&project.repo, &lane, set_up_level);
    let (removed, created) = operate(&project, "redispatch", |op| {
        if let Some(left_preview) = leave::leave_preview_of(op, &lane.name)? {
            context.ui.status(format!(
                "left the preview of '{}'; the main checkout is on {} again",
                left_preview.lane, left_preview.head
            ));
            left_preview.warn_conflict(&project);
        }
        // The record is read again under the lock: leaving the preview may have added commits to the lane.
        let current = project.lane(&lane.name)?;
        Ok::<_, Failure>(create::recreate_lane(op, &current, new_lane)?)
    })?;
    attached_files::attach(
        &project.store,
        &created.name,
        &attached_files::past_attachments(&project.store, &removed.history_name)?,
    )?;
    let any = created.clone().into_any();
    match &folder_task {
        Some(packet) => task_loop_start::launch_task_loop(&project, &any, lock, &plan.command, packet)?,
        None => start_supervisor::launch(&project, &any, lock, &plan.command)?,
    };
    print_result(context, &plan, &created, Some(&removed));
    if !context.ui.json {
        lane_removal::print_restore_commands(context, &project.settings, &removed, RemovalReason::Discard);
        let follow_command =
            if args.tmux { "go there: git proq attach" } else { "follow it: git proq logs -f" };
        context.ui.hint(format!("{follow_command} {}   bring the old one back: git proq undo", created.name));
    }
    Ok(Exit::Success)
}

/// Task, base and agent command for the new lane, checked before any change.
struct RestartPlan {
    task: String,
    base: Base,
    command: AgentCommand,
}

impl RestartPlan {
    fn from_args(
        context: &CommandContext,
        project: &Project,
        lane: &LaneRecord,
        args: &Redispatch,
    ) -> Result<RestartPlan, Failure> {
        let (task, command) = task_and_command(context, project, &lane.clone().into_any(), args)?;
        let base = base::resolve(project, Some(&lane.base), None)?;
        Ok(RestartPlan { task, base, command })
    }

    /// Returns the lane to make in place of `lane`: with the same checks, scope, group and batch.
    fn replacement_lane(&self, repo: &Repo, lane: &LaneRecord, set_up_level: SetUpLevel) -> NewLane<'_> {
        NewLane {
            name: None,
            prompt: Some(&self.task),
            name_hint: None,
            agent: Some(self.command.agent.clone()),
            base: self.base.clone(),
            carry_from: None,
            checks: lane.checks.clone(),
            scope: lane.scope.clone(),
            sparse: checkout_mode::is_sparse_by_scope(repo, lane),
            auto_merge: lane.auto_merge,
            group: lane.group.clone(),
            batch: lane.batch.clone(),
            set_up: set_up_level,
        }
    }
}

/// Returns the lane's task, and the command for its agent or for the given one.
fn task_and_command(
    context: &CommandContext,
    project: &Project,
    lane: &AnyLane,
    args: &Redispatch,
) -> Result<(String, AgentCommand), Failure> {
    let name = || lane.name.clone();
    project.require_idle(lane)?;
    let task = proq_base::regular_file::read_store_text(project.store.layout().task_prompt(&lane.name))
        .unwrap_or_default();
    if task.trim().is_empty() {
        return Err(RedispatchError::NoTask { lane: name() }.into());
    }
    // A user's own command is not recorded in full, so it cannot run again.
    let previous_agent = lane.agent.as_deref().filter(|agent| *agent != "command");
    let agent_name =
        args.agent.as_deref().or(previous_agent).ok_or_else(|| RedispatchError::NoAgent { lane: name() })?;
    let agent_command = if args.agent.is_none() {
        conversation::find_user_agent_command(&project.store, lane)?
    } else {
        Vec::new()
    };
    let options = RunOptions {
        agent_command,
        purpose: lane.purpose(),
        ..args.run_args.run_options_with_window(args.tmux)
    };
    let command = AgentCommand::from_profile(project, agent_name, &task, &context.dir, &options)?;
    Ok((task, command))
}

/// Runs the agent of a guest lane again, on the commit that is checked out now. Nothing has to be saved: each
/// run's answer has its own file.
fn restart_guest_lane(
    context: &CommandContext,
    project: &Project,
    args: &Redispatch,
    purpose: LanePurpose,
) -> CommandResult {
    let lane = project.find_any_lane(&args.lane)?;
    let (_, command) = task_and_command(context, project, &lane, args)?;
    let target = read_only::current_read_target(project, &lane)?;
    let (base, start) = (target.rev_name, target.commit);
    if lane.works_in_place() {
        in_place::require_in_place_possible(project, &lane.name, &base)?;
    }
    if !args.dry_run {
        let (lane, lock) = project.lock_any_idle_lane(&lane.name)?;
        let lane = project.update_lane(&lane.name, |record| {
            (record.base, record.start) = (base.clone(), start);
        })?;
        start_supervisor::launch_with_prompt(project, &lane, lock, &command, None)?;
    }
    if context.ui.json {
        context.ui.print_json(RedispatchOutput {
            lane: &lane.name,
            base: &base,
            start_commit: start.to_string(),
            agent: &command.agent,
            path: &lane.path,
            history_name: None,
            saved_ref: None,
            dry_run: args.dry_run,
        });
        return Ok(Exit::Success);
    }
    let (name, agent) = (&lane.name, &command.agent);
    if lane.works_in_place() {
        let verb = if args.dry_run { "would start" } else { "starts" };
        let short_id = start.short();
        context.ui.print_line(format!(
            "lane '{name}' {verb} {agent} afresh in the main checkout, on {base} ({short_id})"
        ));
        return Ok(Exit::Success);
    }
    let verb = if args.dry_run { "would ask" } else { "asks" };
    context.ui.print_line(format!("lane '{name}' {verb} {agent} anew, of {base} ({})", start.short()));
    if !args.dry_run {
        context.ui.hint(format!(
            "wait for it: git proq wait {name}   read its {purpose} then: git proq show {name}"
        ));
    }
    Ok(Exit::Success)
}

fn print_result(
    context: &CommandContext,
    plan: &RestartPlan,
    lane: &LaneRecord,
    removed: Option<&RemovedLane>,
) {
    let Base { branch, start } = &plan.base;
    let agent = plan.command.agent.as_str();
    if context.ui.json {
        context.ui.print_json(RedispatchOutput {
            lane: &lane.name,
            base: branch,
            start_commit: start.to_string(),
            agent,
            path: &lane.path,
            history_name: removed.map(|r| r.history_name.as_str()),
            saved_ref: removed.and_then(|r| r.saved_ref.as_deref()),
            dry_run: removed.is_none(),
        });
        return;
    }
    let name = &lane.name;
    match removed {
        None => context.ui.print_line(format!(
            "would save and remove lane '{name}', make it anew from {branch} ({}), and start {agent} in it",
            start.short()
        )),
        Some(removed) => context.ui.print_line(format!(
            "lane '{name}' starts afresh from {branch} ({}), with {agent}; the old one is {}",
            start.short(),
            removed.history_name
        )),
    }
}
