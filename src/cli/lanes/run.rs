//! `git proq run`: starts an agent in an existing lane.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use proq_lib::agent::command::agent_command::RunOptions;
use proq_lib::agent::task_loop::loop_status::LoopStatus;
use proq_lib::ops::start::run::{RunOutcome, RunPlan, RunRequest, plan};

use crate::cli::arguments::candidates::{any_lane_names, installed_agent_names};
use crate::cli::arguments::run_args::TaskRunArgs;
use crate::cli::arguments::user_files::{argument_or_file, attachments_of_text};
use crate::cli::invocation::caller;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::runs::{follow_run, lane_output, run_end};

/// Start an agent in an existing lane
///
/// The lane and everything in it stay as they are; the agent starts a new conversation. Without PROMPT, it
/// gets the lane's task. For a task folder, it continues with the current step, and AGENT can be left out.
/// `git proq send` continues the previous conversation, and `git proq redispatch` restarts the task from
/// the current base.
///
/// Examples:
///     git proq run payments codex "review this lane's commits and fix what is wrong"
///     git proq run payments claude
///     git proq run pay-3-refunds
///     git proq run payments codex "make it look like this" --attachment screen.png
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
#[expect(clippy::struct_field_names, reason = "flags are named for the user")]
pub(crate) struct Run {
    /// Lane name
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(any_lane_names))]
    pub(crate) lane: String,
    /// Agent (see `git proq agents`) or any program on PATH
    #[arg(value_name = "AGENT", add = ArgValueCompleter::new(installed_agent_names))]
    pub(crate) agent: Option<String>,
    /// Task for the agent [default: the lane's task]
    #[arg(value_name = "PROMPT", conflicts_with = "file")]
    pub(crate) prompt: Option<String>,
    /// Command that starts AGENT, if it has none of its own (such as acp)
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
    /// Read the prompt from FILE ('-' for standard input)
    #[arg(long, short = 'F', short_alias = 'f', value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    /// Attach FILE to the prompt [can be repeated]
    ///
    /// A copy is kept with the lane's record.
    #[arg(long = "attachment", alias = "attach", value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) attach: Vec<PathBuf>,
    /// How the run is to be
    #[command(flatten)]
    pub(crate) run_args: TaskRunArgs,
    /// Run the agent in a tmux window (see `git proq open`)
    #[arg(long, conflicts_with_all = ["max_turns", "stall", "budget"])]
    pub(crate) tmux: bool,
    /// Wait for the agent to finish; exits with 4 on failure
    #[arg(long)]
    pub(crate) wait: bool,
    /// Show what would be done, without doing it
    #[arg(long)]
    pub(crate) dry_run: bool,
}

pub(crate) fn run(context: &CommandContext, args: &Run) -> CommandResult {
    let prompt = argument_or_file(args.prompt.as_ref(), args.file.as_ref())?;
    let example = "git proq run payments claude \"make it look like this\" --attachment sketch.png";
    let attachments = attachments_of_text(context, &args.attach, prompt.as_ref(), example)?;
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
        return context.show(&plan, print_plan);
    }
    let outcome = plan.execute(&project)?;
    let (lane, command) = (&outcome.lane, &outcome.command);
    if outcome.already_done {
        context.ui.status(run_end::state_line(lane, lane.state()));
        return context.show(&outcome, |_, _| {});
    }
    if args.wait {
        return follow_run::follow_and_report(context, &project, lane, Some(command));
    }
    context.show(&outcome, |context, RunOutcome { lane, command, .. }| {
        context.ui.print_line(format!("{} in lane '{}'", command.started_text(), lane.name));
        lane_output::print_runnable_commands(context, &project, command);
        // Pending messages belong to an earlier conversation: the new agent does not get them.
        run_end::print_pending_message_count(context, &project, &lane.name);
        lane_output::print_follow_hints(context.ui, command, &lane.name);
    })
}

fn print_plan(context: &CommandContext, RunPlan { lane, command, task_loop, .. }: &RunPlan<'_>) {
    if let Some(LoopStatus { boxes_ticked, boxes_total, folder, .. }) = task_loop {
        context.ui.print_line(format!("{boxes_ticked} of {boxes_total} boxes of {folder} are ticked"));
    }
    let (agent, command) = (command.display_name(), command.display_command_line());
    context.ui.print_line(format!("would start {agent} in lane '{}': {command}", lane.name));
}
