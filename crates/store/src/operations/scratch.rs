//! Scratch folders for work in progress. Each belongs to one live process, which holds a kernel lock on it.

use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::Error;
use crate::base::atomic::create_private_dir;
use crate::base::file_tree::remove_tree;
use crate::base::id::new_id;
use crate::paths::layout::Layout;

/// Number of attempts to create a folder that another process removes before it is locked.
const MAX_CREATE_ATTEMPTS: u32 = 10;

/// Folders that this process holds. A kernel lock does not name its holder.
static HELD_DIRS: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Folder for work in progress. It is removed with its contents when the value is dropped, unless it is
/// retained.
#[derive(Debug)]
#[must_use]
pub struct ScratchDir {
    layout: Layout,
    dir: PathBuf,
    /// Open folder whose kernel lock shows other processes that this one is alive.
    _alive: File,
    /// Whether dropping this value leaves the folder in place.
    is_retained: bool,
}

impl Layout {
    /// Creates an empty scratch folder and locks it.
    pub fn create_scratch(&self) -> Result<ScratchDir, Error> {
        create_private_dir(&self.scratch_root())?;
        for _ in 1..MAX_CREATE_ATTEMPTS {
            let dir = self.scratch_root().join(new_id());
            std::fs::create_dir(&dir).map_err(Error::io("create", &dir))?;
            // Git needs absolute paths without links; the path of a temporary folder often has one. Between
            // these two lines, a process that removes abandoned folders may have removed this one.
            if let Some(scratch) = lock_scratch_dir(self, &dir.canonicalize().unwrap_or(dir))? {
                return Ok(scratch);
            }
        }
        Err(Error::io("hold a folder in", &self.scratch_root())(std::io::ErrorKind::NotFound.into()))
    }

    /// Locks the scratch folders whose process has exited, and returns them, oldest first.
    pub fn claim_orphans(&self) -> Result<Vec<ScratchDir>, Error> {
        let work = self.scratch_root();
        let entries = match std::fs::read_dir(&work) {
            Ok(entries) => entries,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(Error::io("read", &work)(e)),
        };
        let mut dirs: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
        dirs.sort();
        let mut out = Vec::new();
        for dir in dirs {
            out.extend(lock_scratch_dir(self, &dir.canonicalize().unwrap_or(dir))?);
        }
        Ok(out)
    }
}

impl Layout {
    /// Lists the scratch folders whose process is alive.
    pub fn live_scratch_dirs(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.scratch_root()).into_iter().flatten().flatten();
        let is_locked = |dir: &PathBuf| {
            File::open(dir).is_ok_and(|f| matches!(f.try_lock_shared(), Err(TryLockError::WouldBlock)))
        };
        entries.map(|e| e.path()).filter(is_locked).collect()
    }

    /// Lists the scratch folders of other live processes.
    pub fn other_live_scratch_dirs(&self) -> Vec<PathBuf> {
        let mut dirs = self.live_scratch_dirs();
        let held_dirs = HELD_DIRS.lock().unwrap_or_else(PoisonError::into_inner);
        dirs.retain(|dir| !dir.canonicalize().is_ok_and(|dir| held_dirs.contains(&dir)));
        dirs
    }
}

/// Locks a scratch folder. None when another process holds it or it does not exist any more.
fn lock_scratch_dir(layout: &Layout, dir: &Path) -> Result<Option<ScratchDir>, Error> {
    let Ok(alive) = File::open(dir) else { return Ok(None) };
    match alive.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(e)) => return Err(Error::io("lock", dir)(e)),
    }
    let locked_meta = alive.metadata().map_err(Error::io("inspect", dir))?;
    let is_same_dir =
        dir.symlink_metadata().is_ok_and(|m| (m.dev(), m.ino()) == (locked_meta.dev(), locked_meta.ino()));
    Ok(is_same_dir.then(|| {
        HELD_DIRS.lock().unwrap_or_else(PoisonError::into_inner).insert(dir.to_owned());
        ScratchDir { layout: layout.clone(), dir: dir.to_owned(), _alive: alive, is_retained: false }
    }))
}

impl ScratchDir {
    /// Returns the absolute path of the folder.
    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// Returns the paths of the store that contains the folder.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Prevents the removal of the folder when this value is dropped: it holds what the next command needs
    /// for recovery.
    pub fn retain(&mut self) {
        self.is_retained = true;
    }

    /// Creates a subfolder.
    pub fn create_subdir(&self, name: &str) -> Result<PathBuf, Error> {
        let dir = self.dir.join(name);
        std::fs::create_dir_all(&dir).map_err(Error::io("create", &dir))?;
        Ok(dir)
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        // Copies may have left read-only folders.
        if !self.is_retained && std::fs::remove_dir_all(&self.dir).is_err() {
            drop(remove_tree(&self.dir));
        }
        HELD_DIRS.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.dir);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unlocked_dir_is_orphan() {
        let root = tempfile::tempdir().unwrap();
        let layout = Layout::new(root.path());
        assert!(layout.claim_orphans().unwrap().is_empty());
        let mine = layout.create_scratch().unwrap();
        assert!(layout.claim_orphans().unwrap().is_empty());
        std::fs::create_dir(layout.scratch_root().join("left")).unwrap();
        let orphans = layout.claim_orphans().unwrap();
        assert_eq!(orphans.len(), 1);
        assert_eq!((layout.live_scratch_dirs().len(), layout.other_live_scratch_dirs().len()), (2, 0));
        assert!(layout.claim_orphans().unwrap().is_empty(), "an orphan has one finder");
        drop(orphans);
        let path = mine.path().to_owned();
        drop(mine);
        assert!(!path.exists() && std::fs::read_dir(layout.scratch_root()).unwrap().next().is_none());
    }
}
