//! Ignored files at paths where HEAD has something else, as after `git rm --cached FILE` with a new ignore
//! rule. They belong to the user and are parked with all others, but as files: no object may hold what git
//! was configured to ignore.

use std::collections::BTreeSet;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use proq_base::regular_file;
use proq_base::regular_file::LinkPolicy;
use serde::{Deserialize, Serialize};

use crate::base::folders::{has_real_parents, obstruction_above};
use crate::checkout::quarantine::FILES_DIR;
use crate::history::tree_diff::{TreeChange, TreeFile, tree_changes};
use crate::index::index_flags;
use crate::index::sparse_entries::skipped_obstructions;
use crate::repository::worktree_context::WorktreeContext;
use crate::status::special_files;
use crate::status::worktree_scan::WorktreeScan;
use crate::status::worktree_status::{StatusEntry, StatusKind, WorktreeStatus};
use crate::{BlobId, CommitId, Error, Repo, RepoPath, TreeId};

/// Ignored file of a snapshot. No object holds its content, only the file itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IgnoredFile {
    /// Path of the file in the worktree.
    pub path: RepoPath,
    /// File mode as git records it.
    mode: u32,
    /// Id that a blob with the file's content would have. The blob does not exist.
    content: BlobId,
}

impl IgnoredFile {
    /// Returns whether the file is unchanged in the worktree at `dir`, or below `parked_dir`, where a
    /// snapshot's files are parked.
    pub fn is_preserved(&self, repo: &Repo, dir: &Path, parked_dir: &Path) -> bool {
        let is_same_below =
            |top: &Path| read_ignored_file(repo, top, &self.path).is_ok_and(|now| now == *self);
        is_same_below(dir) || is_same_below(&parked_dir.join(FILES_DIR))
    }

    /// Returns the mode with the content id, as a file in a tree has them. No blob with this id exists.
    pub(crate) fn to_tree_file(&self) -> TreeFile {
        TreeFile { mode: self.mode, oid: self.content.oid() }
    }
}

impl WorktreeScan {
    /// Adds the `ignored` files of a snapshot that was restored in this worktree. A later snapshot parks
    /// those that still exist again, whether or not HEAD has a file at their path by then.
    pub fn with_restored_ignored(mut self, ignored: &[IgnoredFile]) -> WorktreeScan {
        self.restored_ignored = ignored.iter().map(|file| file.path.clone()).collect();
        self
    }
}

/// Returns the ignored files that occupy paths of HEAD, which is at `head_commit`: in place of a file that
/// the worktree lacks, in place of a folder above it, or below a folder in its place. Also returns those of
/// `restored_ignored` that exist, which a snapshot has restored.
pub(crate) fn find_ignored_obstructions(
    tree: &WorktreeContext<'_>,
    dirty: &WorktreeStatus,
    hidden: &[RepoPath],
    head_commit: CommitId,
    work_tree: TreeId,
    restored_ignored: &[RepoPath],
) -> Result<Vec<IgnoredFile>, Error> {
    let is_staged_or_deleted =
        |e: &StatusEntry| matches!(e.kind, StatusKind::Tracked { staged, deleted, .. } if staged || deleted);
    // Otherwise the worktree has all that HEAD has.
    let changes = if !hidden.is_empty() || dirty.tracked().any(is_staged_or_deleted) {
        tree_changes(tree.repo, head_commit, work_tree)?
    } else {
        Vec::new()
    };
    let untracked = dirty.untracked().filter(|e| !e.is_nested_repo).map(|e| &e.path).collect();
    list_ignored_obstructions(tree, &changes, &untracked, restored_ignored)
}

/// Returns the ignored files that have to be parked even if the worktree is clean. They occupy the place of a
/// folder whose files the user marked skip-worktree, see [`skipped_obstructions`], or are among
/// `restored_ignored`.
pub(crate) fn ignored_in_clean_worktree(
    tree: &WorktreeContext<'_>,
    restored_ignored: &[RepoPath],
) -> Result<Vec<IgnoredFile>, Error> {
    list_ignored_obstructions(tree, &[], &BTreeSet::new(), restored_ignored)
}

fn list_ignored_obstructions(
    tree: &WorktreeContext<'_>,
    changes: &[TreeChange],
    untracked: &BTreeSet<&RepoPath>,
    restored_ignored: &[RepoPath],
) -> Result<Vec<IgnoredFile>, Error> {
    let mut scan = ObstructionScan::run(tree, changes, untracked)?;
    scan.ignored_files.extend(filter_ignored_files(tree, restored_ignored)?);
    let is_readable = |path: &&RepoPath| special_files::unreadable_paths(tree.dir, [*path]).is_empty();
    scan.ignored_files
        .iter()
        .filter(is_readable)
        .map(|path| read_ignored_file(tree.repo, tree.dir, path))
        .collect()
}

/// Returns those of `paths` that are files or links which git ignores and does not track.
fn filter_ignored_files(tree: &WorktreeContext<'_>, paths: &[RepoPath]) -> Result<Vec<RepoPath>, Error> {
    let is_file = |path: &&RepoPath| {
        let meta = path.to_fs_path(tree.dir).symlink_metadata();
        meta.is_ok_and(|meta| meta.is_file() || meta.is_symlink()) && has_real_parents(tree.dir, path)
    };
    let present: Vec<RepoPath> = paths.iter().filter(is_file).cloned().collect();
    if present.is_empty() {
        return Ok(present);
    }
    // With its index, git takes a file for tracked that occupies the place of a tracked folder.
    let mut ignored = tree.repo.ignored_among(tree.dir, &present)?;
    let is_tracked = index_flags::index_entry_predicate(tree.repo, &tree.git_dir.join("index"));
    // The joined empty name matches a sparse directory entry.
    ignored.retain(|path| !is_tracked(path) && !path.parents().any(|parent| is_tracked(&parent.join(b""))));
    Ok(ignored)
}

/// Refuses to continue if something that is not part of the snapshot occupies a path of HEAD: it cannot be
/// parked with the snapshot's files.
///
/// # Errors
/// Returns [`Error::NotAFile`], [`Error::Unreadable`], or [`Error::Raced`] for files created after the
/// snapshot.
pub(crate) fn refuse_obstructions(
    tree: &WorktreeContext<'_>,
    changes: &[TreeChange],
    untracked: &BTreeSet<&RepoPath>,
) -> Result<(), Error> {
    let scan = ObstructionScan::run(tree, changes, untracked)?;
    if !scan.non_file_descriptions.is_empty() {
        return Err(Error::NotAFile { dir: tree.dir.to_owned(), descriptions: scan.non_file_descriptions });
    }
    let mut all: Vec<RepoPath> = scan.ignored_files.into_iter().chain(scan.unreadable_folders).collect();
    let unreadable = special_files::unreadable_paths(tree.dir, &all);
    if !unreadable.is_empty() {
        return Err(Error::Unreadable { dir: tree.dir.to_owned(), unreadable_paths: unreadable });
    }
    all.sort();
    if all.is_empty() { Ok(()) } else { Err(Error::Raced { dir: tree.dir.to_owned(), raced_paths: all }) }
}

/// Scan for paths that occupy the places of HEAD's files and are not part of a snapshot.
#[derive(Default)]
struct ObstructionScan {
    ignored_files: BTreeSet<RepoPath>,
    /// Folders that cannot be read.
    unreadable_folders: Vec<RepoPath>,
    /// Descriptions of paths that are neither files nor folders of files.
    non_file_descriptions: Vec<String>,
}

impl ObstructionScan {
    fn run(
        tree: &WorktreeContext<'_>,
        changes: &[TreeChange],
        untracked: &BTreeSet<&RepoPath>,
    ) -> Result<ObstructionScan, Error> {
        let tracked: BTreeSet<&RepoPath> =
            changes.iter().filter(|c| c.new.is_some()).map(|c| &c.path).collect();
        let mut scan = ObstructionScan::default();
        let is_gone = |c: &&TreeChange| c.new.is_none() && c.old.is_some_and(|side| !side.is_gitlink());
        let mut candidates = skipped_obstructions(tree)?;
        let gone = changes.iter().filter(is_gone).map(|c| &c.path);
        candidates.extend(gone.map(|path| obstruction_above(tree.dir, path).unwrap_or_else(|| path.clone())));
        for path in &candidates {
            scan.inspect_path(tree, path);
        }
        scan.ignored_files.retain(|path| !untracked.contains(path) && !tracked.contains(path));
        Ok(scan)
    }

    fn inspect_path(&mut self, tree: &WorktreeContext<'_>, path: &RepoPath) {
        let file_path = path.to_fs_path(tree.dir);
        let Ok(meta) = file_path.symlink_metadata() else { return };
        if let Some(what) = special_files::special_kind(meta.file_type()) {
            self.non_file_descriptions.push(format!("{path} is {what}"));
        } else if !meta.is_dir() {
            self.ignored_files.insert(path.clone());
        } else if file_path.join(".git").symlink_metadata().is_ok() {
            self.non_file_descriptions.push(format!("{path} is a repository of its own"));
        } else if let Ok(entries) = std::fs::read_dir(&file_path) {
            for entry in entries.flatten() {
                self.inspect_path(tree, &path.join(entry.file_name().as_bytes()));
            }
        } else {
            self.unreadable_folders.push(path.clone());
        }
    }
}

/// Reads mode and content id of the file or link at a path below the folder `top`.
fn read_ignored_file(repo: &Repo, top: &Path, path: &RepoPath) -> Result<IgnoredFile, Error> {
    let file = path.to_fs_path(top);
    let failed = |e| Error::io("read", &file)(e);
    let meta = file.symlink_metadata().map_err(failed)?;
    let (mode, bytes) = if meta.is_symlink() {
        (0o120_000, std::fs::read_link(&file).map(|target| target.into_os_string().into_vec()))
    } else {
        let mode = if meta.permissions().mode() & 0o100 == 0 { 0o100_644 } else { 0o100_755 };
        // A pipe may have replaced the file.
        (mode, regular_file::read(&file, u64::MAX - 1, LinkPolicy::Refuse))
    };
    let content = repo.blob_id(&bytes.map_err(failed)?);
    let content = content.ok_or_else(|| failed(std::io::ErrorKind::InvalidData.into()))?;
    Ok(IgnoredFile { path: path.clone(), mode, content })
}
