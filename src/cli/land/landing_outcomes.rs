//! The outcomes of a landing as text: of each lane, of its checks, and of pushes.

use std::collections::BTreeSet;

use proq_base::hint;
use proq_base::hint::Hint;
use proq_lib::merge::types::autostash::{AutostashReport, AutostashResult};
use proq_lib::merge::types::outcome::{LandingReport, LaneOutcome, NO_COMMITS, PushReport, Verdict};
use proq_lib::ops::land::merge::MergeOutcome;
use proq_lib::types::MergeStrategy;

use crate::cli::terminal::prose::reason_of_lanes;
use crate::cli::terminal::ui;
use crate::cli::terminal::ui::Ui;

/// Maximum number of skipped lanes that one line names.
const MAX_SKIPPED_NAMED: usize = 5;

/// Prints the outcome of each lane, of the checks and of the pushes. Returns the hints about them, each once.
pub(crate) fn print_outcomes(ui: Ui, outcome: &MergeOutcome, approval_note: &str) -> Vec<Hint> {
    let MergeOutcome { report, dry_run, conflict_agent, .. } = outcome;
    let (dry_run, agent) = (*dry_run, conflict_agent.as_ref().map(|agent| agent.name.as_str()));
    for lane in report.stopped.iter().filter(|_| dry_run) {
        ui.print_line(format!("{} the agent of {lane}", green("would stop")));
    }
    let (mut explained_check, mut hints) = (None, Vec::new());
    for outcome in &report.lanes {
        // Lanes that are refused because of the same check share its output and the hints.
        let is_explained = outcome.result == Verdict::Refused
            && outcome.check.is_some()
            && std::mem::replace(&mut explained_check, outcome.check.as_ref()) == outcome.check.as_ref();
        if is_explained {
            ui.print_line(outcome_text(outcome, dry_run));
        } else {
            print_lane_outcome(ui, outcome, agent, dry_run);
            hints.extend(outcome_hints(outcome));
        }
    }
    report.order_notes.iter().for_each(|order_note| ui.dim_status(format!("order: {order_note}")));
    if dry_run {
        print_checks(ui, report);
    }
    for autostash in &report.autostashes {
        print_autostash(ui, autostash);
        hints.extend(autostash.hints.iter().cloned());
    }
    for push_report in &report.pushed {
        print_push(ui, push_report, dry_run);
        hints.extend(push_report.hints.iter().cloned());
    }
    print_skipped(ui, report);
    if report.lanes.is_empty() {
        ui.print_line("nothing to land");
    }
    // A conflict between lanes is not saved: it disappears when the lanes land one by one.
    let is_saved_conflict =
        |l: &&LaneOutcome| l.result == Verdict::Conflict && l.conflicting_lanes.is_empty();
    match (report.lanes.iter().find(is_saved_conflict), agent) {
        (Some(_), Some(agent)) if dry_run => {
            ui.status(format!("{agent} would resolve the conflicts{approval_note}"));
        }
        (Some(LaneOutcome { lane, .. }), None) => {
            hints.push(hint!("resolve the conflict: git proq resolve {lane}"));
        }
        _ => {}
    }
    let mut printed = BTreeSet::new();
    hints.retain(|hint| printed.insert(hint.to_string()));
    hints
}

/// Prints the lanes that `--all` skipped, on one line those with the same reason.
fn print_skipped(ui: Ui, report: &LandingReport) {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for (lane, reason) in &report.skipped {
        match groups.iter_mut().find(|(known, _)| known == reason) {
            Some((_, lanes)) => lanes.push(lane.as_str()),
            None => groups.push((reason, vec![lane.as_str()])),
        }
    }
    for (reason, lanes) in groups {
        let named = lanes.iter().take(MAX_SKIPPED_NAMED).copied().collect::<Vec<_>>().join(", ");
        let more = lanes.len().saturating_sub(MAX_SKIPPED_NAMED);
        let named = if more == 0 { named } else { format!("{named} and {more} more") };
        ui.dim_status(match lanes.len() {
            1 => format!("skipped {named}: {reason}"),
            count if reason == NO_COMMITS => format!("skipped {count} lanes without commits: {named}"),
            count => format!("skipped {count} lanes ({named}): {}", reason_of_lanes(reason, count)),
        });
    }
}

/// Prints how many of two or more lanes would land, and the size of the difference that they would make.
pub(crate) fn print_total(ui: Ui, report: &LandingReport) {
    let would_land = report.lanes.iter().filter(|lane| lane.result == Verdict::Landed).count();
    let considered = report.lanes.len() + report.skipped.len();
    let total = (considered > 1).then(|| format!("{would_land} of {considered} lanes would land"));
    let size = report.forecast_diffstat().map(|diffstat| diffstat.to_string());
    let parts: Vec<String> = total.into_iter().chain(size).collect();
    if !parts.is_empty() {
        ui.print_wrapped(&parts.join(": "));
    }
}

/// Prints the outcome of one lane: its conflicted files and the output of its failed check.
fn print_lane_outcome(ui: Ui, outcome: &LaneOutcome, agent: Option<&str>, dry_run: bool) {
    ui.print_wrapped(&outcome_text(outcome, dry_run));
    if outcome.result == Verdict::Conflict {
        ui.print_each("    ", outcome.conflicted_files.iter().take(10));
    }
    if let Some(check) = &outcome.check {
        ui.print_tail(&check.tail);
    }
    if let (Verdict::Conflict, Some(reason), Some(_)) = (outcome.result, &outcome.message, agent) {
        ui.warn(reason);
    }
}

/// Returns the hints about the outcome of one lane.
fn outcome_hints(outcome: &LaneOutcome) -> impl Iterator<Item = Hint> {
    let log = (outcome.result == Verdict::CheckFailed)
        .then(|| hint!("show its full output: git proq logs {} --checks", outcome.lane));
    log.into_iter().chain(outcome.hints.iter().cloned())
}

/// Prints the commands that a landing would run as checks.
fn print_checks(ui: Ui, report: &LandingReport) {
    let Some(checks) = &report.checks else { return };
    for command in &checks.commands {
        let approval_note = if checks.unapproved.contains(command) { ", once it is approved" } else { "" };
        ui.print_wrapped(&format!("would check with: {command}{approval_note}"));
    }
    for task in &checks.tasks {
        for command in &task.commands {
            ui.print_wrapped(&format!("would check with: {command}, for {}", task.lane));
        }
    }
}

/// Prints which uncommitted changes a dry run would save and restore. A landing itself has reported its own when it
/// restored them.
fn print_autostash(ui: Ui, report: &AutostashReport) {
    if report.result == AutostashResult::Planned {
        let files = ui::pluralize(report.paths.len(), "file");
        let dir = report.dir.display();
        ui.print_line(format!("{} your changes in {dir}: {files}", green("would save and restore")));
        ui.print_each("    ", report.paths.iter().take(10));
    }
}

/// Prints what was pushed or, in a dry run, would be; or why the push failed.
fn print_push(ui: Ui, push_report: &PushReport, dry_run: bool) {
    let PushReport { branch, remote, message, output, .. } = push_report;
    let destination = remote.as_ref().map(|remote| format!(" to {remote}")).unwrap_or_default();
    let (label, reason) = match (message, dry_run) {
        (None, false) => (green("pushed"), String::new()),
        (None, true) => (green("would push"), String::new()),
        (Some(reason), false) => (red("not pushed"), format!(": {reason}; what landed stays landed")),
        (Some(reason), true) => (red("would not push"), format!(": {reason}")),
    };
    ui.print_line(format!("{label} {branch}{destination}{reason}"));
    ui.print_tail(output);
}

/// Formats the outcome of one lane as a sentence.
fn outcome_text(outcome: &LaneOutcome, dry_run: bool) -> String {
    let LaneOutcome { lane, onto, message, conflicting_lanes, .. } = outcome;
    let note = message.as_ref().map(|message| format!("; {message}")).unwrap_or_default();
    let commit = outcome.commit.map(|c| format!(" ({})", c.short())).unwrap_or_default();
    let files = ui::pluralize(outcome.conflicted_files.len(), "file");
    match outcome.result {
        Verdict::Landed if dry_run => {
            let strategy = outcome.strategy.filter(|strategy| *strategy != MergeStrategy::Merge);
            let strategy_note = strategy.map(|strategy| format!(" ({strategy})")).unwrap_or_default();
            format!("{} {lane} on {onto}{strategy_note}{note}", green("would land"))
        }
        Verdict::Landed => {
            let note = if outcome.cleaned_up { "" } else { &note };
            format!("{} {lane} on {onto}{commit}{note}", green("landed"))
        }
        Verdict::Resolved => {
            format!("{} {lane} on {onto}{commit}; its conflict in {files} was resolved", green("landed"))
        }
        Verdict::AlreadyLanded => {
            format!("{} {lane}: everything in it is on {onto} already{note}", green("nothing to do"))
        }
        Verdict::Conflict => {
            let verb = console::style(if dry_run { "would conflict" } else { "conflicts" }).yellow();
            let with = if conflicting_lanes.is_empty() { onto } else { &conflicting_lanes.join(", ") };
            format!("{lane} {verb} with {with} in {files}")
        }
        Verdict::CheckFailed => check_failed_text(outcome),
        Verdict::Refused => {
            format!("{} {lane}: {}", red("refused"), message.as_deref().unwrap_or("it may not land"))
        }
    }
}

/// Formats which check of a lane failed, and how.
fn check_failed_text(outcome: &LaneOutcome) -> String {
    let LaneOutcome { lane, onto, check, .. } = outcome;
    let reason = outcome.message.as_deref().unwrap_or("a check failed");
    let Some(check) = check else { return format!("{} {lane}: {reason}", red("check failed on")) };
    let below = match check.lanes_below.as_slice() {
        [] => onto.clone(),
        [one] => format!("{onto} with {one}"),
        [others @ .., last] => {
            format!("{onto} with {last} and {}", ui::pluralize(others.len(), "other lane"))
        }
    };
    // The checks of a lane's own task do not run without the lane, so the text makes no claim about the base.
    let verb = if check.task_lane.as_ref() == Some(lane) { "" } else { ", but passes" };
    format!("{} {lane}: {reason}{verb} on {below}", red("check failed on"))
}

/// Returns a word in green for standard output.
fn green(word: &str) -> String {
    console::style(word).green().to_string()
}

/// Returns a word in red for standard output.
fn red(word: &str) -> String {
    console::style(word).red().to_string()
}
