//! Owns what is known of each snapshot: whom it waits for, what it holds, and which one a person means.

use super::{Error, Project, SnapshotError};
use crate::git::{self, LeftOut, Oid, RepoPath, tree_changes};
use crate::store::Record;
use crate::store::records::{Automatic, LaneRecord, PreviewRecord, SnapRecord};

/// What a snapshot waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SnapState {
    /// The way back from the open preview of this lane.
    Waiting(String),
    /// The next preview of this lane, in whose preview it was made.
    Edits(String),
    /// Somebody to bring it back.
    Kept,
    /// Nothing: it came back.
    Restored,
    /// Nothing: what it holds stayed where it was.
    Copy,
}

/// One snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SnapView {
    /// Its record.
    pub(crate) record: SnapRecord,
    /// What it waits for.
    pub(crate) state: SnapState,
}

/// A path that a snapshot holds, and how it differed: two letters as in `git status --short`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SnapFile {
    /// The path.
    pub(crate) path: RepoPath,
    /// Staged and unstaged: `M`, `A`, `D`, `T` or a blank; `??` for untracked.
    pub(crate) status: [char; 2],
}

/// Every snapshot, newest first. One whose record cannot be read is named in a warning.
pub(crate) fn snap_views(project: &Project) -> Result<Vec<SnapView>, Error> {
    let ids = project.snap_ids()?;
    for (name, _) in project.repo.refs_below("refs/proq/snap/")? {
        if ids.iter().all(|id| SnapRecord::ref_name(id) != name) {
            project
                .listener
                .warn(format!("{name} has no record; bring it back with: git stash apply {name}"));
        }
    }
    let known = Known::of(project)?;
    let mut views = Vec::new();
    for id in ids.into_iter().rev() {
        match project.snap(&id) {
            Ok(record) => views.push(SnapView { state: known.state(&record), record }),
            Err(e) => {
                let name = SnapRecord::ref_name(&id);
                // Without a ref it was never whole: whoever took it was cut off before anything was moved.
                if project.repo.ref_tip(&name)?.is_some() {
                    project.listener.warn(format!("{e}; the files are kept: git stash apply {name}"));
                }
            }
        }
    }
    Ok(views)
}

/// The snapshot with this id, or the only one whose id begins so.
pub(crate) fn find_snap(project: &Project, asked: &str) -> Result<SnapView, Error> {
    let mut ids = project.snap_ids()?;
    let whole = ids.iter().any(|id| id == asked);
    ids.retain(|id| if whole { id == asked } else { !asked.is_empty() && id.starts_with(asked) });
    let shown = || asked.chars().take(80).collect();
    match ids.as_slice() {
        [] => Err(Error::NoSnap { id: shown() }),
        [id] => {
            let record = project.snap(id)?;
            SnapshotError::refuse_lost(project, &record)?;
            Ok(SnapView { state: Known::of(project)?.state(&record), record })
        }
        _ => Err(Error::ManySnaps { id: shown(), ids }),
    }
}

/// The command that brings the folder of a lane back with what was uncommitted in it, where that is gone and a snapshot has it.
pub(crate) fn way_back_to_folder(project: &Project, lane: &LaneRecord) -> Option<String> {
    let has_it = |snap: &SnapRecord| {
        let of_lane = |found: &Automatic| found.named && found.lane.as_ref() == Some(&lane.name);
        (snap.copy || snap.restored.is_none())
            && snap.at >= lane.created
            && snap.automatic.as_ref().is_some_and(of_lane)
    };
    if lane.path.symlink_metadata().is_ok() || project.repo.branch_tip(&lane.place.branch).ok()?.is_none() {
        return None;
    }
    let newest_first = project.snap_ids().ok()?.into_iter().rev();
    let found = newest_first.filter_map(|id| project.snap(&id).ok()).find(has_it)?;
    Some(format!("git proq snap restore {}", found.id))
}

/// Who may wait for a snapshot.
struct Known {
    open: Option<PreviewRecord>,
    lanes: Vec<LaneRecord>,
}

impl Known {
    fn of(project: &Project) -> Result<Known, Error> {
        let open = PreviewRecord::find(&project.store.layout().preview())?;
        Ok(Known { open, lanes: project.lanes()? })
    }

    fn state(&self, snap: &SnapRecord) -> SnapState {
        if snap.restored.is_some() {
            return if snap.copy { SnapState::Copy } else { SnapState::Restored };
        }
        if let Some(open) = self.open.as_ref().filter(|open| open.snapshot.as_ref() == Some(&snap.id)) {
            return SnapState::Waiting(open.lane.clone());
        }
        match self.lanes.iter().find(|lane| lane.preview_edits.contains(&snap.id)) {
            Some(lane) => SnapState::Edits(lane.name.clone()),
            None => SnapState::Kept,
        }
    }
}

impl SnapView {
    /// What it holds, by path.
    pub(crate) fn files(&self, project: &Project) -> Result<Vec<SnapFile>, Error> {
        let snap = &self.record.snapshot;
        let mut files: Vec<SnapFile> = Vec::new();
        for (from, to, at) in [(snap.base, snap.index_tree, 0), (snap.index_tree, snap.work_tree, 1)] {
            for change in tree_changes(&project.repo, from, to)? {
                let letter = change.letter();
                if let Some(file) = files.iter_mut().find(|f| f.path == change.path) {
                    file.status[at] = letter;
                } else {
                    let mut status = [' ', ' '];
                    status[at] = letter;
                    files.push(SnapFile { path: change.path, status });
                }
            }
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        if let Some(tree) = snap.untracked_tree {
            let loose = git::files_of(&project.repo, tree)?;
            files.extend(loose.into_iter().map(|path| SnapFile { path, status: ['?', '?'] }));
        }
        Ok(files)
    }

    /// What it could not hold and was left where it was.
    pub(crate) fn left(&self) -> &[LeftOut] {
        &self.record.snapshot.left
    }

    /// The commit that `git stash apply` reads.
    pub(crate) fn commit(&self) -> Oid {
        self.record.snapshot.commit
    }
}
