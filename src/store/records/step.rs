//! Owns the form of an operation's steps: what was, what will be, and so how to finish it or take it back.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::git::{LocalState, Oid, RefMove, RepoPath};

/// One change. Each is small enough to be judged afterwards: it has happened, or it has not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
#[expect(clippy::large_enum_variant, reason = "an operation has a handful of steps")]
pub(crate) enum Step {
    /// A ref moves; none stands for "does not exist".
    Ref {
        /// Its full name.
        name: String,
        /// Where it was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        old: Option<Oid>,
        /// Where it goes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        new: Option<Oid>,
    },
    /// A ref is made that keeps something. It stays, whatever becomes of the rest.
    Anchor {
        /// Its full name.
        name: String,
        /// What it keeps.
        new: Oid,
    },
    /// A worktree goes from one commit to another.
    Tree {
        /// Its top folder.
        #[serde(with = "crate::store::path_form")]
        dir: PathBuf,
        /// The commit it was at.
        from: Oid,
        /// The commit it goes to.
        to: Oid,
        /// The ref that moves with it.
        #[serde(rename = "move")]
        mv: RefMove,
        /// The empty folders, index flags and permission bits that git drops on the way. Taking the step back brings them again.
        #[serde(default, skip_serializing_if = "LocalState::is_empty")]
        drops: LocalState,
        /// The empty folders, index flags and permission bits that it gets besides the files of `to`, where this takes another step back.
        #[serde(default, skip_serializing_if = "LocalState::is_empty")]
        brings: LocalState,
    },
    /// The branch of a worktree went from one commit to another while an agent worked there. This only says so.
    Worked {
        /// Its top folder.
        #[serde(with = "crate::store::path_form")]
        dir: PathBuf,
        /// The branch, without `refs/heads/`.
        branch: String,
        /// Where it was.
        from: Oid,
        /// Where it is.
        to: Oid,
    },
    /// A snapshot is taken.
    Snap {
        /// Its id.
        id: String,
        /// It existed before and was taken anew, as older versions did: it goes on existing when this is taken back.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        anew: bool,
    },
    /// What a snapshot holds is moved out of a worktree, which is clean then.
    Clear {
        /// The worktree's top folder.
        #[serde(with = "crate::store::path_form")]
        dir: PathBuf,
        /// The snapshot's id.
        snap: String,
    },
    /// What a snapshot holds is brought back.
    Restore {
        /// The worktree's top folder.
        #[serde(with = "crate::store::path_form")]
        dir: PathBuf,
        /// The snapshot's id.
        snap: String,
        /// The commit that the worktree is at.
        head: Oid,
        /// How the worktree was before, where it was not clean for certain.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<Before>,
    },
    /// A record is written; none stands for "does not exist".
    File {
        /// Where it lies below `proq/`.
        #[serde(with = "crate::store::path_form")]
        path: PathBuf,
        /// What it said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        old: Option<String>,
        /// What it says then.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        new: Option<String>,
    },
    /// A folder or file gets another name.
    Move {
        /// Where it was.
        #[serde(with = "crate::store::path_form")]
        from: PathBuf,
        /// Where it goes.
        #[serde(with = "crate::store::path_form")]
        to: PathBuf,
    },
    /// A lane's worktree is made.
    Worktree {
        /// Its top folder.
        #[serde(with = "crate::store::path_form")]
        dir: PathBuf,
        /// The lane.
        lane: String,
        /// The commit that it is filled with.
        start: Oid,
    },
    /// The folder that a trash entry holds becomes that of a new lane.
    Reuse {
        /// The entry.
        #[serde(with = "crate::store::path_form")]
        entry: PathBuf,
        /// The new lane's folder, which git has on record.
        #[serde(with = "crate::store::path_form")]
        dir: PathBuf,
    },
    /// The folder that a trash entry held before another lane got it is made anew.
    Regrow {
        /// The entry.
        #[serde(with = "crate::store::path_form")]
        entry: PathBuf,
        /// The commit whose files it had.
        tip: Oid,
    },
    /// A worktree is made in which the conflict of a lane is resolved.
    Resolve {
        /// Its top folder.
        #[serde(with = "crate::store::path_form")]
        dir: PathBuf,
        /// The lane.
        lane: String,
        /// The commit that it is filled with.
        start: Oid,
    },
}

/// How a worktree was before a snapshot came back to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Before {
    /// The snapshot with what differed from HEAD; none when nothing did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) snap: Option<String>,
    /// Its empty folders.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) empty_dirs: Vec<RepoPath>,
    /// Ignored files that were there already and that the snapshot that came back names, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) ignored: Vec<RepoPath>,
}

/// Below this are refs that hold what an operation works with, for as long as it is under way.
const PENDING: &str = "refs/proq/pending/";

impl Step {
    /// Has the step name the folders of a repository, which was at `then`, where they are `now`.
    pub(crate) fn relocate(&mut self, then: &Path, now: &Path) {
        let paths: [Option<&mut PathBuf>; 2] = match self {
            Step::Tree { dir, .. }
            | Step::Worked { dir, .. }
            | Step::Clear { dir, .. }
            | Step::Restore { dir, .. }
            | Step::Worktree { dir, .. }
            | Step::Resolve { dir, .. } => [Some(dir), None],
            Step::Move { from, to } => [Some(from), Some(to)],
            Step::Reuse { entry, dir } => [Some(entry), Some(dir)],
            Step::Regrow { entry, .. } => [Some(entry), None],
            // A record is named by its path below `proq/`.
            Step::Ref { .. } | Step::Anchor { .. } | Step::Snap { .. } | Step::File { .. } => [None, None],
        };
        for path in paths.into_iter().flatten() {
            if let Ok(below) = path.strip_prefix(then) {
                *path = if below.as_os_str().is_empty() { now.to_owned() } else { now.join(below) };
            }
        }
    }

    /// The worktree whose files it changes.
    pub(crate) fn worktree(&self) -> Option<&Path> {
        match self {
            Step::Tree { dir, .. } | Step::Clear { dir, .. } | Step::Restore { dir, .. } => Some(dir),
            _ => None,
        }
    }

    /// The name of such a ref.
    pub(crate) fn pending_ref(id: &str) -> String {
        format!("{PENDING}{id}")
    }

    /// Whether it only moves such a ref: nothing of it is left once the operation has ended.
    pub(crate) fn is_fleeting(&self) -> bool {
        matches!(self, Step::Ref { name, .. } if name.starts_with(PENDING))
    }
}
