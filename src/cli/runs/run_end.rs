//! The end of a run for the user: its line, exit code, event, and the messages that are still pending.

use proq_base::explain::Exit;
use proq_base::hint;
use proq_lib::agent::command::allowed_commands::allow_denied_command;
use proq_lib::event::log::{Event, EventName};
use proq_lib::lane::Project;
use proq_lib::lane::messages::inbox;
use proq_lib::lane::messages::inbox::Inbox;
use proq_lib::types::{AnyLane, LaneName, LaneState, RunRecord};

use crate::cli::invocation::context::CommandContext;
use crate::cli::terminal::ui;

/// Makes the terminal notify the user that a run has ended.
pub(crate) fn notify_run_ended(
    context: &CommandContext,
    project: &Project,
    lane: &AnyLane,
    state: LaneState,
) {
    let mut event = Event::new(EventName::RunEnded, format!("lane '{}': {state}", lane.name));
    event.lane = Some(lane.name.to_string());
    context.ui.notify_terminal(project, &event);
}

/// Formats a lane and its final state as one line.
pub(crate) fn state_line(lane: &AnyLane, state: LaneState) -> String {
    let detail_suffix = lane.detail.as_deref().map(|d| format!(" ({d})")).unwrap_or_default();
    format!("{}: {}{detail_suffix}", lane.name, ui::styled_state(state))
}

/// Returns the exit code for the final state of a run.
pub(crate) fn exit_for_state(state: LaneState) -> Exit {
    match state {
        LaneState::Failed | LaneState::Stalled | LaneState::Stopped | LaneState::Orphaned => Exit::Agent,
        _ => Exit::Success,
    }
}

/// Prints a hint about the tool calls that were denied in `run`, with the command that allows them.
pub(crate) fn hint_at_denied_calls(
    context: &CommandContext,
    project: &Project,
    lane: &LaneName,
    run: &RunRecord,
) {
    let summary = &run.summary;
    if summary.denied > 0 {
        let were = if summary.denied == 1 { "call was" } else { "calls were" };
        context.ui.hint(hint!("{} {were} denied: git proq logs {lane}", summary.denied));
        hint_at_allowing(context, project, run);
    }
}

/// Prints a hint with the command that allows the first command that was denied in `run`, if one was.
pub(crate) fn hint_at_allowing(context: &CommandContext, project: &Project, run: &RunRecord) {
    if let Some(allow) = allow_denied_command(project, run) {
        context.ui.hint(hint!("allow it from now on: {allow}"));
    }
}

/// Prints how many messages are pending in a lane, if any are.
pub(crate) fn print_pending_message_count(context: &CommandContext, project: &Project, name: &LaneName) {
    let count = Inbox::new(&project.store, name).count();
    if count > 0 {
        context.ui.status(inbox::pending_text(name, count));
    }
}
