//! Merge queue: first come, first served, by numbered lock files that name the process and its lanes.
//!
//! A ticket is valid while its process holds the kernel lock on it. Its number is one more than the highest
//! existing number. It is chosen under the store's lock, so that the order depends on no clock.

use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use proq_base::fail_points;
use proq_base::interrupt::Interrupted;
use serde::{Deserialize, Serialize};

use super::holder::LockHolder;
use super::lock::{LockName, Locks, WAIT_NOTICE_DELAY, WaitLimit};
use super::lock_wait::{WaitOutcome, wait_for_release};
use crate::Error;
use crate::base::atomic::create_private_dir;
use crate::base::record::Record;

/// Name of a ticket's file until the ticket is complete. Only the holder of the store's lock creates one.
const UNNUMBERED_TICKET: &str = "new";

/// Environment variable that names the hook of the repository that is running.
const GIT_HOOK_ENV: &str = "PROQ_GIT_HOOK";

/// Number of lanes that a message names.
const MAX_LANES_NAMED: usize = 2;

/// Function that returns whether the process with this id is an ancestor of this process.
type IsAncestor = fn(u32) -> bool;

/// Lanes that a process wants to land.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LandingRequest {
    /// Names of the lanes, or the name of another task that uses the check worktrees; empty for all lanes
    /// that are done.
    pub lanes: Vec<String>,
    /// Target branch, if it is not the base of each lane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub onto: Option<String>,
}

impl LandingRequest {
    /// Describes the lanes and the target branch for messages.
    pub fn describe(&self) -> String {
        let onto = self.onto.as_ref().map_or_else(String::new, |onto| format!(" on {onto}"));
        let named = self.lanes[..self.lanes.len().min(MAX_LANES_NAMED)].join(", ");
        match self.lanes.len() {
            0 => format!("all lanes{onto}"),
            n if n <= MAX_LANES_NAMED => format!("{named}{onto}"),
            n => format!("{named} and {} more{onto}", n - MAX_LANES_NAMED),
        }
    }
}

/// Entry of the merge queue: a landing and its process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueEntry {
    /// Lanes that the process wants to land.
    #[serde(flatten)]
    pub request: LandingRequest,
    /// Process in the queue, and the time at which it joined.
    #[serde(flatten)]
    pub holder: LockHolder,
}

impl Record for QueueEntry {
    const FORMAT: u32 = 1;
}

/// Position at the front of the merge queue. Dropping it lets the next landing continue.
#[derive(Debug)]
#[must_use]
pub struct Ticket {
    number: u64,
    path: PathBuf,
    /// Open file whose kernel lock makes the ticket valid.
    _file: File,
}

impl Ticket {
    /// Joins the queue and waits until all landings ahead have finished, successfully or not. `on_wait` is called
    /// once if there are any that may be waited for.
    ///
    /// # Errors
    /// Fails with [`Error::QueueTimeout`] after `limit`, with [`Error::Interrupted`] on Ctrl-C, and with
    /// [`Error::QueueDeadlock`] where a landing ahead waits for this process. The position in the queue is
    /// given up then.
    pub fn acquire(
        locks: &Locks,
        request: LandingRequest,
        limit: WaitLimit,
        is_ancestor: IsAncestor,
        on_wait: &dyn Fn(),
    ) -> Result<Ticket, Error> {
        let ticket = Ticket::enqueue(locks, request)?;
        if ticket.number > 1 {
            ticket.wait_for_turn(locks, limit, is_ancestor, on_wait)?;
        }
        Ok(ticket)
    }

    /// Creates a ticket. It gets its number only when it is written and locked. A numbered ticket is
    /// therefore complete, and if it is not locked, its process is dead.
    fn enqueue(locks: &Locks, request: LandingRequest) -> Result<Ticket, Error> {
        let dir = locks.tickets_dir();
        create_private_dir(&dir)?;
        let temp_path = dir.join(UNNUMBERED_TICKET);
        let text = QueueEntry { request, holder: LockHolder::this_process() }.to_toml(&temp_path)?;
        let _store = locks.acquire(&LockName::Store)?;
        remove_unlocked_tickets(&dir)?;
        let number = ticket_numbers(&dir)?.last().map_or(1, |n| n + 1);
        let path = ticket_path(&dir, number);
        drop(std::fs::remove_file(&temp_path));
        let file = File::create_new(&temp_path).map_err(Error::io("create", &temp_path))?;
        let write_result = (&file).write_all(text.as_bytes());
        // No other process has opened the file yet, so this lock never blocks.
        write_result.and_then(|()| file.lock()).map_err(Error::io("write", &temp_path))?;
        fail_points::hit("ticket.drafted");
        std::fs::rename(&temp_path, &path).map_err(Error::io("rename", &temp_path))?;
        Ok(Ticket { number, path, _file: file })
    }

    /// Waits until no live process has a lower number. Each process waits for its immediate predecessor, so
    /// that one process wakes when one finishes. If a process is killed in the middle of the queue, its
    /// successor wakes and waits for the next one ahead.
    fn wait_for_turn(
        &self,
        locks: &Locks,
        limit: WaitLimit,
        is_ancestor: IsAncestor,
        on_wait: &dyn Fn(),
    ) -> Result<(), Error> {
        let since = Instant::now();
        let mut is_wait_reported = false;
        let mut on_wait = Some(on_wait).filter(|_| limit != WaitLimit::NoWait);
        while let Some((file, path)) = self.last_live_predecessor(&locks.tickets_dir())? {
            if let Some(on_wait) = on_wait.take() {
                on_wait();
            }
            let deadline = match limit {
                WaitLimit::NoWait => Some(since),
                WaitLimit::AtMost(span) => since.checked_add(span),
                WaitLimit::Forever => None,
            };
            let notice_at = since + WAIT_NOTICE_DELAY;
            let wake_at = deadline.map_or(notice_at, |end| end.min(notice_at));
            let wake_at = if is_wait_reported { deadline } else { Some(wake_at) };
            let remaining = wake_at.map(|until| until.saturating_duration_since(Instant::now()));
            match wait_for_release(file, remaining).map_err(Error::io("wait for", &path))? {
                WaitOutcome::Free => {}
                WaitOutcome::Signal => return Err(Interrupted::current().into()),
                WaitOutcome::TimedOut if deadline.is_some_and(|end| Instant::now() >= end) => {
                    let predecessors = self.describe_predecessors(locks)?;
                    return Err(Error::QueueTimeout { predecessors, seconds: since.elapsed().as_secs() });
                }
                WaitOutcome::TimedOut if is_wait_reported => {}
                WaitOutcome::TimedOut => {
                    // A hook that left this process running has exited by now, and is no ancestor any more.
                    self.refuse_self_deadlock(locks, is_ancestor)?;
                    locks.listener().waiting(format!(
                        "waiting for {}; Ctrl-C to leave the queue",
                        self.describe_predecessors(locks)?
                    ));
                    is_wait_reported = true;
                }
            }
        }
        Ok(())
    }

    /// Returns the ticket with the highest lower number whose process is alive.
    fn last_live_predecessor(&self, dir: &Path) -> Result<Option<(File, PathBuf)>, Error> {
        for number in ticket_numbers(dir)?.into_iter().rev().filter(|n| *n < self.number) {
            let path = ticket_path(dir, number);
            if let Some(file) = open_if_locked(&path)? {
                return Ok(Some((file, path)));
            }
        }
        Ok(None)
    }

    /// Refuses to wait for a landing that waits for this process, because its hook or check started this
    /// process.
    fn refuse_self_deadlock(&self, locks: &Locks, is_ancestor: IsAncestor) -> Result<(), Error> {
        let queue = live_tickets(locks)?;
        let predecessors = queue.into_iter().filter(|(number, _)| *number < self.number);
        let mut queue_entries = predecessors.filter_map(|(_, place)| place);
        let own_landing =
            queue_entries.find(|place| place.holder.is_on_this_host() && is_ancestor(place.holder.pid));
        own_landing.map_or(Ok(()), |queue_entry| {
            let landing =
                format!("{} {}", queue_entry.request.describe(), queue_entry.holder.describe_process());
            Err(Error::QueueDeadlock { landing, hook: std::env::var(GIT_HOOK_ENV).ok() })
        })
    }

    /// Describes the landing at the front of the queue and the number of landings after it.
    fn describe_predecessors(&self, locks: &Locks) -> Result<String, Error> {
        let queue = live_tickets(locks)?;
        let mut predecessors = queue.iter().filter(|(number, _)| *number < self.number);
        let Some((_, first)) = predecessors.next() else { return Ok("another landing".to_owned()) };
        let first = match first {
            Some(place) => {
                format!("the landing of {} {}", place.request.describe(), place.holder.describe_process())
            }
            None => "another landing".to_owned(),
        };
        Ok(match predecessors.count() {
            0 => first,
            1 => format!("{first} and one more after it"),
            n => format!("{first} and {n} more after it"),
        })
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        // As soon as the file is gone, and not before, another ticket may get this number.
        drop(std::fs::remove_file(&self.path));
    }
}

/// Lists the merge queue in order; none for an entry that this program cannot read. Nothing is written.
pub fn queued_landings(locks: &Locks) -> Result<Vec<Option<QueueEntry>>, Error> {
    Ok(live_tickets(locks)?.into_iter().map(|(_, place)| place).collect())
}

/// Removes the tickets of dead processes. Costs one directory read when the queue is empty.
pub fn remove_stale_tickets(locks: &Locks) -> Result<(), Error> {
    let dir = locks.tickets_dir();
    let mut has_dead_ticket = false;
    for path in ticket_files(&dir)? {
        has_dead_ticket |= open_if_locked(&path)?.is_none();
    }
    if !has_dead_ticket {
        return Ok(());
    }
    let _store = locks.acquire(&LockName::Store)?;
    remove_unlocked_tickets(&dir)
}

/// Removes all tickets that no process holds. The caller holds the store's lock: no number is given out
/// concurrently, so the removed file is the one that was inspected.
fn remove_unlocked_tickets(dir: &Path) -> Result<(), Error> {
    for path in ticket_files(dir)? {
        if open_if_locked(&path)?.is_none() {
            match std::fs::remove_file(&path) {
                Err(e) if e.kind() != ErrorKind::NotFound => return Err(Error::io("remove", &path)(e)),
                _ => {}
            }
        }
    }
    Ok(())
}

/// Returns the tickets of live processes, smallest number first.
fn live_tickets(locks: &Locks) -> Result<Vec<(u64, Option<QueueEntry>)>, Error> {
    let dir = locks.tickets_dir();
    let mut out = Vec::new();
    for number in ticket_numbers(&dir)? {
        let path = ticket_path(&dir, number);
        if open_if_locked(&path)?.is_none() {
            continue;
        }
        match QueueEntry::load_if_exists(&path) {
            // The ticket was removed between the two reads.
            Ok(None) => {}
            Ok(place) => out.push((number, place)),
            Err(_) => out.push((number, None)),
        }
    }
    Ok(out)
}

/// Opens a file, if another process holds the lock on it.
fn open_if_locked(path: &Path) -> Result<Option<File>, Error> {
    let file = match proq_base::regular_file::open_store_file(path) {
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

/// Returns the path of the ticket with this number. File names sort like the numbers.
fn ticket_path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{number:08}"))
}

/// Returns the numbers in use, smallest first.
fn ticket_numbers(dir: &Path) -> Result<Vec<u64>, Error> {
    let paths = ticket_files(dir)?;
    let name = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u64>().ok();
    let mut out: Vec<u64> = paths.iter().filter_map(name).collect();
    out.sort_unstable();
    Ok(out)
}

/// Returns the paths of all files in the folder of tickets, in any order; none where it is missing.
fn ticket_files(dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let dir_entries = match std::fs::read_dir(dir) {
        Ok(found) => found,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(Error::io("read", dir)(e)),
    };
    dir_entries.map(|entry| entry.map(|e| e.path()).map_err(Error::io("read", dir))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proq_base::diagnostics::Listener;

    fn locks(dir: &Path) -> Locks {
        Locks::new(dir.to_owned(), Listener::silent())
    }

    fn landing_request(lanes: &[&str]) -> LandingRequest {
        LandingRequest { lanes: lanes.iter().map(ToString::to_string).collect(), onto: None }
    }

    /// Promise: concurrency/queue-order
    #[test]
    fn tickets_are_served_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let locks = locks(dir.path());
        let first =
            Ticket::acquire(&locks, landing_request(&["one"]), WaitLimit::NoWait, |_| false, &|| {}).unwrap();
        let error = Ticket::acquire(&locks, landing_request(&["two"]), WaitLimit::NoWait, |_| false, &|| {})
            .unwrap_err();
        let message = error.to_string();
        assert!(message.contains("the landing of one (process"), "{message}");
        drop(first);
        let next =
            Ticket::acquire(&locks, landing_request(&[]), WaitLimit::NoWait, |_| false, &|| {}).unwrap();
        let queue = queued_landings(&locks).unwrap();
        assert_eq!(queue.len(), 1);
        assert_eq!(queue[0].as_ref().unwrap().request.describe(), "all lanes");
        drop(next);
        assert!(ticket_files(&locks.tickets_dir()).unwrap().is_empty());
    }

    #[test]
    fn refuses_to_wait_for_own_landing() {
        let dir = tempfile::tempdir().unwrap();
        let locks = locks(dir.path());
        let first =
            Ticket::acquire(&locks, landing_request(&["one"]), WaitLimit::NoWait, |_| false, &|| {}).unwrap();
        let is_holder = |pid| pid == std::process::id();
        let error = Ticket::acquire(&locks, landing_request(&["two"]), WaitLimit::Forever, is_holder, &|| {})
            .unwrap_err();
        assert!(matches!(error, Error::QueueDeadlock { .. }), "{error}");
        assert_eq!(ticket_files(&locks.tickets_dir()).unwrap(), std::slice::from_ref(&first.path));
    }

    /// Promise: concurrency/ended-landing
    #[test]
    fn dead_tickets_are_skipped_and_removed() {
        let dir = tempfile::tempdir().unwrap();
        let locks = locks(dir.path());
        std::fs::create_dir_all(locks.tickets_dir()).unwrap();
        for left in ["7", UNNUMBERED_TICKET] {
            std::fs::write(locks.tickets_dir().join(left), "").unwrap();
        }
        assert_eq!(queued_landings(&locks).unwrap(), []);
        let ticket =
            Ticket::acquire(&locks, landing_request(&[]), WaitLimit::NoWait, |_| false, &|| {}).unwrap();
        assert_eq!(ticket_files(&locks.tickets_dir()).unwrap(), std::slice::from_ref(&ticket.path));
        let living = ticket.path.clone();
        std::fs::write(locks.tickets_dir().join("9"), "").unwrap();
        remove_stale_tickets(&locks).unwrap();
        assert_eq!(ticket_files(&locks.tickets_dir()).unwrap(), [living]);
    }

    /// Promise: concurrency/queue-order
    #[test]
    fn concurrent_tickets_are_served_one_by_one() {
        const THREAD_COUNT: usize = 64;
        let dir = tempfile::tempdir().unwrap();
        let served = std::sync::Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..THREAD_COUNT {
                scope.spawn(|| {
                    let locks = locks(dir.path());
                    let ticket =
                        Ticket::acquire(&locks, landing_request(&[]), WaitLimit::Forever, |_| false, &|| {})
                            .unwrap();
                    assert!(served.try_lock().is_ok_and(|mut s| {
                        s.push(ticket.number);
                        true
                    }));
                });
            }
        });
        let served = served.into_inner().unwrap();
        assert_eq!(served.len(), THREAD_COUNT);
        // The numbers restart only when the queue has been empty.
        assert!(served.windows(2).all(|w| w[1] > w[0] || w[1] == 1), "{served:?}");
    }
}
