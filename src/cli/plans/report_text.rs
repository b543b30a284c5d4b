//! Text about a batch that its status, its end and its report have in common.

use proq_base::terminal_text;
use proq_lib::swarm::batch::criteria_report::CriteriaReport;
use proq_lib::swarm::status::batch_history::BatchHistory;

use super::text_parts::{clause, count_texts};
use crate::cli::terminal::{ui, usage};

/// Formats the criteria report of a batch: a summary line, then a line per criterion.
pub(crate) fn criteria_lines(report: &CriteriaReport) -> Vec<String> {
    let criterion_lines = report.criteria.iter().filter(|_| report.skipped.is_none()).map(|criterion| {
        let met_text = criterion.status.map_or_else(|| "inspected".to_owned(), |met| met.to_string());
        let evidence = criterion.evidence.as_ref().map(|text| format!(": {text}")).unwrap_or_default();
        let log = criterion.log.as_ref().map(|log| log.display().to_string()).unwrap_or_default();
        format!("  {met_text:<13} {}{evidence}{}", criterion.text, clause("; it wrote ", &log, ""))
    });
    let lines = std::iter::once(report.describe()).chain(criterion_lines);
    lines.map(|line| terminal_text::escape_line(&line)).collect()
}

/// Formats how many tasks landed, and how many are in each of the other states.
pub(crate) fn landed_summary(history: &BatchHistory) -> String {
    let counts = history.progress.counts;
    let others = count_texts([
        (counts.done_before, "done before"),
        (counts.failed, "failed"),
        (counts.skipped, "skipped"),
        (counts.running, "at work"),
        (counts.landing, "landing"),
        (counts.waiting, "waiting"),
        (counts.unfinished, "left"),
    ]);
    let tasks = ui::pluralize(counts.tasks, "task");
    format!("{} of {tasks}{}", counts.landed, clause("; ", &others.join(", "), ""))
}

/// Formats the cost and the tokens of all runs, as far as the agents report them.
pub(crate) fn cost_summary(history: &BatchHistory) -> String {
    let tokens = history.tokens;
    let has_tokens = tokens.total_input() + tokens.output > 0;
    let parts = history.cost.map(usage::cost_text).into_iter();
    parts.chain(has_tokens.then(|| usage::tokens_text(tokens))).collect::<Vec<_>>().join(", ")
}

/// Lists what git-proq marked as done in the files of the plan, and what it could not mark, as lines.
pub(crate) fn plan_mark_lines(history: &BatchHistory) -> Vec<String> {
    let Some(marks) = &history.plan_marks else { return Vec::new() };
    let commit = marks.commit.map(|commit| format!("commit {}", commit.short()));
    let written = marks.written.iter().map(|path| format!("{path}, which you have to commit"));
    let unmarked = marks.unmarked.iter().map(|item| format!("not in {}: {}", item.path, item.reason));
    commit.into_iter().chain(written).chain(unmarked).collect()
}

/// Returns the patches that would mark in the files of the plan what git-proq could not.
pub(crate) fn unmarked_patches(history: &BatchHistory) -> impl Iterator<Item = &str> {
    let unmarked = history.plan_marks.iter().flat_map(|marks| &marks.unmarked);
    unmarked.map(|item| item.patch.as_str()).filter(|patch| !patch.is_empty())
}
