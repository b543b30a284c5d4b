//! The table of lanes, also while its data is still loading.

use proq_lib::board::rows::lane_conflicts::LaneConflicts;
use proq_lib::board::rows::lane_list::{PartialList, StoredInfo, is_previewed, missing_parts};
use proq_lib::lane::inspection::list::LaneView;
use proq_lib::types::{AnyLane, RunSummary};

use crate::cli::runs::pull_request_view;
use crate::cli::terminal::table::{Column, Rendered};
use crate::cli::terminal::{table, ui, usage};

/// Columns of the list. What matters least is hidden first on a narrow terminal.
const COLUMNS: [Column; 15] = [
    Column::name("LANE"),
    Column::text("STATE", 12),
    Column::new("LINES").hidden_at(4),
    Column::new("COMMITS").hidden_at(3),
    Column::new("CHANGES").hidden_at(2),
    Column::new("CONFLICTS").hidden_at(1),
    Column::new("REQUEST").hidden_at(5),
    Column::text("AGENT", 10).hidden_at(6),
    Column::text("BASE", 8).hidden_at(5),
    Column::number("TOOLS").hidden_at(9),
    Column::text("LAST", 8).hidden_at(10),
    Column::number("CONTEXT").hidden_at(9),
    Column::number("COST").hidden_at(5),
    Column::new("UPDATED").hidden_at(7),
    Column::text("TITLE", 12).hidden_at(8),
];

/// Cells of a row, in the order of [`COLUMNS`].
type Cells = [String; COLUMNS.len()];

/// Placeholder of a cell whose data is still loading.
const LOADING_PLACEHOLDER: &str = "…";

/// Renders the table. Columns without any text are left out, and those of lines and conflicts if no lane has
/// commits to compare.
pub(crate) fn render_list(input: &PartialList<'_>, width: Option<usize>) -> Rendered {
    let mut bases: Vec<&str> = input.views.iter().map(|view| view.lane.base.as_str()).collect();
    bases.sort_unstable();
    bases.dedup();
    let past_lanes = input.stored.past_lanes.iter();
    let present_rows = (0..input.views.len()).map(|index| lane_row(input, index));
    let rows = present_rows.chain(past_lanes.map(|(name, lane)| lane_cells(input, name, lane)));
    let without_shared_base = |mut cells: Cells| {
        if bases.len() < 2 {
            cells[8].clear();
        }
        cells.to_vec()
    };
    let mut rows: Vec<Vec<String>> = rows.map(without_shared_base).collect();
    let is_compared =
        |view: &LaneView| LaneConflicts::from_forecast(input.forecast, &view.lane.name).is_some();
    if !input.views.iter().any(is_compared) {
        for cells in &mut rows {
            for column in [2, 5] {
                if cells[column] == ui::none_sign() {
                    cells[column].clear();
                }
            }
        }
    }
    table::render_lines(&COLUMNS, rows, width)
}

/// Returns the cells of a present lane. `index` is its place in the list, from 0.
fn lane_row(input: &PartialList<'_>, index: usize) -> Cells {
    let view = &input.views[index];
    let name = &view.lane.name;
    let mark = if is_previewed(input.stored, name) { "*" } else { "" };
    let loaded =
        |is_loaded: bool, text: String| if is_loaded { text } else { LOADING_PLACEHOLDER.to_owned() };
    let is_forecast = input.forecast.is_some() || input.inspected.is_none();
    let conflicts = LaneConflicts::from_forecast(input.forecast, name);
    let mut cells = lane_cells(input, &format!("{name}{mark}"), &view.lane);
    cells[1] = state_text(input.stored, view);
    if view.lane.purpose().is_none() {
        cells[2] = loaded(is_forecast, changed_lines_text(input, view));
        cells[3] = loaded(index < input.compared_count, ahead_behind_text(view));
    }
    cells[4] = loaded(input.is_inspected(index), uncommitted_or_missing_text(view));
    let conflicts = conflicts.map(|conflicts| conflicts_text(&conflicts));
    cells[5] = loaded(is_forecast, conflicts.unwrap_or_else(ui::none_sign));
    cells[13] = ui::age(view.active_at);
    cells
}

/// Returns the cells that the record of a lane and its usage are enough for.
fn lane_cells(input: &PartialList<'_>, name: &str, lane: &AnyLane) -> Cells {
    let usage: Option<&RunSummary> = input.stored.usage.as_ref().and_then(|usage| usage.get(&lane.name));
    let pull_request = lane.pull_request.as_ref();
    let pull_request = pull_request
        .map(|request| pull_request_view::short_text(request, input.stored.pull_requests.get(&lane.name)));
    [
        name.to_owned(),
        ui::styled_state(lane.state()),
        ui::none_sign(),
        lane.purpose().map_or_else(ui::none_sign, |purpose| purpose.to_string()),
        ui::none_sign(),
        ui::none_sign(),
        pull_request.unwrap_or_default(),
        lane.agent.clone().unwrap_or_else(ui::none_sign),
        lane.base.clone(),
        usage.filter(|usage| usage.tool_calls > 0).map(tool_calls_text).unwrap_or_default(),
        usage.and_then(|usage| usage.last_tool.clone()).unwrap_or_default(),
        usage.and_then(|usage| Some(format!("{} %", usage.context_percent?))).unwrap_or_default(),
        usage.and_then(|usage| usage.cost.map(usage::cost_text)).unwrap_or_default(),
        ui::age(lane.state_changed_at),
        distinct_title(lane),
    ]
}

/// Formats the number of tool calls, and how many of them were denied.
fn tool_calls_text(usage: &RunSummary) -> String {
    match usage.denied {
        0 => usage.tool_calls.to_string(),
        denied => format!("{}, {denied} denied", usage.tool_calls),
    }
}

/// Formats the state of a lane with the ticked boxes of a folder task and the number of undelivered messages.
/// Also shows that the agent waits for approval or is idle, or that a failed run waits to be retried.
fn state_text(stored: &StoredInfo, view: &LaneView) -> String {
    let mut state = ui::styled_state(view.state());
    if let Some(task) = stored.task_loops.get(&view.lane.name) {
        state = format!("{state} {}/{}", task.boxes_ticked, task.boxes_total);
    }
    state.extend(view.activity.and_then(ui::activity_suffix));
    state.extend(view.awaited_retry().map(|class| format!(", waits ({class})")));
    if view.pending_messages == 0 { state } else { format!("{state}, {} queued", view.pending_messages) }
}

/// Formats the number of uncommitted files, `-` for none, `?` if unknown; or which part of the lane is
/// missing.
fn uncommitted_or_missing_text(view: &LaneView) -> String {
    match (missing_parts(view).as_slice(), &view.dirty) {
        ([], None) if view.lane.purpose().is_some() => ui::none_sign(),
        ([], Some(dirt)) if dirt.is_clean() => ui::none_sign(),
        ([], Some(dirt)) => ui::pluralize(dirt.entries.len(), "file"),
        ([], None) => "?".to_owned(),
        (missing, _) => console::style(format!("no {}", missing.join(", no "))).red().to_string(),
    }
}

/// Returns the title of a lane, or an empty string if it repeats the name of the lane or of its group.
pub(crate) fn distinct_title(lane: &AnyLane) -> String {
    let words = lane.title.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let as_name = words.map(str::to_lowercase).collect::<Vec<_>>().join("-");
    let is_same = lane.name == as_name.as_str() || lane.group.as_ref() == Some(&as_name);
    if is_same || lane.name == lane.title.as_str() { String::new() } else { lane.title.clone() }
}

/// Formats how many lines the commits of a lane change: `-` for none, `?` if they are not counted.
fn changed_lines_text(input: &PartialList<'_>, view: &LaneView) -> String {
    match (input.changed_lines(&view.lane.name), view.distance) {
        (Some(stat), _) => ui::changed_lines(stat.insertions, stat.deletions),
        (None, Some(distance)) if distance.ahead > 0 => "?".to_owned(),
        (None, _) => ui::none_sign(),
    }
}

/// Formats how many commits a lane is ahead of and behind its base: `↑1 ↓10`, `-` for none, `?` if unknown.
fn ahead_behind_text(view: &LaneView) -> String {
    let Some(distance) = view.distance else { return "?".to_owned() };
    let parts = [('↑', distance.ahead), ('↓', distance.behind)];
    let shown = parts.iter().filter(|(_, count)| *count > 0);
    let parts: Vec<String> = shown.map(|(arrow, count)| format!("{arrow}{count}")).collect();
    if parts.is_empty() { ui::none_sign() } else { parts.join(" ") }
}

/// Formats conflicts for a table: `base`, `2 lanes`, `base, 1 lane`, `-` for none, and `?` if unknown.
fn conflicts_text(conflicts: &LaneConflicts) -> String {
    let base = (conflicts.base == Some(true)).then(|| "base".to_owned());
    let lanes = (!conflicts.lanes.is_empty()).then(|| ui::pluralize(conflicts.lanes.len(), "lane"));
    let parts: Vec<String> = base.into_iter().chain(lanes).collect();
    match (parts.is_empty(), conflicts.complete) {
        (true, true) => ui::none_sign(),
        (true, false) => "?".to_owned(),
        _ => console::style(parts.join(", ")).yellow().to_string(),
    }
}
