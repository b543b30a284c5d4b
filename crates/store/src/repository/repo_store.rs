//! Store of one repository: the paths and locks below its `proq` directory.

use std::path::{Path, PathBuf};

use proq_base::diagnostics::Listener;

use crate::Error;
use crate::locks::lock::{Locks, WaitLimit};
use crate::paths::layout::Layout;

/// Store of one repository: its paths and locks.
#[derive(Debug, Clone)]
pub struct Store {
    layout: Layout,
    locks: Locks,
}

impl Store {
    /// Opens the store below `common_dir`. Nothing is written.
    pub fn open(common_dir: &Path, listener: Listener) -> Store {
        let layout = Layout::new(common_dir);
        let locks = Locks::new(layout.locks_dir(), listener);
        Store { layout, locks }
    }

    /// Refuses a store that is a symbolic link or has one as an entry: git-proq reads and writes nothing
    /// through it. A missing store is accepted.
    ///
    /// # Errors
    /// Fails with [`Error::SymbolicLink`].
    pub fn refuse_links(common_dir: &Path) -> Result<(), Error> {
        let root = Layout::new(common_dir).root().to_owned();
        let refuse = |path: PathBuf| Err(Error::SymbolicLink { path });
        if root.symlink_metadata().is_ok_and(|meta| meta.is_symlink()) {
            return refuse(root);
        }
        let Ok(entries) = std::fs::read_dir(&root) else { return Ok(()) };
        let mut entries = entries.flatten();
        match entries.find(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink())) {
            Some(link) => refuse(link.path()),
            None => Ok(()),
        }
    }

    /// Sets the timeout for locks.
    pub fn set_lock_limit(&mut self, limit: WaitLimit) {
        self.locks.set_default_limit(limit);
    }

    /// Returns the paths of the store.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the locks of the store.
    pub fn locks(&self) -> &Locks {
        &self.locks
    }
}
