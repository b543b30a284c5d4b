//! Folder watcher: waits until something changes in a folder, or a timeout passes.

use std::path::Path;
use std::time::Duration;

/// Watcher of a folder for files that are created, modified, moved or deleted in it. It uses inotify on
/// Linux; elsewhere every wait lasts until its timeout.
pub(crate) struct DirWatcher {
    #[cfg(target_os = "linux")]
    inotify_thread: Option<linux::InotifyThread>,
}

impl DirWatcher {
    /// Starts watching `dir`. If the kernel refuses another watch, every wait lasts until its timeout.
    #[cfg(target_os = "linux")]
    pub(crate) fn watch(dir: &Path) -> DirWatcher {
        DirWatcher { inotify_thread: linux::InotifyThread::start(dir).ok() }
    }

    /// Returns a watcher that observes nothing: this system has no inotify.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn watch(_: &Path) -> DirWatcher {
        DirWatcher {}
    }

    /// Returns once there has been a change since the last call, or after `limit`.
    pub(crate) fn wait(&self, limit: Duration) {
        #[cfg(target_os = "linux")]
        if let Some(inotify_thread) = &self.inotify_thread {
            return inotify_thread.wait(limit);
        }
        std::thread::sleep(limit);
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::os::fd::OwnedFd;
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, mpsc};
    use std::time::Duration;

    use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

    /// Thread that blocks on an inotify descriptor. It ends when this value is dropped.
    pub(super) struct InotifyThread {
        wake_receiver: mpsc::Receiver<()>,
        fd: Arc<OwnedFd>,
        watch: i32,
        stopped: Arc<AtomicBool>,
    }

    impl InotifyThread {
        pub(super) fn start(dir: &Path) -> std::io::Result<InotifyThread> {
            let fd = Arc::new(inotify::init(CreateFlags::CLOEXEC)?);
            let watch_flags = WatchFlags::CREATE
                | WatchFlags::MODIFY
                | WatchFlags::DELETE
                | WatchFlags::MOVE
                | WatchFlags::ONLYDIR;
            let watch = inotify::add_watch(&fd, dir, watch_flags)?;
            // One pending message is enough, however much has changed.
            let (sender, receiver) = mpsc::sync_channel(1);
            let stopped = Arc::new(AtomicBool::new(false));
            let (reader_fd, stop_flag) = (Arc::clone(&fd), Arc::clone(&stopped));
            std::thread::Builder::new().spawn(move || {
                let mut buffer = [0; 4096];
                loop {
                    match rustix::io::read(&reader_fd, &mut buffer) {
                        Err(rustix::io::Errno::INTR) => {}
                        Ok(_) if !stop_flag.load(Ordering::Acquire) => drop(sender.try_send(())),
                        _ => return,
                    }
                }
            })?;
            Ok(InotifyThread { wake_receiver: receiver, fd, watch, stopped })
        }

        pub(super) fn wait(&self, limit: Duration) {
            // A thread that has ended sends no wake-up, so this call sleeps until the timeout itself.
            if self.wake_receiver.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Disconnected) {
                std::thread::sleep(limit);
            }
        }
    }

    impl Drop for InotifyThread {
        fn drop(&mut self) {
            self.stopped.store(true, Ordering::Release);
            // Removing the watch makes the kernel send an event, which wakes the thread.
            let _gone = inotify::remove_watch(&self.fd, self.watch);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

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
