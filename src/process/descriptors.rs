//! Owns what a program gets of what this process has open: nothing that it was itself left by whoever started it.

use std::os::fd::{BorrowedFd, RawFd};

use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};

/// Where the system lists what a process has open.
const LISTS: [&str; 2] = ["/proc/self/fd", "/dev/fd"];

/// Starts something that gets none but the three standard streams. What this process opens is closed there anyway; what it was
/// left is not, such as the lock that says that an agent lives, where this is a tool of that agent's.
pub(super) fn passing_on_none<T>(start: impl FnOnce() -> T) -> T {
    let mut left = open();
    left.retain(|fd| *fd > 2 && change(*fd, FdFlags::empty(), FdFlags::CLOEXEC));
    let started = start();
    for fd in left {
        change(fd, FdFlags::CLOEXEC, FdFlags::empty());
    }
    started
}

/// The numbers of all that is open. Where nothing lists them, none is known.
fn open() -> Vec<RawFd> {
    let entries = LISTS.iter().find_map(|list| std::fs::read_dir(list).ok());
    let names = entries.into_iter().flatten().flatten().map(|entry| entry.file_name());
    names.filter_map(|name| name.to_str()?.parse().ok()).collect()
}

/// Sets what becomes of a descriptor in what is started, if it is `old` now. Whether it was.
fn change(fd: RawFd, old: FdFlags, new: FdFlags) -> bool {
    // SAFETY: it is only asked about and its flag set, which fails where it has been closed meanwhile.
    #[expect(unsafe_code, reason = "nobody here owns what this process was left")]
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    fcntl_getfd(fd).is_ok_and(|now| now == old) && fcntl_setfd(fd, new).is_ok()
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn what_is_passed_on_otherwise_is_not_and_is_again_afterwards() {
        let file = tempfile::tempfile().unwrap();
        fcntl_setfd(file.as_fd(), FdFlags::empty()).unwrap();
        let meanwhile = passing_on_none(|| fcntl_getfd(file.as_fd()).unwrap());
        assert_eq!(meanwhile, FdFlags::CLOEXEC);
        assert_eq!(fcntl_getfd(file.as_fd()).unwrap(), FdFlags::empty());
        let own = tempfile::tempfile().unwrap();
        passing_on_none(|| {});
        assert_eq!(fcntl_getfd(own.as_fd()).unwrap(), FdFlags::CLOEXEC);
    }
}
