//! Owns the lock files that a killed git leaves behind: which of them are a dead operation's, and taking those away.
//!
//! Called only when every process of that operation has ended. A lock can still be somebody else's, who took it since: it
//! is taken for the dead one's only if it says what that one would have written, or nothing yet, was made after it began,
//! and stays for as long as no living git holds a ref's lock.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::index::FileId;
use super::refs::HEADS;
use super::{Error, Oid, Repo};

/// How long a lock must stay unchanged. git holds a ref's lock for the time of a rename.
const STAYS: Duration = Duration::from_millis(150);
/// Files of a packed-refs file that is being written anew.
const PACKED: [&str; 2] = ["packed-refs.lock", "packed-refs.new"];

/// What a dead operation may have left locked.
pub(super) struct Stale<'a> {
    repo: &'a Repo,
    /// Locks made before this are older than the operation.
    since: SystemTime,
    /// Each lock file, and what the dead one would have written to it; none when that cannot be told.
    files: Vec<(PathBuf, Option<Vec<u8>>)>,
}

impl<'a> Stale<'a> {
    /// Looks for locks that were made since the folder `scratch` was.
    pub(super) fn since(repo: &'a Repo, scratch: &Path) -> Result<Stale<'a>, Error> {
        let made = scratch.metadata().map_err(Error::io("look at", scratch))?;
        // Where a file system cannot tell when a folder was made, when it was changed last has to do.
        let since = made.created().or_else(|_| made.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
        // File systems stamp with the time of the last tick.
        Ok(Stale { repo, since: since - Duration::from_millis(20), files: Vec::new() })
    }

    /// Adds the lock of a ref of all worktrees, which was to go to `new`.
    pub(super) fn and_ref(mut self, name: &str, new: Option<Oid>) -> Self {
        let text = new.map_or_else(Vec::new, |id| format!("{id}\n").into_bytes());
        self.files.push((self.repo.common_dir().join(format!("{name}.lock")), Some(text)));
        if name.starts_with(HEADS) {
            // For its log alone git locks a HEAD that names the branch, and writes nothing to that lock.
            self.files.push((self.repo.common_dir().join("HEAD.lock"), Some(Vec::new())));
        }
        self.and_shared()
    }

    /// Adds the lock of a ref that nobody else knows of, whatever it says.
    pub(super) fn and_own_ref(mut self, name: &str) -> Self {
        self.files.push((self.repo.common_dir().join(format!("{name}.lock")), None));
        self.and_shared()
    }

    /// Adds the lock of a worktree's HEAD, which was to hold `text`.
    pub(super) fn and_head(mut self, git_dir: &Path, text: String) -> Self {
        self.files.push((git_dir.join("HEAD.lock"), Some(text.into_bytes())));
        if self.repo.is_reftable() {
            self.files.push((git_dir.join("reftable/tables.list.lock"), None));
        }
        self.and_shared()
    }

    /// Adds the lock of what all refs are in together.
    pub(super) fn and_shared(mut self) -> Self {
        let common = self.repo.common_dir();
        let shared = match self.repo.is_reftable() {
            true => vec![common.join("reftable/tables.list.lock")],
            false => PACKED.iter().map(|name| common.join(name)).collect(),
        };
        for file in shared {
            if !self.files.iter().any(|(known, _)| *known == file) {
                self.files.push((file, None));
            }
        }
        self
    }

    /// Takes those away that are the dead operation's.
    pub(super) fn clear(self) -> Result<(), Error> {
        let since = Instant::now();
        let mine: Vec<&PathBuf> =
            self.files.iter().filter(|(f, text)| self.is_mine(f, text.as_deref())).map(|(f, _)| f).collect();
        if mine.is_empty() {
            return Ok(());
        }
        let held: Vec<(&PathBuf, FileId)> =
            mine.into_iter().filter_map(|f| Some((f, FileId::of(f)?))).collect();
        while since.elapsed() < STAYS && held.iter().any(|(f, id)| Some(*id) == FileId::of(f)) {
            std::thread::sleep(Duration::from_millis(5));
        }
        for (file, _) in held.iter().filter(|(f, id)| Some(*id) == FileId::of(f)) {
            std::fs::remove_file(file).map_err(Error::io("remove", file))?;
        }
        Ok(())
    }

    fn is_mine(&self, file: &Path, text: Option<&[u8]>) -> bool {
        let Ok(meta) = file.symlink_metadata() else { return false };
        if !meta.modified().is_ok_and(|made| made >= self.since) {
            return false;
        }
        let Some(text) = text else { return true };
        std::fs::read(file).is_ok_and(|there| there.is_empty() || text.starts_with(&there))
    }
}
