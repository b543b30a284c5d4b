//! Watchdog of a running git command: it kills the command's process group on a timeout or a cancellation.

use std::sync::mpsc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// Callback that returns true once the caller no longer wants the result that it waits for.
pub(crate) type CancelCheck<'a> = &'a (dyn Fn() -> bool + Sync);

/// Watchdog of a program that may run code from the repository, such as hooks and filters.
pub struct Watchdog<'a> {
    /// Maximum running time of the program; `Duration::MAX` for no limit.
    pub limit: Duration,
    /// Callback that returns true once the program is to be killed; it is polled while the program runs.
    pub is_cancelled: CancelCheck<'a>,
}

impl Watchdog<'_> {
    /// Interval at which the watchdog checks for cancellation.
    const POLL_INTERVAL: Duration = Duration::from_millis(100);
    /// Time between SIGTERM and SIGKILL, for the program to clean up.
    const KILL_GRACE_PERIOD: Duration = Duration::from_secs(2);

    /// Waits until the program has finished, or kills its process group when its time limit has passed or it
    /// is cancelled. Returns whether the group was killed.
    pub(crate) fn kill_when_due(&self, group: u32, finished: &mpsc::Receiver<()>) -> bool {
        let start = Instant::now();
        while start.elapsed() < self.limit && !(self.is_cancelled)() {
            if finished.recv_timeout(Watchdog::POLL_INTERVAL) != Err(RecvTimeoutError::Timeout) {
                return false;
            }
        }
        let Some(group) = i32::try_from(group).ok().and_then(Pid::from_raw) else { return false };
        // The program may exit at this moment.
        let _terminated = kill_process_group(group, Signal::TERM);
        if finished.recv_timeout(Watchdog::KILL_GRACE_PERIOD) == Err(RecvTimeoutError::Timeout) {
            let _killed = kill_process_group(group, Signal::KILL);
        }
        true
    }
}
