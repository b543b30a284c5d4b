//! View of each snapshot for the user: state, files, and lookup by id.

use proq_base::lane_name::LaneName;
use proq_git::history::tree_diff;
use proq_git::history::tree_diff::tree_changes;
use proq_git::status::special_files::UncapturedPath;
use proq_git::{CommitId, Repo, RepoPath};
use proq_store::base::record::Record;
use proq_store::records::lane::LaneRecord;
use proq_store::records::preview::PreviewRecord;
use proq_store::records::snapshot::{AutomaticSnapshotInfo, SnapshotRecord};

use crate::lane::{Error, Project};

/// State of a snapshot: the event that restores it, or why none does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SnapState {
    /// Leaving the open preview of this lane restores it.
    AwaitsPreviewExit(LaneName),
    /// The next preview of this lane restores it; the edits were made in a preview of the lane.
    AwaitsNextPreview(LaneName),
    /// Only the user can restore it.
    Saved,
    /// It was restored.
    Restored,
    /// It is only a copy: its contents stayed in their worktree.
    CopyOnly,
}

/// Snapshot with its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapView {
    /// Stored record of the snapshot.
    pub record: SnapshotRecord,
    /// Event that restores the snapshot, or the reason why none does.
    pub state: SnapState,
}

/// Path in a snapshot, with its change as two letters as in `git status --short`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapFile {
    /// Path of the changed file, relative to the top of the worktree.
    pub path: RepoPath,
    /// Staged and unstaged change: `M`, `A`, `D`, `T` or a blank; `??` for untracked.
    pub status: [char; 2],
}

/// Returns every snapshot, newest first. Warns about snapshots with an unreadable record.
pub fn snap_views(project: &Project) -> Result<Vec<SnapView>, Error> {
    let ids = project.snap_ids()?;
    for (name, _) in project.repo.refs_with_prefix("refs/proq/snap/")? {
        if ids.iter().all(|id| SnapshotRecord::ref_name(id) != name) {
            project.listener.warn(format!("{name} has no record; restore it: git stash apply {name}"));
        }
    }
    let waiters = Waiters::load(project)?;
    let mut views = Vec::new();
    for id in ids.into_iter().rev() {
        match project.load_snap(&id) {
            Ok(record) => views.push(SnapView { state: waiters.state(&record), record }),
            Err(e) => {
                let name = SnapshotRecord::ref_name(&id);
                // Without a ref the snapshot was never complete: its process was killed before any file was
                // moved.
                if project.repo.ref_tip(&name)?.is_some() {
                    project.listener.warn(format!("{e}; its files are saved: git stash apply {name}"));
                }
            }
        }
    }
    Ok(views)
}

/// Returns the snapshot with this id, or the only one whose id starts with `prefix`.
pub fn find_snap(project: &Project, prefix: &str) -> Result<SnapView, Error> {
    let mut ids = project.snap_ids()?;
    let is_exact = ids.iter().any(|id| id == prefix);
    ids.retain(|id| if is_exact { id == prefix } else { !prefix.is_empty() && id.starts_with(prefix) });
    let shortened = || prefix.chars().take(80).collect();
    match ids.as_slice() {
        [] => Err(Error::UnknownSnapshot { snapshot_id: shortened() }),
        [id] => {
            let record = project.load_snap(id)?;
            project.require_snap_commit(&record)?;
            Ok(SnapView { state: Waiters::load(project)?.state(&record), record })
        }
        _ => Err(Error::AmbiguousSnapshot { snapshot_id: shortened(), matching_ids: ids }),
    }
}

/// Returns the command that restores a lane's missing folder with its uncommitted changes. `None` unless the
/// folder is missing and a snapshot that an event names has the changes.
pub fn restore_folder_command(project: &Project, lane: &LaneRecord) -> Option<String> {
    let holds_folder = |snap: &SnapshotRecord| {
        let is_of_lane =
            |found: &AutomaticSnapshotInfo| found.is_in_event && found.lane.as_ref() == Some(&lane.name);
        (snap.is_copy || snap.restored.is_none())
            && snap.at >= lane.created
            && snap.automatic.as_ref().is_some_and(is_of_lane)
    };
    if lane.path.symlink_metadata().is_ok() || project.repo.branch_tip(&lane.kind.branch).ok()?.is_none() {
        return None;
    }
    let newest_first = project.snap_ids().ok()?.into_iter().rev();
    let found = newest_first.filter_map(|id| project.load_snap(&id).ok()).find(holds_folder)?;
    Some(format!("git proq snap restore {}", found.id))
}

/// Preview and lanes that may wait for a snapshot.
struct Waiters {
    open_preview: Option<PreviewRecord>,
    lanes: Vec<LaneRecord>,
}

impl Waiters {
    /// Reads the record of the open preview and those of the lanes.
    fn load(project: &Project) -> Result<Waiters, Error> {
        let open_preview = PreviewRecord::load_if_exists(&project.store.layout().preview_record())?;
        Ok(Waiters { open_preview, lanes: project.owned_lanes()? })
    }

    /// Returns the state of a snapshot, depending on whether the preview or a lane waits for it.
    fn state(&self, snap: &SnapshotRecord) -> SnapState {
        if snap.restored.is_some() {
            return if snap.is_copy { SnapState::CopyOnly } else { SnapState::Restored };
        }
        if let Some(open) =
            self.open_preview.as_ref().filter(|open| open.parked_snapshot.as_ref() == Some(&snap.id))
        {
            return SnapState::AwaitsPreviewExit(open.lane.clone());
        }
        match self.lanes.iter().find(|lane| lane.preview_edit_snapshots.contains(&snap.id)) {
            Some(lane) => SnapState::AwaitsNextPreview(lane.name.clone()),
            None => SnapState::Saved,
        }
    }
}

impl SnapView {
    /// Returns the changed files of the snapshot, tracked ones sorted by path, then the untracked ones.
    pub fn files(&self, repo: &Repo) -> Result<Vec<SnapFile>, Error> {
        let snap = &self.record.snapshot;
        let mut files: Vec<SnapFile> = Vec::new();
        for (from, to, column) in
            [(snap.head_commit.oid(), snap.index_tree, 0), (snap.index_tree.oid(), snap.work_tree, 1)]
        {
            for change in tree_changes(repo, from, to)? {
                let letter = change.status_letter();
                if let Some(file) = files.iter_mut().find(|f| f.path == change.path) {
                    file.status[column] = letter;
                } else {
                    let mut status = [' ', ' '];
                    status[column] = letter;
                    files.push(SnapFile { path: change.path, status });
                }
            }
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        if let Some(tree) = snap.untracked_tree {
            let untracked_files = tree_diff::tree_paths(repo, tree)?;
            files.extend(untracked_files.into_iter().map(|path| SnapFile { path, status: ['?', '?'] }));
        }
        Ok(files)
    }

    /// Returns the paths that the snapshot could not hold and that stayed in the worktree.
    pub fn uncaptured_paths(&self) -> &[UncapturedPath] {
        &self.record.snapshot.uncaptured
    }

    /// Returns the commit of the snapshot, readable by `git stash apply`.
    pub fn commit(&self) -> CommitId {
        self.record.snapshot.commit
    }
}
