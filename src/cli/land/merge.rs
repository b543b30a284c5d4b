//! The `git proq merge` command.

use proq_base::hint;
use proq_lib::lane::Project;
use proq_lib::merge::types::outcome::{LaneOutcome, Verdict};
use proq_lib::ops::land::auto_merge::{AutoMergeRequest, AutoMergeTrigger};
use proq_lib::ops::land::merge;
use proq_lib::ops::land::merge::MergeRequest;

use super::landing::{exit_of_forecast, print_outcome};
use super::merge_args::Merge;
use super::{merge_batch, pull_request};
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::failure::Failure;
use crate::cli::invocation::usage_error::UsageError;
use crate::cli::invocation::{caller, failure};

pub(crate) fn run(context: &CommandContext, args: &Merge) -> CommandResult {
    if let Some(trigger) = &args.auto {
        return run_automatic(context, args, trigger);
    }
    if args.pull_request.pr {
        return pull_request::run(context, args);
    }
    let names_nothing = args.lanes.is_empty() && !args.all && args.batch.is_none();
    if names_nothing && caller::current_lane_name(&context.project()?)?.is_none() {
        return Err(show_mergeable_lanes(context, args)?.into());
    }
    let mut project = context.project_for_write()?;
    let lanes = match args.lanes.as_slice() {
        _ if args.all || args.batch.is_some() => Vec::new(),
        [] => vec![caller::lane_or_current(&project, None)?],
        given => caller::whole_names(&project, given),
    };
    caller::refuse_agent_for_other_lanes(&lanes, args.dry_run)?;
    if let Some(batch_name) = &args.batch {
        return merge_batch::run(context, &mut project, args, batch_name);
    }
    let request = MergeRequest { lanes, ..args.request(&context.dir) };
    let mut plan = merge::plan(&project, &request)?;
    if args.landing_flags.edit && !args.dry_run {
        plan.edit_messages(&project)?;
    }
    let outcome = match &args.plan_token {
        Some(token) => plan.execute_pinned(&project, context, token)?,
        None if args.dry_run => plan.forecast(&project, context)?,
        None => plan.execute(&project, context)?,
    };
    print_outcome(context, &project, &outcome, request.options.all);
    if !args.dry_run {
        // What did not land has hints of its own, and what was pushed cannot simply be undone.
        let has_landed = |lane: &LaneOutcome| matches!(lane.result, Verdict::Landed | Verdict::Resolved);
        let report = &outcome.report;
        if !report.lanes.is_empty() && report.lanes.iter().all(has_landed) && report.pushed.is_empty() {
            context.ui.hint(hint!("undo it: git proq undo"));
        }
        merge_batch::mark_tasks_of_landed_batches(context.ui, &project, &outcome.report);
    }
    let exit = outcome.report.exit();
    Ok(if args.dry_run { exit_of_forecast(context, &outcome.report, exit) } else { exit })
}

/// Prints what `--all` would merge, for a command that names no lane, and returns the error about that.
fn show_mergeable_lanes(context: &CommandContext, args: &Merge) -> Result<UsageError, Failure> {
    if context.ui.json {
        return Ok(UsageError::NoLaneToMerge { lane: None });
    }
    let project = context.project_for_write()?;
    let mut request = args.request(&context.dir);
    request.options.all = true;
    let outcome = merge::plan(&project, &request)?.forecast(&project, context)?;
    print_outcome(context, &project, &outcome, true);
    let mut mergeable = outcome.report.lanes.iter().filter(|lane| lane.result == Verdict::Landed);
    Ok(UsageError::NoLaneToMerge { lane: mergeable.next().map(|lane| lane.lane.to_string()) })
}

/// Lands the given lanes in a background process, with a separate landing for each. `trigger` is `run-ended`
/// or `retry`.
fn run_automatic(context: &CommandContext, args: &Merge, trigger: &str) -> CommandResult {
    proq_base::process::signals::start_process_session();
    proq_base::interrupt::defer_signals();
    let project = Project::open(&context.dir, context.ui.listener())?;
    let trigger = if trigger == "run-ended" { AutoMergeTrigger::RunEnded } else { AutoMergeTrigger::Retry };
    let lanes = args.lanes.iter().filter_map(|name| project.lane_name(name).ok()).collect();
    let request = AutoMergeRequest { lanes, trigger, current_dir: context.dir.clone() };
    request.execute(&project, context, &|result| match result {
        Ok(outcome) => print_outcome(context, &project, outcome, false),
        Err(failure) => drop(failure::print_failure(failure, false)),
    })
}
