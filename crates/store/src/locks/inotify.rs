//! Inotify descriptor, the only wrapper of the kernel's notices of changed files. Elsewhere than on Linux, no
//! descriptor can be created.

use std::ffi::OsString;

pub use descriptor::InotifyFd;

/// Change that the kernel reports.
#[derive(Debug, PartialEq, Eq)]
pub enum FileChange {
    /// A file or folder in a watched folder was created, written, moved or deleted, or a watched file was
    /// written.
    Entry {
        /// Number of the watch.
        watch: i32,
        /// Name within the watched folder; empty for a watched file itself.
        name: OsString,
        /// Whether the entry is a folder.
        is_folder: bool,
    },
    /// The watched folder itself was moved or unmounted.
    FolderMoved {
        /// Number of the watch.
        watch: i32,
    },
    /// The watched folder itself was deleted, or its watch has ended.
    FolderDeleted {
        /// Number of the watch.
        watch: i32,
    },
    /// There were more changes than the kernel keeps: anything may have changed.
    Overflow,
}

#[cfg(target_os = "linux")]
mod descriptor {
    use std::ffi::OsStr;
    use std::io;
    use std::mem::MaybeUninit;
    use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;

    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
    use rustix::io::Errno;

    use super::FileChange;

    /// Inotify descriptor. Watched files and folders without changes cost nothing.
    #[derive(Debug)]
    pub struct InotifyFd(OwnedFd);

    impl InotifyFd {
        /// Creates a descriptor without watches.
        ///
        /// # Errors
        /// Fails when this user has too many descriptors.
        pub fn new() -> io::Result<InotifyFd> {
            Ok(InotifyFd(inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?))
        }

        /// Watches a folder and returns the number of the watch; a folder that is watched already keeps its
        /// number.
        ///
        /// # Errors
        /// Fails when the folder does not exist or cannot be read, or this user has too many watches.
        pub fn add_folder(&self, folder: &Path) -> io::Result<i32> {
            let changes = WatchFlags::CREATE | WatchFlags::MODIFY | WatchFlags::DELETE | WatchFlags::MOVE;
            let own = WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF | WatchFlags::ONLYDIR;
            Ok(inotify::add_watch(&self.0, folder, changes | own)?)
        }

        /// Watches a file for writes.
        ///
        /// # Errors
        /// As [`InotifyFd::add_folder`].
        pub(crate) fn add_file(&self, file: &Path) -> io::Result<i32> {
            Ok(inotify::add_watch(&self.0, file, WatchFlags::MODIFY)?)
        }

        /// Ends a watch. The kernel has ended that of a deleted folder.
        pub fn remove(&self, watch: i32) {
            inotify::remove_watch(&self.0, watch).unwrap_or_default();
        }

        /// Returns pending changes, as many as fit into the buffer; empty when there are none. It does not
        /// wait.
        ///
        /// # Errors
        /// Fails when the descriptor cannot be read.
        pub fn read_changes(&self) -> io::Result<Vec<FileChange>> {
            let mut buffer = [MaybeUninit::uninit(); 16 * 1024];
            let mut reader = Reader::new(&self.0, &mut buffer);
            let mut changes = Vec::new();
            loop {
                match reader.next() {
                    Ok(event) => changes.push(change_of(event.wd(), event.events(), event.file_name())),
                    Err(Errno::AGAIN) => return Ok(changes),
                    Err(Errno::INTR) => {}
                    Err(e) => return Err(e.into()),
                }
                if reader.is_buffer_empty() {
                    return Ok(changes);
                }
            }
        }
    }

    fn change_of(watch: i32, flags: ReadFlags, name: Option<&std::ffi::CStr>) -> FileChange {
        if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
            FileChange::Overflow
        } else if flags.intersects(ReadFlags::MOVE_SELF | ReadFlags::UNMOUNT) {
            FileChange::FolderMoved { watch }
        } else if flags.intersects(ReadFlags::DELETE_SELF | ReadFlags::IGNORED) {
            FileChange::FolderDeleted { watch }
        } else {
            let name = name.map_or(&[][..], std::ffi::CStr::to_bytes);
            let is_folder = flags.contains(ReadFlags::ISDIR);
            FileChange::Entry { watch, name: OsStr::from_bytes(name).to_owned(), is_folder }
        }
    }

    impl AsFd for InotifyFd {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.0.as_fd()
        }
    }

    impl AsRawFd for InotifyFd {
        fn as_raw_fd(&self) -> RawFd {
            self.0.as_raw_fd()
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod descriptor {
    use std::convert::Infallible;
    use std::io;
    use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
    use std::path::Path;

    use super::FileChange;

    /// Descriptor that does not exist on this system.
    #[derive(Debug)]
    pub struct InotifyFd(Infallible);

    impl InotifyFd {
        /// Fails: this system has no inotify.
        pub fn new() -> io::Result<InotifyFd> {
            Err(io::ErrorKind::Unsupported.into())
        }

        /// Is never called: there is no descriptor.
        pub fn add_folder(&self, _: &Path) -> io::Result<i32> {
            match self.0 {}
        }

        pub(crate) fn add_file(&self, _: &Path) -> io::Result<i32> {
            match self.0 {}
        }

        /// Is never called: there is no descriptor.
        pub fn remove(&self, _: i32) {
            match self.0 {}
        }

        /// Is never called: there is no descriptor.
        pub fn read_changes(&self) -> io::Result<Vec<FileChange>> {
            match self.0 {}
        }
    }

    impl AsFd for InotifyFd {
        fn as_fd(&self) -> BorrowedFd<'_> {
            match self.0 {}
        }
    }

    impl AsRawFd for InotifyFd {
        fn as_raw_fd(&self) -> RawFd {
            match self.0 {}
        }
    }
}
