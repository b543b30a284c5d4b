//! Copy of a settings file: several changes are made in it, and then it replaces the file as a whole.
//!
//! The copy is `config.git-proq-PID`. git's lock on the file, `config.lock`, is held only for the replacement, and
//! is a hard link to the copy, which no lock of git is. Its process holds a kernel lock on the copy. So what a
//! killed process left can be recognized: an unlocked copy, and a `config.lock` that is the same file.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use proq_base::process::identity::has_process_exited;
use proq_base::regular_file;
use proq_base::regular_file::LinkPolicy;

use crate::Error;
use crate::base::lock_file::{FileId, is_same_file};

/// Part of a copy's name between the name of the file and the id of the process.
const COPY_INFIX: &str = ".git-proq-";

/// End of the name of git's lock on a settings file.
const LOCK_SUFFIX: &str = ".lock";

/// Age after which no git is still writing its lock on a copy, for which it takes milliseconds.
const MAX_WRITE_TIME: Duration = Duration::from_hours(1);

/// Copy of a settings file that replaces it as a whole.
pub(super) struct SettingsCopy {
    path: PathBuf,
    copy: PathBuf,
    /// Content of the file when it was copied.
    original: Vec<u8>,
    /// The copy as it was created, with a kernel lock where the file system has them.
    _locked_copy: File,
}

impl SettingsCopy {
    /// Copies the file at `path`, which need not exist.
    pub fn create(path: &Path) -> Result<SettingsCopy, Error> {
        let copy = beside(path, &format!("{COPY_INFIX}{}", std::process::id()));
        let original = read_or_empty(path)?;
        let mode = path.metadata().map_or(0o666, |meta| meta.mode() & 0o777);
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&copy)
            .map_err(Error::io("create", &copy))?;
        drop(file.try_lock());
        let copied = file.write_all(&original).and_then(|()| match path.metadata() {
            // The umask does not apply to a copy.
            Ok(_) => file.set_permissions(PermissionsExt::from_mode(mode)),
            Err(_) => Ok(()),
        });
        let copy = SettingsCopy { path: path.to_owned(), copy, original, _locked_copy: file };
        copied.map(|()| copy).map_err(Error::io("copy", path))
    }

    /// Returns the path of the copy.
    pub fn file(&self) -> &Path {
        &self.copy
    }

    /// Replaces the file, unless another process has changed it since or holds its lock.
    pub fn commit(self) -> Result<(), Error> {
        // git has put another file in place of the copy.
        let finished = File::open(&self.copy).map_err(Error::io("open", &self.copy))?;
        let is_locked = finished.try_lock().is_ok();
        let lock = beside(&self.path, LOCK_SUFFIX);
        self.take_git_lock(&lock, is_locked).map_err(Error::io("create", &lock))?;
        proq_base::fail_points::hit("settings.locked");
        let replace = || {
            if !read_or_empty(&self.path).is_ok_and(|now| now == self.original) {
                return Err(std::io::Error::other("another process changed it at the same time"));
            }
            // git leaves that to the file system; a power cut must not empty the file.
            File::open(&lock)?.sync_all()?;
            std::fs::rename(&lock, &self.path)
        };
        replace().inspect_err(|_| drop(std::fs::remove_file(&lock))).map_err(Error::io("write", &self.path))
    }

    /// Creates git's lock with the content of the copy: a link to it if other processes can see that the copy is
    /// in use, and the file system has links.
    fn take_git_lock(&self, lock: &Path, is_locked: bool) -> std::io::Result<()> {
        if is_locked {
            match std::fs::hard_link(&self.copy, lock) {
                Err(e) if e.kind() != ErrorKind::AlreadyExists => {}
                linked => return linked,
            }
        }
        OpenOptions::new().write(true).create_new(true).open(lock)?;
        let copied = std::fs::copy(&self.copy, lock).map(drop);
        copied.inspect_err(|_| drop(std::fs::remove_file(lock)))
    }
}

impl Drop for SettingsCopy {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.copy));
    }
}

/// Removes what killed processes left beside the settings file at `path`: their copies, which are in no use, and
/// git's lock on the file if it is a link to one of them. What cannot be removed is left to a later command.
pub(super) fn remove_leftovers(path: &Path) {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else { return };
    let prefix = [name.as_bytes(), COPY_INFIX.as_bytes()].concat();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let entry_name = entry.file_name();
        let Some(suffix) = entry_name.as_bytes().strip_prefix(prefix.as_slice()) else { continue };
        let Ok(suffix) = std::str::from_utf8(suffix) else { continue };
        let has_exited = |pid: &str| {
            pid.parse().is_ok_and(|pid: u32| pid == std::process::id() || has_process_exited(pid))
        };
        match suffix.strip_suffix(LOCK_SUFFIX) {
            None if has_exited(suffix) => remove_unused_copy(&entry.path(), &beside(path, LOCK_SUFFIX)),
            Some(pid) if has_exited(pid) => remove_abandoned_lock(&entry.path()),
            _ => {}
        }
    }
}

/// Removes a copy that no process has locked, and first `lock` if that is the same file.
fn remove_unused_copy(copy: &Path, lock: &Path) {
    let opened = regular_file::open(copy, LinkPolicy::Refuse);
    let Ok((file, _)) = opened else { return };
    // Another process may have removed the copy since it was listed, and a third may have git's lock by now.
    if file.try_lock().is_err() || FileId::of(&file) != FileId::read(copy) {
        return;
    }
    if is_same_file(copy, lock) && std::fs::remove_file(lock).is_err() {
        return;
    }
    drop(std::fs::remove_file(copy));
}

/// Removes git's lock on a copy, unless a git that has survived git-proq may still write it.
fn remove_abandoned_lock(lock: &Path) {
    let modified = lock.symlink_metadata().and_then(|meta| meta.modified()).ok();
    if modified.and_then(|at| at.elapsed().ok()).is_some_and(|age| age > MAX_WRITE_TIME) {
        drop(std::fs::remove_file(lock));
    }
}

/// Returns the path of a file beside `path`, with `suffix` behind its name.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    path.with_file_name(name)
}

/// Returns the content of a file; nothing if it does not exist.
fn read_or_empty(path: &Path) -> Result<Vec<u8>, Error> {
    match std::fs::read(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        read => read.map_err(Error::io("read", path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copy_in_use_and_foreign_lock_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let (config, lock) = (dir.path().join("config"), dir.path().join("config.lock"));
        std::fs::write(&config, "a").unwrap();
        let copy = SettingsCopy::create(&config).unwrap();
        copy.take_git_lock(&lock, true).unwrap();
        remove_leftovers(&config);
        assert!(lock.exists() && copy.file().exists());

        let left = copy.file().to_owned();
        drop(copy);
        std::fs::write(&left, "a").unwrap();
        remove_leftovers(&config);
        assert!(lock.exists() && !left.exists(), "another file has the lock");
    }

    #[test]
    fn only_an_old_lock_on_a_copy_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let config = dir.path().join("config");
        let lock = dir.path().join(format!("config.git-proq-{}.lock", u32::MAX - 1));
        let file = File::create(&lock).unwrap();
        remove_leftovers(&config);
        assert!(lock.exists());
        file.set_modified(std::time::SystemTime::now() - 2 * MAX_WRITE_TIME).unwrap();
        remove_leftovers(&config);
        assert!(!lock.exists());
    }
}
