//! Owns how attempts look beside each other: a column for each, as many as fit, then the next ones below.

use console::{measure_text_width, style, truncate_str};

use super::compare::long_span;
use super::{account, ui};
use crate::merge::{Attempt, Checked, Comparison, Meeting, Pair};

/// The width where there is no terminal.
pub(super) const WIDTH: usize = 80;
/// The narrowest that a column is made so that one more fits.
const NARROW: usize = 18;
/// Between columns.
const GAP: usize = 2;

/// A row: what it is called, and what it says of an attempt.
type Row = (&'static str, fn(&Comparison, &Attempt) -> String);

/// What is compared, from top to bottom. A row that says nothing of any attempt is left out.
const ROWS: &[Row] = &[
    ("agent", |_, one| one.agent.clone().unwrap_or_default()),
    ("state", |_, one| ui::state(one.state)),
    ("from", from),
    ("commits", |_, one| one.commits.map_or_else(|| "?".to_owned(), |n| n.to_string())),
    ("changes", uncommitted),
    ("files", |_, one| one.files.len().to_string()),
    ("lines", lines),
    ("only here", only),
    ("checks", checks),
    ("merges", merges),
    ("with others", beside),
    ("run time", run_time),
    ("tokens", tokens),
    ("cost", cost),
];

/// The tables, one below the other.
pub(super) fn tables(found: &Comparison, width: usize) -> Vec<String> {
    let label = ROWS.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let each = found.attempts.iter().map(|one| cells(found, one)).collect::<Vec<_>>();
    let widest = |cells: &Vec<String>| cells.iter().map(|cell| measure_text_width(cell)).max().unwrap_or(0);
    let wish = each.iter().map(widest).max().unwrap_or(0).max(1);
    let room = width.saturating_sub(label).max(GAP + NARROW);
    // As many as fit at their full width; narrower ones if that brings all of them into one table.
    let whole = (room / (wish + GAP)).max(1);
    let squeezed = room / (NARROW.min(wish) + GAP);
    let count = if squeezed >= each.len() { each.len().max(1) } else { whole };
    let column = wish.min((room / count).saturating_sub(GAP)).max(1);
    each.chunks(count).map(|some| table(some, label, column)).collect()
}

/// The name of an attempt, and what each row says of it.
fn cells(found: &Comparison, one: &Attempt) -> Vec<String> {
    std::iter::once(one.lane.clone()).chain(ROWS.iter().map(|(_, say)| say(found, one))).collect()
}

fn table(some: &[Vec<String>], label: usize, column: usize) -> String {
    let names = std::iter::once("").chain(ROWS.iter().map(|(name, _)| *name));
    let mut out = Vec::new();
    for (at, name) in names.enumerate() {
        if at > 0 && some.iter().all(|cells| cells[at].is_empty()) {
            continue;
        }
        let mut line = format!("{name:label$}");
        for cells in some {
            // Of a name the end counts: that is what tells attempts apart.
            let cell = if at == 0 {
                style(end_of(&cells[at], column)).bold().to_string()
            } else {
                cells[at].clone()
            };
            let cell = truncate_str(&cell, column, "…");
            let pad = column.saturating_sub(measure_text_width(&cell));
            line.push_str(&format!("{:GAP$}{cell}{:pad$}", "", ""));
        }
        out.push(line.trim_end().to_owned());
    }
    out.join("\n")
}

/// The last characters of a name that is too long. Names are plain letters.
fn end_of(name: &str, width: usize) -> String {
    let count = name.chars().count();
    if count <= width {
        return name.to_owned();
    }
    let end: String = name.chars().skip(count + 1 - width).collect();
    format!("…{end}")
}

/// Where it was cut, where they were not all cut at one place.
fn from(found: &Comparison, one: &Attempt) -> String {
    let same = |other: &Attempt| (&other.base, other.start) == (&one.base, one.start);
    if found.attempts.iter().all(same) {
        String::new()
    } else {
        format!("{} {}", one.start.short(), one.base)
    }
}

fn uncommitted(found: &Comparison, one: &Attempt) -> String {
    let any = found.attempts.iter().any(|one| one.uncommitted.is_some_and(|n| n > 0));
    match one.uncommitted {
        _ if !any => String::new(),
        Some(0) => "-".to_owned(),
        Some(n) => format!("{} uncommitted", ui::count(n, "file")),
        None => "?".to_owned(),
    }
}

fn lines(_: &Comparison, one: &Attempt) -> String {
    let sum =
        |of: fn(&crate::git::FileLines) -> Option<usize>| one.files.iter().filter_map(of).sum::<usize>();
    match (sum(|file| file.added), sum(|file| file.removed)) {
        (0, 0) => "-".to_owned(),
        (added, removed) => format!("+{added} -{removed}"),
    }
}

fn only(found: &Comparison, one: &Attempt) -> String {
    match one.only.len() {
        _ if found.attempts.len() < 2 => String::new(),
        0 => "-".to_owned(),
        n => ui::count(n, "file"),
    }
}

fn checks(_: &Comparison, one: &Attempt) -> String {
    match &one.checks {
        Checked::None => String::new(),
        Checked::Unknown => style("not known").dim().to_string(),
        Checked::Passed => style("passed").green().to_string(),
        Checked::Failed { .. } => style("failed").red().to_string(),
    }
}

/// What came of looking ahead at a merge into its base.
fn merges(found: &Comparison, one: &Attempt) -> String {
    let with_base = found.pairs.iter().find(|pair| pair.with_base && pair.theirs == one.lane);
    match with_base.map(|pair| &pair.result) {
        None => "-".to_owned(),
        Some(Meeting::Clean) => style("cleanly").green().to_string(),
        Some(Meeting::Conflict { conflicts }) => {
            style(format!("conflict in {}", ui::count(conflicts.len(), "file"))).yellow().to_string()
        }
        Some(Meeting::Unknown { .. }) => "?".to_owned(),
    }
}

/// With how many of the others it would conflict.
fn beside(found: &Comparison, one: &Attempt) -> String {
    let with = |pair: &&Pair| !pair.with_base && (pair.ours == one.lane || pair.theirs == one.lane);
    let all: Vec<&Pair> = found.pairs.iter().filter(with).collect();
    match all.iter().filter(|pair| pair.result.is_conflict()).count() {
        _ if found.attempts.len() < 2 => String::new(),
        _ if all.is_empty() => "-".to_owned(),
        0 => "no conflicts".to_owned(),
        n => format!("conflicts with {n}"),
    }
}

fn run_time(_: &Comparison, one: &Attempt) -> String {
    match one.spent.runs {
        0 => String::new(),
        1 => long_span(one.spent.seconds),
        n => format!("{}, {n} runs", long_span(one.spent.seconds)),
    }
}

fn tokens(_: &Comparison, one: &Attempt) -> String {
    // What was sent of old counts too, though it costs less.
    one.spent.tokens.map_or_else(String::new, |used| format!("{} in, {} out", used.sent(), used.output))
}

fn cost(_: &Comparison, one: &Attempt) -> String {
    one.spent.cost.map_or_else(String::new, account::money)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_name_the_end_is_kept() {
        assert_eq!(end_of("implement-payments-1", 20), "implement-payments-1");
        assert_eq!(end_of("implement-payments-12", 10), "…yments-12");
    }
}
