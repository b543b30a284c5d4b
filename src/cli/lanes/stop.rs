//! `git proq stop`: stops the agents of lanes.

use std::cell::Cell;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use proq_base::explain::Exit;
use proq_lib::ops::reporter::Progress;
use proq_lib::ops::stop;
use proq_lib::ops::stop::StopRequest;
use proq_lib::types::AnyLane;

use crate::cli::arguments::candidates::any_lane_names;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::{caller, failure};
use crate::cli::runs::run_end;

/// Stop running agents
///
/// The agent is asked to exit, and killed after agent.stop_grace seconds. Its work stays in the lane.
///
/// With --wrap-up, the agent first gets agent.abort_grace seconds to finish, commit, and write down what is
/// left: the file that its variable PROQ_WRAP_UP names appears, and nothing starts after its run. Agents
/// that work on a task folder are told to watch for that file, others if agent.context_warn is set.
///
/// Examples:
///     git proq stop payments
///     git proq stop --all --wrap-up
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
#[command(override_usage = "git proq stop [OPTIONS] [LANE]...\n       git proq stop [OPTIONS] --all")]
pub(crate) struct Stop {
    /// Lanes to stop [default: lane of the current folder]
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(any_lane_names))]
    pub(crate) lanes: Vec<String>,
    /// Stop every running agent
    #[arg(long, conflicts_with = "lanes")]
    pub(crate) all: bool,
    /// Ask agents to finish up first; stop after agent.abort_grace
    #[arg(long)]
    pub(crate) wrap_up: bool,
    /// Show what would be done, without doing it
    #[arg(long)]
    pub(crate) dry_run: bool,
}

pub(crate) fn run(context: &CommandContext, args: &Stop) -> CommandResult {
    let project = context.project_to_recover()?;
    let given = match args.lanes.as_slice() {
        [] if !args.all => &[caller::lane_or_current(&project, None)?],
        given => given,
    };
    let named = given.iter().map(|name| project.find_any_lane(name)).collect::<Result<Vec<_>, _>>()?;
    let names: Vec<_> = named.iter().map(|lane| &lane.name).collect();
    caller::refuse_agent_for_other_lanes(&names, args.dry_run)?;
    let lanes = if args.all { None } else { Some(named) };
    let plan = stop::plan(&project, &StopRequest { lanes, wrap_up: args.wrap_up })?;
    if plan.lanes.is_empty() {
        context.ui.status("no agent is running");
    }
    let exit = Cell::new(Exit::Success);
    let reporter = |progress: Progress<'_>| match progress {
        Progress::AgentStopped(lane) => {
            context.ui.status(run_end::state_line(lane, lane.state()));
            run_end::print_pending_message_count(context, &project, &lane.name);
        }
        Progress::StopFailed(error) => exit.set(failure::print_failure(error, false)),
        _ => {}
    };
    let outcome = if args.dry_run {
        for AnyLane { name, .. } in &plan.lanes {
            context.ui.status(format!("would stop the agent of '{name}'"));
        }
        plan.forecast(&project)
    } else {
        plan.execute(&project, &reporter)
    };
    context.show(outcome, |_, _| {}).and(Ok(exit.get()))
}
