//! Lock of git on a worktree's index, and the new index that it holds.

use std::cell::Cell;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::scratch_index::INDEX_NAME;
use crate::base::lock_file::{create_linked_lock_file, is_same_file};
use crate::repository::worktree_context::WorktreeContext;
use crate::{Error, Repo};

/// Time for which git-proq waits while another git command holds the index lock.
const LOCK_WAIT_LIMIT: Duration = Duration::from_secs(3);

/// New index that will replace a worktree's index.
pub(crate) enum NewIndex {
    /// Path of a file with the new index.
    InFile(PathBuf),
    /// Bytes of the new index, and the modification time for its file.
    InMemory(Vec<u8>, SystemTime),
}

impl NewIndex {
    /// Returns the bytes of the new index, and the modification time for its file.
    fn read(self) -> Result<(Vec<u8>, SystemTime), Error> {
        match self {
            NewIndex::InFile(path) => read_bytes_and_time(&path),
            NewIndex::InMemory(bytes, time) => Ok((bytes, time)),
        }
    }
}

/// Returns the path of the new index that a step with this scratch folder had staged in its lock, if the lock
/// was deleted since; `None` if nothing was staged. Renames the file, because a new lock needs its name.
pub(crate) fn rescue_staged_index(scratch: &Path) -> Result<Option<PathBuf>, Error> {
    let (mark, scratch_index) = (scratch.join(LOCK_MARK_NAME), scratch.join(INDEX_NAME));
    // A new lock needs the mark's name.
    if holds_index(&mark) {
        std::fs::rename(&mark, &scratch_index).map_err(Error::io("rename", &mark))?;
    }
    Ok(holds_index(&scratch_index).then_some(scratch_index))
}

/// Identity of one version of a file. A content hash cannot identify it: with `index.skipHash` the trailer is
/// zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct FileVersion {
    inode: u64,
    size: u64,
    /// Modification time: full seconds since 1970.
    mtime_seconds: i64,
    /// Modification time: nanoseconds within the second.
    mtime_nanos: i64,
}

impl FileVersion {
    /// Reads the version of a file; `None` if the file does not exist.
    pub fn read(path: &Path) -> Result<Option<FileVersion>, Error> {
        match std::fs::symlink_metadata(path) {
            Ok(m) => Ok(Some(FileVersion {
                inode: m.ino(),
                size: m.size(),
                mtime_seconds: m.mtime(),
                mtime_nanos: m.mtime_nsec(),
            })),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(Error::io("inspect", path)(e)),
        }
    }
}

/// Name in a step's scratch folder of the file to which `index.lock` is a hard link.
const LOCK_MARK_NAME: &str = "mark-index";
/// Name of the mark file once it holds the complete new index and is about to be renamed into place.
const READY_MARK_NAME: &str = "mark-index-ready";

/// Status of the index lock that a step acquired, as any process can detect it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IndexLockState {
    /// The lock is held, and does not contain the new index yet.
    Held,
    /// The lock is held, and contains the complete new index.
    Ready,
    /// The lock file was renamed to the index.
    Installed,
    /// The lock was released, never acquired, or deleted by another process.
    Absent,
}

/// Returns the status of the index lock that a step with this scratch folder acquired.
pub(crate) fn index_lock_state(git_dir: &Path, scratch: &Path) -> IndexLockState {
    let lock = git_dir.join("index.lock");
    let (mark, ready) = (scratch.join(LOCK_MARK_NAME), scratch.join(READY_MARK_NAME));
    if ready.exists() {
        if is_same_file(&ready, &lock) { IndexLockState::Ready } else { IndexLockState::Installed }
    } else if is_same_file(&mark, &lock) {
        IndexLockState::Held
    } else {
        IndexLockState::Absent
    }
}

/// Returns whether a lock file contains an index rather than only the name of its owner.
pub(crate) fn holds_index(lock: &Path) -> bool {
    let mut signature = [0; 4];
    File::open(lock).and_then(|mut f| f.read_exact(&mut signature)).is_ok() && &signature == b"DIRC"
}

/// Finishes or reverts what a killed process did with the index lock. A complete new index is renamed into
/// place; otherwise the lock is removed. Returns whether the new index is in place.
pub(crate) fn recover_index_lock(git_dir: &Path, scratch: &Path) -> Result<bool, Error> {
    let (lock, index) = (git_dir.join("index.lock"), git_dir.join("index"));
    match index_lock_state(git_dir, scratch) {
        IndexLockState::Held => {
            std::fs::remove_file(&lock).map_err(Error::io("remove", &lock)).map(|()| false)
        }
        IndexLockState::Ready => {
            std::fs::rename(&lock, &index).map_err(Error::io("replace", &index)).map(|()| true)
        }
        IndexLockState::Installed => Ok(true),
        IndexLockState::Absent => Ok(false),
    }
}

impl Repo {
    /// Returns the error for a worktree whose index is locked, also by a git that was killed; `None` if it is
    /// not locked.
    pub fn index_lock_error(&self, dir: &Path) -> Option<Error> {
        let lock = self.worktree_git_dir(dir).ok()?.join("index.lock");
        lock.symlink_metadata().ok().map(|_| Error::IndexLocked { dir: dir.to_owned(), lock })
    }
}

/// Git's own lock on one worktree's index. While it is held, no other `add`, `commit` or `switch` can start.
#[must_use]
pub(crate) struct IndexLock {
    dir: PathBuf,
    /// Path of the index.
    index_path: PathBuf,
    /// Path of `index.lock`.
    lock_path: PathBuf,
    /// Scratch folder of the step, with the file that the lock is a hard link to.
    scratch: PathBuf,
    /// Open lock file, to which the new index is written.
    lock_file: File,
    /// Inode of the lock file, by which a replaced lock is detected.
    lock_inode: u64,
    /// Version of the index when the lock was acquired; `None` if there was no index.
    initial_index_version: Option<FileVersion>,
    /// Whether the lock file stays when this value is dropped.
    keep_on_drop: Cell<bool>,
}

impl IndexLock {
    /// Acquires `index.lock` in `git_dir`, and waits briefly for the `git status` of an editor to finish. The
    /// lock is a hard link to a file in `scratch`, so that every process can recognize it from its first
    /// moment on.
    pub fn acquire(dir: &Path, git_dir: &Path, scratch: &Path) -> Result<IndexLock, Error> {
        let (index, lock) = (git_dir.join("index"), git_dir.join("index.lock"));
        let started = Instant::now();
        let file = loop {
            match create_linked_lock_file(&lock, &scratch.join(LOCK_MARK_NAME)) {
                Ok(file) => break file,
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
                    if started.elapsed() > LOCK_WAIT_LIMIT {
                        return Err(Error::IndexLocked { dir: dir.to_owned(), lock });
                    }
                    std::thread::sleep(Duration::from_millis(10));
                }
                Err(e) => return Err(Error::io("create", &lock)(e)),
            }
        };
        let inode = file.metadata().map_err(Error::io("inspect", &lock))?.ino();
        let mut held = IndexLock {
            dir: dir.to_owned(),
            index_path: index,
            lock_path: lock,
            scratch: scratch.to_owned(),
            lock_file: file,
            lock_inode: inode,
            initial_index_version: None,
            keep_on_drop: Cell::new(false),
        };
        held.initial_index_version = FileVersion::read(&held.index_path)?;
        Ok(held)
    }

    /// Acquires the lock of a tree's index as [`IndexLock::acquire`] does, and gives its file the permissions
    /// that `core.sharedRepository` requires.
    pub(crate) fn acquire_with_sharing(tree: &WorktreeContext<'_>) -> Result<IndexLock, Error> {
        let held = IndexLock::acquire(tree.dir, &tree.git_dir, tree.scratch)?;
        tree.repo.sharing().adjust_open_file(&held.lock_file).map_err(Error::io("write", &held.lock_path))?;
        Ok(held)
    }

    /// Returns the path of the index that this lock protects.
    pub fn index(&self) -> &Path {
        &self.index_path
    }

    /// Returns the version of the index from when the lock was acquired.
    pub(crate) fn initial_version(&self) -> Option<FileVersion> {
        self.initial_index_version
    }

    /// Writes `new_index` into the lock file and syncs it: everything that can fail happens before any
    /// rename. Refuses if the lock or the index was replaced, because users and agents delete lock files.
    pub fn stage(mut self, new_index: NewIndex) -> Result<StagedIndex, Error> {
        if !self.is_held() || FileVersion::read(&self.index_path)? != self.initial_index_version {
            return Err(Error::IndexReplaced { dir: self.dir.clone() });
        }
        let is_in_file = matches!(new_index, NewIndex::InFile(_));
        let (bytes, time) = new_index.read()?;
        write_bytes_and_time(&mut self.lock_file, &bytes, time)
            .map_err(Error::io("write", &self.lock_path))?;
        if !is_in_file && !is_same_file(&self.scratch.join(LOCK_MARK_NAME), &self.lock_path) {
            // Another process that deletes the lock would delete the only copy.
            let scratch_index = self.scratch.join(INDEX_NAME);
            let written = File::create(&scratch_index)
                .and_then(|mut file| write_bytes_and_time(&mut file, &bytes, time));
            written.map_err(Error::io("write", &scratch_index))?;
        }
        Ok(StagedIndex { lock: self, bytes, modified_at: time })
    }

    /// Replaces the index with `new_index` and releases the lock, where nothing else has to move.
    pub fn install(self, new_index: NewIndex) -> Result<(), Error> {
        self.stage(new_index)?.install()
    }

    /// Renames the lock to the index. From the first rename on, recovery knows that the new index is the
    /// right one.
    fn rename_into_place(&self) -> Result<(), Error> {
        let (mark, ready) = (self.scratch.join(LOCK_MARK_NAME), self.scratch.join(READY_MARK_NAME));
        // Without hard links, which some file systems lack, the lock cannot be recognized.
        let is_marked = std::fs::rename(&mark, &ready).is_ok();
        std::fs::rename(&self.lock_path, &self.index_path).map_err(|e| {
            // A lock that stays also keeps its mark, which makes recovery install it.
            if is_marked && !self.keep_on_drop.get() && std::fs::rename(&ready, &mark).is_err() {
                drop(std::fs::remove_file(&ready));
            }
            Error::io("replace", &self.index_path)(e)
        })
    }

    /// Returns whether `index.lock` is still the file that this value created.
    fn is_held(&self) -> bool {
        std::fs::symlink_metadata(&self.lock_path).is_ok_and(|m| m.ino() == self.lock_inode)
    }
}

/// Returns the content of a file and its modification time.
fn read_bytes_and_time(path: &Path) -> Result<(Vec<u8>, SystemTime), Error> {
    let mut bytes = Vec::new();
    let time = File::open(path).and_then(|mut f| {
        f.read_to_end(&mut bytes)?;
        f.metadata()?.modified()
    });
    time.map(|time| (bytes, time)).map_err(Error::io("read", path))
}

/// Replaces the content of an open file, and sets its modification time.
fn write_bytes_and_time(file: &mut File, bytes: &[u8], time: SystemTime) -> std::io::Result<()> {
    file.set_len(0)?;
    std::io::Seek::rewind(file)?;
    file.write_all(bytes)?;
    file.set_modified(time)?;
    file.sync_all()
}

/// Backup of a worktree's index from before git was run to change it.
pub(crate) struct IndexBackup {
    index_path: PathBuf,
    bytes: Vec<u8>,
    /// Modification time of the index file. Git uses it to detect which files may have changed since, so it
    /// is restored with the content.
    modified_at: SystemTime,
}

impl IndexBackup {
    /// Reads the index of the worktree with this git directory.
    ///
    /// # Errors
    /// Fails if the index cannot be read or does not exist.
    pub fn read(git_dir: &Path) -> Result<IndexBackup, Error> {
        let index = git_dir.join("index");
        read_bytes_and_time(&index).map(|(bytes, time)| IndexBackup {
            index_path: index,
            bytes,
            modified_at: time,
        })
    }

    /// Restores the index, unless its lock is held or `is_unchanged` reports that another process changed the
    /// index.
    pub fn restore(&self, repo: &crate::Repo, is_unchanged: impl Fn() -> bool) {
        let lock = self.index_path.with_extension("lock");
        let Ok(mut file) = File::options().write(true).create_new(true).open(&lock) else { return };
        let written = write_bytes_and_time(&mut file, &self.bytes, self.modified_at)
            .and_then(|()| repo.share_permissions(&lock));
        if !is_unchanged() || written.and_then(|()| std::fs::rename(&lock, &self.index_path)).is_err() {
            drop(std::fs::remove_file(&lock));
        }
    }
}

/// New index in the lock file, ready to be renamed into place.
#[must_use]
pub(crate) struct StagedIndex {
    lock: IndexLock,
    bytes: Vec<u8>,
    modified_at: SystemTime,
}

impl StagedIndex {
    /// Renames the new index into place, which also releases the lock.
    ///
    /// # Errors
    /// Returns [`Error::IndexReplaced`] if the lock or the index was replaced; then nothing was installed.
    pub fn install(self) -> Result<(), Error> {
        if !self.lock.is_held()
            || FileVersion::read(&self.lock.index_path)? != self.lock.initial_index_version
        {
            return Err(Error::IndexReplaced { dir: self.lock.dir.clone() });
        }
        self.lock.rename_into_place()
    }

    /// Installs the new index after the ref has moved and nothing can be undone. An index that another
    /// process wrote is copied to a sibling file, whose path is returned. (With the old index the next commit
    /// would revert what just moved.)
    pub(crate) fn install_over_foreign_index(self) -> Result<Option<PathBuf>, Error> {
        let IndexLock { index_path: index, initial_index_version: before, .. } = &self.lock;
        let mut saved_copy = None;
        if FileVersion::read(index)? != *before && index.exists() {
            let backup = index.with_file_name(format!("index.replaced-{}", std::process::id()));
            std::fs::copy(index, &backup).map_err(Error::io("copy the index to", &backup))?;
            saved_copy = Some(backup);
        }
        if self.lock.is_held() {
            // From here on the lock holds the only right index, whatever happens.
            self.lock.keep_on_drop.set(true);
            self.lock.rename_into_place()?;
            return Ok(saved_copy);
        }
        // Another process deleted the lock. A new file is renamed into place; a foreign lock stays with its
        // owner.
        let sibling = index.with_file_name(format!("index.proq-{}", std::process::id()));
        let written = File::create(&sibling).and_then(|mut f| {
            f.set_permissions(self.lock.lock_file.metadata()?.permissions())?;
            write_bytes_and_time(&mut f, &self.bytes, self.modified_at)
        });
        written.and_then(|()| std::fs::rename(&sibling, index)).map_err(Error::io("replace", index))?;
        Ok(saved_copy)
    }
}

impl Drop for IndexLock {
    fn drop(&mut self) {
        // After `install` the lock file is gone; a lock that another process created since must stay.
        if !self.keep_on_drop.get() && self.is_held() {
            drop(std::fs::remove_file(&self.lock_path));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::scratch_index::copy_with_mtime;

    /// Promise: worktree/replaced-index
    #[test]
    fn refuses_install_over_foreign_lock() {
        let dir = tempfile::tempdir().unwrap();
        let (index, next) = (dir.path().join("index"), dir.path().join("next"));
        std::fs::write(&index, "old").unwrap();
        std::fs::write(&next, "new").unwrap();
        let lock = IndexLock::acquire(dir.path(), dir.path(), dir.path()).unwrap();
        std::fs::remove_file(dir.path().join("index.lock")).unwrap();
        std::fs::write(dir.path().join("index.lock"), "theirs").unwrap();
        assert!(matches!(lock.install(NewIndex::InFile(next)), Err(Error::IndexReplaced { .. })));
        assert_eq!(std::fs::read(&index).unwrap(), b"old");
        assert_eq!(std::fs::read(dir.path().join("index.lock")).unwrap(), b"theirs");
    }

    /// Promise: worktree/replaced-index
    #[test]
    fn refuses_install_over_replaced_index() {
        let dir = tempfile::tempdir().unwrap();
        let (index, next) = (dir.path().join("index"), dir.path().join("next"));
        std::fs::write(&index, "old").unwrap();
        std::fs::write(&next, "new").unwrap();
        let lock = IndexLock::acquire(dir.path(), dir.path(), dir.path()).unwrap();
        std::fs::write(&index, "somebody's").unwrap();
        assert!(matches!(lock.install(NewIndex::InFile(next)), Err(Error::IndexReplaced { .. })));
        assert_eq!(std::fs::read(&index).unwrap(), b"somebody's");
        assert!(!dir.path().join("index.lock").exists());
    }

    #[test]
    fn copy_and_install_preserve_mtime() {
        let dir = tempfile::tempdir().unwrap();
        let (index, next) = (dir.path().join("index"), dir.path().join("next"));
        std::fs::write(&index, "old").unwrap();
        let past = std::time::SystemTime::now() - Duration::from_secs(100);
        File::options().write(true).open(&index).unwrap().set_modified(past).unwrap();
        copy_with_mtime(&index, &next).unwrap();
        assert_eq!(std::fs::metadata(&next).unwrap().modified().unwrap(), past);
        IndexLock::acquire(dir.path(), dir.path(), dir.path())
            .unwrap()
            .install(NewIndex::InFile(next))
            .unwrap();
        assert_eq!(std::fs::metadata(&index).unwrap().modified().unwrap(), past);
    }

    /// Promise: operations/stuck-step
    #[test]
    fn recovers_forced_install_that_failed() {
        let dir = tempfile::tempdir().unwrap();
        let (index, next) = (dir.path().join("index"), dir.path().join("next"));
        std::fs::write(&next, "DIRC new").unwrap();
        // A file cannot replace a folder.
        std::fs::create_dir(&index).unwrap();
        let staged = IndexLock::acquire(dir.path(), dir.path(), dir.path())
            .unwrap()
            .stage(NewIndex::InFile(next))
            .unwrap();
        assert!(staged.install_over_foreign_index().is_err());
        assert_eq!(index_lock_state(dir.path(), dir.path()), IndexLockState::Ready);
        std::fs::remove_dir(&index).unwrap();
        assert!(recover_index_lock(dir.path(), dir.path()).unwrap());
        assert_eq!(std::fs::read(&index).unwrap(), b"DIRC new");
    }
}
