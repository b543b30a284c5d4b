//! Text output of a forecast: a triangular grid of all pairs, and a line for each conflicting pair.

use std::fmt::Write;

use console::{measure_text_width, style, truncate_str};
use proq_lib::merge::comparison::forecast::report::{
    ComparedLane, Forecast, ForecastPair, PairResult as Meeting,
};
use proq_lib::types::{LineRange, PathConflict};

use super::table::{DEFAULT_WIDTH, cut_name, output_width};
use super::ui;

/// Maximum number of lanes in a grid. A larger grid is hard to read.
const MAX_GRID_LANES: usize = 15;
/// Maximum width of a name; longer names are truncated.
const MAX_NAME_WIDTH: usize = 24;
/// Width to which names are truncated so that a grid fits.
const MIN_NAME_WIDTH: usize = 8;
/// Maximum number of conflicting paths that a line names, and of line ranges that it names per path.
const MAX_ITEMS_NAMED: usize = 4;

/// Renders one grid for each base, without those that do not fit.
pub(crate) fn render_grids(forecast: &Forecast) -> Vec<String> {
    let mut bases: Vec<&str> = forecast.lanes.iter().map(|lane| lane.base.as_str()).collect();
    bases.dedup();
    bases.into_iter().filter_map(|base| render_grid_of_base(forecast, base)).collect()
}

/// Renders the grid of one base: the base in the first column, then the lanes by number. `None` if it is too
/// wide for the output or has too many lanes.
fn render_grid_of_base(forecast: &Forecast, base: &str) -> Option<String> {
    let lanes: Vec<&ComparedLane> = forecast.lanes.iter().filter(|lane| lane.base == base).collect();
    let digits = lanes.len().to_string().len();
    let base_title = truncate_str(base, MAX_NAME_WIDTH, "…");
    let base_width = measure_text_width(&base_title);
    let marks_width = digits + 1 + 2 + base_width + (lanes.len() - 1) * (digits + 2);
    let available = output_width().unwrap_or(DEFAULT_WIDTH).saturating_sub(marks_width + 1);
    if lanes.len() > MAX_GRID_LANES || available < MIN_NAME_WIDTH {
        return None;
    }
    let max_width = available.min(MAX_NAME_WIDTH);
    let names: Vec<String> = lanes.iter().map(|lane| cut_name(lane.lane.as_str(), max_width)).collect();
    let name_width = names.iter().map(|name| measure_text_width(name)).max()?;
    let left = digits + 1 + name_width + 2;
    let mut out = format!("{:left$}{}", "", style(&base_title).bold());
    for number in 1..lanes.len() {
        let _ = write!(out, "  {}", style(format!("{number:>digits$}")).bold());
    }
    for (index, (lane, name)) in lanes.iter().zip(&names).enumerate() {
        let pad = name_width - measure_text_width(name);
        let _ = write!(out, "\n{:>digits$} {name}{:pad$}  ", index + 1, "");
        let mark = |ours: &str, with_base: bool| {
            let is_pair =
                |p: &&ForecastPair| p.with_base == with_base && p.ours == ours && p.theirs == lane.lane;
            forecast.pairs.iter().find(is_pair).map_or(" ".to_owned(), pair_symbol)
        };
        let _ = write!(out, "{}{:2$}", mark(base, true), "", base_width.saturating_sub(1));
        for other in &lanes[..index] {
            let _ = write!(out, "  {:1$}{2}", "", digits - 1, mark(other.lane.as_str(), false));
        }
    }
    Some(out.lines().map(str::trim_end).collect::<Vec<_>>().join("\n"))
}

/// Returns the symbol of a pair's result: `·` clean, `x` conflict, `?` unknown.
fn pair_symbol(pair: &ForecastPair) -> String {
    match pair.result {
        Meeting::Clean => style("·").green(),
        Meeting::Conflict { .. } => style("x").red().bold(),
        Meeting::Unknown { .. } => style("?").yellow(),
    }
    .to_string()
}

/// Returns a line for each pair of `pairs` that conflicts or whose result is unknown.
pub(crate) fn conflicting_pair_lines(pairs: &[ForecastPair]) -> Vec<String> {
    let line = |pair: &ForecastPair| {
        let text = match &pair.result {
            Meeting::Clean => return None,
            Meeting::Conflict { conflicts } => conflict_locations(conflicts),
            Meeting::Unknown { reason } => reason.clone(),
        };
        Some(format!("{} {} {}: {text}", pair.ours, pair_symbol(pair), pair.theirs))
    };
    pairs.iter().filter_map(line).collect()
}

/// Formats the number of lanes and of conflicts in one line.
pub(crate) fn summary_line(forecast: &Forecast) -> String {
    let count_conflicts = |with_base| {
        forecast.pairs.iter().filter(|p| p.with_base == with_base && p.result.is_conflict()).count()
    };
    let lanes = ui::pluralize(forecast.lanes.len(), "lane");
    let parts = match (count_conflicts(true), count_conflicts(false)) {
        (0, 0) => return format!("{lanes}, no conflicts"),
        (0, pairs) => vec![pairs_text(pairs)],
        (with_base, 0) => vec![base_text(with_base)],
        (with_base, pairs) => vec![base_text(with_base), pairs_text(pairs)],
    };
    format!("{lanes}: {}", parts.join(", "))
}

fn base_text(count: usize) -> String {
    let verb = if count == 1 { "conflicts" } else { "conflict" };
    format!("{count} {verb} with the base")
}

fn pairs_text(count: usize) -> String {
    let (pairs, verb) = (ui::pluralize(count, "pair"), if count == 1 { "conflicts" } else { "conflict" });
    format!("{pairs} {verb} with each other")
}

/// Formats the conflicting files with their line ranges: `src/lib.rs:10-14,30, Cargo.toml:3, old.rs
/// (modify/delete)`.
fn conflict_locations(conflicts: &[PathConflict]) -> String {
    let mut locations: Vec<String> = conflicts.iter().take(MAX_ITEMS_NAMED).map(conflict_location).collect();
    let rest = conflicts.iter().skip(MAX_ITEMS_NAMED).count();
    locations.extend((rest > 0).then(|| format!("and {}", ui::pluralize(rest, "more file"))));
    locations.join(", ")
}

/// Formats a conflicting file with its line ranges, or with the kind of the conflict if it has none.
fn conflict_location(conflict: &PathConflict) -> String {
    if conflict.hunks.is_empty() {
        return format!("{} ({})", conflict.path, conflict.kind);
    }
    let mut lines: Vec<String> =
        conflict.hunks.iter().take(MAX_ITEMS_NAMED).map(|hunk| line_range_text(hunk.ours)).collect();
    lines.dedup();
    lines.extend((conflict.hunks.len() > MAX_ITEMS_NAMED).then(|| "…".to_owned()));
    format!("{}:{}", conflict.path, lines.join(","))
}

fn line_range_text(lines: LineRange) -> String {
    match lines.count {
        0 | 1 => lines.start.to_string(),
        n => format!("{}-{}", lines.start, lines.start + n - 1),
    }
}
