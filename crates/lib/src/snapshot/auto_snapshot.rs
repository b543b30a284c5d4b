//! Automatic snapshots: while agents run, git-proq regularly copies uncommitted changes in the main checkout
//! and in lanes. So changes that an agent's `git reset --hard`, `git clean -fdx` or `git worktree remove
//! --force` deletes can be restored. A lane whose own agent runs is copied less often, and lost changes in it
//! are reported only when its folder is missing.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use proq_base::explain::shell_quote_path;
use proq_base::lane_name::LaneName;
use proq_git::CommitId;
use proq_git::repository::open_operation::has_autostash;
use proq_git::worktrees::worktree_stamp::WorktreeStamp;
use proq_store::base::id::new_id;
use proq_store::base::operation_number::OperationNumber;
use proq_store::locks::lock::LockName;
use proq_store::records::lane::LaneRecord;
use proq_store::records::snapshot::{AutomaticSnapshotInfo, SnapshotRecord};

use super::ignored_files::IgnoredFiles;
use super::retention::{SNAPSHOT_SPACING, prune_snapshots};
use crate::event::log::{Event, EventName};
use crate::lane::context::shared_state::{list_changed_settings, shared_settings};
use crate::lane::parking::snapshot_store;
use crate::lane::state::in_place_guard::lane_running_in_place;
use crate::lane::state::lane_state::effective_state;
use crate::lane::{Error, Project};
use crate::operation::journaled_operation::step::Step;
use crate::operation::locked_worktree::LockedWorktree;
use crate::operation::op_log_view::{last_finished_operation, worktrees_parked_since};
use crate::operation::recovery::is_operation_running;

/// Passes over the worktrees may take one part in this many of the elapsed time. A pass works in two threads
/// at most, so all passes together take less than 2 % of a processor.
const TIME_SHARE_DIVISOR: u32 = 100;

/// Total time of passes before the limit of [`TIME_SHARE_DIVISOR`] applies.
const UNTHROTTLED_TIME: Duration = Duration::from_secs(1);

/// Age up to which a lock on an index counts as held by a running git.
const MAX_INDEX_LOCK_AGE: Duration = Duration::from_secs(5);

/// A lane whose own agent runs is scanned once in this many passes.
const BUSY_LANE_PASS_INTERVAL: usize = 3;

/// Number of changed scans after which a lane is copied although its agent still writes to it.
const CHANGED_SCANS_BEFORE_COPY: usize = 4;

/// Takes automatic snapshots until no agent runs, unless another process does so. Calls `after_pass` after
/// each pass over all worktrees.
///
/// # Errors
/// Fails when the lanes cannot be listed. A worktree that cannot be copied is skipped and tried again.
pub fn run_auto_snapshots(project: &Project, mut after_pass: impl FnMut()) -> Result<(), Error> {
    let mut snapshots = AutoSnapshots::default();
    let (start, mut spent) = (Instant::now(), Duration::ZERO);
    while let Some(lock) = project.store.locks().try_acquire(&LockName::Snapshots)? {
        loop {
            let pass_start = Instant::now();
            snapshots.run_pass(project)?;
            after_pass();
            if !is_any_agent_running(project)? {
                break;
            }
            let interval = project.settings.snapshot_interval.unwrap_or(SNAPSHOT_SPACING);
            spent += pass_start.elapsed();
            std::thread::sleep(interval.max(pause_after(spent, start.elapsed())));
        }
        drop(lock);
        // A supervisor that started in between saw that the lock was held.
        if !is_any_agent_running(project)? {
            break;
        }
    }
    Ok(())
}

/// Returns how long to pause after passes that took `spent` in total, so that they stay within their share of
/// the `elapsed` time.
fn pause_after(spent: Duration, elapsed: Duration) -> Duration {
    (spent.saturating_sub(UNTHROTTLED_TIME) * TIME_SHARE_DIVISOR).saturating_sub(elapsed)
}

/// Returns whether an agent is running in any lane.
///
/// # Errors
/// Fails when the lanes cannot be listed.
pub(crate) fn is_any_agent_running(project: &Project) -> Result<bool, Error> {
    for lane in project.all_lanes()? {
        if effective_state(project, &lane)?.0.is_busy() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns whether git is working on the index of a worktree. An index lock older than [`MAX_INDEX_LOCK_AGE`]
/// does not count: it is left from a killed git, or waits for an editor.
fn is_index_locked(git_dir: &Path) -> bool {
    let modified_at = git_dir.join("index.lock").symlink_metadata().and_then(|meta| meta.modified());
    modified_at.is_ok_and(|modified| modified.elapsed().is_ok_and(|age| age < MAX_INDEX_LOCK_AGE))
}

/// State of the worktrees and of the repository across passes.
#[derive(Default)]
struct AutoSnapshots {
    /// State by lane name; the key is none for the main checkout.
    worktree_states: HashMap<Option<LaneName>, SnapshottedState>,
    /// The lanes whose own agent runs, by name.
    busy_lanes: HashMap<LaneName, BusyLane>,
    /// Number of passes so far.
    pass_count: usize,
    park_markers: Option<ParkMarkers>,
    /// Settings that all worktrees share, as [`shared_settings()`] returned them at the last pass.
    known_settings: Option<BTreeMap<String, String>>,
    /// Number of consecutive passes in which a lane's worktree has been missing, by lane name.
    missing_passes: BTreeMap<LaneName, usize>,
}

/// State of one worktree at its last snapshot.
#[derive(Clone)]
struct SnapshottedState {
    /// Hash of everything that a snapshot of the worktree would copy.
    fingerprint: u64,
    /// Id of the snapshot taken in this state; none when nothing was uncommitted.
    snapshot: Option<String>,
}

/// State of a lane whose own agent runs.
#[derive(Default)]
struct BusyLane {
    /// Fingerprint of the last scan.
    last_fingerprint: u64,
    /// Number of consecutive scans since the last copy that each found a change.
    changed_scans: usize,
    /// The last copy, with the fingerprint of the scan from which it was taken.
    last_copy: Option<SnapshottedState>,
}

/// Markers that change when a user or git-proq parks changes on purpose.
struct ParkMarkers {
    /// Number of git-proq's last finished operation.
    last_operation: OperationNumber,
    /// Commits of the stash entries.
    stash_entries: Vec<CommitId>,
}

impl ParkMarkers {
    /// Reads the present markers, and the worktrees in which changes were parked since `before`: by git-proq
    /// operations, and by a stash on top of the commit that is checked out there.
    fn read(project: &Project, before: Option<&ParkMarkers>) -> Result<(ParkMarkers, ParkedChanges), Error> {
        let last = match before {
            Some(marks) => marks.last_operation,
            None => last_finished_operation(&project.store),
        };
        let (worktrees, operation) = worktrees_parked_since(&project.store, last);
        let newest = project.repo.ref_tip("refs/stash")?;
        // An older stash becomes the newest again once those above it are dropped.
        let is_new = |stash: &CommitId| before.is_some_and(|marks| !marks.stash_entries.contains(stash));
        let stash_base =
            newest.filter(is_new).map(|stash| project.repo.require_commit(&format!("{stash}^1")));
        let marks = ParkMarkers { last_operation: operation, stash_entries: project.repo.stash_entries() };
        Ok((
            marks,
            ParkedChanges {
                worktrees,
                last_operation: operation,
                stashed_on: stash_base.and_then(Result::ok),
            },
        ))
    }
}

/// Worktrees in which changes were parked on purpose.
struct ParkedChanges {
    /// Worktrees in which an operation parked or restored changes.
    worktrees: BTreeSet<PathBuf>,
    /// Number of the newest operation that `worktrees` takes into account.
    last_operation: OperationNumber,
    /// The commit that was checked out when the newest stash was created.
    stashed_on: Option<CommitId>,
}

impl ParkedChanges {
    /// Returns whether changes were parked on purpose in the worktree at `dir`, by an operation or a stash.
    fn includes_worktree(&self, project: &Project, dir: &Path) -> Result<bool, Error> {
        let is_stashed = self.stashed_on.is_some() && project.repo.head_commit(dir)? == self.stashed_on;
        // Checks operations that started later: running ones first, then finished ones. In the other order,
        // one could finish between the two checks.
        let is_parked_since = || {
            is_operation_running(&project.store, |step| step.parked_worktree() == Some(dir))
                || worktrees_parked_since(&project.store, self.last_operation).0.contains(dir)
        };
        Ok(is_stashed || self.worktrees.contains(dir) || is_parked_since())
    }
}

/// A worktree that automatic snapshots cover.
pub(crate) struct WatchedWorktree<'a> {
    /// The lane of the worktree; none for the main checkout.
    pub lane: Option<&'a LaneRecord>,
    pub dir: &'a Path,
    /// Worktrees in which changes were parked since the last pass.
    parked_changes: &'a ParkedChanges,
}

impl AutoSnapshots {
    /// Scans the main checkout and the lanes, and takes a snapshot of each that has changed since the last
    /// pass.
    fn run_pass(&mut self, project: &Project) -> Result<(), Error> {
        let (park_markers, parked_changes) = ParkMarkers::read(project, self.park_markers.as_ref())?;
        self.park_markers = Some(park_markers);
        if let Some(dir) = project.repo.main_worktree()
            && lane_running_in_place(project, None)?.is_none()
        {
            self.snapshot_or_warn(
                project,
                &WatchedWorktree { lane: None, dir, parked_changes: &parked_changes },
            );
        }
        self.report_changed_settings(project);
        let lanes = project.owned_lanes()?;
        for lane in &lanes {
            self.report_missing_worktree(project, lane, parked_changes.worktrees.contains(&lane.path));
        }
        self.missing_passes.retain(|name, _| lanes.iter().any(|lane| lane.name == *name));
        self.worktree_states
            .retain(|lane, _| lane.as_ref().is_none_or(|lane| lanes.iter().any(|known| known.name == *lane)));
        self.busy_lanes.retain(|name, _| lanes.iter().any(|lane| lane.name == *name));
        self.pass_count += 1;
        for lane in &lanes {
            let worktree =
                WatchedWorktree { lane: Some(lane), dir: &lane.path, parked_changes: &parked_changes };
            if worktree.is_missing() && worktree.is_being_removed(project) {
                continue;
            }
            if !effective_state(project, lane)?.0.is_busy() {
                self.snapshot_or_warn(project, &worktree);
                continue;
            }
            self.worktree_states.remove(&Some(lane.name.clone()));
            if (worktree.is_missing() || self.pass_count.is_multiple_of(BUSY_LANE_PASS_INTERVAL))
                && let Err(e) = self.snapshot_busy_lane(project, &worktree, &lane.name)
            {
                project.listener.warn(e.to_string());
            }
        }
        Ok(())
    }

    /// Takes a snapshot of a lane whose own agent runs, once two scans found the same files, or after many
    /// changed scans. Changes that the lane's own agent deletes are not reported as lost.
    fn snapshot_busy_lane(
        &mut self,
        project: &Project,
        worktree: &WatchedWorktree<'_>,
        name: &LaneName,
    ) -> Result<(), Error> {
        if worktree.is_missing() {
            return self.report_missing_busy_lane(project, worktree, name);
        }
        let lane = self.busy_lanes.entry(name.clone()).or_default();
        let Some(scan) = worktree.scan(project)? else { return Ok(()) };
        if lane.last_copy.as_ref().is_some_and(|known| known.fingerprint == scan.fingerprint) {
            return Ok(());
        }
        if std::mem::replace(&mut lane.last_fingerprint, scan.fingerprint) != scan.fingerprint {
            lane.changed_scans += 1;
            if lane.changed_scans < CHANGED_SCANS_BEFORE_COPY {
                return Ok(());
            }
        }
        lane.changed_scans = 0;
        let previous_id = lane.last_copy.take().and_then(|known| known.snapshot);
        lane.last_copy = Some(worktree.take_snapshot(project, &scan, previous_id.as_deref())?);
        prune_snapshots(project, Some(name))
    }

    /// Emits an event if the folder of a lane is missing, and with it changes that were copied while its
    /// agent ran.
    fn report_missing_busy_lane(
        &mut self,
        project: &Project,
        worktree: &WatchedWorktree<'_>,
        name: &LaneName,
    ) -> Result<(), Error> {
        let known = self.busy_lanes.remove(name).and_then(|lane| lane.last_copy);
        known.and_then(|known| known.snapshot).map_or(Ok(()), |id| worktree.report_loss(project, &id, None))
    }

    /// Emits an event if settings or hooks of the repository have changed since the last pass.
    fn report_changed_settings(&mut self, project: &Project) {
        let settings = shared_settings(&project.repo);
        let before = self.known_settings.replace(settings.clone());
        if let Some(changed) = before.and_then(|before| list_changed_settings(&before, &settings)) {
            let message = format!("{changed} of the repository changed while agents were running");
            project.emit_event(Event::new(EventName::RepositoryChanged, message));
        }
    }

    /// Emits an event at the second consecutive pass in which a lane's worktree is missing: a command that
    /// removes a lane takes a moment. A pass does not count if `is_intended`: git-proq has just moved the
    /// worktree or parked changes in it. Lost uncommitted changes have their own event.
    fn report_missing_worktree(&mut self, project: &Project, lane: &LaneRecord, is_intended: bool) {
        let exists = lane.path.join(".git").exists() && project.repo.is_registered_worktree(&lane.path);
        let Some(passes) = self.missing_passes.get_mut(&lane.name) else {
            if exists {
                self.missing_passes.insert(lane.name.clone(), 0);
            }
            return;
        };
        *passes = if exists || is_intended { 0 } else { *passes + 1 };
        if *passes == 2 {
            let (path, branch) = (shell_quote_path(&lane.path), &lane.kind.branch);
            let message = format!(
                "the worktree of lane '{}' is missing; restore it: git worktree add -f {path} {branch}",
                lane.name
            );
            let mut event = Event::new(EventName::RepositoryChanged, message);
            event.lane = Some(lane.name.to_string());
            project.emit_event(event);
        }
    }

    /// Takes a snapshot if the worktree changed; turns an error into a warning.
    fn snapshot_or_warn(&mut self, project: &Project, worktree: &WatchedWorktree<'_>) {
        if let Err(e) = self.snapshot_worktree(project, worktree) {
            project.listener.warn(e.to_string());
        }
    }

    /// Takes a snapshot of a worktree that changed since the last one, and reports changes that it has lost.
    fn snapshot_worktree(&mut self, project: &Project, worktree: &WatchedWorktree<'_>) -> Result<(), Error> {
        let name = worktree.lane.map(|lane| lane.name.clone());
        if worktree.is_missing() {
            if let Some(id) = self.worktree_states.remove(&name).and_then(|known| known.snapshot) {
                worktree.report_loss(project, &id, None)?;
            }
            return name.map_or(Ok(()), |name| self.report_missing_busy_lane(project, worktree, &name));
        }
        if let Some(name) = &name {
            self.busy_lanes.remove(name);
        }
        let previous = self.worktree_states.get(&name).cloned();
        let Some(scan) = worktree.scan(project)? else { return Ok(()) };
        if previous.as_ref().is_some_and(|known| known.fingerprint == scan.fingerprint) {
            return Ok(());
        }
        let previous_id = previous.and_then(|known| known.snapshot);
        if let Some(id) = &previous_id
            && !has_autostash(&scan.git_dir)
            && !worktree.parked_changes.includes_worktree(project, worktree.dir)?
        {
            worktree.report_loss(project, id, Some(&scan.git_dir))?;
        }
        let known = worktree.take_snapshot(project, &scan, previous_id.as_deref())?;
        self.worktree_states.insert(name, known);
        prune_snapshots(project, worktree.lane.map(|lane| &lane.name))
    }
}

/// State of a worktree at one moment.
struct ScanResult {
    git_dir: PathBuf,
    ignored: IgnoredFiles,
    /// Hash of everything that a snapshot of the worktree would copy.
    fingerprint: u64,
}

impl WatchedWorktree<'_> {
    /// Returns "the main checkout" or "lane" with its name, for a message.
    pub fn describe_worktree(&self) -> String {
        self.lane.map_or_else(|| "the main checkout".to_owned(), |lane| format!("lane '{}'", lane.name))
    }

    /// Returns whether the worktree has no `.git`.
    fn is_missing(&self) -> bool {
        self.dir.join(".git").symlink_metadata().is_err()
    }

    /// Returns whether git-proq is removing the lane, or has removed it.
    fn is_being_removed(&self, project: &Project) -> bool {
        let Some(lane) = self.lane else { return false };
        let moves_worktree = |step: &dyn Step| step.moved_path().is_some_and(|path| path.from == lane.path);
        let is_removed = project.lane(&lane.name).map_or(true, |now| now.created != lane.created);
        is_removed || is_operation_running(&project.store, moves_worktree)
    }

    /// Scans the worktree; none while git works in it, because its files may be half written.
    fn scan(&self, project: &Project) -> Result<Option<ScanResult>, Error> {
        let git_dir = project.repo.worktree_git_dir(self.dir)?;
        if is_index_locked(&git_dir) {
            return Ok(None);
        }
        let stamp = WorktreeStamp::read(&project.repo, self.dir, &git_dir)?;
        let byte_limit = project.settings.snapshot_ignored;
        let ignored = IgnoredFiles::scan(self.dir, &stamp.ignored, &project.lanes_dir(), byte_limit);
        let fingerprint = stamp.state_hash ^ ignored.fingerprint.rotate_left(1);
        Ok(Some(ScanResult { git_dir, ignored, fingerprint }))
    }

    /// Takes a snapshot if anything is uncommitted. `previous_id` is the worktree's previous snapshot.
    fn take_snapshot(
        &self,
        project: &Project,
        scan: &ScanResult,
        previous_id: Option<&str>,
    ) -> Result<SnapshottedState, Error> {
        let ScanResult { ignored, fingerprint: value, .. } = scan;
        let Some(head) = project.repo.head_commit(self.dir)? else {
            return Ok(SnapshottedState { fingerprint: *value, snapshot: None });
        };
        let layout = project.store.layout();
        let reason = format!("uncommitted in {} while agents were at work", self.describe_worktree());
        let checkout = LockedWorktree::lock(project, self.dir)?;
        let id = new_id();
        let previous_copies = previous_id.map(|id| layout.snapshot_ignored_files(id));
        let copied =
            ignored.copy_to(self.dir, &layout.snapshot_ignored_files(&id), previous_copies.as_deref())?;
        // A file that was written to during the copy is copied at the next pass.
        let fingerprint = if copied.len() == ignored.files.len() { *value } else { !*value };
        let nothing_ignored = copied.is_empty();
        let automatic = AutomaticSnapshotInfo {
            lane: self.lane.map(|lane| lane.name.clone()),
            is_in_event: false,
            copied_ignored_files: copied,
            too_large: ignored.over_limit.clone(),
        };
        let save = |snapshot, raw_index: &Path| {
            let record = SnapshotRecord {
                id: id.clone(),
                automatic: Some(automatic),
                ..SnapshotRecord::new_copy(&reason, snapshot)
            };
            snapshot_store::save_snapshot(project, &record, raw_index)
        };
        let taken = checkout.write_unmerged_snapshot(head, &reason, !nothing_ignored, save)?;
        Ok(SnapshottedState { fingerprint, snapshot: taken.map(|()| id) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_to_limit_share_of_time() {
        let seconds = Duration::from_secs;
        assert_eq!(pause_after(seconds(1), seconds(1)), Duration::ZERO);
        assert_eq!(pause_after(seconds(3), seconds(20)), seconds(180));
        assert_eq!(pause_after(seconds(3), seconds(500)), Duration::ZERO);
    }
}
