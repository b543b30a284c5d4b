//! Copying of files and folders from one worktree to another while other processes may write to the first. It
//! replaces nothing, follows no symbolic link on either end, and names everything that it cannot copy.

use std::ffi::{CStr, OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::time::{Duration, Instant};

use proq_base::copy::{
    CopyError, EntryAt, FileStamp, copy_file_at, copy_link_at, set_times_at, wait_for_mtime_tick,
};
use proq_base::diagnostics::Listener;
use proq_base::full_disk::WriteLimit;
use proq_git::RepoPath;
use proq_git::status::included_files::IncludedPath;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fchmod, mkdirat, openat, statat};
use rustix::io::Errno;

use crate::lane::Error;

/// Flags for opening a folder to read its entries, never through a symbolic link.
const OPEN_FOLDER_FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Maximum depth of a copied folder. Each level takes two open file descriptors while it is copied.
const MAX_DEPTH: usize = 200;

/// Time before the first progress line.
const PROGRESS_DELAY: Duration = Duration::from_millis(500);

/// Interval between progress lines.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(200);

/// Copied files and skipped paths.
#[derive(Debug, Default)]
pub(crate) struct CopyResult {
    /// Copied files, each with its stamp at that moment.
    pub files: Vec<(RepoPath, FileStamp)>,
    /// Skipped paths, each with a short reason.
    pub skipped: Vec<(RepoPath, String)>,
}

/// Reason why an entry was not copied.
enum CopyFailure {
    /// The entry changes or disappears concurrently; a second attempt may succeed.
    Changed,
    /// The entry is skipped, for this reason.
    Skip(String),
    /// The entire copy ends with this error.
    Abort(Error),
}

/// Error of opening an entry's parent folder: in the main checkout, or in the lane.
enum ParentError {
    InSource(Errno),
    InTarget(Errno),
}

impl CopyFailure {
    /// Returns the failure of an entry that is skipped for this reason.
    fn skip(reason: &str) -> CopyFailure {
        CopyFailure::Skip(reason.to_owned())
    }
}

impl From<CopyError> for CopyFailure {
    fn from(failed: CopyError) -> CopyFailure {
        match failed {
            CopyError::SourceChanged => CopyFailure::Changed,
            CopyError::Canceled => CopyFailure::Abort(proq_base::interrupt::Interrupted::current().into()),
            CopyError::Io(e) if is_disk_full(&e) => {
                CopyFailure::Abort(Error::io("copy to the lane", Path::new("."))(e))
            }
            other => CopyFailure::Skip(other.to_string()),
        }
    }
}

/// Copier of included files from the main checkout to a lane.
pub(crate) struct Copier<'a> {
    listener: &'a Listener,
    /// Predicate on path and "is a folder" for entries that are never copied, even inside a copied folder.
    is_excluded: &'a dyn Fn(&RepoPath, bool) -> bool,
    /// Open top folder of the main checkout.
    source_root: OwnedFd,
    /// Open top folder of the lane.
    target_root: OwnedFd,
    result: CopyResult,
    /// Paths that were written to while they were copied, for a second attempt.
    retry_paths: Vec<RepoPath>,
    started_at: Instant,
    last_progress: Option<Instant>,
    /// Number of bytes copied so far.
    copied_bytes: u64,
}

impl<'a> Copier<'a> {
    /// Creates a copier from the top folder `from` to the top folder `to`.
    pub fn new(
        from: &Path,
        to: &Path,
        listener: &'a Listener,
        is_excluded: &'a dyn Fn(&RepoPath, bool) -> bool,
    ) -> Result<Copier<'a>, Error> {
        let open = |dir: &Path| {
            let opened = rustix::fs::open(dir, OPEN_FOLDER_FLAGS, Mode::empty());
            opened.map_err(|e| Error::io("open", dir)(e.into()))
        };
        Ok(Copier {
            listener,
            is_excluded,
            source_root: open(from)?,
            target_root: open(to)?,
            result: CopyResult::default(),
            retry_paths: Vec::new(),
            started_at: Instant::now(),
            last_progress: None,
            copied_bytes: 0,
        })
    }

    /// Copies each path to the same path of the target. Paths that change concurrently get a second attempt
    /// at the end.
    ///
    /// # Errors
    /// Fails if the user interrupts it or the disk is full. The paths copied until then stay.
    pub fn copy(mut self, all: &[IncludedPath]) -> Result<CopyResult, Error> {
        for included in all {
            self.copy_path(&included.path)?;
        }
        let retries = std::mem::take(&mut self.retry_paths);
        if !retries.is_empty() {
            wait_for_mtime_tick();
        }
        for path in retries {
            self.copy_path(&path)?;
        }
        for path in std::mem::take(&mut self.retry_paths) {
            self.record_skipped(path, "it changes while being copied");
        }
        if self.last_progress.is_some() {
            self.listener.progress("");
        }
        Ok(self.result)
    }

    /// Records a path as skipped, with the reason.
    fn record_skipped(&mut self, path: RepoPath, reason: impl Into<String>) {
        self.result.skipped.push((path, reason.into()));
    }

    /// Copies a file, a symbolic link or a folder, and creates its missing parent folders.
    fn copy_path(&mut self, path: &RepoPath) -> Result<(), Error> {
        let name = file_name(path);
        let parent = path.parents().last();
        let folders = match &parent {
            None => self.clone_roots().map_err(ParentError::InSource),
            Some(parent) => self.open_parent(parent),
        };
        match folders {
            Ok((from, to)) => {
                self.copy_entry(&from, &to, path, &name, 0)?;
                // A second attempt changes the parent's times long after they were copied, so they are copied
                // again.
                if let Some(parent) = &parent
                    && let Ok(stat) = rustix::fs::fstat(&from)
                {
                    self.copy_folder_times(parent, &stat);
                }
            }
            Err(ParentError::InTarget(e)) if is_disk_full(&e.into()) => {
                return Err(Error::io("copy to the lane", &path.to_fs_path(Path::new("")))(e.into()));
            }
            Err(ParentError::InSource(e)) => self.record_skipped(path.clone(), describe_errno(e)),
            Err(ParentError::InTarget(Errno::NOTDIR | Errno::LOOP)) => {
                self.record_skipped(path.clone(), "the lane has something else in place of its folder");
            }
            Err(ParentError::InTarget(e)) => {
                self.record_skipped(path.clone(), std::io::Error::from(e).to_string());
            }
        }
        Ok(())
    }

    /// Duplicates the descriptors of the two top folders: main checkout, then lane.
    fn clone_roots(&self) -> Result<(OwnedFd, OwnedFd), Errno> {
        let duplicate = |dir: &OwnedFd| rustix::io::fcntl_dupfd_cloexec(dir, 0);
        Ok((duplicate(&self.source_root)?, duplicate(&self.target_root)?))
    }

    /// Sets the times of a copied folder to those in `stat`; errors are ignored.
    fn copy_folder_times(&self, folder: &RepoPath, stat: &Stat) {
        if let Ok((_, to)) = self.clone_roots()
            && let Ok(to) = openat(&to, as_os_path(folder), OPEN_FOLDER_FLAGS, Mode::empty())
        {
            set_times_at(stat, (to.as_fd(), OsStr::new(".")));
        }
    }

    /// Opens a folder in both worktrees, name by name, and creates it in the target if it is missing.
    fn open_parent(&self, folder: &RepoPath) -> Result<(OwnedFd, OwnedFd), ParentError> {
        let (mut from, mut to) = self.clone_roots().map_err(ParentError::InSource)?;
        for name in folder.as_bytes().split(|b| *b == b'/').map(OsStr::from_bytes) {
            from = openat(&from, name, OPEN_FOLDER_FLAGS, Mode::empty()).map_err(ParentError::InSource)?;
            to = open_or_create_folder(&to, name).map_err(ParentError::InTarget)?;
        }
        Ok((from, to))
    }

    /// Copies one entry of an open folder, and records it as skipped or for a second attempt if that fails.
    fn copy_entry(
        &mut self,
        from: &OwnedFd,
        to: &OwnedFd,
        path: &RepoPath,
        name: &OsStr,
        depth: usize,
    ) -> Result<(), Error> {
        proq_base::interrupt::require_no_signal()?;
        match self.try_copy_entry(from, to, path, name, depth) {
            Ok(()) => {}
            Err(CopyFailure::Changed) => self.retry_paths.push(path.clone()),
            Err(CopyFailure::Skip(reason)) => self.record_skipped(path.clone(), reason),
            Err(CopyFailure::Abort(Error::Io { verb, source, .. })) => {
                return Err(Error::Io { verb, path: path.to_fs_path(Path::new("")), source });
            }
            Err(CopyFailure::Abort(e)) => return Err(e),
        }
        Ok(())
    }

    /// Copies the entry `name` of one open folder to another: a file, a symbolic link or a folder. `path` is
    /// its path in the checkout.
    fn try_copy_entry(
        &mut self,
        from: &OwnedFd,
        to: &OwnedFd,
        path: &RepoPath,
        name: &OsStr,
        depth: usize,
    ) -> Result<(), CopyFailure> {
        let stat = statat(from, name, AtFlags::SYMLINK_NOFOLLOW).map_err(|e| match e {
            Errno::NOENT => CopyFailure::Changed,
            e => CopyFailure::Skip(describe_errno(e)),
        })?;
        let (source, target): (EntryAt<'_>, EntryAt<'_>) = ((from.as_fd(), name), (to.as_fd(), name));
        let outcome = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {
                copy_file_at(source, target, &mut |bytes| self.report_progress(path, bytes))
                    .map(|stamp| self.result.files.push((path.clone(), stamp)))
            }
            FileType::Symlink => copy_link_at(source, target),
            FileType::Directory => return self.copy_folder((from, to), path, name, &stat, depth),
            kind => return Err(CopyFailure::skip(describe_kind(kind))),
        };
        match outcome {
            // An existing entry came from the checkout, or is the lane's own.
            Ok(()) | Err(CopyError::TargetExists) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    /// Copies a folder with its contents, at most [`MAX_DEPTH`] levels deep, and then its times.
    fn copy_folder(
        &mut self,
        (from, to): (&OwnedFd, &OwnedFd),
        path: &RepoPath,
        name: &OsStr,
        stat: &Stat,
        depth: usize,
    ) -> Result<(), CopyFailure> {
        if depth == MAX_DEPTH {
            return Err(CopyFailure::skip("it is nested too deeply"));
        }
        let source_dir = openat(from, name, OPEN_FOLDER_FLAGS, Mode::empty())
            .map_err(|e| CopyFailure::Skip(describe_errno(e)))?;
        let is_new = statat(to, name, AtFlags::SYMLINK_NOFOLLOW).is_err();
        let target_dir = open_or_create_folder(to, name).map_err(|e| match e {
            Errno::NOTDIR | Errno::LOOP => CopyFailure::skip("the lane has something else in its place"),
            e => CopyError::Io(e.into()).into(),
        })?;
        let names = read_names(&source_dir).map_err(|e| CopyFailure::Skip(describe_errno(e)))?;
        for name in names {
            let child = path.join(name.as_bytes());
            let stat = statat(&source_dir, &name, AtFlags::SYMLINK_NOFOLLOW);
            let is_folder = stat.is_ok_and(|s| FileType::from_raw_mode(s.st_mode) == FileType::Directory);
            if !(self.is_excluded)(&child, is_folder) {
                self.copy_entry(&source_dir, &target_dir, &child, &name, depth + 1)
                    .map_err(CopyFailure::Abort)?;
            }
        }
        // A folder that the checkout created keeps its mode.
        if is_new {
            let _kept = fchmod(&target_dir, Mode::from_raw_mode(stat.st_mode));
            set_times_at(stat, (to.as_fd(), name));
        }
        Ok(())
    }

    /// Counts copied bytes and prints progress at intervals. Returns whether to continue.
    fn report_progress(&mut self, path: &RepoPath, bytes: u64) -> bool {
        self.copied_bytes += bytes;
        if self.started_at.elapsed() > PROGRESS_DELAY
            && self.last_progress.is_none_or(|last| last.elapsed() > PROGRESS_INTERVAL)
        {
            self.last_progress = Some(Instant::now());
            let (megabytes, files) = (self.copied_bytes / 1_000_000, self.result.files.len());
            self.listener.progress(format!("copying to the lane: {megabytes} MB, {files} files: {path}"));
        }
        proq_base::interrupt::require_no_signal().is_ok()
    }
}

/// Opens a folder, and creates it first if the name is free.
fn open_or_create_folder(parent: &OwnedFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    match mkdirat(parent, name, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => openat(parent, name, OPEN_FOLDER_FLAGS, Mode::empty()),
        Err(e) => Err(e),
    }
}

/// Reads all names in a folder before any of them is processed.
fn read_names(folder: &OwnedFd) -> Result<Vec<OsString>, Errno> {
    let owned = |name: &CStr| OsString::from_vec(name.to_bytes().to_vec());
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            names.push(owned(entry.file_name()));
        }
    }
    Ok(names)
}

/// Returns the last component of a path.
fn file_name(path: &RepoPath) -> OsString {
    let name = path.as_bytes().rsplit(|b| *b == b'/').next().unwrap_or_default();
    OsStr::from_bytes(name).to_owned()
}

fn as_os_path(path: &RepoPath) -> &OsStr {
    OsStr::from_bytes(path.as_bytes())
}

/// Returns whether no file can be written any more: disk or quota is full, or the file system is read-only.
fn is_disk_full(e: &std::io::Error) -> bool {
    WriteLimit::of_error(e).is_some() || e.kind() == std::io::ErrorKind::ReadOnlyFilesystem
}

/// Returns the reason why an entry was skipped, as a clause.
fn describe_errno(e: Errno) -> String {
    match e {
        Errno::ACCESS | Errno::PERM => "permission denied".to_owned(),
        Errno::NOENT | Errno::NOTDIR | Errno::LOOP => "it changes while being copied".to_owned(),
        e => std::io::Error::from(e).to_string(),
    }
}

/// Returns the type of a special file as a noun phrase.
fn describe_kind(kind: FileType) -> &'static str {
    match kind {
        FileType::Fifo => "a named pipe",
        FileType::Socket => "a socket",
        FileType::BlockDevice | FileType::CharacterDevice => "a device",
        _ => "no file",
    }
}
