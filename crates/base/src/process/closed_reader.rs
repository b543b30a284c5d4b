//! Wait for the reader of a pipe to end.

use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, poll};

/// Blocks until nobody reads from the other end of a pipe or socket any more. Returns false if that cannot be waited
/// for. A file is never closed this way.
pub fn wait_for_closed_reader(output: &impl AsFd) -> bool {
    // Errors and hang-ups are always reported.
    let mut output = [PollFd::new(output, PollFlags::empty())];
    loop {
        match poll(&mut output, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) if output[0].revents().is_empty() => {}
            Ok(_) => return output[0].revents().intersects(PollFlags::ERR | PollFlags::HUP),
            Err(_) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::wait_for_closed_reader;

    #[test]
    fn returns_once_the_reader_has_ended() {
        let (reader, writer) = std::io::pipe().unwrap();
        let waiting = std::thread::spawn(move || wait_for_closed_reader(&writer));
        drop(reader);
        assert!(waiting.join().unwrap());
    }
}
