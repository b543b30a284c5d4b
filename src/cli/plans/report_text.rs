//! Text about the history of a batch that its report has on the terminal and as a page.

use proq_lib::swarm::status::batch_history::BatchHistory;

use super::batch_hints;
use crate::cli::terminal::{ui, usage};

/// Formats how many tasks landed, and how many are in each of the other states.
pub(crate) fn landed_summary(history: &BatchHistory) -> String {
    let counts = history.progress.counts;
    let other_counts = [
        (counts.done_before, "done before"),
        (counts.failed, "failed"),
        (counts.skipped, "skipped"),
        (counts.running, "at work"),
        (counts.landing, "landing"),
        (counts.waiting, "waiting"),
        (counts.unfinished, "left"),
    ];
    let other_parts: Vec<String> =
        other_counts.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}")).collect();
    let others_suffix =
        if other_parts.is_empty() { String::new() } else { format!("; {}", other_parts.join(", ")) };
    format!("{} of {}{others_suffix}", counts.landed, ui::pluralize(counts.tasks, "task"))
}

/// Formats the cost and the tokens of all runs, as far as the agents report them.
pub(crate) fn cost_summary(history: &BatchHistory) -> String {
    let tokens = history.tokens;
    let has_tokens = tokens.total_input() + tokens.output > 0;
    let parts = history.cost.map(usage::cost_text).into_iter();
    parts.chain(has_tokens.then(|| usage::tokens_text(tokens))).collect::<Vec<_>>().join(", ")
}

/// Formats the results of the batch's criteria as lines; empty if the batch has no criteria report.
pub(crate) fn criteria_lines(history: &BatchHistory) -> Vec<String> {
    history.progress.criteria.as_ref().map(batch_hints::criteria_lines).unwrap_or_default()
}

/// Lists what git-proq marked as done in the files of the plan, and what it could not mark, as lines.
pub(crate) fn plan_mark_lines(history: &BatchHistory) -> Vec<String> {
    let Some(marks) = &history.plan_marks else { return Vec::new() };
    let commit = marks.commit.map(|commit| format!("commit {}", commit.short()));
    let written = marks.written.iter().map(|path| format!("{path}, which is yours to commit"));
    let unmarked = marks.unmarked.iter().map(|item| format!("not in {}: {}", item.path, item.reason));
    commit.into_iter().chain(written).chain(unmarked).collect()
}
