//! Owns `git proq wait`.

use std::time::{Duration, Instant};

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde::Serialize;

use super::complete::lane_names;
use super::{Done, Failure, Session, ui};
use crate::agent;
use crate::event::{Event, Name};
use crate::explain::Exit;
use crate::lane::{Project, effective_state};
use crate::store::LockName;
use crate::store::records::{LaneRecord, LaneState};

/// Wait for lanes' agents to end
///
/// Without LANE, for every one that runs. Exits with 4 when one of them failed.
///
/// Example:
///     git proq wait payments auth && git proq merge payments auth
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Wait {
    /// The lanes to wait for; without one, every lane whose agent runs
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(lane_names))]
    pub(crate) lanes: Vec<String>,
}

/// One lane's line of the answer.
#[derive(Serialize)]
struct Ended {
    lane: String,
    state: LaneState,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

#[derive(Serialize)]
struct Answer {
    lanes: Vec<Ended>,
}

pub(super) fn run(session: &Session, args: &Wait) -> Done {
    let project = session.project()?;
    let mut names: Vec<String> = Vec::new();
    if args.lanes.is_empty() {
        for lane in project.lanes()? {
            let (state, _) = effective_state(&project, &lane)?;
            if state.is_busy() {
                names.push(lane.name);
            }
        }
    } else {
        for name in &args.lanes {
            names.push(project.lane(name)?.name);
        }
    }
    if names.is_empty() {
        session.ui.say("no agent is running");
    }
    let mut exit = Exit::Done;
    let mut all = Vec::new();
    for name in names {
        let (lane, state) = agent::wait(&project, &name)?;
        settle(&project, &lane)?;
        signal(session, &project, &lane, state);
        if exit == Exit::Done {
            exit = exit_of(state);
        }
        if !session.ui.json {
            session.ui.answer(line(&lane, state));
        }
        all.push(Ended { lane: lane.name, state, detail: lane.detail });
    }
    if session.ui.json {
        session.ui.object(Answer { lanes: all });
    }
    Ok(exit)
}

/// How long a supervisor may take from the state to the event.
const LAST_WORD: Duration = Duration::from_secs(1);

/// Lets the supervisor write its event, which follows the state: who has waited for the end finds it in the log.
pub(super) fn settle(project: &Project, lane: &LaneRecord) -> Result<(), Failure> {
    let since = Instant::now();
    let lock = LockName::Run(lane.name.clone());
    while since.elapsed() < LAST_WORD && project.store.locks().is_held(&lock)? {
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Has the terminal tell that a run has ended.
pub(super) fn signal(session: &Session, project: &Project, lane: &LaneRecord, state: LaneState) {
    let mut event = Event::now(Name::RunEnded, format!("lane '{}': {state}", lane.name));
    event.lane = Some(lane.name.clone());
    session.ui.signal(project, &event);
}

/// A lane and how it ended, on one line.
pub(super) fn line(lane: &LaneRecord, state: LaneState) -> String {
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
