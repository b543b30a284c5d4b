//! Paths of the files in the trash, by the folder of an entry.

use std::path::{Path, PathBuf};

use proq_base::lane_name::LaneName;

use super::layout::{Layout, TRASH_DIR};

/// Name, in an entry, of the worktree's folder.
const WORKTREE_DIR: &str = "worktree";

impl Layout {
    /// Returns the folder of an entry of the trash for a lane.
    pub fn trash_entry(&self, lane: &LaneName, id: &str) -> PathBuf {
        self.trash().join(format!("{lane}-{id}"))
    }

    /// Returns the path of the record of an entry.
    pub fn trash_record_in(entry: &Path) -> PathBuf {
        entry.join("trash.toml")
    }

    /// Returns the worktree's folder in an entry, before it is reused and after it is recreated.
    pub fn trash_worktree_in(entry: &Path) -> PathBuf {
        entry.join(WORKTREE_DIR)
    }

    /// Name, in the worktree's folder of an entry for single files, of the folder of files that replace those
    /// of a lane.
    pub const NEW_FILES_DIR: &str = "new";

    /// Name, in the worktree's folder of an entry for single files, of the folder of a lane's replaced files.
    pub const OLD_FILES_DIR: &str = "old";

    /// Returns whether a path is in a folder named [`Layout::NEW_FILES_DIR`], in the trash of any repository:
    /// the repository may have been moved since.
    pub fn is_new_trash_file(path: &Path) -> bool {
        let parts: Vec<_> = path.iter().collect();
        parts
            .windows(4)
            .any(|part| part[0] == TRASH_DIR && part[2] == WORKTREE_DIR && part[3] == Layout::NEW_FILES_DIR)
    }

    /// Returns whether a path has the name of the worktree's folder in an entry.
    pub fn is_trash_worktree(path: &Path) -> bool {
        path.ends_with(WORKTREE_DIR)
    }

    /// Returns git's folder for the worktree in an entry.
    pub fn trash_admin_dir_in(entry: &Path) -> PathBuf {
        entry.join("admin")
    }

    /// Returns the path of the record of the lane that got the worktree's folder of an entry.
    pub fn reused_trash_record_in(entry: &Path) -> PathBuf {
        entry.join("given.toml")
    }

    /// Returns the folder for the files that were in the worktree of an entry besides its commit and were not
    /// reused.
    pub fn trash_parked_files_in(entry: &Path) -> PathBuf {
        entry.join("aside")
    }

    /// Returns the path of the saved `.git` file of the worktree in an entry whose folder was reused.
    pub fn trash_gitlink_in(entry: &Path) -> PathBuf {
        entry.join("gitlink")
    }

    /// Returns the path of the note that names the nested repository for which an entry is retained.
    pub fn trash_nested_repo_note_in(entry: &Path) -> PathBuf {
        entry.join("holds")
    }
}
