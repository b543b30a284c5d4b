//! Deletion of stored files that is atomic for readers.

use std::path::{Path, PathBuf};

use super::scratch::ScratchDir;
use crate::Error;
use crate::base::file_tree::remove_tree;
use crate::paths::layout::Layout;

impl Layout {
    /// Deletes a file or folder below `proq/`. A rename comes first, so that the item is either complete or
    /// absent whenever this is interrupted. The next command removes what an interruption leaves.
    pub fn delete(&self, path: &Path) -> Result<(), Error> {
        self.begin_deletion(path)?.finish()
    }

    /// Moves an item away and returns its pending deletion. For callers with a lock that is not needed for
    /// the slow second half.
    pub fn begin_deletion(&self, path: &Path) -> Result<PendingDeletion, Error> {
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
pub struct PendingDeletion(ScratchDir);

impl PendingDeletion {
    /// Returns the path that the item was moved to.
    fn moved_path(&self) -> PathBuf {
        self.0.path().join("gone")
    }

    /// Removes the files from the disk.
    pub fn finish(self) -> Result<(), Error> {
        remove_tree(&self.moved_path())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

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
        assert_eq!(std::fs::read_dir(layout.scratch_root()).unwrap().count(), 0);
        layout.delete(&dir).unwrap();
    }
}
