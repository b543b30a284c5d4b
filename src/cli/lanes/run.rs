//! `git proq run`: starts an agent in an existing lane.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use proq_base::explain::Exit;
use proq_base::lane_name::LaneName;
use proq_lib::agent;
use proq_lib::agent::command::agent_command::{AgentCommand, RunOptions};
use proq_lib::agent::command::conversation;
use proq_lib::agent::hook_events::stop_gate;
use proq_lib::agent::launch::task_loop_start::LoopStart;
use proq_lib::agent::launch::{start_supervisor, task_loop_start};
use proq_lib::agent::task_loop::loop_status;
use proq_lib::lane::Project;
use proq_lib::lane::messages::attached_files::MessageFiles;
use proq_store::base::run_number::RunNumber;
use proq_store::records::lane::AnyLane;
use serde::Serialize;

use crate::cli::arguments::candidates::{any_lane_names, installed_agent_names};
use crate::cli::arguments::run_args::{RunArgs, refuse_or_warn_before_start};
use crate::cli::arguments::user_files;
use crate::cli::invocation::caller;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::usage_error::UsageError;
use crate::cli::runs::{follow_run, lane_output, run_end};

/// Start an agent in a lane that is there
///
/// The lane stays as it is, with all that is in it; the agent begins a new conversation. Without PROMPT it is asked for the lane's
/// task; where that is a folder with steps, it goes on with the step at which that was, and AGENT can be left out. `git proq send` goes on in the conversation that there was, `git proq redispatch` begins afresh from today's base.
///
/// Examples:
///     git proq run payments codex "review this lane's commits and fix what is wrong"
///     git proq run payments claude
///     git proq run pay-3-refunds
///     git proq run payments codex "make it look like this" --attach screen.png
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
#[expect(clippy::struct_field_names, reason = "flags are named for the user")]
pub(crate) struct Run {
    /// The lane
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(any_lane_names))]
    pub(crate) lane: String,
    /// The agent: a known one (see `git proq agents`) or any program on PATH
    #[arg(value_name = "AGENT", add = ArgValueCompleter::new(installed_agent_names))]
    pub(crate) agent: Option<String>,
    /// What the agent is asked to do; without it, the lane's task
    #[arg(value_name = "PROMPT", conflicts_with = "file")]
    pub(crate) prompt: Option<String>,
    /// The command that AGENT is started with, where it has none of its own: acp "..." -- CMD
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
    /// Read PROMPT from FILE, or from standard input with '-'
    #[arg(long, short, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    /// Give FILE along with PROMPT; a copy is kept beside the lane's record. May be given again
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) attach: Vec<PathBuf>,
    /// How the run is to be
    #[command(flatten)]
    pub(crate) run_args: RunArgs,
    /// Start it in a window of tmux, on its own screen; `git proq attach` goes there
    #[arg(long, conflicts_with_all = ["max_turns", "stall", "budget"])]
    pub(crate) tmux: bool,
    /// Wait for the agent to end; exit with 4 when it failed
    #[arg(long)]
    pub(crate) wait: bool,
    /// Say what would be started, and start nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Serialize)]
struct RunOutput<'a> {
    lane: &'a LaneName,
    agent: &'a str,
    command: String,
    #[serde(rename = "attempt")]
    run: RunNumber,
    state: String,
    dry_run: bool,
}

pub(crate) fn run(context: &CommandContext, args: &Run) -> CommandResult {
    let prompt = match &args.file {
        None => args.prompt.clone(),
        Some(file) => Some(user_files::read_text_or_stdin(file)?),
    };
    let attachments = user_files::resolve_attachments(context, &args.attach)?;
    if prompt.is_none() && !attachments.is_empty() {
        let example = "git proq run LANE AGENT \"make it look like this\" --attach FILE";
        return Err(
            UsageError::MissingArgument { problem: "nothing says what the files are for", example }.into()
        );
    }
    let project = context.project_for_write()?;
    let lane = project.find_any_lane(&args.lane)?;
    caller::refuse_agent_for_other_lanes(std::slice::from_ref(&lane.name), args.dry_run)?;
    project.require_idle(&lane)?;
    if prompt.is_none()
        && (args.agent.is_none() || project.store.layout().task_loop_record(&lane.name).exists())
    {
        return resume_task_loop(context, args, &project, &lane);
    }
    let lane_task = || {
        proq_base::regular_file::read_store_text(project.store.layout().task_prompt(&lane.name))
            .unwrap_or_default()
    };
    let task_text = prompt.clone().unwrap_or_else(lane_task);
    let run_options = RunOptions {
        agent_command: args.command.clone(),
        purpose: lane.purpose(),
        ..args.run_args.run_options_with_window(args.tmux)
    };
    let agent_command = AgentCommand::from_profile(
        &project,
        args.agent.as_deref().unwrap_or_default(),
        &task_text,
        &context.dir,
        &run_options,
    )
    .map_err(|e| e.into_command_in_lane(&lane.name, &args.command))?
    .with_checks(stop_gate::lane_checks(&project, &lane)?);
    refuse_or_warn_before_start(context, &project, [&agent_command])?;
    let mut current_lane = lane.clone();
    if !args.dry_run {
        let (lane, lock) = project.lock_any_idle_lane(&lane.name)?;
        conversation::refuse_while_resolving(&project, &lane)?;
        let copies = MessageFiles::copy(&project.store, &lane.name, &attachments)?;
        let prompt = prompt.map(|prompt| copies.append_to(&prompt)).transpose()?;
        current_lane =
            start_supervisor::launch_with_prompt(&project, &lane, lock, &agent_command, prompt.as_deref())?;
        copies.retain();
    }
    print_started_or_follow(context, args, &project, (&current_lane, lane.last_run.next()), &agent_command)
}

/// Resumes the task loop of a lane whose task is a folder, at the step it had reached.
fn resume_task_loop(
    context: &CommandContext,
    args: &Run,
    project: &Project,
    lane: &AnyLane,
) -> CommandResult {
    if args.tmux {
        let reason = "the steps of a task folder are not worked at in a window";
        return Err(UsageError::MissingArgument {
            problem: reason,
            example: "git proq run LANE, without --tmux",
        }
        .into());
    }
    let no_task_loop = || match args.agent {
        None if !args.command.is_empty() => agent::Error::command_in_lane_error(&lane.name, &args.command),
        _ => agent::Error::TaskIsNoFolder { lane: lane.name.clone() },
    };
    let loop_status = loop_status::read_loop_status(&project.store.layout().lane(&lane.name), lane)?
        .ok_or_else(no_task_loop)?;
    let user_command = match args.agent {
        Some(_) => args.command.clone(),
        None => conversation::find_user_agent_command(&project.store, lane)?,
    };
    let run_options = args.run_args.run_options();
    let changes_command = args.agent.is_some() || !run_options.has_no_agent_options();
    let agent_name = args.agent.as_ref().or(lane.agent.as_ref()).ok_or_else(no_task_loop)?;
    let agent_command = AgentCommand::from_profile(
        project,
        agent_name,
        &lane.title,
        &context.dir,
        &RunOptions { agent_command: user_command, ..run_options },
    )
    .map_err(|e| e.into_command_in_lane(&lane.name, &args.command))?
    .with_checks(stop_gate::lane_checks(project, lane)?);
    refuse_or_warn_before_start(context, project, [&agent_command])?;
    let mut current_lane = lane.clone();
    if !args.dry_run {
        let (lane, lock) = project.lock_any_idle_lane(&lane.name)?;
        conversation::refuse_while_resolving(project, &lane)?;
        let new_command = Some(&agent_command).filter(|_| changes_command);
        match task_loop_start::resume_task_loop(project, &lane, lock, new_command)? {
            LoopStart::Running(lane) => current_lane = lane,
            LoopStart::Finished(lane) => {
                context.ui.status(run_end::state_line(&lane, lane.state()));
                if context.ui.json {
                    print_started_json(context, (&lane, lane.last_run), &agent_command, false);
                }
                return Ok(Exit::Success);
            }
        }
    } else if !context.ui.json {
        context.ui.print_line(format!(
            "{} of {} boxes of {} are ticked",
            loop_status.boxes_ticked, loop_status.boxes_total, loop_status.folder
        ));
    }
    print_started_or_follow(context, args, project, (&current_lane, lane.last_run.next()), &agent_command)
}

/// Prints what was started or, with `--dry-run`, would be; with `--wait`, follows the run instead.
fn print_started_or_follow(
    context: &CommandContext,
    args: &Run,
    project: &Project,
    (lane, run_number): (&AnyLane, RunNumber),
    agent_command: &AgentCommand,
) -> CommandResult {
    if args.wait && !args.dry_run {
        return follow_run::follow_and_report(context, project, lane, Some(agent_command));
    }
    if context.ui.json {
        print_started_json(context, (lane, run_number), agent_command, args.dry_run);
        return Ok(Exit::Success);
    }
    if args.dry_run {
        context.ui.print_line(format!(
            "would start {} in lane '{}': {}",
            agent_command.display_name(),
            lane.name,
            agent_command.display_command_line()
        ));
        return Ok(Exit::Success);
    }
    context.ui.print_line(format!("{} in lane '{}'", agent_command.started_text(), lane.name));
    // Pending messages belong to an earlier conversation: the new agent does not get them.
    run_end::print_pending_message_count(context, &project.store, &lane.name);
    context.ui.hint(lane_output::follow_hint(agent_command, &lane.name));
    Ok(Exit::Success)
}

fn print_started_json(
    context: &CommandContext,
    (lane, run_number): (&AnyLane, RunNumber),
    agent_command: &AgentCommand,
    dry_run: bool,
) {
    context.ui.print_json(RunOutput {
        lane: &lane.name,
        agent: &agent_command.agent,
        command: agent_command.display_command_line(),
        run: run_number,
        state: lane.state().to_string(),
        dry_run,
    });
}
