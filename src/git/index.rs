//! Owns the index file: copies that keep git's race detection intact, and git's own lock on it.

use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::transition::Tree;
use super::{Error, Repo};

/// How long a git command of somebody else may hold the index before we give up.
const PATIENCE: Duration = Duration::from_secs(3);

/// Copies an index. The copy gets the original's modification time: git compares that with the files' times to
/// know which entries could have changed in the same tick, and a younger copy would call edited files clean.
pub(super) fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    std::fs::copy(from, to).map_err(Error::io("copy the index to", to))?;
    let time = std::fs::metadata(from).and_then(|m| m.modified()).map_err(Error::io("look at", from))?;
    File::options()
        .write(true)
        .open(to)
        .and_then(|f| f.set_modified(time))
        .map_err(Error::io("set the time of", to))
}

/// Removes an index of our own that an earlier try may have left, and with it the lock of a git that was killed over it.
pub(super) fn forget(index: &Path) {
    let mut lock = index.as_os_str().to_owned();
    lock.push(".lock");
    drop(std::fs::remove_file(index));
    drop(std::fs::remove_file(lock));
}

/// An index that is to go in another's place.
pub(super) enum NewIndex {
    /// It lies there.
    At(PathBuf),
    /// It is nowhere yet; with the time that its file is to have.
    Of(Vec<u8>, SystemTime),
}

impl NewIndex {
    fn read(self) -> Result<(Vec<u8>, SystemTime), Error> {
        match self {
            NewIndex::At(path) => read_with_time(&path),
            NewIndex::Of(bytes, time) => Ok((bytes, time)),
        }
    }
}

/// Where the new index is that a step with this scratch folder had staged in a lock that somebody took away; none where it did
/// not come to that.
pub(super) fn left(scratch: &Path) -> Result<Option<PathBuf>, Error> {
    let (mark, other) = (scratch.join(INDEX_MARK), scratch.join(INDEX));
    // A new lock needs that name.
    if is_whole(&mark) {
        std::fs::rename(&mark, &other).map_err(Error::io("rename", &mark))?;
    }
    Ok(is_whole(&other).then_some(other))
}

/// The time by the clock that files in `dir`, which must be a scratch folder, are noted with.
pub(super) fn time_in(dir: &Path) -> Result<SystemTime, Error> {
    let file = dir.join("clock");
    drop(std::fs::remove_file(&file));
    let time = File::create_new(&file).and_then(|made| made.metadata()?.modified());
    time.map_err(Error::io("create", &file))
}

/// What identifies one version of a file. Content hashes do not: under `index.skipHash` the trailer is zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Version {
    inode: u64,
    size: u64,
    seconds: i64,
    nanos: i64,
}

impl Version {
    /// Looks at a file; none when it does not exist.
    pub(super) fn of(path: &Path) -> Result<Option<Version>, Error> {
        match std::fs::symlink_metadata(path) {
            Ok(m) => Ok(Some(Version {
                inode: m.ino(),
                size: m.size(),
                seconds: m.mtime(),
                nanos: m.mtime_nsec(),
            })),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(Error::io("look at", path)(e)),
        }
    }
}

/// The name in a step's folder of an index that git works on, or that has no other place there.
pub(super) const INDEX: &str = "index";
/// The name in a step's folder of the file that `index.lock` is a second name of.
const INDEX_MARK: &str = "mark-index";
/// What that file is called once the new index is in it, whole, and goes into place next.
const READY_MARK: &str = "mark-index-ready";

/// Makes a lock file that must not exist, as a second name of `mark` where the file system has such.
pub(super) fn lock_file(lock: &Path, mark: &Path) -> std::io::Result<File> {
    drop(std::fs::remove_file(mark));
    let mut file = OpenOptions::new().read(true).write(true).create_new(true).open(mark)?;
    file.write_all(format!("git-proq {}\n", std::process::id()).as_bytes())?;
    match std::fs::hard_link(mark, lock) {
        Ok(()) => Ok(file),
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => Err(e),
        Err(_) => OpenOptions::new().write(true).create_new(true).open(lock),
    }
}

/// Which file a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileId(u64, u64);

impl FileId {
    /// Looks at a name; none when nothing has it.
    pub(super) fn of(path: &Path) -> Option<FileId> {
        path.symlink_metadata().ok().map(|m| FileId(m.dev(), m.ino()))
    }
}

/// Whether two names are of one file.
pub(super) fn is_same_file(a: &Path, b: &Path) -> bool {
    FileId::of(a).is_some_and(|id| Some(id) == FileId::of(b))
}

/// What became of the index lock that a step took, seen from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LockFate {
    /// It is held still, and the new index is not in it yet.
    Held,
    /// It is held still, and the new index is in it, whole.
    Ready,
    /// It has become the index.
    Installed,
    /// It was given back, was never taken, or somebody took it away.
    Gone,
}

/// Looks at what became of the index lock that a step with this scratch folder took.
pub(super) fn lock_fate(git_dir: &Path, scratch: &Path) -> LockFate {
    let lock = git_dir.join("index.lock");
    let (mark, ready) = (scratch.join(INDEX_MARK), scratch.join(READY_MARK));
    if ready.exists() {
        if is_same_file(&ready, &lock) { LockFate::Ready } else { LockFate::Installed }
    } else if is_same_file(&mark, &lock) {
        LockFate::Held
    } else {
        LockFate::Gone
    }
}

/// Whether a lock file holds an index rather than only the name of its owner.
pub(super) fn is_whole(lock: &Path) -> bool {
    let mut start = [0; 4];
    File::open(lock).and_then(|mut f| f.read_exact(&mut start)).is_ok() && &start == b"DIRC"
}

/// Ends what a dead process had begun to do with the index lock: a new index that is whole goes into place, else the
/// lock is given back. Returns whether the new index is, or was, in place.
pub(super) fn settle_lock(git_dir: &Path, scratch: &Path) -> Result<bool, Error> {
    let (lock, index) = (git_dir.join("index.lock"), git_dir.join("index"));
    match lock_fate(git_dir, scratch) {
        LockFate::Held => std::fs::remove_file(&lock).map_err(Error::io("remove", &lock)).map(|()| false),
        LockFate::Ready => {
            std::fs::rename(&lock, &index).map_err(Error::io("replace", &index)).map(|()| true)
        }
        LockFate::Installed => Ok(true),
        LockFate::Gone => Ok(false),
    }
}

impl Repo {
    /// The error of a worktree whose index a git has locked, one that was killed included; none where it is free.
    pub(crate) fn index_lock(&self, dir: &Path) -> Option<Error> {
        let lock = self.git_dir_of(dir).ok()?.join("index.lock");
        lock.symlink_metadata().ok().map(|_| Error::IndexLocked { dir: dir.to_owned(), lock })
    }
}

/// Git's own lock on one worktree's index. While it is held no `add`, `commit` or `switch` of anybody begins.
#[must_use]
pub(super) struct IndexLock {
    dir: PathBuf,
    index: PathBuf,
    lock: PathBuf,
    scratch: PathBuf,
    file: File,
    inode: u64,
    before: Option<Version>,
    /// Dropping this leaves the lock in place.
    stays: Cell<bool>,
}

impl IndexLock {
    /// Takes `index.lock` below `git_dir`, waiting a little for a `git status` of an editor to end. The lock is a second
    /// name of a file in `scratch`, so that it is known as ours from its first moment on, whoever looks and whenever.
    pub(super) fn take(dir: &Path, git_dir: &Path, scratch: &Path) -> Result<IndexLock, Error> {
        let (index, lock) = (git_dir.join("index"), git_dir.join("index.lock"));
        let since = Instant::now();
        let file = loop {
            match lock_file(&lock, &scratch.join(INDEX_MARK)) {
                Ok(file) => break file,
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
                    if since.elapsed() > PATIENCE {
                        return Err(Error::IndexLocked { dir: dir.to_owned(), lock });
                    }
                    std::thread::sleep(Duration::from_millis(10));
                }
                Err(e) => return Err(Error::io("create", &lock)(e)),
            }
        };
        let inode = file.metadata().map_err(Error::io("look at", &lock))?.ino();
        let mut held = IndexLock {
            dir: dir.to_owned(),
            index,
            lock,
            scratch: scratch.to_owned(),
            file,
            inode,
            before: None,
            stays: Cell::new(false),
        };
        held.before = Version::of(&held.index)?;
        Ok(held)
    }

    /// Takes the lock of a tree's index as [`IndexLock::take`] does. The index that goes into place from it can be used by everybody
    /// who shares the repository.
    pub(super) fn of(tree: &Tree<'_>) -> Result<IndexLock, Error> {
        let held = IndexLock::take(tree.dir, &tree.git_dir, tree.scratch)?;
        tree.repo.sharing().adjust_open(&held.file).map_err(Error::io("write", &held.lock))?;
        Ok(held)
    }

    /// The index that this lock protects.
    pub(super) fn index(&self) -> &Path {
        &self.index
    }

    /// The index as it was when the lock was taken.
    pub(super) fn before(&self) -> Option<Version> {
        self.before
    }

    /// Writes `next` into the lock file and makes it durable: everything that can fail, before anything has moved.
    /// Refuses when the lock or the index was replaced meanwhile: people and agents delete lock files.
    pub(super) fn stage(mut self, next: NewIndex) -> Result<StagedIndex, Error> {
        if !self.is_ours() || Version::of(&self.index)? != self.before {
            return Err(Error::IndexReplaced { dir: self.dir.clone() });
        }
        let is_there = matches!(next, NewIndex::At(_));
        let (bytes, time) = next.read()?;
        write_whole(&mut self.file, &bytes, time).map_err(Error::io("write", &self.lock))?;
        if !is_there && !is_same_file(&self.scratch.join(INDEX_MARK), &self.lock) {
            // Whoever takes the lock away takes away the only one.
            let other = self.scratch.join(INDEX);
            let written = File::create(&other).and_then(|mut file| write_whole(&mut file, &bytes, time));
            written.map_err(Error::io("write", &other))?;
        }
        Ok(StagedIndex { lock: self, bytes, time })
    }

    /// Puts `next` in the index's place and releases the lock, where nothing else moves.
    pub(super) fn install(self, next: NewIndex) -> Result<(), Error> {
        self.stage(next)?.install()
    }

    /// The last step: from the first rename on it is known to whoever comes later that the new index is the right one.
    fn put_in_place(&self) -> Result<(), Error> {
        let (mark, ready) = (self.scratch.join(INDEX_MARK), self.scratch.join(READY_MARK));
        // Without a second name (not every file system has them) there is nothing to tell it by.
        let marked = std::fs::rename(&mark, &ready).is_ok();
        std::fs::rename(&self.lock, &self.index).map_err(|e| {
            // A lock that stays keeps its second name too: that tells whoever puts things right that it is to go in.
            if marked && !self.stays.get() && std::fs::rename(&ready, &mark).is_err() {
                drop(std::fs::remove_file(&ready));
            }
            Error::io("replace", &self.index)(e)
        })
    }

    fn is_ours(&self) -> bool {
        std::fs::symlink_metadata(&self.lock).is_ok_and(|m| m.ino() == self.inode)
    }
}

fn read_with_time(path: &Path) -> Result<(Vec<u8>, SystemTime), Error> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|mut f| {
        f.read_to_end(&mut bytes)?;
        f.metadata()?.modified()
    });
    read.map(|time| (bytes, time)).map_err(Error::io("read", path))
}

fn write_whole(file: &mut File, bytes: &[u8], time: SystemTime) -> std::io::Result<()> {
    file.set_len(0)?;
    std::io::Seek::rewind(file)?;
    file.write_all(bytes)?;
    file.set_modified(time)?;
    file.sync_all()
}

/// The index of a worktree as it was before git was asked to change it.
pub(super) struct FormerIndex {
    index: PathBuf,
    bytes: Vec<u8>,
    /// By its time git tells which files may have changed since, so it is part of it.
    time: SystemTime,
}

impl FormerIndex {
    /// Reads the index of the worktree whose git directory this is.
    ///
    /// # Errors
    /// When it cannot be read, as where there is none.
    pub(super) fn of(git_dir: &Path) -> Result<FormerIndex, Error> {
        let index = git_dir.join("index");
        read_with_time(&index).map(|(bytes, time)| FormerIndex { index, bytes, time })
    }

    /// Puts it in place again, unless somebody holds the lock of the index, or `is_ours` says that somebody has changed it.
    pub(super) fn put_back(&self, repo: &super::Repo, is_ours: impl Fn() -> bool) {
        let lock = self.index.with_extension("lock");
        let Ok(mut file) = File::options().write(true).create_new(true).open(&lock) else { return };
        let done = write_whole(&mut file, &self.bytes, self.time).and_then(|()| repo.share(&lock));
        if !is_ours() || done.and_then(|()| std::fs::rename(&lock, &self.index)).is_err() {
            drop(std::fs::remove_file(&lock));
        }
    }
}

/// A new index that waits in the lock file for one rename.
#[must_use]
pub(super) struct StagedIndex {
    lock: IndexLock,
    bytes: Vec<u8>,
    time: SystemTime,
}

impl StagedIndex {
    /// Renames it into place, which also releases the lock.
    ///
    /// # Errors
    /// [`Error::IndexReplaced`] when lock or index were replaced meanwhile; then nothing was installed.
    pub(super) fn install(self) -> Result<(), Error> {
        if !self.lock.is_ours() || Version::of(&self.lock.index)? != self.lock.before {
            return Err(Error::IndexReplaced { dir: self.lock.dir.clone() });
        }
        self.lock.put_in_place()
    }

    /// The same where the ref has moved and there is no way back: an index that somebody else put there meanwhile is
    /// kept beside it, and its name returned. (With the old index the next commit would revert what just moved.)
    pub(super) fn install_whatever(self) -> Result<Option<PathBuf>, Error> {
        let IndexLock { index, before, .. } = &self.lock;
        let mut kept = None;
        if Version::of(index)? != *before && index.exists() {
            let aside = index.with_file_name(format!("index.replaced-{}", std::process::id()));
            std::fs::copy(index, &aside).map_err(Error::io("copy the index to", &aside))?;
            kept = Some(aside);
        }
        if self.lock.is_ours() {
            // Whatever happens, what is in the lock is the only right index from here on.
            self.lock.stays.set(true);
            self.lock.put_in_place()?;
            return Ok(kept);
        }
        // Somebody deleted our lock. A new file of our own goes into place; another's lock is left to its owner.
        let beside = index.with_file_name(format!("index.proq-{}", std::process::id()));
        let written = File::create(&beside).and_then(|mut f| {
            f.set_permissions(self.lock.file.metadata()?.permissions())?;
            write_whole(&mut f, &self.bytes, self.time)
        });
        written.and_then(|()| std::fs::rename(&beside, index)).map_err(Error::io("replace", index))?;
        Ok(kept)
    }
}

impl Drop for IndexLock {
    fn drop(&mut self) {
        // After `install` the name is gone; a lock that somebody else made since is not ours to remove.
        if !self.stays.get() && self.is_ours() {
            drop(std::fs::remove_file(&self.lock));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_was_deleted_and_taken_by_another_is_not_installed_over() {
        let dir = tempfile::tempdir().unwrap();
        let (index, next) = (dir.path().join("index"), dir.path().join("next"));
        std::fs::write(&index, "old").unwrap();
        std::fs::write(&next, "new").unwrap();
        let lock = IndexLock::take(dir.path(), dir.path(), dir.path()).unwrap();
        std::fs::remove_file(dir.path().join("index.lock")).unwrap();
        std::fs::write(dir.path().join("index.lock"), "theirs").unwrap();
        assert!(matches!(lock.install(NewIndex::At(next)), Err(Error::IndexReplaced { .. })));
        assert_eq!(std::fs::read(&index).unwrap(), b"old");
        assert_eq!(std::fs::read(dir.path().join("index.lock")).unwrap(), b"theirs");
    }

    #[test]
    fn an_index_that_somebody_replaced_is_not_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let (index, next) = (dir.path().join("index"), dir.path().join("next"));
        std::fs::write(&index, "old").unwrap();
        std::fs::write(&next, "new").unwrap();
        let lock = IndexLock::take(dir.path(), dir.path(), dir.path()).unwrap();
        std::fs::write(&index, "somebody's").unwrap();
        assert!(matches!(lock.install(NewIndex::At(next)), Err(Error::IndexReplaced { .. })));
        assert_eq!(std::fs::read(&index).unwrap(), b"somebody's");
        assert!(!dir.path().join("index.lock").exists());
    }

    #[test]
    fn the_time_is_that_of_files_that_are_made_before_and_after() {
        let dir = tempfile::tempdir().unwrap();
        for n in 0..200 {
            let made = |name: &str| {
                File::create_new(dir.path().join(format!("{name}{n}")))
                    .unwrap()
                    .metadata()
                    .unwrap()
                    .modified()
                    .unwrap()
            };
            let (before, time, after) = (made("before"), time_in(dir.path()).unwrap(), made("after"));
            assert!(before <= time && time <= after, "{n}: {before:?} {time:?} {after:?}");
        }
    }

    #[test]
    fn the_copy_and_the_installed_index_keep_the_time() {
        let dir = tempfile::tempdir().unwrap();
        let (index, next) = (dir.path().join("index"), dir.path().join("next"));
        std::fs::write(&index, "old").unwrap();
        let past = std::time::SystemTime::now() - Duration::from_secs(100);
        File::options().write(true).open(&index).unwrap().set_modified(past).unwrap();
        copy(&index, &next).unwrap();
        assert_eq!(std::fs::metadata(&next).unwrap().modified().unwrap(), past);
        IndexLock::take(dir.path(), dir.path(), dir.path()).unwrap().install(NewIndex::At(next)).unwrap();
        assert_eq!(std::fs::metadata(&index).unwrap().modified().unwrap(), past);
    }

    #[test]
    fn an_index_that_must_go_in_and_cannot_yet_is_known_to_whoever_comes_later() {
        let dir = tempfile::tempdir().unwrap();
        let (index, next) = (dir.path().join("index"), dir.path().join("next"));
        std::fs::write(&next, "DIRC new").unwrap();
        // No file can go to where a folder is.
        std::fs::create_dir(&index).unwrap();
        let staged =
            IndexLock::take(dir.path(), dir.path(), dir.path()).unwrap().stage(NewIndex::At(next)).unwrap();
        assert!(staged.install_whatever().is_err());
        assert_eq!(lock_fate(dir.path(), dir.path()), LockFate::Ready);
        std::fs::remove_dir(&index).unwrap();
        assert!(settle_lock(dir.path(), dir.path()).unwrap());
        assert_eq!(std::fs::read(&index).unwrap(), b"DIRC new");
    }
}
