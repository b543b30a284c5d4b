//! Repair of files that a power failure truncated. Neither git nor a step syncs the files that it writes to a
//! worktree, so a file can be empty although its step is complete. A truncated copy of written content is no
//! user's work.

use std::collections::HashSet;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::clear::SnapshotFiles;
use super::restore_forecast::merge_snapshot_tree;
use super::snapshot::Snapshot;
use crate::base::folders::is_file_in_real_folder;
use crate::base::fsync::sync_files;
use crate::checkout::displaced_files::DisplacedFiles;
use crate::checkout::partial_files::{checkout_bytes, is_truncated_copy};
use crate::checkout::quarantine::{Quarantine, matches_blob};
use crate::history::tree_diff::{TreeChange, TreeFile, tree_changes};
use crate::index::raw_index::{EXECUTABLE_MODE, FILE_MODE, RawEntry, RawIndex, SYMLINK_MODE};
use crate::index::scratch_index::INDEX_NAME;
use crate::repository::worktree_context::WorktreeContext;
use crate::{CommitId, Error, Oid, RepoPath, TreeId};

/// Step that has changed the files of a worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorktreeStep {
    /// Transition of the files from one commit to another.
    Transition {
        /// Commit whose files the worktree had before the step.
        from: CommitId,
        /// Commit whose files the step wrote to the worktree.
        to: CommitId,
    },
    /// Clearing of a worktree: the snapshot's files were parked and replaced with HEAD's files.
    Cleared(Snapshot),
    /// Restore of a snapshot's files onto a commit. They are the user's own files, and are complete unless
    /// truncated.
    Restored {
        /// Snapshot that holds the restored files.
        snapshot: Snapshot,
        /// Commit that the snapshot's changes were applied to.
        onto: CommitId,
    },
}

/// Changed files, and the commit or tree with their new content; none when no object has it.
type ChangedFiles = (Vec<TreeChange>, Option<Oid>);

/// File that a step wrote to a worktree, with its mode and blob.
struct WrittenFile {
    path: RepoPath,
    side: TreeFile,
    /// Commit or tree that contains the file.
    source_commit_or_tree: Oid,
}

/// Name of the variable that, if set under test, makes the machine count as just started.
const BOOT_TEST_VARIABLE: &str = "PROQ_TEST_BOOT";

/// Returns when this machine was started, by its clock, within some milliseconds; none if the system does not
/// report it.
fn boot_time() -> Option<SystemTime> {
    if std::env::var_os(BOOT_TEST_VARIABLE).is_some() {
        return Some(SystemTime::now());
    }
    // Both clocks continue while the machine sleeps.
    #[cfg(target_os = "linux")]
    let clock = rustix::time::ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    let clock = rustix::time::ClockId::Monotonic;
    SystemTime::now().checked_sub(rustix::time::clock_gettime(clock).try_into().ok()?)
}

/// Completes files that `steps`, newest first, have written to a worktree and that a power failure truncated.
/// A file with other content stays unchanged. So does one that git cannot write: it counts as changed. A file
/// that was changed since the machine started is skipped, since no power failure truncated it.
///
/// # Errors
/// Fails if objects that the steps refer to cannot be read, or a file cannot be replaced; the other files
/// were completed.
pub fn repair_truncated_files(tree: &WorktreeContext<'_>, steps: &[WorktreeStep]) -> Result<(), Error> {
    let Some(boot_time) = boot_time() else { return Ok(()) };
    let mut files = newest_files(tree, steps)?;
    // Attribute files come first, since the content of other files depends on them.
    files.sort_by_key(|file| !file.path.ends_with_name(b".gitattributes"));
    let index = RawIndex::read(&tree.git_dir.join(INDEX_NAME), tree.repo.gix.object_hash());
    let quarantine = Quarantine::open(&tree.scratch.join("whole"))?;
    let mut displaced = DisplacedFiles::open(tree)?;
    let mut result = Ok(());
    for file in &files {
        displaced.inspect([&file.path]);
        if let Some(content) = untruncated_content(tree, index.as_ref(), file, boot_time)
            && let Err(e) = write_draft(tree, &quarantine, &file.path, &content)
                .and_then(|()| displaced.replace(&file.path, &quarantine))
        {
            result = Err(e);
        }
    }
    result.and(displaced.finish())
}

/// Returns whether a power failure truncated a file of a snapshot that was being restored. `expected` holds
/// the modes and blobs of the snapshot's files.
pub(crate) fn is_truncated_file(
    tree: &WorktreeContext<'_>,
    snapshot: &Snapshot,
    path: &RepoPath,
    expected: &[(RepoPath, TreeFile)],
) -> bool {
    let Some(boot_time) = boot_time() else { return false };
    let Some((_, side)) = expected.iter().find(|(expected, _)| expected == path) else { return false };
    let trees = [Some(snapshot.work_tree), snapshot.untracked_tree];
    trees.into_iter().flatten().any(|source| {
        let file = WrittenFile { path: path.clone(), side: *side, source_commit_or_tree: source.oid() };
        untruncated_content(tree, None, &file, boot_time).is_some()
    })
}

/// Returns the complete content of a file that a power failure truncated; none for any other file.
fn untruncated_content(
    tree: &WorktreeContext<'_>,
    index: Option<&RawIndex>,
    file: &WrittenFile,
    boot_time: SystemTime,
) -> Option<Vec<u8>> {
    let actual = read_suspect_file(tree, index, file, boot_time)?;
    checkout_bytes(tree, &file.path, file.source_commit_or_tree)
        .ok()
        .filter(|content| is_truncated_copy(&actual, content))
}

/// Syncs to disk the files that `steps`, newest first, have written to a worktree.
///
/// # Errors
/// Fails if objects that the steps refer to cannot be read, or the disk cannot be written to.
pub fn sync_written_files(tree: &WorktreeContext<'_>, steps: &[WorktreeStep]) -> Result<(), Error> {
    let files: Vec<PathBuf> =
        newest_files(tree, steps)?.iter().map(|file| file.path.to_fs_path(tree.dir)).collect();
    sync_files(&files)
}

/// Lists the files that steps, newest first, have left in a worktree: each path as the newest step that
/// changed it wrote it.
fn newest_files(tree: &WorktreeContext<'_>, steps: &[WorktreeStep]) -> Result<Vec<WrittenFile>, Error> {
    let mut listed = HashSet::new();
    let mut files = Vec::new();
    for step in steps {
        let changed_files = match step {
            WorktreeStep::Transition { from, to } => {
                vec![(tree_changes(tree.repo, *from, *to)?, Some(to.oid()))]
            }
            WorktreeStep::Cleared(snapshot) => {
                let invert = |c: TreeChange| TreeChange { old: c.new, new: c.old, path: c.path };
                let snapshot_files = SnapshotFiles::load_for_clearing(tree, snapshot)?.all_changes();
                vec![(snapshot_files.into_iter().map(invert).collect(), Some(snapshot.head_commit.oid()))]
            }
            WorktreeStep::Restored { snapshot, onto } => restored_files(tree, snapshot, *onto)?,
        };
        for (changes, source) in changed_files {
            for TreeChange { path, new, .. } in changes {
                if listed.insert(path.clone())
                    && let Some((side, source)) = new.zip(source)
                {
                    files.push(WrittenFile { path, side, source_commit_or_tree: source });
                }
            }
        }
    }
    Ok(files)
}

/// Lists the files that restoring a snapshot onto a commit has changed, with the trees that have their
/// content.
fn restored_files(
    tree: &WorktreeContext<'_>,
    snapshot: &Snapshot,
    onto: CommitId,
) -> Result<Vec<ChangedFiles>, Error> {
    let snapshot_files = SnapshotFiles::load(tree, snapshot)?;
    let added =
        |(path, side): &(RepoPath, TreeFile)| TreeChange { path: path.clone(), old: None, new: Some(*side) };
    let merged = merge_snapshot_tree(tree, snapshot, onto, snapshot.work_tree)?.ok();
    let tracked = match merged {
        Some(merged) => tree_changes(tree.repo, onto, merged)?,
        None => snapshot_files.tracked.clone(),
    };
    let untracked: Vec<TreeChange> = snapshot_files.untracked.iter().map(added).collect();
    // No object has the content of ignored files.
    let ignored: Vec<TreeChange> = snapshot_files.ignored.iter().map(added).collect();
    Ok(vec![
        (tracked, merged.map(TreeId::oid)),
        (untracked, snapshot.untracked_tree.map(TreeId::oid)),
        (ignored, None),
    ])
}

/// Reads a regular file that may be truncated. Returns none if the file has the content of its blob or the
/// size in the index, or was changed since `boot_time`.
fn read_suspect_file(
    tree: &WorktreeContext<'_>,
    index: Option<&RawIndex>,
    file: &WrittenFile,
    boot_time: SystemTime,
) -> Option<Vec<u8>> {
    let full_path = file.path.to_fs_path(tree.dir);
    let meta = full_path.symlink_metadata().ok().filter(|meta| {
        meta.is_file() && change_time(meta).is_some_and(|changed_at| changed_at < boot_time)
    })?;
    let is_regular = matches!(file.side.mode, FILE_MODE | EXECUTABLE_MODE)
        || (file.side.mode == SYMLINK_MODE && !tree.repo.creates_symlinks());
    if !is_regular || !is_file_in_real_folder(tree.dir, &file.path) {
        return None;
    }
    let entry = index.and_then(|index| index.find(file.path.as_bytes()));
    let recorded_size = entry.filter(|entry| entry.id() == file.side.oid.0.as_slice()).map(RawEntry::size);
    // git records no size for a file that may have been written in the same moment.
    let has_recorded_size = recorded_size.is_some_and(|size| size > 0 && u64::from(size) == meta.len());
    if has_recorded_size || matches_blob(tree.repo, &full_path, file.side) {
        None
    } else {
        std::fs::read(&full_path).ok()
    }
}

/// Returns when a file was last changed (ctime), which cannot be set back. A time before 1970 counts as 1970.
fn change_time(meta: &Metadata) -> Option<SystemTime> {
    let seconds = Duration::from_secs(u64::try_from(meta.ctime()).unwrap_or(0));
    UNIX_EPOCH.checked_add(seconds)
}

/// Writes the complete content of a truncated file to the quarantine, with the same permission bits.
fn write_draft(
    tree: &WorktreeContext<'_>,
    quarantine: &Quarantine,
    path: &RepoPath,
    content: &[u8],
) -> Result<(), Error> {
    let (draft, file) = (quarantine.file_path(path), path.to_fs_path(tree.dir));
    quarantine.remove_temp_copies(tree.dir, std::iter::once(path));
    let folder = draft.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
    let permissions =
        file.symlink_metadata().map(|meta| meta.permissions()).map_err(Error::io("read", &file))?;
    std::fs::write(&draft, content)
        .and_then(|()| std::fs::set_permissions(&draft, permissions))
        .and_then(|()| std::fs::File::open(&draft)?.sync_all())
        .map_err(Error::io("write", &draft))
}
