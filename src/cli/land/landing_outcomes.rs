//! The outcomes of a landing as text: of each lane, of its checks, and of pushes.

use proq_lib::merge::types::outcome::{LandingReport, LaneOutcome, PushReport, Verdict};
use proq_lib::ops::land::merge::MergeOutcome;
use proq_lib::types::MergeStrategy;

use crate::cli::invocation::context::CommandContext;
use crate::cli::terminal::ui;

/// Prints the outcome of each lane, of the checks and of the pushes, and the hint about resolving a conflict.
pub(crate) fn print_outcomes(context: &CommandContext, outcome: &MergeOutcome, approval_note: &str) {
    let MergeOutcome { report, dry_run, conflict_agent, .. } = outcome;
    let (dry_run, agent) = (*dry_run, conflict_agent.as_ref().map(|agent| agent.name.as_str()));
    for lane in report.stopped.iter().filter(|_| dry_run) {
        context.ui.print_line(format!("{} the agent of {lane}", green("would stop")));
    }
    for outcome in &report.lanes {
        print_lane_outcome(context, outcome, agent, dry_run);
    }
    for order_note in &report.order_notes {
        context.ui.status(format!("{}", console::style(format!("order: {order_note}")).dim().for_stderr()));
    }
    if dry_run {
        print_checks(context, report);
    }
    for push_report in &report.pushed {
        print_push(context, push_report, dry_run);
    }
    for (lane, reason) in &report.skipped {
        context
            .ui
            .status(format!("{}", console::style(format!("left out {lane}: {reason}")).dim().for_stderr()));
    }
    if report.lanes.is_empty() {
        context.ui.print_line("nothing to land");
    }
    // A conflict between lanes is not saved: it disappears when the lanes land one by one.
    let is_saved_conflict =
        |l: &&LaneOutcome| l.result == Verdict::Conflict && l.conflicting_lanes.is_empty();
    let conflict = report.lanes.iter().find(is_saved_conflict);
    let Some(outcome) = conflict.filter(|_| !dry_run) else {
        if let (Some(_), Some(agent)) = (conflict, agent) {
            context.ui.status(format!("{agent} would be sent at what conflicts{approval_note}"));
        }
        return;
    };
    if agent.is_none() {
        context.ui.hint(format!(
            "resolve it: git proq resolve {}   see how it stands: git proq show {0}",
            outcome.lane
        ));
    }
}

/// Prints the outcome of one lane: its conflicted files, the output of its failed check, and hints.
fn print_lane_outcome(context: &CommandContext, outcome: &LaneOutcome, agent: Option<&str>, dry_run: bool) {
    context.ui.print_line(outcome_text(outcome, dry_run));
    for file in outcome.conflicted_files.iter().filter(|_| outcome.result == Verdict::Conflict).take(10) {
        context.ui.print_line(format!("    {file}"));
    }
    if let Some(check) = &outcome.check {
        for text in &check.tail {
            context.ui.print_line(format!("    {}", console::strip_ansi_codes(text)));
        }
        context.ui.hint(format!("all that it wrote: git proq logs {} --check", outcome.lane));
    }
    if let (Verdict::Conflict, Some(reason), Some(_)) = (outcome.result, &outcome.message, agent) {
        context.ui.warn(reason);
    }
    for hint in &outcome.hints {
        context.ui.hint(hint);
    }
}

/// Prints the commands that a landing would run as checks.
fn print_checks(context: &CommandContext, report: &LandingReport) {
    let Some(checks) = &report.checks else { return };
    for command in &checks.commands {
        let approval_note = if checks.unapproved.contains(command) { ", once it is approved" } else { "" };
        context.ui.print_line(format!("would check with: {command}{approval_note}"));
    }
    for task in &checks.tasks {
        for command in &task.commands {
            context.ui.print_line(format!("would check with: {command}, for {}", task.lane));
        }
    }
}

/// Prints what was pushed or, in a dry run, would be; or why the push failed.
fn print_push(context: &CommandContext, push_report: &PushReport, dry_run: bool) {
    let PushReport { branch, remote, message, output, hints, .. } = push_report;
    let destination = remote.as_ref().map(|remote| format!(" to {remote}")).unwrap_or_default();
    match (message, dry_run) {
        (None, false) => context.ui.print_line(format!("{} {branch}{destination}", green("pushed"))),
        (None, true) => context.ui.print_line(format!("{} {branch}{destination}", green("would push"))),
        (Some(reason), _) => {
            let (label, suffix) =
                if dry_run { ("would not push", "") } else { ("not pushed", "; what landed stays landed") };
            context.ui.print_line(format!(
                "{} {branch}{destination}: {reason}{suffix}",
                console::style(label).red()
            ));
        }
    }
    for text in output {
        context.ui.print_line(format!("    {}", console::strip_ansi_codes(text)));
    }
    for hint in hints {
        context.ui.hint(hint);
    }
}

/// Formats the outcome of one lane as a sentence.
fn outcome_text(outcome: &LaneOutcome, dry_run: bool) -> String {
    let lane = &outcome.lane;
    match outcome.result {
        Verdict::Landed if dry_run => {
            let strategy_note = outcome
                .strategy
                .filter(|m| *m != MergeStrategy::Merge)
                .map(|m| format!(" ({m})"))
                .unwrap_or_default();
            let note = outcome.message.as_ref().map(|message| format!("; {message}")).unwrap_or_default();
            format!("{} {lane} on {}{strategy_note}{note}", green("would land"), outcome.onto)
        }
        Verdict::Landed => {
            let commit = outcome.commit.map(|c| format!(" ({})", c.short())).unwrap_or_default();
            let note = match (&outcome.message, outcome.cleaned_up) {
                (Some(reason), false) => format!("; {reason}"),
                _ => String::new(),
            };
            format!("{} {lane} on {}{commit}{note}", green("landed"), outcome.onto)
        }
        Verdict::Resolved => {
            let commit = outcome.commit.map(|c| format!(" ({})", c.short())).unwrap_or_default();
            let files = ui::pluralize(outcome.conflicted_files.len(), "file");
            format!(
                "{} {lane} on {}{commit}; its conflict in {files} was resolved",
                green("landed"),
                outcome.onto
            )
        }
        Verdict::AlreadyLanded => {
            let note = outcome.message.as_ref().map(|reason| format!("; {reason}")).unwrap_or_default();
            format!(
                "{} {lane}: everything in it is on {} already{note}",
                green("nothing to do"),
                outcome.onto
            )
        }
        Verdict::Conflict => {
            let verb = if dry_run { "would conflict" } else { "conflict" };
            let verb = console::style(verb).yellow();
            let conflicting = if outcome.conflicting_lanes.is_empty() {
                outcome.onto.clone()
            } else {
                outcome.conflicting_lanes.join(", ")
            };
            let files = ui::pluralize(outcome.conflicted_files.len(), "file");
            format!("{verb} {lane} with {conflicting} in {files}; {} was not touched", outcome.onto)
        }
        Verdict::CheckFailed => check_failed_text(outcome),
        Verdict::Refused => {
            let reason = outcome.message.as_deref().unwrap_or("it may not land");
            format!("{} {lane}: {reason}", console::style("refused").red())
        }
    }
}

/// Formats which check of a lane failed, and how.
fn check_failed_text(outcome: &LaneOutcome) -> String {
    let lane = &outcome.lane;
    let reason = outcome.message.as_deref().unwrap_or("a check failed");
    let context =
        outcome.check.as_ref().map_or_else(String::new, |check| match check.lanes_below.as_slice() {
            [] => format!(" with it on {}", outcome.onto),
            [one] => format!(" with it on {} and {one}", outcome.onto),
            [.., last] => {
                let others = ui::pluralize(check.lanes_below.len() - 1, "other lane");
                format!(" with it on {}, {last} and {others}", outcome.onto)
            }
        });
    let label = console::style("check failed").red();
    // The checks of a lane's own task do not run without the lane, so the text makes no claim about the base.
    let is_own_check = outcome.check.as_ref().is_some_and(|check| check.task_lane.as_ref() == Some(lane));
    let without = if is_own_check { "" } else { ", but not without it" };
    format!("{label} {lane}: {reason}{context}{without}; {} does not have it", outcome.onto)
}

/// Returns a word in green for standard output.
fn green(word: &str) -> String {
    console::style(word).green().to_string()
}
