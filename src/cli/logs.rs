//! Owns `git proq logs`, and watching a log while it grows.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde::Serialize;

use super::complete::lane_names;
use super::{Done, Failure, Mistake, Session, wait};
use crate::explain::Exit;
use crate::lane::{self, Project, effective_state};
use crate::store::records::{CheckRecord, LaneRecord, LaneState};
use crate::store::{Layout, Record, path_form};

/// Print what a lane's agent wrote
///
/// Examples:
///     git proq logs payments
///     git proq logs -f payments
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Logs {
    /// The lane, or NAME@N for a removed one
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(lane_names))]
    pub(crate) lane: String,
    /// Go on until the agent ends
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Print what the check wrote that the lane failed in a landing
    #[arg(long, conflicts_with_all = ["follow", "run"])]
    pub(crate) check: bool,
    /// Print what the landing wrote that followed the run (see spawn --auto-merge)
    #[arg(long, conflicts_with_all = ["follow", "check"])]
    pub(crate) merge: bool,
    /// Print the N-th run instead of the last
    #[arg(long, value_name = "N")]
    pub(crate) run: Option<u32>,
}

/// How often a growing log is looked at. It is for a person's eyes.
const GLANCE: Duration = Duration::from_millis(80);

#[derive(Serialize)]
struct Answer<'a> {
    lane: &'a str,
    run: u32,
    #[serde(serialize_with = "path_form::serialize")]
    path: &'a Path,
    text: String,
}

pub(super) fn run(session: &Session, args: &Logs) -> Done {
    let project = session.project()?;
    let (lane, dir) = find(&project, &args.lane)?;
    if args.check {
        return print_check(session, &lane, &dir);
    }
    let run = args.run.unwrap_or(lane.attempt);
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
    if session.ui.json {
        let text = String::from_utf8_lossy(&read_from(&path, &mut 0)?).into_owned();
        session.ui.object(Answer { lane: &lane.name, run, path: &path, text });
        return Ok(Exit::Done);
    }
    let past = args.lane.contains('@');
    if !args.follow || past || run != lane.attempt {
        session.ui.raw(&read_from(&path, &mut 0)?);
        return Ok(Exit::Done);
    }
    let (lane, state) = pour(&project, &lane, &path, &mut |bytes| session.ui.raw(bytes))?;
    session.ui.say(wait::line(&lane, state));
    Ok(Exit::Done)
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
fn print_check(session: &Session, lane: &LaneRecord, dir: &Path) -> Done {
    let Some(check) = CheckRecord::find(&dir.join("check.toml"))? else {
        return Err(Mistake::NoCheck { lane: lane.name.clone() }.into());
    };
    let path = dir.join(&check.log);
    let bytes = read_from(&path, &mut 0)?;
    if session.ui.json {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        session.ui.object(CheckAnswer { check: &check, path: &path, text });
    } else {
        session.ui.raw(&bytes);
    }
    Ok(Exit::Done)
}

/// A lane, or a removed one by `name@N`, and the folder of its records.
pub(super) fn find(project: &Project, asked: &str) -> Result<(LaneRecord, PathBuf), Failure> {
    if let Some((dir, lane)) = project.past_lane(asked)? {
        return Ok((lane, dir));
    }
    let lane = project.lane(asked)?;
    let dir = project.store.layout().lane(&lane.name);
    Ok((lane, dir))
}

fn read_from(path: &Path, from: &mut u64) -> Result<Vec<u8>, Failure> {
    let unreadable = |source| Mistake::Unreadable { path: path.to_owned(), source };
    Ok(read_on(&mut File::open(path).map_err(unreadable)?, from).map_err(unreadable)?)
}

fn read_on(file: &mut File, from: &mut u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(*from))?;
    *from += file.read_to_end(&mut bytes)? as u64;
    Ok(bytes)
}

/// Hands a log over as it grows, until the lane's run has ended.
fn pour(
    project: &Project,
    lane: &LaneRecord,
    log: &Path,
    take: &mut dyn FnMut(&[u8]),
) -> Result<(LaneRecord, LaneState), Failure> {
    let unreadable = |source| Mistake::Unreadable { path: log.to_owned(), source };
    // A lane that lands by itself may be gone right after its run, and the file be elsewhere.
    let mut file = File::open(log).map_err(unreadable)?;
    let mut at = 0;
    loop {
        // The state first: what was written before the end is then read below.
        let (_, lane) = lane::became(project, lane)?;
        let (state, detail) = effective_state(project, &lane)?;
        let bytes = read_on(&mut file, &mut at).map_err(unreadable)?;
        if !bytes.is_empty() {
            take(&bytes);
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
    lane: &LaneRecord,
    log: &Path,
    tell: &mut dyn FnMut(&str),
) -> Result<(LaneRecord, LaneState), Failure> {
    pour(project, lane, log, &mut |bytes| {
        let text = String::from_utf8_lossy(bytes);
        if let Some(line) = text.lines().rev().find(|l| !l.trim().is_empty()) {
            tell(&console::strip_ansi_codes(line));
        }
    })
}
