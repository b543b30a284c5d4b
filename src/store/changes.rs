//! Owns waiting until something changes in a folder, or time is up.

use std::path::Path;
use std::time::Duration;

/// Hears of files that come to a folder, change there, or go. On Linux the kernel tells; elsewhere each wait takes its time.
pub(crate) struct Changes {
    #[cfg(target_os = "linux")]
    told: Option<by_kernel::Told>,
}

impl Changes {
    /// Listens from now on. Where the kernel has no room for one more that asks, each wait takes its time.
    #[cfg(target_os = "linux")]
    pub(crate) fn in_folder(dir: &Path) -> Changes {
        Changes { told: by_kernel::Told::of(dir).ok() }
    }

    /// Nothing tells of changes here.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn in_folder(_: &Path) -> Changes {
        Changes {}
    }

    /// Returns when there was a change since the last call, or after `limit`.
    pub(crate) fn wait(&self, limit: Duration) {
        #[cfg(target_os = "linux")]
        if let Some(told) = &self.told {
            return told.wait(limit);
        }
        std::thread::sleep(limit);
    }
}

#[cfg(target_os = "linux")]
mod by_kernel {
    use std::os::fd::OwnedFd;
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, mpsc};
    use std::time::Duration;

    use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

    /// A thread that sleeps on what the kernel tells. It ends with this value.
    pub(super) struct Told {
        heard: mpsc::Receiver<()>,
        fd: Arc<OwnedFd>,
        watch: i32,
        over: Arc<AtomicBool>,
    }

    impl Told {
        pub(super) fn of(dir: &Path) -> std::io::Result<Told> {
            let fd = Arc::new(inotify::init(CreateFlags::CLOEXEC)?);
            let what = WatchFlags::CREATE
                | WatchFlags::MODIFY
                | WatchFlags::DELETE
                | WatchFlags::MOVE
                | WatchFlags::ONLYDIR;
            let watch = inotify::add_watch(&fd, dir, what)?;
            // One word is enough, however much has changed.
            let (tell, told) = mpsc::sync_channel(1);
            let over = Arc::new(AtomicBool::new(false));
            let (ear, ends) = (Arc::clone(&fd), Arc::clone(&over));
            std::thread::Builder::new().spawn(move || {
                let mut words = [0; 4096];
                loop {
                    match rustix::io::read(&ear, &mut words) {
                        Err(rustix::io::Errno::INTR) => {}
                        Ok(_) if !ends.load(Ordering::Acquire) => drop(tell.try_send(())),
                        _ => return,
                    }
                }
            })?;
            Ok(Told { heard: told, fd, watch, over })
        }

        pub(super) fn wait(&self, limit: Duration) {
            // A thread that is gone tells nothing; then time passes all the same.
            if self.heard.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Disconnected) {
                std::thread::sleep(limit);
            }
        }
    }

    impl Drop for Told {
        fn drop(&mut self) {
            self.over.store(true, Ordering::Release);
            // The kernel says that nothing is watched any more, which wakes the thread.
            let _gone = inotify::remove_watch(&self.fd, self.watch);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_wait_ends_with_a_change_or_with_the_time() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("wish");
        std::fs::write(&file, "x").unwrap();
        let changes = Changes::in_folder(dir.path());
        changes.wait(Duration::from_millis(1));
        assert!(file.exists());
        let begin = Instant::now();
        let remover = std::thread::spawn(move || std::fs::remove_file(file).unwrap());
        let limit =
            if cfg!(target_os = "linux") { Duration::from_mins(1) } else { Duration::from_millis(100) };
        changes.wait(limit);
        remover.join().unwrap();
        assert!(begin.elapsed() < Duration::from_secs(50));
        let none = Changes::in_folder(&dir.path().join("none"));
        none.wait(Duration::from_millis(1));
    }
}
