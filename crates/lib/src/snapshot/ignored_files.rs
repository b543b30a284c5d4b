//! Copies of a worktree's ignored files: git saves none of them, so the copies are files next to a snapshot.

use std::ffi::OsStr;
use std::fs;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use proq_base::copy::copy_file_at;
use proq_git::RepoPath;
use proq_store::base::atomic::create_private_dir;

use crate::lane::Error;

/// Maximum number of files that are copied, however small they are: each costs a stat call at every pass.
const MAX_FILES: usize = 5_000;

/// Ignored files of one worktree that are small enough to be copied.
#[derive(Debug, Default)]
pub(crate) struct IgnoredFiles {
    /// Files and symbolic links, in the order of the scan.
    pub files: Vec<RepoPath>,
    /// Files and folders that exceed the limit on bytes or on the number of files; nothing in them is copied.
    pub over_limit: Vec<RepoPath>,
    /// Hash that is equal for two scans between which no file of `files` changed.
    pub fingerprint: u64,
}

impl IgnoredFiles {
    /// Lists the files at and below `roots` in the worktree at `dir`, up to `byte_limit` bytes in total.
    /// Skips the folder `lanes_dir`, which contains other worktrees, and nested repositories.
    pub fn scan(dir: &Path, roots: &[RepoPath], lanes_dir: &Path, byte_limit: u64) -> IgnoredFiles {
        let mut found = IgnoredFiles::default();
        let (mut remaining_bytes, mut hasher) = (byte_limit, DefaultHasher::new());
        for root in roots {
            let mut collector = FileCollector {
                dir,
                lanes_dir,
                remaining_bytes,
                remaining_files: MAX_FILES - found.files.len(),
                collected_files: Vec::new(),
            };
            if collector.add(root) {
                remaining_bytes = collector.remaining_bytes;
                for (path, state) in collector.collected_files {
                    (&path, state).hash(&mut hasher);
                    found.files.push(path);
                }
            } else {
                found.over_limit.push(root.clone());
            }
        }
        found.fingerprint = hasher.finish();
        found
    }

    /// Copies the files of the worktree at `dir` to the folder `to`, which is created if there is anything to
    /// copy. A file that is unchanged (by mode, size and time) since an earlier call copied it to
    /// `previous_dir` becomes a hard link to that copy. Returns the files that were copied; a file that was
    /// written to at the same time is not.
    ///
    /// # Errors
    /// Fails when a folder below `to` cannot be created.
    pub(crate) fn copy_to(
        &self,
        dir: &Path,
        to: &Path,
        previous_dir: Option<&Path>,
    ) -> Result<Vec<RepoPath>, Error> {
        let mut copied = Vec::new();
        if !self.files.is_empty() {
            create_private_dir(to)?;
        }
        for path in &self.files {
            let (from, target) = (path.to_fs_path(dir), path.to_fs_path(to));
            if let Some(folder) = target.parent() {
                fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
            }
            let unchanged = previous_dir
                .map(|before| path.to_fs_path(before))
                .filter(|kept| is_unchanged_copy(kept, &from));
            let linked = unchanged.is_some_and(|kept| fs::hard_link(kept, &target).is_ok());
            if linked || copy_file_or_link(&from, &target) {
                copied.push(path.clone());
            }
        }
        Ok(copied)
    }
}

/// Copies `files` from the folder `from` to the worktree at `dir`, where their paths are free. Returns the
/// files that were not restored because another file is at the path, or because a parent folder is a symbolic
/// link.
///
/// # Errors
/// Fails when a folder cannot be created, or a file cannot be written.
pub(crate) fn restore_ignored(dir: &Path, from: &Path, files: &[RepoPath]) -> Result<Vec<RepoPath>, Error> {
    let mut blocked = Vec::new();
    for path in files {
        let (source, target) = (path.to_fs_path(from), path.to_fs_path(dir));
        let is_link = |up: RepoPath| up.to_fs_path(dir).symlink_metadata().is_ok_and(|meta| !meta.is_dir());
        if path.parents().any(is_link) {
            blocked.push(path.clone());
        } else if target.symlink_metadata().is_ok() {
            if !is_unchanged_copy(&source, &target) {
                blocked.push(path.clone());
            }
        } else {
            if let Some(folder) = target.parent() {
                fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
            }
            if !copy_file_or_link(&source, &target) {
                return Err(Error::io("write", &target)(std::io::ErrorKind::Other.into()));
            }
        }
    }
    Ok(blocked)
}

/// Collects files within limits.
struct FileCollector<'a> {
    dir: &'a Path,
    lanes_dir: &'a Path,
    /// Bytes that may still be added.
    remaining_bytes: u64,
    /// Number of files that may still be added.
    remaining_files: usize,
    /// Files added so far, each with its state.
    collected_files: Vec<(RepoPath, FileState)>,
}

/// Result of `lstat` for a file: mode, size, inode, and the times of its content and of its last change with
/// nanoseconds.
type FileState = (u32, u64, u64, (i64, i64), (i64, i64));

impl FileCollector<'_> {
    /// Adds a file, or everything in a folder. Returns false when that exceeds a limit.
    fn add(&mut self, path: &RepoPath) -> bool {
        let file = path.to_fs_path(self.dir);
        let Ok(meta) = file.symlink_metadata() else { return true };
        if meta.is_dir() {
            if file == self.lanes_dir || file.join(".git").symlink_metadata().is_ok() {
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
        if self.remaining_files == 0 || meta.size() > self.remaining_bytes {
            return false;
        }
        (self.remaining_files, self.remaining_bytes) =
            (self.remaining_files - 1, self.remaining_bytes - meta.size());
        let (content, change) = ((meta.mtime(), meta.mtime_nsec()), (meta.ctime(), meta.ctime_nsec()));
        self.collected_files.push((path.clone(), (meta.mode(), meta.size(), meta.ino(), content, change)));
        true
    }
}

/// Returns whether a copy still has the mode, size and time of the original file.
fn is_unchanged_copy(copy: &Path, file: &Path) -> bool {
    let state = |path: &Path| {
        let meta = path.symlink_metadata().ok()?;
        let target = if meta.is_symlink() { fs::read_link(path).ok() } else { None };
        Some((meta.mode(), meta.size(), (meta.mtime(), meta.mtime_nsec()), target))
    };
    match (state(copy), state(file)) {
        // A symbolic link's own time is not copied.
        (Some((_, _, _, Some(copy))), Some((_, _, _, Some(file)))) => copy == file,
        (copy, file) => copy.is_some() && copy == file,
    }
}

/// Copies a file or symbolic link. Returns false when it could not be read completely or not be written.
fn copy_file_or_link(from: &Path, to: &Path) -> bool {
    if let Ok(target) = fs::read_link(from) {
        return symlink(target, to).is_ok();
    }
    let (Some(source), Some(target)) = (OpenParent::open(from), OpenParent::open(to)) else { return false };
    let (from, to) = ((source.dir.as_fd(), source.file_name), (target.dir.as_fd(), target.file_name));
    copy_file_at(from, to, &mut |_| true).is_ok()
}

/// The open parent folder of a file, and the file's name in it.
struct OpenParent<'a> {
    dir: File,
    file_name: &'a OsStr,
}

impl<'a> OpenParent<'a> {
    /// Opens the parent folder of `path`; none when that fails or there is no parent.
    fn open(path: &'a Path) -> Option<OpenParent<'a>> {
        Some(OpenParent { dir: File::open(path.parent()?).ok()?, file_name: path.file_name()? })
    }
}
