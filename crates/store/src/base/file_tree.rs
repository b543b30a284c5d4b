//! Size on disk and removal of a file, or of a folder with its contents.

use std::collections::HashSet;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use crate::Error;

/// Bytes of a block in `st_blocks`, independent of the disk's block size.
const STAT_BLOCK_BYTES: u64 = 512;
/// Permissions that an owner needs to empty a folder.
const OWNER_RWX: u32 = 0o700;

/// Returns the bytes that a file, or a folder with its contents, takes on disk. Links are not followed.
pub fn size_on_disk(path: &Path) -> u64 {
    sum_disk_usage(path, &mut HashSet::new())
}

/// Sums the bytes that a file or folder takes. A file with additional hard links counts once:
/// `counted_inodes` has the device and inode of those that were counted.
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
pub fn remove_tree(path: &Path) -> Result<(), Error> {
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

/// Gives the owner all permissions of a folder and of all folders below it. Ignores failures.
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
}
