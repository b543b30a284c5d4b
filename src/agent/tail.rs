//! Owns reading a log while an agent writes to it. The agent has the file itself: nothing is lost, and nobody waits for a
//! reader, whatever becomes of this process.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

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
        let growth = Growth::of(path);
        Ok(Tail { file: crate::regular_file::open_record(path)?, buffer: vec![0; PART], growth })
    }

    /// What is there and was not read yet, at most a part of it; empty when there is nothing.
    pub(super) fn rest(&mut self) -> std::io::Result<&[u8]> {
        let length = loop {
            match self.file.read(&mut self.buffer) {
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        Ok(&self.buffer[..length])
    }

    /// Returns when the file may have grown since the last call.
    pub(super) async fn grown(&mut self) {
        self.growth.wait().await;
    }
}

/// How often a file is looked at where the kernel does not tell.
const GLANCE: Duration = Duration::from_millis(250);

/// Says when a file may have grown: the kernel does where it can, and where it still has room for one more that asks.
struct Growth {
    #[cfg(target_os = "linux")]
    told: Option<by_kernel::Told>,
}

impl Growth {
    #[cfg(target_os = "linux")]
    fn of(path: &Path) -> Growth {
        Growth { told: by_kernel::Told::of(path).ok() }
    }

    #[cfg(not(target_os = "linux"))]
    fn of(_: &Path) -> Growth {
        Growth {}
    }

    async fn wait(&mut self) {
        #[cfg(target_os = "linux")]
        if let Some(told) = &mut self.told {
            if told.wait().await.is_ok() {
                return;
            }
            self.told = None;
        }
        tokio::time::sleep(GLANCE).await;
    }
}

#[cfg(target_os = "linux")]
mod by_kernel {
    use std::os::fd::OwnedFd;
    use std::path::Path;

    use rustix::fs::inotify;
    use tokio::io::unix::AsyncFd;

    /// Is told of writes by the kernel: a silent agent costs nothing.
    pub(super) struct Told(AsyncFd<OwnedFd>);

    impl Told {
        pub(super) fn of(path: &Path) -> std::io::Result<Told> {
            let fd = inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC)?;
            inotify::add_watch(&fd, path, inotify::WatchFlags::MODIFY)?;
            #[expect(deprecated, reason = "what it warns of is a descriptor that changes; this one cannot")]
            Ok(Told(AsyncFd::new(fd)?))
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

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// Reads a file in which something is written meanwhile, with a growth of a kind.
    fn read_while_written(growth: impl FnOnce(&Path) -> Growth) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        std::fs::write(&path, "before\n").unwrap();
        let wanted = (0..20_000).map(|n| format!("line {n}")).collect::<Vec<_>>().join("\n");
        runtime.block_on(async {
            let mut tail = Tail { growth: growth(&path), ..Tail::open(&path).unwrap() };
            let (path, text) = (path.clone(), wanted.clone());
            let writer = std::thread::spawn(move || {
                let mut file = File::options().append(true).open(path).unwrap();
                text.split_inclusive(' ').for_each(|line| file.write_all(line.as_bytes()).unwrap());
            });
            let mut read = Vec::new();
            while read.len() < "before\n".len() + wanted.len() {
                let part = tail.rest().unwrap().to_vec();
                if part.is_empty() {
                    tail.grown().await;
                }
                read.extend(part);
            }
            writer.join().unwrap();
            assert!(tail.rest().unwrap().is_empty());
            assert!(String::from_utf8(read).unwrap() == format!("before\n{wanted}"));
        });
    }

    #[test]
    fn whatever_is_written_is_read_in_order_and_once() {
        read_while_written(Growth::of);
    }

    #[test]
    fn without_the_kernels_help_it_is_looked_at_from_time_to_time() {
        // Nothing can be watched there, as when too many are watched already.
        read_while_written(|_| Growth::of(Path::new("/nowhere")));
    }
}
