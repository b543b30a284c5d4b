//! The `git proq cleanup` command.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use proq_base::explain::Exit;
use proq_base::hint;
use proq_lib::lane::Project;
use proq_lib::lane::removal::expire;
use proq_lib::lane::removal::remove_lane::RemovalReason;
use proq_lib::ops::remove::cleanup;
use proq_lib::ops::remove::cleanup::CleanupRequest;
use proq_lib::swarm::batch::create;
use proq_lib::swarm::landing::batch_cleanup;
use proq_lib::swarm::landing::batch_records::BatchRecords;

use super::lane_removal::{RemovalReporter, print_way_out};
use crate::cli::arguments::candidates::{any_lane_names, batch_ids};
use crate::cli::invocation::caller;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::failure::Failure;
use crate::cli::invocation::usage_error::UsageError;
use crate::cli::runs::pull_request_view;
use crate::cli::terminal::ui;

/// Delete lanes that have landed
///
/// Without LANE, deletes lanes that have landed and lanes that a crash left incomplete. A lane with
/// anything that is not on its base is kept, and the output gives the reason. A named lane is also deleted
/// if its changes were brought to the base by hand. A lane whose pull request was merged, by merge, squash or
/// rebase, is deleted unless it has newer commits; gh or glab report that.
///
/// Examples:
///     git proq cleanup
///     git proq cleanup --all
///     git proq cleanup --batch 20261122-104500
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Cleanup {
    /// Only these lanes
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(any_lane_names))]
    pub(crate) lanes: Vec<String>,
    /// Also delete lanes without changes
    ///
    /// Lanes that changed nothing, failed lanes without work, and questions without an answer.
    #[arg(long, conflicts_with = "lanes")]
    pub(crate) all: bool,
    /// Delete the named lanes or batch even with unmerged work
    ///
    /// Everything is saved first.
    #[arg(long, short_alias = 'f', conflicts_with = "all")]
    pub(crate) force: bool,
    /// Delete the lanes and the branch of a finished batch
    ///
    /// The work on its branch must be on its base. Everything is saved first.
    #[arg(long, value_name = "BATCH", conflicts_with_all = ["lanes", "all"], add = ArgValueCompleter::new(batch_ids))]
    pub(crate) batch: Option<String>,
    /// Show what would be done, without doing it
    #[arg(long)]
    pub(crate) dry_run: bool,
}

pub(crate) fn run(context: &CommandContext, args: &Cleanup) -> CommandResult {
    let project = context.project_for_write()?;
    caller::refuse_lane_agent(args.dry_run)?;
    if let Some(batch_name) = &args.batch {
        return clean_up_batch(context, &project, batch_name, args);
    }
    let lanes = args.lanes.iter().map(|name| project.find_any_lane(name)).collect::<Result<Vec<_>, _>>()?;
    if args.force && lanes.is_empty() {
        let problem = "--force needs the name of a lane or a batch";
        return Err(UsageError::missing(problem, "git proq cleanup payments --force").into());
    }
    match lanes.as_slice() {
        [] => pull_request_view::refresh(context, &project, &project.all_lanes()?),
        named => pull_request_view::refresh(context, &project, named),
    }
    let request = CleanupRequest { lanes, all: args.all, force: args.force };
    let plan = cleanup::plan(&project, &request, &BatchRecords)?;
    let reporter = RemovalReporter::new(context, &project, RemovalReason::Cleanup);
    let outcome =
        if args.dry_run { plan.forecast(&project, &reporter)? } else { plan.execute(&project, &reporter)? };
    if context.ui.json {
        context.ui.print_json(&outcome);
    } else if outcome.found_nothing {
        context.ui.status("no lane to clean up");
        print_further_lanes(context, &project, args)?;
    }
    outcome.delete_expired(&project)?;
    print_way_out(context, &project);
    Ok(reporter.exit())
}

/// Prints how many lanes `--all` would remove, if this clean-up did without it.
fn print_further_lanes(context: &CommandContext, project: &Project, args: &Cleanup) -> Result<(), Failure> {
    let request = CleanupRequest { all: true, ..CleanupRequest::default() };
    let count = match args.all {
        true => 0,
        false => cleanup::plan(project, &request, &BatchRecords)?.count_removable(project),
    };
    if count > 0 {
        let lanes = ui::pluralize(count, "lane");
        context.ui.hint(hint!("remove {lanes} without work to land: git proq cleanup --all"));
    }
    Ok(())
}

/// Removes the lanes and the branch of a batch.
fn clean_up_batch(context: &CommandContext, project: &Project, name: &str, args: &Cleanup) -> CommandResult {
    let batch = create::find_batch(project, name)?;
    let report = batch_cleanup::clean_up(project, &batch, args.force, args.dry_run)?;
    if context.ui.json {
        context.ui.print_json(report);
        return Ok(Exit::Success);
    }
    let verb = if args.dry_run { "would clean up" } else { "cleaned up" };
    let lanes = ui::pluralize(report.lanes.len(), "lane");
    context.ui.print_line(format!("{verb} batch {}: {lanes}", report.batch));
    if let Some(saved) = report.saved_ref {
        context.ui.print_line(format!("  what landed on its branch is kept: git log {saved}"));
    }
    if !args.dry_run {
        context.ui.hint(hint!("restore it all: git proq undo"));
        expire::delete_expired(project)?;
    }
    Ok(Exit::Success)
}
