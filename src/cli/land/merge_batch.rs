//! The `git proq merge --batch` command: lands a batch's branch on its base, and marks the landed tasks in
//! the plan.

use proq_base::diagnostics::Listener;
use proq_base::terminal_text;
use proq_lib::lane::Project;
use proq_lib::merge::types::outcome::LandingReport;
use proq_lib::swarm::ops::land_batch;
use proq_lib::swarm::ops::land_batch::{BatchMarks, LandBatchRequest, LandLane};

use super::landing::{land_and_retry_waiting, print_report, run_landing};
use super::landing_args::LandingArgs;
use super::merge_args::Merge;
use crate::cli::invocation::context::{CommandContext, CommandResult};

/// Lands what is on the branch of a batch, through a landing lane of its own.
pub(crate) fn run(
    context: &CommandContext,
    project: &Project,
    args: &Merge,
    batch_name: &str,
) -> CommandResult {
    let request =
        LandBatchRequest { batch_name: batch_name.to_owned(), onto: args.onto.clone(), force: args.force };
    let plan = land_batch::plan(project, &request)?;
    let landing_args =
        Merge { lanes: vec![plan.lane.name.to_string()], batch: None, force: false, ..args.clone() };
    if args.dry_run {
        let stop = landing_args.stop && plan.is_lane_up_to_date;
        let simulated_lane = (!plan.is_lane_up_to_date).then(|| Box::new(plan.lane));
        let dry_run_args = Merge { stop, simulated_lane, ..landing_args };
        return Ok(land_and_retry_waiting(context, project, &dry_run_args)?.exit());
    }
    // The forecast runs no hook of the repository and prints nothing.
    let landing_flags = LandingArgs {
        conflict_agent: None,
        no_conflict_agent: true,
        no_verify: true,
        no_push: true,
        ..landing_args.landing_flags.clone()
    };
    let forecast_args = Merge { dry_run: true, stop: false, landing_flags, ..landing_args.clone() };
    let land_lane = LandLane {
        forecast: &|lane| {
            let project = Project::open(&context.dir, Listener::silent())?;
            let simulated_lane = Some(Box::new(lane.clone()));
            Ok(run_landing(context, &project, &Merge { simulated_lane, ..forecast_args.clone() }, None)?.0)
        },
        land: &|| land_and_retry_waiting(context, project, &landing_args),
    };
    let outcome = plan.execute(project, &land_lane)?;
    if outcome.is_forecast {
        print_report(context, project, &landing_args, None, &outcome.report);
    }
    outcome.marks.iter().for_each(|marks| print_marks(context, marks));
    Ok(outcome.report.exit())
}

/// Marks the landed tasks of batches whose landing lanes were landed by name, for example after a conflict.
pub(crate) fn mark_tasks_of_landed_batches(
    context: &CommandContext,
    project: &Project,
    report: &LandingReport,
) {
    for marks in land_batch::mark_tasks_of_landed_batches(project, report) {
        print_marks(context, &marks);
    }
}

/// Prints what was marked in the plan's files. A failure is only a warning, since the landing is already done.
fn print_marks(context: &CommandContext, BatchMarks { batch, onto, result }: &BatchMarks) {
    match result {
        Ok(marks) => {
            if let Some(commit) = marks.commit {
                context.ui.status(format!("noted in the plan, by commit {} on {onto}", commit.short()));
            }
            for path in &marks.written {
                context.ui.status(format!("noted in {path}, which is yours to commit"));
            }
            for unmarked in &marks.unmarked {
                context.ui.warn(format!(
                    "not noted in {}: {}",
                    unmarked.path,
                    terminal_text::escape_line(&unmarked.reason)
                ));
            }
            if marks.unmarked.iter().any(|unmarked| !unmarked.patch.is_empty()) {
                context.ui.hint(format!("git proq report {batch} has it as a patch"));
            }
        }
        Err(e) => context.ui.warn(format!("what has landed could not be noted in the plan: {e}")),
    }
}
