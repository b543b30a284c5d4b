//! Owns the folders of what is under way: each belongs to one living process, which a kernel lock on it shows.

use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::{Error, Layout, layout, new_id, remove_tree};

/// How often a folder that was swept away under its maker is made anew.
const TRIES: u32 = 10;

/// The folders that this process holds: a lock does not tell whose it is.
static OWN: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// A folder for work in progress; removed with everything in it when the value is dropped.
#[derive(Debug)]
#[must_use]
pub(crate) struct Scratch {
    layout: Layout,
    dir: PathBuf,
    /// Its kernel lock is what tells others that this process lives.
    _alive: File,
    kept: bool,
}

impl Layout {
    /// Makes a new empty folder for work in progress.
    pub(crate) fn scratch(&self) -> Result<Scratch, Error> {
        layout::make_private(&self.work())?;
        for _ in 1..TRIES {
            let dir = self.work().join(new_id());
            std::fs::create_dir(&dir).map_err(Error::io("create", &dir))?;
            // git wants absolute paths without links; a temporary folder's path often has one. Whoever sweeps up after the
            // dead may have taken it for one of theirs, between these two lines.
            if let Some(scratch) = claim(self, &dir.canonicalize().unwrap_or(dir))? {
                return Ok(scratch);
            }
        }
        Err(Error::io("hold a folder in", &self.work())(std::io::ErrorKind::NotFound.into()))
    }

    /// The folders in `work/` whose process is gone, oldest first, each held by this process from now on.
    pub(crate) fn orphans(&self) -> Result<Vec<Scratch>, Error> {
        let work = self.work();
        let entries = match std::fs::read_dir(&work) {
            Ok(entries) => entries,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(Error::io("read", &work)(e)),
        };
        let mut dirs: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
        dirs.sort();
        let mut out = Vec::new();
        for dir in dirs {
            out.extend(claim(self, &dir.canonicalize().unwrap_or(dir))?);
        }
        Ok(out)
    }
}

impl Layout {
    /// The folders in `work/` whose process lives.
    pub(crate) fn at_work(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.work()).into_iter().flatten().flatten();
        let held = |dir: &PathBuf| {
            File::open(dir).is_ok_and(|f| matches!(f.try_lock_shared(), Err(TryLockError::WouldBlock)))
        };
        entries.map(|e| e.path()).filter(held).collect()
    }

    /// Those of other processes.
    pub(crate) fn at_work_elsewhere(&self) -> Vec<PathBuf> {
        let mut dirs = self.at_work();
        let own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
        dirs.retain(|dir| !dir.canonicalize().is_ok_and(|dir| own.contains(&dir)));
        dirs
    }
}

/// Locks a folder; none when somebody else holds it or it is gone.
fn claim(layout: &Layout, dir: &Path) -> Result<Option<Scratch>, Error> {
    let Ok(alive) = File::open(dir) else { return Ok(None) };
    match alive.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(e)) => return Err(Error::io("lock", dir)(e)),
    }
    let held = alive.metadata().map_err(Error::io("look at", dir))?;
    let there = dir.symlink_metadata().is_ok_and(|m| (m.dev(), m.ino()) == (held.dev(), held.ino()));
    Ok(there.then(|| {
        OWN.lock().unwrap_or_else(PoisonError::into_inner).insert(dir.to_owned());
        Scratch { layout: layout.clone(), dir: dir.to_owned(), _alive: alive, kept: false }
    }))
}

impl Scratch {
    /// Its path, absolute.
    pub(crate) fn path(&self) -> &Path {
        &self.dir
    }

    /// The layout that it lies in.
    pub(super) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Leaves it in place: it holds what the next command needs to put things right.
    pub(crate) fn keep(&mut self) {
        self.kept = true;
    }

    /// A new folder inside it.
    pub(crate) fn sub(&self, name: &str) -> Result<PathBuf, Error> {
        let dir = self.dir.join(name);
        std::fs::create_dir_all(&dir).map_err(Error::io("create", &dir))?;
        Ok(dir)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Copies may have left folders that are closed to writing.
        if !self.kept && std::fs::remove_dir_all(&self.dir).is_err() {
            drop(remove_tree(&self.dir));
        }
        OWN.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.dir);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_nobody_holds_is_an_orphan() {
        let root = tempfile::tempdir().unwrap();
        let layout = Layout::new(root.path());
        assert!(layout.orphans().unwrap().is_empty());
        let mine = layout.scratch().unwrap();
        assert!(layout.orphans().unwrap().is_empty());
        std::fs::create_dir(layout.work().join("left")).unwrap();
        let orphans = layout.orphans().unwrap();
        assert_eq!(orphans.len(), 1);
        assert_eq!((layout.at_work().len(), layout.at_work_elsewhere().len()), (2, 0));
        assert!(layout.orphans().unwrap().is_empty(), "an orphan has one finder");
        drop(orphans);
        let path = mine.path().to_owned();
        drop(mine);
        assert!(!path.exists() && std::fs::read_dir(layout.work()).unwrap().next().is_none());
    }
}
