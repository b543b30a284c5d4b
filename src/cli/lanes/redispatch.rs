//! The `git proq redispatch` command: runs a lane's task again from the current base.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use proq_base::hint;
use proq_lib::lane::Project;
use proq_lib::lane::inspection::base::Base;
use proq_lib::lane::removal::remove_lane::RemovalReason;
use proq_lib::lane::worktree::set_up::commands::SetUpLevel;
use proq_lib::ops::start::redispatch::{RedispatchOutcome, RedispatchPlan, RedispatchRequest, plan};
use proq_lib::types::LanePurpose;

use super::lane_removal;
use crate::cli::arguments::candidates::{any_lane_names, installed_agent_names};
use crate::cli::arguments::run_args::TaskRunArgs;
use crate::cli::invocation::caller;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::runs::lane_output;
use crate::cli::terminal::ui::Ui;

/// Restart a lane's task from the current base
///
/// For work that is too old to resolve, or went wrong. Commits and uncommitted files are saved as by
/// `discard --force`. Then the lane is created again from the tip of its base, with the same name, task,
/// checks and scope, and its agent, or the one of --agent, starts in it; for a task folder, at the first
/// step. `git proq undo` restores the old lane. A question is asked again; the previous answer stays in the
/// lane's records.
///
/// Examples:
///     git proq redispatch payments
///     git proq redispatch payments --agent codex
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Redispatch {
    /// Lane name
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(any_lane_names))]
    pub(crate) lane: String,
    /// Use another agent
    #[arg(long, value_name = "AGENT", add = ArgValueCompleter::new(installed_agent_names))]
    pub(crate) agent: Option<String>,
    /// What its run is to be like
    #[command(flatten)]
    pub(crate) run_args: TaskRunArgs,
    /// Run the agent in a tmux window (see `git proq open`)
    #[arg(long, conflicts_with_all = ["max_turns", "stall", "budget"])]
    pub(crate) tmux: bool,
    /// Skip the lane.setup commands
    #[arg(long)]
    pub(crate) no_setup: bool,
    /// Show what would be done, without doing it
    #[arg(long)]
    pub(crate) dry_run: bool,
}

pub(crate) fn run(context: &CommandContext, args: &Redispatch) -> CommandResult {
    let project = context.project_for_write()?;
    let lane = project.find_any_lane(&args.lane)?;
    caller::refuse_agent_for_other_lanes(std::slice::from_ref(&lane.name), args.dry_run)?;
    let request = RedispatchRequest {
        lane,
        agent: args.agent.clone(),
        options: args.run_args.run_options_with_window(args.tmux),
        set_up: if args.no_setup { SetUpLevel::NoCommands } else { SetUpLevel::Full },
        dir: context.dir.clone(),
        calling_lane: caller::calling_lane(context, &project),
    };
    let plan = plan(&project, &request)?;
    if args.dry_run {
        return context.show(&plan, print_plan);
    }
    let outcome = plan.execute(&project, context)?;
    context.show(&outcome, |context, outcome| print_outcome(context.ui, &project, outcome))
}

fn print_plan(context: &CommandContext, plan: &RedispatchPlan) {
    let (name, agent, Base { branch, start }) = (&plan.lane.name, &plan.command.agent, &plan.base);
    let start = start.short();
    context.ui.print_line(match plan.lane.purpose() {
        None => format!(
            "would save and remove lane '{name}', create it again from {branch} ({start}), \
             and start {agent} in it"
        ),
        Some(LanePurpose::InPlace) => {
            format!("would restart {agent} of lane '{name}' in the main checkout, on {branch} ({start})")
        }
        Some(_) => format!("would restart {agent} of lane '{name}' on {branch} ({start})"),
    });
}

fn print_outcome(ui: Ui, project: &Project, outcome: &RedispatchOutcome) {
    let RedispatchOutcome { lane, base: Base { branch, start }, command, removed } = outcome;
    let (name, agent, start) = (&lane.name, &command.agent, start.short());
    if let Some(removed) = removed {
        let past_name = &removed.history_name;
        ui.print_line(format!(
            "restarted lane '{name}' from {branch} ({start}) with {agent}; the old one is {past_name}"
        ));
        lane_removal::print_restore_commands(ui, &project.settings, removed, RemovalReason::Discard);
        ui.hint(lane_output::follow_command(command, name));
        ui.hint(hint!("restore the old one: git proq undo"));
    } else if lane.works_in_place() {
        ui.print_line(format!(
            "restarted {agent} of lane '{name}' in the main checkout, on {branch} ({start})"
        ));
    } else if let Some(purpose) = lane.purpose() {
        ui.print_line(format!("restarted {agent} of lane '{name}' on {branch} ({start})"));
        ui.hint(hint!("wait for its {purpose}: git proq wait {name}"));
        ui.hint(hint!("read it after that: git proq show {name}"));
    }
}
