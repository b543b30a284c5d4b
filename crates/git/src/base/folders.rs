//! Folders of a worktree: checks for links above a path, and removal of empty folders.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::Path;

use crate::RepoPath;

/// Returns whether `path` is a file or link below `root` and all its parents are real folders.
pub(crate) fn is_file_in_real_folder(root: &Path, path: &RepoPath) -> bool {
    path.to_fs_path(root).symlink_metadata().is_ok_and(|m| !m.is_dir()) && has_real_parents(root, path)
}

/// Returns whether `path` exists below `root` and all its parents are real folders.
pub(crate) fn exists_in_real_folder(root: &Path, path: &RepoPath) -> bool {
    path.to_fs_path(root).symlink_metadata().is_ok() && has_real_parents(root, path)
}

/// Returns whether all existing parents of a path are real folders; a link would lead elsewhere.
pub(crate) fn has_real_parents(root: &Path, path: &RepoPath) -> bool {
    path.parents().all(|parent| parent.to_fs_path(root).symlink_metadata().map_or(true, |meta| meta.is_dir()))
}

/// Returns the path above `path` that exists and is not a folder.
pub(crate) fn obstruction_above(root: &Path, path: &RepoPath) -> Option<RepoPath> {
    path.parents().find(|parent| parent.to_fs_path(root).symlink_metadata().is_ok_and(|meta| !meta.is_dir()))
}

/// Removes the empty parent folders of `path` below `root`, up to the first that is not empty.
pub(crate) fn remove_empty_parents(root: &Path, path: &RepoPath) {
    let mut parents: Vec<RepoPath> = path.parents().collect();
    while let Some(parent) = parents.pop() {
        if parent.as_bytes() == OsStr::new("").as_encoded_bytes() {
            break;
        }
        if !remove_if_empty(&parent.to_fs_path(root)) {
            break;
        }
    }
}

/// Removes a folder if it contains only empty folders. If it contains a file, only the empty folders next to
/// that file are removed.
pub(crate) fn remove_empty_tree(dir: &Path) {
    if !dir.symlink_metadata().is_ok_and(|m| m.is_dir()) {
        return;
    }
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        remove_empty_tree(&entry.path());
    }
    drop(remove_empty_folder(dir));
}

/// Removes a folder of parked files if no file is left in it.
pub fn remove_parked_dir_without_files(dir: &Path) {
    remove_empty_tree(dir);
}

/// Removes a folder if it is empty, and returns whether it no longer exists. A folder that was missing before
/// counts: the process that removed it may have stopped before it removed the parent.
pub fn remove_if_empty(dir: &Path) -> bool {
    remove_empty_folder(dir).map_or_else(|e| e.kind() == ErrorKind::NotFound, |()| true)
}

/// Removes a folder if it is empty. A temporary failure is worth a second attempt, because no later step
/// removes the folder.
pub(crate) fn remove_empty_folder(dir: &Path) -> std::io::Result<()> {
    retry_removal_once(|| std::fs::remove_dir(dir))
}

/// Runs a removal, and repeats it once if it failed for a reason that may be temporary.
fn retry_removal_once(mut remove: impl FnMut() -> std::io::Result<()>) -> std::io::Result<()> {
    remove().or_else(|e| match e.kind() {
        ErrorKind::DirectoryNotEmpty | ErrorKind::NotFound | ErrorKind::NotADirectory => Err(e),
        _ => remove(),
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Error, ErrorKind};

    use super::{remove_empty_parents, retry_removal_once};
    use crate::base::path::RepoPath;

    #[test]
    fn removes_empty_parent_of_missing_folder() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("deep")).unwrap();
        remove_empty_parents(root.path(), &RepoPath::new(b"deep/er/file"));
        assert!(!root.path().join("deep").exists());
        // A folder with another entry stays.
        std::fs::create_dir_all(root.path().join("deep/other")).unwrap();
        remove_empty_parents(root.path(), &RepoPath::new(b"deep/er/file"));
        assert!(root.path().join("deep/other").exists());
    }

    #[test]
    fn retries_failed_removal_once() {
        let mut results = vec![Ok(()), Err(Error::other("input/output error"))];
        assert!(retry_removal_once(|| results.pop().unwrap()).is_ok());
        assert!(results.is_empty());
        let mut results = vec![Ok(()), Err(Error::from(ErrorKind::DirectoryNotEmpty))];
        assert!(retry_removal_once(|| results.pop().unwrap()).is_err());
        assert_eq!(results.len(), 1);
    }
}
