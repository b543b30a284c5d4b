//! The `git proq merge` command.

use proq_store::base::id::new_id;

use super::landing::land_and_retry_waiting;
use super::merge_args::Merge;
use super::{auto_merge, merge_batch};
use crate::cli::invocation::caller;
use crate::cli::invocation::context::{CommandContext, CommandResult};

pub(crate) fn run(context: &CommandContext, args: &Merge) -> CommandResult {
    if let Some(trigger) = &args.auto {
        return auto_merge::run(context, args, trigger);
    }
    let mut project = context.project_for_write()?;
    let lanes = if args.all || args.batch.is_some() { &[] } else { &args.lanes[..] };
    caller::refuse_agent_for_other_lanes(lanes, args.dry_run)?;
    if let Some(batch_name) = &args.batch {
        project.undo_group = Some(new_id());
        return merge_batch::run(context, &project, args, batch_name);
    }
    let report = land_and_retry_waiting(context, &project, args)?;
    if !args.dry_run {
        merge_batch::mark_tasks_of_landed_batches(context, &project, &report);
    }
    Ok(report.exit())
}
