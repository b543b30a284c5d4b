//! Forwarding of hook output to a terminal, without control sequences.

use std::io::{IsTerminal, PipeReader, Read, Write};
use std::os::fd::AsFd;
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use proq_base::terminal_text::Printable;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Time for which an unfinished line is held back. A hook that leaves a background process with its standard
/// error open delays the command by at most this time.
const PARTIAL_LINE_DELAY: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// Returns whether this process's standard error is a terminal.
pub fn stderr_is_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// Waits for `child` while a thread forwards `output`, the reading end of its standard error. Returns when
/// the child has exited, even if a process that it started still has the pipe open.
///
/// # Errors
/// Fails if the child cannot be waited for.
pub(crate) fn wait_and_forward(child: &mut Child, output: PipeReader) -> std::io::Result<ExitStatus> {
    let has_exited = Arc::new(AtomicBool::new(false));
    let child_exited = Arc::clone(&has_exited);
    let forwarder = std::thread::spawn(move || forward_lines(output, &child_exited));
    let status = child.wait();
    has_exited.store(true, Ordering::Release);
    drop(forwarder.join());
    status
}

fn forward_lines(mut output: PipeReader, child_exited: &AtomicBool) {
    let (mut pending, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        // The flag is read before the pipe is polled: whatever the child wrote is in the pipe by then.
        let has_exited = child_exited.load(Ordering::Acquire);
        let mut readable = [PollFd::from_borrowed_fd(output.as_fd(), PollFlags::IN)];
        match poll(&mut readable, Some(&PARTIAL_LINE_DELAY)) {
            Ok(0) if has_exited => break,
            Ok(0) => print_hook_output(&std::mem::take(&mut pending)),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => break,
            Ok(_) => match output.read(&mut buffer) {
                Ok(0) | Err(_) => break,
                Ok(length) => pending.extend_from_slice(&buffer[..length]),
            },
        }
        if let Some(end) = pending.iter().rposition(|byte| *byte == b'\n') {
            print_hook_output(&pending.drain(..=end).collect::<Vec<u8>>());
        }
    }
    print_hook_output(&pending);
}

/// Prints hook output to standard error without control sequences. A carriage return, with which a progress
/// line overwrites itself, becomes a line end.
fn print_hook_output(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes).replace("\r\n", "\n").replace('\r', "\n");
    // The terminal may be gone; the hook's result counts anyway.
    drop(std::io::stderr().write_all(Printable::escape(&text, true).as_str().as_bytes()));
}
