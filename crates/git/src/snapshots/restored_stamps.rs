//! Stat records of files restored with a snapshot, for detecting later changes: git compares only contents
//! after its filters, and ignores permissions.

use std::fmt::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::clear::SnapshotFiles;
use crate::RepoPath;
use crate::base::path::nul_separated;
use crate::base::path_list;
use crate::checkout::quarantine::Quarantine;
use crate::history::tree_diff::TreeChange;

/// Name of the list next to a snapshot's parked files. It alternates a path and that file's stat record, and
/// ends with the number of fields.
const STAMPS_FILE: &str = "brought";

/// Records, next to a snapshot's parked files, the stat data of the files restored to the worktree at `dir`.
/// These are the tracked files in `changes` and the untracked ones. If the record cannot be written,
/// `is_unchanged_since_restore` returns false.
pub(crate) fn write_stamps(
    dir: &Path,
    parked: &Quarantine,
    snapshot_files: &SnapshotFiles,
    changes: &[TreeChange],
) {
    let tracked = changes.iter().map(|change| &change.path);
    let paths = tracked.chain(snapshot_files.untracked_and_ignored().map(|(path, _)| path));
    let mut records: Vec<RepoPath> =
        paths.flat_map(|path| [path.clone(), stat_stamp_text(dir, path)]).collect();
    records.push(RepoPath::new(records.len().to_string()));
    drop(std::fs::write(parked.dir().join(STAMPS_FILE), nul_separated(&records)));
}

/// Removes the record of an earlier restore: other programs wrote files during the present one, which must not
/// be taken for restored ones.
pub(crate) fn remove_stamps(parked: &Quarantine) {
    drop(std::fs::remove_file(parked.dir().join(STAMPS_FILE)));
}

/// Returns whether no file in the worktree at `dir` was changed since it was restored from the snapshot whose
/// parked files are in `parked_dir`. Returns false if the restore left no record.
pub fn is_unchanged_since_restore(dir: &Path, parked_dir: &Path) -> bool {
    let Ok(mut records) = path_list::read_path_list(&parked_dir.join(STAMPS_FILE)) else { return false };
    let count = records.pop();
    count.is_some_and(|count| count.as_bytes() == records.len().to_string().as_bytes())
        && records
            .chunks(2)
            .all(|pair| matches!(pair, [path, recorded] if stat_stamp_text(dir, path) == *recorded))
}

/// Returns a text of all stat fields that change with a file: mode, inode, length, mtime and ctime, or `none`
/// for a missing file.
fn stat_stamp_text(dir: &Path, path: &RepoPath) -> RepoPath {
    let mut text = String::from("none");
    if let Ok(meta) = path.to_fs_path(dir).symlink_metadata() {
        text.clear();
        let (written, changed) = ((meta.mtime(), meta.mtime_nsec()), (meta.ctime(), meta.ctime_nsec()));
        let _ = write!(text, "{:o} {} {} {written:?} {changed:?}", meta.mode(), meta.ino(), meta.len());
    }
    RepoPath::new(text)
}
