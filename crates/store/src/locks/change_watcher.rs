//! Watchers of a folder and of a file: waiting until something in them changes.

use std::path::Path;
use std::time::{Duration, Instant};

/// Poll interval for a file that inotify does not watch.
const FILE_POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Watcher of a folder for files that are created, modified, moved or deleted in it. It uses inotify on
/// Linux; elsewhere every wait lasts until its timeout.
pub struct DirWatcher {
    #[cfg(target_os = "linux")]
    inotify: Option<inotify_fd::InotifyFd>,
}

impl DirWatcher {
    /// Starts watching `dir`. If the kernel refuses another watch, every wait lasts until its timeout.
    pub fn watch(dir: &Path) -> DirWatcher {
        #[cfg(not(target_os = "linux"))]
        let _ = dir;
        DirWatcher {
            #[cfg(target_os = "linux")]
            inotify: inotify_fd::InotifyFd::watch_dir(dir).ok(),
        }
    }

    /// Returns once there has been a change since the last call, or after `limit`.
    pub fn wait(&self, limit: Duration) {
        let started = Instant::now();
        #[cfg(target_os = "linux")]
        if let Some(inotify) = &self.inotify
            && inotify.wait_for_events(limit).is_ok()
        {
            return;
        }
        std::thread::sleep(limit.saturating_sub(started.elapsed()));
    }
}

/// Watcher of a file for writes to it. It uses inotify where an inotify watch can be created, and polls
/// otherwise.
pub struct FileWatcher {
    #[cfg(target_os = "linux")]
    inotify: Option<tokio::io::unix::AsyncFd<inotify_fd::InotifyFd>>,
}

impl FileWatcher {
    /// Starts watching `file`. Must be called in an event loop.
    pub fn watch(file: &Path) -> FileWatcher {
        #[cfg(not(target_os = "linux"))]
        let _ = file;
        FileWatcher {
            #[cfg(target_os = "linux")]
            inotify: inotify_fd::InotifyFd::watch_file(file).and_then(inotify_fd::InotifyFd::into_async).ok(),
        }
    }

    /// Waits until the file may have been written since the previous wait.
    pub async fn wait(&mut self) {
        #[cfg(target_os = "linux")]
        if let Some(inotify) = &self.inotify {
            if inotify_fd::next_events(inotify).await.is_ok() {
                return;
            }
            self.inotify = None;
        }
        tokio::time::sleep(FILE_POLL_INTERVAL).await;
    }
}

#[cfg(target_os = "linux")]
mod inotify_fd {
    use std::os::fd::{AsRawFd, OwnedFd, RawFd};
    use std::path::Path;
    use std::time::{Duration, Instant};

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::fs::inotify;
    use rustix::fs::inotify::{CreateFlags, WatchFlags};
    use tokio::io::unix::AsyncFd;

    /// Inotify descriptor with one watch: a file or folder without changes costs nothing.
    pub(super) struct InotifyFd(OwnedFd);

    impl InotifyFd {
        pub(super) fn watch_dir(dir: &Path) -> std::io::Result<InotifyFd> {
            let changes = WatchFlags::CREATE | WatchFlags::MODIFY | WatchFlags::DELETE | WatchFlags::MOVE;
            InotifyFd::watch(dir, changes | WatchFlags::ONLYDIR)
        }

        pub(super) fn watch_file(file: &Path) -> std::io::Result<InotifyFd> {
            InotifyFd::watch(file, WatchFlags::MODIFY)
        }

        fn watch(path: &Path, flags: WatchFlags) -> std::io::Result<InotifyFd> {
            let fd = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
            inotify::add_watch(&fd, path, flags)?;
            Ok(InotifyFd(fd))
        }

        pub(super) fn into_async(self) -> std::io::Result<AsyncFd<InotifyFd>> {
            #[expect(deprecated, reason = "what it warns of is a descriptor that changes; this one cannot")]
            AsyncFd::new(self)
        }

        /// Reads pending events, as many as fit into the buffer. Returns whether there were any.
        fn read_events(&self) -> std::io::Result<bool> {
            let mut events = [0; 4096];
            loop {
                match rustix::io::read(&self.0, &mut events) {
                    Ok(_) => return Ok(true),
                    Err(rustix::io::Errno::AGAIN) => return Ok(false),
                    Err(rustix::io::Errno::INTR) => {}
                    Err(e) => return Err(e.into()),
                }
            }
        }

        /// Waits for events, at most for `limit`, and reads those that have come until then.
        pub(super) fn wait_for_events(&self, limit: Duration) -> std::io::Result<()> {
            let started = Instant::now();
            loop {
                let remaining = limit.saturating_sub(started.elapsed());
                let timeout = Timespec::try_from(remaining).map_err(std::io::Error::other)?;
                match poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&timeout)) {
                    Ok(_) => break,
                    Err(rustix::io::Errno::INTR) => {}
                    Err(e) => return Err(e.into()),
                }
            }
            while self.read_events()? && started.elapsed() < limit {}
            Ok(())
        }
    }

    impl AsRawFd for InotifyFd {
        fn as_raw_fd(&self) -> RawFd {
            self.0.as_raw_fd()
        }
    }

    /// Waits for events and reads them.
    pub(super) async fn next_events(fd: &AsyncFd<InotifyFd>) -> std::io::Result<()> {
        loop {
            let mut ready = fd.readable().await?;
            if fd.get_ref().read_events()? {
                return Ok(());
            }
            ready.clear_ready();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_returns_on_change_or_timeout() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("wish");
        std::fs::write(&file, "x").unwrap();
        let changes = DirWatcher::watch(dir.path());
        changes.wait(Duration::from_millis(1));
        assert!(file.exists());
        let started = Instant::now();
        let remover = std::thread::spawn(move || std::fs::remove_file(file).unwrap());
        let limit =
            if cfg!(target_os = "linux") { Duration::from_mins(1) } else { Duration::from_millis(100) };
        changes.wait(limit);
        remover.join().unwrap();
        assert!(started.elapsed() < Duration::from_secs(50));
        let missing = DirWatcher::watch(&dir.path().join("none"));
        missing.wait(Duration::from_millis(1));
    }
}
