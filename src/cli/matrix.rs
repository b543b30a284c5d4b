//! Owns `git proq matrix`.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use console::style;

use super::complete::lane_names;
use super::{Done, Session, grid};
use crate::explain::Exit;
use crate::interrupt;
use crate::lane::Project;
use crate::merge::{self, Ask, Forecast};
use crate::store::records::LaneRecord;

/// Show which lanes get along
///
/// Every lane is compared with its base and with every other lane of that base, as if one were merged into the other, with
/// what is uncommitted in it. Where two conflict, the paths and lines are named; line numbers are those of the first of the
/// two. Nothing is changed. Two lanes that did not conflict before are an event, `lane.overlap`, as they are when a run ends.
///
/// Examples:
///     git proq matrix
///     git proq matrix payments auth
///     git proq matrix --json | jq -r '.pairs[] | select(.result == "conflict") | .ours + " " + .theirs'
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Matrix {
    /// These lanes only
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(lane_names))]
    lanes: Vec<String>,
    /// Leave out what is uncommitted; faster with many lanes
    #[arg(long)]
    committed: bool,
    /// Show it anew whenever something has changed; in JSON, one object a line
    #[arg(long)]
    watch: bool,
}

/// How long to wait at least before looking again.
const PAUSE: Duration = Duration::from_secs(1);
/// How much of the time looking may take: one part in so many.
const SHARE: u32 = 10;
/// How soon a Ctrl-C is noticed meanwhile.
const GLANCE: Duration = Duration::from_millis(50);

pub(super) fn run(session: &Session, args: &Matrix) -> Done {
    let project = session.project()?;
    // A folder is made on the way, which goes again.
    interrupt::arm();
    if args.watch {
        return watch(session, &project, args);
    }
    let forecast = look(&project, args)?;
    if session.ui.json {
        session.ui.long_object(&forecast);
    } else {
        print(session, &forecast);
    }
    Ok(Exit::Done)
}

fn look(project: &Project, args: &Matrix) -> Result<Forecast, merge::Error> {
    let all = project.lanes()?;
    let lanes = match args.lanes.as_slice() {
        [] => all.clone(),
        names => named(project, names)?,
    };
    let uncommitted = !args.committed;
    let forecast = merge::forecast(project, Ask { lanes, uncommitted, within: None, about: None })?;
    // The event log serves watchers; where it cannot be written, the answer is there all the same.
    drop(merge::tell_overlaps(project, &all, &forecast, uncommitted, None));
    Ok(forecast)
}

fn named(project: &Project, names: &[String]) -> Result<Vec<LaneRecord>, merge::Error> {
    let mut lanes = Vec::new();
    for name in names {
        lanes.push(project.lane(name)?);
    }
    lanes.sort_by(|a, b| a.name.cmp(&b.name));
    lanes.dedup_by(|a, b| a.name == b.name);
    Ok(lanes)
}

/// Shows it whenever it is another one, until Ctrl-C.
fn watch(session: &Session, project: &Project, args: &Matrix) -> Done {
    let mut shown = None;
    loop {
        let begin = Instant::now();
        let forecast = look(project, args);
        if interrupt::check().is_err() {
            return Ok(Exit::Signal(interrupt::signal()));
        }
        let forecast = forecast?;
        if shown.as_ref() != Some(&forecast) {
            if session.ui.json {
                session.ui.object_line(&forecast);
            } else {
                // What is no terminal gets one after the other.
                drop(console::Term::stdout().is_term().then(|| console::Term::stdout().clear_screen()));
                print(session, &forecast);
            }
            shown = Some(forecast);
        }
        let again = Instant::now() + PAUSE.max(begin.elapsed() * SHARE);
        while Instant::now() < again {
            std::thread::sleep(GLANCE);
            if interrupt::check().is_err() {
                return Ok(Exit::Signal(interrupt::signal()));
            }
        }
    }
}

fn print(session: &Session, forecast: &Forecast) {
    let ui = session.ui;
    if forecast.lanes.is_empty() {
        ui.answer("no lanes to compare");
    } else {
        let width = super::table::terminal_width();
        for grid in grid::of(forecast, width) {
            ui.answer(grid);
            ui.answer("");
        }
        for line in grid::conflicts(forecast) {
            ui.answer(line);
        }
        ui.answer(grid::summary(forecast));
    }
    for lane in &forecast.lanes {
        if let Some(note) = &lane.note {
            ui.warn(format!("only what is committed in lane '{}' was compared: {note}", lane.lane));
        }
    }
    let mut left_out: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for left in &forecast.left_out {
        left_out.entry(&left.why).or_default().push(&left.lane);
    }
    if !left_out.is_empty() {
        let all: Vec<String> =
            left_out.iter().map(|(why, lanes)| format!("{} ({why})", lanes.join(", "))).collect();
        ui.say(style(format!("left out: {}", all.join("; "))).dim().for_stderr().to_string());
    }
}
