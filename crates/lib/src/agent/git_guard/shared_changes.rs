//! Detection of changes to what all worktrees share: git's settings, the repository's hooks, and the
//! worktrees of other lanes.

use std::path::Path;

use proq_store::base::record::Record;
use proq_store::paths::layout::Layout;
use proq_store::records::baseline::{BaselineLane, WorktreeBaselineRecord};
use proq_store::records::lane::AnyLane;

use super::worktree_baseline::has_own_worktree;
use crate::event::log::{Certainty, Event, EventName};
use crate::lane::Project;
use crate::lane::context::shared_state::{list_changed_settings, list_names, shared_settings};

/// Emits an event about shared settings, hooks and worktrees that changed since the run started. The text
/// `consequence` is appended to its message. Returns a note for the lane's state.
pub(super) fn report_shared_changes(
    project: &Project,
    lane: &AnyLane,
    guard_dir: &Path,
    consequence: Option<&str>,
) -> Option<String> {
    let baseline =
        WorktreeBaselineRecord::load_if_exists(&Layout::git_guard_baseline(guard_dir)).ok().flatten()?;
    let changed = list_changed_settings(&baseline.config_fingerprints, &shared_settings(&project.repo));
    let lost_worktrees: Vec<String> =
        baseline.other_lanes.iter().filter_map(|other| lane_label_if_worktree_lost(project, other)).collect();
    let mut parts = Vec::new();
    if !lost_worktrees.is_empty() {
        parts.push(format!("removed the worktree of {}", list_names(&lost_worktrees)));
    }
    parts.extend(changed.map(|changed| format!("changed {changed} of the repository")));
    if parts.is_empty() {
        return None;
    }
    let changes_text = parts.join(" and ");
    let mut event = Event::new(
        EventName::LaneEscape,
        format!(
            "while the agent of lane '{}' ran, the agent or someone else {changes_text}: git-proq does not know who{}",
            lane.name,
            consequence.map_or_else(String::new, |consequence| format!("; {consequence}")),
        ),
    );
    event.lane = Some(lane.name.to_string());
    event.state = Some(lane.state().to_string());
    event.certainty = Some(Certainty::Possible);
    project.emit_event(event);
    Some(format!("while it ran, the agent or someone else {changes_text}"))
}

/// Returns the lane's name for a message if its worktree was removed while the lane exists; none otherwise.
fn lane_label_if_worktree_lost(project: &Project, baseline: &BaselineLane) -> Option<String> {
    let lane = project
        .any_lane(&baseline.lane)
        .ok()
        .filter(|lane| baseline.has_worktree && !lane.status.landing.is_closed())?;
    (!has_own_worktree(&project.repo, &lane)).then(|| format!("lane '{}'", lane.name))
}
