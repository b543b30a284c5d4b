//! Paths of the files in a snapshot's folder, by the folder.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::layout::{Layout, SNAPSHOT_IGNORED_DIR};

/// File name of the raw index.
const RAW_INDEX: &str = "index";

impl Layout {
    /// Returns the path of the record in a snapshot's folder. A snapshot without it is incomplete.
    pub fn snapshot_record_in(snapshot_folder: &Path) -> PathBuf {
        snapshot_folder.join("snap.toml")
    }

    /// Returns the path of a snapshot's record.
    pub fn snapshot_record(&self, id: &str) -> PathBuf {
        Layout::snapshot_record_in(&self.snapshot(id))
    }

    /// Returns the path of the raw index in a snapshot's folder.
    pub fn snapshot_index_in(snapshot_folder: &Path) -> PathBuf {
        snapshot_folder.join(RAW_INDEX)
    }

    /// Returns the path of a snapshot's raw index.
    pub fn snapshot_index(&self, id: &str) -> PathBuf {
        Layout::snapshot_index_in(&self.snapshot(id))
    }

    /// Returns the path that a snapshot's raw index is moved to when it is found broken.
    pub fn broken_snapshot_index(&self, id: &str) -> PathBuf {
        self.snapshot_index(id).with_extension("broken")
    }

    /// Returns the folder of the parked files in a snapshot's folder. `crates/git` fills it.
    pub fn parked_files_in(snapshot_folder: &Path) -> PathBuf {
        snapshot_folder.join("files")
    }

    /// Returns whether the entry of this name in a snapshot's folder is a copy, whose original is elsewhere.
    pub fn is_snapshot_copy(entry_name: &OsStr) -> bool {
        entry_name == SNAPSHOT_IGNORED_DIR || entry_name == RAW_INDEX
    }
}
