//! `git proq run`: starts an agent in an existing lane.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use proq_base::explain::Exit;
use proq_lib::agent::command::agent_command::RunOptions;
use proq_lib::agent::task_loop::loop_status::LoopStatus;
use proq_lib::ops::start::run::{RunPlan, RunRequest, plan};

use crate::cli::arguments::candidates::{any_lane_names, installed_agent_names};
use crate::cli::arguments::run_args::RunArgs;
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
    let request = RunRequest {
        lane,
        agent: args.agent.clone(),
        prompt,
        attachments,
        options: RunOptions {
            agent_command: args.command.clone(),
            ..args.run_args.run_options_with_window(args.tmux)
        },
        dir: context.dir.clone(),
        calling_lane: caller::calling_lane(context, &project),
    };
    let plan = plan(&project, &request)?;
    if args.dry_run {
        match context.ui.json {
            true => context.ui.print_json(plan),
            false => print_plan(context, &plan),
        }
        return Ok(Exit::Success);
    }
    let outcome = plan.execute(&project)?;
    let (lane, command) = (&outcome.lane, &outcome.command);
    if outcome.already_done {
        context.ui.status(run_end::state_line(lane, lane.state()));
    } else if args.wait {
        return follow_run::follow_and_report(context, &project, lane, Some(command));
    }
    if context.ui.json {
        context.ui.print_json(outcome);
    } else if !outcome.already_done {
        context.ui.print_line(format!("{} in lane '{}'", command.started_text(), lane.name));
        // Pending messages belong to an earlier conversation: the new agent does not get them.
        run_end::print_pending_message_count(context, &project, &lane.name);
        context.ui.hint(lane_output::follow_hint(command, &lane.name));
    }
    Ok(Exit::Success)
}

fn print_plan(context: &CommandContext, plan: &RunPlan<'_>) {
    if let Some(LoopStatus { boxes_ticked, boxes_total, folder, .. }) = &plan.task_loop {
        context.ui.print_line(format!("{boxes_ticked} of {boxes_total} boxes of {folder} are ticked"));
    }
    context.ui.print_line(format!(
        "would start {} in lane '{}': {}",
        plan.command.display_name(),
        plan.lane.name,
        plan.command.display_command_line()
    ));
}
