//! Baseline of other worktrees at the start of a run, and the report of unexplained differences after it. The
//! differences do not identify their author: it may have been the user.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use proq_base::lane_name::LaneName;
use proq_git::base::error;
use proq_git::history::tree_diff;
use proq_git::status::status_query;
use proq_git::status::worktree_status::WorktreeStatus;
use proq_git::{CommitId, Repo, RepoPath};
use proq_store::Store;
use proq_store::base::operation_number::OperationNumber;
use proq_store::base::record::Record;
use proq_store::base::run_number::RunNumber;
use proq_store::locks::lock::LockName;
use proq_store::paths::layout::Layout;
use proq_store::records::baseline::{BaselineFile, BaselineLane, BaselineWorktree, WorktreeBaselineRecord};
use proq_store::records::lane::{AnyLane, LaneRecord};

use super::escape::{OtherWorktree, ReportedPaths, changed_since, emit_outside_change};
use crate::event::log::Certainty;
use crate::lane::Project;
use crate::lane::context::shared_state::shared_settings;
use crate::lane::state::in_place_guard;
use crate::operation::op_log_view;

/// Upper limit of recorded changed files per worktree. A worktree with more is not compared.
const MAX_FILES_PER_WORKTREE: usize = 2_000;

/// Maximum number of lanes in a baseline. `MAX_TOTAL_INDEX_BYTES` limits the total size of their index files,
/// some 150,000 entries.
const MAX_LANES_RECORDED: usize = 32;
const MAX_TOTAL_INDEX_BYTES: u64 = 16 * 1024 * 1024;

/// Saves the state of the main checkout and of the lanes in which nothing runs. A worktree whose state cannot
/// be read is not compared later.
pub(super) fn save_baseline(project: &Project, lane: &AnyLane, guard_dir: &Path) {
    let worktrees = idle_worktrees(project, lane);
    let dirs: Vec<PathBuf> = worktrees.iter().map(|(worktree, _)| worktree.root.clone()).collect();
    let (statuses, ()) = status_query::query_statuses(&project.repo, &dirs, || ());
    let recorded = worktrees.into_iter().zip(statuses).filter_map(|((worktree, last_run), status)| {
        let status = status.filter(|status| status.entries.len() <= MAX_FILES_PER_WORKTREE)?;
        let head = project.repo.head_commit(&worktree.root).ok()?;
        let files = status.paths().into_iter().map(|path| stat_for_baseline(&worktree.root, path)).collect();
        Some(BaselineWorktree { lane: worktree.lane, last_run, dir: worktree.root, head, files })
    });
    let other_lanes = other_lanes(project, lane);
    let record = WorktreeBaselineRecord {
        other_lanes: other_lanes
            .map(|other| BaselineLane {
                is_busy: other.state().is_busy(),
                has_worktree: has_own_worktree(&project.repo, &other),
                lane: other.name,
                last_run: other.last_run,
            })
            .collect(),
        config_fingerprints: shared_settings(&project.repo),
        last_operation: last_operation_number(&project.store),
        idle_worktrees: recorded.collect(),
    };
    // If this fails, nothing is compared.
    drop(record.save(&Layout::git_guard_baseline(guard_dir)));
}

/// Returns whether a lane has a worktree of its own that exists and is registered in git.
pub(super) fn has_own_worktree(repo: &Repo, lane: &AnyLane) -> bool {
    lane.branch().is_some()
        && !lane.works_in_place()
        && lane.path.join(".git").exists()
        && repo.is_registered_worktree(&lane.path)
}

fn other_lanes(project: &Project, lane: &AnyLane) -> impl Iterator<Item = AnyLane> {
    let name = lane.name.clone();
    project.all_lanes().unwrap_or_default().into_iter().filter(move |other| other.name != name)
}

/// Returns the number of the newest operation in the operation log; the default when there is none.
fn last_operation_number(store: &Store) -> OperationNumber {
    store.layout().operation_numbers().last().copied().unwrap_or_default()
}

/// Returns the main checkout, unless a run works there, and the lanes in which nothing runs, most recently
/// changed first; each with the number of its last run.
fn idle_worktrees(project: &Project, lane: &AnyLane) -> Vec<(OtherWorktree, RunNumber)> {
    let main = project.repo.main_worktree().filter(|_| {
        !lane.works_in_place() && matches!(in_place_guard::lane_running_in_place(project, None), Ok(None))
    });
    let main = main.map(|top| (OtherWorktree { lane: None, root: top.to_owned() }, RunNumber::NONE));
    let mut idle: Vec<LaneRecord> = project.owned_lanes().unwrap_or_default();
    idle.retain(|other| other.name != lane.name && is_idle(&project.store, other));
    idle.sort_by_key(|other| std::cmp::Reverse(other.state_changed_at));
    let mut remaining_bytes = MAX_TOTAL_INDEX_BYTES;
    let fits = |other: &LaneRecord| {
        let index = project.repo.worktree_git_dir(&other.path).map(|dir| dir.join("index"));
        let size = index
            .ok()
            .and_then(|index| index.metadata().ok())
            .map_or(MAX_TOTAL_INDEX_BYTES, |meta| meta.len());
        let remaining = remaining_bytes.checked_sub(size);
        remaining_bytes = remaining.unwrap_or(0);
        remaining.is_some()
    };
    let mut lanes: Vec<LaneRecord> = idle.into_iter().take(MAX_LANES_RECORDED).collect();
    lanes.retain(fits);
    let lanes = lanes
        .into_iter()
        .map(|other| (OtherWorktree { lane: Some(other.name), root: other.path }, other.last_run));
    main.into_iter().chain(lanes).collect()
}

/// Returns whether nothing runs in a lane that has a folder and is not closed.
fn is_idle<P>(store: &Store, lane: &LaneRecord<P>) -> bool {
    let is_held = |lock| store.locks().is_held(&lock).unwrap_or(true);
    !lane.state().is_busy()
        && !lane.status.landing.is_closed()
        && lane.path.is_dir()
        && !is_held(LockName::Run(lane.name.clone()))
        && !is_held(LockName::AgentAlive(lane.name.clone()))
}

/// Returns the current stat data of a file for the baseline; empty for a missing file.
fn stat_for_baseline(top: &Path, path: RepoPath) -> BaselineFile {
    let meta = path.to_fs_path(top).symlink_metadata().ok();
    let state = meta.map(|meta| {
        let file_state = format!("{} {}.{} {}", meta.size(), meta.mtime(), meta.mtime_nsec(), meta.ino());
        // The content of a nested repository is not compared.
        if meta.is_dir() { "folder".to_owned() } else { file_state }
    });
    BaselineFile { path, stat_state: state.unwrap_or_default() }
}

/// Reports the changed files of each worktree in the baseline, except for those in `reported`.
pub(super) fn report_unexplained_changes(
    project: &Project,
    lane: &AnyLane,
    guard_dir: &Path,
    reported: &ReportedPaths,
) {
    let Ok(Some(record)) = WorktreeBaselineRecord::load_if_exists(&Layout::git_guard_baseline(guard_dir))
    else {
        return;
    };
    let Ok(start_metadata) = Layout::git_guard_record(guard_dir).metadata() else { return };
    let concurrent = ConcurrentRuns::detect(project, lane, &record);
    let (parked, _) = op_log_view::worktrees_parked_since(&project.store, record.last_operation);
    let idle_now: BTreeMap<Option<LaneName>, RunNumber> = idle_worktrees(project, lane)
        .into_iter()
        .map(|(worktree, last_run)| (worktree.lane, last_run))
        .collect();
    for worktree in record.idle_worktrees {
        let still_idle = idle_now.get(&worktree.lane) == Some(&worktree.last_run);
        let used_by_other_run = worktree.lane.is_none() && concurrent.any_in_place;
        if !still_idle || used_by_other_run || parked.contains(&worktree.dir) {
            continue;
        }
        let no_paths = BTreeSet::new();
        let known = reported.get(&worktree.lane).unwrap_or(&no_paths);
        let paths =
            find_unexplained_changes(&project.repo, &worktree, &start_metadata, known).unwrap_or_default();
        if paths.is_empty() {
            continue;
        }
        let location = OtherWorktree { lane: worktree.lane, root: worktree.dir };
        let message = format!(
            "while the agent of lane '{}'{} ran, these changed in {}: {}; git-proq cannot tell who changed them: this agent, you{}",
            lane.name,
            if lane.is_read_only() { ", which was read-only," } else { "" },
            location.describe(),
            error::list_paths(&paths),
            concurrent.describe(),
        );
        emit_outside_change(project, &lane.name, &location, message, paths, Certainty::Possible);
    }
}

/// Lanes in which agents ran while a run lasted.
pub(super) struct ConcurrentRuns {
    pub(super) lanes: BTreeSet<LaneName>,
    /// Whether one of those agents worked in the main checkout.
    any_in_place: bool,
}

impl ConcurrentRuns {
    /// Finds the lanes that were busy at the start of the run, or have begun a run since.
    pub(super) fn detect(
        project: &Project,
        lane: &AnyLane,
        record: &WorktreeBaselineRecord,
    ) -> ConcurrentRuns {
        let busy_lanes =
            record.other_lanes.iter().filter(|other| other.is_busy).map(|other| other.lane.clone());
        let mut concurrent = ConcurrentRuns { lanes: busy_lanes.collect(), any_in_place: false };
        // Run numbers are compared, not times, so that no clock matters.
        let known_runs: BTreeMap<&LaneName, RunNumber> =
            record.other_lanes.iter().map(|other| (&other.lane, other.last_run)).collect();
        for other in other_lanes(project, lane) {
            let before = known_runs.get(&other.name).copied().unwrap_or_default();
            if other.last_run > before || concurrent.lanes.contains(&other.name) {
                concurrent.any_in_place |= other.works_in_place();
                concurrent.lanes.insert(other.name);
            }
        }
        concurrent
    }

    fn describe(&self) -> String {
        let names: Vec<String> = self.lanes.iter().map(|name| format!("'{name}'")).collect();
        match names.as_slice() {
            [] => String::new(),
            [only_name] => format!(", or the agent of lane {only_name}"),
            all_names => format!(", or an agent of lanes {}", all_names.join(", ")),
        }
    }
}

/// Returns the files of a worktree that differ from the baseline, without the paths in `reported`; none when
/// the worktree cannot be read. Differences between the commits checked out then and now are left out too,
/// because git or the operation log records who moved HEAD.
fn find_unexplained_changes(
    repo: &Repo,
    worktree: &BaselineWorktree,
    start_metadata: &std::fs::Metadata,
    reported: &BTreeSet<RepoPath>,
) -> Option<Vec<RepoPath>> {
    let head: Option<CommitId> = repo.head_commit(&worktree.dir).ok()?;
    let status: WorktreeStatus = status_query::status(repo, &worktree.dir, true).ok()?;
    let mut explained = reported.clone();
    if let (Some(from), Some(to), true) = (worktree.head, head, worktree.head != head) {
        explained.extend(tree_diff::tree_changes(repo, from, to).ok()?.into_iter().map(|change| change.path));
    }
    let before: BTreeMap<&RepoPath, &BaselineFile> =
        worktree.files.iter().map(|file| (&file.path, file)).collect();
    let is_new = |path: &RepoPath| {
        !before.contains_key(path) && changed_since(&path.to_fs_path(&worktree.dir), start_metadata)
    };
    let modified =
        worktree.files.iter().filter(|file| stat_for_baseline(&worktree.dir, file.path.clone()) != **file);
    let modified = modified.map(|file| file.path.clone());
    let changed: BTreeSet<RepoPath> = modified.chain(status.paths().into_iter().filter(is_new)).collect();
    Some(changed.into_iter().filter(|path| !explained.contains(path)).collect())
}
