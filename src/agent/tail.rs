//! Owns reading a log while an agent writes to it. The agent has the file itself: nothing is lost, and nobody waits for a
//! reader, whatever becomes of this process.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// How much is read at once.
const PART: usize = 64 * 1024;

/// A file that grows.
pub(super) struct Tail {
    file: File,
    buffer: Vec<u8>,
    growth: Growth,
}

impl Tail {
    /// Reads `path`, which exists, from its beginning.
    pub(super) fn open(path: &Path) -> std::io::Result<Tail> {
        // Watched before anything is read, so that nothing falls between.
        let growth = Growth::of(path)?;
        Ok(Tail { file: File::open(path)?, buffer: vec![0; PART], growth })
    }

    /// What is there and was not read yet, at most a part of it; empty when there is nothing.
    pub(super) fn rest(&mut self) -> std::io::Result<&[u8]> {
        let length = self.file.read(&mut self.buffer)?;
        Ok(&self.buffer[..length])
    }

    /// Returns when the file may have grown since the last call.
    pub(super) async fn grown(&mut self) -> std::io::Result<()> {
        self.growth.wait().await
    }
}

#[cfg(not(target_os = "linux"))]
use by_clock::Growth;
#[cfg(target_os = "linux")]
use by_kernel::Growth;

#[cfg(target_os = "linux")]
mod by_kernel {
    use std::os::fd::OwnedFd;
    use std::path::Path;

    use rustix::fs::inotify;
    use tokio::io::unix::AsyncFd;

    /// Is told of writes by the kernel: a silent agent costs nothing.
    pub(super) struct Growth(AsyncFd<OwnedFd>);

    impl Growth {
        pub(super) fn of(path: &Path) -> std::io::Result<Growth> {
            let fd = inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC)?;
            inotify::add_watch(&fd, path, inotify::WatchFlags::MODIFY)?;
            #[expect(deprecated, reason = "what it warns of is a descriptor that changes; this one cannot")]
            Ok(Growth(AsyncFd::new(fd)?))
        }

        pub(super) async fn wait(&mut self) -> std::io::Result<()> {
            loop {
                let mut ready = self.0.readable().await?;
                let mut told = [0; 4096];
                match rustix::io::read(self.0.get_ref(), &mut told) {
                    Ok(_) => return Ok(()),
                    Err(rustix::io::Errno::AGAIN) => ready.clear_ready(),
                    Err(rustix::io::Errno::INTR) => {}
                    Err(e) => return Err(e.into()),
                }
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod by_clock {
    use std::path::Path;
    use std::time::Duration;

    /// How often a file is looked at where the kernel does not tell.
    const GLANCE: Duration = Duration::from_millis(250);

    /// Looks from time to time.
    pub(super) struct Growth;

    impl Growth {
        #[expect(clippy::unnecessary_wraps, reason = "the same as where the kernel tells, which can fail")]
        pub(super) fn of(_: &Path) -> std::io::Result<Growth> {
            Ok(Growth)
        }

        #[expect(clippy::unnecessary_wraps, reason = "the same as where the kernel tells, which can fail")]
        pub(super) async fn wait(&mut self) -> std::io::Result<()> {
            tokio::time::sleep(GLANCE).await;
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn whatever_is_written_is_read_in_order_and_once() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        std::fs::write(&path, "before\n").unwrap();
        let wanted = (0..20_000).map(|n| format!("line {n}")).collect::<Vec<_>>().join("\n");
        runtime.block_on(async {
            let mut tail = Tail::open(&path).unwrap();
            let (path, text) = (path.clone(), wanted.clone());
            let writer = std::thread::spawn(move || {
                let mut file = File::options().append(true).open(path).unwrap();
                text.split_inclusive(' ').for_each(|line| file.write_all(line.as_bytes()).unwrap());
            });
            let mut read = Vec::new();
            while read.len() < "before\n".len() + wanted.len() {
                let part = tail.rest().unwrap().to_vec();
                if part.is_empty() {
                    tail.grown().await.unwrap();
                }
                read.extend(part);
            }
            writer.join().unwrap();
            assert!(tail.rest().unwrap().is_empty());
            assert!(String::from_utf8(read).unwrap() == format!("before\n{wanted}"));
        });
    }
}
