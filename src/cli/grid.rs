//! Owns how a forecast looks: a triangle that is read at a glance, and a line for each two that conflict.

use std::fmt::Write;

use console::{measure_text_width, style, truncate_str};

use super::ui;
use crate::git::{Clash, Lines};
use crate::merge::{Compared, Forecast, Meeting, Pair};

/// More lanes than this are not taken in at a glance.
const MOST: usize = 15;
/// The width where there is no terminal.
const WIDTH: usize = 80;
/// The longest name that is shown whole.
const NAME: usize = 28;
/// How many paths, and places in one, a line names.
const NAMED: usize = 4;

/// One triangle for each base, where it fits.
pub(super) fn of(forecast: &Forecast, width: Option<usize>) -> Vec<String> {
    let mut bases: Vec<&str> = forecast.lanes.iter().map(|lane| lane.base.as_str()).collect();
    bases.dedup();
    bases.into_iter().filter_map(|base| triangle(forecast, base, width.unwrap_or(WIDTH))).collect()
}

/// The base in the first column, then the lanes by their numbers. None where that is too wide, or too much.
fn triangle(forecast: &Forecast, base: &str, width: usize) -> Option<String> {
    let lanes: Vec<&Compared> = forecast.lanes.iter().filter(|lane| lane.base == base).collect();
    let digits = lanes.len().to_string().len();
    let names: Vec<String> =
        lanes.iter().map(|lane| truncate_str(&lane.lane, NAME, "…").into_owned()).collect();
    let longest = names.iter().map(|name| measure_text_width(name)).max()?;
    let head = truncate_str(base, NAME, "…");
    let first = measure_text_width(&head);
    let left = digits + 1 + longest + 2;
    if lanes.len() > MOST || left + first + (lanes.len() - 1) * (digits + 2) > width {
        return None;
    }
    let mut out = format!("{:left$}{}", "", style(&head).bold());
    for number in 1..lanes.len() {
        let _ = write!(out, "  {}", style(format!("{number:>digits$}")).bold());
    }
    for (at, (lane, name)) in lanes.iter().zip(&names).enumerate() {
        let pad = longest - measure_text_width(name);
        let _ = write!(out, "\n{:>digits$} {name}{:pad$}  ", at + 1, "");
        let mark = find(forecast, base, &lane.lane, true).map_or(" ".to_owned(), symbol);
        let _ = write!(out, "{mark}{:1$}", "", first.saturating_sub(1));
        for other in &lanes[..at] {
            let mark = find(forecast, &other.lane, &lane.lane, false).map_or(" ".to_owned(), symbol);
            let _ = write!(out, "  {:1$}{mark}", "", digits - 1);
        }
    }
    Some(out.lines().map(str::trim_end).collect::<Vec<_>>().join("\n"))
}

fn find<'f>(forecast: &'f Forecast, ours: &str, theirs: &str, with_base: bool) -> Option<&'f Pair> {
    forecast.pairs.iter().find(|p| p.with_base == with_base && p.ours == ours && p.theirs == theirs)
}

fn symbol(pair: &Pair) -> String {
    match pair.result {
        Meeting::Clean => style("·").green(),
        Meeting::Conflict { .. } => style("x").red().bold(),
        Meeting::Unknown { .. } => style("?").yellow(),
    }
    .to_string()
}

/// A line for each two that conflict, or of which nothing is known.
pub(super) fn conflicts(forecast: &Forecast) -> Vec<String> {
    lines(&forecast.pairs)
}

/// The same for some pairs.
pub(super) fn lines(pairs: &[Pair]) -> Vec<String> {
    let line = |pair: &Pair| {
        let said = match &pair.result {
            Meeting::Clean => return None,
            Meeting::Conflict { conflicts } => places(conflicts),
            Meeting::Unknown { why } => why.clone(),
        };
        Some(format!("{} {} {}: {said}", pair.ours, symbol(pair), pair.theirs))
    };
    pairs.iter().filter_map(line).collect()
}

/// How it looks as a whole.
pub(super) fn summary(forecast: &Forecast) -> String {
    let bad = |with_base| {
        forecast.pairs.iter().filter(|p| p.with_base == with_base && p.result.is_conflict()).count()
    };
    let lanes = ui::count(forecast.lanes.len(), "lane");
    match (bad(true), bad(false)) {
        (0, 0) => format!("{lanes}, no conflicts"),
        (with_base, among) => {
            let pairs = ui::count(among, "pair");
            format!("{lanes}: {with_base} in conflict with the base, {pairs} of them with each other")
        }
    }
}

/// `src/lib.rs:10-14,30, Cargo.toml:3, old.rs (modify/delete)`
fn places(clashes: &[Clash]) -> String {
    let mut named: Vec<String> = clashes.iter().take(NAMED).map(place).collect();
    if clashes.len() > NAMED {
        named.push(format!("and {}", ui::count(clashes.len() - NAMED, "more file")));
    }
    named.join(", ")
}

fn place(clash: &Clash) -> String {
    if clash.hunks.is_empty() {
        return format!("{} ({})", clash.path, clash.kind);
    }
    let mut lines: Vec<String> = clash.hunks.iter().take(NAMED).map(|hunk| span(hunk.ours)).collect();
    lines.dedup();
    if clash.hunks.len() > NAMED {
        lines.push("…".to_owned());
    }
    format!("{}:{}", clash.path, lines.join(","))
}

fn span(lines: Lines) -> String {
    match lines.count {
        0 | 1 => lines.start.to_string(),
        n => format!("{}-{}", lines.start, lines.start + n - 1),
    }
}
