//! Owns `git proq events`.

use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::{Done, Session};
use crate::event::{Event, Log};
use crate::explain::Exit;

/// Print what happened: lanes made, agents ended, landings
///
/// Examples:
///     git proq events --last 20
///     git proq events -f --json | jq --unbuffered -r .message
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Events {
    /// Go on with what happens from now on; in JSON, one object a line
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Print only the last N; with --follow, begin with them
    #[arg(long, value_name = "N")]
    pub(crate) last: Option<usize>,
}

/// How often the log is looked at while it is followed.
const GLANCE: Duration = Duration::from_millis(100);

#[derive(Serialize)]
struct Answer {
    events: Vec<Event>,
}

pub(super) fn run(session: &Session, args: &Events) -> Done {
    let project = session.project()?;
    let log = Log::of(&project.store);
    let (mut events, mut at) = log.read_from(0)?;
    // Following starts with what comes, unless some of the past is asked for.
    let keep = args.last.unwrap_or(if args.follow { 0 } else { usize::MAX });
    events.drain(..events.len().saturating_sub(keep));
    if session.ui.json && !args.follow {
        session.ui.object(Answer { events });
        return Ok(Exit::Done);
    }
    if events.is_empty() && keep > 0 {
        session.ui.say("nothing has happened yet");
    }
    print(session, &events);
    if !args.follow {
        return Ok(Exit::Done);
    }
    loop {
        std::thread::sleep(GLANCE);
        let (new, end) = log.read_from(at)?;
        at = end;
        print(session, &new);
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
