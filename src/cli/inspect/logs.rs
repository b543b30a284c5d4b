//! The `git proq logs` command.

use std::path::Path;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use proq_base::explain::Exit;
use proq_base::lane_name::LaneName;
use proq_lib::lane::Project;
use proq_lib::ops::follow_run::{follow_log, read_chunks};
use proq_store::base::record::Record;
use proq_store::base::run_number::RunNumber;
use proq_store::paths::layout::Layout;
use proq_store::paths::path_form;
use proq_store::records::check::FailedCheckRecord;
use proq_store::records::lane::AnyLane;
use proq_store::records::run::RunRecord;
use proq_stream::base::event::StreamEvent;
use serde::Serialize;

use super::lane_lookup::find_lane_or_task_lane;
use crate::cli::arguments::candidates::any_lane_names;
use crate::cli::arguments::numbers::run_number;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::failure::Failure;
use crate::cli::invocation::usage_error::UsageError;
use crate::cli::runs::log_view::LogView;
use crate::cli::runs::run_end;

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
    #[arg(long, value_name = "N", value_parser = run_number())]
    pub(crate) run: Option<RunNumber>,
}

/// JSON output: the log of one run.
#[derive(Serialize)]
struct RunLogOutput<'a> {
    lane: &'a LaneName,
    run: RunNumber,
    #[serde(serialize_with = "path_form::serialize")]
    path: &'a Path,
    text: String,
    /// The events in the log, if its format is known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    events: Vec<StreamEvent>,
}

/// JSON output: the log of the set-up commands of a lane.
#[derive(Serialize)]
struct SetUpLogOutput<'a> {
    /// Name of the lane, as the user gave it if the lane does not exist.
    lane: &'a str,
    #[serde(serialize_with = "path_form::serialize")]
    path: &'a Path,
    text: String,
}

/// Returns the number of the lane's last run that has a landing log, or of its last run if none has one. No
/// landing follows a run that resolved a conflict.
fn last_run_with_landing(lane: &AnyLane, dir: &Path) -> RunNumber {
    let has_log = |run: &RunNumber| Layout::auto_merge_log_in(dir, *run).exists();
    RunNumber::first().through(lane.last_run).rev().find(has_log).unwrap_or(lane.last_run)
}

pub(crate) fn run(context: &CommandContext, args: &Logs) -> CommandResult {
    let project = context.project()?;
    if args.setup {
        return print_set_up_log(context, &project, &args.lane);
    }
    let (lane, dir) = find_lane_or_task_lane(&project, &args.lane)?;
    if args.check {
        return print_failed_check_log(context, &lane, &dir);
    }
    let run = args
        .run
        .unwrap_or_else(|| if args.merge { last_run_with_landing(&lane, &dir) } else { lane.last_run });
    let path = match args.merge {
        true => Layout::auto_merge_log_in(&dir, run),
        false => Layout::run_log_in(&dir, run),
    };
    if args.merge && !path.exists() {
        return Err(UsageError::NoAutoMerge { lane: lane.name }.into());
    }
    if run == RunNumber::NONE || !path.exists() {
        return Err(UsageError::NoSuchRun { lane: lane.name, run }.into());
    }
    if args.errors {
        let errors = Layout::run_stderr_in(&dir, run);
        if errors.exists() {
            let mut view = LogView::unstructured(false);
            let _ = print_log(context, &errors, &mut view)?;
            context.ui.print_bytes(&view.finish());
        }
        return Ok(Exit::Success);
    }
    let record = RunRecord::load_if_exists(&Layout::run_record_in(&dir, run))?;
    let mut view = match args.merge {
        true => LogView::unstructured(args.raw),
        false => LogView::from_record(record.as_ref(), args.raw),
    };
    if context.ui.json {
        let bytes = read_entire_log(&path)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let events = view.parse_events(&bytes);
        context.ui.print_json(RunLogOutput { lane: &lane.name, run, path: &path, text, events });
        return Ok(Exit::Success);
    }
    let is_past = args.lane.contains('@');
    if !args.follow || is_past || run != lane.last_run {
        let has_output = print_log(context, &path, &mut view)?;
        let tail = view.finish();
        context.ui.print_bytes(&tail);
        if !has_output && tail.is_empty() && !args.merge {
            hint_at_error_log(context, &dir, &args.lane, (run, lane.last_run));
        }
        return Ok(Exit::Success);
    }
    let (lane, state) =
        follow_log(&project, &lane, &path, &mut |bytes| context.ui.print_bytes(&view.convert(bytes)))?;
    context.ui.print_bytes(&view.finish());
    context.ui.status(run_end::state_line(&lane, state));
    Ok(Exit::Success)
}

/// Prints a hint to the error log of a run whose log shows nothing, if it has one. `last_run` is the number
/// of the lane's last run.
fn hint_at_error_log(
    context: &CommandContext,
    dir: &Path,
    lane: &str,
    (run, last_run): (RunNumber, RunNumber),
) {
    if Layout::run_stderr_in(dir, run).metadata().is_ok_and(|errors| errors.len() > 0) {
        let run_option = if run == last_run { String::new() } else { format!(" --run {run}") };
        context.ui.hint(format!("see what it wrote as errors: git proq logs{run_option} --errors {lane}"));
    }
}

/// JSON output: the failed check of a lane, and what it printed.
#[derive(Serialize)]
struct CheckLogOutput<'a> {
    #[serde(flatten)]
    check: &'a FailedCheckRecord,
    #[serde(serialize_with = "path_form::serialize")]
    path: &'a Path,
    text: String,
}

/// Prints the output of the check that a lane failed.
fn print_failed_check_log(context: &CommandContext, lane: &AnyLane, dir: &Path) -> CommandResult {
    let Some(check) = FailedCheckRecord::load_if_exists(&Layout::failed_check_record_in(dir))? else {
        return Err(UsageError::NoFailedCheck { lane: lane.name.clone() }.into());
    };
    let path = dir.join(&check.log);
    if context.ui.json {
        let text = String::from_utf8_lossy(&read_entire_log(&path)?).into_owned();
        context.ui.print_json(CheckLogOutput { check: &check, path: &path, text });
    } else {
        let mut view = LogView::unstructured(false);
        let _ = print_log(context, &path, &mut view)?;
        context.ui.print_bytes(&view.finish());
    }
    Ok(Exit::Success)
}

/// Prints the output of a lane's set-up commands, also if they failed and the lane does not exist.
fn print_set_up_log(context: &CommandContext, project: &Project, name: &str) -> CommandResult {
    let found = find_lane_or_task_lane(project, name);
    let lane_log =
        found.as_ref().ok().map(|(_, dir)| Layout::set_up_log_in(dir)).filter(|path| path.is_file());
    // Only a valid lane name may become part of a path.
    let failed_log = LaneName::parse(name).ok().map(|name| project.store.layout().failed_set_up_log(&name));
    let lane = found.as_ref().map_or(name, |(lane, _)| lane.name.as_str());
    let path = lane_log.or(failed_log).unwrap_or_default();
    if !path.is_file() {
        let lane = found?.0.name;
        return Err(UsageError::NoSetUpRun { lane }.into());
    }
    if context.ui.json {
        let text = String::from_utf8_lossy(&read_entire_log(&path)?).into_owned();
        context.ui.print_json(SetUpLogOutput { lane, path: &path, text });
    } else {
        let mut view = LogView::unstructured(false);
        let _ = print_log(context, &path, &mut view)?;
        context.ui.print_bytes(&view.finish());
    }
    Ok(Exit::Success)
}

/// Reads an entire file for the JSON output.
fn read_entire_log(path: &Path) -> Result<Vec<u8>, Failure> {
    Ok(std::fs::read(path).map_err(|source| UsageError::Unreadable { path: path.to_owned(), source })?)
}

/// Prints a file of any length through `view`. Returns whether there was any output.
fn print_log(context: &CommandContext, path: &Path, view: &mut LogView) -> Result<bool, Failure> {
    let unreadable = |source| UsageError::Unreadable { path: path.to_owned(), source };
    let mut file = proq_base::regular_file::open_store_file(path).map_err(unreadable)?;
    let mut has_output = false;
    let mut print = |chunk: &[u8]| {
        let output = view.convert(chunk);
        has_output |= !output.is_empty();
        context.ui.print_bytes(&output);
    };
    read_chunks(&mut file, &mut print).map_err(unreadable)?;
    Ok(has_output)
}
