//! Owns `git proq compare`.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;

use super::complete::lane_and_group_names;
use super::{Done, Session, approve, diff, grid, side_by_side, ui};
use crate::explain::Exit;
use crate::interrupt;
use crate::lane;
use crate::merge::{self, Attempt, Checked, Checking, Comparison};
use crate::store::records::LaneState;

/// Show attempts at one task side by side
///
/// GROUP is the name that they were made with (`git proq spawn --count`). What is committed counts: how much each changes,
/// whether it would merge into its base and with the others, which files it alone changes, and what its runs took.
///
/// `checks` says what is known of the verify.commands and the lane's own on what would land. With --check they are run now,
/// in the worktrees for checks. Nothing lands, and no lane changes.
///
/// Examples:
///     git proq compare pay
///     git proq compare pay --check
///     git proq compare --diff pay-1 pay-3
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
#[command(override_usage = "git proq compare [OPTIONS] GROUP\n       git proq compare [OPTIONS] LANE...")]
pub(crate) struct Compare {
    /// The lanes, or the name of a group
    #[arg(value_name = "LANE", required = true, add = ArgValueCompleter::new(lane_and_group_names))]
    pub(crate) lanes: Vec<String>,
    /// Run the checks now
    #[arg(long)]
    pub(crate) check: bool,
    /// Check with CMD too, a line for the shell, after the verify.commands; may be given again
    #[arg(long, value_name = "CMD", requires = "check", value_hint = clap::ValueHint::CommandString)]
    pub(crate) verify: Vec<String>,
    /// Check up to N states at the same time
    #[arg(long, short, value_name = "N", requires = "check", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,
    /// Print the diffs, one after the other, instead; JSON has the names of the files in any case
    #[arg(long, conflicts_with = "check")]
    pub(crate) diff: bool,
}

/// How many files are named that one attempt alone changes.
const NAMED: usize = 5;

pub(super) fn run(session: &Session, args: &Compare) -> Done {
    let project = session.project()?;
    // Folders are made on the way, which go again.
    interrupt::arm();
    let lanes = lane::lanes_named(&project, &args.lanes)?;
    if args.diff && !session.ui.json {
        for lane in &lanes {
            session.ui.answer(console::style(format!("lane {}", lane.name)).bold().to_string());
            diff::show(session, &project, lane, false)?;
        }
        return Ok(Exit::Done);
    }
    let checking = if args.check {
        approve::before_landing(session, &project, lanes.iter().map(|lane| lane.base.clone()), None)?;
        Checking::Now { more: &args.verify, jobs: args.jobs.map(usize::from) }
    } else {
        Checking::Remembered
    };
    let found = merge::compare(&project, &lanes, checking)?;
    if session.ui.json {
        session.ui.long_object(&found);
    } else {
        print(session, args, &found);
    }
    Ok(Exit::Done)
}

fn print(session: &Session, args: &Compare, found: &Comparison) {
    let width = super::table::terminal_width().unwrap_or(side_by_side::WIDTH);
    for table in side_by_side::tables(found, width) {
        session.ui.answer(table);
        session.ui.answer("");
    }
    for attempt in found.attempts.iter().filter(|attempt| !attempt.only.is_empty()) {
        if found.attempts.len() > 1 {
            let named: Vec<String> = attempt.only.iter().take(NAMED).map(ToString::to_string).collect();
            let more = attempt.only.len().saturating_sub(NAMED);
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            session.ui.answer(format!("only {}: {}{more}", attempt.lane, named.join(", ")));
        }
    }
    for line in grid::lines(&found.pairs) {
        session.ui.answer(line);
    }
    for attempt in &found.attempts {
        let Checked::Failed { command, ended, tail } = &attempt.checks else { continue };
        session.ui.answer(format!("{}: `{command}` failed ({ended})", attempt.lane));
        for line in tail {
            session.ui.answer(format!("    {}", console::strip_ansi_codes(line)));
        }
        if tail.is_empty() {
            session.ui.hint(format!("all that it wrote: git proq logs {} --check", attempt.lane));
        }
    }
    if !args.check && found.attempts.iter().any(|attempt| attempt.checks == Checked::Unknown) {
        session.ui.hint(format!("run the checks now: git proq compare --check {}", args.lanes.join(" ")));
    }
    let good = |one: &&Attempt| {
        one.group.is_some() && one.state == LaneState::Done && !matches!(one.checks, Checked::Failed { .. })
    };
    if let Some(first) = found.attempts.iter().find(good) {
        let others = if found.attempts.len() > 1 { ", discarding the others" } else { "" };
        session.ui.hint(format!("land one{others}: git proq pick {}", first.lane));
    }
}

/// A time for a table: `12s`, `5m 12s`, `3h 5m`.
pub(super) fn long_span(seconds: u64) -> String {
    let whole = ui::span(std::time::Duration::from_secs(seconds));
    match seconds {
        0..60 => whole,
        60..3600 => format!("{whole} {}s", seconds % 60),
        3600..86400 => format!("{whole} {}m", seconds % 3600 / 60),
        _ => format!("{whole} {}h", seconds % 86400 / 3600),
    }
}
