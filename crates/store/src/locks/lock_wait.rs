//! Wait for a kernel lock that another process holds: blocks until release, timeout, signal or cancellation.

use std::fs::File;
use std::io;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use proq_base::interrupt;
use proq_base::trace::{Span, SpanKind};

/// Reason why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitOutcome {
    /// No process holds the lock any more.
    Free,
    /// The timeout has passed.
    TimedOut,
    /// A signal was received, or the use case was canceled.
    Signal,
}

/// Waits until no process holds the lock on `file`, for `limit` at most. The lock is not acquired.
///
/// The kernel's own wait cannot be interrupted from outside, so a separate thread performs it. This thread
/// waits for that thread, for signals and for cancellation. After any outcome other than [`WaitOutcome::Free`] the separate
/// thread is left behind. It holds only the open file, and ends with the lock's holder or with this process.
pub(crate) fn wait_for_release(file: File, limit: Option<Duration>) -> io::Result<WaitOutcome> {
    if limit == Some(Duration::ZERO) {
        return Ok(WaitOutcome::TimedOut);
    }
    let _span = Span::begin(SpanKind::Lock, "release by another process");
    let since = Instant::now();
    let (mut wake_receiver, mut wake_sender) = UnixStream::pair()?;
    // From here on a signal wakes this thread; an earlier one is reported by the check. Under a shield neither
    // happens, so that the only byte is that of the waiter.
    let _signal_wake = interrupt::register_signal_pipe(&wake_sender)?;
    if interrupt::require_no_signal().is_err() {
        return Ok(WaitOutcome::Signal);
    }
    let waiter = std::thread::Builder::new().spawn(move || {
        let waited = block_until_free(&file);
        // Close the file before the wake-up: an open file would still seem to hold the lock.
        drop(file);
        drop(wake_sender.write_all(b"."));
        waited
    })?;
    loop {
        let remaining = limit.map(|limit| limit.saturating_sub(since.elapsed()));
        if remaining == Some(Duration::ZERO) {
            return Ok(WaitOutcome::TimedOut);
        }
        wake_receiver.set_read_timeout(remaining)?;
        match wake_receiver.read(&mut [0]) {
            Ok(_) if interrupt::require_no_signal().is_err() => return Ok(WaitOutcome::Signal),
            Ok(_) => return waiter.join().unwrap_or(Ok(())).map(|()| WaitOutcome::Free),
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            // Interrupted by the signal that is read next, or by one that stopped this process temporarily.
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// Blocks until no process holds the lock on `file`; signals do not end the wait.
pub(crate) fn block_until_free(file: &File) -> io::Result<()> {
    loop {
        match file.lock_shared() {
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_returns_on_release_or_timeout() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let held = File::create_new(&path).unwrap();
        held.lock().unwrap();
        let short = Some(Duration::from_millis(1));
        assert_eq!(wait_for_release(File::open(&path).unwrap(), short).unwrap(), WaitOutcome::TimedOut);
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| wait_for_release(File::open(&path).unwrap(), None).unwrap());
            drop(held);
            assert_eq!(waits.join().unwrap(), WaitOutcome::Free);
        });
    }
}
