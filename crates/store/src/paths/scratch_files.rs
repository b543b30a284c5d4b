//! Paths of the files in a scratch folder, by the folder: that of a process, or of one step of an operation.

use std::path::{Path, PathBuf};

use super::layout::Layout;

impl Layout {
    /// Returns the folder for the temporary files of step `number` of an operation, in its process's folder.
    pub fn scratch_step(scratch: &Path, number: usize) -> PathBuf {
        scratch.join(number.to_string())
    }

    /// Returns the folder that the temporary files of a step are moved to before they are deleted.
    pub fn discarded_scratch(scratch: &Path) -> PathBuf {
        scratch.with_extension("discarded")
    }

    /// Returns the folder of a temporary object store.
    pub fn scratch_objects(scratch: &Path) -> PathBuf {
        scratch.join("objects")
    }

    /// Returns the folder of a temporary object store for the merges of pairs of lanes.
    pub fn scratch_pair_objects(scratch: &Path) -> PathBuf {
        scratch.join("pairs")
    }

    /// Returns the path of a temporary index file.
    pub fn scratch_index(scratch: &Path) -> PathBuf {
        scratch.join("index")
    }

    /// Returns the folder of a worktree that is not in its place yet.
    pub fn scratch_worktree(scratch: &Path) -> PathBuf {
        scratch.join("folder")
    }

    /// Returns the folder of a commit's files, to compare an incomplete worktree with.
    pub fn scratch_reference_dir(scratch: &Path) -> PathBuf {
        scratch.join("whole")
    }

    /// Returns the path of a commit message for hooks, which may change it.
    pub fn scratch_commit_message(scratch: &Path) -> PathBuf {
        scratch.join("MERGE_MSG")
    }

    /// Returns the folder of a lane that is not in its place yet.
    pub fn scratch_lane(scratch: &Path) -> PathBuf {
        scratch.join("lane")
    }

    /// Returns the folder of an entry that is not in the trash yet.
    pub fn scratch_trash_entry(scratch: &Path) -> PathBuf {
        scratch.join("entry")
    }

    /// Returns the path of the note that identifies the folder that a step created.
    pub fn created_folder_note(scratch: &Path) -> PathBuf {
        scratch.join("made")
    }

    /// Returns the path of the note with the temporary path that a step used on another disk.
    pub fn temp_path_note(scratch: &Path) -> PathBuf {
        scratch.join("beside")
    }
}
