//! Owns giving the files of a new worktree the times that the very same files have in the main checkout: what was built there and
//! is copied here is then as new as it was, and nothing is built again that need not be.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use gix::bstr::BStr;
use gix::index::entry::{Mode, Stage, Stat, stat::Time};
use gix::index::fs::Metadata;
use gix::index::{Entry, File};
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_OMIT};

use super::clean::UNSEEN;
use super::{Error, Repo, RepoPath};

/// Files up to this size are compared by their content where times do not tell.
const SMALL: u64 = 4 << 20;

/// Gives each file that both worktrees have, unchanged and of the same content, the time that it has in `main`. Nobody is at work
/// in `to`. Where its index is of a kind that the library does not write back whole, nothing is done.
///
/// # Errors
/// When an index cannot be read, or the new one cannot be written.
pub(crate) fn same_times(repo: &Repo, main: &Path, to: &Path) -> Result<(), Error> {
    let index_at = |dir: &Path| -> Result<_, Error> { Ok(repo.git_dir_of(dir)?.join("index")) };
    let (theirs, ours) = (index_at(main)?, index_at(to)?);
    let read = |path: &Path| {
        let options = gix::index::decode::Options::default();
        File::at_or_default(path, repo.gix.object_hash(), false, options)
            .map_err(|e| failed("read", path, &e))
    };
    let (from, mut index) = (read(&theirs)?, read(&ours)?);
    let plain = index.link().is_none() && !index.is_sparse() && index.fs_monitor().is_none();
    if !plain || index.untracked().is_some() || from.is_sparse() {
        return Ok(());
    }
    let before = std::fs::metadata(&ours).map_err(Error::io("look at", &ours))?;
    let written = before.modified().map_err(Error::io("look at", &ours))?;
    let mut changed = false;
    for (entry, path) in index.entries_mut_with_paths() {
        changed |= align(&from, entry, path, main, to);
    }
    if !changed {
        return Ok(());
    }
    index.write(gix::index::write::Options::default()).map_err(|e| failed("write", &ours, &e))?;
    // The library makes a new file, for nobody else.
    std::fs::set_permissions(&ours, before.permissions()).map_err(Error::io("write", &ours))?;
    // git compares the index's own time with those of files to know which could have changed in the same moment.
    let options = std::fs::File::options().write(true).open(&ours);
    options.and_then(|file| file.set_modified(written)).map_err(Error::io("set the time of", &ours))
}

fn failed(verb: &'static str, path: &Path, e: &dyn std::fmt::Display) -> Error {
    Error::io(verb, path)(std::io::Error::other(e.to_string()))
}

/// Gives one file its time. Whether it has got another one.
fn align(from: &File, entry: &mut Entry, path: &BStr, main: &Path, to: &Path) -> bool {
    let is_file = |entry: &Entry| matches!(entry.mode, Mode::FILE | Mode::FILE_EXECUTABLE);
    let seen = |entry: &Entry| entry.stage() == Stage::Unconflicted && !entry.flags.intersects(UNSEEN);
    let Some(theirs) = from.entry_by_path(path) else { return false };
    let same = theirs.id == entry.id && theirs.mode == entry.mode;
    if !same || !is_file(entry) || !seen(entry) || !seen(theirs) {
        return false;
    }
    let path = RepoPath::new(path.to_vec());
    let (source, target) = (path.under(main), path.under(to));
    let (Some(there), Some(here)) = (stat(&source), stat(&target)) else { return false };
    let options = gix::index::entry::stat::Options { use_nsec: true, ..Default::default() };
    // Only what git itself would call unchanged, on both sides, without reading it.
    let as_known = there.mtime == theirs.stat.mtime && there.size == theirs.stat.size;
    let untouched = here.mtime == entry.stat.mtime && here.size == entry.stat.size;
    // Where the file and the index are of one moment, that says nothing of the content.
    let is_racy = || theirs.stat.is_racy(from.timestamp(), options);
    if !as_known || !untouched || there.mtime == here.mtime || (is_racy() && !are_equal(&source, &target)) {
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
    if let Some(Stat { mtime, ctime, .. }) = stat(&target) {
        (entry.stat.mtime, entry.stat.ctime) = (mtime, ctime);
        return true;
    }
    // Gone under our hands: git looks at it anew.
    entry.stat.mtime = Time::default();
    true
}

/// Whether two files are byte for byte the same, and not large.
fn are_equal(one: &Path, other: &Path) -> bool {
    let small = |path: &Path| path.symlink_metadata().is_ok_and(|meta| meta.len() <= SMALL);
    let read = |path: &Path| std::fs::read(path).ok();
    small(one) && small(other) && read(one).is_some_and(|bytes| read(other) == Some(bytes))
}

/// What git would note of a file.
fn stat(path: &Path) -> Option<Stat> {
    let meta = Metadata::from_path_no_follow(path).ok().filter(Metadata::is_file)?;
    Stat::from_fs(&meta).ok()
}
