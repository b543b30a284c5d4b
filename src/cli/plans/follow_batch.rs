//! Following a batch to its end: a line per change, or a live view of its lanes on a terminal.

use proq_base::explain::Exit;
use proq_lib::lane::Project;
use proq_lib::swarm::landing::batch_landing;
use proq_lib::swarm::ops::follow::BatchFollower;
use proq_plan::schedule::action::BatchOutcome;

use super::batch_event_lines::BatchReplay;
use super::batch_hints::{criteria_lines, paused_hints};
use super::batch_view;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::terminal::ui;

/// Follows a batch until no scheduler process works on it, and returns the batch's exit code.
pub(crate) fn follow(context: &CommandContext, project: &Project, follower: BatchFollower) -> CommandResult {
    let mut watch = follower.watch(project)?;
    let mut replay = BatchReplay::new(follower);
    let is_interactive = ui::stderr_is_terminal() && !context.ui.json && !context.ui.quiet;
    if is_interactive && std::env::var_os("TERM").is_none_or(|term| term != "dumb") {
        batch_view::show_until_end_or_detach(context, project, &mut replay, &mut watch)?;
    } else {
        // From here on, Ctrl-C ends this command; the batch continues.
        proq_base::interrupt::restore_default_action();
        while replay.print_new_lines(project, &mut watch, &mut |line| context.ui.status(line))? {
            watch.wait_for_change()?;
        }
    }
    print_batch_end(context, project, &replay)
}

/// Prints how a followed batch ended and what helps, and returns the exit code.
fn print_batch_end(context: &CommandContext, project: &Project, replay: &BatchReplay) -> CommandResult {
    let BatchReplay { follower, state, log_summary } = replay;
    let record = &follower.batch.record;
    let id = &record.id;
    let exit = follower.exit(project, state);
    if context.ui.json {
        context.ui.print_ordered_json(follower.progress(project)?);
        return Ok(exit);
    }
    let Some(end_text) = replay.describe_end() else {
        context.ui.print_line(format!("nobody goes on with batch {id}: its process is gone"));
        context.ui.hint(format!("go on with it: git proq resume {id}"));
        return Ok(Exit::Refused);
    };
    context.ui.print_line(end_text);
    if let (Some(report), Some(_)) = (record.criteria_report(&project.store), state.final_outcome()) {
        for line in criteria_lines(&report) {
            context.ui.print_line(line);
        }
    }
    match state.final_outcome() {
        None => {
            context.ui.hint(format!("look: git proq status {id}"));
            for hint in paused_hints(&follower.progress(project)?) {
                context.ui.hint(hint);
            }
        }
        Some(outcome) => {
            if record.has_unverified_criteria(&project.store) {
                context.ui.hint(format!("have its criteria looked at: git proq resume {id}"));
            }
            if outcome != BatchOutcome::Complete {
                context.ui.hint(format!("see what became of each task: git proq status {id}"));
            }
            if matches!(outcome, BatchOutcome::Aborted | BatchOutcome::Stopped) {
                context.ui.hint(format!("go on with it all the same: git proq resume {id}"));
            }
            if log_summary.branch_tips.len() > 1 && !record.auto_merge {
                let action = format!("land it on {}", record.base);
                context.ui.hint(batch_landing::landing_hint(project, record, &action));
            }
        }
    }
    Ok(exit)
}
