//! Comparison of a file with its index entry: by stat data and, where the times are inconclusive, by content.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

use gix::objs::{Kind, compute_hash};
use rustix::fs::{AtFlags, FileType, statat};
use rustix::io::Errno;

use super::{FileState, OPEN_FOLDER_FLAGS, StatusWalk, is_file_mode};
use crate::index::entry_stat::index_stat;
use crate::index::raw_index;
use crate::index::raw_index::RawEntry;

/// Maximum number and total bytes of files read because their times are inconclusive. Beyond that, git is
/// faster because it reads in many threads.
const MAX_FILES_READ: usize = 256;
const MAX_BYTES_READ: u64 = 4 * 1024 * 1024;

impl StatusWalk<'_> {
    /// Returns whether the worktree's file of an entry certainly matches the index. The entry may be in any
    /// folder.
    pub fn is_unchanged(&self, entry: RawEntry<'_>) -> bool {
        let name = OsStr::from_bytes(entry.path());
        let Ok(top) = rustix::fs::open(self.top, OPEN_FOLDER_FLAGS, rustix::fs::Mode::empty()) else {
            return false;
        };
        // A symlink instead of a folder would lead to another place.
        let mut parents = Path::new(name).ancestors().skip(1).filter(|up| !up.as_os_str().is_empty());
        let is_folder = |up: &Path| self.top.join(up).symlink_metadata().is_ok_and(|meta| meta.is_dir());
        parents.all(is_folder)
            && matches!(
                self.compare_with_entry(entry, &top, name),
                FileState::Unchanged | FileState::ContentCompared(true)
            )
    }

    /// Compares a file with its index entry. `name` is its path from the open folder.
    pub(crate) fn compare_with_entry(
        &self,
        entry: RawEntry<'_>,
        open_folder: &OwnedFd,
        name: &OsStr,
    ) -> FileState {
        if !entry.is_compared_by_git() {
            return FileState::Unknown;
        }
        let meta = match statat(open_folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(meta) => meta,
            Err(Errno::NOENT) if is_file_mode(entry.mode()) => return FileState::Missing,
            Err(_) => return FileState::Unknown,
        };
        let (kind, executable) = (FileType::from_raw_mode(meta.st_mode), meta.st_mode & 0o100 != 0);
        let same_kind = match entry.mode() {
            raw_index::FILE_MODE => kind.is_file() && !executable,
            raw_index::EXECUTABLE_MODE => kind.is_file() && executable,
            raw_index::SYMLINK_MODE => kind.is_symlink(),
            _ => false,
        };
        if !same_kind {
            return FileState::Unknown;
        }
        // Git records a length of zero for an entry without valid stat data, unless the file was empty.
        let empty = gix::ObjectId::empty_blob(self.index.hash_kind());
        let has_recorded_stat = entry.size() != 0 || !kind.is_file() || entry.id() == empty.as_slice();
        if has_recorded_stat && entry.stat_matches(&meta) && !self.index.is_racy(entry) {
            return FileState::Unchanged;
        }
        // Git does not read a file whose length differs from the recorded one.
        if kind.is_file() && entry.size() != 0 && entry.size() != index_stat(&meta).size {
            return FileState::Edited;
        }
        self.content_matches(entry, &self.top.join(OsStr::from_bytes(entry.path())))
            .map_or(FileState::Unknown, FileState::ContentCompared)
    }

    /// Returns whether the file's bytes equal the entry's blob; `None` when there is too much to read.
    /// Filters are not applied: a file whose bytes equal the blob has nothing to lose.
    fn content_matches(&self, entry: RawEntry<'_>, file: &Path) -> Option<bool> {
        let meta = file.symlink_metadata().ok()?;
        let files_before = self.files_read.fetch_add(1, Relaxed);
        let bytes_before = self.bytes_read.fetch_add(meta.len().min(MAX_BYTES_READ), Relaxed);
        if files_before >= MAX_FILES_READ || bytes_before.saturating_add(meta.len()) > MAX_BYTES_READ {
            return None;
        }
        let content = if meta.is_symlink() {
            std::fs::read_link(file).map(|to| to.into_os_string().into_encoded_bytes())
        } else {
            std::fs::read(file)
        };
        let id = compute_hash(self.index.hash_kind(), Kind::Blob, &content.ok()?).ok()?;
        Some(id.as_slice() == entry.id())
    }
}
