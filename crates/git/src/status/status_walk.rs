//! In-process walk of a worktree that compares it with its index, without starting git. Every doubtful case
//! is left to git.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};

use gix::index::entry::Flags;
use rustix::fs::{AtFlags, Dir, FileType, OFlags, openat, statat};
use rustix::io::Errno;

use super::folder_stamps::FolderStamps;
use super::ignore_rules::{IgnoreRules, NameSet, UnindexedKind};
use super::worktree_status::{StatusEntry, StatusKind as Differs};
use crate::RepoPath;
use crate::base::parallel::parallel_map;
use crate::index::raw_index;
use crate::index::raw_index::{RawEntry, RawIndex};

pub mod file_comparison;

/// Maximum number of changed paths listed. Beyond that, git lists them.
const MAX_PATHS_LISTED: usize = 1_000;

/// Flags of index entries that git was configured not to check, or that have no content yet.
pub(crate) const UNCHECKED_ENTRY_FLAGS: Flags =
    Flags::ASSUME_VALID.union(Flags::SKIP_WORKTREE).union(Flags::INTENT_TO_ADD);

/// Minimum number of files below a folder that justify a thread.
const MIN_FILES_PER_CHUNK: usize = if cfg!(test) { 2 } else { 32 };

/// Maximum number of files below a folder with a saved stamp that are found by their path from an open folder
/// above it. For more files, opening their folder costs less.
const MAX_FILES_IN_UNOPENED: usize = 16;

/// Walk of a worktree that compares it with its index and reports only results that are certain.
pub(crate) struct StatusWalk<'a> {
    top: &'a Path,
    index: &'a RawIndex,
    /// Ignore rules; `None` when untracked files do not matter.
    ignore_rules: Option<Mutex<IgnoreRules<'a>>>,
    /// Minimum number of files below a folder for which the folder becomes a separate chunk of the walk.
    chunk_size: usize,
    /// Whether changed paths are listed; otherwise the walk stops at the first change.
    lists_changes: bool,
    /// Whether ignored files and untracked folders are listed as well.
    lists_everything: bool,
    /// Number of files read so far.
    files_read: AtomicUsize,
    bytes_read: AtomicU64,
}

/// Open folder of the worktree.
struct OpenFolder {
    fd: OwnedFd,
    /// Length of its path in the index, with the slash; zero for the top.
    path_len: usize,
}

/// Child of a folder in the index.
enum IndexChild<'e> {
    File(RawEntry<'e>),
    /// Subfolder with the byte offsets in the index of all entries below it.
    Folder(&'e [u32]),
}

/// State of a file compared with its index entry.
pub enum FileState {
    /// The kind, size and times of the file match its index entry, so the content counts as the same.
    Unchanged,
    /// The size of the file differs from the one in its index entry.
    Edited,
    /// The times are inconclusive, so the content was read; the value is whether the bytes on disk equal the
    /// entry's blob. They may differ only because of a filter.
    ContentCompared(bool),
    /// No file exists at the path of the index entry.
    Missing,
    /// The walk cannot compare the file, so git has to: its kind differs, or it cannot be read, for example.
    Unknown,
}

/// Result of one status walk.
#[derive(Default)]
struct WalkResult {
    /// Changed paths, unordered.
    changes: Vec<StatusEntry>,
    /// Stamps of folders that contain no other names than the index, from an earlier walk.
    folder_stamps: Option<FolderStamps>,
    /// Content that is not tracked.
    untracked: UntrackedContent,
}

/// Ignored files and untracked folders next to tracked files, and tracked files that were compared by
/// content. The lists are unordered.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct UntrackedContent {
    /// Ignored files and folders; the contents of an ignored folder are not listed.
    pub ignored: Vec<RepoPath>,
    /// Topmost untracked folders: not ignored, and without a tracked file.
    pub untracked_folders: Vec<RepoPath>,
    /// Whether an untracked folder contains something ignored.
    pub(crate) has_nested_ignored: bool,
    /// Tracked files that were compared by their bytes on disk because their times were inconclusive. A
    /// filter may convert them to something else.
    pub(crate) compared_by_content: Vec<RepoPath>,
}

impl<'a> StatusWalk<'a> {
    /// Creates a walk of the worktree at `top` by its index; with `untracked`, also of files that are not in
    /// the index.
    pub fn new(top: &'a Path, index: &'a RawIndex, untracked: bool) -> StatusWalk<'a> {
        StatusWalk {
            top,
            index,
            ignore_rules: untracked.then(|| Mutex::new(IgnoreRules::with_all_files(top, index.hash_kind()))),
            chunk_size: usize::MAX,
            lists_changes: false,
            lists_everything: false,
            files_read: AtomicUsize::new(0),
            bytes_read: AtomicU64::new(0),
        }
    }

    /// Returns whether each file matches the index and no relevant untracked file exists. With `parallel`,
    /// the worktree is divided among threads.
    pub(crate) fn confirm_clean(mut self, parallel: bool) -> bool {
        self.chunk_size = if parallel { MIN_FILES_PER_CHUNK } else { usize::MAX };
        let chunks = self.split_into_chunks();
        let differs = AtomicBool::new(false);
        parallel_map(&chunks, |(folder_path_len, entries)| {
            if !differs.load(Relaxed)
                && !self.walk_chunk(*folder_path_len, entries, &mut WalkResult::default())
            {
                differs.store(true, Relaxed);
            }
        });
        !differs.into_inner()
    }

    /// Returns all differences from the index in git's order; `None` when part of the result is uncertain.
    /// `folders` is the folder cache, which the walk reads and updates.
    pub(crate) fn list_changes(mut self, folders: &mut Option<FolderStamps>) -> Option<Vec<StatusEntry>> {
        self.lists_changes = true;
        let mut found = WalkResult { folder_stamps: folders.take(), ..WalkResult::default() };
        let is_certain = self.walk_chunk(0, self.index.entry_offsets(), &mut found);
        *folders = found.folder_stamps;
        is_certain.then(|| sort_in_git_order(found.changes))
    }

    /// Returns all differences from the index and all untracked and ignored content, using many threads;
    /// `None` when part of the result is uncertain.
    pub(crate) fn list_changes_and_untracked(mut self) -> Option<(Vec<StatusEntry>, UntrackedContent)> {
        (self.chunk_size, self.lists_changes, self.lists_everything) = (MIN_FILES_PER_CHUNK, true, true);
        let chunks = self.split_into_chunks();
        let given_up = AtomicBool::new(false);
        let results = parallel_map(&chunks, |(folder_path_len, entries)| {
            let mut found = WalkResult::default();
            if !given_up.load(Relaxed) && !self.walk_chunk(*folder_path_len, entries, &mut found) {
                given_up.store(true, Relaxed);
            }
            found
        });
        let (mut changes, mut untracked) = (Vec::new(), UntrackedContent::default());
        for found in results {
            changes.extend(found.changes);
            untracked.ignored.extend(found.untracked.ignored);
            untracked.untracked_folders.extend(found.untracked.untracked_folders);
            untracked.has_nested_ignored |= found.untracked.has_nested_ignored;
            untracked.compared_by_content.extend(found.untracked.compared_by_content);
        }
        (!given_up.into_inner()).then(|| (sort_in_git_order(changes), untracked))
    }

    /// Splits the index into folders that threads can walk independently. Each chunk is the length of the
    /// folder's name with its slash, and the offsets of the entries below it.
    fn split_into_chunks(&self) -> Vec<(usize, &[u32])> {
        let mut chunks = vec![(0, self.index.entry_offsets())];
        let mut next = 0;
        while self.chunk_size < usize::MAX
            && let Some((folder_path_len, entries)) = chunks.get(next).copied()
        {
            next += 1;
            let mut remaining = entries;
            while let Some((name, inside)) = self.take_first_child(folder_path_len, &mut remaining) {
                if let IndexChild::Folder(below) = inside
                    && below.len() >= self.chunk_size
                {
                    chunks.push((folder_path_len + name.len() + 1, below));
                }
            }
        }
        chunks
    }

    /// Removes the first child of a folder from `remaining_offsets` and returns its name and content.
    fn take_first_child<'e>(
        &'e self,
        folder_path_len: usize,
        remaining_offsets: &mut &'e [u32],
    ) -> Option<(&'e [u8], IndexChild<'e>)> {
        let first_entry = self.index.entry(*remaining_offsets.first()?);
        let path = first_entry.path();
        let name = path.get(folder_path_len..)?;
        let Some(end) = name.iter().position(|byte| *byte == b'/') else {
            *remaining_offsets = &remaining_offsets[1..];
            return Some((name, IndexChild::File(first_entry)));
        };
        let (children, later) = remaining_offsets
            .split_at(self.index.count_with_prefix(remaining_offsets, &path[..=folder_path_len + end]));
        *remaining_offsets = later;
        Some((&name[..end], IndexChild::Folder(children)))
    }

    /// Walks the folder of a chunk as `walk_folder` does. A missing folder counts as one with all files
    /// deleted.
    fn walk_chunk(&self, folder_path_len: usize, entries: &[u32], found: &mut WalkResult) -> bool {
        let path = entries.first().map_or(&[][..], |first| self.index.path(*first));
        let dir = self.top.join(OsStr::from_bytes(path.get(..folder_path_len).unwrap_or_default()));
        // The walk of the parent folder detects a symlink further up.
        match rustix::fs::open(&dir, OPEN_FOLDER_FLAGS, rustix::fs::Mode::empty()) {
            Ok(fd) => self.walk_folder(OpenFolder { fd, path_len: folder_path_len }, entries, found),
            Err(Errno::NOENT) => {
                self.lists_changes && self.list_missing_folder(folder_path_len, entries, found)
            }
            Err(_) => false,
        }
    }

    /// Lists the files below a missing folder as deleted, except those of folders that are separate chunks.
    /// Returns false if a file could not be listed, so that git has to.
    fn list_missing_folder(&self, folder_path_len: usize, entries: &[u32], found: &mut WalkResult) -> bool {
        let mut remaining = entries;
        while let Some((name, inside)) = self.take_first_child(folder_path_len, &mut remaining) {
            let is_listed = match inside {
                IndexChild::File(entry) => {
                    entry.is_compared_by_git()
                        && is_file_mode(entry.mode())
                        && found.add_change(deleted_kind(), entry.path())
                }
                IndexChild::Folder(below) => {
                    below.len() >= self.chunk_size
                        || self.list_missing_folder(folder_path_len + name.len() + 1, below, found)
                }
            };
            if !is_listed {
                return false;
            }
        }
        remaining.is_empty()
    }

    /// Returns whether the open folder matches the index, apart from differences that were listed and from
    /// subfolders that are separate chunks. `entry_offsets` are all index entries below the folder.
    fn walk_folder(&self, folder: OpenFolder, entry_offsets: &[u32], found: &mut WalkResult) -> bool {
        let metadata = found.folder_stamps.as_ref().and_then(|_| rustix::fs::fstat(&folder.fd).ok());
        let is_known = match (&mut found.folder_stamps, &metadata) {
            (Some(folders), Some(meta)) => folders.is_next_unchanged(meta),
            _ => false,
        };
        let position = found.folder_stamps.as_ref().map(FolderStamps::last_position);
        let mut names = Vec::new();
        let ignored = self.ignore_rules.as_ref().filter(|_| !is_known);
        let child_names = ignored.map(|_| &mut names);
        if !self.walk_children(&folder, folder.path_len, entry_offsets, child_names, found) {
            return false;
        }
        let Some(ignored) = ignored else { return true };
        let first_path = entry_offsets.first().map_or(&[][..], |first| self.index.path(*first));
        let folder_path = first_path.get(..folder.path_len).unwrap_or_default();
        match self.find_unindexed_names(folder_path, folder.fd, NameSet::new(names), ignored, found) {
            Some(has_no_others) => {
                if let (Some(folders), Some(position), Some(meta), true) =
                    (&mut found.folder_stamps, position, &metadata, has_no_others)
                {
                    folders.record_clean(position, meta);
                }
                true
            }
            None => false,
        }
    }

    /// Returns whether the children of a folder match the index, as `walk_folder` does, and adds their names
    /// to `names`. `folder_path_len` is the length of the folder's path in the index, with the slash.
    /// `opened` is the folder or one above it: names are resolved from there, which is faster than from the
    /// root.
    fn walk_children<'e>(
        &'e self,
        opened: &OpenFolder,
        folder_path_len: usize,
        entry_offsets: &'e [u32],
        mut names: Option<&mut Vec<&'e [u8]>>,
        found: &mut WalkResult,
    ) -> bool {
        let mut remaining = entry_offsets;
        while let Some((name, inside)) = self.take_first_child(folder_path_len, &mut remaining) {
            let matches_index = match inside {
                IndexChild::File(entry) => self.accept_file(entry, opened, found),
                IndexChild::Folder(below) => {
                    self.walk_subfolder(opened, folder_path_len + name.len() + 1, below, found)
                }
            };
            if !matches_index {
                return false;
            }
            if let Some(names) = &mut names {
                names.push(name);
            }
        }
        remaining.is_empty()
    }

    /// Returns whether a folder below an open one matches the index, apart from listed differences and separate
    /// chunks. `path_len` is the length of its path in the index, with the slash, and `entry_offsets` are all
    /// index entries below it.
    fn walk_subfolder(
        &self,
        opened: &OpenFolder,
        path_len: usize,
        entry_offsets: &[u32],
        found: &mut WalkResult,
    ) -> bool {
        let first_path = entry_offsets.first().map_or(&[][..], |first| self.index.path(*first));
        let Some(name) = first_path.get(opened.path_len..path_len - 1).map(OsStr::from_bytes) else {
            return false;
        };
        if let Some(folders) = &mut found.folder_stamps
            && entry_offsets.len() <= MAX_FILES_IN_UNOPENED
            && folders.may_skip_next()
            && let Ok(meta) = statat(&opened.fd, name, AtFlags::SYMLINK_NOFOLLOW)
            && FileType::from_raw_mode(meta.st_mode).is_dir()
            && folders.skip_if_unchanged(&meta)
        {
            return self.walk_children(opened, path_len, entry_offsets, None, found);
        }
        match open_folder(&opened.fd, name) {
            Ok(_) | Err(Errno::NOENT) if entry_offsets.len() >= self.chunk_size => true,
            Ok(fd) => self.walk_folder(OpenFolder { fd, path_len }, entry_offsets, found),
            Err(Errno::NOENT) if self.lists_changes => {
                if let Some(folders) = &mut found.folder_stamps {
                    folders.mark_incomplete();
                }
                self.list_missing_folder(path_len, entry_offsets, found)
            }
            Err(_) => false,
        }
    }

    /// Returns whether the file of an entry is unchanged or its change was listed.
    fn accept_file(&self, entry: RawEntry<'_>, opened: &OpenFolder, found: &mut WalkResult) -> bool {
        let Some(name) = entry.path().get(opened.path_len..) else { return false };
        match self.compare_with_entry(entry, &opened.fd, OsStr::from_bytes(name)) {
            FileState::Unchanged => true,
            FileState::Edited if self.lists_changes => found.add_change(edited_kind(), entry.path()),
            FileState::Missing if self.lists_changes => found.add_change(deleted_kind(), entry.path()),
            FileState::ContentCompared(same) if self.lists_everything => {
                found.untracked.compared_by_content.push(RepoPath::new(entry.path()));
                same || found.add_change(edited_kind(), entry.path())
            }
            FileState::ContentCompared(same) => same,
            FileState::Edited | FileState::Missing | FileState::Unknown => false,
        }
    }

    /// Returns whether a folder contains only `names`. `folder_path` is its path in the index, with the slash.
    /// `Some(false)` means that all other names are ignored or were listed; `None` means that git has to
    /// decide.
    fn find_unindexed_names(
        &self,
        folder_path: &[u8],
        folder_fd: OwnedFd,
        mut names: NameSet<'_>,
        ignore_rules: &Mutex<IgnoreRules<'_>>,
        found: &mut WalkResult,
    ) -> Option<bool> {
        let mut has_no_others = true;
        for entry in Dir::new(folder_fd).ok()? {
            let entry = entry.ok()?;
            let name = entry.file_name().to_bytes();
            // The top folder holds git's own folder, or the link to it.
            if matches!(name, b"." | b"..")
                || names.contains(name)
                || (folder_path.is_empty() && name == b".git")
            {
                continue;
            }
            // In any other folder, git skips `.git` and may treat the folder as a nested repository.
            if name.eq_ignore_ascii_case(b".git") {
                return None;
            }
            has_no_others = false;
            let path = self.top.join(OsStr::from_bytes(folder_path)).join(OsStr::from_bytes(name));
            let kind = path.symlink_metadata().ok()?.file_type();
            let is_folder = kind.is_dir();
            if self.lists_everything && !is_folder && !kind.is_file() && !kind.is_symlink() {
                return None;
            }
            let mut rules = ignore_rules.lock().ok()?;
            let has_more = rules.has_unaccepted(&path, is_folder, &mut |below, entry_class| {
                let name = below.strip_prefix(self.top).map(|below| below.as_os_str().as_bytes());
                name.is_ok_and(|name| self.accept_untracked(name, entry_class, below == path, found))
            });
            if has_more {
                return None;
            }
        }
        Some(has_no_others)
    }

    /// Returns whether the walk can continue with this untracked path. Lists the path first, if the walk
    /// lists such paths. `parent_is_tracked` is whether its folder contains tracked files.
    fn accept_untracked(
        &self,
        name: &[u8],
        entry_class: UnindexedKind,
        parent_is_tracked: bool,
        found: &mut WalkResult,
    ) -> bool {
        match entry_class {
            UnindexedKind::File => self.lists_changes && found.add_change(Differs::Untracked, name),
            UnindexedKind::Ignored | UnindexedKind::Folder if !self.lists_everything => true,
            UnindexedKind::Folder => {
                if parent_is_tracked {
                    found.untracked.untracked_folders.push(RepoPath::new(name));
                }
                true
            }
            UnindexedKind::Ignored => {
                if parent_is_tracked {
                    found.untracked.ignored.push(RepoPath::new(name));
                }
                found.untracked.has_nested_ignored |= !parent_is_tracked;
                true
            }
        }
    }
}

impl WalkResult {
    /// Adds a changed path; returns false when there are so many that git has to list them.
    fn add_change(&mut self, kind: Differs, path: &[u8]) -> bool {
        self.changes.push(StatusEntry {
            kind,
            path: RepoPath::new(path),
            is_nested_repo: false,
            is_submodule: false,
        });
        self.changes.len() <= MAX_PATHS_LISTED
    }
}

/// Sorts changes in git's order: tracked paths come first.
fn sort_in_git_order(mut paths: Vec<StatusEntry>) -> Vec<StatusEntry> {
    paths.sort_by(|a, b| {
        let rank = |entry: &StatusEntry| entry.kind == Differs::Untracked;
        rank(a).cmp(&rank(b)).then_with(|| a.path.as_bytes().cmp(b.path.as_bytes()))
    });
    paths
}

/// Returns the kind of an unstaged edit.
fn edited_kind() -> Differs {
    Differs::Tracked { staged: false, unstaged: true, deleted: false }
}

/// Returns the kind of an unstaged deletion.
fn deleted_kind() -> Differs {
    Differs::Tracked { staged: false, unstaged: true, deleted: true }
}

/// Returns whether an index mode is that of a regular file or a symlink, rather than of a submodule.
fn is_file_mode(mode: u32) -> bool {
    matches!(mode, raw_index::FILE_MODE | raw_index::EXECUTABLE_MODE | raw_index::SYMLINK_MODE)
}

/// Opens a folder that is not a symlink.
pub(crate) fn open_folder(parent: &OwnedFd, name: &OsStr) -> rustix::io::Result<OwnedFd> {
    openat(parent, name, OPEN_FOLDER_FLAGS, rustix::fs::Mode::empty())
}

/// Flags that open a folder for reading, fail on a symlink, and close the descriptor on `exec`.
pub const OPEN_FOLDER_FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

#[cfg(test)]
mod tests;
