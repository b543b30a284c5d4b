//! Side-by-side comparison of attempts: a column per attempt, as many as fit the width, and further tables
//! below for the others.

use console::{measure_text_width, style, truncate_str};
use proq_base::usage::Tokens;
use proq_lib::merge::comparison::compare::{AttemptSummary, Comparison};
use proq_lib::merge::comparison::forecast::report::{ForecastPair, PairResult as Meeting};
use proq_lib::merge::types::outcome::CheckStatus;
use proq_lib::types::FileLineCounts;

use crate::cli::terminal::table::{DEFAULT_WIDTH, output_width};
use crate::cli::terminal::{ui, usage};

/// Minimum width, in terminal columns, to which attempts' columns are narrowed so that all attempts fit into
/// one table.
const MIN_COLUMN_WIDTH: usize = 18;
/// Number of blanks between two columns.
const COLUMN_GAP: usize = 2;

/// Row of the comparison: its label, and the function that renders its cell for an attempt.
type RowSpec = (&'static str, fn(&Comparison, &AttemptSummary) -> String);

/// Rows of the comparison, from top to bottom. A table leaves a row out if it is empty for all its attempts.
const ROWS: &[RowSpec] = &[
    ("agent", |_, attempt| attempt.agent.clone().unwrap_or_default()),
    ("state", |_, attempt| ui::styled_state(attempt.state)),
    ("from", start_and_base_cell),
    ("commits", |_, attempt| attempt.commits.map_or_else(|| "?".to_owned(), |n| n.to_string())),
    ("changes", uncommitted_cell),
    ("files", |_, attempt| attempt.files.len().to_string()),
    ("lines", changed_lines_cell),
    ("only here", exclusive_files_cell),
    ("checks", checks_cell),
    ("merges", base_forecast_cell),
    ("with others", conflicting_attempts_cell),
    ("run time", run_time_cell),
    ("tokens", tokens_cell),
    ("cost", |_, attempt| attempt.costs.cost.map(usage::cost_text).unwrap_or_default()),
];

/// Renders the comparison as tables as wide as the output, to be printed one below the other.
pub(crate) fn render_tables(comparison: &Comparison) -> Vec<String> {
    let label_width = ROWS.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let all_cells: Vec<_> =
        comparison.attempts.iter().map(|attempt| attempt_cells(comparison, attempt)).collect();
    let natural_width =
        all_cells.iter().flatten().map(|cell| measure_text_width(cell)).max().unwrap_or(0).max(1);
    let available_width = output_width()
        .unwrap_or(DEFAULT_WIDTH)
        .saturating_sub(label_width)
        .max(COLUMN_GAP + MIN_COLUMN_WIDTH);
    // As many as fit at their full width; narrower columns if all attempts then fit into one table.
    let full_width_count = (available_width / (natural_width + COLUMN_GAP)).max(1);
    let narrow_count = available_width / (MIN_COLUMN_WIDTH.min(natural_width) + COLUMN_GAP);
    let columns_per_table =
        if narrow_count >= all_cells.len() { all_cells.len().max(1) } else { full_width_count };
    let column_width =
        natural_width.min((available_width / columns_per_table).saturating_sub(COLUMN_GAP)).max(1);
    all_cells.chunks(columns_per_table).map(|group| render_table(group, label_width, column_width)).collect()
}

/// Returns the name of an attempt, followed by its cell of every row.
fn attempt_cells(comparison: &Comparison, attempt: &AttemptSummary) -> Vec<String> {
    std::iter::once(attempt.lane.to_string())
        .chain(ROWS.iter().map(|(_, render_cell)| render_cell(comparison, attempt)))
        .collect()
}

/// Renders attempts side by side, one column of cells per attempt. `label` is the width of the row labels.
fn render_table(columns: &[Vec<String>], label: usize, column_width: usize) -> String {
    let names = std::iter::once("").chain(ROWS.iter().map(|(name, _)| *name));
    let mut out = Vec::new();
    for (row, name) in names.enumerate() {
        if row > 0 && columns.iter().all(|cells| cells[row].is_empty()) {
            continue;
        }
        let mut line = format!("{name:label$}");
        for cells in columns {
            // Attempts of one task differ in the end of their name.
            let cell = match row {
                0 => style(truncate_start(&cells[row], column_width)).bold().to_string(),
                _ => truncate_str(&cells[row], column_width, "…").into_owned(),
            };
            let pad = column_width.saturating_sub(measure_text_width(&cell));
            line.push_str(&format!("{:COLUMN_GAP$}{cell}{:pad$}", "", ""));
        }
        out.push(line.trim_end().to_owned());
    }
    out.join("\n")
}

/// Shortens a name to `width` characters by cutting its start, marked by `…`. Names are ASCII.
fn truncate_start(name: &str, width: usize) -> String {
    let count = name.chars().count();
    if count <= width {
        return name.to_owned();
    }
    let end: String = name.chars().skip(count + 1 - width).collect();
    format!("…{end}")
}

/// Formats the commit and the base that an attempt starts from; empty if all attempts start from the same.
fn start_and_base_cell(comparison: &Comparison, attempt: &AttemptSummary) -> String {
    let start = format!("{} {}", attempt.start.short(), attempt.base);
    let has_other_start =
        |other: &AttemptSummary| (&other.base, other.start) != (&attempt.base, attempt.start);
    if comparison.attempts.iter().any(has_other_start) { start } else { String::new() }
}

/// Formats the number of uncommitted files; empty if no attempt has any, `?` if unknown.
fn uncommitted_cell(comparison: &Comparison, attempt: &AttemptSummary) -> String {
    let any_uncommitted = comparison.attempts.iter().any(|other| other.uncommitted.is_some_and(|n| n > 0));
    match attempt.uncommitted {
        _ if !any_uncommitted => String::new(),
        Some(0) => "-".to_owned(),
        Some(n) => format!("{} uncommitted", ui::pluralize(n, "file")),
        None => "?".to_owned(),
    }
}

/// Formats the added and removed lines of an attempt: `+12 -3`, or `-` for none.
fn changed_lines_cell(_: &Comparison, attempt: &AttemptSummary) -> String {
    let sum_of = |line_count: fn(&FileLineCounts) -> Option<usize>| {
        attempt.files.iter().filter_map(line_count).sum::<usize>()
    };
    match (sum_of(|file| file.added), sum_of(|file| file.removed)) {
        (0, 0) => "-".to_owned(),
        (added, removed) => ui::changed_lines(added, removed),
    }
}

/// Formats the number of files that only this attempt changes; empty if there is no other attempt.
fn exclusive_files_cell(comparison: &Comparison, attempt: &AttemptSummary) -> String {
    match attempt.exclusive_files.len() {
        _ if comparison.attempts.len() < 2 => String::new(),
        0 => "-".to_owned(),
        n => ui::pluralize(n, "file"),
    }
}

/// Formats the result of the checks on what would land; empty if there are no checks.
fn checks_cell(_: &Comparison, attempt: &AttemptSummary) -> String {
    match &attempt.checks {
        CheckStatus::NoChecks => String::new(),
        CheckStatus::Unknown | CheckStatus::Inconclusive { .. } => style("not known").dim().to_string(),
        CheckStatus::Passed => style("passed").green().to_string(),
        CheckStatus::Failed { .. } => style("failed").red().to_string(),
    }
}

/// Formats the merge forecast of an attempt with its base.
fn base_forecast_cell(comparison: &Comparison, attempt: &AttemptSummary) -> String {
    let base_pair = comparison.pairs.iter().find(|pair| pair.with_base && pair.theirs == attempt.lane);
    match base_pair.map(|pair| &pair.result) {
        None => "-".to_owned(),
        Some(Meeting::Clean) => style("cleanly").green().to_string(),
        Some(Meeting::Conflict { conflicts }) => {
            style(format!("conflict in {}", ui::pluralize(conflicts.len(), "file"))).yellow().to_string()
        }
        Some(Meeting::Unknown { .. }) => "?".to_owned(),
    }
}

/// Formats how many of the other attempts this attempt would conflict with.
fn conflicting_attempts_cell(comparison: &Comparison, attempt: &AttemptSummary) -> String {
    let involves_attempt = |pair: &&ForecastPair| {
        !pair.with_base && (attempt.lane == pair.ours.as_str() || pair.theirs == attempt.lane)
    };
    let pairs: Vec<&ForecastPair> = comparison.pairs.iter().filter(involves_attempt).collect();
    match pairs.iter().filter(|pair| pair.result.is_conflict()).count() {
        _ if comparison.attempts.len() < 2 => String::new(),
        _ if pairs.is_empty() => "-".to_owned(),
        0 => "no conflicts".to_owned(),
        n => format!("conflicts with {n}"),
    }
}

fn run_time_cell(_: &Comparison, attempt: &AttemptSummary) -> String {
    match attempt.costs.runs {
        0 => String::new(),
        1 => duration_text(attempt.costs.duration),
        n => format!("{}, {n} runs", duration_text(attempt.costs.duration)),
    }
}

/// Formats the tokens of an attempt's runs. Cached input tokens count too, though they cost less.
fn tokens_cell(_: &Comparison, attempt: &AttemptSummary) -> String {
    let text = |tokens: Tokens| {
        format!("{} in, {} out", ui::short_count(tokens.total_input()), ui::short_count(tokens.output))
    };
    attempt.costs.tokens.map(text).unwrap_or_default()
}

/// Formats a duration for a table: `12s`, `5m 12s`, `3h 5m`.
fn duration_text(duration: std::time::Duration) -> String {
    let (rounded, seconds) = (ui::short_duration(duration), duration.as_secs());
    match seconds {
        0..60 => rounded,
        60..3600 => format!("{rounded} {}s", seconds % 60),
        3600..86400 => format!("{rounded} {}m", seconds % 3600 / 60),
        _ => format!("{rounded} {}h", seconds % 86400 / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_end_of_long_names() {
        assert_eq!(truncate_start("implement-payments-1", 20), "implement-payments-1");
        assert_eq!(truncate_start("implement-payments-12", 10), "…yments-12");
    }
}
