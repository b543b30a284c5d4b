//! `git proq wait`: waits for the agents of lanes to finish.

use std::time::Duration;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use proq_base::explain::Exit;
use proq_base::lane_name::LaneName;
use proq_lib::agent::control::wait;
use proq_lib::agent::control::wait::{WaitUntil, WaitedLane};
use proq_lib::lane::Project;
use proq_lib::lane::inspection::attempts;
use proq_lib::lane::state::lane_state::effective_state;
use proq_store::records::lane::AnyLane;
use proq_store::records::lane_state::LaneState;
use serde::Serialize;

use crate::cli::arguments::candidates::any_lane_and_group_names;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::failure::Failure;
use crate::cli::runs::run_end::{
    exit_for_state, notify_run_ended, print_pending_message_count, state_line, wait_for_final_event,
};
use crate::cli::terminal::ui;

/// Wait for lanes' agents to end
///
/// An agent in a window of tmux may also end its turn and leave a lane that is done: that is waited for.
///
/// Without LANE, for every one that runs. GROUP, the name that attempts at one task were made with (`git proq spawn --count`),
/// stands for all of them.
///
/// Exits with 4 when one of them failed or was stopped; with --any, when the one that ended first did. With --timeout, exits
/// with 5 when the time is up before; nothing is stopped then. A TIME of 0 only looks.
///
/// Examples:
///     git proq wait payments auth && git proq merge payments auth
///     git proq wait --any --timeout 30m
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
#[command(override_usage = "git proq wait [OPTIONS] [LANE|GROUP]...")]
pub(crate) struct Wait {
    /// The lanes to wait for; without one, every lane whose agent runs
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(any_lane_and_group_names))]
    pub(crate) lanes: Vec<String>,
    /// Until one of them has ended
    #[arg(long, conflicts_with = "all")]
    pub(crate) any: bool,
    /// Until all of them have; so it is without this, too
    #[arg(long)]
    pub(crate) all: bool,
    /// Give up after TIME: 90 or 90s, 5m, 1h
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) timeout: Option<Duration>,
}

/// JSON object of one lane that was waited for, in the output of `git proq wait`: one that has finished, or
/// still runs after a timeout.
#[derive(Serialize)]
pub(crate) struct WaitedLaneOutput {
    lane: LaneName,
    state: LaneState,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

#[derive(Serialize)]
struct WaitOutput {
    lanes: Vec<WaitedLaneOutput>,
    /// With `--any`, the lane that finished first.
    #[serde(skip_serializing_if = "Option::is_none")]
    first: Option<LaneName>,
    timed_out: bool,
}

pub(crate) fn run(context: &CommandContext, args: &Wait) -> CommandResult {
    let project = context.project()?;
    let lanes = match args.lanes.as_slice() {
        [] => running_lanes(&project)?,
        names => attempts::any_lanes_by_name(&project, names)?,
    };
    if lanes.is_empty() {
        context.ui.status("no agent is running");
    }
    let (until, limit) = (if args.any { WaitUntil::Any } else { WaitUntil::All }, args.timeout);
    let mut finished: Vec<(LaneName, Exit)> = Vec::new();
    let results = wait::wait_for_lanes(&project, &lanes, until, limit, &mut |waited| {
        finished.push((waited.lane.name.clone(), exit_for_state(waited.state)));
        // If waiting fails, the event is only notified later.
        drop(wait_for_final_event(&project.store, &waited.lane));
        notify_run_ended(context, &project, &waited.lane, waited.state);
        if !context.ui.json {
            context.ui.print_line(state_line(&waited.lane, waited.state));
            print_pending_message_count(context, &project.store, &waited.lane.name);
        }
    })?;
    let running_count = results.iter().filter(|waited| !waited.is_finished).count();
    let timed_out = running_count > 0 && (!args.any || finished.is_empty());
    if context.ui.json {
        let first = finished.first().filter(|_| args.any).map(|(name, _)| name.clone());
        let lanes = results.into_iter().map(WaitedLaneOutput::from).collect();
        context.ui.print_json(WaitOutput { lanes, first, timed_out });
    } else if timed_out {
        for waited in results.iter().skip(finished.len()) {
            context.ui.print_line(state_line(&waited.lane, waited.state));
        }
    }
    if let (true, Some(limit)) = (timed_out, limit) {
        let agents_text =
            if running_count == 1 { "1 agent is".to_owned() } else { format!("{running_count} agents are") };
        context.ui.warn(format!("gave up after {}; {agents_text} still at work", ui::short_duration(limit)));
        return Ok(Exit::Locked);
    }
    Ok(finished
        .into_iter()
        .map(|(_, exit)| exit)
        .find(|exit| *exit != Exit::Success)
        .unwrap_or(Exit::Success))
}

/// Returns the lanes whose agents start or run now.
fn running_lanes(project: &Project) -> Result<Vec<AnyLane>, Failure> {
    let mut lanes = Vec::new();
    for lane in project.all_lanes()? {
        if effective_state(project, &lane)?.0.is_busy() {
            lanes.push(lane);
        }
    }
    Ok(lanes)
}

impl From<WaitedLane> for WaitedLaneOutput {
    fn from(WaitedLane { lane, state, .. }: WaitedLane) -> WaitedLaneOutput {
        WaitedLaneOutput { lane: lane.name, state, detail: lane.detail }
    }
}

/// Parses a duration: `90` and `90s` are seconds, `5m` minutes, `1h` hours, `2d` days.
fn parse_duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: Option<u64> = match &text[digits.len()..] {
        "" | "s" => Some(1),
        "m" => Some(60),
        "h" => Some(60 * 60),
        "d" => Some(24 * 60 * 60),
        _ => None,
    };
    // `u64::parse` accepts a leading `+`.
    let count = digits.parse::<u64>().ok().filter(|_| !digits.starts_with('+'));
    let seconds = unit.and_then(|unit| count?.checked_mul(unit));
    seconds
        .map(Duration::from_secs)
        .ok_or_else(|| "a time is a number of seconds, or like 90s, 5m, 1h".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_durations_with_unit() {
        for (text, seconds) in [("0", 0), ("90", 90), ("90s", 90), ("5m", 300), ("1h", 3600), ("2d", 172_800)]
        {
            assert_eq!(parse_duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for invalid in [
            "",
            "m",
            "-1",
            "+1",
            "1.5h",
            "1 h",
            "5M",
            "1h30m",
            "９s",
            "99999999999999999999",
            "9999999999999999999d",
        ] {
            assert!(parse_duration(invalid).is_err(), "{invalid}");
        }
    }
}
