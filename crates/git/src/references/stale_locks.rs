//! Lock files that a killed git left behind: which of them belong to a dead operation, and their removal.
//!
//! Used only when every process of that operation has exited, or when one of its git commands was killed. Another process can have taken a lock since. A
//! lock therefore counts as stale only under four conditions. It is empty or holds what the dead operation
//! would have written. It was created after the operation started. It stays unchanged for a moment. No living
//! process may hold it, as far as the system shows.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use proq_base::interrupt;

use super::lock_holders::{LockHolder, possible_lock_holders};
use crate::base::head::BRANCH_PREFIX;
use crate::base::lock_file::FileId;
use crate::{CommitId, Error, Repo};

/// Time that a lock must stay unchanged, even if no living process is known that may hold it.
const MIN_UNCHANGED_TIME: Duration = Duration::from_millis(150);
/// Time that a lock must stay unchanged where processes cannot be listed.
const MIN_UNCHANGED_TIME_WITHOUT_LIST: Duration = Duration::from_secs(10);
/// Time after which a file system gives another file another time stamp.
const MAX_TIME_STAMP_AGE: Duration = Duration::from_millis(50);
/// Temporary files of a packed-refs file that is being rewritten.
const PACKED_REFS_FILES: [&str; 2] = ["packed-refs.lock", "packed-refs.new"];

/// Lock files that an operation may have left whose processes have all exited.
pub(crate) struct StaleLocks<'a> {
    repo: &'a Repo,
    /// Start of the operation; locks from before it are not stale.
    started_at: SystemTime,
    /// Each lock file with the text that the dead operation would have written to it; none when that is
    /// unknown.
    locks_with_expected_text: Vec<(PathBuf, Option<Vec<u8>>)>,
}

impl<'a> StaleLocks<'a> {
    /// Prepares a search for locks that were created since the folder `scratch` was.
    pub fn new(repo: &'a Repo, scratch: &Path) -> Result<StaleLocks<'a>, Error> {
        let meta = scratch.metadata().map_err(Error::io("inspect", scratch))?;
        // Some file systems do not record the creation time of a folder; the modification time is used then.
        let started_at = meta.created().or_else(|_| meta.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
        // File systems stamp files with the time of the last tick.
        Ok(StaleLocks {
            repo,
            started_at: started_at - Duration::from_millis(20),
            locks_with_expected_text: Vec::new(),
        })
    }

    /// Adds the lock of a ref shared by all worktrees, which the operation was moving to `new`, or deleting
    /// if that is `None`. Also adds the locks of HEAD, for a branch, and of files that hold many refs.
    pub(crate) fn with_ref(mut self, name: &str, new: Option<CommitId>) -> Self {
        let text = new.map_or_else(Vec::new, |id| format!("{id}\n").into_bytes());
        self.locks_with_expected_text.push((self.repo.common_dir().join(format!("{name}.lock")), Some(text)));
        if name.starts_with(BRANCH_PREFIX) {
            // To write the reflog, git also locks a HEAD that names the branch, and writes nothing to that
            // lock.
            self.locks_with_expected_text.push((self.repo.common_dir().join("HEAD.lock"), Some(Vec::new())));
        }
        self.with_shared()
    }

    /// Adds the lock of a ref that only git-proq uses, whatever the lock contains, and the locks of files
    /// that hold many refs.
    pub(crate) fn with_private_ref(mut self, name: &str) -> Self {
        self.locks_with_expected_text.push((self.repo.common_dir().join(format!("{name}.lock")), None));
        self.with_shared()
    }

    /// Adds the lock of a worktree's HEAD, to which the operation was writing `text`.
    pub(crate) fn with_head(mut self, git_dir: &Path, text: String) -> Self {
        self.locks_with_expected_text.push((git_dir.join("HEAD.lock"), Some(text.into_bytes())));
        if self.repo.is_reftable() {
            self.locks_with_expected_text.push((git_dir.join("reftable/tables.list.lock"), None));
        }
        self.with_shared()
    }

    /// Adds the locks of files that hold many refs at once: packed-refs, or the reftable list.
    pub(crate) fn with_shared(mut self) -> Self {
        let common = self.repo.common_dir();
        let shared = match self.repo.is_reftable() {
            true => vec![common.join("reftable/tables.list.lock")],
            false => PACKED_REFS_FILES.iter().map(|name| common.join(name)).collect(),
        };
        for file in shared {
            if !self.locks_with_expected_text.iter().any(|(known, _)| *known == file) {
                self.locks_with_expected_text.push((file, None));
            }
        }
        self
    }

    /// Removes the added locks that are stale: they belong to the dead operation, stay unchanged for a while, and
    /// no living process may hold them. None is stale within [`Repo::clean_up_failure`] if no git was killed.
    /// Waits for processes that may hold one, up to the limit of [`Repo::set_lock_wait_limit`].
    ///
    /// # Errors
    /// [`Error::LockMayBeHeld`] when a process that may hold one of them is still running then; no lock was
    /// removed. Fails if a lock file cannot be removed.
    pub fn remove(self) -> Result<(), Error> {
        if self.repo.are_locks_live() {
            return Ok(());
        }
        let start = Instant::now();
        let stale =
            self.locks_with_expected_text.iter().filter(|(f, text)| self.is_stale(f, text.as_deref()));
        let mut locks: Vec<LockVersion<'_>> = stale.filter_map(|(f, _)| LockVersion::read(f)).collect();
        wait_for_change(&locks, start, MAX_TIME_STAMP_AGE);
        locks.retain(LockVersion::is_unchanged);
        if locks.is_empty() {
            return Ok(());
        }
        // A lock that has not changed since was created by a process of this list, or by one that has exited:
        // as long as it exists, no other process can create it.
        let ids: Vec<FileId> = locks.iter().map(|lock| lock.id).collect();
        let listed_holders = possible_lock_holders(self.repo.common_dir(), &ids);
        let min_time = match listed_holders {
            Some(_) => MIN_UNCHANGED_TIME,
            None => MIN_UNCHANGED_TIME_WITHOUT_LIST,
        };
        wait_for_change(&locks, start, min_time);
        let mut holders = listed_holders.unwrap_or_default();
        loop {
            // In this order: a process changes its lock before it exits or starts an editor.
            holders.retain(LockHolder::may_hold);
            locks.retain(LockVersion::is_unchanged);
            match (locks.first(), holders.first()) {
                (Some(lock), Some(holder))
                    if start.elapsed() >= self.repo.lock_wait_limit() || !interrupt::has_no_signal() =>
                {
                    let (lock, holder) = (lock.path.to_owned(), holder.description());
                    return Err(Error::LockMayBeHeld { lock, holder });
                }
                (Some(_), Some(_)) => std::thread::sleep(Duration::from_millis(10)),
                _ => break,
            }
        }
        locks
            .iter()
            .try_for_each(|lock| std::fs::remove_file(lock.path).map_err(Error::io("remove", lock.path)))
    }

    /// Returns whether a lock was created since the operation started, and holds nothing but `text` or a
    /// prefix of it. `None` accepts any content.
    fn is_stale(&self, file: &Path, text: Option<&[u8]>) -> bool {
        let Ok(meta) = file.symlink_metadata() else { return false };
        if !meta.modified().is_ok_and(|modified| modified >= self.started_at) {
            return false;
        }
        let Some(text) = text else { return true };
        std::fs::read(file).is_ok_and(|content| content.is_empty() || text.starts_with(&content))
    }
}

/// Lock file at one moment.
struct LockVersion<'a> {
    path: &'a Path,
    id: FileId,
    /// Time of the last change of the file or its properties: seconds and nanoseconds. A file system may give
    /// a new file the inode of one that was just removed.
    changed_at: (i64, i64),
}

impl LockVersion<'_> {
    /// Reads the version of the lock file at `path`; `None` if there is none.
    fn read(path: &Path) -> Option<LockVersion<'_>> {
        let meta = path.symlink_metadata().ok()?;
        let id = FileId::new(meta.dev(), meta.ino());
        Some(LockVersion { path, id, changed_at: (meta.ctime(), meta.ctime_nsec()) })
    }

    /// Returns whether the file still exists, and no process has changed or replaced it.
    fn is_unchanged(&self) -> bool {
        LockVersion::read(self.path).is_some_and(|now| (now.id, now.changed_at) == (self.id, self.changed_at))
    }
}

/// Waits until none of the locks is as it was, or until `time` has passed since `start`.
fn wait_for_change(locks: &[LockVersion<'_>], start: Instant, time: Duration) {
    while start.elapsed() < time && locks.iter().any(LockVersion::is_unchanged) {
        std::thread::sleep(Duration::from_millis(5));
    }
}
