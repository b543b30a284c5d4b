//! Owns `git proq logs`, and watching a log while it grows.

use std::borrow::Cow;
use std::fs::File;
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde::Serialize;

use super::complete::any_lane_names;
use super::plain_log::PlainLog;
use super::render::Render;
use super::{Done, Failure, Mistake, Session, wait};
use crate::agent::{self, Dialect, Event, Reader};
use crate::explain::Exit;
use crate::lane::{self, Name, Project};
use crate::store::records::{AnyLane, CheckRecord, LaneRecord, LaneState, RunRecord, SessionTotals};
use crate::store::{Layout, Record, path_form};

/// Print what a lane's agent did
///
/// What the agent said, what it thought in a line each, and what its tools were given and answered. With --raw, the log as it
/// was written: for most known agents that is one JSON object a line. On a terminal, a log of another form has its colours only;
/// what else a terminal would obey is written out.
///
/// Examples:
///     git proq logs payments
///     git proq logs -f payments
///     git proq logs payments --raw | jq -r 'select(.type == "result").result'
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Logs {
    /// The lane, or NAME@N for a removed one
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(any_lane_names))]
    pub(crate) lane: String,
    /// Go on until the agent ends
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Print the log as the agent wrote it
    #[arg(long)]
    pub(crate) raw: bool,
    /// Print what the agent wrote to its standard error, where that has a log of its own
    #[arg(long, conflicts_with_all = ["follow", "raw"])]
    pub(crate) errors: bool,
    /// Print what the check wrote that the lane failed in a landing
    #[arg(long, conflicts_with_all = ["follow", "run"])]
    pub(crate) check: bool,
    /// Print what the landing wrote that followed the run (see spawn --auto-merge)
    #[arg(long, conflicts_with_all = ["follow", "check"])]
    pub(crate) merge: bool,
    /// Print what the lane.setup commands wrote; also of a lane that was not made because one of them failed
    #[arg(long, conflicts_with_all = ["follow", "raw", "errors", "check", "merge", "run"])]
    pub(crate) setup: bool,
    /// Print the N-th run instead of the last
    #[arg(long, value_name = "N")]
    pub(crate) run: Option<u32>,
}

/// How often a growing log is looked at. It is for a person's eyes.
const GLANCE: Duration = Duration::from_millis(80);

/// How much of a log is read at once.
const PART: usize = 64 * 1024;

#[derive(Serialize)]
struct Answer<'a> {
    lane: &'a str,
    run: u32,
    #[serde(serialize_with = "path_form::serialize")]
    path: &'a Path,
    text: String,
    /// What it tells, where its form is known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    events: Vec<Event>,
}

#[derive(Serialize)]
struct SetUp<'a> {
    lane: &'a str,
    #[serde(serialize_with = "path_form::serialize")]
    path: &'a Path,
    text: String,
}

/// The last run of a lane that a landing followed: one that resolved a conflict is followed by none. The last one where there is
/// none.
fn last_landing(lane: &AnyLane, dir: &Path) -> u32 {
    let is_there = |run: &u32| dir.join(Layout::landing_log_in_lane(*run)).exists();
    (1..=lane.attempt).rev().find(is_there).unwrap_or(lane.attempt)
}

pub(super) fn run(session: &Session, args: &Logs) -> Done {
    let project = session.project()?;
    if args.setup {
        return print_set_up(session, &project, &args.lane);
    }
    let (lane, dir) = find(&project, &args.lane)?;
    if args.check {
        return print_check(session, &lane, &dir);
    }
    let run = args.run.unwrap_or_else(|| if args.merge { last_landing(&lane, &dir) } else { lane.attempt });
    let path = match args.merge {
        true => dir.join(Layout::landing_log_in_lane(run)),
        false => dir.join(format!("runs/{run}.log")),
    };
    if args.merge && !path.exists() {
        return Err(Mistake::NoLanding { lane: lane.name }.into());
    }
    if run == 0 || !path.exists() {
        return Err(Mistake::NoRun { lane: lane.name, run }.into());
    }
    if args.errors {
        let errors = dir.join(format!("runs/{run}.err"));
        if errors.exists() {
            let mut view = View::plain(false);
            let _ = print_parts(session, &errors, &mut view)?;
            session.ui.raw(&view.rest());
        }
        return Ok(Exit::Done);
    }
    let record = RunRecord::find(&dir.join(format!("runs/{run}.toml")))?;
    let mut view = match args.merge {
        true => View::plain(args.raw),
        false => View::of(record.as_ref(), args.raw),
    };
    if session.ui.json {
        let bytes = read_whole(&path)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let events = view.events(&bytes);
        session.ui.object(Answer { lane: &lane.name, run, path: &path, text, events });
        return Ok(Exit::Done);
    }
    let past = args.lane.contains('@');
    if !args.follow || past || run != lane.attempt {
        let shows = print_parts(session, &path, &mut view)?;
        let rest = view.rest();
        session.ui.raw(&rest);
        if !shows && rest.is_empty() && !args.merge {
            hint_at_errors(session, &dir, &args.lane, (run, lane.attempt));
        }
        return Ok(Exit::Done);
    }
    let (lane, state) = pour(&project, &lane, &path, &mut |bytes| session.ui.raw(&view.shown(bytes)))?;
    session.ui.raw(&view.rest());
    session.ui.say(wait::line(&lane, state));
    Ok(Exit::Done)
}

/// Points to the errors of a run whose log shows nothing, where it has some. `last` is the number of the lane's last run.
fn hint_at_errors(session: &Session, dir: &Path, lane: &str, (run, last): (u32, u32)) {
    if dir.join(format!("runs/{run}.err")).metadata().is_ok_and(|errors| errors.len() > 0) {
        let of_run = if run == last { String::new() } else { format!(" --run {run}") };
        session.ui.hint(format!("see what it wrote as errors: git proq logs{of_run} --errors {lane}"));
    }
}

/// How a log is shown: as it is, as a terminal may have it, or as what its lines tell.
enum View {
    AsItIs,
    Plain(PlainLog),
    Told(Box<(Reader, Render)>),
}

impl View {
    /// One that is in no known form. What a terminal would obey in it is for who asked for just that.
    fn plain(raw: bool) -> View {
        match !raw && std::io::stdout().is_terminal() {
            true => View::Plain(PlainLog::default()),
            false => View::AsItIs,
        }
    }

    fn of(run: Option<&RunRecord>, raw: bool) -> View {
        let dialect = run.and_then(|run| Dialect::named(run.dialect.as_deref()?));
        match dialect.filter(|dialect| dialect.is_for_machines() && !raw) {
            None => View::plain(raw),
            Some(dialect) => {
                View::Told(Box::new((Reader::new(dialect, &SessionTotals::default()), Render::default())))
            }
        }
    }

    /// More of the log, as it is shown.
    fn shown<'b>(&mut self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        match self {
            View::AsItIs => Cow::Borrowed(bytes),
            View::Plain(log) => Cow::Owned(log.shown(bytes)),
            View::Told(told) => {
                let (reader, render) = told.as_mut();
                let mut events = Vec::new();
                reader.feed(bytes, &mut events);
                let text: String = events.iter().map(|event| render.event(event)).collect();
                Cow::Owned(text.into_bytes())
            }
        }
    }

    /// What the end of the log adds.
    fn rest(&mut self) -> Vec<u8> {
        let (reader, render) = match self {
            View::AsItIs => return Vec::new(),
            View::Plain(log) => return log.rest(),
            View::Told(told) => told.as_mut(),
        };
        let mut events = Vec::new();
        drop(reader.finish(agent::Exit::default(), &mut events));
        events.iter().map(|event| render.event(event)).collect::<String>().into_bytes()
    }

    /// What a whole log tells.
    fn events(&mut self, bytes: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        if let View::Told(told) = self {
            told.0.feed(bytes, &mut events);
            drop(told.0.finish(agent::Exit::default(), &mut events));
        }
        events
    }
}

#[derive(Serialize)]
struct CheckAnswer<'a> {
    #[serde(flatten)]
    check: &'a CheckRecord,
    #[serde(serialize_with = "path_form::serialize")]
    path: &'a Path,
    text: String,
}

/// Prints what the check wrote that a lane failed.
fn print_check(session: &Session, lane: &AnyLane, dir: &Path) -> Done {
    let Some(check) = CheckRecord::find(&dir.join("check.toml"))? else {
        return Err(Mistake::NoCheck { lane: lane.name.clone() }.into());
    };
    let path = dir.join(&check.log);
    if session.ui.json {
        let text = String::from_utf8_lossy(&read_whole(&path)?).into_owned();
        session.ui.object(CheckAnswer { check: &check, path: &path, text });
    } else {
        let mut view = View::plain(false);
        let _ = print_parts(session, &path, &mut view)?;
        session.ui.raw(&view.rest());
    }
    Ok(Exit::Done)
}

/// What got a lane ready, or failed to.
fn print_set_up(session: &Session, project: &Project, asked: &str) -> Done {
    let found = find(project, asked);
    let own = found.as_ref().ok().map(|(_, dir)| dir.join(Layout::SET_UP_LOG)).filter(|path| path.is_file());
    // Of a name, since that is part of a path.
    let failed = Name::parse(asked).is_ok().then(|| project.store.layout().failed_set_up_log(asked));
    let lane = found.as_ref().map_or(asked, |(lane, _)| lane.name.as_str());
    let path = own.or(failed).unwrap_or_default();
    if !path.is_file() {
        let lane = found?.0.name;
        return Err(Mistake::NoSetUp { lane }.into());
    }
    if session.ui.json {
        let text = String::from_utf8_lossy(&read_whole(&path)?).into_owned();
        session.ui.object(SetUp { lane, path: &path, text });
    } else {
        let mut view = View::plain(false);
        let _ = print_parts(session, &path, &mut view)?;
        session.ui.raw(&view.rest());
    }
    Ok(Exit::Done)
}

/// A lane, a removed one by `name@N`, or the last one of a batch's task, and the folder of its records.
pub(super) fn find(project: &Project, asked: &str) -> Result<(AnyLane, PathBuf), Failure> {
    if let Some((dir, lane)) = project.past_lane(asked)? {
        return Ok((lane, dir));
    }
    let lane = match project.any_lane(asked) {
        Err(e @ lane::Error::Unknown { .. }) => {
            return of_task(project, asked)?.ok_or_else(|| e.into());
        }
        lane => lane?,
    };
    let dir = project.store.layout().lane(&lane.name);
    Ok((lane, dir))
}

/// The youngest lane of a batch's task, by the name that the plan gives it, also if it is removed.
fn of_task(project: &Project, task: &str) -> Result<Option<(AnyLane, PathBuf)>, Failure> {
    let layout = project.store.layout();
    let here = project.every_lane()?.into_iter().map(|lane| {
        let dir = layout.lane(&lane.name);
        (lane, dir)
    });
    let past = project.every_past_lane().into_iter();
    let past = past.map(|(name, lane)| (lane, layout.history().join(name)));
    let is_of = |lane: &AnyLane| lane.batch.as_ref().is_some_and(|of| of.task.eq_ignore_ascii_case(task));
    Ok(here.chain(past).filter(|(lane, _)| is_of(lane)).max_by_key(|(lane, _)| lane.created))
}

/// A file for an answer that holds all of it.
fn read_whole(path: &Path) -> Result<Vec<u8>, Failure> {
    Ok(std::fs::read(path).map_err(|source| Mistake::Unreadable { path: path.to_owned(), source })?)
}

/// Prints a file as `view` has it, however long it is. Whether there was anything to print.
fn print_parts(session: &Session, path: &Path, view: &mut View) -> Result<bool, Failure> {
    let unreadable = |source| Mistake::Unreadable { path: path.to_owned(), source };
    let mut file = crate::regular_file::open_record(path).map_err(unreadable)?;
    let mut shows = false;
    let mut print = |part: &[u8]| {
        let part = view.shown(part);
        shows |= !part.is_empty();
        session.ui.raw(&part);
    };
    read_on(&mut file, &mut print).map_err(unreadable)?;
    Ok(shows)
}

/// Hands on what a file has beyond what was read of it, a part at a time.
fn read_on(file: &mut File, take: &mut dyn FnMut(&[u8])) -> std::io::Result<()> {
    let mut part = vec![0; PART];
    loop {
        match file.read(&mut part) {
            Ok(0) => return Ok(()),
            Ok(length) => take(&part[..length]),
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// Hands a log over as it grows, until the lane's run has ended; those of further tries and turns come after it.
fn pour(
    project: &Project,
    lane: &AnyLane,
    log: &Path,
    take: &mut dyn FnMut(&[u8]),
) -> Result<(AnyLane, LaneState), Failure> {
    let unreadable = |source| Mistake::Unreadable { path: log.to_owned(), source };
    // A lane that lands by itself may be gone right after its run, and the file be elsewhere.
    let mut file = crate::regular_file::open_record(log).map_err(unreadable)?;
    let mut run = lane.attempt;
    loop {
        // The state first: what was written before the end is then read below.
        let (dir, lane) = lane::became(project, lane)?;
        let (state, detail) = lane::told_state(project, &lane)?;
        read_on(&mut file, take).map_err(unreadable)?;
        let next = dir.join(format!("runs/{}.log", run + 1));
        if lane.attempt > run && next.exists() {
            (file, run) = (crate::regular_file::open_record(&next).map_err(unreadable)?, run + 1);
            continue;
        }
        if !state.is_busy() {
            // The record read here may be older than the supervisor's last word.
            return Ok((LaneRecord { detail, ..lane }, state));
        }
        if !lane.state.is_busy() {
            // The run is over; what it left in the background may go on for ever.
            let state = lane.state;
            return Ok((lane, state));
        }
        std::thread::sleep(GLANCE);
    }
}

/// Watches a run to its end, telling the last line that it wrote.
pub(super) fn watch(
    project: &Project,
    lane: &AnyLane,
    log: &Path,
    tell: &mut dyn FnMut(&str),
) -> Result<(AnyLane, LaneState), Failure> {
    let run = RunRecord::find(&project.store.layout().run_record(&lane.name, lane.attempt))?;
    let mut view = View::of(run.as_ref(), false);
    pour(project, lane, log, &mut |bytes| {
        let shown = view.shown(bytes);
        let text = String::from_utf8_lossy(&shown);
        if let Some(line) = text.lines().rev().find(|l| !l.trim().is_empty()) {
            tell(&console::strip_ansi_codes(line));
        }
    })
}
