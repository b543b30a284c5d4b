//! Owns waking another process of this program: by a signal that says nothing but that there is something to see to.

use std::os::unix::net::UnixStream;

use rustix::process::{Signal, kill_process};
use signal_hook::consts::SIGUSR1;
use signal_hook::low_level::pipe;

use super::group::pid;

/// Wakes a process that listens by [`hear_wakes`]. One that is gone is not missed.
pub(crate) fn wake(number: u32) {
    if let Some(pid) = pid(number) {
        let _gone = kill_process(pid, Signal::USR1);
    }
}

/// From now on each such signal writes a byte to `mouth`.
///
/// # Errors
/// When no handler can be had.
pub(crate) fn hear_wakes(mouth: &UnixStream) -> std::io::Result<()> {
    pipe::register(SIGUSR1, mouth.try_clone()?).map(drop)
}
