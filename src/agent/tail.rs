//! Reader of a log that an agent is still writing. The agent writes to the file directly: no output is lost
//! and no write waits for a reader, whatever happens to the supervisor.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

/// Maximum number of bytes read in one call.
const READ_CHUNK_BYTES: usize = 64 * 1024;

/// A file that is read while it grows.
pub(super) struct Tail {
    file: File,
    buffer: Vec<u8>,
    growth: GrowthSignal,
}

impl Tail {
    /// Opens the existing file `path` for reading from its beginning.
    pub(super) fn open(path: &Path) -> std::io::Result<Tail> {
        // Watched before anything is read, so that no write is missed in between.
        let growth = GrowthSignal::of(path);
        Ok(Tail {
            file: crate::regular_file::open_store_file(path)?,
            buffer: vec![0; READ_CHUNK_BYTES],
            growth,
        })
    }

    /// Reads the next unread bytes, at most [`READ_CHUNK_BYTES`]. Returns an empty slice at the end of the
    /// file.
    pub(super) fn read_chunk(&mut self) -> std::io::Result<&[u8]> {
        let length = loop {
            match self.file.read(&mut self.buffer) {
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        Ok(&self.buffer[..length])
    }

    /// Waits until the file may have grown since the previous wait.
    pub(super) async fn wait_for_growth(&mut self) {
        self.growth.wait().await;
    }
}

/// Poll interval for a file that inotify does not watch.
const FALLBACK_POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Notification that a file may have grown. It uses inotify where an inotify watch can be created, and polls
/// otherwise.
struct GrowthSignal {
    #[cfg(target_os = "linux")]
    inotify_watch: Option<kernel_watch::InotifyWatch>,
}

impl GrowthSignal {
    #[cfg(target_os = "linux")]
    fn of(path: &Path) -> GrowthSignal {
        GrowthSignal { inotify_watch: kernel_watch::InotifyWatch::open(path).ok() }
    }

    #[cfg(not(target_os = "linux"))]
    fn of(_: &Path) -> GrowthSignal {
        GrowthSignal {}
    }

    async fn wait(&mut self) {
        #[cfg(target_os = "linux")]
        if let Some(inotify_watch) = &mut self.inotify_watch {
            if inotify_watch.wait().await.is_ok() {
                return;
            }
            self.inotify_watch = None;
        }
        tokio::time::sleep(FALLBACK_POLL_INTERVAL).await;
    }
}

#[cfg(target_os = "linux")]
mod kernel_watch {
    use std::os::fd::OwnedFd;
    use std::path::Path;

    use rustix::fs::inotify;
    use tokio::io::unix::AsyncFd;

    /// An inotify watch for writes to one file: an agent without output costs nothing.
    pub(super) struct InotifyWatch(AsyncFd<OwnedFd>);

    impl InotifyWatch {
        pub(super) fn open(path: &Path) -> std::io::Result<InotifyWatch> {
            let fd = inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC)?;
            inotify::add_watch(&fd, path, inotify::WatchFlags::MODIFY)?;
            #[expect(deprecated, reason = "what it warns of is a descriptor that changes; this one cannot")]
            Ok(InotifyWatch(AsyncFd::new(fd)?))
        }

        pub(super) async fn wait(&mut self) -> std::io::Result<()> {
            loop {
                let mut ready = self.0.readable().await?;
                let mut events = [0; 4096];
                match rustix::io::read(self.0.get_ref(), &mut events) {
                    Ok(_) => return Ok(()),
                    Err(rustix::io::Errno::AGAIN) => ready.clear_ready(),
                    Err(rustix::io::Errno::INTR) => {}
                    Err(e) => return Err(e.into()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// Reads a file during concurrent writes, with the given kind of growth signal.
    fn read_while_written(open_growth: impl FnOnce(&Path) -> GrowthSignal) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        std::fs::write(&path, "before\n").unwrap();
        let wanted = (0..20_000).map(|n| format!("line {n}")).collect::<Vec<_>>().join("\n");
        runtime.block_on(async {
            let mut tail = Tail { growth: open_growth(&path), ..Tail::open(&path).unwrap() };
            let (path, text) = (path.clone(), wanted.clone());
            let writer = std::thread::spawn(move || {
                let mut file = File::options().append(true).open(path).unwrap();
                text.split_inclusive(' ').for_each(|line| file.write_all(line.as_bytes()).unwrap());
            });
            let mut received = Vec::new();
            while received.len() < "before\n".len() + wanted.len() {
                let chunk = tail.read_chunk().unwrap().to_vec();
                if chunk.is_empty() {
                    tail.wait_for_growth().await;
                }
                received.extend(chunk);
            }
            writer.join().unwrap();
            assert!(tail.read_chunk().unwrap().is_empty());
            assert!(String::from_utf8(received).unwrap() == format!("before\n{wanted}"));
        });
    }

    #[test]
    fn reads_concurrent_writes_in_order_and_once() {
        read_while_written(GrowthSignal::of);
    }

    #[test]
    fn polls_file_without_inotify() {
        // This path cannot be watched, as when too many files are watched already.
        read_while_written(|_| GrowthSignal::of(Path::new("/nowhere")));
    }
}
