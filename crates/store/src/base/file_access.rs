//! Existence and readability of paths.

use std::io::ErrorKind;
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
