//! The table of lanes, also while its data is still loading.

use proq_lib::lane::inspection::list::LaneView;
use proq_lib::merge::comparison::forecast::report;
use proq_lib::merge::comparison::forecast::report::Forecast;
use proq_store::base::clock::{Moment, now};
use proq_store::records::lane::AnyLane;
use proq_store::records::run::RunSummary;

use super::conflicts::LaneConflicts;
use super::data::{LaneList, StoredInfo, is_previewed, missing_parts};
use crate::cli::terminal::{table, ui, usage};

/// Index of the conflicts column.
const CONFLICTS_COLUMN_INDEX: usize = 5;

/// Placeholder of a cell whose data is still loading.
const LOADING_PLACEHOLDER: &str = "…";

/// The data from which the table is made.
pub(crate) struct TableInput<'a> {
    pub(crate) views: &'a [LaneView],
    pub(crate) stored: &'a StoredInfo,
    /// The conflict forecast; `None` if it failed or is still running.
    pub(crate) forecast: Option<&'a Forecast>,
    /// Number of lanes, from the first on, that have been compared with their bases.
    pub(crate) compared_count: usize,
    /// For each lane, whether its worktree has been inspected; `None` once all are.
    pub(crate) inspected: Option<&'a [bool]>,
}

impl TableInput<'_> {
    /// Returns whether the worktree state of lane `index` is known, or the lane has no worktree.
    fn is_inspected(&self, index: usize) -> bool {
        let has_tree = self.views[index].lane.branch().is_some();
        !has_tree || self.inspected.is_none_or(|inspected| inspected.get(index) == Some(&true))
    }
}

/// Returns the lines of the table.
pub(crate) fn lane_table_lines(input: &TableInput<'_>) -> Vec<String> {
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
fn lane_row(input: &TableInput<'_>, index: usize, now: Moment) -> Vec<String> {
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
            .map_or_else(String::new, |conflicts| conflicts.to_text()),
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
        let no_value = || "-".to_owned();
        let usage_cells = |summary: &RunSummary| {
            [
                summary.tool_calls.to_string(),
                summary.last_tool.clone().unwrap_or_else(no_value),
                summary.context_percent.map_or_else(no_value, |percent| format!("{percent} %")),
                summary.cost.map_or_else(no_value, usage::cost_text),
            ]
        };
        row.splice(column..column, summary.map_or_else(|| [(); 4].map(|()| no_value()), usage_cells));
    }
}

/// Formats the state of a lane with the ticked boxes of a folder task and the number of undelivered messages.
/// Also shows that the agent waits for approval or is idle.
fn state_text(stored: &StoredInfo, view: &LaneView) -> String {
    let mut state = ui::styled_state(view.state());
    if let Some(task) = stored.task_loops.get(&view.lane.name) {
        state = format!("{state} {}/{}", task.boxes_ticked, task.boxes_total);
    }
    state.extend(view.activity.and_then(ui::activity_suffix));
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
    let LaneList { views, stored, forecast, .. } = lane_list;
    let (compared, forecast) = (views.len(), forecast.as_ref());
    lane_table_lines(&TableInput { views, stored, forecast, compared_count: compared, inspected: None })
        .join("\n")
}
