//! Wait for multiple kernel locks that other processes hold: blocks until the first of them is free, or a
//! timeout passes.

use std::sync::mpsc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use super::lock::{LockName, Locks};
use crate::Error;

/// Set of locks to wait for concurrently, each with a thread that blocks in the kernel. Threads that outlive
/// this value end with their lock's holder or with this process. Each of them holds only an open file.
pub struct LockWaitSet {
    sender: Sender<WaitResult>,
    receiver: Receiver<WaitResult>,
}

/// Number of a lock that is free now, or the error of the wait for it.
type WaitResult = Result<usize, Error>;

impl LockWaitSet {
    /// Creates an empty set.
    pub fn new() -> LockWaitSet {
        let (sender, receiver) = mpsc::channel();
        LockWaitSet { sender, receiver }
    }

    /// Adds a lock. [`LockWaitSet::next_free`] returns its `number` once it is free.
    ///
    /// # Errors
    /// Fails when the lock cannot be opened, or no thread can be started.
    pub fn add_lock(&self, number: usize, locks: &Locks, name: &LockName) -> Result<(), Error> {
        let sender = self.sender.clone();
        locks.notify_when_free(name, move |waited| drop(sender.send(waited.map(|()| number))))
    }

    /// Waits until another lock is free, for `limit` at most, and returns its number. Each lock is returned
    /// once. None when the timeout has passed.
    ///
    /// # Errors
    /// Fails when one of the locks could not be waited for.
    pub fn next_free(&self, limit: Option<Duration>) -> Result<Option<usize>, Error> {
        let received = match limit {
            Some(limit) => self.receiver.recv_timeout(limit),
            // This value holds a sender, so the call only returns with a message.
            None => self.receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        received.map_or(Ok(None), |freed| freed.map(Some))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proq_base::diagnostics::Listener;
    use proq_base::lane_name::LaneName;

    #[test]
    fn each_freed_lock_is_reported_once() {
        let dir = tempfile::tempdir().unwrap();
        let locks = Locks::new(dir.path().to_owned(), Listener::silent());
        let names = ["a", "b", "c"].map(|name| LockName::Run(LaneName::parse(name).unwrap()));
        let a = locks.acquire(&names[0]).unwrap();
        let b = locks.acquire(&names[1]).unwrap();
        let waits = LockWaitSet::new();
        for (number, name) in names.iter().enumerate() {
            waits.add_lock(number, &locks, name).unwrap();
        }
        // The third lock was never held.
        assert_eq!(waits.next_free(None).unwrap(), Some(2));
        assert_eq!(waits.next_free(Some(Duration::from_millis(1))).unwrap(), None);
        drop(b);
        assert_eq!(waits.next_free(None).unwrap(), Some(1));
        drop(a);
        assert_eq!(waits.next_free(None).unwrap(), Some(0));
        assert_eq!(waits.next_free(Some(Duration::ZERO)).unwrap(), None);
    }
}
