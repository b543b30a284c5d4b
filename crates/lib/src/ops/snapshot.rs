//! Snapshots of uncommitted changes: all, one, and the restore of one.

use proq_base::lane_name::LaneName;
use proq_git::snapshots::restore_forecast::RestoreOutcome as RestoreResult;
use proq_git::status::special_files::UncapturedPath;
use proq_git::{CommitId, RepoPath};
use proq_store::base::clock::Moment;
use serde::Serialize;

use super::error::Error;
use crate::lane::Project;
use crate::snapshot::snap_restore::RestoreReport;
use crate::snapshot::snap_view::{SnapState, SnapView};
use crate::snapshot::{snap_restore, snap_view};

/// A snapshot.
#[derive(Debug, Serialize)]
pub struct SnapshotRow {
    id: String,
    #[serde(rename = "why")]
    reason: String,
    /// Time at which the snapshot was taken.
    #[serde(rename = "at")]
    taken_at: Moment,
    /// One of waiting, edits, kept, restored, copy, automatic.
    pub state: &'static str,
    /// Lane whose preview the snapshot waits for, or whose edits it holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lane: Option<LaneName>,
    /// Time at which the snapshot was restored; `None` if it was not, or is only a copy.
    #[serde(rename = "restored", skip_serializing_if = "Option::is_none")]
    restored_at: Option<Moment>,
    /// Number of files in the snapshot.
    files: usize,
    /// Commit that `git stash apply` takes.
    commit: CommitId,
    /// Commit that HEAD was at when the snapshot was taken.
    base: CommitId,
    /// The snapshot with its record.
    #[serde(skip)]
    pub view: SnapView,
}

/// Snapshots, newest first.
#[derive(Debug, Serialize)]
pub struct SnapshotList {
    /// The snapshots.
    pub snapshots: Vec<SnapshotRow>,
}

/// A snapshot with its files.
#[derive(Debug, Serialize)]
pub struct SnapshotDetails {
    /// The snapshot as in the list.
    #[serde(flatten)]
    pub row: SnapshotRow,
    /// Changed files, tracked ones by path, then untracked ones.
    pub paths: Vec<FileEntry>,
    /// Paths that the snapshot could not capture.
    #[serde(rename = "left")]
    left_out: Vec<UncapturedPath>,
    empty_folders: Vec<RepoPath>,
}

/// A changed file of a snapshot.
#[derive(Debug, Serialize)]
pub struct FileEntry {
    /// Path below the top of the worktree.
    pub path: RepoPath,
    /// Status in two letters, as in `git status --short`.
    pub status: String,
}

/// Snapshot to restore.
#[derive(Debug, Clone, Default)]
pub struct RestoreRequest {
    /// Id of the snapshot, or the beginning of it.
    pub id: String,
}

/// Snapshot to restore. What the restore changes is computed by [`RestorePlan::forecast`] and
/// [`RestorePlan::execute`].
#[derive(Debug)]
pub struct RestorePlan(SnapView);

/// Result or forecast of a restore.
#[derive(Debug, Serialize)]
pub struct RestoreOutcome {
    /// Id of the snapshot.
    pub id: String,
    /// Commit of the snapshot.
    pub commit: CommitId,
    /// One of exactly, merged, conflict.
    #[serde(rename = "restored")]
    result_name: &'static str,
    /// Paths whose conflicts prevented the restore.
    pub conflicts: Vec<RepoPath>,
    /// Ignored files that an earlier restore of this snapshot wrote and that have changed since.
    #[serde(rename = "ignored_gone", skip_serializing_if = "Vec::is_empty")]
    lost_ignored: Vec<RepoPath>,
    /// Whether nothing was changed.
    pub dry_run: bool,
    /// Details of the restore.
    #[serde(skip)]
    pub report: RestoreReport,
}

/// Returns all snapshots.
///
/// # Errors
/// Fails if the snapshots cannot be read.
pub fn list(project: &Project) -> Result<SnapshotList, Error> {
    let views = snap_view::snap_views(project)?;
    Ok(SnapshotList { snapshots: views.into_iter().map(SnapshotRow::new).collect() })
}

/// Returns the snapshot with this id or beginning of one.
///
/// # Errors
/// Fails if there is none, or if several begin with `id`.
pub fn show(project: &Project, id: &str) -> Result<SnapshotDetails, Error> {
    let view = snap_view::find_snap(project, id)?;
    let files = view.files(&project.repo)?.into_iter();
    Ok(SnapshotDetails {
        paths: files.map(|f| FileEntry { path: f.path, status: f.status.iter().collect() }).collect(),
        left_out: view.uncaptured_paths().to_vec(),
        empty_folders: view.record.snapshot.empty_dirs.clone(),
        row: SnapshotRow::new(view),
    })
}

/// Finds the snapshot to restore.
///
/// # Errors
/// Those of [`show`].
pub fn plan(project: &Project, request: &RestoreRequest) -> Result<RestorePlan, Error> {
    Ok(RestorePlan(snap_view::find_snap(project, &request.id)?))
}

impl RestorePlan {
    /// Returns what [`RestorePlan::execute`] would do, except that no lost folder of a lane is created.
    ///
    /// # Errors
    /// Those of [`RestorePlan::execute`].
    pub fn forecast(self, project: &Project) -> Result<RestoreOutcome, Error> {
        self.restore(project, true)
    }

    /// Restores the snapshot to the user's worktree; an automatic one to the worktree it was taken of.
    ///
    /// # Errors
    /// Those of [`snap_restore::restore_snapshot`].
    pub fn execute(self, project: &Project) -> Result<RestoreOutcome, Error> {
        self.restore(project, false)
    }

    fn restore(self, project: &Project, dry_run: bool) -> Result<RestoreOutcome, Error> {
        let RestorePlan(view) = self;
        let report = snap_restore::restore_snapshot(project, &view, dry_run)?;
        let conflicts = match &report.outcome {
            RestoreResult::Conflict(paths) => paths.clone(),
            RestoreResult::Exact | RestoreResult::Merged => Vec::new(),
        };
        Ok(RestoreOutcome {
            id: view.record.id.clone(),
            commit: view.commit(),
            result_name: result_name(&report.outcome),
            conflicts,
            lost_ignored: report.lost_ignored.clone(),
            dry_run,
            report,
        })
    }
}

/// Returns the name of the result of a restore in JSON output.
pub(super) fn result_name(result: &RestoreResult) -> &'static str {
    match result {
        RestoreResult::Exact => "exactly",
        RestoreResult::Merged => "merged",
        RestoreResult::Conflict(_) => "conflict",
    }
}

impl SnapshotRow {
    fn new(view: SnapView) -> SnapshotRow {
        let snap = &view.record;
        let (state, lane) = match &view.state {
            SnapState::AwaitsPreviewExit(lane) => ("waiting", Some(lane.clone())),
            SnapState::AwaitsNextPreview(lane) => ("edits", Some(lane.clone())),
            SnapState::Saved => ("kept", None),
            SnapState::Restored => ("restored", None),
            SnapState::CopyOnly if snap.automatic.is_some() => ("automatic", None),
            SnapState::CopyOnly => ("copy", None),
        };
        SnapshotRow {
            id: snap.id.clone(),
            reason: snap.reason.clone(),
            taken_at: snap.at,
            state,
            lane,
            restored_at: snap.restored.filter(|_| !snap.is_copy),
            files: snap.snapshot.files,
            commit: snap.snapshot.commit,
            base: snap.snapshot.head_commit,
            view,
        }
    }
}
