//! `git proq wait`: waits for the agents of lanes to finish.

use std::time::Duration;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use proq_base::explain::Exit;
use proq_lib::agent::control::wait::{WaitUntil, WaitedLane};
use proq_lib::lane::inspection::attempts;
use proq_lib::ops::reporter::Progress;
use proq_lib::ops::wait;
use proq_lib::ops::wait::WaitRequest;

use crate::cli::arguments::candidates::any_lane_and_group_names;
use crate::cli::arguments::numbers::parse_duration;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::runs::run_end::{exit_for_state, notify_run_ended, print_pending_message_count, state_line};
use crate::cli::runs::wait_view::WaitView;
use crate::cli::terminal::ui;

/// Wait for agents to finish
///
/// Without LANE, waits for every running agent. GROUP, the name that attempts were started with (`git proq
/// spawn --count`), means all of them. An agent in a tmux window also counts as finished once its turn has
/// ended and its lane is done.
///
/// On a terminal, a line per lane shows its state, time, cost and last activity.
///
/// Exits with 4 if an agent failed or was stopped; with --any, if that was the first to finish. With
/// --timeout, exits with 5 when the time is over; nothing is stopped. A TIME of 0 does not wait.
///
/// Examples:
///     git proq wait payments auth && git proq merge payments auth
///     git proq wait --any --timeout 30m
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
#[command(override_usage = "git proq wait [OPTIONS] [LANE|GROUP]...")]
pub(crate) struct Wait {
    /// Lanes or groups to wait for [default: all running]
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(any_lane_and_group_names))]
    pub(crate) lanes: Vec<String>,
    /// Return as soon as one finishes
    #[arg(long, conflicts_with = "all")]
    pub(crate) any: bool,
    /// Wait for all of them (default)
    #[arg(long)]
    pub(crate) all: bool,
    /// Give up after TIME, such as 90s, 5m or 1h
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) timeout: Option<Duration>,
}

pub(crate) fn run(context: &CommandContext, args: &Wait) -> CommandResult {
    let project = context.project()?;
    let lanes = attempts::any_lanes_by_name(&project, &args.lanes)?;
    let until = if args.any { WaitUntil::Any } else { WaitUntil::All };
    let plan = wait::plan(&project, &WaitRequest { lanes, until, timeout: args.timeout })?;
    let view = WaitView::start(context, plan.lane_names());
    if plan.is_empty() {
        context.ui.status("no agent is running");
    }
    let outcome = plan.execute(&project, &|progress: Progress<'_>| {
        let Progress::RunEnded(WaitedLane { lane, state, .. }) = progress else { return };
        view.suspend(|| {
            notify_run_ended(context, &project, lane, *state);
            if !context.ui.json {
                context.ui.print_line(state_line(lane, *state));
                print_pending_message_count(context, &project, &lane.name);
            }
        });
    });
    drop(view);
    let outcome = outcome?;
    let (timed_out, running_count) = (outcome.timed_out, outcome.running_count());
    let ended = outcome.finished.iter().map(|state| exit_for_state(*state));
    let exit = ended.clone().find(|exit| *exit != Exit::Success).unwrap_or(Exit::Success);
    context.show(&outcome, |context, outcome| {
        for waited in outcome.waited.iter().skip(ended.len()).filter(|_| timed_out) {
            context.ui.print_line(state_line(&waited.lane, waited.state));
        }
    })?;
    if let (true, Some(limit)) = (timed_out, args.timeout) {
        let are = if running_count == 1 { "is" } else { "are" };
        let (limit, agents) = (ui::short_duration(limit), ui::pluralize(running_count, "agent"));
        context.ui.warn(format!("timed out after {limit}: {agents} {are} still running"));
        return Ok(Exit::Locked);
    }
    Ok(exit)
}
