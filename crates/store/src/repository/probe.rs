//! Probes of the store for the health check: entries, unfinished files, permissions and file system features.

use std::fs::{File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with, statvfs};

use crate::Error;
use crate::base::file_access::may_exist;
use crate::base::id::{new_id, pid_from_id};
use crate::locks::lock::{LockName, Locks};
use crate::paths::layout::Layout;

/// Folder in the trash for unfinished files. The leading dot keeps it out of the trash's own entries.
const UNFINISHED_DIR: &str = ".unfinished";

/// Permission bits of everyone but the owner.
const GROUP_AND_OTHER_BITS: u32 = 0o077;

/// Features of a file system, as probed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileSystemFeatures {
    /// Whether a second attempt to lock a file is refused.
    pub locks: bool,
    /// Whether a rename can refuse to replace an existing file.
    pub rename_no_replace: bool,
    /// Whether a file can have two names.
    pub hard_links: bool,
    /// Whether `A` and `a` name the same file.
    pub ignores_case: bool,
    /// Whether a name with a combining accent and the same name with a precomposed letter are the same file.
    pub normalizes_accents: bool,
}

/// Ownership and privacy of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreAccess {
    /// Whether the store belongs to this user.
    pub is_owned: bool,
    /// Whether only the owner can open the store.
    pub is_private: bool,
}

impl Layout {
    /// Lists the entry names of a folder below `proq/` that has one item in each entry: those of lanes,
    /// removed lanes, snapshots, the trash or git guards. Names with a leading dot are left out, because they
    /// are temporary.
    pub fn entry_names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut out: Vec<String> = entries.filter_map(|e| e.file_name().into_string().ok()).collect();
        out.retain(|name| !name.starts_with('.'));
        out.sort();
        out
    }

    /// Returns the path of the record in an entry of the folder of all lanes, as [`Layout::entry_names`]
    /// lists it. The entry's name need not be valid for a lane.
    pub fn record_of_lane_entry(&self, entry_name: &str) -> PathBuf {
        Layout::lane_record_in(&self.lanes().join(entry_name))
    }

    /// Returns whether an entry of the folder `lanes` has a record, as [`Layout::has_lane_record`] does for a
    /// lane. The entry's name need not be valid for a lane.
    pub fn has_record_of_lane_entry(&self, entry_name: &str) -> bool {
        may_exist(&self.record_of_lane_entry(entry_name))
    }

    /// Lists the temporary files of interrupted writes, such as `.lane.toml.<id>`.
    pub fn unfinished_files(&self) -> Vec<PathBuf> {
        let mut out = Vec::new();
        collect_unfinished(self.root(), 0, &mut out);
        for (dir_name, depth) in [
            ("lanes", 2),
            ("history", 2),
            ("snaps", 1),
            ("trash", 1),
            ("cache", 1),
            ("plans", 1),
            ("needs", 0),
            ("replaced", 0),
        ] {
            collect_unfinished(&self.root().join(dir_name), depth, &mut out);
        }
        out.sort();
        out
    }

    /// Moves an unfinished file to the trash, where it stays readable.
    pub fn park_unfinished_file(&self, file: &Path) -> Result<(), Error> {
        std::fs::rename(file, self.new_parked_path(file)?).map_err(Error::io("move aside", file))
    }

    /// Returns a free path for a file in the trash. The file stays readable there until the trash expires.
    pub fn new_parked_path(&self, file: &Path) -> Result<PathBuf, Error> {
        let dir = self.trash().join(UNFINISHED_DIR);
        crate::base::atomic::create_private_dir(&dir)?;
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        Ok(dir.join(format!("{}-{}", name.trim_start_matches('.'), new_id())))
    }

    /// Lists the unfinished files that were moved to the trash.
    pub fn parked_unfinished_files(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.trash().join(UNFINISHED_DIR)).into_iter().flatten().flatten();
        let mut out: Vec<PathBuf> = entries.map(|e| e.path()).collect();
        out.sort();
        out
    }

    /// Restricts `proq/` to its owner.
    pub fn restrict_to_owner(&self) -> Result<(), Error> {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(self.root(), mode).map_err(Error::io("close to others", self.root()))
    }

    /// Returns the ownership and privacy of `proq/`; none when it does not exist.
    pub fn store_access(&self) -> Option<StoreAccess> {
        let meta = std::fs::metadata(self.root()).ok()?;
        let is_owned = meta.uid() == rustix::process::geteuid().as_raw();
        Some(StoreAccess { is_owned, is_private: (meta.mode() & GROUP_AND_OTHER_BITS) == 0 })
    }
}

/// Adds the temporary files of a folder, and of its subfolders down to `depth` levels, to `out`.
fn collect_unfinished(dir: &Path, depth: usize, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth > 0 && !name.starts_with('.') => {
                collect_unfinished(&entry.path(), depth - 1, out);
            }
            Ok(kind) if kind.is_file() && name.starts_with('.') && pid_from_id(&name).is_some() => {
                out.push(entry.path());
            }
            _ => {}
        }
    }
}

impl Locks {
    /// Returns whether a command is running right now: it holds one of the locks that are held for a short
    /// time. Tickets do not count, because landings and waiting processes hold them for long.
    pub fn is_any_command_lock_held(&self) -> bool {
        let store = self.lock_path(&LockName::Store);
        let dir = store.parent().unwrap_or(Path::new(""));
        std::fs::read_dir(dir).into_iter().flatten().flatten().any(|entry| {
            let path = entry.path();
            path.extension().is_some_and(|e| e == "lock") && is_locked(&path)
        })
    }
}

/// Returns whether a process holds the lock on a file; false if the file cannot be opened.
fn is_locked(path: &Path) -> bool {
    proq_base::regular_file::open_store_file(path)
        .is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// Probes the features of the file system of `dir`, in a temporary folder.
pub fn probe_file_system(dir: &Path) -> std::io::Result<FileSystemFeatures> {
    let probe_dir = dir.join(format!(".proq-probe-{}", new_id()));
    std::fs::create_dir(&probe_dir)?;
    let features = probe_in_dir(&probe_dir);
    std::fs::remove_dir_all(&probe_dir)?;
    features
}

/// Probes the features in an empty folder, which the caller removes.
fn probe_in_dir(dir: &Path) -> std::io::Result<FileSystemFeatures> {
    let (first_path, second_path) = (dir.join("a"), dir.join("b"));
    let first = File::create_new(&first_path)?;
    let second = File::open(&first_path)?;
    let locks = first.try_lock().is_ok() && matches!(second.try_lock(), Err(TryLockError::WouldBlock));
    let hard_links = std::fs::hard_link(&first_path, &second_path).is_ok();
    std::fs::write(&second_path, "")?;
    let rename_no_replace = renameat_with(CWD, &first_path, CWD, dir.join("c"), RenameFlags::NOREPLACE)
        .is_ok()
        && renameat_with(CWD, &second_path, CWD, dir.join("c"), RenameFlags::NOREPLACE).is_err();
    std::fs::write(dir.join("e\u{301}"), "")?;
    Ok(FileSystemFeatures {
        locks,
        rename_no_replace,
        hard_links,
        ignores_case: dir.join("B").exists(),
        normalizes_accents: dir.join("\u{e9}").exists(),
    })
}

/// Returns the bytes available to this user on the disk of `dir`; none when unknown.
pub fn free_space(dir: &Path) -> Option<u64> {
    statvfs(dir).ok().map(|fs| fs.f_bavail.saturating_mul(fs.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probe_leaves_no_files() {
        let dir = tempfile::tempdir().unwrap();
        let features = probe_file_system(dir.path()).unwrap();
        assert!(features.locks && features.hard_links, "{features:?}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        assert!(free_space(dir.path()).is_some());
    }
}
