//! Owns `git proq events`.

use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::{Done, Session};
use crate::event::{Event, Reader, last_number};
use crate::explain::Exit;

/// Print what happened: lanes made, agents ended, landings
///
/// Each event has a number, one more than the one before it. A program that remembers the last one it has seen goes on from
/// there with --since.
///
/// Examples:
///     git proq events --last 20
///     git proq events -f --json | jq --unbuffered -r .message
///     git proq events -f --since 120 --json
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Events {
    /// Go on with what happens from now on; in JSON, one object a line
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Print only the last N; with --follow, begin with them
    #[arg(long, value_name = "N")]
    pub(crate) last: Option<usize>,
    /// Print only what came after number N; with --follow, begin with it
    #[arg(long, value_name = "N", conflicts_with = "last")]
    pub(crate) since: Option<u64>,
}

/// How often the log is looked at while it is followed.
const GLANCE: Duration = Duration::from_millis(100);

#[derive(Serialize)]
struct Answer {
    events: Vec<Event>,
}

pub(super) fn run(session: &Session, args: &Events) -> Done {
    let project = session.project()?;
    // Following starts with what comes, unless some of the past is asked for.
    let asked = args.last.is_some() || args.since.is_some();
    let begin = match args.since {
        Some(number) => number,
        None if args.follow && !asked => last_number(&project.store)?,
        None => 0,
    };
    let mut reader = Reader::after(&project.store, begin);
    let mut events = reader.poll()?;
    let first = events.first().map(|event| event.n);
    if let Some((asked, first)) =
        args.since.zip(first).filter(|(asked, first)| *first > asked.saturating_add(1))
    {
        let lost = asked.saturating_add(1);
        session.ui.warn(format!(
            "events {lost} to {} are not kept any more (event.keep): these begin with number {first}",
            first - 1
        ));
    }
    let keep = args.last.unwrap_or(usize::MAX);
    events.drain(..events.len().saturating_sub(keep));
    if session.ui.json && !args.follow {
        session.ui.object(Answer { events });
        return Ok(Exit::Done);
    }
    if events.is_empty() && keep > 0 && (asked || !args.follow) {
        session.ui.say(if reader.last() == 0 {
            "nothing has happened yet"
        } else {
            "nothing has happened since"
        });
    }
    print(session, &events);
    if !args.follow {
        return Ok(Exit::Done);
    }
    loop {
        std::thread::sleep(GLANCE);
        let new = reader.poll()?;
        print(session, &new);
        for event in &new {
            session.ui.signal(&project, event);
        }
    }
}

fn print(session: &Session, events: &[Event]) {
    for event in events {
        if session.ui.json {
            session.ui.object_line(event);
        } else {
            session.ui.answer(format!("{} {:>4}  {}", event.at, event.n, event.message));
        }
    }
}
