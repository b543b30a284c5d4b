//! Owns the form of what the hooks of a run know of it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::git::Oid;
use crate::store::Record;

/// The `proq.toml` of the main checkout at one time, beside that of its commit: ids of blobs, with line ends as Unix has them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SettingsFile {
    /// The branch that is checked out; none when HEAD is detached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) branch: Option<String>,
    /// The one of the commit, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) committed: Option<Oid>,
    /// The one that lies there, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lies: Option<Oid>,
}

impl SettingsFile {
    /// Whether the one that lies there is not that of the commit. Where none lies there, the commit's counts.
    pub(crate) fn is_edited(&self) -> bool {
        self.lies.is_some() && self.lies != self.committed
    }
}

/// The settings of git-proq that are the user's own and say what may land, the `proq.toml` of the main checkout, and all hooks, at one
/// time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OwnSettings {
    /// The command lines of hooks of git-proq, each behind its event and a space.
    #[serde(default)]
    pub(crate) hook_lines: Vec<String>,
    /// Every setting and every hook by the name that a sentence has for it, with a text that changes with it.
    #[serde(default)]
    pub(crate) all: BTreeMap<String, String>,
    /// The `proq.toml` of the main checkout, of which an edit counts at once. None in a record of an older program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<SettingsFile>,
}

/// Command lines of hooks that were set while an agent ran, in the form of [`OwnSettings::hook_lines`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HeldHooks {
    /// Oldest first.
    #[serde(default)]
    pub(crate) lines: Vec<String>,
}

impl Record for HeldHooks {
    const FORMAT: u32 = 1;
}

/// A run, as its hooks know it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FenceRecord {
    /// The lane.
    pub(crate) lane: String,
    /// Its branch, without `refs/heads/`; none when it only looks, and may write no branch at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) branch: Option<String>,
    /// Whether that is the branch of the main checkout, which is others' too.
    #[serde(default)]
    pub(crate) in_place: bool,
    /// Whether it may look and change nothing, and so write no ref.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) read_only: bool,
    /// The git directory of the worktree that the run works in.
    #[serde(with = "crate::store::path_form")]
    pub(crate) git_dir: PathBuf,
    /// The hooks that the repository had when the run began.
    #[serde(default)]
    pub(crate) own_hooks: Vec<String>,
    /// The user's own settings when the run began; none in a record of an older program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) own: Option<OwnSettings>,
}

impl Record for FenceRecord {
    const FORMAT: u32 = 1;
}
