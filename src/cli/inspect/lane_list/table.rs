//! The table of lanes, also while its data is still loading.

use proq_lib::board::rows::lane_conflicts::LaneConflicts;
use proq_lib::board::rows::lane_list::{LaneList, PartialList, StoredInfo, is_previewed, missing_parts};
use proq_lib::lane::inspection::list::LaneView;
use proq_lib::merge::comparison::forecast::report;
use proq_lib::types::{AnyLane, Moment, RunSummary, now};

use crate::cli::terminal::{table, ui, usage};

/// Index of the conflicts column.
const CONFLICTS_COLUMN_INDEX: usize = 5;

/// Placeholder of a cell whose data is still loading.
const LOADING_PLACEHOLDER: &str = "…";

/// Returns the lines of the table.
pub(crate) fn lane_table_lines(input: &PartialList<'_>) -> Vec<String> {
    let now = now();
    let mut rows: Vec<Vec<String>> =
        (0..input.views.len()).map(|index| lane_row(input, index, now)).collect();
    rows.extend(input.stored.past_lanes.iter().map(|(name, lane)| past_lane_row(name, lane, now)));
    let mut head = vec!["LANE", "STATE", "AGENT", "COMMITS", "CHANGES", "CONFLICTS", "AGE", "TITLE"];
    // Without any conflict, the column is dropped to give the titles more width.
    let is_conflict = |p: &report::ForecastPair| p.result.is_conflict();
    if !input.forecast.is_some_and(|f| f.pairs.iter().any(is_conflict)) {
        head.remove(CONFLICTS_COLUMN_INDEX);
        for row in &mut rows {
            row.remove(CONFLICTS_COLUMN_INDEX);
        }
    }
    if let Some(usage) = &input.stored.usage {
        let names = input
            .views
            .iter()
            .map(|view| view.lane.name.as_str())
            .chain(input.stored.past_lanes.iter().map(|(n, _)| n.as_str()));
        add_usage_columns(&mut head, &mut rows, &names.map(|name| usage.get(name)).collect::<Vec<_>>());
    }
    table::render_lines(&head, rows)
}

/// Returns the cells of a lane's row. `index` is its place in the list, from 0.
fn lane_row(input: &PartialList<'_>, index: usize, now: Moment) -> Vec<String> {
    let view = &input.views[index];
    let previous = index.checked_sub(1).map(|previous_index| &input.views[previous_index].lane);
    let mark = if is_previewed(input.stored, &view.lane.name) { "*" } else { "" };
    let loaded_text = |is_loaded: bool, text: fn(&LaneView) -> String| match is_loaded {
        true => text(view),
        false => LOADING_PLACEHOLDER.to_owned(),
    };
    vec![
        format!("{}{mark}", view.lane.name),
        state_text(input.stored, view),
        view.lane.agent.clone().unwrap_or_else(|| "-".into()),
        loaded_text(index < input.compared_count, ahead_behind_or_purpose_text),
        loaded_text(input.is_inspected(index), uncommitted_or_missing_text),
        LaneConflicts::from_forecast(input.forecast, &view.lane.name)
            .map_or_else(String::new, |conflicts| conflicts_text(&conflicts)),
        ui::short_duration(now.duration_since(view.lane.state_changed_at)),
        if previous.is_some_and(|previous| is_same_group_and_title(previous, &view.lane)) {
            "\"".into()
        } else {
            distinct_title(&view.lane)
        },
    ]
}

/// Returns the cells of the row of a lane that was removed.
fn past_lane_row(name: &str, lane: &AnyLane, now: Moment) -> Vec<String> {
    vec![
        name.to_owned(),
        ui::styled_state(lane.state()),
        lane.agent.clone().unwrap_or_else(|| "-".into()),
        lane.purpose().map_or_else(|| "-".to_owned(), |purpose| purpose.to_string()),
        "-".into(),
        String::new(),
        ui::short_duration(now.duration_since(lane.state_changed_at)),
        distinct_title(lane),
    ]
}

/// Inserts columns with the usage of each lane before the titles.
fn add_usage_columns(head: &mut Vec<&str>, rows: &mut [Vec<String>], usage: &[Option<&RunSummary>]) {
    let column = head.len() - 1;
    head.splice(column..column, ["TOOLS", "LAST", "CONTEXT", "COST"]);
    for (row, summary) in rows.iter_mut().zip(usage) {
        let cells = [
            summary.map(|summary| match summary.denied {
                0 => summary.tool_calls.to_string(),
                denied => format!("{}, {denied} denied", summary.tool_calls),
            }),
            summary.and_then(|summary| summary.last_tool.clone()),
            summary.and_then(|summary| Some(format!("{} %", summary.context_percent?))),
            summary.and_then(|summary| summary.cost.map(usage::cost_text)),
        ];
        row.splice(column..column, cells.map(|cell| cell.unwrap_or_else(|| "-".to_owned())));
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
    if view.pending_messages == 0 { state } else { format!("{state}, {} to tell", view.pending_messages) }
}

/// Formats the number of uncommitted files, `-` for none, `?` if unknown; or which part of the lane is
/// missing.
fn uncommitted_or_missing_text(view: &LaneView) -> String {
    match (missing_parts(view).as_slice(), &view.dirty) {
        ([], None) if view.lane.purpose().is_some() => "-".to_owned(),
        ([], Some(dirt)) if dirt.is_clean() => "-".to_owned(),
        ([], Some(dirt)) => ui::pluralize(dirt.entries.len(), "file"),
        ([], None) => "?".to_owned(),
        (missing, _) => console::style(format!("no {}", missing.join(", no "))).red().to_string(),
    }
}

/// Returns whether both lanes are attempts of one group with the same title.
fn is_same_group_and_title(a: &AnyLane, b: &AnyLane) -> bool {
    a.group.is_some() && a.group == b.group && a.title == b.title
}

/// Returns the title of a lane, or an empty string if it equals the lane's name.
pub(crate) fn distinct_title(lane: &AnyLane) -> String {
    if lane.name == lane.title.as_str() { String::new() } else { lane.title.clone() }
}

/// Formats how many commits a lane is ahead of and behind its base, `?` if unknown; or its purpose, if it has
/// nothing to land.
fn ahead_behind_or_purpose_text(view: &LaneView) -> String {
    if let Some(purpose) = view.lane.purpose() {
        return purpose.to_string();
    }
    match view.distance {
        None => "?".to_owned(),
        Some(d) if d.ahead == 0 && d.behind == 0 => "-".to_owned(),
        Some(d) if d.behind == 0 => format!("+{}", d.ahead),
        Some(d) => format!("+{} -{}", d.ahead, d.behind),
    }
}

/// Renders the table of a completely loaded list.
pub(crate) fn render_table(lane_list: &LaneList) -> String {
    lane_table_lines(&lane_list.as_partial()).join("\n")
}

/// Formats conflicts for a table: `base`, `2 lanes`, `base + 1 lane`, `-` for none, and an empty cell if unknown.
fn conflicts_text(conflicts: &LaneConflicts) -> String {
    let base = (conflicts.base == Some(true)).then(|| "base".to_owned());
    let lanes = (!conflicts.lanes.is_empty()).then(|| ui::pluralize(conflicts.lanes.len(), "lane"));
    let parts: Vec<String> = base.into_iter().chain(lanes).collect();
    match (parts.is_empty(), conflicts.complete) {
        (true, true) => "-".to_owned(),
        _ => console::style(parts.join(" + ")).yellow().to_string(),
    }
}
