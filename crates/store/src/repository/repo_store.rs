//! Store of one repository: the paths and locks below its `proq` directory.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proq_base::diagnostics::Listener;
use proq_base::regular_file::{MAX_STORE_FILE_BYTES, MAX_TOML_RECORD_BYTES};

use crate::Error;
use crate::base::record::Record;
use crate::base::record_cache::RecordCache;
use crate::locks::lock::{Locks, WaitLimit};
use crate::paths::layout::Layout;

/// Store of one repository: its paths, locks and records.
#[derive(Debug, Clone)]
pub struct Store {
    layout: Layout,
    locks: Locks,
    records: Arc<RecordCache>,
}

impl Store {
    /// Opens the store below `common_dir`. Nothing is written.
    pub fn open(common_dir: &Path, listener: Listener) -> Store {
        let layout = Layout::new(common_dir);
        let locks = Locks::new(layout.locks_dir(), listener);
        Store { layout, locks, records: Arc::default() }
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

    /// Refuses a `proq/` whose entries the user may not list, so that no part of the store can be read.
    ///
    /// # Errors
    /// [`Error::Io`] with the permission that is missing.
    pub fn require_readable(common_dir: &Path) -> Result<(), Error> {
        let root = Layout::new(common_dir).root().to_owned();
        match std::fs::read_dir(&root) {
            Err(source) if source.kind() == ErrorKind::PermissionDenied => {
                Err(Error::Io { verb: "read", path: root, source })
            }
            _ => Ok(()),
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

    /// Reads a record that may not exist, as [`Store::record_text`] does.
    ///
    /// # Errors
    /// Fails if the record cannot be read.
    pub fn load_record<R: Record>(&self, path: &Path) -> Result<Option<R>, Error> {
        let text = self.records.text(path, MAX_TOML_RECORD_BYTES)?;
        text.map(|text| R::from_toml(&text, path)).transpose()
    }

    /// Returns the present text of a record; none if it does not exist. The file is read only if it has been
    /// replaced or changed since this store read it last.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn record_text(&self, path: &Path) -> Result<Option<Arc<str>>, Error> {
        self.records.text(path, MAX_STORE_FILE_BYTES)
    }

    /// Deletes the file of a record.
    ///
    /// # Errors
    /// Fails if it cannot be deleted, or does not exist.
    pub fn delete_record(&self, path: &Path) -> Result<(), Error> {
        self.records.forget(path);
        std::fs::remove_file(path).map_err(Error::io("remove", path))
    }
}
