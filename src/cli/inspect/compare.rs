//! The `git proq compare` command.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use proq_base::explain::Exit;
use proq_base::hint;
use proq_base::interrupt;
use proq_lib::board::diff::LaneDiff;
use proq_lib::lane::inspection::attempts;
use proq_lib::merge::comparison::compare;
use proq_lib::merge::comparison::compare::{AttemptSummary, CheckSource, Comparison};
use proq_lib::merge::types::outcome::CheckStatus;
use proq_lib::ops::approvals;
use proq_lib::types::LaneState;

use super::{comparison_table, lane_diff};
use crate::cli::arguments::candidates::owned_lane_and_group_names;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::terminal::conflict_grid;

/// Compare attempts at a task
///
/// GROUP is the name that the attempts were started with (`git proq spawn --count`). Compares what is
/// committed: how much each attempt changes, whether it would merge into its base and with the others,
/// which files only it changes, and what its runs cost.
///
/// `checks` shows what is known about verify.commands and the lane's own checks on the result of a merge.
/// With --checks they run now, in worktrees for checks. Nothing is merged, and no lane changes.
///
/// Examples:
///     git proq compare pay
///     git proq compare pay --checks
///     git proq compare --diff pay-1 pay-3
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
#[command(override_usage = "git proq compare [OPTIONS] GROUP\n       git proq compare [OPTIONS] LANE...")]
pub(crate) struct Compare {
    /// Lanes, or the name of a group
    #[arg(value_name = "LANE", required = true, add = ArgValueCompleter::new(owned_lane_and_group_names))]
    pub(crate) lanes: Vec<String>,
    /// Run the checks now
    #[arg(long, alias = "check")]
    pub(crate) checks: bool,
    /// Shell command to run as another check [can be repeated]
    #[arg(long, value_name = "CMD", requires = "checks", value_hint = clap::ValueHint::CommandString)]
    pub(crate) verify: Vec<String>,
    /// Run up to N checks in parallel
    #[arg(long, short, value_name = "N", requires = "checks", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,
    /// Print the diffs one after another instead
    #[arg(long, conflicts_with = "checks")]
    pub(crate) diff: bool,
}

/// Maximum number of files listed among those that only one attempt changes.
const MAX_FILES_NAMED: usize = 5;

pub(crate) fn run(context: &CommandContext, args: &Compare) -> CommandResult {
    let project = context.project()?;
    // The comparison creates temporary folders, which an interrupt must remove.
    interrupt::defer_signals();
    let lanes = attempts::lanes_by_name(&project, &args.lanes)?;
    if args.diff && !context.ui.json {
        for lane in lanes {
            context.ui.print_line(console::style(format!("lane {}", lane.name)).bold().to_string());
            let diff = LaneDiff::open(&project, lane, None)?;
            lane_diff::print_diff(context, &diff, false)?;
        }
        return Ok(Exit::Success);
    }
    let checking = if args.checks {
        let bases = lanes.iter().map(|lane| lane.base.clone());
        approvals::request_landing_approval(&project, context, bases, None)?;
        CheckSource::Run { extra_commands: &args.verify, jobs: args.jobs.map(usize::from) }
    } else {
        CheckSource::Cached
    };
    let comparison = compare::compare_attempts(&project, &lanes, checking)?;
    if context.ui.json {
        context.ui.print_ordered_json(&comparison);
    } else {
        print_comparison(context, args, &comparison);
    }
    Ok(Exit::Success)
}

/// Prints the comparison as tables, then the files that only one attempt changes.
fn print_comparison(context: &CommandContext, args: &Compare, comparison: &Comparison) {
    let (ui, attempts) = (context.ui, &comparison.attempts);
    for table in comparison_table::render_tables(comparison) {
        ui.print_line(format!("{table}\n"));
    }
    for AttemptSummary { lane, exclusive_files: files, .. } in attempts.iter().filter(|_| attempts.len() > 1)
    {
        let named: Vec<String> = files.iter().take(MAX_FILES_NAMED).map(ToString::to_string).collect();
        match files.len().saturating_sub(MAX_FILES_NAMED) {
            _ if named.is_empty() => {}
            0 => ui.print_line(format!("only {lane}: {}", named.join(", "))),
            more => ui.print_line(format!("only {lane}: {} and {more} more", named.join(", "))),
        }
    }
    for line in conflict_grid::conflicting_pair_lines(&comparison.pairs) {
        ui.print_wrapped(&line);
    }
    for attempt in attempts {
        if let CheckStatus::Inconclusive { reason } = &attempt.checks {
            ui.print_line(format!("{}: {reason}", attempt.lane));
        }
        let CheckStatus::Failed { command, ended, tail } = &attempt.checks else { continue };
        ui.print_line(format!("{}: `{command}` failed ({ended})", attempt.lane));
        ui.print_tail(tail);
        if tail.is_empty() {
            ui.hint(hint!("show its full output: git proq logs {} --checks", attempt.lane));
        }
    }
    if !args.checks && attempts.iter().any(|attempt| attempt.checks == CheckStatus::Unknown) {
        ui.hint(hint!("run the checks now: git proq compare --checks {}", args.lanes.join(" ")));
    }
    let is_landable = |attempt: &&AttemptSummary| {
        attempt.group.is_some()
            && attempt.state == LaneState::Done
            && !matches!(attempt.checks, CheckStatus::Failed { .. })
    };
    if let Some(first) = attempts.iter().find(is_landable) {
        let others = if attempts.len() > 1 { ", discarding the others" } else { "" };
        ui.hint(hint!("land one{others}: git proq pick {}", first.lane));
    }
}
