//! Scan of a retired worktree's folder against its old index: which files certainly match the index, and
//! which other paths exist. The scan does not trust anything that held while the folder was a worktree.

use std::ffi::OsStr;
use std::fs::File as OpenFile;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use gix::index::entry::{Mode, Stat, stat};
use gix::index::{Entry, File};
use gix::objs::{FindHeader, Kind, compute_hash};
use rustix::fs::{AtFlags, Dir, FileType, OFlags, fstat, openat, readlinkat, statat};

use super::index_folders::{FolderChild, IndexFolders};
use crate::base::parallel::parallel_map;
use crate::index::entry_stat::{STAT_BY_SECOND, index_stat, is_racy};
use crate::index::file_modes::umask;
use crate::status::ignore_rules::NameSet;
use crate::status::included_files::IncludedPath;
use crate::status::status_walk::{OPEN_FOLDER_FLAGS, open_folder};
use crate::{Repo, RepoPath};

/// Maximum number of bytes read from files whose stat data does not prove that they are unchanged. Beyond
/// this, a copy is as fast.
const MAX_BYTES_READ: u64 = 64 << 20;

/// Files of a reusable folder that have to be written again, and paths that the index lacks.
#[derive(Default)]
pub struct FolderDeviations {
    /// Index positions of entries whose files have the right content and have to be written again all the
    /// same. They have hard links or other permissions, or git would write them in another form.
    pub(crate) positions_to_rewrite: Vec<usize>,
    /// Paths that are not in the index, without the top-level `.git`; a directory without tracked files is
    /// one item.
    pub untracked: Vec<IncludedPath>,
}

/// Scans a folder against its index. Entries that `verbatim_index` has identically are known to be the bytes
/// of their blobs. The error is the reason why the folder cannot be reused: a file differs from the index or
/// cannot be read.
pub(crate) fn scan_folder(
    repo: &Repo,
    top: &Path,
    index: &File,
    verbatim_index: Option<&File>,
) -> Result<FolderDeviations, &'static str> {
    let mask = umask().ok_or("the permissions of new files are unknown")?;
    let verbatim = verbatim_index.map_or_else(Vec::new, |made| matching_entries(index, made));
    let scan = FolderScan {
        top,
        index,
        umask: mask,
        is_known_verbatim: verbatim,
        bytes_read: AtomicU64::new(0),
        rejection: OnceLock::new(),
    };
    let chunks = IndexFolders(index).chunks();
    let store = repo.gix.objects.store();
    let results = parallel_map(&chunks, |(prefix_len, entries)| {
        let objects = gix::odb::Handle::from(store.to_handle_arc());
        let mut worker = ScanWorker { scan: &scan, objects, result: FolderDeviations::default() };
        if scan.rejection.get().is_none() {
            worker.scan_chunk(*prefix_len, entries);
        }
        worker.result
    });
    if let Some(reason) = scan.rejection.get() {
        return Err(reason);
    }
    let mut merged = FolderDeviations::default();
    for result in results {
        merged.positions_to_rewrite.extend(result.positions_to_rewrite);
        merged.untracked.extend(result.untracked);
    }
    merged.untracked.sort();
    Ok(merged)
}

/// Returns the mode of a file in a type that holds it on every system.
fn mode_bits(meta: &rustix::fs::Stat) -> u64 {
    u64::from(meta.st_mode)
}

/// Returns, for each entry of `index`, whether `other` has it with the same stat data. Both are sorted.
fn matching_entries(index: &File, other: &File) -> Vec<bool> {
    let mut others = other.entries().iter().peekable();
    let is_in_other = |entry: &Entry| {
        let path = entry.path(index);
        while others.next_if(|known| known.path(other) < path).is_some() {}
        others.peek().is_some_and(|known| {
            let is_same_entry = known.id == entry.id && known.mode == entry.mode && known.stat == entry.stat;
            is_same_entry && known.path(other) == path
        })
    };
    index.entries().iter().map(is_in_other).collect()
}

struct FolderScan<'a> {
    top: &'a Path,
    index: &'a File,
    umask: u32,
    /// For each entry, whether its file is known to be the bytes of its blob; empty where nothing is known.
    is_known_verbatim: Vec<bool>,
    bytes_read: AtomicU64,
    /// First reason why the folder cannot be reused, if there is one.
    rejection: OnceLock<&'static str>,
}

/// One thread's share of a folder scan.
struct ScanWorker<'a> {
    scan: &'a FolderScan<'a>,
    objects: gix::odb::Handle,
    result: FolderDeviations,
}

/// Whether a file that matches the index can stay or has to be written again.
enum FileDisposition {
    Keep,
    Rewrite,
}

impl ScanWorker<'_> {
    /// Scans the directory of a chunk; `prefix_len` is the length of its path with the trailing slash.
    fn scan_chunk(&mut self, prefix_len: usize, entries: &[Entry]) {
        let name =
            entries.first().and_then(|e| e.path(self.scan.index).get(..prefix_len)).unwrap_or_default();
        let dir = self.scan.top.join(OsStr::from_bytes(name));
        match rustix::fs::open(&dir, OPEN_FOLDER_FLAGS, rustix::fs::Mode::empty()) {
            Ok(open) => drop(self.scan_directory(open, prefix_len, entries)),
            Err(_) => drop(self.reject::<()>("a folder is missing, or cannot be opened")),
        }
    }

    /// Records why the folder cannot be reused, and returns `None`. Only the first reason counts.
    fn reject<T>(&self, reason: &'static str) -> Option<T> {
        let _first = self.scan.rejection.set(reason);
        None
    }

    /// Scans a directory with `entries`, which are all entries below it, except for subdirectories that are
    /// separate chunks. Returns `None` once the folder is rejected.
    fn scan_directory(&mut self, open: OwnedFd, prefix_len: usize, entries: &[Entry]) -> Option<()> {
        let Ok(meta) = fstat(&open) else { return self.reject("a folder cannot be inspected") };
        if mode_bits(&meta) & 0o777 != u64::from(0o777 & !self.scan.umask) {
            return self.reject("a folder has other permissions than a new one");
        }
        let groups = IndexFolders(self.scan.index);
        let (mut names, mut rest) = (Vec::new(), entries);
        while let Some((name, inside)) = groups.take_first_child(prefix_len, &mut rest) {
            let file_name = OsStr::from_bytes(name);
            let is_own_chunk = inside.is_chunk();
            match inside {
                FolderChild::File(entry) => {
                    if matches!(self.classify_file(entry, &open, file_name)?, FileDisposition::Rewrite) {
                        self.result.positions_to_rewrite.push(self.entry_position(entry));
                    }
                }
                FolderChild::Folder(child_entries) => {
                    let Ok(open) = open_folder(&open, file_name) else {
                        return self.reject("a folder is missing, or is no longer a folder");
                    };
                    if !is_own_chunk {
                        self.scan_directory(open, prefix_len + name.len() + 1, child_entries)?;
                    }
                }
            }
            names.push(name);
        }
        let Some(first) = entries.first().filter(|_| rest.is_empty()) else {
            return self.reject("its index has another format");
        };
        let name = first.path(self.scan.index).get(..prefix_len).unwrap_or_default();
        self.collect_untracked(name, open, NameSet::new(names))
    }

    /// Collects the names in a directory that are not among `names`.
    fn collect_untracked(&mut self, folder: &[u8], open: OwnedFd, mut names: NameSet<'_>) -> Option<()> {
        let Ok(all) = Dir::new(open) else { return self.reject("a folder cannot be read") };
        for entry in all {
            let Ok(entry) = entry else { return self.reject("a folder cannot be read") };
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") || names.contains(name) || (folder.is_empty() && name == b".git")
            {
                continue;
            }
            let path = RepoPath::new([folder, name].concat());
            let is_folder = match entry.file_type() {
                FileType::Unknown => {
                    path.to_fs_path(self.scan.top).symlink_metadata().is_ok_and(|meta| meta.is_dir())
                }
                kind => kind.is_dir(),
            };
            self.result.untracked.push(IncludedPath { path, is_folder });
        }
        Some(())
    }

    /// Returns the position of an entry in the index.
    fn entry_position(&self, entry: &Entry) -> usize {
        let all = self.scan.index.entries();
        let address = |entry: *const Entry| entry.addr();
        (address(entry) - address(all.as_ptr())) / size_of::<Entry>()
    }

    /// Checks that the file of an entry matches the index, and decides whether it can stay. Rejects the
    /// folder and returns `None` if the file does not match.
    fn classify_file(&self, entry: &Entry, parent: &OwnedFd, name: &OsStr) -> Option<FileDisposition> {
        let Ok(meta) = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) else {
            return self.reject("a file is missing");
        };
        let (kind, executable) = (FileType::from_raw_mode(meta.st_mode), meta.st_mode & 0o100 != 0);
        let is_kind = match entry.mode {
            Mode::FILE => kind.is_file() && !executable,
            Mode::FILE_EXECUTABLE => kind.is_file() && executable,
            Mode::SYMLINK => kind.is_symlink(),
            Mode::COMMIT => return self.classify_submodule(parent, name),
            _ => false,
        };
        if !is_kind {
            return self.reject("a file has another type");
        }
        let stat_matches =
            entry.stat.matches(&index_stat(&meta), stat::Options { use_nsec: true, ..STAT_BY_SECOND });
        let is_certain = stat_matches && !is_racy(self.scan.index, entry);
        if !is_certain && !self.has_blob_content(entry, parent, name, &meta) {
            return self.reject("a file was changed");
        }
        let default_mode = if executable { 0o777 } else { 0o666 } & !self.scan.umask;
        let has_default_mode = kind.is_symlink() || mode_bits(&meta) & 0o7777 == u64::from(default_mode);
        let is_verbatim =
            || self.scan.is_known_verbatim.get(self.entry_position(entry)).is_some_and(|exact| *exact);
        let can_stay = stat_matches
            && has_default_mode
            && meta.st_nlink == 1
            && (is_verbatim() || self.has_blob_length(entry, &entry.stat));
        Some(if can_stay { FileDisposition::Keep } else { FileDisposition::Rewrite })
    }

    /// Checks that the folder of a submodule is empty, as git creates it; otherwise rejects the retired
    /// folder.
    fn classify_submodule(&self, parent: &OwnedFd, name: &OsStr) -> Option<FileDisposition> {
        let open = open_folder(parent, name).ok().and_then(|open| Dir::new(open).ok());
        let is_empty =
            |mut all: Dir| all.all(|e| e.is_ok_and(|e| matches!(e.file_name().to_bytes(), b"." | b"..")));
        if open.is_some_and(is_empty) {
            Some(FileDisposition::Keep)
        } else {
            self.reject("it has a submodule in it")
        }
    }

    /// Returns whether a file is as long as its blob. A file changed by a filter or by a line-ending rule is
    /// not.
    fn has_blob_length(&self, entry: &Entry, stat: &Stat) -> bool {
        let header = self.objects.try_header(&entry.id).ok().flatten();
        header.is_some_and(|found| found.kind == Kind::Blob && found.size == u64::from(stat.size))
    }

    /// Reads a file and returns whether it has the content of its blob. Returns false beyond
    /// [`MAX_BYTES_READ`].
    fn has_blob_content(
        &self,
        entry: &Entry,
        parent: &OwnedFd,
        name: &OsStr,
        meta: &rustix::fs::Stat,
    ) -> bool {
        let size = u64::try_from(meta.st_size).unwrap_or(u64::MAX);
        if self.scan.bytes_read.fetch_add(size.min(MAX_BYTES_READ), Relaxed).saturating_add(size)
            > MAX_BYTES_READ
        {
            return false;
        }
        let bytes = if entry.mode == Mode::SYMLINK {
            readlinkat(parent, name, Vec::new()).ok().map(std::ffi::CString::into_bytes)
        } else {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let open = openat(parent, name, flags, rustix::fs::Mode::empty());
            let mut bytes = Vec::new();
            open.ok().and_then(|open| OpenFile::from(open).read_to_end(&mut bytes).ok()).map(|_| bytes)
        };
        let id = bytes.and_then(|bytes| compute_hash(entry.id.kind(), Kind::Blob, &bytes).ok());
        id == Some(entry.id)
    }
}
