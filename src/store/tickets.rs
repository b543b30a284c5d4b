//! Owns the landing queue: first come, first served, by numbered lock files that say who wants to land what.
//!
//! A ticket counts for as long as its process holds the kernel lock on it. Its number is one more than the highest there,
//! found under the store's lock, so that no clock has a say in the order.

use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::lock::QUIET;
use super::wait::{Woken, until_free};
use super::{Error, Holder, Limit, LockName, Locks, Record, layout};
use crate::fault;

/// What a ticket is called until it is whole. Only who holds the store's lock makes one.
const DRAFT: &str = "new";

/// The variable that names the hook of the repository's that runs.
const HOOK: &str = "PROQ_GIT_HOOK";

/// How many lanes are named in a sentence.
const NAMED: usize = 2;

/// Whether the process with this number started this one.
type IsAncestor = fn(u32) -> bool;

/// What somebody wants to land.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Wanted {
    /// These lanes; without any, all that are done.
    pub(crate) lanes: Vec<String>,
    /// Another branch than the lanes' own bases.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) onto: Option<String>,
}

impl Wanted {
    /// In words.
    pub(crate) fn in_words(&self) -> String {
        let onto = self.onto.as_ref().map_or_else(String::new, |onto| format!(" on {onto}"));
        let named = self.lanes[..self.lanes.len().min(NAMED)].join(", ");
        match self.lanes.len() {
            0 => format!("all lanes{onto}"),
            n if n <= NAMED => format!("{named}{onto}"),
            n => format!("{named} and {} more{onto}", n - NAMED),
        }
    }
}

/// Who is in the queue, and what for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    /// What is to land.
    #[serde(flatten)]
    pub(crate) wanted: Wanted,
    /// Who queues, and since when.
    #[serde(flatten)]
    pub(crate) holder: Holder,
}

impl Record for Place {
    const FORMAT: u32 = 1;
}

/// A place in the queue, whose turn has come. Dropping it lets the next one go on.
#[derive(Debug)]
#[must_use]
pub(crate) struct Ticket {
    number: u64,
    path: PathBuf,
    /// Its kernel lock is what makes it count.
    _file: File,
}

impl Ticket {
    /// Queues up and waits until everybody before has ended, one way or another.
    ///
    /// # Errors
    /// [`Error::NotMyTurn`] after `limit`, [`Error::Interrupted`] on Ctrl-C, [`Error::OwnLanding`] where one before it waits for
    /// this process: the place in the queue is given up.
    pub(crate) fn take(
        locks: &Locks,
        wanted: Wanted,
        limit: Limit,
        is_ancestor: IsAncestor,
    ) -> Result<Ticket, Error> {
        let ticket = Ticket::draw(locks, wanted)?;
        if ticket.number > 1 {
            ticket.wait(locks, limit, is_ancestor)?;
        }
        Ok(ticket)
    }

    /// A new ticket. It gets its number only when it is written and locked, so whoever sees one knows that it is whole, and
    /// that its process is dead if nobody holds it.
    fn draw(locks: &Locks, wanted: Wanted) -> Result<Ticket, Error> {
        let dir = locks.tickets();
        layout::make_private(&dir)?;
        let draft = dir.join(DRAFT);
        let text = Place { wanted, holder: Holder::me() }.text(&draft)?;
        let _store = locks.take(&LockName::Store)?;
        remove_dead(&dir)?;
        let number = numbers(&dir)?.last().map_or(1, |n| n + 1);
        let path = file_of(&dir, number);
        drop(std::fs::remove_file(&draft));
        let file = File::create_new(&draft).map_err(Error::io("create", &draft))?;
        let written = (&file).write_all(text.as_bytes());
        // Nobody has seen it yet, so this waits for nobody.
        written.and_then(|()| file.lock()).map_err(Error::io("write", &draft))?;
        fault::point("ticket.drafted");
        std::fs::rename(&draft, &path).map_err(Error::io("rename", &draft))?;
        Ok(Ticket { number, path, _file: file })
    }

    /// Waits until no living process has a lower number. Each waits for the one right before it, so that one wakes when
    /// one ends; who was killed in the middle of the queue wakes its successor, which then waits for the one before that.
    fn wait(&self, locks: &Locks, limit: Limit, is_ancestor: IsAncestor) -> Result<(), Error> {
        let since = Instant::now();
        let mut said = false;
        while let Some((file, path)) = self.last_before(&locks.tickets())? {
            let end = match limit {
                Limit::Now => Some(since),
                Limit::For(span) => since.checked_add(span),
                Limit::Forever => None,
            };
            let quiet = since + QUIET;
            let until = end.map_or(quiet, |end| end.min(quiet));
            let until = if said { end } else { Some(until) };
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            match until_free(file, left).map_err(Error::io("wait for", &path))? {
                Woken::Free => {}
                Woken::Signal => return Err(Error::Interrupted),
                Woken::Late if end.is_some_and(|end| Instant::now() >= end) => {
                    let before = self.before(locks)?;
                    return Err(Error::NotMyTurn { before, seconds: since.elapsed().as_secs() });
                }
                Woken::Late if said => {}
                Woken::Late => {
                    // By now a hook that leaves this process behind has ended, and is nobody's ancestor.
                    self.refuse_own(locks, is_ancestor)?;
                    locks
                        .listener()
                        .waiting(format!("waiting for {}; Ctrl-C to leave the queue", self.before(locks)?));
                    said = true;
                }
            }
        }
        Ok(())
    }

    /// The highest lower number whose process lives.
    fn last_before(&self, dir: &Path) -> Result<Option<(File, PathBuf)>, Error> {
        for number in numbers(dir)?.into_iter().rev().filter(|n| *n < self.number) {
            let path = file_of(dir, number);
            if let Some(file) = held(&path)? {
                return Ok(Some((file, path)));
            }
        }
        Ok(None)
    }

    /// Refuses to wait for a landing that waits for this process: it runs a hook or a check that started this one.
    fn refuse_own(&self, locks: &Locks, is_ancestor: IsAncestor) -> Result<(), Error> {
        let queue = living(locks)?;
        let before = queue.into_iter().filter(|(number, _)| *number < self.number);
        let mut places = before.filter_map(|(_, place)| place);
        let own = places.find(|place| place.holder.is_here() && is_ancestor(place.holder.pid));
        own.map_or(Ok(()), |own| {
            let landing = format!("{} {}", own.wanted.in_words(), own.holder.in_words());
            Err(Error::OwnLanding { landing, hook: std::env::var(HOOK).ok() })
        })
    }

    /// Whose turn it is, and how many come then, in words.
    fn before(&self, locks: &Locks) -> Result<String, Error> {
        let queue = living(locks)?;
        let mut before = queue.iter().filter(|(number, _)| *number < self.number);
        let Some((_, first)) = before.next() else { return Ok("another landing".to_owned()) };
        let first = match first {
            Some(place) => format!("the landing of {} {}", place.wanted.in_words(), place.holder.in_words()),
            None => "another landing".to_owned(),
        };
        Ok(match before.count() {
            0 => first,
            1 => format!("{first} and one more after it"),
            n => format!("{first} and {n} more after it"),
        })
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        // Its number may be given to another as soon as the file is gone, and not before.
        drop(std::fs::remove_file(&self.path));
    }
}

/// Who is in the queue, first come first; none for who has written what this program cannot read. Nothing is written.
pub(crate) fn queue(locks: &Locks) -> Result<Vec<Option<Place>>, Error> {
    Ok(living(locks)?.into_iter().map(|(_, place)| place).collect())
}

/// Removes what dead processes left in the queue. Costs one look into one folder when nobody queues.
pub(crate) fn sweep(locks: &Locks) -> Result<(), Error> {
    let dir = locks.tickets();
    let mut dead = false;
    for path in entries(&dir)? {
        dead |= held(&path)?.is_none();
    }
    if !dead {
        return Ok(());
    }
    let _store = locks.take(&LockName::Store)?;
    remove_dead(&dir)
}

/// Removes whatever nobody holds. The caller has the store's lock: no number is given out meanwhile, so what lies at a path
/// is what was looked at.
fn remove_dead(dir: &Path) -> Result<(), Error> {
    for path in entries(dir)? {
        if held(&path)?.is_none() {
            match std::fs::remove_file(&path) {
                Err(e) if e.kind() != ErrorKind::NotFound => return Err(Error::io("remove", &path)(e)),
                _ => {}
            }
        }
    }
    Ok(())
}

/// The tickets of living processes, smallest number first.
fn living(locks: &Locks) -> Result<Vec<(u64, Option<Place>)>, Error> {
    let dir = locks.tickets();
    let mut out = Vec::new();
    for number in numbers(&dir)? {
        let path = file_of(&dir, number);
        if held(&path)?.is_none() {
            continue;
        }
        match Place::find(&path) {
            // It was given up between the two looks.
            Ok(None) => {}
            Ok(place) => out.push((number, place)),
            Err(_) => out.push((number, None)),
        }
    }
    Ok(out)
}

/// The file, if somebody holds the lock on it.
fn held(path: &Path) -> Result<Option<File>, Error> {
    let file = match crate::regular_file::open_record(path) {
        Ok(file) => file,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(Error::io("open", path)(e)),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => Ok(Some(file)),
        Err(TryLockError::Error(e)) => Err(Error::io("lock", path)(e)),
    }
}

/// The name of a number: names sort as numbers do.
fn file_of(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{number:08}"))
}

/// The numbers in use, smallest first.
fn numbers(dir: &Path) -> Result<Vec<u64>, Error> {
    let paths = entries(dir)?;
    let name = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u64>().ok();
    let mut out: Vec<u64> = paths.iter().filter_map(name).collect();
    out.sort_unstable();
    Ok(out)
}

fn entries(dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let found = match std::fs::read_dir(dir) {
        Ok(found) => found,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(Error::io("read", dir)(e)),
    };
    found.map(|entry| entry.map(|e| e.path()).map_err(Error::io("read", dir))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::note::Listener;

    fn locks(dir: &Path) -> Locks {
        Locks::new(dir.to_owned(), Listener::silent())
    }

    fn wanted(lanes: &[&str]) -> Wanted {
        Wanted { lanes: lanes.iter().map(ToString::to_string).collect(), onto: None }
    }

    #[test]
    fn tickets_are_served_in_the_order_they_were_taken() {
        let dir = tempfile::tempdir().unwrap();
        let locks = locks(dir.path());
        let first = Ticket::take(&locks, wanted(&["one"]), Limit::Now, |_| false).unwrap();
        let error = Ticket::take(&locks, wanted(&["two"]), Limit::Now, |_| false).unwrap_err();
        let said = error.to_string();
        assert!(said.contains("the landing of one (process"), "{said}");
        drop(first);
        let next = Ticket::take(&locks, wanted(&[]), Limit::Now, |_| false).unwrap();
        let queue = queue(&locks).unwrap();
        assert_eq!(queue.len(), 1);
        assert_eq!(queue[0].as_ref().unwrap().wanted.in_words(), "all lanes");
        drop(next);
        assert!(entries(&locks.tickets()).unwrap().is_empty());
    }

    #[test]
    fn nobody_waits_for_a_landing_that_waits_for_it() {
        let dir = tempfile::tempdir().unwrap();
        let locks = locks(dir.path());
        let first = Ticket::take(&locks, wanted(&["one"]), Limit::Now, |_| false).unwrap();
        let is_holder = |pid| pid == std::process::id();
        let error = Ticket::take(&locks, wanted(&["two"]), Limit::Forever, is_holder).unwrap_err();
        assert!(matches!(error, Error::OwnLanding { .. }), "{error}");
        assert_eq!(entries(&locks.tickets()).unwrap(), std::slice::from_ref(&first.path));
    }

    #[test]
    fn a_ticket_whose_owner_died_holds_nobody_up() {
        let dir = tempfile::tempdir().unwrap();
        let locks = locks(dir.path());
        std::fs::create_dir_all(locks.tickets()).unwrap();
        for left in ["7", DRAFT] {
            std::fs::write(locks.tickets().join(left), "").unwrap();
        }
        assert_eq!(queue(&locks).unwrap(), []);
        let ticket = Ticket::take(&locks, wanted(&[]), Limit::Now, |_| false).unwrap();
        assert_eq!(entries(&locks.tickets()).unwrap(), std::slice::from_ref(&ticket.path));
        let living = ticket.path.clone();
        std::fs::write(locks.tickets().join("9"), "").unwrap();
        sweep(&locks).unwrap();
        assert_eq!(entries(&locks.tickets()).unwrap(), [living]);
    }

    #[test]
    fn of_many_at_once_each_gets_a_number_and_one_at_a_time_its_turn() {
        const MANY: usize = 64;
        let dir = tempfile::tempdir().unwrap();
        let served = std::sync::Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..MANY {
                scope.spawn(|| {
                    let locks = locks(dir.path());
                    let ticket = Ticket::take(&locks, wanted(&[]), Limit::Forever, |_| false).unwrap();
                    assert!(served.try_lock().is_ok_and(|mut s| {
                        s.push(ticket.number);
                        true
                    }));
                });
            }
        });
        let served = served.into_inner().unwrap();
        assert_eq!(served.len(), MANY);
        // Numbers begin anew only when the queue has been empty.
        assert!(served.windows(2).all(|w| w[1] > w[0] || w[1] == 1), "{served:?}");
    }
}
