//! Access to the merge engine for this repository's own tools: the in-process merge alone, and the merge as a
//! landing makes it.
//!
//! Not a stable interface: it changes with the engine.

use std::path::{Path, PathBuf};

use proq_git as git;
use proq_git::merge::tree_merge;
use proq_git::{CommitId, RepoPath, TreeId};

use crate::ops::error::Error;

/// A repository in which commits can be merged without changing its refs, index or files.
pub struct Probe {
    repo: git::Repo,
    scratch: PathBuf,
}

/// Result of merging two commits without a landing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbedMerge {
    /// Merged tree; with conflicts it contains conflict markers.
    pub tree: TreeId,
    /// Whether the merge has no conflict.
    pub is_clean: bool,
    /// Conflicted paths, each once, in order.
    pub conflicted_paths: Vec<RepoPath>,
}

impl Probe {
    /// Opens the repository at `dir`. If git needs attribute files, they are written to folders in `scratch`,
    /// which are not removed.
    ///
    /// # Errors
    /// Fails if there is no repository, or no git that is new enough.
    pub fn open(dir: &Path, scratch: &Path) -> Result<Probe, Error> {
        let repo = git::Repo::discover(dir)?;
        repo.version()?;
        Ok(Probe { repo, scratch: scratch.to_owned() })
    }

    /// Merges two commits in process and returns the tree, or none where the merge needs git or a decision.
    /// Writes no object, not even the tree.
    ///
    /// # Errors
    /// Fails if an object cannot be read; a landing would leave that merge to git.
    pub fn merge_in_process(&self, ours: CommitId, theirs: CommitId) -> Result<Option<TreeId>, Error> {
        Ok(tree_merge::exact_merge_tree(&self.repo, ours, theirs)?)
    }

    /// Merges `theirs` into `ours` as a landing would: in process where possible, else by git. New objects
    /// are written to the repository and stay on disk.
    ///
    /// # Errors
    /// Fails if git refuses the merge or does not finish it.
    pub fn merge(&self, ours: CommitId, theirs: CommitId) -> Result<ProbedMerge, Error> {
        let merged = tree_merge::merge_commits(&self.repo, ours, theirs, &self.scratch, None)?;
        Ok(ProbedMerge {
            tree: merged.tree,
            is_clean: merged.is_clean,
            conflicted_paths: merged.conflicted_paths(),
        })
    }
}
