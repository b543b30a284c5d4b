//! The line below the table of lanes: how many there are in each state, and how many would land.

use proq_lib::board::next_steps::sure_landing_count;
use proq_lib::board::rows::lane_list::LaneList;
use proq_lib::lane::Project;
use proq_lib::lane::inspection::list::LaneView;
use proq_lib::types::LaneState;

use crate::cli::terminal::table::Rendered;
use crate::cli::terminal::ui;

/// Returns the footer of a table: `4 lanes: 2 done, 1 running, 1 conflict; 2 would land; 1 column hidden`. With
/// a filter, what would land is not counted.
pub(crate) fn footer(
    project: &Project,
    lane_list: &LaneList,
    rendered: &Rendered,
    is_filtered: bool,
) -> String {
    let states: Vec<LaneState> = lane_list.views.iter().map(LaneView::state).collect();
    let count = |wanted: LaneState| states.iter().filter(|state| **state == wanted).count();
    let counted = LaneState::IN_DISPLAY_ORDER
        .iter()
        .map(|state| (count(*state), state))
        .filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counted.map(|(count, state)| format!("{count} {state}")).collect();
    let lanes = ui::pluralize(states.len(), "lane");
    let lanes = if counts.is_empty() { lanes } else { format!("{lanes}: {}", counts.join(", ")) };
    let removed = lane_list.stored.past_lanes.len();
    let landing = if is_filtered { None } else { sure_landing_count(project, lane_list) };
    let parts = [
        (!states.is_empty()).then_some(lanes),
        landing.map(|count| format!("{count} would land")),
        (removed > 0).then(|| format!("{removed} removed")),
        rendered.hidden_note(),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}
