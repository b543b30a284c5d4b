//! Files that were written only in part when a process was killed or the power failed.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use super::quarantine::matches_blob;
use crate::history::tree_diff::TreeFile;
use crate::repository::worktree_context::WorktreeContext;
use crate::{Error, Oid, RepoPath};

/// Bytes of the smallest block of any file system. After a power failure, a file is empty or ends at a block
/// boundary. The same holds after a kill: git writes 16 kB at once, with filters or without, and the kernel
/// writes pages. A person who removes lines from the end of a file almost never leaves such a length.
const MIN_BLOCK_BYTES: usize = 512;

/// Returns whether `actual` may be a truncated copy of `complete_content`: a shorter prefix that ends at a
/// block boundary.
pub(crate) fn is_truncated_copy(actual: &[u8], complete_content: &[u8]) -> bool {
    actual.len().is_multiple_of(MIN_BLOCK_BYTES)
        && actual.len() < complete_content.len()
        && complete_content.starts_with(actual)
}

/// Returns whether a regular file has the full content of another one, or a prefix of it that ends at a block
/// boundary, as a kill or a power cut leaves it.
pub fn is_full_or_partial_copy(file: &Path, original: &Path) -> bool {
    let read = |path: &Path| {
        path.symlink_metadata().is_ok_and(|meta| meta.is_file()).then(|| std::fs::read(path).ok()).flatten()
    };
    read(file).zip(read(original)).is_some_and(|(actual, expected)| is_complete_or_prefix(&actual, &expected))
}

/// Returns whether `actual` equals `expected`, or may be a truncated copy of it.
fn is_complete_or_prefix(actual: &[u8], expected: &[u8]) -> bool {
    actual == expected || is_truncated_copy(actual, expected)
}

/// Returns whether a file is missing, has the content that git writes for `side`, or has a prefix of that
/// content, as a kill or a power cut leaves it.
pub(crate) fn is_missing_or_git_written(
    tree: &WorktreeContext<'_>,
    path: &RepoPath,
    side: TreeFile,
    commit: Oid,
) -> Result<bool, Error> {
    let file = path.to_fs_path(tree.dir);
    let Ok(meta) = file.symlink_metadata() else { return Ok(true) };
    if matches_blob(tree.repo, &file, side) {
        return Ok(true);
    }
    if !meta.is_file() {
        return Ok(false);
    }
    let expected = checkout_bytes(tree, path, commit)?;
    Ok(std::fs::read(&file).is_ok_and(|actual| is_complete_or_prefix(&actual, &expected)))
}

/// Returns the bytes that git would write to the worktree for the file at `path` of the commit or tree
/// `tree_ish`, with the worktree's attributes.
pub(crate) fn checkout_bytes(
    tree: &WorktreeContext<'_>,
    path: &RepoPath,
    tree_ish: Oid,
) -> Result<Vec<u8>, Error> {
    let mut spec = format!("{tree_ish}:").into_bytes();
    spec.extend_from_slice(path.as_bytes());
    let call = tree.repo.git_in(tree.dir).args(["cat-file", "--filters"]);
    Ok(call.arg(OsString::from_vec(spec)).run()?.stdout)
}
