//! Waking another git-proq process by a signal that carries no data: it means that there is work to read.

use std::os::unix::net::UnixStream;

use rustix::process::{Signal, kill_process};
use signal_hook::consts::SIGUSR1;
use signal_hook::low_level::pipe;

use super::identity::to_signalable_pid;

/// Wakes a process that listens with [`register_wake_pipe`]. Does nothing if the process is gone.
pub fn wake(process_id: u32) {
    if let Some(pid) = to_signalable_pid(process_id) {
        let _gone = kill_process(pid, Signal::USR1);
    }
}

/// Makes each wake signal write a byte to `writer` from now on.
///
/// # Errors
/// Fails if no signal handler can be registered.
pub fn register_wake_pipe(writer: &UnixStream) -> std::io::Result<()> {
    pipe::register(SIGUSR1, writer.try_clone()?).map(drop)
}
