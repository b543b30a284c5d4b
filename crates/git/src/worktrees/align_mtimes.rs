//! Alignment of modification times in a new worktree: files that are identical in the main checkout get the
//! times that they have there. Build products copied from the main checkout are then as new as before, and
//! nothing is rebuilt needlessly.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use gix::bstr::BStr;
use gix::index::entry::stat::Time;
use gix::index::entry::{Mode, Stage, Stat};
use gix::index::fs::Metadata;
use gix::index::{Entry, File};
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_OMIT};

use crate::status::status_walk::UNCHECKED_ENTRY_FLAGS;
use crate::{Error, Repo, RepoPath};

/// Maximum size in bytes of files whose content is compared when times are not conclusive.
const MAX_COMPARED_BYTES: u64 = 4 << 20;

/// Sets the modification time of each file in `target_dir` to that of the same file in `main_dir`. Both files
/// must be unchanged and have the same content. No other process may write to `target_dir`. Does nothing if
/// an index is sparse, or if gix would not write the index of `target_dir` back completely.
///
/// # Errors
/// Fails if an index cannot be read, or the new one cannot be written.
pub fn align_mtimes(repo: &Repo, main_dir: &Path, target_dir: &Path) -> Result<(), Error> {
    let index_at = |dir: &Path| -> Result<_, Error> { Ok(repo.worktree_git_dir(dir)?.join("index")) };
    let (main_index, target_index) = (index_at(main_dir)?, index_at(target_dir)?);
    let read = |path: &Path| {
        let options = gix::index::decode::Options::default();
        File::at_or_default(path, repo.gix.object_hash(), false, options)
            .map_err(|e| index_error("read", path, &e))
    };
    let (source_index, mut index) = (read(&main_index)?, read(&target_index)?);
    let is_rewritable = index.link().is_none() && !index.is_sparse() && index.fs_monitor().is_none();
    if !is_rewritable || index.untracked().is_some() || source_index.is_sparse() {
        return Ok(());
    }
    let index_meta = std::fs::metadata(&target_index).map_err(Error::io("inspect", &target_index))?;
    let index_mtime = index_meta.modified().map_err(Error::io("inspect", &target_index))?;
    let mut changed = false;
    for (entry, path) in index.entries_mut_with_paths() {
        changed |= align_mtime(&source_index, entry, path, main_dir, target_dir);
    }
    if !changed {
        return Ok(());
    }
    index
        .write(gix::index::write::Options::default())
        .map_err(|e| index_error("write", &target_index, &e))?;
    // The library creates a new file, with permissions for the owner only.
    std::fs::set_permissions(&target_index, index_meta.permissions())
        .map_err(Error::io("write", &target_index))?;
    // git compares the index's own time with those of files to know which could have changed in the same
    // moment.
    let options = std::fs::File::options().write(true).open(&target_index);
    options
        .and_then(|file| file.set_modified(index_mtime))
        .map_err(Error::io("set the time of", &target_index))
}

fn index_error(verb: &'static str, path: &Path, e: &dyn std::fmt::Display) -> Error {
    Error::io(verb, path)(std::io::Error::other(e.to_string()))
}

/// Sets the modification time of one file in `target_dir` to that of the same file in `main_dir`. Does
/// nothing unless git would call both unchanged and their contents are equal. Returns whether `entry`, the
/// file's index entry, was changed.
fn align_mtime(
    source_index: &File,
    entry: &mut Entry,
    path: &BStr,
    main_dir: &Path,
    target_dir: &Path,
) -> bool {
    let is_file = |entry: &Entry| matches!(entry.mode, Mode::FILE | Mode::FILE_EXECUTABLE);
    let is_checked_by_git = |entry: &Entry| {
        entry.stage() == Stage::Unconflicted && !entry.flags.intersects(UNCHECKED_ENTRY_FLAGS)
    };
    let Some(source_entry) = source_index.entry_by_path(path) else { return false };
    let is_same_blob = source_entry.id == entry.id && source_entry.mode == entry.mode;
    if !is_same_blob || !is_file(entry) || !is_checked_by_git(entry) || !is_checked_by_git(source_entry) {
        return false;
    }
    let path = RepoPath::new(path.to_vec());
    let (source, target) = (path.to_fs_path(main_dir), path.to_fs_path(target_dir));
    let (Some(source_stat), Some(target_stat)) = (git_stat(&source), git_stat(&target)) else { return false };
    let options = gix::index::entry::stat::Options { use_nsec: true, ..Default::default() };
    // Only a file that git itself would call unchanged, on both sides, without reading it.
    let is_source_unchanged =
        source_stat.mtime == source_entry.stat.mtime && source_stat.size == source_entry.stat.size;
    let is_target_unchanged = target_stat.mtime == entry.stat.mtime && target_stat.size == entry.stat.size;
    // If the file and the index have the same time, the time proves nothing about the content.
    let is_racy = || source_entry.stat.is_racy(source_index.timestamp(), options);
    if !is_source_unchanged
        || !is_target_unchanged
        || source_stat.mtime == target_stat.mtime
        || (is_racy() && !are_equal_small_files(&source, &target))
    {
        return false;
    }
    let Ok(meta) = source.symlink_metadata() else { return false };
    let times = Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: meta.mtime(), tv_nsec: meta.mtime_nsec() },
    };
    if rustix::fs::utimensat(CWD, &target, &times, AtFlags::SYMLINK_NOFOLLOW).is_err() {
        return false;
    }
    if let Some(Stat { mtime, ctime, .. }) = git_stat(&target) {
        (entry.stat.mtime, entry.stat.ctime) = (mtime, ctime);
        return true;
    }
    // The file vanished: git checks it again.
    entry.stat.mtime = Time::default();
    true
}

/// Returns whether two files are byte for byte the same, and not large.
fn are_equal_small_files(left: &Path, right: &Path) -> bool {
    let is_small = |path: &Path| path.symlink_metadata().is_ok_and(|meta| meta.len() <= MAX_COMPARED_BYTES);
    let read = |path: &Path| std::fs::read(path).ok();
    is_small(left) && is_small(right) && read(left).is_some_and(|bytes| read(right) == Some(bytes))
}

/// Returns the stat data that git would record for a file; none when it is no regular file.
fn git_stat(path: &Path) -> Option<Stat> {
    let meta = Metadata::from_path_no_follow(path).ok().filter(Metadata::is_file)?;
    Stat::from_fs(&meta).ok()
}
