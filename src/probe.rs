//! Owns the look at the merge engine from outside, for this repository's own programs: what each part of it answers.
//!
//! Not for anybody else: it changes as the engine does.

use std::path::{Path, PathBuf};

use crate::facade::Error;
use crate::git::{self, Oid, RepoPath};

/// A repository whose commits are merged, without any ref, index or file of it being touched.
pub struct Probe {
    repo: git::Repo,
    scratch: PathBuf,
}

/// What the engine makes of two commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The merged tree; with conflicts it holds markers.
    pub tree: Oid,
    /// Whether nothing needs a person.
    pub clean: bool,
    /// The conflicted paths, each once, in order.
    pub paths: Vec<RepoPath>,
}

impl Probe {
    /// Opens the repository at `dir`. Where attributes have to be laid out for git, that is done in folders of `scratch`, which
    /// stay there.
    ///
    /// # Errors
    /// When there is no repository, or no git that is new enough.
    pub fn open(dir: &Path, scratch: &Path) -> Result<Probe, Error> {
        let repo = git::Repo::discover(dir)?;
        repo.version()?;
        Ok(Probe { repo, scratch: scratch.to_owned() })
    }

    /// The tree that is made in process, or none where the merge needs a decision. Nothing is written, not even the tree.
    ///
    /// # Errors
    /// When an object cannot be read; a landing would leave that merge to git.
    pub fn exact(&self, ours: Oid, theirs: Oid) -> Result<Option<Oid>, Error> {
        Ok(git::merge_exactly(&self.repo, ours, theirs)?)
    }

    /// What a landing of `theirs` on `ours` would go by: in process where that is possible, else by git. New objects are
    /// written to the repository, on disk for good.
    ///
    /// # Errors
    /// When git refuses the merge, or does not come to an end with it.
    pub fn merge(&self, ours: Oid, theirs: Oid) -> Result<Answer, Error> {
        let merged = git::merge_commits(&self.repo, ours, theirs, &self.scratch, None)?;
        Ok(Answer { tree: merged.tree, clean: merged.clean, paths: merged.paths() })
    }
}
