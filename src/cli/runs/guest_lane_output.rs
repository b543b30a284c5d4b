//! Output about lanes without a branch of their own: the plan, the run and its answer.

use proq_base::terminal_text;
use proq_lib::agent::command::agent_command::AgentCommand;
use proq_lib::errors::error;
use proq_lib::lane::Project;
use proq_lib::ops::start::spawn_guest::{GuestReport, GuestSpawnPlan};
use proq_lib::session::read_only;
use proq_lib::types::{AnyLane, LaneState};

use super::run_end;
use crate::cli::invocation::context::{CommandContext, CommandResult};

/// Formats the branch or revision that a run reads or works on, with its short commit id.
pub(crate) fn base_and_start_text(lane: &AnyLane) -> String {
    format!("{} ({})", lane.base, lane.start.short())
}

/// Prints the lane that would be created.
pub(crate) fn print_plan(context: &CommandContext, plan: &GuestSpawnPlan<'_>) {
    let GuestSpawnPlan { lane, command, purpose, attachments } = plan;
    let (ui, target) = (context.ui, &lane.target);
    ui.print_line(format!("would create lane '{}' for {}", lane.name, error::purpose_phrase(*purpose)));
    let verb_phrase = if purpose.is_read_only() { "looks at" } else { "works on" };
    ui.print_line(format!("  {verb_phrase}  {} ({})", target.rev_name, target.commit.short()));
    ui.print_line(format!("  in        {}", target.dir.display()));
    ui.print_line(format!("  runs      {}", command.display_command_line()));
    ui.print_each("  attach    ", attachments.iter().map(|file| file.display()));
}

/// Prints the answer of a finished run and nothing else on standard output, so that it can be piped. The
/// status goes to standard error.
pub(crate) fn print_answer_or_state(
    context: &CommandContext,
    project: &Project,
    lane: &AnyLane,
    command: Option<&AgentCommand>,
    state: LaneState,
) -> CommandResult {
    let dir = project.store.layout().lane(&lane.name);
    let answer = match state {
        LaneState::Done => read_only::run_answer(&dir, lane.last_run)?,
        _ => None,
    };
    if context.ui.json {
        context.ui.print_json(GuestReport::of_lane(lane, command, state, answer));
        return Ok(run_end::exit_for_state(state));
    }
    match answer {
        Some(text) => print_agent_text(context, &text),
        None => context.ui.status(run_end::state_line(lane, state)),
    }
    if let (LaneState::Done, Some(detail)) = (state, &lane.detail) {
        context.ui.status(detail);
    }
    Ok(run_end::exit_for_state(state))
}

/// Prints an agent's text with terminal control characters escaped.
pub(crate) fn print_agent_text(context: &CommandContext, text: &str) {
    context.ui.print_each("", terminal_text::escape_lines(text));
}
