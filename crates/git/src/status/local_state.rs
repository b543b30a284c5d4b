//! State of a worktree that no commit records and that git loses on a switch between commits.

use std::collections::HashSet;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::untracked_folders::empty_folders_at;
use crate::base::folders::exists_in_real_folder;
use crate::history::tree_diff::{TreeChange, tree_changes};
use crate::index::file_modes::{PathMode, modes_for_written_files, unusual_modes};
use crate::index::index_flags;
use crate::index::index_flags::FlaggedEntry;
use crate::index::sparse_patterns::{SparseExceptions, SparsePatterns};
use crate::{CommitId, Error, Repo, RepoPath};

/// Empty folders, index flags and permission bits of a worktree, and the files that a sparse checkout shows
/// or leaves out against its patterns. None of it belongs to a commit. An undo restores it together with the
/// files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalState {
    /// Paths of empty folders.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub empty_dirs: Vec<RepoPath>,
    /// Files whose index entry is marked assume-unchanged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "assumed")]
    pub assume_unchanged: Vec<RepoPath>,
    /// Files whose index entry is marked skip-worktree, although no sparse pattern leaves them out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "skipped")]
    pub skip_worktree: Vec<RepoPath>,
    /// Files that a sparse checkout shows although its patterns leave them out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shown: Vec<RepoPath>,
    /// Files that a sparse checkout leaves out although its patterns include them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<RepoPath>,
    /// Permission bits of files and folders that differ from those of new ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modes: Vec<PathMode>,
}

/// Returns the permission bits of files that git rewrites or removes, and of the folders above them, where
/// they differ from those of new ones.
fn lost_modes(repo: &Repo, dir: &Path, changes: &[TreeChange]) -> Vec<PathMode> {
    if !repo.trusts_file_modes() {
        return Vec::new();
    }
    let existed = |c: &&TreeChange| c.old.is_some_and(|side| !side.is_gitlink());
    unusual_modes(dir, changes.iter().filter(existed).map(|c| &c.path))
}

impl LocalState {
    /// Returns what the worktree at `dir` loses on a switch between two commits. That is:
    ///
    /// - empty folders in place of new files, in place of files that a sparse checkout leaves out, and above
    ///   both
    /// - flags of removed files, except skip-worktree where the sparse patterns leave the file out, which git
    ///   sets automatically
    /// - which removed files are present or absent against those patterns
    /// - permission bits
    ///
    /// # Errors
    /// Fails if the commits cannot be compared, or if git cannot list an index that gitoxide cannot read.
    pub fn lost_on_switch(
        repo: &Repo,
        dir: &Path,
        from: CommitId,
        to: CommitId,
    ) -> Result<LocalState, Error> {
        let changes = tree_changes(repo, from, to)?;
        let new_paths = changes.iter().filter(|c| c.old.is_none()).map(|c| &c.path);
        let mut state = LocalState {
            empty_dirs: empty_folders_at(dir, new_paths),
            modes: lost_modes(repo, dir, &changes),
            ..LocalState::default()
        };
        let removed_paths: HashSet<&RepoPath> =
            changes.iter().filter(|c| c.new.is_none()).map(|c| &c.path).collect();
        if removed_paths.is_empty() {
            return Ok(state);
        }
        let git_dir = repo.worktree_git_dir(dir)?;
        let index = git_dir.join("index");
        let mut flagged = index_flags::flagged_entries_in(repo, dir, &index)?;
        flagged.retain(|entry| removed_paths.contains(&entry.path));
        let patterns = SparsePatterns::load(repo, dir, &git_dir)?;
        if let Some(patterns) = &patterns {
            // A sparse directory entry leaves out its files as the patterns require.
            let is_listed = index_flags::index_entry_predicate(repo, &index);
            let indexed_paths: HashSet<&RepoPath> =
                removed_paths.iter().copied().filter(|path| is_listed(path)).collect();
            state.record_pattern_exceptions(dir, patterns, &flagged, &indexed_paths);
        }
        for entry in flagged {
            let is_by_pattern = |patterns: &SparsePatterns| {
                patterns.excludes(&entry.path) && state.shown.binary_search(&entry.path).is_err()
            };
            if entry.skip_worktree && !patterns.as_ref().is_some_and(is_by_pattern) {
                state.skip_worktree.push(entry.path.clone());
            }
            if entry.assume_unchanged {
                state.assume_unchanged.push(entry.path);
            }
        }
        Ok(state)
    }

    /// Records which removed files of a sparse checkout are present or absent against its patterns, and the
    /// empty folders in place of the absent ones.
    fn record_pattern_exceptions(
        &mut self,
        dir: &Path,
        patterns: &SparsePatterns,
        flagged: &[FlaggedEntry],
        removed_paths: &HashSet<&RepoPath>,
    ) {
        let skipped: HashSet<&RepoPath> =
            flagged.iter().filter(|f| f.skip_worktree).map(|f| &f.path).collect();
        for path in removed_paths {
            match (patterns.excludes(path), skipped.contains(path) && !exists_in_real_folder(dir, path)) {
                (true, false) => self.shown.push((*path).clone()),
                (false, true) => self.left_out.push((*path).clone()),
                _ => {}
            }
        }
        self.shown.sort();
        self.left_out.sort();
        let absent = removed_paths
            .iter()
            .copied()
            .filter(|path| skipped.contains(path) && !exists_in_real_folder(dir, path));
        self.empty_dirs.extend(empty_folders_at(dir, absent));
        self.empty_dirs.sort();
        self.empty_dirs.dedup();
    }

    /// Returns the manually set flags in the index of the worktree at `dir`. With `shared_with`, the path
    /// of another index, only the flags that both have.
    ///
    /// # Errors
    /// Fails if git cannot list an index that gitoxide cannot read.
    pub fn read_manual_flags(
        repo: &Repo,
        dir: &Path,
        shared_with: Option<&Path>,
    ) -> Result<LocalState, Error> {
        let git_dir = repo.worktree_git_dir(dir)?;
        let read_flags = |index: &Path| index_flags::manual_flags(repo, dir, &git_dir, index);
        let mut state = LocalState::default();
        for entry in read_flags(&git_dir.join("index"))? {
            state.skip_worktree.extend(entry.skip_worktree.then(|| entry.path.clone()));
            state.assume_unchanged.extend(entry.assume_unchanged.then_some(entry.path));
        }
        if let Some(other_index) = shared_with.filter(|_| !state.is_empty()) {
            let (mut assumed, mut skipped) = (HashSet::new(), HashSet::new());
            for entry in read_flags(other_index)? {
                skipped.extend(entry.skip_worktree.then(|| entry.path.clone()));
                assumed.extend(entry.assume_unchanged.then_some(entry.path));
            }
            state.assume_unchanged.retain(|path| assumed.contains(path));
            state.skip_worktree.retain(|path| skipped.contains(path));
        }
        Ok(state)
    }

    /// Returns this state with the flags of `other` added.
    pub fn with_flags(mut self, other: LocalState) -> LocalState {
        for (paths, added) in [
            (&mut self.assume_unchanged, other.assume_unchanged),
            (&mut self.skip_worktree, other.skip_worktree),
        ] {
            paths.extend(added);
            paths.sort();
            paths.dedup();
        }
        self
    }

    /// Records the permission bits that the worktree at `dir` loses on a switch between two commits. Those
    /// recorded earlier stay.
    ///
    /// # Errors
    /// Fails if the commits cannot be compared.
    pub fn record_lost_modes(
        &mut self,
        repo: &Repo,
        dir: &Path,
        from: CommitId,
        to: CommitId,
    ) -> Result<(), Error> {
        let modes = lost_modes(repo, dir, &tree_changes(repo, from, to)?);
        let lost = LocalState { modes, ..LocalState::default() };
        *self = lost.with_modes(self);
        Ok(())
    }

    /// Returns this state with the permission bits in `lost` added. For a path in both, `lost` has priority:
    /// the mode just before the file is rewritten counts.
    pub fn with_modes(&self, lost: &LocalState) -> LocalState {
        let mut all = self.clone();
        all.modes.retain(|mode| !lost.modes.iter().any(|other| other.has_same_path_and_kind(mode)));
        all.modes.extend(lost.modes.iter().cloned());
        // Sorted, a folder precedes its contents.
        all.modes.sort();
        all
    }

    /// Returns whether the state records nothing.
    pub fn is_empty(&self) -> bool {
        *self == LocalState::default()
    }

    /// Returns the files that a sparse checkout has to show or leave out against its patterns.
    pub(crate) fn pattern_exceptions(&self) -> SparseExceptions<'_> {
        SparseExceptions {
            shown_against_patterns: self.shown.iter().collect(),
            absent_against_patterns: self.left_out.iter().collect(),
        }
    }

    /// Returns the permission bits of files that `changes` write, and of the folders above them.
    pub(crate) fn changed_file_modes(&self, changes: &[TreeChange]) -> Vec<PathMode> {
        modes_for_written_files(&self.modes, changes)
    }

    /// Returns the flags of files that `changes` write.
    pub(crate) fn changed_file_flags(&self, changes: &[TreeChange]) -> Vec<FlaggedEntry> {
        let mut all = self.all_flags();
        if !all.is_empty() {
            let written_paths: HashSet<&RepoPath> =
                changes.iter().filter(|c| c.new.is_some()).map(|c| &c.path).collect();
            all.retain(|entry| written_paths.contains(&entry.path));
        }
        all
    }

    /// Returns all flags, one per returned entry.
    pub(crate) fn all_flags(&self) -> Vec<FlaggedEntry> {
        let assumed = self.assume_unchanged.iter();
        let assumed = assumed.map(|path| FlaggedEntry {
            path: path.clone(),
            assume_unchanged: true,
            skip_worktree: false,
        });
        let skipped = self.skip_worktree.iter();
        let skipped = skipped.map(|path| FlaggedEntry {
            path: path.clone(),
            assume_unchanged: false,
            skip_worktree: true,
        });
        assumed.chain(skipped).collect()
    }
}
