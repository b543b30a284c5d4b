//! The `git proq logs` command.

use std::path::Path;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use proq_base::explain::Exit;
use proq_base::hint;
use proq_lib::board::logs::{LogPart, LogWriter, RunLog, find_check_log, find_set_up_log};
use proq_lib::lane;
use proq_lib::ops::follow_run::{follow_log, read_chunks};
use proq_lib::types::RunNumber;

use crate::cli::arguments::candidates::any_lane_names;
use crate::cli::arguments::numbers::run_number;
use crate::cli::invocation::caller;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::failure::Failure;
use crate::cli::invocation::usage_error::UsageError;
use crate::cli::runs::log_view::LogView;
use crate::cli::runs::run_end;
use crate::cli::terminal::{page, reader};

/// Show a lane's agent output
///
/// Shows the agent's messages, its thoughts in one line each, and the input and output of its tools. With
/// --raw, prints the log unchanged: for most known agents one JSON object per line. On a terminal, a log of
/// another format keeps only its colors, and other control characters are escaped.
///
/// Examples:
///     git proq logs payments
///     git proq logs -f payments
///     git proq logs payments --raw | jq -r 'select(.type == "result").result'
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Logs {
    /// Lane name, or NAME@N for a removed lane [default: lane of the current folder]
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(any_lane_names))]
    pub(crate) lane: Option<String>,
    /// Follow output until the agent exits
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Print the log exactly as the agent wrote it
    #[arg(long)]
    pub(crate) raw: bool,
    /// Show the agent's stderr, if it has a log of its own
    #[arg(long, conflicts_with_all = ["follow", "raw"])]
    pub(crate) errors: bool,
    /// Show output of the check that failed
    #[arg(long, alias = "check", conflicts_with_all = ["follow", "run"])]
    pub(crate) checks: bool,
    /// Show output of the automatic merge
    #[arg(long, conflicts_with_all = ["follow", "checks"])]
    pub(crate) merge: bool,
    /// Show output of the lane.setup commands
    ///
    /// Also of a lane that was not created because one of them failed.
    #[arg(long, conflicts_with_all = ["follow", "raw", "errors", "checks", "merge", "run"])]
    pub(crate) setup: bool,
    /// Show run N instead of the last one
    #[arg(long, value_name = "N", value_parser = run_number())]
    pub(crate) run: Option<RunNumber>,
    /// With --json, start at byte OFFSET
    ///
    /// 0, or `next` of the previous output.
    #[arg(long, value_name = "OFFSET", conflicts_with_all = ["follow", "errors", "checks", "merge", "setup"])]
    pub(crate) after: Option<u64>,
    /// With --json, print at most N lines
    ///
    /// `next` is where the output continues.
    #[arg(long, value_name = "N", conflicts_with_all = ["follow", "errors", "checks", "merge", "setup"])]
    pub(crate) limit: Option<usize>,
}

pub(crate) fn run(context: &CommandContext, args: &Logs) -> CommandResult {
    let part = requested_part(context, args)?;
    let project = context.project_to_read()?;
    let name = caller::lane_or_current(&project, args.lane.as_ref())?;
    if args.setup || args.checks {
        let find_log = if args.setup { find_set_up_log } else { find_check_log };
        let log = find_log(&project, &name)?;
        if context.ui.json {
            context.ui.print_json(log.with_text()?);
        } else {
            print_whole_log(context, &log.path, LogView::unstructured(false))?;
        }
        return Ok(Exit::Success);
    }
    let writer = if args.merge { LogWriter::AutoMerge } else { LogWriter::Agent };
    let log = RunLog::find(&project, &name, writer, args.run)?;
    if args.errors {
        if let Some(errors) = log.error_log() {
            print_whole_log(context, &errors, LogView::unstructured(false))?;
        }
        return Ok(Exit::Success);
    }
    let record = log.load_record()?;
    if context.ui.json {
        context.ui.print_json(log.to_output(record.as_ref(), args.raw, part)?);
        return Ok(Exit::Success);
    }
    let mut view = LogView::from_record(record.as_ref(), &log.lane.path, args.raw);
    let is_past = name.contains('@');
    if !args.follow || is_past || log.run != log.lane.last_run {
        let has_output = print_whole_log(context, &log.path, view)?;
        if !has_output && !args.merge {
            hint_at_error_log(context, &name, &log);
        }
        if let Some(run) = record.filter(|_| !args.merge && !args.raw) {
            run_end::hint_at_allowing(context, &project, &run);
        }
        return Ok(Exit::Success);
    }
    reader::exit_with_reader();
    let (lane, state) = follow_log(&project, &log.lane, &log.path, context, &mut |bytes| {
        context.ui.print_bytes(&view.convert(bytes));
    })?;
    context.ui.print_bytes(&view.finish());
    context.ui.status(run_end::state_line(&lane, state));
    Ok(Exit::Success)
}

/// Returns the part of the log that is wanted; none for all of it.
fn requested_part(context: &CommandContext, args: &Logs) -> Result<Option<LogPart>, UsageError> {
    let is_partial = args.after.is_some() || args.limit.is_some();
    if is_partial && !context.ui.json {
        let example = "git proq logs payments --json --after 0 --limit 100";
        return Err(UsageError::missing("--after and --limit are for programs, and go with --json", example));
    }
    let part = LogPart { after: args.after.unwrap_or_default(), limit: args.limit };
    Ok(is_partial.then_some(part))
}

/// Prints a hint to the error log of a run whose log shows nothing, if it has one. `lane` is the name as the
/// user gave it.
fn hint_at_error_log(context: &CommandContext, lane: &str, log: &RunLog) {
    let errors = log.error_log().and_then(|errors| errors.metadata().ok());
    if errors.is_some_and(|errors| errors.len() > 0) {
        let run_option =
            if log.run == log.lane.last_run { String::new() } else { format!(" --run {}", log.run) };
        context.ui.hint(hint!("show its stderr: git proq logs{run_option} --errors {lane}"));
    }
}

/// Prints a file of any length through `view`. Returns whether there was any output.
fn print_whole_log(context: &CommandContext, path: &Path, mut view: LogView) -> Result<bool, Failure> {
    page::begin();
    let unreadable = lane::Error::io("read", path);
    let mut file = proq_base::regular_file::open_store_file(path).map_err(&unreadable)?;
    let mut has_output = false;
    let mut print = |chunk: &[u8]| {
        let output = view.convert(chunk);
        has_output |= !output.is_empty();
        context.ui.print_bytes(&output);
    };
    read_chunks(&mut file, &mut print).map_err(unreadable)?;
    let tail = view.finish();
    context.ui.print_bytes(&tail);
    Ok(has_output || !tail.is_empty())
}
