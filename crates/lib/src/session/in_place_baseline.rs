//! Baseline of the main checkout before an in-place run: which files and ignored paths were there, to
//! recognize the user's files afterwards.

use std::collections::{BTreeSet, HashSet};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use proq_git::RepoPath;
use proq_git::status::worktree_status::WorktreeStatus;
use proq_git::status::{special_files, status_query};
use proq_store::records::baseline::{CheckoutBaseline, DirtyFile};

use crate::lane::{Error, Project};
use crate::operation::locked_worktree::LockedWorktree;

/// Upper limit of ignored files and folders whose inode ids are recorded, so that they are recognized after a
/// rename.
const MAX_IGNORED_PATHS: usize = 10_000;

/// Returns the baseline of the main checkout before a run: its uncommitted and ignored files. `saved_ref`
/// keeps the current commit, and `snap` is the id of the snapshot.
pub(crate) fn capture_baseline(
    project: &Project,
    checkout: &LockedWorktree<'_>,
    saved_ref: String,
    snap: Option<String>,
) -> Result<CheckoutBaseline, Error> {
    let dir = checkout.dir();
    let ignored = checkout.ignored_paths(&checkout.scan())?;
    let ignored_ids = inode_ids_below(dir, &ignored, &project.lanes_dir());
    let mut paths = status_query::status(&project.repo, dir, true)?.paths();
    paths.extend(checkout.hidden_edits()?);
    let files = paths.into_iter().map(|path| file_baseline(dir, path)).collect();
    Ok(CheckoutBaseline {
        head_keep_ref: saved_ref,
        snapshot_id: snap,
        ignored_paths: ignored,
        ignored_content_ids: ignored_ids,
        dirty_files: files,
    })
}

/// Returns the recorded state of one file: inode ids, size, mtime, mode, and whether it is unreadable.
fn file_baseline(dir: &Path, path: RepoPath) -> DirtyFile {
    let meta = path.to_fs_path(dir).symlink_metadata().ok();
    let state = meta
        .as_ref()
        .filter(|meta| !meta.is_dir())
        .map(|meta| format!("{} {}.{} {:o}", meta.size(), meta.mtime(), meta.mtime_nsec(), meta.mode()));
    let (ids, unread) =
        (meta.as_ref().map(inode_ids), !special_files::unreadable_paths(dir, [&path]).is_empty());
    DirtyFile {
        path,
        content_ids: ids.unwrap_or_default(),
        stat_state: state.unwrap_or_default(),
        is_unreadable: unread,
    }
}

/// Returns ids of a file that survive a rename. An inode number is soon reused, so each id also has the
/// creation time. A second id of a regular file has size and mtime instead, because an overlay file system
/// gives a changed file a new creation time.
fn inode_ids(meta: &Metadata) -> Vec<String> {
    let created = meta.created().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let inode = format!("{} {}", meta.dev(), meta.ino());
    let with_creation_time = format!("{inode} {}", created.map_or(0, |at| at.as_nanos()));
    let with_size_and_mtime = format!("{inode} {} {}.{}", meta.size(), meta.mtime(), meta.mtime_nsec());
    std::iter::once(with_creation_time).chain(meta.is_file().then_some(with_size_and_mtime)).collect()
}

/// Returns the inode ids of `paths` and of everything below them, limited by `MAX_IGNORED_PATHS`. The folder
/// `lanes` is left out, since lanes are not part of the checkout.
fn inode_ids_below(dir: &Path, paths: &[RepoPath], lanes: &Path) -> Vec<String> {
    let mut queue: Vec<PathBuf> = paths.iter().map(|path| path.to_fs_path(dir)).collect();
    // Breadth first: when the limit is reached, the top of every path is recorded in any case.
    let mut next = 0;
    while next < queue.len() && queue.len() < MAX_IGNORED_PATHS {
        let current = queue[next].clone();
        next += 1;
        if current != lanes && current.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
            queue.extend(
                std::fs::read_dir(&current).into_iter().flatten().flatten().map(|entry| entry.path()),
            );
        }
    }
    queue.truncate(MAX_IGNORED_PATHS.max(paths.len()));
    queue
        .iter()
        .filter(|path| *path != lanes)
        .filter_map(|p| p.symlink_metadata().ok())
        .flat_map(|m| inode_ids(&m))
        .collect()
}

/// The user's files in the main checkout before a run, which the run must not commit: those uncommitted or
/// ignored then.
pub(crate) struct UserFiles<'a> {
    dir: &'a Path,
    /// State of the main checkout before the run.
    baseline: &'a CheckoutBaseline,
    /// Uncommitted files, and ignored files and folders.
    paths: BTreeSet<&'a RepoPath>,
    /// Parent folders of all `paths`.
    parent_dirs: BTreeSet<RepoPath>,
    /// Inode ids of all `paths`, by which they are recognized after a rename.
    known_inode_ids: HashSet<&'a str>,
}

impl<'a> UserFiles<'a> {
    pub fn new(dir: &'a Path, baseline: &'a CheckoutBaseline) -> UserFiles<'a> {
        let paths: BTreeSet<&RepoPath> =
            baseline.dirty_files.iter().map(|file| &file.path).chain(&baseline.ignored_paths).collect();
        let parent_dirs = paths.iter().flat_map(|path| path.parents()).collect();
        let ids = baseline.dirty_files.iter().flat_map(|file| &file.content_ids).map(String::as_str);
        let known_inode_ids = ids.chain(baseline.ignored_content_ids.iter().map(String::as_str)).collect();
        UserFiles { dir, baseline, paths, parent_dirs, known_inode_ids }
    }

    /// Returns whether a path belongs to the user: it is one of `paths`, is below one, or is now in the place
    /// of a parent folder of one. A renamed one of `paths`, and what is below it, belongs to the user too.
    pub fn contains(&self, path: &RepoPath) -> bool {
        self.paths.contains(path)
            || self.parent_dirs.contains(path)
            || path.parents().any(|up| self.paths.contains(&up))
            || self.has_known_inode(path)
            || path.parents().any(|up| self.has_known_inode(&up))
    }

    /// Returns whether the file at `path` is one of the user's files from before the run, perhaps renamed.
    fn has_known_inode(&self, path: &RepoPath) -> bool {
        let meta = path.to_fs_path(self.dir).symlink_metadata();
        meta.is_ok_and(|meta| inode_ids(&meta).iter().any(|id| self.known_inode_ids.contains(id.as_str())))
    }

    /// Returns the user's files that have changed, are missing, or became visible to git's status since the
    /// baseline was recorded.
    pub fn changed_files(&self, dirty: &WorktreeStatus) -> Vec<RepoPath> {
        let differs = |file: &&DirtyFile| file_baseline(self.dir, file.path.clone()) != **file;
        let mut out: BTreeSet<RepoPath> =
            self.baseline.dirty_files.iter().filter(differs).map(|file| file.path.clone()).collect();
        let known_paths: BTreeSet<&RepoPath> =
            self.baseline.dirty_files.iter().map(|file| &file.path).collect();
        out.extend(
            dirty.paths().into_iter().filter(|path| !known_paths.contains(path) && self.contains(path)),
        );
        let is_gone = |path: &&RepoPath| path.to_fs_path(self.dir).symlink_metadata().is_err();
        out.extend(self.baseline.ignored_paths.iter().filter(is_gone).cloned());
        out.into_iter().collect()
    }
}
