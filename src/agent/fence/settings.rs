//! Owns noticing that a run changed what all worktrees share: git's settings, the repository's hooks, the worktrees of other lanes.

use std::path::Path;

use super::sight::has_tree;
use crate::event::{Certainty, Event, Name};
use crate::lane::{Project, changed_settings, listed, shared_settings};
use crate::store::records::{AnyLane, LaneSeen, SightRecord};
use crate::store::{Layout, Record};

/// Tells of what is different from when the run began, and what follows, and returns a sentence for the lane's state.
pub(super) fn tell_of_changes(
    project: &Project,
    lane: &AnyLane,
    fence: &Path,
    then: Option<&str>,
) -> Option<String> {
    let before = SightRecord::find(&Layout::fence_sight(fence)).ok().flatten()?;
    let changed = changed_settings(&before.settings, &shared_settings(project));
    let gone: Vec<String> = before.others.iter().filter_map(|seen| gone(project, seen)).collect();
    let mut parts = Vec::new();
    if !gone.is_empty() {
        parts.push(format!("removed the worktree of {}", listed(&gone)));
    }
    parts.extend(changed.map(|changed| format!("changed {changed} of the repository")));
    if parts.is_empty() {
        return None;
    }
    let what = parts.join(" and ");
    let mut event = Event::now(
        Name::LaneEscape,
        format!(
            "while the agent of lane '{}' ran, it or somebody else {what}: nothing says who it was{}",
            lane.name,
            then.map_or_else(String::new, |then| format!("; {then}")),
        ),
    );
    event.lane = Some(lane.name.clone());
    event.state = Some(lane.state.to_string());
    event.certainty = Some(Certainty::Possible);
    project.tell_event(event);
    Some(format!("while it ran, it or somebody else {what}"))
}

/// The lane whose worktree is gone, as a sentence calls it; none where it is there, or was removed with its record.
fn gone(project: &Project, seen: &LaneSeen) -> Option<String> {
    let lane = project.any_lane(&seen.lane).ok().filter(|lane| seen.has_tree && !lane.state.is_over())?;
    (!has_tree(project, &lane)).then(|| format!("lane '{}'", lane.name))
}
