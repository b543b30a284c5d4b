//! Texts of the records that this process has read: a record is read again only after a change.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use proq_base::regular_file;
use proq_base::regular_file::LinkPolicy;

use crate::Error;

/// Maximum number of records that are kept. Each keeps a file open.
const MAX_KEPT_RECORDS: usize = 32;

/// Network file systems by their `statfs` type: NFS, SMB (three), Ceph, AFS, Coda, 9p, Lustre, GPFS, and FUSE,
/// which may be one. Their clients may answer a stat from memory.
#[cfg(target_os = "linux")]
const NETWORK_FILE_SYSTEMS: &[u64] = &[
    0x6969,
    0x517B,
    0xFF53_4D42,
    0xFE53_4D42,
    0x00C3_6400,
    0x5346_414F,
    0x7375_7245,
    0x0102_1997,
    0x0BD0_0BD0,
    0x4750_4653,
    0x6573_5546,
];

/// Texts of the records that this process has read, by path.
#[derive(Debug, Default)]
pub(crate) struct RecordCache {
    records: Mutex<HashMap<PathBuf, ReadRecord>>,
}

/// Text of a record, with the file that it was read from.
#[derive(Debug)]
struct ReadRecord {
    text: Arc<str>,
    /// Metadata of the file before it was read.
    meta: Metadata,
    /// Keeps the inode in use, so that no later file can have its number.
    _file: File,
}

impl RecordCache {
    /// Returns the text of the record at `path`, of at most `max_bytes` bytes; none if it does not exist. Reads
    /// the file unless it is the one that was read last, without a change since.
    ///
    /// git-proq replaces a record by renaming another file to its path, and the file that was read stays open.
    /// So the file at the path has its inode number only if it is that file, however fast and often the record
    /// was replaced. Times and size show whether another program has written into it. On a network file system
    /// of Linux the file is always read.
    ///
    /// # Errors
    /// Fails if the file cannot be read, is too large, is no regular file or is no UTF-8.
    pub(crate) fn text(&self, path: &Path, max_bytes: u64) -> Result<Option<Arc<str>>, Error> {
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = records.get(path)
            && path.symlink_metadata().is_ok_and(|meta| is_unchanged(&known.meta, &meta))
        {
            return Ok(Some(Arc::clone(&known.text)));
        }
        records.remove(path);
        let (file, meta) = match regular_file::open(path, LinkPolicy::Refuse) {
            Ok(opened) => opened,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(Error::io("read", path)(e)),
        };
        let text = regular_file::read_open_file(&file, &meta, max_bytes)
            .and_then(regular_file::to_utf8_text)
            .map_err(Error::io("read", path))?;
        let text: Arc<str> = text.into();
        if is_on_network(&file) {
            return Ok(Some(text));
        }
        if records.len() == MAX_KEPT_RECORDS {
            records.clear();
        }
        records.insert(path.to_owned(), ReadRecord { text: Arc::clone(&text), meta, _file: file });
        Ok(Some(text))
    }

    /// Closes the file of the record at `path`, which is about to be deleted: on a network file system, an
    /// open file would stay in its folder.
    pub(crate) fn forget(&self, path: &Path) {
        self.records.lock().unwrap_or_else(PoisonError::into_inner).remove(path);
    }
}

/// Returns whether a file is on a network file system, or may be on one.
#[cfg(target_os = "linux")]
fn is_on_network(file: &File) -> bool {
    let is_network = |kind| u64::try_from(kind).is_ok_and(|kind| NETWORK_FILE_SYSTEMS.contains(&kind));
    rustix::fs::fstatfs(file).map_or(true, |status| is_network(status.f_type))
}

/// Returns whether a file is on a network file system, as far as that is known here.
#[cfg(not(target_os = "linux"))]
fn is_on_network(_: &File) -> bool {
    false
}

/// Returns whether two pieces of metadata are of one file without a change between them.
fn is_unchanged(old: &Metadata, new: &Metadata) -> bool {
    let version = |meta: &Metadata| {
        let (modified, changed) = ((meta.mtime(), meta.mtime_nsec()), (meta.ctime(), meta.ctime_nsec()));
        (meta.dev(), meta.ino(), meta.size(), modified, changed)
    };
    version(old) == version(new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::atomic;

    /// Many of the files have the same size and were written within one tick of the clock.
    #[test]
    fn sees_each_replacement() {
        let dir = tempfile::tempdir().unwrap();
        let (path, cache) = (dir.path().join("lane.toml"), RecordCache::default());
        assert_eq!(cache.text(&path, 100).unwrap(), None);
        for n in 100..200 {
            let text = n.to_string();
            atomic::write_unsynced(&path, text.as_bytes()).unwrap();
            assert_eq!(cache.text(&path, 100).unwrap().as_deref(), Some(text.as_str()));
        }
        std::fs::remove_file(&path).unwrap();
        assert_eq!(cache.text(&path, 100).unwrap(), None);
    }

    /// Otherwise another file could get the number of its inode.
    #[test]
    #[cfg(target_os = "linux")]
    fn keeps_file_open_until_next_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap().join("lane.toml");
        let cache = RecordCache::default();
        let deleted = PathBuf::from(format!("{} (deleted)", path.display()));
        let is_old_file_open = || {
            let fds = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
            fds.filter_map(|fd| std::fs::read_link(fd.path()).ok()).any(|target| target == deleted)
        };
        for forgotten in [false, true] {
            atomic::write_unsynced(&path, b"old").unwrap();
            assert_eq!(cache.text(&path, 100).unwrap().as_deref(), Some("old"));
            atomic::write_unsynced(&path, b"new").unwrap();
            assert!(is_old_file_open());
            if forgotten {
                cache.forget(&path);
            } else {
                assert_eq!(cache.text(&path, 100).unwrap().as_deref(), Some("new"));
            }
            assert!(!is_old_file_open());
        }
    }

    #[test]
    fn reads_unchanged_record_once() {
        let dir = tempfile::tempdir().unwrap();
        let (path, cache) = (dir.path().join("lane.toml"), RecordCache::default());
        std::fs::write(&path, "first").unwrap();
        let first = cache.text(&path, 100).unwrap().unwrap();
        assert!(Arc::ptr_eq(&first, &cache.text(&path, 100).unwrap().unwrap()));
        std::fs::write(&path, "another").unwrap();
        assert_eq!(cache.text(&path, 100).unwrap().as_deref(), Some("another"));
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("elsewhere", &path).unwrap();
        assert!(cache.text(&path, 100).is_err());
    }

    #[test]
    fn keeps_few_files_open() {
        let dir = tempfile::tempdir().unwrap();
        let cache = RecordCache::default();
        for n in 0..=MAX_KEPT_RECORDS {
            let path = dir.path().join(n.to_string());
            std::fs::write(&path, "x").unwrap();
            assert_eq!(cache.text(&path, 100).unwrap().as_deref(), Some("x"));
            assert!(cache.records.lock().unwrap().len() <= MAX_KEPT_RECORDS);
        }
    }
}
