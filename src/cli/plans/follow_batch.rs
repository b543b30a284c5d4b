//! Following a batch to its end: a line per change, or a live view of its lanes on a terminal.

use proq_base::explain::Exit;
use proq_base::hint;
use proq_lib::board::batch_hints::end_hints;
use proq_lib::lane::Project;
use proq_lib::swarm::ops::follow::BatchFollower;
use proq_lib::swarm::status::progress::BatchProgress;

use super::batch_event_lines::BatchReplay;
use super::batch_view;
use super::report_text::criteria_lines;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::terminal::ui;

/// Follows a batch until no scheduler process works on it, and returns the batch's exit code.
pub(crate) fn follow(context: &CommandContext, project: &Project, follower: BatchFollower) -> CommandResult {
    let mut watch = follower.watch(project)?;
    let mut replay = BatchReplay::new(follower);
    let is_interactive = ui::stderr_is_terminal() && !context.ui.json && !context.ui.quiet;
    if is_interactive && std::env::var_os("TERM").is_none_or(|term| term != "dumb") {
        if !batch_view::show_until_end_or_detach(context, project, &mut replay, &mut watch)? {
            return Ok(Exit::Success);
        }
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
    let exit = follower.exit(project, state);
    // All that is printed and the exit code are about one state: that of the lines that were shown.
    let progress =
        BatchProgress::from_state(project, &follower.batch, state, log_summary, follower.has_scheduler);
    if context.ui.json {
        context.ui.print_ordered_json(progress);
        return Ok(exit);
    }
    let id = follower.batch.id();
    let Some(end_text) = end_text(&progress) else {
        context.ui.print_line(format!("batch {id} is not running: its process has ended"));
        context.ui.hint(hint!("resume it: git proq batch resume {id}"));
        return Ok(Exit::Refused);
    };
    context.ui.print_line(end_text);
    if let Some(report) = progress.criteria.as_ref().filter(|_| progress.state == "over") {
        for line in criteria_lines(report) {
            context.ui.print_line(line);
        }
    }
    // The lanes of a paused batch may be repaired by now.
    let current = if progress.state == "paused" { follower.progress(project)? } else { progress };
    for hint in end_hints(project, &follower.batch.record, &current, log_summary) {
        context.ui.hint(hint);
    }
    Ok(exit)
}

/// Describes the end or the pause of a batch in one sentence; none while the batch runs.
fn end_text(progress: &BatchProgress) -> Option<String> {
    let state_text = match (progress.state, progress.reason.as_deref()?) {
        ("over", "complete") => "is complete".to_owned(),
        ("over", "partly") => "is over".to_owned(),
        ("over", "stopped") => "was stopped by a failure".to_owned(),
        ("over", _) => "was aborted".to_owned(),
        ("paused", "asked") => "is paused".to_owned(),
        (_, reason) => format!("is paused, since {reason}"),
    };
    let counts = progress.counts;
    let done_before = match counts.done_before {
        0 => String::new(),
        n => format!(", {n} had been done before"),
    };
    let tasks = ui::pluralize(counts.tasks, "task");
    Some(format!("batch {} {state_text}: {} of {tasks} landed{done_before}", progress.batch, counts.landed))
}
