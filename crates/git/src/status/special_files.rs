//! Paths of a worktree that no snapshot can hold: pipes, sockets, devices, nested repositories, and
//! unreadable files.

use std::collections::BTreeSet;
use std::fs::FileType;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use rustix::fs::{Access, access};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::base::path::nul_separated;
use crate::repository::worktree_context::WorktreeContext;
use crate::{Error, Repo, RepoPath};

/// Kind of a file or folder that may not be read.
const UNREADABLE_KIND: &str = "not readable";

/// Path that a snapshot cannot hold, so that it stays in the worktree.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct UncapturedPath {
    /// Path from the top of the worktree.
    pub path: RepoPath,
    /// Description of the kind of file.
    #[serde(rename = "what")]
    pub kind: String,
}

impl UncapturedPath {
    /// Creates the entry for a path; `kind` describes the kind of file, as in `a socket`.
    pub fn new(path: RepoPath, kind: &str) -> UncapturedPath {
        UncapturedPath { path, kind: kind.to_owned() }
    }

    /// Creates the entry for a repository inside the worktree that is no submodule.
    pub fn nested(path: RepoPath) -> UncapturedPath {
        UncapturedPath::new(path, "a repository of its own")
    }

    /// Creates the entry for a file or folder that this user may not read.
    pub fn unreadable(path: RepoPath) -> UncapturedPath {
        UncapturedPath::new(path, UNREADABLE_KIND)
    }

    /// Returns whether the path is listed because this user may not read it.
    pub fn is_unreadable(&self) -> bool {
        self.kind == UNREADABLE_KIND
    }
}

/// Returns the description of a pipe, socket or device; none for a file, link or folder.
pub(crate) fn special_kind(file_type: FileType) -> Option<&'static str> {
    if file_type.is_fifo() {
        Some("a named pipe")
    } else if file_type.is_socket() {
        Some("a socket")
    } else if file_type.is_block_device() || file_type.is_char_device() {
        Some("a device")
    } else {
        None
    }
}

/// Returns the special files in all folders that contain tracked files, and such folders that cannot be read.
/// git skips special files silently.
pub(crate) fn special_files_beside_tracked(
    tree: &WorktreeContext<'_>,
    index: &Path,
) -> Result<Vec<UncapturedPath>, Error> {
    let mut found = Vec::new();
    for folder in tracked_folders(tree.repo, tree.dir, index)? {
        let path_in_folder =
            |name: &[u8]| folder.as_ref().map_or_else(|| RepoPath::new(name), |f| f.join(name));
        let path = folder.as_ref().map_or_else(|| tree.dir.to_owned(), |f| f.to_fs_path(tree.dir));
        let entries = match (std::fs::read_dir(&path), &folder) {
            (Ok(entries), _) => entries,
            (Err(e), Some(folder)) if e.kind() == ErrorKind::PermissionDenied => {
                found.push(UncapturedPath::unreadable(folder.clone()));
                continue;
            }
            // The folder was removed.
            (Err(_), _) => continue,
        };
        for entry in entries.flatten() {
            let Some(kind) = entry.file_type().ok().and_then(special_kind) else { continue };
            let path = path_in_folder(entry.file_name().as_bytes());
            // A link that replaced the folder leads outside.
            if path.parents().all(|up| up.to_fs_path(tree.dir).symlink_metadata().is_ok_and(|m| m.is_dir())) {
                found.push(UncapturedPath::new(path, kind));
            }
        }
    }
    Ok(found)
}

/// Removes ignored paths: a server's socket at an ignored path is no user's change.
pub(crate) fn without_ignored_paths(
    tree: &WorktreeContext<'_>,
    mut uncaptured: Vec<UncapturedPath>,
) -> Result<Vec<UncapturedPath>, Error> {
    uncaptured.sort();
    uncaptured.dedup();
    if uncaptured.is_empty() {
        return Ok(uncaptured);
    }
    let out = tree
        .repo
        .git_in(tree.dir)
        .args(["check-ignore", "-z", "--stdin"])
        .input(nul_separated(uncaptured.iter().map(|l| &l.path)))
        .accept_exit_codes(&[1])
        .run()?;
    let ignored: BTreeSet<RepoPath> = out.nul_separated_fields().map(RepoPath::new).collect();
    uncaptured.retain(|l| !ignored.contains(&l.path));
    Ok(uncaptured)
}

/// Returns the folders that contain files of an index; `None` stands for the top. gitoxide reads the index;
/// if it cannot, git lists the entries.
fn tracked_folders(repo: &Repo, dir: &Path, index: &Path) -> Result<BTreeSet<Option<RepoPath>>, Error> {
    let mut folders = BTreeSet::from([None]);
    let mut add = |path: &[u8]| {
        let slashes = path.iter().enumerate().rev().filter(|(_, b)| **b == b'/');
        for (at, _) in slashes {
            // Its parents were added with it.
            if !folders.insert(Some(RepoPath::new(&path[..at]))) {
                break;
            }
        }
    };
    let index_file =
        gix::index::File::at(index, repo.gix.object_hash(), true, gix::index::decode::Options::default());
    if let Ok(index_file) = index_file {
        index_file.entries().iter().filter(|e| !e.mode.is_sparse()).for_each(|e| add(e.path(&index_file)));
    } else {
        let out = repo.git_in(dir).args(["ls-files", "-z"]).use_index(index).run()?;
        out.nul_separated_fields().for_each(add);
    }
    Ok(folders)
}

/// Returns one text per special file among `paths`, with its path and kind.
pub(crate) fn describe_special_files<'p>(
    dir: &Path,
    paths: impl IntoIterator<Item = &'p RepoPath>,
) -> Vec<String> {
    let kind_of_file =
        |path: &RepoPath| special_kind(path.to_fs_path(dir).symlink_metadata().ok()?.file_type());
    paths.into_iter().filter_map(|path| Some(format!("{path} is {}", kind_of_file(path)?))).collect()
}

/// Returns those of `paths` that exist and that this user may not read.
pub fn unreadable_paths<'p>(dir: &Path, paths: impl IntoIterator<Item = &'p RepoPath>) -> Vec<RepoPath> {
    let is_denied = |path: &&RepoPath| {
        let file = path.to_fs_path(dir);
        match file.symlink_metadata() {
            Ok(meta) if meta.is_symlink() => false,
            // Opening a pipe would wait for a process at its other end.
            Ok(_) => access(&file, Access::READ_OK) == Err(Errno::ACCESS),
            // A folder above the file may not be searched. git treats such a file as deleted.
            Err(e) => e.kind() == ErrorKind::PermissionDenied,
        }
    };
    paths.into_iter().filter(is_denied).cloned().collect()
}
