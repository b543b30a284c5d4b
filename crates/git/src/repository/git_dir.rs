//! Git directories of worktrees, found in the file system without git.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::head_file::has_head;

/// Returns the git directory of the worktree whose top is `dir`, or `dir` if it is a git directory itself;
/// `None` if it is neither. Parent folders are not searched.
pub(crate) fn git_dir_at(dir: &Path) -> Option<PathBuf> {
    let link = dir.join(".git");
    if link.is_dir() {
        return Some(link);
    }
    if let Ok(text) = std::fs::read(&link) {
        let target = text.strip_prefix(b"gitdir: ")?;
        return Some(dir.join(OsStr::from_bytes(target.trim_ascii_end())));
    }
    (has_head(dir) && dir.join("objects").is_dir()).then(|| dir.to_owned())
}

/// Returns the git directory that all worktrees share, given the one of a worktree.
pub(crate) fn shared_git_dir(git_dir: &Path) -> Option<PathBuf> {
    match std::fs::read(git_dir.join("commondir")) {
        Ok(text) => git_dir.join(OsStr::from_bytes(text.trim_ascii_end())).canonicalize().ok(),
        Err(_) => Some(git_dir.to_owned()),
    }
}
