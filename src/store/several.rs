//! Owns waiting for several kernel locks that others hold: asleep until the first of them is free, or time is up.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use super::{Error, LockName, Locks};

/// Locks that are waited for at the same time, each by a thread that sleeps in the kernel. Threads that are still there when
/// nobody listens any more end with their lock's holder or with this process; none of them holds anything but an open file.
pub(crate) struct Several {
    tell: Sender<Heard>,
    hear: Receiver<Heard>,
}

type Heard = Result<usize, Error>;

impl Several {
    /// Nothing is waited for yet.
    pub(crate) fn new() -> Several {
        let (tell, hear) = mpsc::channel();
        Several { tell, hear }
    }

    /// Waits for one more lock, which [`Several::next`] tells by `number` once it is free.
    ///
    /// # Errors
    /// When the lock cannot be opened, or no thread can be started.
    pub(crate) fn add(&self, number: usize, locks: &Locks, name: &LockName) -> Result<(), Error> {
        let tell = self.tell.clone();
        locks.when_free(name, move |waited| drop(tell.send(waited.map(|()| number))))
    }

    /// Waits until one of the locks is free that has not been told of, for `limit` at most. None when the time is up.
    ///
    /// # Errors
    /// When one of them could not be waited for.
    pub(crate) fn next(&self, limit: Option<Duration>) -> Result<Option<usize>, Error> {
        let heard = match limit {
            Some(limit) => self.hear.recv_timeout(limit),
            // There is a sender here, so this ends only with a message.
            None => self.hear.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        heard.map_or(Ok(None), |heard| heard.map(Some))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::note::Listener;

    #[test]
    fn the_first_lock_that_is_free_is_told_of_and_each_once() {
        let dir = tempfile::tempdir().unwrap();
        let locks = Locks::new(dir.path().to_owned(), Listener::silent());
        let names: Vec<LockName> = ["a", "b", "c"].iter().map(|n| LockName::Run((*n).to_owned())).collect();
        let a = locks.take(&names[0]).unwrap();
        let b = locks.take(&names[1]).unwrap();
        let several = Several::new();
        for (number, name) in names.iter().enumerate() {
            several.add(number, &locks, name).unwrap();
        }
        // Nobody has ever held the third.
        assert_eq!(several.next(None).unwrap(), Some(2));
        assert_eq!(several.next(Some(Duration::from_millis(1))).unwrap(), None);
        drop(b);
        assert_eq!(several.next(None).unwrap(), Some(1));
        drop(a);
        assert_eq!(several.next(None).unwrap(), Some(0));
        assert_eq!(several.next(Some(Duration::ZERO)).unwrap(), None);
    }
}
