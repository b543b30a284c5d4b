//! Owns what other worktrees were like when a run began, and telling, once it has ended, what is different there and nothing explains.
//! That is all that is known of it: it may have been the user.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::escape::{Elsewhere, Told, changed_since, tell};
use crate::event::Certainty;
use crate::git::{self, Dirt, Oid, RepoPath};
use crate::lane::{self, Project, shared_settings};
use crate::store::records::{AnyLane, FileSeen, LaneRecord, LaneSeen, PlaceSeen, SightRecord};
use crate::store::{Layout, LockName, Record};

/// How many files that differ from their commit are kept of a place. One with more is not looked at again.
const MOST: usize = 2_000;

/// How many lanes are looked at, and how large their indexes may be together: some 150,000 files.
const LANES: usize = 32;
const INDEXES: u64 = 16 * 1024 * 1024;

/// Keeps what the main checkout and the lanes in which nothing runs are like. What cannot be looked at is not compared later.
pub(super) fn note(project: &Project, lane: &AnyLane, fence: &Path) {
    let places = places(project, lane);
    let dirs: Vec<PathBuf> = places.iter().map(|(there, _)| there.top.clone()).collect();
    let (dirts, ()) = git::statuses(&project.repo, &dirs, || ());
    let seen = places.into_iter().zip(dirts).filter_map(|((there, attempt), dirt)| {
        let dirt = dirt.filter(|dirt| dirt.entries.len() <= MOST)?;
        let head = project.repo.head_of(&there.top).ok()?;
        let files = dirt.paths().into_iter().map(|path| seen(&there.top, path)).collect();
        Some(PlaceSeen { lane: there.lane, attempt, dir: there.top, head, files })
    });
    let others = others(project, lane);
    let record = SightRecord {
        others: others
            .map(|o| LaneSeen {
                busy: o.state.is_busy(),
                has_tree: has_tree(project, &o),
                lane: o.name,
                attempt: o.attempt,
            })
            .collect(),
        settings: shared_settings(project),
        operation: last_operation(project),
        places: seen.collect(),
    };
    // Without it nothing is compared.
    drop(record.save(&Layout::fence_sight(fence)));
}

/// Whether a lane that is to have a worktree of its own has it.
pub(super) fn has_tree(project: &Project, lane: &AnyLane) -> bool {
    lane.branch().is_some()
        && !lane.works_in_place()
        && lane.path.join(".git").exists()
        && project.repo.is_own_worktree(&lane.path)
}

fn others(project: &Project, lane: &AnyLane) -> impl Iterator<Item = AnyLane> {
    let name = lane.name.clone();
    project.every_lane().unwrap_or_default().into_iter().filter(move |other| other.name != name)
}

fn last_operation(project: &Project) -> u64 {
    project.store.layout().operation_numbers().last().copied().unwrap_or(0)
}

/// The main checkout, unless a run works there, and the lanes in which nothing runs, those that changed last first; each with the
/// number of its last run.
fn places(project: &Project, lane: &AnyLane) -> Vec<(Elsewhere, u32)> {
    let main = project
        .repo
        .main_worktree()
        .filter(|_| !lane.works_in_place() && matches!(lane::at_work_in_place(project, None), Ok(None)));
    let main = main.map(|top| (Elsewhere { lane: None, top: top.to_owned() }, 0));
    let mut idle: Vec<LaneRecord> = project.lanes().unwrap_or_default();
    idle.retain(|other| other.name != lane.name && is_idle(project, other));
    idle.sort_by_key(|other| std::cmp::Reverse(other.updated));
    let mut room = INDEXES;
    let fits = |other: &LaneRecord| {
        let index = project.repo.git_dir_of(&other.path).map(|dir| dir.join("index"));
        let size = index.ok().and_then(|index| index.metadata().ok()).map_or(INDEXES, |meta| meta.len());
        let left = room.checked_sub(size);
        room = left.unwrap_or(0);
        left.is_some()
    };
    let mut lanes: Vec<LaneRecord> = idle.into_iter().take(LANES).collect();
    lanes.retain(fits);
    let lanes =
        lanes.into_iter().map(|other| (Elsewhere { lane: Some(other.name), top: other.path }, other.attempt));
    main.into_iter().chain(lanes).collect()
}

fn is_idle<P>(project: &Project, lane: &LaneRecord<P>) -> bool {
    let held = |lock| project.store.locks().is_held(&lock).unwrap_or(true);
    !lane.state.is_busy()
        && !lane.state.is_over()
        && lane.path.is_dir()
        && !held(LockName::Run(lane.name.clone()))
        && !held(LockName::Alive(lane.name.clone()))
}

/// A file as it is. One that is gone has no state.
fn seen(top: &Path, path: RepoPath) -> FileSeen {
    let meta = path.under(top).symlink_metadata().ok();
    let state = meta.map(|meta| {
        let of_file = format!("{} {}.{} {}", meta.size(), meta.mtime(), meta.mtime_nsec(), meta.ino());
        // What is in a folder that is a repository of its own stays there.
        if meta.is_dir() { "folder".to_owned() } else { of_file }
    });
    FileSeen { path, state: state.unwrap_or_default() }
}

/// Tells what is different, for each place, apart from what was `told` of it already.
pub(super) fn tell_of_changes(project: &Project, lane: &AnyLane, fence: &Path, told: &Told) {
    let Ok(Some(record)) = SightRecord::find(&Layout::fence_sight(fence)) else { return };
    let Ok(began) = Layout::fence_record(fence).metadata() else { return };
    let beside = Beside::of(project, lane, &record);
    let (moved, _) = lane::set_aside_since(project, record.operation);
    let now: BTreeMap<Option<String>, u32> =
        places(project, lane).into_iter().map(|(there, attempt)| (there.lane, attempt)).collect();
    for place in record.places {
        let still = now.get(&place.lane) == Some(&place.attempt);
        let others_place = place.lane.is_none() && beside.in_place;
        if !still || others_place || moved.contains(&place.dir) {
            continue;
        }
        let none = BTreeSet::new();
        let known = told.get(&place.lane).unwrap_or(&none);
        let paths = different(project, &place, &began, known).unwrap_or_default();
        if paths.is_empty() {
            continue;
        }
        let there = Elsewhere { lane: place.lane, top: place.dir };
        let message = format!(
            "while the agent of lane '{}'{} ran, these changed in {}: {}; that may have been you{}: nothing says who it was",
            lane.name,
            if lane.only_looks() { ", which was only to look," } else { "" },
            there.called(),
            git::names(&paths),
            beside.in_words(),
        );
        tell(project, &lane.name, &there, message, paths, Certainty::Possible);
    }
}

/// The runs that there were at the same time.
pub(super) struct Beside {
    pub(super) lanes: BTreeSet<String>,
    /// Whether one of them worked in the main checkout.
    in_place: bool,
}

impl Beside {
    pub(super) fn of(project: &Project, lane: &AnyLane, record: &SightRecord) -> Beside {
        let busy = record.others.iter().filter(|other| other.busy).map(|other| other.lane.clone());
        let mut beside = Beside { lanes: busy.collect(), in_place: false };
        // No clock has a say in it.
        let known: BTreeMap<&str, u32> =
            record.others.iter().map(|other| (other.lane.as_str(), other.attempt)).collect();
        for other in others(project, lane) {
            let before = known.get(other.name.as_str()).copied().unwrap_or(0);
            if other.attempt > before || beside.lanes.contains(&other.name) {
                beside.in_place |= other.works_in_place();
                beside.lanes.insert(other.name);
            }
        }
        beside
    }

    fn in_words(&self) -> String {
        let names: Vec<String> = self.lanes.iter().map(|name| format!("'{name}'")).collect();
        match names.as_slice() {
            [] => String::new(),
            [one] => format!(", or the agent of lane {one}"),
            several => format!(", or an agent of lanes {}", several.join(", ")),
        }
    }
}

/// The files that are not as they were. What differs between the commits that were checked out then and now was brought by whoever
/// moved HEAD, which git or the operation log tells of.
fn different(
    project: &Project,
    place: &PlaceSeen,
    began: &std::fs::Metadata,
    known: &BTreeSet<RepoPath>,
) -> Option<Vec<RepoPath>> {
    let repo = &project.repo;
    let head: Option<Oid> = repo.head_of(&place.dir).ok()?;
    let dirt: Dirt = git::status(repo, &place.dir, true).ok()?;
    let mut explained = known.clone();
    if let (Some(from), Some(to), true) = (place.head, head, place.head != head) {
        explained.extend(git::tree_changes(repo, from, to).ok()?.into_iter().map(|change| change.path));
    }
    let before: BTreeMap<&RepoPath, &FileSeen> = place.files.iter().map(|file| (&file.path, file)).collect();
    let is_new =
        |path: &RepoPath| !before.contains_key(path) && changed_since(&path.under(&place.dir), began);
    let was = place.files.iter().filter(|file| seen(&place.dir, file.path.clone()) != **file);
    let was = was.map(|file| file.path.clone());
    let all: BTreeSet<RepoPath> = was.chain(dirt.paths().into_iter().filter(is_new)).collect();
    Some(all.into_iter().filter(|path| !explained.contains(path)).collect())
}
