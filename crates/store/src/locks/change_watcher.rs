//! Watchers of a folder and of a file: waiting until something in them changes.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::unix::AsyncFd;

use super::inotify::InotifyFd;

/// Poll interval for a file that inotify does not watch.
const FILE_POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Watcher of a folder for files that are created, modified, moved or deleted in it. It uses inotify on
/// Linux; elsewhere every wait lasts until its timeout.
pub struct DirWatcher {
    inotify: Option<InotifyFd>,
}

impl DirWatcher {
    /// Starts watching `dir`. If the kernel refuses another watch, every wait lasts until its timeout.
    pub fn watch(dir: &Path) -> DirWatcher {
        let inotify = InotifyFd::new().and_then(|inotify| inotify.add_folder(dir).map(|_| inotify));
        DirWatcher { inotify: inotify.ok() }
    }

    /// Returns once there has been a change since the last call, or after `limit`.
    pub fn wait(&self, limit: Duration) {
        let started = Instant::now();
        if let Some(inotify) = &self.inotify
            && wait_for_changes(inotify, limit).is_ok()
        {
            return;
        }
        std::thread::sleep(limit.saturating_sub(started.elapsed()));
    }
}

/// Waits for changes, at most for `limit`, and reads those that have come until then.
fn wait_for_changes(inotify: &InotifyFd, limit: Duration) -> std::io::Result<()> {
    let started = Instant::now();
    loop {
        let remaining = limit.saturating_sub(started.elapsed());
        let timeout = Timespec::try_from(remaining).map_err(std::io::Error::other)?;
        match poll(&mut [PollFd::new(inotify, PollFlags::IN)], Some(&timeout)) {
            Ok(_) => break,
            Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
    while !inotify.read_changes()?.is_empty() && started.elapsed() < limit {}
    Ok(())
}

/// Watcher of a file for writes to it. It uses inotify where an inotify watch can be created, and polls
/// otherwise.
pub struct FileWatcher {
    inotify: Option<AsyncFd<InotifyFd>>,
}

impl FileWatcher {
    /// Starts watching `file`. Must be called in an event loop.
    pub fn watch(file: &Path) -> FileWatcher {
        let inotify = InotifyFd::new().and_then(|inotify| inotify.add_file(file).map(|_| inotify));
        FileWatcher { inotify: inotify.and_then(into_async).ok() }
    }

    /// Waits until the file may have been written since the previous wait.
    pub async fn wait(&mut self) {
        if let Some(inotify) = &self.inotify {
            if next_changes(inotify).await.is_ok() {
                return;
            }
            self.inotify = None;
        }
        tokio::time::sleep(FILE_POLL_INTERVAL).await;
    }
}

fn into_async(inotify: InotifyFd) -> std::io::Result<AsyncFd<InotifyFd>> {
    #[expect(deprecated, reason = "what it warns of is a descriptor that changes; this one cannot")]
    AsyncFd::new(inotify)
}

/// Waits for changes and reads them.
async fn next_changes(inotify: &AsyncFd<InotifyFd>) -> std::io::Result<()> {
    loop {
        let mut ready = inotify.readable().await?;
        if !inotify.get_ref().read_changes()?.is_empty() {
            return Ok(());
        }
        ready.clear_ready();
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
