//! Owns waiting for a kernel lock that somebody else holds: asleep until it is free, time is up or a signal comes.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use crate::interrupt;

/// What ended a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Woken {
    /// Nobody holds the lock any more.
    Free,
    /// The time is up.
    Late,
    /// A signal has come.
    Signal,
}

/// Waits until nobody holds the lock on `file`, for `limit` at most. The lock is not taken.
///
/// The kernel's own wait cannot be ended from outside, so a thread does it, and this one listens to that thread and to
/// signals at the same time. After another end than [`Woken::Free`] the thread is left behind; it holds nothing but the open
/// file, and ends with the lock's holder or with this process.
pub(super) fn until_free(file: File, limit: Option<Duration>) -> io::Result<Woken> {
    if limit == Some(Duration::ZERO) {
        return Ok(Woken::Late);
    }
    let since = Instant::now();
    let (mut ear, mut mouth) = UnixStream::pair()?;
    // From here on a signal is heard; one that came before is on record.
    let _heard = interrupt::hear(&mouth)?;
    if interrupt::check().is_err() {
        return Ok(Woken::Signal);
    }
    let sleeper = std::thread::Builder::new().spawn(move || {
        let waited = sleep_on(&file);
        // Before anybody hears of it: a thread that is still there would seem to hold the lock.
        drop(file);
        drop(mouth.write_all(b"."));
        waited
    })?;
    loop {
        let left = limit.map(|limit| limit.saturating_sub(since.elapsed()));
        if left == Some(Duration::ZERO) {
            return Ok(Woken::Late);
        }
        ear.set_read_timeout(left)?;
        match ear.read(&mut [0]) {
            Ok(_) if interrupt::check().is_err() => return Ok(Woken::Signal),
            Ok(_) => return sleeper.join().unwrap_or(Ok(())).map(|()| Woken::Free),
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            // By the signal that is heard next, or by one that stopped this process for a while.
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// Sleeps until nobody holds the lock on `file`, whatever signals come.
pub(super) fn sleep_on(file: &File) -> io::Result<()> {
    loop {
        match file.lock_shared() {
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_with_the_lock_or_with_the_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let held = File::create_new(&path).unwrap();
        held.lock().unwrap();
        let short = Some(Duration::from_millis(1));
        assert_eq!(until_free(File::open(&path).unwrap(), short).unwrap(), Woken::Late);
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| until_free(File::open(&path).unwrap(), None).unwrap());
            drop(held);
            assert_eq!(waits.join().unwrap(), Woken::Free);
        });
    }
}
