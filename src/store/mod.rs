//! Owns all that lies below `<common git dir>/proq`: where it is, how it is written, who holds which lock.

mod atomic;
mod batch_files;
mod changes;
mod clock;
mod error;
mod event_files;
mod holder;
mod journal;
mod layout;
mod lock;
pub(crate) mod path_form;
mod record;
pub(crate) mod records;
mod remains;
mod repositories;
mod scratch;
mod set_up_files;
mod several;
mod survey;
mod tickets;
mod wait;

pub(crate) use atomic::{
    exchange, remove_drafts, rename_new, sync_dir, write as write_atomically, write_cache, write_first,
    write_there,
};
pub(crate) use changes::Changes;
pub(crate) use clock::{Moment, now};
pub(crate) use error::Error;
pub(crate) use holder::Holder;
pub(crate) use journal::{Entry, Header, Journal, Line, Planned, Status};
pub(crate) use layout::{Layout, make_private, new_id};
pub(crate) use lock::{Guard, Limit, LockName, Locks};
pub(crate) use record::Record;
pub(crate) use remains::{remove_tree, size_on_disk};
pub(crate) use repositories::{Repositories, is_gone as repository_is_gone};
pub(crate) use scratch::Scratch;
pub(crate) use several::Several;
pub(crate) use survey::{closed, free_space, is_there, made_at, maker_of, try_out};
pub(crate) use tickets::{Place, Ticket, Wanted, queue, sweep as sweep_queue};

use std::path::{Path, PathBuf};

/// The store of one repository.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    layout: Layout,
    locks: Locks,
}

impl Store {
    /// The store below `common_dir`. Nothing is written.
    pub(crate) fn at(common_dir: &Path, listener: crate::note::Listener) -> Store {
        let layout = Layout::new(common_dir);
        let locks = Locks::new(layout.locks(), listener);
        Store { layout, locks }
    }

    /// Refuses a store that leads elsewhere: nothing is read or written through a link in the place of it, or of one of its
    /// folders. One that does not exist leads nowhere.
    ///
    /// # Errors
    /// [`Error::Link`].
    pub(crate) fn refuse_links(common_dir: &Path) -> Result<(), Error> {
        let root = Layout::new(common_dir).root().to_owned();
        let refuse = |path: PathBuf| Err(Error::Link { path });
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

    /// Sets how long locks are waited for.
    pub(crate) fn set_lock_limit(&mut self, limit: Limit) {
        self.locks.set_limit(limit);
    }

    /// Where things lie.
    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The locks.
    pub(crate) fn locks(&self) -> &Locks {
        &self.locks
    }
}
