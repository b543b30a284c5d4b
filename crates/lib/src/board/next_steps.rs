//! Next steps with the lanes of a repository, each with a command.

use proq_base::lane_name::LaneName;
use proq_git::status::worktree_status::WorktreeStatus;
use proq_store::records::lane::LaneRecord;
use proq_store::records::lane_state::LaneState;

use super::rows::lane_conflicts::LaneConflicts;
use super::rows::lane_list::{LaneList, missing_parts};
use crate::lane::Project;
use crate::lane::inspection::list::LaneView;
use crate::merge::land::sure_landing;

/// States of lanes in which something went wrong.
const FAILED_STATES: &[LaneState] = &[
    LaneState::Failed,
    LaneState::Stalled,
    LaneState::Conflict,
    LaneState::CheckFailed,
    LaneState::Orphaned,
];

/// Returns what can be done next with the lanes, each as a command followed by what it does.
#[must_use]
pub fn next_steps(project: &Project, lane_list: &LaneList) -> Vec<String> {
    let views = &lane_list.views;
    let intact_in_states = |wanted: &[LaneState]| -> Vec<&LaneView> {
        let is_intact = |v: &&LaneView| missing_parts(v).is_empty() && v.worktree_defect.is_none();
        views.iter().filter(|v| wanted.contains(&v.state())).filter(is_intact).collect()
    };
    let mut out = Vec::new();
    if let Some(first) = intact_in_states(&[LaneState::Running, LaneState::Starting]).first() {
        out.push(format!("git proq logs -f {} follows a running agent", first.lane.name));
    }
    let is_rival = |v: &LaneView| {
        v.lane.group.is_some() && views.iter().filter(|other| other.lane.group == v.lane.group).count() > 1
    };
    if let Some(view) = views.iter().find(|v| v.state() == LaneState::Done && v.lane.is_read_only()) {
        out.push(format!("git proq show {} shows its result", view.lane.name));
    }
    let mut done = intact_in_states(&[LaneState::Done]);
    done.retain(|v| !is_rival(v) && v.lane.branch().is_some());
    if let Some(first) = done.first() {
        out.push(format!("git proq preview {} shows it in your checkout", first.lane.name));
        let (count, are) = match done.len() {
            1 => ("1 lane".to_owned(), "is"),
            n => (format!("{n} lanes"), "are"),
        };
        out.push(match is_sure_all_land(project, lane_list, &done) {
            true => format!("git proq merge --all merges {count}"),
            false => format!("{count} {are} done: git proq merge --all --dry-run shows what would be merged"),
        });
    }
    let finished_rival = views.iter().find(|v| is_rival(v) && !v.state().is_busy());
    if let Some(group) = finished_rival.and_then(|v| v.lane.group.as_ref()) {
        out.push(format!("git proq compare {group} shows attempts side by side"));
    }
    if let Some(first) = intact_in_states(FAILED_STATES).first() {
        out.push(format!("git proq show {} shows what went wrong", first.lane.name));
    }
    if !intact_in_states(&[LaneState::Landed]).is_empty() {
        out.push("git proq cleanup deletes merged lanes".to_owned());
    }
    out
}

/// Returns whether `git proq merge --all` is known to land exactly `lanes`. All their work must be committed,
/// none may conflict with its base or with another of them, and nothing else may block the landing.
fn is_sure_all_land(project: &Project, lane_list: &LaneList, lanes: &[&LaneView]) -> bool {
    let has_commits = |view: &LaneView| view.distance.is_some_and(|distance| distance.ahead > 0);
    let may_also_land = |view: &LaneView| {
        matches!(view.state(), LaneState::Idle | LaneState::Conflict | LaneState::CheckFailed)
            && has_commits(view)
    };
    let names: Vec<&LaneName> = lanes.iter().map(|view| &view.lane.name).collect();
    let is_ready = |view: &&LaneView| {
        let conflicts = LaneConflicts::from_forecast(lane_list.forecast.as_ref(), &view.lane.name);
        view.dirty.as_ref().is_some_and(WorktreeStatus::is_clean)
            && has_commits(view)
            && view.lane.batch.is_none()
            && conflicts.is_some_and(|conflicts| conflicts.is_compatible_with(&names))
    };
    let records = || -> Vec<LaneRecord> {
        lanes.iter().filter_map(|view| view.lane.clone().into_owned_lane().ok()).collect()
    };
    !lane_list.views.iter().any(may_also_land)
        && lanes.iter().all(is_ready)
        && sure_landing::is_sure_to_land(project, &records())
}
