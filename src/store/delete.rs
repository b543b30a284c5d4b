//! Deletion of stored files: their size on disk, and removal that is atomic for readers.

use std::collections::HashSet;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::{Error, Layout, ScratchDir};

/// Bytes of a block in `st_blocks`, independent of the disk's block size.
const STAT_BLOCK_BYTES: u64 = 512;
/// Permissions that an owner needs to empty a folder.
const OWNER_RWX: u32 = 0o700;

impl Layout {
    /// Deletes a file or folder below `proq/`. A rename comes first, so that the item is either complete or
    /// absent whenever this is interrupted. The next command removes what an interruption leaves.
    pub(crate) fn delete(&self, path: &Path) -> Result<(), Error> {
        self.begin_deletion(path)?.finish()
    }

    /// Moves an item away and returns its pending deletion. For callers with a lock that is not needed for
    /// the slow second half.
    pub(crate) fn begin_deletion(&self, path: &Path) -> Result<PendingDeletion, Error> {
        let deletion = PendingDeletion(self.create_scratch()?);
        match std::fs::rename(path, deletion.moved_path()) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::io("remove", path)(e)),
            _ => Ok(deletion),
        }
    }
}

/// Item that was moved away and still takes disk space.
#[derive(Debug)]
#[must_use]
pub(crate) struct PendingDeletion(ScratchDir);

impl PendingDeletion {
    fn moved_path(&self) -> PathBuf {
        self.0.path().join("gone")
    }

    /// Removes the files from the disk.
    pub(crate) fn finish(self) -> Result<(), Error> {
        remove_tree(&self.moved_path())
    }
}

/// Returns the bytes that a file, or a folder with its contents, takes on disk. Links are not followed.
pub(crate) fn size_on_disk(path: &Path) -> u64 {
    sum_disk_usage(path, &mut HashSet::new())
}

fn sum_disk_usage(path: &Path, counted_inodes: &mut HashSet<(u64, u64)>) -> u64 {
    let Ok(meta) = path.symlink_metadata() else { return 0 };
    // Additional hard links of one file take no space.
    if !meta.is_dir() && meta.nlink() > 1 && !counted_inodes.insert((meta.dev(), meta.ino())) {
        return 0;
    }
    let mut total = meta.blocks() * STAT_BLOCK_BYTES;
    if meta.is_dir() {
        for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
            total += sum_disk_usage(&entry.path(), counted_inodes);
        }
    }
    total
}

/// Removes a file, or a folder with its contents. Also works for read-only folders, as some caches create
/// them.
pub(crate) fn remove_tree(path: &Path) -> Result<(), Error> {
    let remove = || match path.symlink_metadata() {
        Ok(meta) if meta.is_dir() => std::fs::remove_dir_all(path),
        Ok(_) => std::fs::remove_file(path),
        Err(e) => Err(e),
    };
    let removed = remove().or_else(|e| {
        if e.kind() != std::io::ErrorKind::PermissionDenied {
            return Err(e);
        }
        make_dirs_writable(path);
        remove()
    });
    match removed {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::io("remove", path)(e)),
        _ => Ok(()),
    }
}

fn make_dirs_writable(dir: &Path) {
    let Ok(meta) = dir.symlink_metadata() else { return };
    if !meta.is_dir() {
        return;
    }
    drop(std::fs::set_permissions(dir, std::fs::Permissions::from_mode(meta.mode() | OWNER_RWX)));
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        make_dirs_writable(&entry.path());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_counts_hard_links_once() {
        let root = tempfile::tempdir().unwrap();
        let big = root.path().join("big");
        std::fs::write(&big, vec![1; 1 << 20]).unwrap();
        let dir = root.path().join("dir");
        std::fs::create_dir(&dir).unwrap();
        std::os::unix::fs::symlink(&big, dir.join("link")).unwrap();
        assert!(size_on_disk(&dir) < 1 << 18);
        std::fs::hard_link(&big, dir.join("one")).unwrap();
        std::fs::hard_link(&big, dir.join("two")).unwrap();
        assert!((1 << 20..1 << 21).contains(&size_on_disk(&dir)));
        assert_eq!(size_on_disk(&root.path().join("nothing")), 0);
    }

    #[test]
    fn deletes_read_only_dirs_and_keeps_link_targets() {
        let root = tempfile::tempdir().unwrap();
        let layout = Layout::new(root.path());
        let (dir, mine) = (root.path().join("dir"), root.path().join("mine"));
        std::fs::create_dir_all(dir.join("cache/deep")).unwrap();
        std::fs::create_dir(&mine).unwrap();
        std::fs::write(mine.join("file"), "x").unwrap();
        std::fs::write(dir.join("cache/deep/file"), "x").unwrap();
        std::os::unix::fs::symlink(&mine, dir.join("link")).unwrap();
        for closed in ["cache/deep", "cache"] {
            std::fs::set_permissions(dir.join(closed), std::fs::Permissions::from_mode(0o500)).unwrap();
        }
        layout.delete(&dir).unwrap();
        assert!(!dir.exists() && mine.join("file").exists());
        assert_eq!(std::fs::read_dir(layout.work_dir()).unwrap().count(), 0);
        layout.delete(&dir).unwrap();
    }
}
