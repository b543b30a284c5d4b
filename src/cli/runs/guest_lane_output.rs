//! Output about lanes without a branch of their own: the plan, the run and its answer.

use std::path::{Path, PathBuf};

use proq_base::lane_name::LaneName;
use proq_base::terminal_text;
use proq_lib::agent::command::agent_command::AgentCommand;
use proq_lib::errors::error;
use proq_lib::session::read_only;
use proq_lib::session::read_only::GuestLanePlan;
use proq_store::Store;
use proq_store::paths::layout::Layout;
use proq_store::paths::path_form;
use proq_store::records::lane::{AnyLane, LanePurpose};
use proq_store::records::lane_state::LaneState;
use serde::Serialize;

use super::run_end;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::failure::Failure;

/// JSON output about a run without a dedicated branch.
#[derive(Serialize)]
struct GuestRunOutput<'a> {
    lane: &'a LaneName,
    mode: LanePurpose,
    #[serde(serialize_with = "path_form::serialize")]
    path: &'a Path,
    base: &'a str,
    /// Id of the commit that the run reads or works on.
    #[serde(rename = "start")]
    start_commit: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    permission: Option<String>,
    state: LaneState,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
    /// The answer of the run, if the command waited for it.
    #[serde(rename = "answer", skip_serializing_if = "Option::is_none")]
    answer: Option<String>,
    dry_run: bool,
}

/// Formats the branch or revision that a run reads or works on, with its short commit id.
pub(crate) fn base_and_start_text(lane: &AnyLane) -> String {
    format!("{} ({})", lane.base, lane.start.short())
}

pub(crate) fn print_plan(
    context: &CommandContext,
    plan: &GuestLanePlan<'_>,
    command: &AgentCommand,
    purpose: LanePurpose,
    attached: &[PathBuf],
) {
    let target = &plan.target;
    if context.ui.json {
        context.ui.print_json(GuestRunOutput {
            lane: &plan.name,
            mode: purpose,
            path: &target.dir,
            base: &target.rev_name,
            start_commit: target.commit.to_string(),
            agent: Some(&command.agent),
            command: Some(command.display_command_line()),
            permission: command.permission_level(),
            state: LaneState::Idle,
            detail: None,
            answer: None,
            dry_run: true,
        });
        return;
    }
    context.ui.print_line(format!("would make lane '{}' for {}", plan.name, error::purpose_phrase(purpose)));
    let verb_phrase = if purpose.is_read_only() { "looks at" } else { "works on" };
    context.ui.print_line(format!("  {verb_phrase}  {} ({})", target.rev_name, target.commit.short()));
    context.ui.print_line(format!("  in        {}", target.dir.display()));
    context.ui.print_line(format!("  runs      {}", command.display_command_line()));
    for file in attached {
        context.ui.print_line(format!("  along     {}", file.display()));
    }
}

pub(crate) fn print_json(
    context: &CommandContext,
    lane: &AnyLane,
    command: Option<&AgentCommand>,
    state: LaneState,
    answer: Option<String>,
) {
    context.ui.print_json(GuestRunOutput {
        lane: &lane.name,
        mode: lane.purpose().unwrap_or(LanePurpose::Answer),
        path: &lane.path,
        base: &lane.base,
        start_commit: lane.start.to_string(),
        agent: lane.agent.as_deref(),
        command: command.map(AgentCommand::display_command_line),
        permission: command.and_then(AgentCommand::permission_level),
        state,
        detail: lane.detail.as_deref(),
        answer,
        dry_run: false,
    });
}

/// Prints the answer of a finished run and nothing else on standard output, so that it can be piped. The
/// status goes to standard error.
pub(crate) fn print_answer_or_state(
    context: &CommandContext,
    store: &Store,
    lane: &AnyLane,
    command: Option<&AgentCommand>,
    state: LaneState,
) -> CommandResult {
    let dir = store.layout().lane(&lane.name);
    let answer = match state {
        LaneState::Done => read_only::run_answer(&dir, lane.last_run)?,
        _ => None,
    };
    if context.ui.json {
        print_json(context, lane, command, state, answer);
        return Ok(run_end::exit_for_state(state));
    }
    match answer {
        Some(text) => print_agent_text(context, &text),
        None => context.ui.status(run_end::state_line(lane, state)),
    }
    if let (LaneState::Done, Some(detail)) = (state, &lane.detail) {
        context.ui.status(detail.clone());
    }
    Ok(run_end::exit_for_state(state))
}

/// Prints an agent's text with terminal control characters escaped.
pub(crate) fn print_agent_text(context: &CommandContext, text: &str) {
    for line in terminal_text::escape_lines(text) {
        context.ui.print_line(line);
    }
}

/// Returns the last answer of a lane, and the path of the file that contains it.
pub(crate) fn last_answer(dir: &Path, lane: &AnyLane) -> Result<Option<(String, PathBuf)>, Failure> {
    let latest = read_only::last_answer(dir, lane)?;
    Ok(latest.map(|(run, text)| (text, Layout::run_answer_in(dir, run))))
}
