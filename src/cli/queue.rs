//! Owns `git proq queue`.

use clap::Args;
use serde::Serialize;

use super::{Done, Session, table};
use crate::explain::Exit;
use crate::store::{self, Moment, Place};

/// Show who is landing lanes right now, and who waits for that
///
/// Each `git proq merge` waits until those before it have ended, first come, first served. One that is ended, with Ctrl-C
/// or in any other way, is out of the queue at once. While an agent resolves conflicts for a merge, that merge is not in the
/// queue; it comes back at the end to land what was resolved.
///
/// Examples:
///     git proq queue
///     git proq queue --json | jq '.queue | length'
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Queue {}

#[derive(Serialize)]
struct Row {
    position: usize,
    state: &'static str,
    /// Stopped with Ctrl-Z: nobody behind it goes on.
    stopped: bool,
    /// Every lane that is done, rather than those that are named.
    all: bool,
    lanes: Vec<String>,
    onto: Option<String>,
    pid: Option<u32>,
    host: Option<String>,
    command: Option<String>,
    since: Option<Moment>,
}

#[derive(Serialize)]
struct Answer {
    queue: Vec<Row>,
}

pub(super) fn run(session: &Session) -> Done {
    let project = session.project()?;
    let places = store::queue(project.store.locks())?;
    if session.ui.json {
        let queue = places.into_iter().enumerate().map(|(n, place)| row(n, place)).collect();
        session.ui.object(Answer { queue });
        return Ok(Exit::Done);
    }
    if places.is_empty() {
        session.ui.say("nobody is landing anything");
        return Ok(Exit::Done);
    }
    let rows = places.iter().enumerate().map(|(n, place)| cells(n, place.as_ref())).collect();
    session.ui.answer(table::render(&["#", "STATE", "LANDS", "PROCESS", "SINCE", "COMMAND"], rows));
    Ok(Exit::Done)
}

/// Whose turn it is, is landing.
fn state(n: usize) -> &'static str {
    if n == 0 { "landing" } else { "waiting" }
}

fn row(n: usize, place: Option<Place>) -> Row {
    let stopped = place.as_ref().is_some_and(|p| p.holder.is_frozen());
    let (wanted, holder) = place.map(|p| (p.wanted, p.holder)).unzip();
    let (lanes, onto) = wanted.map(|w| (w.lanes, w.onto)).unwrap_or_default();
    Row {
        position: n + 1,
        state: state(n),
        stopped,
        all: holder.is_some() && lanes.is_empty(),
        lanes,
        onto,
        pid: holder.as_ref().map(|h| h.pid),
        since: holder.as_ref().map(|h| h.since),
        host: holder.as_ref().map(|h| h.host.clone()),
        command: holder.map(|h| h.command),
    }
}

fn cells(n: usize, place: Option<&Place>) -> Vec<String> {
    let (number, state) = ((n + 1).to_string(), state(n).to_owned());
    let Some(Place { wanted, holder }) = place else {
        let unknown = || "?".to_owned();
        return vec![number, state, unknown(), unknown(), unknown(), "of another version of git-proq".into()];
    };
    let state = if holder.is_frozen() { format!("{state}, stopped (Ctrl-Z)") } else { state };
    let process =
        if holder.is_here() { holder.pid.to_string() } else { format!("{} on {}", holder.pid, holder.host) };
    let (lands, since) = (wanted.in_words(), holder.since.on_the_wall());
    vec![number, state, lands, process, since, holder.command.clone()]
}
