//! Owns what an agent takes off the stash. Git asks no hook when an entry goes and others stay, so it is noticed afterwards.

use std::path::Path;

use super::said::each_line;
use crate::event::{Event, Name};
use crate::git::Oid;
use crate::lane::Project;
use crate::store::records::{AnyLane, FenceRecord};
use crate::store::{Layout, Record, new_id};

/// Keeps each entry under a ref that was there when a run began, is gone, and whose id stands in what the run wrote, as git
/// prints it when it drops one; and tells of it. An entry that somebody else took off meanwhile is not named there.
pub(super) fn keep_dropped(project: &Project, lane: &AnyLane, attempt: u32, fence: &Path) {
    let Ok(Some(record)) = FenceRecord::find(&Layout::fence_record(fence)) else { return };
    let now = project.repo.stash_entries();
    let gone: Vec<Oid> = record.stash.into_iter().filter(|entry| !now.contains(entry)).collect();
    if gone.is_empty() {
        return;
    }
    let log = project.store.layout().run_log(&lane.name, attempt);
    for entry in named_in(&log, gone) {
        let name = format!("refs/proq/saved/{}-stash-{}", lane.name, new_id());
        if project.repo.create_ref(&name, entry, "git-proq: dropped from the stash").is_err() {
            continue;
        }
        let what = format!("the agent of lane '{}' dropped an entry of the stash", lane.name);
        let mut event = Event::now(Name::LaneEscape, format!("{what}; it is kept: git stash apply {name}"));
        event.lane = Some(lane.name.clone());
        event.state = Some(lane.state.to_string());
        project.tell_event(event);
    }
}

fn named_in(log: &Path, mut wanted: Vec<Oid>) -> Vec<Oid> {
    let mut out = Vec::new();
    each_line(log, |line| {
        let text = String::from_utf8_lossy(line);
        out.extend(wanted.extract_if(.., |entry| text.contains(&entry.to_string())));
        !wanted.is_empty()
    });
    out
}
