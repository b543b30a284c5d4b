//! Owns getting rid of what is not kept any more: how much room it takes, and removing it in one step that nobody sees half of.

use std::collections::HashSet;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::{Error, Layout, Scratch};

/// What a block of a file takes, whatever the disk's own blocks are.
const BLOCK: u64 = 512;
/// What the owner needs to empty a folder.
const OWN: u32 = 0o700;

impl Layout {
    /// Takes something below `proq/` away: by a rename first, so that it is there whole or not at all, whenever this is
    /// cut off. What is left on its way then goes with the next command.
    pub(crate) fn bury(&self, path: &Path) -> Result<(), Error> {
        self.take_away(path)?.finish()
    }

    /// The first half of that, for whoever holds a lock that need not be held for the other.
    pub(crate) fn take_away(&self, path: &Path) -> Result<Grave, Error> {
        let grave = Grave(self.scratch()?);
        match std::fs::rename(path, grave.path()) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::io("remove", path)(e)),
            _ => Ok(grave),
        }
    }
}

/// What was taken away and takes room still.
#[derive(Debug)]
#[must_use]
pub(crate) struct Grave(Scratch);

impl Grave {
    fn path(&self) -> PathBuf {
        self.0.path().join("gone")
    }

    /// Removes it.
    pub(crate) fn finish(self) -> Result<(), Error> {
        remove_tree(&self.path())
    }
}

/// The room that a file, or a folder with all that is in it, takes on its disk. Links are not followed.
pub(crate) fn size_on_disk(path: &Path) -> u64 {
    sum(path, &mut HashSet::new())
}

fn sum(path: &Path, seen: &mut HashSet<(u64, u64)>) -> u64 {
    let Ok(meta) = path.symlink_metadata() else { return 0 };
    // Further names of one file take no room.
    if !meta.is_dir() && meta.nlink() > 1 && !seen.insert((meta.dev(), meta.ino())) {
        return 0;
    }
    let mut total = meta.blocks() * BLOCK;
    if meta.is_dir() {
        for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
            total += sum(&entry.path(), seen);
        }
    }
    total
}

/// Removes a file or a folder with all that is in it, also where a folder is closed to writing, as caches make them.
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
        open_folders(path);
        remove()
    });
    match removed {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::io("remove", path)(e)),
        _ => Ok(()),
    }
}

fn open_folders(dir: &Path) {
    let Ok(meta) = dir.symlink_metadata() else { return };
    if !meta.is_dir() {
        return;
    }
    drop(std::fs::set_permissions(dir, std::fs::Permissions::from_mode(meta.mode() | OWN)));
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        open_folders(&entry.path());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_counted_and_not_followed() {
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
    fn folders_that_are_closed_to_writing_go_too_and_what_links_lead_to_stays() {
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
        layout.bury(&dir).unwrap();
        assert!(!dir.exists() && mine.join("file").exists());
        assert_eq!(std::fs::read_dir(layout.work()).unwrap().count(), 0);
        layout.bury(&dir).unwrap();
    }
}
