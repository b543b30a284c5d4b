//! `git proq stop`: stops the agents of lanes.

use std::collections::BTreeMap;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use proq_base::explain::Exit;
use proq_base::lane_name::LaneName;
use proq_lib::agent::control::stop;
use proq_lib::lane::messages::inbox::Inbox;
use proq_lib::lane::state::lane_state::effective_state;
use serde::Serialize;

use crate::cli::arguments::candidates::any_lane_names;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::failure::Failure;
use crate::cli::invocation::{caller, failure};
use crate::cli::runs::run_end;

/// Stop lanes' agents
///
/// The agent is asked to end and, after agent.stop_grace seconds, ended. Its work stays in the lane.
///
/// With --wrap-up it is given agent.abort_grace seconds before that, to finish what it is at, commit it, and write down what is
/// left: the file appears that its variable PROQ_WRAP_UP names, and nothing is begun after its run. Agents that work at a task
/// folder are told to look for it, others if agent.context_warn is set.
///
/// Example:
///     git proq stop payments
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
#[command(override_usage = "git proq stop [OPTIONS] LANE...\n       git proq stop [OPTIONS] --all")]
pub(crate) struct Stop {
    /// The lanes whose agents are to end
    #[arg(value_name = "LANE", required_unless_present = "all", add = ArgValueCompleter::new(any_lane_names))]
    pub(crate) lanes: Vec<String>,
    /// Every lane whose agent runs
    #[arg(long, conflicts_with = "lanes")]
    pub(crate) all: bool,
    /// Ask them to come to their end by themselves, and stop them only after agent.abort_grace seconds
    #[arg(long)]
    pub(crate) wrap_up: bool,
    /// Say what would be stopped, and stop nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Serialize)]
struct StopOutput {
    stopped: Vec<LaneName>,
    /// Number of pending messages by lane name, for the stopped lanes that have any.
    #[serde(rename = "waiting", skip_serializing_if = "BTreeMap::is_empty")]
    pending_message_counts: BTreeMap<LaneName, usize>,
    dry_run: bool,
}

pub(crate) fn run(context: &CommandContext, args: &Stop) -> CommandResult {
    let project = context.project_for_write()?;
    let mut names = Vec::new();
    if args.all {
        for lane in project.all_lanes()? {
            if effective_state(&project, &lane)?.0.is_busy() {
                names.push(lane.name);
            }
        }
    } else {
        for name in &args.lanes {
            names.push(project.find_any_lane(name)?.name);
        }
    }
    caller::refuse_agent_for_other_lanes(if args.all { &[] } else { names.as_slice() }, args.dry_run)?;
    if names.is_empty() {
        context.ui.status("no agent is running");
    }
    let mut exit = Exit::Success;
    let mut stopped = Vec::new();
    for name in names {
        if args.dry_run {
            context.ui.status(format!("would stop the agent of '{name}'"));
            stopped.push(name);
            continue;
        }
        let result = match args.wrap_up {
            true => stop::stop_after_wrap_up(&project, &name, project.settings.abort_grace),
            false => stop::stop(&project, &name),
        };
        match result {
            Ok(lane) => {
                context.ui.status(run_end::state_line(&lane, lane.state()));
                run_end::print_pending_message_count(context, &project.store, &name);
                stopped.push(name);
            }
            Err(e) => exit = failure::print_failure(&Failure::from(e), false),
        }
    }
    if context.ui.json {
        let pending_count = |name: &LaneName| (name.clone(), Inbox::new(&project.store, name).count());
        let waiting = stopped.iter().map(pending_count).filter(|(_, count)| *count > 0).collect();
        context.ui.print_json(StopOutput { stopped, pending_message_counts: waiting, dry_run: args.dry_run });
    }
    Ok(exit)
}
