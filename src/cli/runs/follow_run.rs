//! Follows a run that this command has started until it finishes, with one line of progress.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use proq_base::explain::Exit;
use proq_base::terminal_text;
use proq_lib::agent::command::agent_command::AgentCommand;
use proq_lib::agent::control::wait::wait_for_final_event;
use proq_lib::lane::Project;
use proq_lib::ops::follow_run::{AutoMergeResult, follow_log, last_run_record, wait_for_landing};
use proq_lib::ops::reporter::SilentReporter;
use proq_lib::ops::start::spawn::report::LaneReport;
use proq_lib::ops::start::spawn_guest::GuestReport;
use proq_lib::types::{AnyLane, LaneState, RunState};

use super::log_view::LogView;
use super::{guest_lane_output, run_end};
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::failure::Failure;
use crate::cli::terminal::ui;

/// Prints the final state of a run and the output of its automatic landing; returns the exit code of the
/// landing.
fn print_landing(
    context: &CommandContext,
    lane: &AnyLane,
    command: Option<&AgentCommand>,
    landing: &AutoMergeResult,
) -> Exit {
    if context.ui.json {
        print_json(context, &landing.lane, command, landing.lane.state());
    } else {
        context.ui.print_line(run_end::state_line(lane, LaneState::Done));
        let text = proq_base::regular_file::read_store_file(&landing.log_path).unwrap_or_default();
        context.ui.print_text(&String::from_utf8_lossy(&text));
    }
    if landing.has_no_landing_outcome {
        context.ui.warn("its automatic merge ended without a result; it is retried after the next landing");
    }
    landing.exit
}

/// Creates the progress line; hidden if standard error is not a terminal.
fn run_progress_line(context: &CommandContext, lane: &AnyLane) -> ProgressBar {
    if context.ui.quiet || context.ui.json || !ui::stderr_is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix} {elapsed} {wide_msg:.dim}") {
        bar.set_style(style);
    }
    bar.set_prefix(lane.name.to_string());
    bar.enable_steady_tick(Duration::from_secs(1));
    bar
}

/// Watches a run until it finishes, with the last line of its log in the progress line.
fn watch_run(project: &Project, lane: &AnyLane, bar: &ProgressBar) -> Result<(AnyLane, LaneState), Failure> {
    // From here on Ctrl-C only ends this command. The agent continues under its supervisor.
    proq_base::interrupt::restore_default_action();
    let log = project.store.layout().run_log(&lane.name, lane.last_run);
    let mut view = LogView::from_record(last_run_record(project, lane)?.as_ref(), &lane.path, false);
    let result = follow_log(project, lane, &log, &SilentReporter, &mut |bytes| {
        let output = view.convert(bytes);
        let text = String::from_utf8_lossy(&output);
        if let Some(line) = text.lines().rev().find(|line| !line.trim().is_empty()) {
            bar.set_message(terminal_text::escape_line(&console::strip_ansi_codes(line)));
        }
    })?;
    wait_for_final_event(project, lane)?;
    Ok(result)
}

/// Follows a run with one line of progress, without printing its result.
pub(crate) fn follow_quietly(
    context: &CommandContext,
    project: &Project,
    lane: &AnyLane,
) -> Result<(AnyLane, LaneState), Failure> {
    let bar = run_progress_line(context, lane);
    let (current_lane, state) = watch_run(project, lane, &bar)?;
    bar.finish_and_clear();
    run_end::notify_run_ended(context, project, &current_lane, state);
    Ok((current_lane, state))
}

/// Follows a run with one line of progress, prints its result, and returns its exit code.
pub(crate) fn follow_and_report(
    context: &CommandContext,
    project: &Project,
    lane: &AnyLane,
    command: Option<&AgentCommand>,
) -> CommandResult {
    let bar = run_progress_line(context, lane);
    let (current_lane, state) = watch_run(project, lane, &bar)?;
    if lane.auto_merge {
        bar.set_message("landing");
    }
    let landing = lane.auto_merge.then(|| wait_for_landing(project, lane, context)).transpose()?;
    bar.finish_and_clear();
    run_end::notify_run_ended(context, project, &current_lane, state);
    if let Some(landing) = landing.filter(|landing| landing.run_state == Some(RunState::Done)) {
        return Ok(print_landing(context, lane, command, &landing));
    }
    let lane = current_lane;
    if lane.is_read_only() {
        return guest_lane_output::print_answer_or_state(context, project, &lane, command, state);
    }
    if context.ui.json {
        print_json(context, &lane, command, state);
    } else {
        context.ui.print_line(run_end::state_line(&lane, state));
        run_end::print_pending_message_count(context, project, &lane.name);
        if let Some(run) = last_run_record(project, &lane)? {
            run_end::hint_at_denied_calls(context, project, &lane.name, &run);
        }
    }
    Ok(run_end::exit_for_state(state))
}

/// Prints the JSON record of a lane after its run.
fn print_json(context: &CommandContext, lane: &AnyLane, command: Option<&AgentCommand>, state: LaneState) {
    match lane.clone().into_owned_lane() {
        Ok(lane) => context.ui.print_json(LaneReport::of_lane(&lane, command, state)),
        Err(_) => context.ui.print_json(GuestReport::of_lane(lane, command, state, None)),
    }
}
