//! Creation of the files of index entries in new worktrees: copies from a checkout whose file is proven to
//! match the entry, else contents from the repository's objects.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Result, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use gix::index::Entry;
use gix::index::entry::stat::Options;
use gix::index::entry::{Mode, Stat};
use gix::objs::{Find, FindHeader, Kind};
use proq_base::copy::{CopyError, copy_content, copy_prefix};
use rustix::fs::{
    AtFlags, OFlags, Timespec, Timestamps, UTIME_OMIT, fstat, futimens, mkdirat, openat, readlinkat, statat,
    symlinkat, unlinkat, utimensat,
};
use rustix::io::Errno;

use super::blob_sizes::{BlobRecord, BlobSizes, blob_record};
use super::conversions::ConversionRules;
use crate::RepoPath;
use crate::index::entry_stat::{STAT_BY_SECOND, index_stat};
use crate::index::no_conversion::is_portable_path;
use crate::status::status_walk::{OPEN_FOLDER_FLAGS, open_folder};

/// Largest file copied byte by byte; a longer one may have holes.
const MAX_PLAIN_COPY_BYTES: u64 = 256 << 10;
/// Largest blob read into memory; git, which can stream, creates files of larger ones.
const MAX_BLOB_BYTES: u64 = 32 << 20;

/// Inputs and counters of populating new worktrees, shared by all threads.
pub(crate) struct PopulateJob<'a> {
    /// Index with the entries of the files.
    pub index: &'a gix::index::File,
    /// Checkout that files are copied from; `None` when there is no other.
    pub source: Option<&'a Path>,
    /// Top folders of the new worktrees.
    pub targets: &'a [&'a Path],
    /// Rules for paths that git may write in another form.
    pub(crate) conversions: &'a ConversionRules,
    /// Cache of blobs known to be as long as their files.
    pub sizes: &'a BlobSizes,
    /// Blobs newly verified to be as long as their files.
    pub(crate) verified_sizes: Mutex<Vec<BlobRecord>>,
    /// Maximum number of files created from objects.
    pub(crate) max_written: usize,
    /// Number of files created from objects. `copied` is the number of files copied from the source.
    pub written: AtomicUsize,
    pub copied: AtomicUsize,
}

/// State of one thread that populates worktrees.
pub(crate) struct PopulateWorker<'a> {
    job: &'a PopulateJob<'a>,
    objects: gix::odb::Handle,
    /// Path of the last entry's folder, with a trailing slash.
    folder_path: Vec<u8>,
    /// Open folders from the top down to `folder_path`.
    folders: Vec<OpenFolder>,
    buffer: Vec<u8>,
    verified_sizes: Vec<BlobRecord>,
    /// Whether files are checked before copying as well as afterwards, because one did not match its entry.
    checks_before_copy: bool,
}

/// Folder that is open in the source, if it exists there, and in each target once something is created in it.
struct OpenFolder {
    /// Length of the folder's path, with the slash.
    folder_path_len: usize,
    /// Open folder of the source; `None` if the source lacks it.
    source: Option<OwnedFd>,
    /// Open folder of each new worktree; empty until something is created in the folder.
    targets: Vec<OwnedFd>,
}

impl<'a> PopulateWorker<'a> {
    /// Opens the top folders of source and targets.
    ///
    /// # Errors
    /// Fails when a new worktree cannot be opened.
    pub fn new(job: &'a PopulateJob<'a>, objects: gix::odb::Handle) -> Result<PopulateWorker<'a>> {
        let open_top = |dir: &&Path| rustix::fs::open(*dir, OPEN_FOLDER_FLAGS, rustix::fs::Mode::empty());
        let targets = job.targets.iter().map(open_top).collect::<rustix::io::Result<_>>()?;
        let top = OpenFolder {
            folder_path_len: 0,
            source: job.source.as_ref().and_then(|dir| open_top(dir).ok()),
            targets,
        };
        Ok(PopulateWorker {
            job,
            objects,
            folder_path: Vec::new(),
            folders: vec![top],
            buffer: Vec::new(),
            verified_sizes: Vec::new(),
            checks_before_copy: false,
        })
    }

    /// Adds the sizes that this thread has verified to the job.
    pub(crate) fn save_verified_sizes(self) {
        if let Ok(mut shared_sizes) = self.job.verified_sizes.lock() {
            shared_sizes.extend(self.verified_sizes);
        }
    }

    /// Creates the file of an entry in each target and returns its stat data there. `None`, with nothing
    /// created, when the entry is left to git.
    ///
    /// # Errors
    /// Fails when the file cannot be created or its path is occupied.
    pub(crate) fn create_entry(&mut self, entry: &Entry) -> Result<Option<Vec<Stat>>> {
        let path: &[u8] = entry.path(self.job.index);
        // Create no folder for paths that a sparse checkout leaves out.
        let is_allowed =
            entry.stat != Stat::default() || self.job.written.load(Relaxed) < self.job.max_written;
        if !is_allowed || self.job.conversions.may_convert(path) {
            return Ok(None);
        }
        self.enter_folder(path);
        let name = OsStr::from_bytes(&path[self.folder_path.len()..]);
        match entry.mode {
            Mode::FILE | Mode::FILE_EXECUTABLE => self.create_file(entry, name),
            Mode::SYMLINK => self.create_symlink(entry, name),
            Mode::COMMIT => self.create_submodule_folder(name).map(Some),
            _ => Ok(None),
        }
    }

    /// Makes the folder of a path the current folder, and opens it in the source if it exists there.
    fn enter_folder(&mut self, path: &[u8]) {
        while !path.starts_with(&self.folder_path) {
            self.folders.pop();
            self.folder_path.truncate(self.folders.last().map_or(0, |folder| folder.folder_path_len));
        }
        while let Some(end) = path[self.folder_path.len()..].iter().position(|b| *b == b'/') {
            let name = OsStr::from_bytes(&path[self.folder_path.len()..][..end]);
            let source = self.folders.last().and_then(|last| open_folder(last.source.as_ref()?, name).ok());
            self.folder_path.extend_from_slice(&path[self.folder_path.len()..][..=end]);
            self.folders.push(OpenFolder {
                folder_path_len: self.folder_path.len(),
                source,
                targets: Vec::new(),
            });
        }
    }

    /// Returns the current folder in each target, and creates it where it is missing.
    fn target_folders(&mut self) -> Result<&[OwnedFd]> {
        for depth in 1..self.folders.len() {
            let (parents, children) = self.folders.split_at_mut(depth);
            if let (Some(parent), Some(folder)) = (parents.last(), children.first_mut())
                && folder.targets.is_empty()
            {
                let name =
                    OsStr::from_bytes(&self.folder_path[parent.folder_path_len..folder.folder_path_len - 1]);
                folder.targets = parent
                    .targets
                    .iter()
                    .map(|target| open_or_create_folder(target, name))
                    .collect::<Result<_>>()?;
            }
        }
        Ok(self.folders.last().map_or(&[], |folder| &folder.targets))
    }

    /// Returns the current folder in the source if the entry has stat data that its file may match.
    fn source_folder(&self, entry: &Entry) -> Option<&OwnedFd> {
        self.folders.last()?.source.as_ref().filter(|_| entry.stat != Stat::default())
    }

    fn create_file(&mut self, entry: &Entry, name: &OsStr) -> Result<Option<Vec<Stat>>> {
        if let Some(source) = self.open_source_file(entry, name) {
            if let Some(stats) = self.copy_to_targets(entry, name, &source)? {
                self.count_file(false);
                return Ok(Some(stats));
            }
            self.checks_before_copy = true;
        }
        if !self.read_blob(entry) {
            return Ok(None);
        }
        let buffer = std::mem::take(&mut self.buffer);
        let mut stats = Vec::with_capacity(self.job.targets.len());
        for target in self.target_folders()? {
            let mut file = create_new_file(entry, target, name)?;
            file.write_all(&buffer)?;
            stats.push(index_stat(&fstat(&file)?));
        }
        self.buffer = buffer;
        self.count_file(true);
        Ok(Some(stats))
    }

    /// Copies a file to each target. `None`, with nothing left there, when the source does not match the
    /// entry. The check follows the copy, because any write before it has changed the times.
    fn copy_to_targets(&mut self, entry: &Entry, name: &OsStr, source: &File) -> Result<Option<Vec<Stat>>> {
        proq_base::fail_points::hit("fill.copies");
        let size = u64::from(entry.stat.size);
        let mut buffer = std::mem::take(&mut self.buffer);
        let (mut stats, mut is_complete) = (Vec::with_capacity(self.job.targets.len()), true);
        for target in self.target_folders()? {
            let file = create_new_file(entry, target, name)?;
            is_complete = is_complete
                && if size > MAX_PLAIN_COPY_BYTES {
                    copy_sparse_file(source, &file)?
                } else {
                    copy_prefix(source, &file, size, &mut buffer)?
                };
            futimens(&file, &mtime_only(recorded_mtime(entry)))?;
            stats.push(index_stat(&fstat(&file)?));
        }
        self.buffer = buffer;
        if is_complete && is_unchanged_file(entry, &fstat(source)?) {
            return Ok(Some(stats));
        }
        for target in self.target_folders()? {
            unlinkat(target, name, AtFlags::empty())?;
        }
        Ok(None)
    }

    /// Counts a created file as written from objects, or else as copied.
    fn count_file(&self, written: bool) {
        let counter = if written { &self.job.written } else { &self.job.copied };
        counter.fetch_add(1, Relaxed);
    }

    /// Opens an entry's file in the source if it may match the entry.
    fn open_source_file(&mut self, entry: &Entry, name: &OsStr) -> Option<File> {
        self.source_folder(entry)?;
        self.blob_has_file_size(entry).then_some(())?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(self.source_folder(entry)?, name, flags, rustix::fs::Mode::empty()).ok()?;
        let is_unchanged = || fstat(&file).is_ok_and(|meta| is_unchanged_file(entry, &meta));
        (!self.checks_before_copy || is_unchanged()).then(|| File::from(file))
    }

    /// Returns whether the blob of an entry is as long as its file.
    fn blob_has_file_size(&mut self, entry: &Entry) -> bool {
        let size_record = blob_record(entry);
        if self.job.sizes.is_known(&size_record) {
            return true;
        }
        let is_same_size = self.blob_size(entry) == Some(entry.stat.size.into());
        if is_same_size {
            self.verified_sizes.push(size_record);
        }
        is_same_size
    }

    /// Returns the size of an entry's blob. It differs from the file's size when git converts line ends on
    /// adding.
    fn blob_size(&self, entry: &Entry) -> Option<u64> {
        let header = self.objects.try_header(&entry.id).ok().flatten()?;
        (header.kind == Kind::Blob).then_some(header.size)
    }

    /// Reads the blob of an entry into the buffer; returns false when the entry is left to git.
    fn read_blob(&mut self, entry: &Entry) -> bool {
        let ordinary = is_portable_path(&RepoPath::new(entry.path(self.job.index).to_vec()));
        if !ordinary || self.job.written.load(Relaxed) >= self.job.max_written {
            return false;
        }
        self.blob_size(entry).is_some_and(|size| size <= MAX_BLOB_BYTES)
            && matches!(self.objects.try_find(&entry.id, &mut self.buffer), Ok(Some(found)) if found.kind == Kind::Blob)
    }

    /// Creates the folder of a submodule, which git leaves empty.
    fn create_submodule_folder(&mut self, name: &OsStr) -> Result<Vec<Stat>> {
        let create_in = |target: &OwnedFd| {
            open_or_create_folder(target, name)?;
            Ok(index_stat(&statat(target, name, AtFlags::SYMLINK_NOFOLLOW)?))
        };
        self.target_folders()?.iter().map(create_in).collect()
    }

    fn create_symlink(&mut self, entry: &Entry, name: &OsStr) -> Result<Option<Vec<Stat>>> {
        let source_link = self.source_folder(entry).and_then(|source| {
            let link_target = readlinkat(source, name, Vec::new()).ok()?;
            let meta = statat(source, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
            let is_same = stat_matches(entry, &meta)
                && self.blob_size(entry) == Some(link_target.as_bytes().len() as u64);
            is_same.then(|| (link_target.into_bytes(), Some(recorded_mtime(entry))))
        });
        let (link_target, time) = match source_link {
            Some(copied_link) => copied_link,
            // An empty symlink is left to git.
            None if self.read_blob(entry) && !self.buffer.is_empty() && !self.buffer.contains(&0) => {
                (self.buffer.clone(), None)
            }
            None => return Ok(None),
        };
        let mut stats = Vec::with_capacity(self.job.targets.len());
        for target in self.target_folders()? {
            symlinkat(OsStr::from_bytes(&link_target), target, name)?;
            if let Some(time) = time {
                utimensat(target, name, &mtime_only(time), AtFlags::SYMLINK_NOFOLLOW)?;
            }
            stats.push(index_stat(&statat(target, name, AtFlags::SYMLINK_NOFOLLOW)?));
        }
        self.count_file(time.is_none());
        Ok(Some(stats))
    }
}

/// Opens a folder, and creates it unless another thread has done so.
fn open_or_create_folder(parent: &OwnedFd, name: &OsStr) -> Result<OwnedFd> {
    match mkdirat(parent, name, 0o777.into()) {
        Ok(()) | Err(Errno::EXIST) => Ok(open_folder(parent, name)?),
        Err(e) => Err(e.into()),
    }
}

/// Creates the file of an entry; fails if the path exists.
fn create_new_file(entry: &Entry, folder: &OwnedFd, name: &OsStr) -> Result<File> {
    let mode = if entry.mode == Mode::FILE { 0o666 } else { 0o777 };
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    Ok(File::from(openat(folder, name, flags, mode.into())?))
}

/// Returns whether the stat data is that of a regular file and equals the entry's.
fn is_unchanged_file(entry: &Entry, meta: &rustix::fs::Stat) -> bool {
    rustix::fs::FileType::from_raw_mode(meta.st_mode).is_file() && stat_matches(entry, meta)
}

/// Returns whether stat data equals the entry's, nanoseconds included.
fn stat_matches(entry: &Entry, meta: &rustix::fs::Stat) -> bool {
    entry.stat.matches(&index_stat(meta), Options { use_nsec: true, ..STAT_BY_SECOND })
}

/// Returns the modification time recorded in an entry.
fn recorded_mtime(entry: &Entry) -> Timespec {
    let time = entry.stat.mtime;
    Timespec { tv_sec: time.secs.into(), tv_nsec: time.nsecs.into() }
}

/// Returns timestamps that set only the modification time. A copy gets the time of its source: it is older
/// than the index, so git need not read it again, and build outputs of the source are not older than it.
fn mtime_only(mtime: Timespec) -> Timestamps {
    Timestamps { last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT }, last_modification: mtime }
}

/// Copies a long file from its start with its holes; returns false when the source is no longer a regular
/// file or changes.
fn copy_sparse_file(mut source: &File, target: &File) -> Result<bool> {
    let meta = source.metadata()?;
    if !meta.is_file() {
        return Ok(false);
    }
    source.rewind()?;
    match copy_content(source, &meta, target, &mut |_| true) {
        Ok(()) => Ok(true),
        Err(CopyError::SourceChanged) => Ok(false),
        Err(e) => Err(std::io::Error::other(e)),
    }
}
