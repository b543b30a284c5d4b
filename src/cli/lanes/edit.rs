//! The `git proq edit` command.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use proq_lib::lane::creation::create;
use proq_lib::ops::edit;
use proq_lib::ops::edit::EditRequest;

use crate::cli::arguments::candidates::any_lane_names;
use crate::cli::invocation::caller;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::usage_error::UsageError;

/// Change what is said of a lane
///
/// Its title, which lists show. At first that is the first line of its prompt.
///
/// Example:
///     git proq edit payments --title "Payments by card and by invoice"
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Edit {
    /// The lane
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(any_lane_names))]
    pub(crate) lane: String,
    /// Its title, on one line of 120 characters at most
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) title: String,
    /// Say what would be changed, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

pub(crate) fn run(context: &CommandContext, args: &Edit) -> CommandResult {
    let example = "git proq edit payments --title \"Payments by card\"";
    let title = create::clean_title(&args.title)
        .ok_or_else(|| UsageError::missing("the title says nothing", example))?;
    let project = context.project_for_write()?;
    let lane = project.find_any_lane(&args.lane)?;
    caller::refuse_agent_for_other_lanes(std::slice::from_ref(&lane.name), args.dry_run)?;
    let plan = edit::plan(EditRequest { lane, title });
    let change = if args.dry_run { plan } else { plan.execute(&project)? };
    context.show(&change, |context, change| {
        let verb = if args.dry_run { "would call" } else { "called" };
        context.ui.print_line(format!("{verb} {}: {}", change.lane, change.title));
    })
}
