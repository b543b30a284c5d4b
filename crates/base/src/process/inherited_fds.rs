//! Inherited file descriptors: finding those that this process inherited, and keeping them from its children.

use std::os::fd::{BorrowedFd, RawFd};

use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};

/// Folders in which the system lists the open file descriptors of this process.
const FD_LISTINGS: [&str; 2] = ["/proc/self/fd", "/dev/fd"];

/// Returns the file descriptors that children would inherit, beyond the three standard streams. These are the
/// ones that this process inherited, not those that it opened. Example: the lock that marks an agent as
/// running, where this process is a tool of that agent. Empty where the system has no such listing.
pub(super) fn inheritable_fds() -> Vec<RawFd> {
    let entries = FD_LISTINGS.iter().find_map(|list| std::fs::read_dir(list).ok());
    let names = entries.into_iter().flatten().flatten().map(|entry| entry.file_name());
    let numbers = names.filter_map(|name| name.to_str()?.parse().ok());
    numbers.filter(|fd| *fd > 2 && fcntl_getfd(borrow_fd(*fd)).is_ok_and(|flags| flags.is_empty())).collect()
}

/// Marks file descriptors as close-on-exec, so that the next program does not inherit them. May be called
/// between fork and exec.
pub(super) fn set_close_on_exec(fds: &[RawFd]) {
    for fd in fds {
        // A descriptor that is closed by now is not inherited anyway.
        let _gone = fcntl_setfd(borrow_fd(*fd), FdFlags::CLOEXEC);
    }
}

fn borrow_fd<'fd>(number: RawFd) -> BorrowedFd<'fd> {
    // SAFETY: the descriptor is only queried and its flag set, which fails if it is closed by now; no
    // reference is kept.
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
    fn lists_and_closes_inheritable_fds() {
        let (inheritable, private) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        fcntl_setfd(inheritable.as_fd(), FdFlags::empty()).unwrap();
        let listed = inheritable_fds();
        assert!(listed.contains(&inheritable.as_raw_fd()) && !listed.contains(&private.as_raw_fd()));
        set_close_on_exec(&[inheritable.as_raw_fd()]);
        assert!(!inheritable_fds().contains(&inheritable.as_raw_fd()));
    }
}
