//! Owns the form of a conflict that is being resolved.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::git::{Oid, RepoPath};
use crate::store::{Moment, Record};

/// A conflicted path, with the sides that it has in the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ResolvePath {
    /// The path.
    pub(crate) path: RepoPath,
    /// 1 is the common base, 2 the lane, 3 the branch it lands on.
    pub(crate) stages: Vec<u8>,
    /// Whether all of them are plain files.
    pub(crate) plain: bool,
}

/// A worktree in which the conflict of a lane is checked out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ResolveRecord {
    /// The lane.
    pub(crate) lane: String,
    /// The branch it is to land on.
    pub(crate) onto: String,
    /// The worktree's top folder.
    #[serde(with = "crate::store::path_form")]
    pub(crate) path: PathBuf,
    /// The name of git's admin folder for it.
    pub(crate) worktree_id: String,
    /// The lane's tip: the merge's first parent.
    pub(crate) tip: Oid,
    /// The branch's tip, which was merged into it.
    pub(crate) base: Oid,
    /// The tree that git's automatic merge made, with markers.
    pub(crate) merged: Oid,
    /// When.
    pub(crate) at: Moment,
    /// The agent that resolves it; none for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<String>,
    /// Why former tries were refused, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) refusals: Vec<String>,
    /// What git said of each conflict.
    pub(crate) messages: Vec<String>,
    /// The conflicted paths.
    pub(crate) paths: Vec<ResolvePath>,
}

impl ResolveRecord {
    /// The ref that keeps both sides and what git made of them while this is open.
    pub(crate) fn ref_name(lane: &str) -> String {
        format!("refs/proq/resolve/{lane}")
    }

    /// The conflicted paths' names.
    pub(crate) fn names(&self) -> Vec<RepoPath> {
        self.paths.iter().map(|p| p.path.clone()).collect()
    }
}

impl Record for ResolveRecord {
    const FORMAT: u32 = 1;
}
