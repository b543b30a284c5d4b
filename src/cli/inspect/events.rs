//! The `git proq events` command.

use clap::Args;
use console::{Style, style};
use proq_base::explain::Exit;
use proq_lib::event::log::{Event, EventName, last_event_number};
use proq_lib::event::reader::EventReader;
use proq_lib::lane::Project;
use proq_lib::types::{Moment, now};
use proq_lib::watch::subject::Subject;
use proq_lib::watch::watcher::Watch;
use serde::Serialize;

use crate::cli::arguments::numbers::parse_duration;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::failure::Failure;
use crate::cli::invocation::usage_error::UsageError;
use crate::cli::terminal::table::output_width;
use crate::cli::terminal::{page, reader as output_reader};

/// Show events: lanes created, agents finished, merges
///
/// Each event has a number, one higher than the previous. A program that remembers the last number it has
/// seen continues from there with --since. A time means the events since then: a duration such as 1h or 2d, or
/// a date as git's options take it.
///
/// Examples:
///     git proq events --last 20
///     git proq events -f --json | jq --unbuffered -r .message
///     git proq events -f --since 120 --json
///     git proq events --since 2h
///     git proq events --since yesterday
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Events {
    /// Follow new events
    ///
    /// With --json, prints one object per line.
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Only the last N events
    #[arg(long, value_name = "N")]
    pub(crate) last: Option<usize>,
    /// Start after event number N, or at a time: 1h, 2d, 2026-11-30, yesterday
    #[arg(long, value_name = "N|TIME", conflicts_with = "last")]
    pub(crate) since: Option<String>,
}

/// Where past events start.
#[derive(Clone, Copy)]
enum EventStart {
    /// After the event with this number.
    Number(u64),
    /// At this time.
    Time(Moment),
}

impl EventStart {
    /// Reads the value of `--since`.
    fn parse(project: &Project, text: &str) -> Result<EventStart, Failure> {
        if let Ok(number) = text.parse() {
            return Ok(EventStart::Number(number));
        }
        if let Ok(span) = parse_duration(text) {
            return Ok(EventStart::Time(now().saturating_sub(span)));
        }
        let problem = "the value of --since is neither the number of an event nor a time";
        let time = project.parse_time(text)?;
        Ok(EventStart::Time(time.ok_or_else(|| UsageError::missing(problem, "git proq events --since 2h"))?))
    }

    /// Returns whether an event is not older than this.
    fn includes(self, event: &Event) -> bool {
        match self {
            EventStart::Number(number) => event.n > number,
            EventStart::Time(time) => event.at >= time,
        }
    }
}

#[derive(Serialize)]
struct EventsOutput {
    events: Vec<Event>,
}

pub(crate) fn run(context: &CommandContext, args: &Events) -> CommandResult {
    let project = context.project()?;
    // Watched before anything is read, so that no event is missed in between.
    let mut watch = args.follow.then(|| Watch::new(&project)).transpose()?;
    if let Some(watch) = &mut watch {
        watch.add(Subject::Events);
    }
    // Following starts with new events, unless past ones are requested.
    let wants_past = args.last.is_some() || args.since.is_some();
    let since = args.since.as_deref().map(|text| EventStart::parse(&project, text)).transpose()?;
    let start_after = match since {
        Some(EventStart::Number(number)) => number,
        None if args.follow && !wants_past => last_event_number(&project.store)?,
        Some(EventStart::Time(_)) | None => 0,
    };
    let mut reader = EventReader::start_after(&project.store, start_after);
    let mut events = reader.poll()?;
    if let (Some(EventStart::Number(number)), Some(first)) = (since, events.first().map(|event| event.n))
        && first > number.saturating_add(1)
    {
        let wanted = number + 1;
        let last = first - 1;
        context.ui.warn(format!(
            "events {wanted} to {last} have expired (event.keep): the first one here is number {first}"
        ));
    }
    events.retain(|event| since.is_none_or(|since| since.includes(event)));
    let max_events = args.last.unwrap_or(usize::MAX);
    events.drain(..events.len().saturating_sub(max_events));
    if context.ui.json && !args.follow {
        context.ui.print_json(EventsOutput { events });
        return Ok(Exit::Success);
    }
    if events.is_empty() && max_events > 0 && (wants_past || !args.follow) {
        let since = if reader.last_number() == 0 { "yet" } else { "since" };
        context.ui.status(format!("nothing has happened {since}"));
    }
    match watch {
        None => page::begin(),
        Some(_) => output_reader::exit_with_reader(),
    }
    print_events(context, &events);
    let Some(mut watch) = watch else { return Ok(Exit::Success) };
    loop {
        watch.wait_for_change()?;
        let new = reader.poll()?;
        print_events(context, &new);
        for event in &new {
            context.ui.notify_terminal(&project, event);
        }
    }
}

fn print_events(context: &CommandContext, events: &[Event]) {
    for event in events {
        if context.ui.json {
            context.ui.print_json_line(event);
        } else {
            let at = match output_width() {
                Some(_) => event.at.to_local_text(),
                None => event.at.to_string(),
            };
            let number = style(format!("{at} {:>4}", event.n)).dim();
            context
                .ui
                .print_wrapped(&format!("{number}  {}", event_style(event.name).apply_to(&event.message)));
        }
    }
}

/// Returns the color of an event: green where work is done or has landed, yellow where a person may have to act,
/// red for failures.
fn event_style(name: EventName) -> Style {
    match name {
        EventName::MergeLanded | EventName::MergeResolved | EventName::BatchEnded => Style::new().green(),
        EventName::MergeConflict
        | EventName::MergeRefused
        | EventName::LaneOverlap
        | EventName::MessageWaits
        | EventName::BatchPaused => Style::new().yellow(),
        EventName::MergeCheckFailed
        | EventName::TaskFailed
        | EventName::LaneEscape
        | EventName::ChangesLost => Style::new().red(),
        _ => Style::new(),
    }
}
