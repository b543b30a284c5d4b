//! Following a batch to its end: a line per change, or a live view of its lanes on a terminal.

use proq_base::explain::Exit;
use proq_lib::lane::Project;
use proq_lib::swarm::batch::record;
use proq_lib::swarm::landing::batch_landing;
use proq_lib::swarm::status::progress::BatchProgress;
use proq_plan::schedule::action::BatchOutcome;
use proq_plan::schedule::{state, task_phase};
use proq_store::Store;

use super::batch_follower::{BatchFollower, FollowStatus, POLL_INTERVAL};
use super::batch_hints::{criteria_lines, paused_hints};
use super::batch_view;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::terminal::ui;

/// Follows a batch until no scheduler process works on it, and returns the batch's exit code.
pub(crate) fn follow(
    context: &CommandContext,
    project: &Project,
    mut follower: BatchFollower,
) -> CommandResult {
    let is_interactive = ui::stderr_is_terminal() && !context.ui.json && !context.ui.quiet;
    if is_interactive && std::env::var_os("TERM").is_none_or(|term| term != "dumb") {
        batch_view::show_until_end_or_detach(context, project, &mut follower)?;
    } else {
        // From here on, Ctrl-C ends this command; the batch continues.
        proq_base::interrupt::restore_default_action();
        while let FollowStatus::Running =
            follower.poll_and_print(&project.store, &mut |line| context.ui.status(line))?
        {
            std::thread::sleep(POLL_INTERVAL);
        }
    }
    print_batch_end(context, project, &follower)
}

/// Prints how a followed batch ended and what helps, and returns the exit code.
fn print_batch_end(context: &CommandContext, project: &Project, follower: &BatchFollower) -> CommandResult {
    let (batch, state) = (&follower.replay.batch, &follower.replay.state);
    let id = batch.id();
    let exit = batch_exit(&project.store, batch, state);
    if context.ui.json {
        context.ui.print_ordered_json(BatchProgress::read(
            project,
            batch,
            &batch.read_log_lines(&project.store)?,
            follower.has_scheduler,
        ));
        return Ok(exit);
    }
    let Some(end_text) = follower.replay.describe_end() else {
        context.ui.print_line(format!("nobody goes on with batch {id}: its process is gone"));
        context.ui.hint(format!("go on with it: git proq resume {id}"));
        return Ok(Exit::Refused);
    };
    context.ui.print_line(end_text);
    if let (Some(report), Some(_)) = (batch.record.criteria_report(&project.store), state.final_outcome()) {
        for line in criteria_lines(&report) {
            context.ui.print_line(line);
        }
    }
    let has_landings = follower.replay.log_summary.branch_tips.len() > 1;
    match state.final_outcome() {
        None => {
            context.ui.hint(format!("look: git proq status {id}"));
            let progress = BatchProgress::read(
                project,
                batch,
                &batch.read_log_lines(&project.store)?,
                follower.has_scheduler,
            );
            for hint in paused_hints(&progress) {
                context.ui.hint(hint);
            }
        }
        Some(outcome) => {
            if batch.record.has_unverified_criteria(&project.store) {
                context.ui.hint(format!("have its criteria looked at: git proq resume {id}"));
            }
            if outcome != BatchOutcome::Complete {
                context.ui.hint(format!("see what became of each task: git proq status {id}"));
            }
            if matches!(outcome, BatchOutcome::Aborted | BatchOutcome::Stopped) {
                context.ui.hint(format!("go on with it all the same: git proq resume {id}"));
            }
            if has_landings && !batch.record.auto_merge {
                let action = format!("land it on {}", batch.record.base);
                context.ui.hint(batch_landing::landing_hint(project, &batch.record, &action));
            }
        }
    }
    Ok(exit)
}

/// Returns the exit code for the outcome of a batch and of its criteria.
fn batch_exit(store: &Store, batch: &record::Batch, state: &state::State) -> Exit {
    let record = &batch.record;
    let has_unmet_criteria = || {
        record.strict
            && !record.criteria.is_empty()
            && !record.criteria_report(store).is_some_and(|report| report.are_all_met())
    };
    match exit_of_task_outcomes(state, batch.tasks.len()) {
        Exit::Success if has_unmet_criteria() => Exit::Agent,
        exit => exit,
    }
}

/// Returns the exit code for the outcome of a batch and of its first `tasks` tasks, without criteria.
fn exit_of_task_outcomes(state: &state::State, tasks: usize) -> Exit {
    let outcomes: Vec<task_phase::TaskOutcome> =
        (0..tasks).filter_map(|task| state.task_outcome(task)).collect();
    let is_conflict = |outcome: &task_phase::TaskOutcome| {
        matches!(outcome, task_phase::TaskOutcome::Failed(task_phase::FailureReason::ConflictUnresolved))
    };
    let is_failure = |outcome: &task_phase::TaskOutcome| {
        use proq_plan::schedule::task_phase::TaskOutcome::{Failed, NoChange, SetAside};
        matches!(outcome, NoChange | SetAside | Failed(_)) && !is_conflict(outcome)
    };
    match state.final_outcome() {
        Some(BatchOutcome::Complete) => Exit::Success,
        Some(BatchOutcome::Aborted) => Exit::Refused,
        _ if outcomes.iter().any(is_failure) => Exit::Agent,
        _ if outcomes.iter().any(is_conflict) => Exit::Conflicts,
        _ => Exit::Refused,
    }
}
