//! The `git proq matrix` command.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use proq_base::explain::Exit;
use proq_base::interrupt;
use proq_lib::board::matrix::{find_lanes, read_matrix};
use proq_lib::lane::Project;
use proq_lib::merge::comparison::forecast::report::Forecast;
use proq_lib::watch::subject::Subject;
use proq_lib::watch::watcher::{Watch, WatchOutcome};

use crate::cli::arguments::candidates::owned_lane_names;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::terminal::prose::reason_of_lanes;
use crate::cli::terminal::{conflict_grid, page, reader};

/// Show which lanes conflict with each other
///
/// Compares each lane with its base and with every other lane of that base, as if one were merged into the
/// other, uncommitted changes included. For a conflict, lists paths and lines; the line numbers are those
/// of the first lane of the pair. Nothing is changed. A new conflict between two lanes is an event,
/// `lane.overlap`.
///
/// Examples:
///     git proq matrix
///     git proq matrix payments auth
///     git proq matrix --json | jq -r '.pairs[] | select(.result == "conflict") | .ours + " " + .theirs'
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Matrix {
    /// Only these lanes
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(owned_lane_names))]
    lanes: Vec<String>,
    /// Ignore uncommitted changes (faster with many lanes)
    #[arg(long)]
    committed: bool,
    /// Keep running and update on changes
    ///
    /// With --json, prints one object per line.
    #[arg(long)]
    watch: bool,
}

/// Shortest pause between two forecasts with `--watch`.
const MIN_REFRESH_INTERVAL: Duration = Duration::from_secs(1);
/// Minimum pause between two forecasts, as a multiple of the time that the last one took.
const REFRESH_PAUSE_FACTOR: u32 = 10;

pub(crate) fn run(context: &CommandContext, args: &Matrix) -> CommandResult {
    let project = context.project()?;
    // The forecast creates a temporary folder, which has to be removed on Ctrl-C too.
    interrupt::defer_signals();
    if args.watch {
        return watch(context, &project, args);
    }
    let forecast = read_matrix(&project, &args.lanes, !args.committed)?;
    page::begin();
    if context.ui.json {
        context.ui.print_ordered_json(&forecast);
    } else {
        print_forecast(context, &forecast);
    }
    Ok(Exit::Success)
}

/// Prints the forecast each time it changes, until Ctrl-C.
fn watch(context: &CommandContext, project: &Project, args: &Matrix) -> CommandResult {
    reader::exit_with_reader();
    let (mut watch, mut last_shown) = (Watch::new(project)?, None);
    watch.add(Subject::Lanes);
    watch.add(Subject::Refs);
    loop {
        if !args.committed {
            for lane in find_lanes(project, &args.lanes)? {
                watch.add(Subject::Worktree(lane.path));
            }
        }
        let started = Instant::now();
        let forecast = read_matrix(project, &args.lanes, !args.committed);
        if !interrupt::has_no_signal() {
            return Ok(Exit::Signal(interrupt::received_signal()));
        }
        let forecast = forecast?;
        if last_shown.as_ref() != Some(&forecast) {
            if context.ui.json {
                context.ui.print_json_line(&forecast);
            } else {
                // Output that is not a terminal gets one forecast after the other.
                drop(console::Term::stdout().is_term().then(|| console::Term::stdout().clear_screen()));
                print_forecast(context, &forecast);
            }
            last_shown = Some(forecast);
        }
        // Changes during the pause end the wait at once.
        watch.pause(MIN_REFRESH_INTERVAL.max(started.elapsed() * REFRESH_PAUSE_FACTOR))?;
        if watch.wait(None)? == WatchOutcome::Signal {
            return Ok(Exit::Signal(interrupt::received_signal()));
        }
    }
}

fn print_forecast(context: &CommandContext, forecast: &Forecast) {
    let ui = context.ui;
    if forecast.lanes.is_empty() {
        ui.print_line("no lanes to compare");
    } else {
        ui.print_each("", conflict_grid::render_grids(forecast).iter().map(|grid| format!("{grid}\n")));
        for line in conflict_grid::conflicting_pair_lines(&forecast.pairs) {
            ui.print_wrapped(&line);
        }
        ui.print_wrapped(&conflict_grid::summary_line(forecast));
    }
    for (lane, note) in forecast.lanes.iter().filter_map(|lane| Some((&lane.lane, lane.note.as_ref()?))) {
        ui.warn(format!("compared only the commits of lane '{lane}': {note}"));
    }
    let mut lanes_by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for skipped_lane in &forecast.skipped {
        lanes_by_reason.entry(&skipped_lane.reason).or_default().push(skipped_lane.lane.as_str());
    }
    let entries: Vec<String> = lanes_by_reason
        .iter()
        .map(|(reason, lanes)| format!("{} ({})", lanes.join(", "), reason_of_lanes(reason, lanes.len())))
        .collect();
    if !entries.is_empty() {
        ui.dim_status(format!("not compared: {}", entries.join("; ")));
    }
}
