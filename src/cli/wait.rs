//! Owns `git proq wait`.

use std::time::{Duration, Instant};

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde::Serialize;

use super::complete::any_lane_and_group_names;
use super::send::say_what_waits;
use super::{Done, Failure, Session, ui};
use crate::agent::{self, Until, Waited};
use crate::event::{Event, Name};
use crate::explain::Exit;
use crate::lane::{self, Project, effective_state};
use crate::store::LockName;
use crate::store::records::{AnyLane, LaneState};

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
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) timeout: Option<Duration>,
}

/// One lane's line of the answer.
#[derive(Serialize)]
pub(super) struct Ended {
    lane: String,
    state: LaneState,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

#[derive(Serialize)]
struct Answer {
    lanes: Vec<Ended>,
    /// With --any, the one that ended first.
    #[serde(skip_serializing_if = "Option::is_none")]
    first: Option<String>,
    timed_out: bool,
}

pub(super) fn run(session: &Session, args: &Wait) -> Done {
    let project = session.project()?;
    let lanes = match args.lanes.as_slice() {
        [] => at_work(&project)?,
        names => lane::any_named(&project, names)?,
    };
    if lanes.is_empty() {
        session.ui.say("no agent is running");
    }
    let (until, limit) = (if args.any { Until::Any } else { Until::All }, args.timeout);
    let mut told: Vec<(String, Exit)> = Vec::new();
    let all = agent::wait_for(&project, &lanes, until, limit, &mut |waited| {
        told.push((waited.lane.name.clone(), exit_of(waited.state)));
        // A last word that cannot be waited for is one that is told of late.
        drop(settle(&project, &waited.lane));
        signal(session, &project, &waited.lane, waited.state);
        if !session.ui.json {
            session.ui.answer(line(&waited.lane, waited.state));
            say_what_waits(session, &project, &waited.lane.name);
        }
    })?;
    let open = all.iter().filter(|waited| !waited.over).count();
    let timed_out = open > 0 && (!args.any || told.is_empty());
    if session.ui.json {
        let first = told.first().filter(|_| args.any).map(|(name, _)| name.clone());
        let lanes = all.into_iter().map(Ended::from).collect();
        session.ui.object(Answer { lanes, first, timed_out });
    } else if timed_out {
        for waited in all.iter().skip(told.len()) {
            session.ui.answer(line(&waited.lane, waited.state));
        }
    }
    if let (true, Some(limit)) = (timed_out, limit) {
        let those = if open == 1 { "1 agent is".to_owned() } else { format!("{open} agents are") };
        session.ui.warn(format!("gave up after {}; {those} still at work", ui::span(limit)));
        return Ok(Exit::Locked);
    }
    Ok(told.into_iter().map(|(_, exit)| exit).find(|exit| *exit != Exit::Done).unwrap_or(Exit::Done))
}

fn at_work(project: &Project) -> Result<Vec<AnyLane>, Failure> {
    let mut lanes = Vec::new();
    for lane in project.every_lane()? {
        if effective_state(project, &lane)?.0.is_busy() {
            lanes.push(lane);
        }
    }
    Ok(lanes)
}

impl From<Waited> for Ended {
    fn from(Waited { lane, state, .. }: Waited) -> Ended {
        Ended { lane: lane.name, state, detail: lane.detail }
    }
}

/// A time as a person gives it: `90` and `90s` are seconds, `5m` minutes, `1h` hours, `2d` days.
fn time(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: Option<u64> = match &text[digits.len()..] {
        "" | "s" => Some(1),
        "m" => Some(60),
        "h" => Some(60 * 60),
        "d" => Some(24 * 60 * 60),
        _ => None,
    };
    // `parse` takes a sign too.
    let count = digits.parse::<u64>().ok().filter(|_| !digits.starts_with('+'));
    let seconds = unit.and_then(|unit| count?.checked_mul(unit));
    seconds
        .map(Duration::from_secs)
        .ok_or_else(|| "a time is a number of seconds, or like 90s, 5m, 1h".to_owned())
}

/// How long a supervisor may take from the state to the event.
const LAST_WORD: Duration = Duration::from_secs(1);

/// Lets the supervisor write its event, which follows the state: who has waited for the end finds it in the log.
pub(super) fn settle(project: &Project, lane: &AnyLane) -> Result<(), Failure> {
    let since = Instant::now();
    let lock = LockName::Run(lane.name.clone());
    // The session of one that rests goes on.
    while since.elapsed() < LAST_WORD
        && !lane::is_idle(project, lane)
        && project.store.locks().is_held(&lock)?
    {
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Has the terminal tell that a run has ended.
pub(super) fn signal(session: &Session, project: &Project, lane: &AnyLane, state: LaneState) {
    let mut event = Event::now(Name::RunEnded, format!("lane '{}': {state}", lane.name));
    event.lane = Some(lane.name.clone());
    session.ui.signal(project, &event);
}

/// A lane and how it ended, on one line.
pub(super) fn line(lane: &AnyLane, state: LaneState) -> String {
    let more = lane.detail.as_deref().map(|d| format!(" ({d})")).unwrap_or_default();
    format!("{}: {}{more}", lane.name, ui::state(state))
}

/// The exit code that a run's end asks for.
pub(super) fn exit_of(state: LaneState) -> Exit {
    match state {
        LaneState::Failed | LaneState::Stalled | LaneState::Stopped | LaneState::Orphaned => Exit::Agent,
        _ => Exit::Done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_numbers_with_a_unit() {
        for (text, seconds) in [("0", 0), ("90", 90), ("90s", 90), ("5m", 300), ("1h", 3600), ("2d", 172_800)]
        {
            assert_eq!(time(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for bad in [
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
            assert!(time(bad).is_err(), "{bad}");
        }
    }
}
