//! The `git proq logs` command, and following a log while it grows.

use std::borrow::Cow;
use std::fs::File;
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde::Serialize;

use super::candidates::any_lane_names;
use super::log_renderer::LogRenderer;
use super::log_sanitizer::LogSanitizer;
use super::{CommandContext, CommandResult, Failure, UsageError, wait};
use crate::agent::{self, Dialect, OutputReader, StreamEvent};
use crate::explain::Exit;
use crate::lane::{self, LaneName, Project};
use crate::store::records::{AnyLane, FailedCheckRecord, LaneRecord, LaneState, RunRecord, SessionTotals};
use crate::store::{Layout, Record, path_form};

/// Print what a lane's agent did
///
/// What the agent said, what it thought in a line each, and what its tools were given and answered. With --raw, the log as it
/// was written: for most known agents that is one JSON object a line. On a terminal, a log of another form has its colors only;
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

/// Interval at which a growing log is read. It is short enough for a user who watches.
const POLL_INTERVAL: Duration = Duration::from_millis(80);

/// Maximum number of bytes of a log that are read at once.
const CHUNK_LEN: usize = 64 * 1024;

#[derive(Serialize)]
struct RunLogOutput<'a> {
    lane: &'a str,
    run: u32,
    #[serde(serialize_with = "path_form::serialize")]
    path: &'a Path,
    text: String,
    /// The events in the log, if its format is known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    events: Vec<StreamEvent>,
}

#[derive(Serialize)]
struct SetUpLogOutput<'a> {
    lane: &'a str,
    #[serde(serialize_with = "path_form::serialize")]
    path: &'a Path,
    text: String,
}

/// Returns the number of the lane's last run that has a landing log, or of its last run if none has one. No
/// landing follows a run that resolved a conflict.
fn last_run_with_landing(lane: &AnyLane, dir: &Path) -> u32 {
    let has_log = |run: &u32| dir.join(Layout::landing_log_in_lane(*run)).exists();
    (1..=lane.attempt).rev().find(has_log).unwrap_or(lane.attempt)
}

pub(super) fn run(session: &CommandContext, args: &Logs) -> CommandResult {
    let project = session.project()?;
    if args.setup {
        return print_set_up(session, &project, &args.lane);
    }
    let (lane, dir) = find_lane(&project, &args.lane)?;
    if args.check {
        return print_check(session, &lane, &dir);
    }
    let run = args
        .run
        .unwrap_or_else(|| if args.merge { last_run_with_landing(&lane, &dir) } else { lane.attempt });
    let path = match args.merge {
        true => dir.join(Layout::landing_log_in_lane(run)),
        false => dir.join(format!("runs/{run}.log")),
    };
    if args.merge && !path.exists() {
        return Err(UsageError::NoAutoMerge { lane: lane.name }.into());
    }
    if run == 0 || !path.exists() {
        return Err(UsageError::NoRun { lane: lane.name, run }.into());
    }
    if args.errors {
        let errors = dir.join(format!("runs/{run}.err"));
        if errors.exists() {
            let mut view = LogView::unstructured(false);
            let _ = print_log(session, &errors, &mut view)?;
            session.ui.print_bytes(&view.finish());
        }
        return Ok(Exit::Success);
    }
    let record = RunRecord::load_if_exists(&dir.join(format!("runs/{run}.toml")))?;
    let mut view = match args.merge {
        true => LogView::unstructured(args.raw),
        false => LogView::from_record(record.as_ref(), args.raw),
    };
    if session.ui.json {
        let bytes = read_entire_log(&path)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let events = view.parse_events(&bytes);
        session.ui.print_json(RunLogOutput { lane: &lane.name, run, path: &path, text, events });
        return Ok(Exit::Success);
    }
    let is_past = args.lane.contains('@');
    if !args.follow || is_past || run != lane.attempt {
        let has_output = print_log(session, &path, &mut view)?;
        let tail = view.finish();
        session.ui.print_bytes(&tail);
        if !has_output && tail.is_empty() && !args.merge {
            hint_at_errors(session, &dir, &args.lane, (run, lane.attempt));
        }
        return Ok(Exit::Success);
    }
    let (lane, state) =
        follow_log(&project, &lane, &path, &mut |bytes| session.ui.print_bytes(&view.convert(bytes)))?;
    session.ui.print_bytes(&view.finish());
    session.ui.status(wait::state_line(&lane, state));
    Ok(Exit::Success)
}

/// Prints a hint to the error log of a run whose log shows nothing, if it has one. `last_run` is the number
/// of the lane's last run.
fn hint_at_errors(session: &CommandContext, dir: &Path, lane: &str, (run, last_run): (u32, u32)) {
    if dir.join(format!("runs/{run}.err")).metadata().is_ok_and(|errors| errors.len() > 0) {
        let run_option = if run == last_run { String::new() } else { format!(" --run {run}") };
        session.ui.hint(format!("see what it wrote as errors: git proq logs{run_option} --errors {lane}"));
    }
}

/// Conversion of a log for output: unchanged, safe for a terminal, or rendered from its events.
enum LogView {
    Verbatim,
    TerminalSafe(LogSanitizer),
    Rendered(Box<(OutputReader, LogRenderer)>),
}

impl LogView {
    /// Creates a view of a log in an unknown format. Terminal escape sequences pass only with `raw` or if
    /// standard output is not a terminal.
    fn unstructured(raw: bool) -> LogView {
        match !raw && std::io::stdout().is_terminal() {
            true => LogView::TerminalSafe(LogSanitizer::default()),
            false => LogView::Verbatim,
        }
    }

    fn from_record(run: Option<&RunRecord>, raw: bool) -> LogView {
        let dialect = run.and_then(|run| Dialect::from_name(run.dialect.as_deref()?));
        match dialect.filter(|dialect| dialect.is_machine_readable() && !raw) {
            None => LogView::unstructured(raw),
            Some(dialect) => LogView::Rendered(Box::new((
                OutputReader::new(dialect, &SessionTotals::default()),
                LogRenderer::default(),
            ))),
        }
    }

    /// Converts the next bytes of the log.
    fn convert<'b>(&mut self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        match self {
            LogView::Verbatim => Cow::Borrowed(bytes),
            LogView::TerminalSafe(log) => Cow::Owned(log.sanitize_chunk(bytes)),
            LogView::Rendered(renderer) => {
                let (reader, render) = renderer.as_mut();
                let mut events = Vec::new();
                reader.feed(bytes, &mut events);
                let text: String = events.iter().map(|event| render.render_event(event)).collect();
                Cow::Owned(text.into_bytes())
            }
        }
    }

    /// Returns the remaining output at the end of the log.
    fn finish(&mut self) -> Vec<u8> {
        let (reader, render) = match self {
            LogView::Verbatim => return Vec::new(),
            LogView::TerminalSafe(log) => return log.finish(),
            LogView::Rendered(renderer) => renderer.as_mut(),
        };
        let mut events = Vec::new();
        drop(reader.finish(agent::Exit::default(), &mut events));
        events.iter().map(|event| render.render_event(event)).collect::<String>().into_bytes()
    }

    /// Parses a complete log into events; empty if its format is unknown.
    fn parse_events(&mut self, bytes: &[u8]) -> Vec<StreamEvent> {
        let mut events = Vec::new();
        if let LogView::Rendered(renderer) = self {
            renderer.0.feed(bytes, &mut events);
            drop(renderer.0.finish(agent::Exit::default(), &mut events));
        }
        events
    }
}

#[derive(Serialize)]
struct CheckLogOutput<'a> {
    #[serde(flatten)]
    check: &'a FailedCheckRecord,
    #[serde(serialize_with = "path_form::serialize")]
    path: &'a Path,
    text: String,
}

/// Prints the output of the check that a lane failed.
fn print_check(session: &CommandContext, lane: &AnyLane, dir: &Path) -> CommandResult {
    let Some(check) = FailedCheckRecord::load_if_exists(&dir.join("check.toml"))? else {
        return Err(UsageError::NoFailedCheck { lane: lane.name.clone() }.into());
    };
    let path = dir.join(&check.log);
    if session.ui.json {
        let text = String::from_utf8_lossy(&read_entire_log(&path)?).into_owned();
        session.ui.print_json(CheckLogOutput { check: &check, path: &path, text });
    } else {
        let mut view = LogView::unstructured(false);
        let _ = print_log(session, &path, &mut view)?;
        session.ui.print_bytes(&view.finish());
    }
    Ok(Exit::Success)
}

/// Prints the output of a lane's set-up commands, also if they failed and the lane does not exist.
fn print_set_up(session: &CommandContext, project: &Project, name: &str) -> CommandResult {
    let found = find_lane(project, name);
    let lane_log =
        found.as_ref().ok().map(|(_, dir)| dir.join(Layout::SET_UP_LOG)).filter(|path| path.is_file());
    // Only a valid lane name may become part of a path.
    let failed_log = LaneName::parse(name).is_ok().then(|| project.store.layout().failed_set_up_log(name));
    let lane = found.as_ref().map_or(name, |(lane, _)| lane.name.as_str());
    let path = lane_log.or(failed_log).unwrap_or_default();
    if !path.is_file() {
        let lane = found?.0.name;
        return Err(UsageError::NoSetUpRun { lane }.into());
    }
    if session.ui.json {
        let text = String::from_utf8_lossy(&read_entire_log(&path)?).into_owned();
        session.ui.print_json(SetUpLogOutput { lane, path: &path, text });
    } else {
        let mut view = LogView::unstructured(false);
        let _ = print_log(session, &path, &mut view)?;
        session.ui.print_bytes(&view.finish());
    }
    Ok(Exit::Success)
}

/// Finds a lane, a removed lane by `name@N`, or the newest lane of a batch's task. Returns its record and the
/// folder of its records.
pub(super) fn find_lane(project: &Project, name: &str) -> Result<(AnyLane, PathBuf), Failure> {
    if let Some((dir, lane)) = project.past_lane(name)? {
        return Ok((lane, dir));
    }
    let lane = match project.any_lane(name) {
        Err(e @ lane::Error::UnknownLane { .. }) => {
            return find_task_lane(project, name)?.ok_or_else(|| e.into());
        }
        lane => lane?,
    };
    let dir = project.store.layout().lane(&lane.name);
    Ok((lane, dir))
}

/// Finds the newest lane of a batch's task by the task's name in the plan, removed lanes included.
fn find_task_lane(project: &Project, task: &str) -> Result<Option<(AnyLane, PathBuf)>, Failure> {
    let layout = project.store.layout();
    let present = project.all_lanes()?.into_iter().map(|lane| {
        let dir = layout.lane(&lane.name);
        (lane, dir)
    });
    let past = project.all_past_lanes().into_iter();
    let past = past.map(|(name, lane)| (lane, layout.history().join(name)));
    let is_of_task = |lane: &AnyLane| {
        lane.batch.as_ref().is_some_and(|batch_lane| batch_lane.task.eq_ignore_ascii_case(task))
    };
    Ok(present.chain(past).filter(|(lane, _)| is_of_task(lane)).max_by_key(|(lane, _)| lane.created))
}

/// Reads an entire file for the JSON output.
fn read_entire_log(path: &Path) -> Result<Vec<u8>, Failure> {
    Ok(std::fs::read(path).map_err(|source| UsageError::Unreadable { path: path.to_owned(), source })?)
}

/// Prints a file of any length through `view`. Returns whether there was any output.
fn print_log(session: &CommandContext, path: &Path, view: &mut LogView) -> Result<bool, Failure> {
    let unreadable = |source| UsageError::Unreadable { path: path.to_owned(), source };
    let mut file = crate::regular_file::open_store_file(path).map_err(unreadable)?;
    let mut has_output = false;
    let mut print = |chunk: &[u8]| {
        let output = view.convert(chunk);
        has_output |= !output.is_empty();
        session.ui.print_bytes(&output);
    };
    read_chunks(&mut file, &mut print).map_err(unreadable)?;
    Ok(has_output)
}

/// Passes the unread rest of a file to `consume` in chunks.
fn read_chunks(file: &mut File, consume: &mut dyn FnMut(&[u8])) -> std::io::Result<()> {
    let mut buffer = vec![0; CHUNK_LEN];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(length) => consume(&buffer[..length]),
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// Passes a log to `consume` as it grows, until the lane's run has finished. The logs of retries and further
/// turns follow.
fn follow_log(
    project: &Project,
    lane: &AnyLane,
    log: &Path,
    consume: &mut dyn FnMut(&[u8]),
) -> Result<(AnyLane, LaneState), Failure> {
    let unreadable = |source| UsageError::Unreadable { path: log.to_owned(), source };
    // An automatic merge may remove the lane right after its run, which moves the file.
    let mut file = crate::regular_file::open_store_file(log).map_err(unreadable)?;
    let mut run = lane.attempt;
    loop {
        // The state is read first, so that everything written before the end is read below.
        let (dir, lane) = lane::load_present_or_past_lane(project, lane)?;
        let (state, detail) = lane::displayed_state(project, &lane)?;
        read_chunks(&mut file, consume).map_err(unreadable)?;
        let next = dir.join(format!("runs/{}.log", run + 1));
        if lane.attempt > run && next.exists() {
            (file, run) = (crate::regular_file::open_store_file(&next).map_err(unreadable)?, run + 1);
            continue;
        }
        if !state.is_busy() {
            // The supervisor may have updated the record since it was read here.
            return Ok((LaneRecord { detail, ..lane }, state));
        }
        if !lane.state.is_busy() {
            // The run has finished, but its background processes may continue indefinitely.
            let state = lane.state;
            return Ok((lane, state));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Follows a run until it finishes, and reports the last line of each new output.
pub(super) fn watch_last_line(
    project: &Project,
    lane: &AnyLane,
    log: &Path,
    report_line: &mut dyn FnMut(&str),
) -> Result<(AnyLane, LaneState), Failure> {
    let run = RunRecord::load_if_exists(&project.store.layout().run_record(&lane.name, lane.attempt))?;
    let mut view = LogView::from_record(run.as_ref(), false);
    follow_log(project, lane, log, &mut |bytes| {
        let output = view.convert(bytes);
        let text = String::from_utf8_lossy(&output);
        if let Some(line) = text.lines().rev().find(|l| !l.trim().is_empty()) {
            report_line(&console::strip_ansi_codes(line));
        }
    })
}
