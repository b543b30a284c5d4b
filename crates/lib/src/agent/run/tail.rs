//! Reader of a log that an agent is still writing. The agent writes to the file directly: no output is lost
//! and no write waits for a reader, whatever happens to the supervisor.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use proq_store::locks::change_watcher::FileWatcher;

/// Maximum number of bytes read in one call.
const READ_CHUNK_BYTES: usize = 64 * 1024;

/// A file that is read while it grows.
pub(crate) struct Tail {
    file: File,
    buffer: Vec<u8>,
    watcher: FileWatcher,
}

impl Tail {
    /// Opens the existing file `path` for reading from its beginning.
    pub fn open(path: &Path) -> std::io::Result<Tail> {
        // Watched before anything is read, so that no write is missed in between.
        let watcher = FileWatcher::watch(path);
        Ok(Tail {
            file: proq_base::regular_file::open_store_file(path)?,
            buffer: vec![0; READ_CHUNK_BYTES],
            watcher,
        })
    }

    /// Reads the next unread bytes, at most [`READ_CHUNK_BYTES`]. Returns an empty slice at the end of the
    /// file.
    pub(crate) fn read_chunk(&mut self) -> std::io::Result<&[u8]> {
        let length = loop {
            match self.file.read(&mut self.buffer) {
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        Ok(&self.buffer[..length])
    }

    /// Waits until the file may have grown since the previous wait.
    pub(crate) async fn wait_for_growth(&mut self) {
        self.watcher.wait().await;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// Reads a file during concurrent writes, with the given kind of watcher.
    fn read_while_written(watch: impl FnOnce(&Path) -> FileWatcher) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        std::fs::write(&path, "before\n").unwrap();
        let wanted = (0..20_000).map(|n| format!("line {n}")).collect::<Vec<_>>().join("\n");
        runtime.block_on(async {
            let mut tail = Tail { watcher: watch(&path), ..Tail::open(&path).unwrap() };
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
        read_while_written(FileWatcher::watch);
    }

    #[test]
    fn polls_file_without_inotify() {
        // This path cannot be watched, as when too many files are watched already.
        read_while_written(|_| FileWatcher::watch(Path::new("/nowhere")));
    }
}
