//! The `git proq merge --batch` command: lands a batch's branch on its base, and marks the landed tasks in
//! the plan.

use proq_base::diagnostics::Listener;
use proq_base::explain::Exit;
use proq_base::terminal_text;
use proq_git::CommitId;
use proq_lib::lane::Project;
use proq_lib::merge::types::outcome::{LandingReport, LaneOutcome, Verdict};
use proq_lib::swarm::batch::create;
use proq_lib::swarm::batch::record::BatchRecord;
use proq_lib::swarm::landing::{batch_landing, landed_marks};
use proq_store::records::lane::LaneRecord;

use super::landing::{land_and_retry_waiting, print_report, run_landing};
use super::landing_args::LandingArgs;
use super::merge_args::Merge;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::failure::Failure;

/// Lands what is on the branch of a batch, through a landing lane of its own.
pub(crate) fn run(
    context: &CommandContext,
    project: &Project,
    args: &Merge,
    batch_name: &str,
) -> CommandResult {
    let batch = create::find_batch(project, batch_name)?;
    if !args.force {
        batch_landing::require_criteria_met(project, &batch)?;
    }
    if args.onto.is_none() {
        batch_landing::require_base(project, &batch)?;
    }
    let forecast = batch_landing::forecast_landing_lane(project, &batch)?;
    let landing_args =
        Merge { lanes: vec![forecast.lane.name.to_string()], batch: None, force: false, ..args.clone() };
    let unrecorded = (!forecast.is_up_to_date).then(|| Box::new(forecast.lane));
    if args.dry_run {
        let stop = landing_args.stop && unrecorded.is_none();
        return Ok(land_and_retry_waiting(
            context,
            project,
            &Merge { stop, simulated_lane: unrecorded, ..landing_args },
        )?
        .exit());
    }
    let onto = args.onto.as_deref().unwrap_or(&batch.base);
    if let Some(lane) = unrecorded
        && let Some(report) = dry_run_report_if_no_effect(context, &landing_args, lane)?
    {
        print_report(context, project, &landing_args, None, &report);
        let exit = report.exit();
        if let (Exit::Success, Some(tip)) = (exit, project.repo.branch_tip(&batch.branch)?) {
            mark_landed_tasks(context, project, &batch, onto, tip);
        }
        return Ok(exit);
    }
    let (lane, is_new) = batch_landing::open_landing_lane(project, &batch)?;
    // The lane's current tip is what lands. More tasks may land on the batch's branch concurrently.
    let tip = project.repo.branch_tip(&lane.kind.branch)?;
    let result = land_and_retry_waiting(context, project, &landing_args);
    let is_all_refused =
        |report: &LandingReport| report.lanes.iter().all(|outcome| outcome.result == Verdict::Refused);
    let removal = match is_new && result.as_ref().map_or(true, is_all_refused) {
        true => batch_landing::remove_landing_lane(project, &lane.name),
        false => Ok(()),
    };
    // The reason why no lane landed is reported before a failed removal of the landing lane.
    let exit = result?.exit();
    removal?;
    if let (Exit::Success, Some(tip)) = (exit, tip) {
        mark_landed_tasks(context, project, &batch, onto, tip);
    }
    Ok(exit)
}

/// Makes a dry run, and returns its report if landing `lane` would have no effect, so that the lane need not
/// be created; `None` if something would land. Runs no hook of the repository and prints nothing.
fn dry_run_report_if_no_effect(
    context: &CommandContext,
    landing_args: &Merge,
    lane: Box<LaneRecord>,
) -> Result<Option<LandingReport>, Failure> {
    let project = Project::open(&context.dir, Listener::silent())?;
    let landing_flags = LandingArgs {
        conflict_agent: None,
        no_conflict_agent: true,
        no_verify: true,
        no_push: true,
        ..landing_args.landing_flags.clone()
    };
    let dry_run_args = Merge {
        dry_run: true,
        stop: false,
        landing_flags,
        simulated_lane: Some(lane),
        ..landing_args.clone()
    };
    let (report, _) = run_landing(context, &project, &dry_run_args, None)?;
    let has_no_effect =
        |outcome: &LaneOutcome| matches!(outcome.result, Verdict::Refused | Verdict::AlreadyLanded);
    Ok(report.lanes.iter().all(has_no_effect).then_some(report))
}

/// Marks the landed tasks of batches whose landing lanes were landed by name, for example after a conflict.
pub(crate) fn mark_tasks_of_landed_batches(
    context: &CommandContext,
    project: &Project,
    report: &LandingReport,
) {
    let is_landed = |outcome: &&LaneOutcome| matches!(outcome.result, Verdict::Landed | Verdict::Resolved);
    for outcome in report.lanes.iter().filter(is_landed) {
        let Some((batch, tips)) = batch_landing::batch_of_landing_lane(project, &outcome.lane) else {
            continue;
        };
        for tip in tips {
            mark_landed_tasks(context, project, &batch, &outcome.onto, tip);
        }
    }
}

/// Marks landed tasks in the plan's files. A failure is only a warning, since the landing is already done.
fn mark_landed_tasks(
    context: &CommandContext,
    project: &Project,
    batch: &BatchRecord,
    onto: &str,
    tip: CommitId,
) {
    match landed_marks::mark_landed(project, batch, onto, tip) {
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
                context.ui.hint(format!("git proq report {} has it as a patch", batch.id));
            }
        }
        Err(e) => context.ui.warn(format!("what has landed could not be noted in the plan: {e}")),
    }
}
