//! Owns forwarding the output of the repository's hooks to a terminal, without anything that a terminal would obey.

use std::io::{IsTerminal, PipeReader, Read, Write};
use std::os::fd::AsFd;
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::harmless::Printable;

/// How long an unfinished line is held back. A hook that leaves a background process with its standard error open delays the
/// command by this much at most.
const FLUSH_AFTER: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// Returns whether this process's standard error is a terminal.
pub(super) fn stderr_is_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// Waits for `child`, and meanwhile forwards `output`, the reading end of its standard error. Returns when the child has ended,
/// even if a process that it started still has the pipe open.
///
/// # Errors
/// When the child cannot be waited for.
pub(super) fn wait_and_forward(child: &mut Child, output: PipeReader) -> std::io::Result<ExitStatus> {
    let ended = Arc::new(AtomicBool::new(false));
    let child_ended = Arc::clone(&ended);
    let forwarder = std::thread::spawn(move || forward(output, &child_ended));
    let status = child.wait();
    ended.store(true, Ordering::Release);
    drop(forwarder.join());
    status
}

fn forward(mut output: PipeReader, child_ended: &AtomicBool) {
    let (mut pending, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        // Read before the pipe is polled: whatever the child wrote is in the pipe by then.
        let ended = child_ended.load(Ordering::Acquire);
        let mut readable = [PollFd::from_borrowed_fd(output.as_fd(), PollFlags::IN)];
        match poll(&mut readable, Some(&FLUSH_AFTER)) {
            Ok(0) if ended => break,
            Ok(0) => print(&std::mem::take(&mut pending)),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => break,
            Ok(_) => match output.read(&mut buffer) {
                Ok(0) | Err(_) => break,
                Ok(length) => pending.extend_from_slice(&buffer[..length]),
            },
        }
        if let Some(end) = pending.iter().rposition(|byte| *byte == b'\n') {
            print(&pending.drain(..=end).collect::<Vec<u8>>());
        }
    }
    print(&pending);
}

/// Prints hook output. A carriage return, by which a progress line overwrites itself, becomes a line end.
fn print(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes).replace("\r\n", "\n").replace('\r', "\n");
    // The terminal may be gone; the hook's result counts all the same.
    drop(std::io::stderr().write_all(Printable::of(&text, true).as_str().as_bytes()));
}
