//! Everything below `<common git dir>/proq`: paths, records, journals and locks.

mod atomic;
mod batch_files;
mod change_watcher;
mod clock;
mod clock_record;
mod delete;
mod error;
mod event_files;
mod file_access;
mod file_tree;
mod holder;
mod id;
mod journal;
mod layout;
mod lock;
mod lock_wait;
mod merge_queue;
mod operation_entry;
pub(crate) mod path_form;
mod probe;
mod record;
pub(crate) mod records;
mod repositories;
mod run_files;
mod scratch;
mod set_up_files;
mod wait_many;

pub(crate) use atomic::{
    create_private_dir, exchange_files, remove_temp_files, rename_no_replace, sync_dir,
    write as write_atomically, write_cache, write_in_existing_dir, write_without_dir_sync,
};
pub(crate) use change_watcher::{DirWatcher, FileWatcher};
pub(crate) use clock::{Moment, now};
pub(crate) use error::Error;
pub(crate) use file_access::first_inaccessible;
pub(crate) use file_tree::{remove_tree, size_on_disk};
pub(crate) use holder::LockHolder;
pub(crate) use id::{id_created_at, id_process, new_id};
pub(crate) use journal::Journal;
pub(crate) use layout::Layout;
pub(crate) use lock::{LockGuard, LockName, Locks, WaitLimit};
pub(crate) use merge_queue::{LandingRequest, QueueEntry, Ticket, queued_landings, remove_stale_tickets};
pub(crate) use operation_entry::{JournalLine, OperationEntry, OperationHeader, PlannedStep, StepStatus};
pub(crate) use probe::{free_space, probe_file_system};
pub(crate) use record::Record;
pub(crate) use repositories::{RepositoryList, is_gone as is_repository_gone};
pub(crate) use scratch::ScratchDir;
pub(crate) use wait_many::LockWaitSet;

use std::path::{Path, PathBuf};

/// Store of one repository: its paths and locks.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    layout: Layout,
    locks: Locks,
}

impl Store {
    /// Opens the store below `common_dir`. Nothing is written.
    pub(crate) fn open(common_dir: &Path, listener: crate::diagnostics::Listener) -> Store {
        let layout = Layout::new(common_dir);
        let locks = Locks::new(layout.locks_dir(), listener);
        Store { layout, locks }
    }

    /// Refuses a store that is a symbolic link or has one as an entry: git-proq reads and writes nothing
    /// through it. A missing store is accepted.
    ///
    /// # Errors
    /// Fails with [`Error::SymbolicLink`].
    pub(crate) fn refuse_links(common_dir: &Path) -> Result<(), Error> {
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
    pub(crate) fn set_lock_limit(&mut self, limit: WaitLimit) {
        self.locks.set_limit(limit);
    }

    /// Returns the paths of the store.
    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the locks of the store.
    pub(crate) fn locks(&self) -> &Locks {
        &self.locks
    }
}
