//! The `git proq discard` command.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use proq_base::explain::Exit;
use proq_base::lane_name::LaneName;
use proq_lib::lane::removal::remove_lane::RemovalReason;
use proq_lib::operation::run_operation::operate;

use super::lane_removal::{
    LaneRemoval, RemovalOutput, remove_lane, report_dry_run, retained_lane_row, run_hooks_and_stop_agents,
};
use crate::cli::arguments::candidates::any_lane_names;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::failure::Failure;
use crate::cli::invocation::{caller, failure};

/// Throw lanes away
///
/// A lane with work that is not on its base is kept and the work is named. With --force its commits and uncommitted
/// files are saved first, a running agent is stopped, and the answer says how to get everything back.
///
/// Examples:
///     git proq discard experiment
///     git proq discard --force experiment
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Discard {
    /// The lanes to throw away
    #[arg(value_name = "LANE", required = true, add = ArgValueCompleter::new(any_lane_names))]
    pub(crate) lanes: Vec<String>,
    /// Remove them whatever is in them, saving it all first
    #[arg(long, short)]
    pub(crate) force: bool,
    /// Say what would be removed, and remove nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

pub(crate) fn run(context: &CommandContext, args: &Discard) -> CommandResult {
    let project = context.project_for_write()?;
    for name in &args.lanes {
        project.find_any_lane(name)?;
    }
    let names = args.lanes.iter().map(|name| project.find_any_lane(name).map(|l| l.name));
    let names: Vec<LaneName> = names.collect::<Result<_, _>>()?;
    // An agent must not discard the work in another lane.
    if args.force {
        caller::refuse_other_lanes_inside_lane(context, &project, &names)?;
    }
    let mut exit = Exit::Success;
    let mut results = Vec::new();
    let mut add_result = |name: &LaneName, result: Result<LaneRemoval, Failure>| match result {
        Ok(removal) => results.push(removal),
        Err(failure) => {
            exit = if context.ui.json { Exit::Refused } else { failure::print_failure(&failure, false) };
            results.push(retained_lane_row(name, &failure));
        }
    };
    if args.dry_run {
        for name in &names {
            add_result(name, report_dry_run(context, &project, name, args.force));
        }
    } else {
        let stop_results = run_hooks_and_stop_agents(&project, &names, args.force);
        // All removals are one operation, so that one undo restores them all.
        operate(&project, "discard", |op| {
            for (name, stop_result) in names.iter().zip(stop_results) {
                let result = stop_result
                    .and_then(|()| remove_lane(context, op, name, RemovalReason::Discard, args.force));
                add_result(name, result);
            }
            Ok::<_, Failure>(())
        })?;
    }
    if context.ui.json {
        context.ui.print_json(RemovalOutput { lanes: results, dry_run: args.dry_run });
    }
    Ok(exit)
}
