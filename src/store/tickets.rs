//! Owns the landing queue: first come, first served, by numbered lock files.

use std::path::{Path, PathBuf};

use super::lock::{self, Guard, Limit, LockName};
use super::{Error, Locks, layout};

/// A place in the queue, whose turn has come. Dropping it lets the next one go on.
#[derive(Debug)]
#[must_use]
pub(crate) struct Ticket {
    path: PathBuf,
    _guard: Guard,
}

impl Ticket {
    /// Queues up and waits until everybody before has ended, one way or another.
    pub(crate) fn take(locks: &Locks, limit: Limit) -> Result<Ticket, Error> {
        let dir = locks.tickets();
        layout::make_private(&dir)?;
        let (number, ticket) = {
            // Under the store's lock nobody else picks a number, and every ticket here is locked by its owner.
            let _store = locks.take(&LockName::Store)?;
            let number = numbers(&dir)?.last().map_or(1, |n| n + 1);
            let path = dir.join(number.to_string());
            let guard = lock::take_file(&path, "a new ticket", Limit::Now, locks.listener())?;
            (number, Ticket { path, _guard: guard })
        };
        for earlier in numbers(&dir)?.into_iter().filter(|n| *n < number) {
            let path = dir.join(earlier.to_string());
            if path.exists() {
                drop(lock::take_file(&path, "the landing queue", limit, locks.listener())?);
                // Whoever held it is done or dead; a ticket is used once.
                remove(&path);
            }
        }
        Ok(ticket)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

fn remove(path: &Path) {
    drop(std::fs::remove_file(path.with_extension("holder")));
    drop(std::fs::remove_file(path));
}

/// The numbers in use, smallest first.
fn numbers(dir: &Path) -> Result<Vec<u64>, Error> {
    let mut out = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(Error::io("read", dir))? {
        let name = entry.map_err(Error::io("read", dir))?.file_name();
        out.extend(name.to_str().and_then(|n| n.parse::<u64>().ok()));
    }
    out.sort_unstable();
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::note::Listener;

    #[test]
    fn tickets_are_served_in_the_order_they_were_taken() {
        let dir = tempfile::tempdir().unwrap();
        let locks = Locks::new(dir.path().to_owned(), Listener::silent());
        let first = Ticket::take(&locks, Limit::Now).unwrap();
        assert!(matches!(Ticket::take(&locks, Limit::Now), Err(Error::Locked { .. })));
        drop(first);
        let next = Ticket::take(&locks, Limit::Now).unwrap();
        drop(next);
        assert!(numbers(&locks.tickets()).unwrap().is_empty());
    }

    #[test]
    fn a_ticket_whose_owner_died_holds_nobody_up() {
        let dir = tempfile::tempdir().unwrap();
        let locks = Locks::new(dir.path().to_owned(), Listener::silent());
        std::fs::create_dir_all(locks.tickets()).unwrap();
        std::fs::write(locks.tickets().join("7"), "").unwrap();
        let ticket = Ticket::take(&locks, Limit::Now).unwrap();
        assert!(ticket.path.ends_with("8"));
        assert!(!locks.tickets().join("7").exists());
    }
}
