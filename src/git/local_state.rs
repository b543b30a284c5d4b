//! Owns what a worktree has that no commit records, as far as git drops it on the way from one commit to another.

use std::collections::HashSet;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::flags::{self, Flagged};
use super::loose_folders::empty_in_place_of;
use super::modes::{PathMode, modes_of, unusual_modes};
use super::patterns::{Against, Patterns};
use super::quarantine::stands;
use super::{Change, Error, Oid, Repo, RepoPath, tree_changes};

/// Empty folders, index flags and permission bits of a worktree, and what a sparse checkout shows or leaves out against its patterns:
/// that belongs to no commit. An undo brings it back beside the files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LocalState {
    /// Empty folders.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) empty_dirs: Vec<RepoPath>,
    /// Files whose index entry is marked assume-unchanged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) assumed: Vec<RepoPath>,
    /// Files whose index entry is marked skip-worktree, though no pattern of a sparse checkout says so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) skipped: Vec<RepoPath>,
    /// Files that a sparse checkout shows though its patterns leave them out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) shown: Vec<RepoPath>,
    /// Files that a sparse checkout leaves out though its patterns include them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) left_out: Vec<RepoPath>,
    /// The permission bits of files and folders that are not what git gives a new one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) modes: Vec<PathMode>,
}

/// The permission bits of files that git writes anew or removes, and of the folders above them, as far as they are not what a new one
/// gets.
fn modes_lost(repo: &Repo, dir: &Path, changes: &[Change]) -> Vec<PathMode> {
    if !repo.trusts_file_modes() {
        return Vec::new();
    }
    let is_there = |c: &&Change| c.old.is_some_and(|side| !side.is_gitlink());
    unusual_modes(dir, changes.iter().filter(is_there).map(|c| &c.path))
}

impl LocalState {
    /// What the worktree at `dir` loses when it goes from one commit to another: empty folders in the place of new files, of those that
    /// a sparse checkout leaves out, and those above them; the flags of files that are removed, but for those that a sparse checkout's patterns leave out: git flags these by
    /// itself; which of them are there, or are not, against those patterns; and permission bits.
    ///
    /// # Errors
    /// When the commits cannot be compared, or git cannot list an index that the library does not read.
    pub(crate) fn dropped(repo: &Repo, dir: &Path, from: Oid, to: Oid) -> Result<LocalState, Error> {
        let changes = tree_changes(repo, from, to)?;
        let arriving = changes.iter().filter(|c| c.old.is_none()).map(|c| &c.path);
        let mut state = LocalState {
            empty_dirs: empty_in_place_of(dir, arriving),
            modes: modes_lost(repo, dir, &changes),
            ..LocalState::default()
        };
        let leaving: HashSet<&RepoPath> =
            changes.iter().filter(|c| c.new.is_none()).map(|c| &c.path).collect();
        if leaving.is_empty() {
            return Ok(state);
        }
        let git_dir = repo.git_dir_of(dir)?;
        let index = git_dir.join("index");
        let mut flagged = flags::flagged_in(repo, dir, &index)?;
        flagged.retain(|entry| leaving.contains(&entry.path));
        let patterns = Patterns::in_force(repo, dir, &git_dir)?;
        if let Some(patterns) = &patterns {
            // A folder that stands for its files leaves them out as the patterns say.
            let has_own = flags::has_entry(repo, &index);
            let own: HashSet<&RepoPath> = leaving.iter().copied().filter(|path| has_own(path)).collect();
            state.note_against(dir, patterns, &flagged, &own);
        }
        for entry in flagged {
            let is_by_pattern = |patterns: &Patterns| {
                patterns.leave_out(&entry.path) && state.shown.binary_search(&entry.path).is_err()
            };
            if entry.skipped && !patterns.as_ref().is_some_and(is_by_pattern) {
                state.skipped.push(entry.path.clone());
            }
            if entry.assumed {
                state.assumed.push(entry.path);
            }
        }
        Ok(state)
    }

    /// Notes which of the files that leave a sparse checkout are there, or are not, against its patterns, and the empty folders where
    /// the others were.
    fn note_against(
        &mut self,
        dir: &Path,
        patterns: &Patterns,
        flagged: &[Flagged],
        leaving: &HashSet<&RepoPath>,
    ) {
        let skipped: HashSet<&RepoPath> = flagged.iter().filter(|f| f.skipped).map(|f| &f.path).collect();
        for path in leaving {
            match (patterns.leave_out(path), skipped.contains(path) && !stands(dir, path)) {
                (true, false) => self.shown.push((*path).clone()),
                (false, true) => self.left_out.push((*path).clone()),
                _ => {}
            }
        }
        self.shown.sort();
        self.left_out.sort();
        let absent = leaving.iter().copied().filter(|path| skipped.contains(path) && !stands(dir, path));
        self.empty_dirs.extend(empty_in_place_of(dir, absent));
        self.empty_dirs.sort();
        self.empty_dirs.dedup();
    }

    /// The flags that somebody set by hand on entries of the index of the worktree at `dir`; with `like`, those of them that this other
    /// index of it has too.
    ///
    /// # Errors
    /// When git cannot list an index that the library does not read.
    pub(crate) fn flags_set(repo: &Repo, dir: &Path, like: Option<&Path>) -> Result<LocalState, Error> {
        let git_dir = repo.git_dir_of(dir)?;
        let own = |index: &Path| flags::set_by_hand(repo, dir, &git_dir, index);
        let mut state = LocalState::default();
        for entry in own(&git_dir.join("index"))? {
            state.skipped.extend(entry.skipped.then(|| entry.path.clone()));
            state.assumed.extend(entry.assumed.then_some(entry.path));
        }
        if let Some(like) = like.filter(|_| !state.is_empty()) {
            let (mut assumed, mut skipped) = (HashSet::new(), HashSet::new());
            for entry in own(like)? {
                skipped.extend(entry.skipped.then(|| entry.path.clone()));
                assumed.extend(entry.assumed.then_some(entry.path));
            }
            state.assumed.retain(|path| assumed.contains(path));
            state.skipped.retain(|path| skipped.contains(path));
        }
        Ok(state)
    }

    /// This, with the flags of `other` as well.
    pub(crate) fn with_flags(mut self, other: LocalState) -> LocalState {
        for (own, more) in [(&mut self.assumed, other.assumed), (&mut self.skipped, other.skipped)] {
            own.extend(more);
            own.sort();
            own.dedup();
        }
        self
    }

    /// Notes the permission bits that the worktree at `dir` loses when it goes from one commit to another. Those of files that are
    /// noted already stay as they are.
    ///
    /// # Errors
    /// When the commits cannot be compared.
    pub(crate) fn note_modes(&mut self, repo: &Repo, dir: &Path, from: Oid, to: Oid) -> Result<(), Error> {
        let modes = modes_lost(repo, dir, &tree_changes(repo, from, to)?);
        let lost = LocalState { modes, ..LocalState::default() };
        *self = lost.with_modes(self);
        Ok(())
    }

    /// This, with the permission bits of files that a step `drops`: what a file has just before it is written anew counts.
    pub(crate) fn with_modes(&self, drops: &LocalState) -> LocalState {
        let mut all = self.clone();
        all.modes.retain(|mode| !drops.modes.iter().any(|other| other.is_of_the_same(mode)));
        all.modes.extend(drops.modes.iter().cloned());
        // Folders come before what is in them.
        all.modes.sort();
        all
    }

    /// Whether there is nothing of it.
    pub(crate) fn is_empty(&self) -> bool {
        *self == LocalState::default()
    }

    /// What a sparse checkout is to have against its patterns.
    pub(super) fn against_patterns(&self) -> Against<'_> {
        Against { shown: self.shown.iter().collect(), left_out: self.left_out.iter().collect() }
    }

    /// The permission bits of those files that `changes` bring, and of the folders above them.
    pub(super) fn modes_of(&self, changes: &[Change]) -> Vec<PathMode> {
        modes_of(&self.modes, changes)
    }

    /// The flags of those files that `changes` bring.
    pub(super) fn flags_of(&self, changes: &[Change]) -> Vec<Flagged> {
        let mut all = self.flags();
        if !all.is_empty() {
            let arriving: HashSet<&RepoPath> =
                changes.iter().filter(|c| c.new.is_some()).map(|c| &c.path).collect();
            all.retain(|entry| arriving.contains(&entry.path));
        }
        all
    }

    /// All flags, one at a time.
    pub(super) fn flags(&self) -> Vec<Flagged> {
        let assumed = self.assumed.iter();
        let assumed = assumed.map(|path| Flagged { path: path.clone(), assumed: true, skipped: false });
        let skipped = self.skipped.iter();
        let skipped = skipped.map(|path| Flagged { path: path.clone(), assumed: false, skipped: true });
        assumed.chain(skipped).collect()
    }
}
