//! Record of what the git guard's hooks know of their run, and of the settings that are guarded.

use std::collections::BTreeMap;
use std::path::PathBuf;

use proq_base::lane_name::LaneName;
use proq_git::BlobId;
use serde::{Deserialize, Serialize};

use crate::base::record::Record;

/// State of `proq.toml` in the main checkout and in its commit at one time: blob ids, with line ends
/// converted to LF.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingsFile {
    /// Branch that is checked out; none when HEAD is detached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Blob id of the file in the commit, if the commit has the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub committed: Option<BlobId>,
    /// Blob id of the file on disk, if the file exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "lies")]
    pub on_disk: Option<BlobId>,
}

impl SettingsFile {
    /// Returns whether the file on disk differs from the commit. A missing file is not an edit: the commit's
    /// file applies then.
    pub fn is_edited(&self) -> bool {
        self.on_disk.is_some() && self.on_disk != self.committed
    }
}

/// Settings of the user that decide what may land, the `proq.toml` of the main checkout, and all hooks, at
/// one time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuardedSettings {
    /// Command lines of hooks of git-proq, each preceded by its event and a space.
    #[serde(default)]
    pub hook_lines: Vec<String>,
    /// Values that change with each setting and each hook, by the name that messages use for it.
    #[serde(default)]
    #[serde(rename = "all")]
    pub fingerprints: BTreeMap<String, String>,
    /// State of the `proq.toml` of the main checkout, whose edits apply immediately. None in a record of an
    /// older program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "file")]
    pub settings_file: Option<SettingsFile>,
}

/// Command lines of hooks that were set while an agent ran, in the form of [`GuardedSettings::hook_lines`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WithheldHooks {
    /// Command lines, oldest first.
    #[serde(default)]
    pub lines: Vec<String>,
}

impl Record for WithheldHooks {
    const FORMAT: u32 = 1;
}

/// Run that a git guard restricts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitGuardRecord {
    /// Name of the lane.
    pub lane: LaneName,
    /// Branch of the lane, without `refs/heads/`; none for a read-only run, which may write no branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Whether the branch is that of the main checkout, which others use too.
    #[serde(default)]
    #[serde(rename = "in_place")]
    pub works_in_place: bool,
    /// Whether the run is read-only, and so may write no ref.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "read_only")]
    pub is_read_only: bool,
    /// Git directory of the run's worktree.
    #[serde(with = "crate::paths::path_form")]
    pub git_dir: PathBuf,
    /// Names of the hooks that the repository had when the run started.
    #[serde(default)]
    #[serde(rename = "own_hooks")]
    pub repository_hooks: Vec<String>,
    /// Guarded settings when the run started; none in a record of an older program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "own")]
    pub settings: Option<GuardedSettings>,
}

impl Record for GitGuardRecord {
    const FORMAT: u32 = 1;
}
