//! Owns noticing that a run changed what all worktrees share: git's settings, the repository's hooks, the worktrees of other lanes.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::event::{Certainty, Event, Name};
use crate::lane::Project;
use crate::store::records::{AnyLane, LaneSeen, SightRecord};
use crate::store::{Layout, Record};

/// How many names are in a sentence.
const NAMED: usize = 5;

/// The settings in the repository's own `config`, and its hooks, by what a sentence calls them. What git itself writes there for
/// branches is left out, and so are the samples of hooks.
pub(super) fn now(project: &Project) -> BTreeMap<String, String> {
    let mut all: BTreeMap<String, String> = project
        .repo
        .own_settings()
        .into_iter()
        .filter(|(key, _)| !key.starts_with("branch."))
        .map(|(key, value)| (format!("setting {key}"), value))
        .collect();
    let hooks = project.repo.common_dir().join("hooks");
    for entry in std::fs::read_dir(hooks).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if let (false, Ok(meta)) = (name.ends_with(".sample"), entry.metadata()) {
            let is = format!("{} {}.{} {:o}", meta.size(), meta.mtime(), meta.mtime_nsec(), meta.mode());
            all.insert(format!("hook {name}"), is);
        }
    }
    all
}

/// Tells of what is different from when the run began, and returns a sentence for the lane's state.
pub(super) fn tell_of_changes(project: &Project, lane: &AnyLane, fence: &Path) -> Option<String> {
    let before = SightRecord::find(&Layout::fence_sight(fence)).ok().flatten()?;
    let now = now(project);
    let keys: BTreeSet<&String> = before.settings.keys().chain(now.keys()).collect();
    let changed = keys.into_iter().filter(|key| before.settings.get(*key) != now.get(*key));
    let changed: Vec<String> = changed.map(|key| crate::harmless::line(key)).collect();
    let gone: Vec<String> = before.others.iter().filter_map(|seen| gone(project, seen)).collect();
    let mut parts = Vec::new();
    if !gone.is_empty() {
        parts.push(format!("removed the worktree of {}", listed(&gone)));
    }
    if !changed.is_empty() {
        parts.push(format!("changed {} of the repository", listed(&changed)));
    }
    if parts.is_empty() {
        return None;
    }
    let what = parts.join(" and ");
    let mut event = Event::now(
        Name::LaneEscape,
        format!(
            "while the agent of lane '{}' ran, it or somebody else {what}: nothing says who it was",
            lane.name
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
    let is_there = lane.path.join(".git").exists() && project.repo.is_own_worktree(&lane.path);
    (!is_there).then(|| format!("lane '{}'", lane.name))
}

fn listed(names: &[String]) -> String {
    let shown = names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
