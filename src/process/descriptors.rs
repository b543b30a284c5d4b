//! Owns what a program gets of what this process has open: nothing that this one was itself left by whoever started it.

use std::os::fd::{BorrowedFd, RawFd};

use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};

/// Where the system lists what a process has open.
const LISTS: [&str; 2] = ["/proc/self/fd", "/dev/fd"];

/// What this process would pass on, beyond the three standard streams. What it has opened is not among that, what it was left
/// is: the lock that says that an agent lives, where this is a tool of that agent's. Where nothing lists it, none is known.
pub(super) fn passed_on() -> Vec<RawFd> {
    let entries = LISTS.iter().find_map(|list| std::fs::read_dir(list).ok());
    let names = entries.into_iter().flatten().flatten().map(|entry| entry.file_name());
    let numbers = names.filter_map(|name| name.to_str()?.parse().ok());
    numbers.filter(|fd| *fd > 2 && fcntl_getfd(at(*fd)).is_ok_and(|flags| flags.is_empty())).collect()
}

/// Keeps these from the program that this process is about to become. May be called between fork and exec.
pub(super) fn keep(fds: &[RawFd]) {
    for fd in fds {
        // One that is closed by now is passed on to nobody.
        let _gone = fcntl_setfd(at(*fd), FdFlags::CLOEXEC);
    }
}

fn at<'fd>(number: RawFd) -> BorrowedFd<'fd> {
    // SAFETY: it is only asked about and its flag set, which fails where it is closed by now; nothing is kept of it.
    #[expect(unsafe_code, reason = "nobody here owns what this process was left")]
    unsafe {
        BorrowedFd::borrow_raw(number)
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsFd, AsRawFd};

    use super::*;

    #[test]
    fn what_is_passed_on_is_known_and_can_be_kept() {
        let (left, own) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        fcntl_setfd(left.as_fd(), FdFlags::empty()).unwrap();
        let all = passed_on();
        assert!(all.contains(&left.as_raw_fd()) && !all.contains(&own.as_raw_fd()));
        keep(&[left.as_raw_fd()]);
        assert!(!passed_on().contains(&left.as_raw_fd()));
    }
}
