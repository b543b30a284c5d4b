//! Folders in which git tracks no file: those that are empty, which git does not record, and special files in
//! them.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::special_files;
use super::special_files::UncapturedPath;
use super::stat_scan::StatScan;
use super::worktree_scan::WorktreeScan;
use super::worktree_status::WorktreeStatus;
use crate::index::sparse_entries::folders_above_absent_files;
use crate::repository::worktree_context::WorktreeContext;
use crate::{Error, Repo, RepoPath};

/// Returns the empty folders of a clean worktree.
pub fn empty_folders(tree: &WorktreeContext<'_>, scan: &WorktreeScan) -> Result<Vec<RepoPath>, Error> {
    Ok(scan_untracked_folders(tree, &WorktreeStatus::default(), &[], scan, scan.untracked_folders())?
        .empty_folders)
}

/// Returns the empty folders of the worktree at `dir` that are at one of `new_paths` or above it. git removes
/// them while it writes the files.
pub(crate) fn empty_folders_at<'c>(
    dir: &Path,
    new_paths: impl Iterator<Item = &'c RepoPath>,
) -> Vec<RepoPath> {
    let mut folder_checks = HashMap::new();
    let mut contents = UntrackedContents::default();
    for path in new_paths {
        let folders = path.parents().chain([path.clone()]);
        let existing = folders
            .take_while(|folder| folder.to_fs_path(dir).symlink_metadata().is_ok_and(|meta| meta.is_dir()));
        for folder in existing {
            if *folder_checks
                .entry(folder.clone())
                .or_insert_with(|| has_only_folders(&folder.to_fs_path(dir)))
            {
                contents.scan_folder(dir, &folder);
                break;
            }
        }
    }
    contents.empty_folders.sort();
    contents.empty_folders.dedup();
    contents.empty_folders
}

/// Contents of folders in which git tracks no file.
#[derive(Default)]
pub(crate) struct UntrackedContents {
    /// Folders without contents.
    pub empty_folders: Vec<RepoPath>,
    /// Special files, and folders that cannot be read.
    pub(crate) uncaptured_paths: Vec<UncapturedPath>,
}

/// Scans the untracked folders of a worktree for empty folders and special files. `known_untracked_folders`
/// are the untracked folders, if known; otherwise git lists them. Ignored folders are scanned only for empty
/// ones and only if they contain no file, because a commit may have a file there.
pub(crate) fn scan_untracked_folders(
    tree: &WorktreeContext<'_>,
    dirty: &WorktreeStatus,
    hidden: &[RepoPath],
    scan: &WorktreeScan,
    known_untracked_folders: Option<&[RepoPath]>,
) -> Result<UntrackedContents, Error> {
    let dir = tree.dir;
    let mut contents = UntrackedContents::default();
    // Git does not list a folder as empty while the index still has its deleted files, nor one in place of a
    // file.
    for path in dirty.tracked().map(|e| &e.path).chain(hidden) {
        let chain = path.parents().chain([path.clone()]);
        let existing =
            chain.filter(|parent| parent.to_fs_path(dir).symlink_metadata().is_ok_and(|m| m.is_dir()));
        if let Some(folder) = existing.last() {
            contents.scan_folder(dir, &folder);
        }
    }
    if let Some(folders) = known_untracked_folders {
        for folder in folders {
            contents.scan_folder(dir, folder);
        }
    } else {
        for folder in list_untracked_folders(tree.repo, dir)? {
            contents.scan_folder(dir, &folder);
        }
        let mut sparse_contents = UntrackedContents::default();
        for folder in folders_above_absent_files(tree)? {
            sparse_contents.scan_folder(dir, &folder);
        }
        // Their other contents are found with the untracked files.
        contents.empty_folders.append(&mut sparse_contents.empty_folders);
    }
    for folder in scan.ignored_paths(tree.repo, dir)? {
        if tree.off_limits.as_ref() != Some(&folder) && has_only_folders(&folder.to_fs_path(dir)) {
            contents.scan_folder(dir, &folder);
        }
    }
    contents.empty_folders.sort();
    contents.empty_folders.dedup();
    Ok(contents)
}

/// Returns whether a path is a folder that contains only folders, at every depth, or nothing. The first file
/// ends the search.
fn has_only_folders(path: &Path) -> bool {
    let is_folder = path.symlink_metadata().is_ok_and(|meta| meta.is_dir());
    let Some(entries) = is_folder.then(|| std::fs::read_dir(path).ok()).flatten() else { return false };
    entries.flatten().all(|entry| has_only_folders(&entry.path()))
}

impl Repo {
    /// Returns untracked paths in the worktree at `dir` that this user may not read: files listed in `dirty`,
    /// and folders, which git treats as empty. No snapshot contains them.
    pub fn unreadable_paths(&self, dir: &Path, dirty: &WorktreeStatus) -> Result<Vec<RepoPath>, Error> {
        let files = dirty.untracked().filter(|e| !e.is_nested_repo).map(|e| &e.path);
        let mut all = special_files::unreadable_paths(dir, files);
        // A clean result proves that every folder is readable.
        if StatScan::open(self, dir).is_some_and(|scan| scan.is_clean(true, true)) {
            return Ok(all);
        }
        let mut contents = UntrackedContents::default();
        for folder in list_untracked_folders(self, dir)? {
            contents.scan_folder(dir, &folder);
        }
        all.extend(
            contents
                .uncaptured_paths
                .into_iter()
                .filter(UncapturedPath::is_unreadable)
                .map(|entry| entry.path),
        );
        Ok(all)
    }
}

fn list_untracked_folders(repo: &Repo, dir: &Path) -> Result<Vec<RepoPath>, Error> {
    let call = repo.git_in(dir);
    let out = call.args(["ls-files", "--others", "--directory", "--exclude-standard", "-z"]).run()?;
    Ok(out.nul_separated_fields().filter_map(|field| field.strip_suffix(b"/")).map(RepoPath::new).collect())
}

impl UntrackedContents {
    fn scan_folder(&mut self, root: &Path, folder: &RepoPath) {
        let path = folder.to_fs_path(root);
        // An embedded repository is not part of this worktree.
        if path.join(".git").exists() {
            return;
        }
        let entries = match std::fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(e) if e.kind() == ErrorKind::PermissionDenied => {
                self.uncaptured_paths.push(UncapturedPath::unreadable(folder.clone()));
                return;
            }
            Err(_) => return,
        };
        let mut is_empty = true;
        for entry in entries.flatten() {
            is_empty = false;
            let Ok(kind) = entry.file_type() else { continue };
            let child = folder.join(entry.file_name().as_bytes());
            if kind.is_dir() {
                self.scan_folder(root, &child);
            } else if let Some(description) = special_files::special_kind(kind) {
                self.uncaptured_paths.push(UncapturedPath::new(child, description));
            }
        }
        if is_empty {
            self.empty_folders.push(folder.clone());
        }
    }
}
