//! Owns copies of a worktree's ignored files: git keeps nothing of them, so they lie as files beside a snapshot.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use super::Error;
use crate::copy::copy_file_at;
use crate::git::RepoPath;
use crate::store::make_private;

/// More files than this are not copied, however small they are: each costs a look at every pass.
const MAX_FILES: usize = 5_000;

/// The ignored files of one worktree that are small enough to be copied.
#[derive(Debug, Default)]
pub(super) struct IgnoredFiles {
    /// Files and links, in the order in which they were found.
    pub(super) files: Vec<RepoPath>,
    /// Files and folders that would have gone beyond the limits; nothing in them is copied.
    pub(super) too_large: Vec<RepoPath>,
    /// Equal for two readings between which no file of `files` was changed.
    pub(super) value: u64,
}

impl IgnoredFiles {
    /// Lists the files at and below `tops` in the worktree at `dir`. `limit` is in bytes. The folder `lanes`, which holds other
    /// worktrees, and repositories of their own are passed over.
    pub(super) fn find(dir: &Path, tops: &[RepoPath], lanes: &Path, limit: u64) -> IgnoredFiles {
        let mut found = IgnoredFiles::default();
        let (mut left, mut hasher) = (limit, DefaultHasher::new());
        for top in tops {
            let mut files = Files { dir, lanes, left, room: MAX_FILES - found.files.len(), all: Vec::new() };
            if files.add(top) {
                left = files.left;
                for (path, state) in files.all {
                    (&path, state).hash(&mut hasher);
                    found.files.push(path);
                }
            } else {
                found.too_large.push(top.clone());
            }
        }
        found.value = hasher.finish();
        found
    }

    /// Copies the files of the worktree at `dir` to below `to`, which is made if there is anything to copy. What lies unchanged
    /// (by mode, size and time) below `before`, where an earlier call has copied it to, gets a second name instead. Returns
    /// the files that are there; one that was written to at the same time is not.
    ///
    /// # Errors
    /// When a folder below `to` cannot be made.
    pub(super) fn copy(&self, dir: &Path, to: &Path, before: Option<&Path>) -> Result<Vec<RepoPath>, Error> {
        let mut copied = Vec::new();
        if !self.files.is_empty() {
            make_private(to)?;
        }
        for path in &self.files {
            let (from, target) = (path.under(dir), path.under(to));
            if let Some(folder) = target.parent() {
                fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
            }
            let kept = before.map(|before| path.under(before)).filter(|kept| is_same(kept, &from));
            let linked = kept.is_some_and(|kept| fs::hard_link(kept, &target).is_ok());
            if linked || copy_one(&from, &target) {
                copied.push(path.clone());
            }
        }
        Ok(copied)
    }
}

/// Copies `files` from below `from` to the worktree at `dir`, where nothing stands in their places. Returns those that were
/// not brought because something else stands there, or because a folder on the way is a link.
///
/// # Errors
/// When a folder cannot be made, or a file not be written.
pub(super) fn give_back(dir: &Path, from: &Path, files: &[RepoPath]) -> Result<Vec<RepoPath>, Error> {
    let mut in_the_way = Vec::new();
    for path in files {
        let (source, target) = (path.under(from), path.under(dir));
        let is_link = |up: RepoPath| up.under(dir).symlink_metadata().is_ok_and(|meta| !meta.is_dir());
        if path.parents().any(is_link) {
            in_the_way.push(path.clone());
        } else if target.symlink_metadata().is_ok() {
            if !is_same(&source, &target) {
                in_the_way.push(path.clone());
            }
        } else {
            if let Some(folder) = target.parent() {
                fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
            }
            if !copy_one(&source, &target) {
                return Err(Error::io("write", &target)(std::io::ErrorKind::Other.into()));
            }
        }
    }
    Ok(in_the_way)
}

/// A list of files that is made within limits.
struct Files<'a> {
    dir: &'a Path,
    lanes: &'a Path,
    /// Bytes that may still be added.
    left: u64,
    /// Files that may still be added.
    room: usize,
    all: Vec<(RepoPath, State)>,
}

/// What `lstat` answers of a file: mode, size, inode, time of its content and of its last change in nanoseconds.
type State = (u32, u64, u64, (i64, i64), (i64, i64));

impl Files<'_> {
    /// Adds a file, or all that is in a folder. False when that goes beyond a limit.
    fn add(&mut self, path: &RepoPath) -> bool {
        let file = path.under(self.dir);
        let Ok(meta) = file.symlink_metadata() else { return true };
        if meta.is_dir() {
            if file == self.lanes || file.join(".git").symlink_metadata().is_ok() {
                return true;
            }
            let mut names: Vec<_> =
                fs::read_dir(&file).into_iter().flatten().flatten().map(|entry| entry.file_name()).collect();
            names.sort_unstable();
            return names.iter().all(|name| self.add(&path.join(name.as_bytes())));
        }
        if !meta.is_file() && !meta.is_symlink() {
            return true;
        }
        if self.room == 0 || meta.size() > self.left {
            return false;
        }
        (self.room, self.left) = (self.room - 1, self.left - meta.size());
        let (content, change) = ((meta.mtime(), meta.mtime_nsec()), (meta.ctime(), meta.ctime_nsec()));
        self.all.push((path.clone(), (meta.mode(), meta.size(), meta.ino(), content, change)));
        true
    }
}

/// Whether a copy has the mode, size and time of the file that it was made of.
fn is_same(copy: &Path, file: &Path) -> bool {
    let state = |path: &Path| {
        let meta = path.symlink_metadata().ok()?;
        let target = if meta.is_symlink() { fs::read_link(path).ok() } else { None };
        Some((meta.mode(), meta.size(), (meta.mtime(), meta.mtime_nsec()), target))
    };
    match (state(copy), state(file)) {
        // A link's own time is not copied.
        (Some((_, _, _, Some(copy))), Some((_, _, _, Some(file)))) => copy == file,
        (copy, file) => copy.is_some() && copy == file,
    }
}

/// Copies a file or link. False when it could not be read whole, or not be written.
fn copy_one(from: &Path, to: &Path) -> bool {
    if let Ok(target) = fs::read_link(from) {
        return symlink(target, to).is_ok();
    }
    let (Some(source), Some(target)) = (Folder::of(from), Folder::of(to)) else { return false };
    let (from, to) = ((source.open.as_fd(), source.name), (target.open.as_fd(), target.name));
    copy_file_at(from, to, &mut |_| true).is_ok()
}

/// The open folder that a file lies in, and the file's name there.
struct Folder<'a> {
    open: File,
    name: &'a OsStr,
}

impl<'a> Folder<'a> {
    fn of(path: &'a Path) -> Option<Folder<'a>> {
        Some(Folder { open: File::open(path.parent()?).ok()?, name: path.file_name()? })
    }
}
