//! The `git proq discard` command.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use proq_lib::lane::removal::remove_lane::RemovalReason;
use proq_lib::ops::remove::discard;
use proq_lib::ops::remove::discard::DiscardRequest;

use super::lane_removal::{RemovalReporter, print_way_out};
use crate::cli::arguments::candidates::any_lane_names;
use crate::cli::invocation::caller;
use crate::cli::invocation::context::{CommandContext, CommandResult};

/// Delete lanes
///
/// A lane with work that is not on its base is kept, and the work is listed. With --force, its commits and
/// uncommitted files are saved first, a running agent is stopped, and the output names the commands that
/// restore everything. `git proq rm` is an alias.
///
/// Examples:
///     git proq discard experiment
///     git proq discard --force experiment
#[derive(Debug, Args)]
#[command(verbatim_doc_comment, alias = "rm")]
pub(crate) struct Discard {
    /// Lanes to delete
    #[arg(value_name = "LANE", required = true, add = ArgValueCompleter::new(any_lane_names))]
    pub(crate) lanes: Vec<String>,
    /// Delete even with unmerged work (everything is saved first)
    #[arg(long, short_alias = 'f')]
    pub(crate) force: bool,
    /// Show what would be done, without doing it
    #[arg(long)]
    pub(crate) dry_run: bool,
}

pub(crate) fn run(context: &CommandContext, args: &Discard) -> CommandResult {
    let project = context.project_for_write()?;
    let lanes = args.lanes.iter().map(|name| project.find_any_lane(name)).collect::<Result<Vec<_>, _>>()?;
    // An agent must not discard the work in another lane.
    if args.force {
        let names: Vec<_> = lanes.iter().map(|lane| lane.name.clone()).collect();
        caller::refuse_other_lanes_inside_lane(context, &project, &names)?;
    }
    let plan = discard::plan(&DiscardRequest { lanes, force: args.force });
    let reporter = RemovalReporter::new(context, &project, RemovalReason::Discard);
    let outcome =
        if args.dry_run { plan.forecast(&project, &reporter) } else { plan.execute(&project, &reporter)? };
    context.show(outcome, |context, _| print_way_out(context, &project)).and(Ok(reporter.exit()))
}
