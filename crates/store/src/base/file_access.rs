//! Existence and readability of paths.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access as Rights, access};
use rustix::io::Errno;

/// Returns whether `path` exists or may exist: false only if it certainly does not exist.
pub(crate) fn may_exist(path: &Path) -> bool {
    let is_absent = |e: std::io::Error| matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
    !path.symlink_metadata().is_err_and(is_absent)
}

/// Returns the path that prevents this user from reading the file or folder at `path`: the topmost ancestor
/// that cannot be entered, or `path` itself. None where `path` is readable or certainly absent.
pub fn first_inaccessible(path: &Path) -> Option<PathBuf> {
    let is_dir = path.symlink_metadata().map_or(true, |meta| meta.is_dir());
    let required_rights = if is_dir { Rights::READ_OK | Rights::EXEC_OK } else { Rights::READ_OK };
    if access(path, required_rights) != Err(Errno::ACCESS) {
        return None;
    }
    let ancestors: Vec<&Path> = path.ancestors().skip(1).collect();
    let closed_dir =
        ancestors.into_iter().rev().find(|dir| access(*dir, Rights::EXEC_OK) == Err(Errno::ACCESS));
    Some(closed_dir.unwrap_or(path).to_owned())
}

/// Returns the nearest of `path` and its ancestors that exists; `path` itself if none does.
pub(crate) fn nearest_existing(path: &Path) -> &Path {
    path.ancestors().find(|ancestor| ancestor.symlink_metadata().is_ok()).unwrap_or(path)
}

/// Returns the topmost folder below the git directory, or else the nearest one, that belongs to another user and
/// contains `path`; none if what exists of `path` belongs to this user.
pub(crate) fn folder_of_other_user(path: &Path) -> Option<PathBuf> {
    let own = rustix::process::geteuid().as_raw();
    let is_foreign = |dir: &&Path| dir.symlink_metadata().is_ok_and(|meta| meta.uid() != own);
    let nearest = nearest_existing(path);
    is_foreign(&nearest).then(|| {
        let below_git_dir = |dir: &&Path| dir.ancestors().nth(1).is_some_and(|up| up.join("HEAD").is_file());
        nearest.ancestors().find(below_git_dir).unwrap_or(nearest).to_owned()
    })
}

/// Returns the owner of a file or folder for a message: `root`, or the id of another user.
pub(crate) fn owner_of(path: &Path) -> Option<String> {
    match path.symlink_metadata().ok()?.uid() {
        0 => Some("root".to_owned()),
        uid => Some(format!("user {uid}")),
    }
}
