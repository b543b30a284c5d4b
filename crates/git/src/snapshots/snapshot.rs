//! Snapshot of everything that differs from HEAD in a worktree: one commit in the shape of a stash, and the
//! raw index.

use std::collections::HashSet;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::ignored_obstructions::{IgnoredFile, find_ignored_obstructions, ignored_in_clean_worktree};
use super::snapshot_tree_writer::{TreeWriter, warn_uncaptured};
use super::unmerged_paths::UnmergedReplacements;
use crate::base::folders::exists_in_real_folder;
use crate::history::commit::NewCommit;
use crate::index::file_modes::{PathMode, unusual_modes};
use crate::index::index_lock::FileVersion;
use crate::index::sparse_entries::find_present_skipped;
use crate::index::{index_flags, scratch_index};
use crate::repository::worktree_context::WorktreeContext;
use crate::status::special_files::UncapturedPath;
use crate::status::status_query::{query_git_status, split_flagged_edits, status};
use crate::status::untracked_folders::empty_folders;
use crate::status::worktree_scan::{ScanFacts, WorktreeScan};
use crate::status::worktree_status::{StatusEntry, StatusKind, WorktreeStatus};
use crate::{CommitId, Error, Repo, RepoPath, TreeId};

/// Saved changes of one worktree. The commit has a stash's shape, so plain `git stash apply <commit>` reads
/// it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Stash-shaped commit.
    pub commit: CommitId,
    /// Commit of HEAD when the snapshot was taken.
    #[serde(rename = "base")]
    pub head_commit: CommitId,
    /// Tree of the staged content.
    pub index_tree: TreeId,
    /// Tree of the tracked files as they were on disk.
    pub work_tree: TreeId,
    /// Tree of the untracked files.
    pub untracked_tree: Option<TreeId>,
    /// Tree of the three sides of conflicts that were resolved, at `1/path`, `2/path` and `3/path`. An index
    /// refers to them until the next commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stages: Option<TreeId>,
    /// Files with an intent-to-add entry (`git add -N`).
    #[serde(default)]
    pub intent_to_add: Vec<RepoPath>,
    /// Empty folders, which git does not track.
    #[serde(default)]
    pub empty_dirs: Vec<RepoPath>,
    /// Ignored files at paths where HEAD has another file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<IgnoredFile>,
    /// Number of files that differed from HEAD.
    #[serde(default)]
    pub files: usize,
    /// Paths that no snapshot can hold; they stay in place.
    #[serde(default)]
    #[serde(rename = "left")]
    pub uncaptured: Vec<UncapturedPath>,
    /// Files of a sparse checkout that existed although they are marked skip-worktree.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "put_back")]
    pub(crate) present_skipped: Vec<RepoPath>,
    /// Permission bits of files and folders of the snapshot, where they differ from those that git gives a
    /// new one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modes: Vec<PathMode>,
    /// Version of the index that the snapshot was taken from; known only to the process that took it.
    #[serde(skip)]
    pub(crate) index_version: Option<FileVersion>,
}

/// Saves what differs from HEAD in a worktree, using the facts of `scan` that are still current. Returns none
/// when nothing differs. Writes a copy of the index to `raw-index` in the worktree's scratch folder.
/// Untracked files at or below the paths `spared` are not included.
///
/// # Errors
/// [`Error::Unmerged`] when a merge is unresolved, and git's errors for files that it cannot read.
pub fn capture(
    tree: &WorktreeContext<'_>,
    head_commit: CommitId,
    message: &str,
    spared: &[RepoPath],
    scan: &WorktreeScan,
) -> Result<Option<Snapshot>, Error> {
    capture_with(tree, (head_commit, message), spared, scan, UnmergedReplacements::refuse_unmerged)
}

/// Captures a worktree like [`capture`], but accepts an unresolved merge. An unmerged path is saved with its
/// file as on disk, and as if the index had our side.
///
/// # Errors
/// git's errors for files that it cannot read.
pub fn capture_unmerged(
    tree: &WorktreeContext<'_>,
    head_commit: CommitId,
    message: &str,
    scan: &WorktreeScan,
) -> Result<Option<Snapshot>, Error> {
    capture_with(tree, (head_commit, message), &[], scan, UnmergedReplacements::replace_with_ours)
}

fn capture_with(
    tree: &WorktreeContext<'_>,
    (base, message): (CommitId, &str),
    spared: &[RepoPath],
    scan: &WorktreeScan,
    handle_conflicts: impl FnOnce(
        &WorktreeContext<'_>,
        &Path,
        &mut WorktreeStatus,
    ) -> Result<UnmergedReplacements, Error>,
) -> Result<Option<Snapshot>, Error> {
    let (git_index, index_version) = index_with_version(tree)?;
    let facts = scan.facts_if_current(index_version, base);
    let mut worktree_status = collect_changes(tree, facts, spared)?;
    let conflicts = handle_conflicts(tree, &git_index, &mut worktree_status)?;
    let mut hidden = hidden_paths(tree, facts)?;
    let files = hidden.len() + worktree_status.entries.iter().filter(|e| !e.is_nested_repo).count();
    hidden.extend(staged_absent_paths(tree, &git_index, &worktree_status)?);
    let changes = WorktreeChanges {
        status: worktree_status,
        hidden_changes: hidden,
        changed_file_count: files,
        index_version,
    };
    let has_untracked = changes.status.untracked().any(|e| !e.is_nested_repo);
    if !has_untracked && changes.has_no_tracked_changes() {
        return Ok(None);
    }
    let raw_index = tree.raw_index();
    scratch_index::copy_with_mtime(&git_index, &raw_index)?;
    // Nothing is staged, if the scanned index is the copied one and HEAD is still at `base`.
    let is_unchanged =
        FileVersion::read(&git_index)? == index_version && tree.repo.head_commit(tree.dir)? == Some(base);
    let writer = TreeWriter { tree, raw_index: &raw_index, facts: facts.filter(|_| is_unchanged) };
    writer.unsplit_index()?;
    conflicts.write_to_index(tree, &raw_index)?;
    let index_tree = match is_unchanged && changes.status.staged().next().is_none() {
        true => tree.repo.tree_of(base)?,
        false => writer.write_index_tree()?,
    };
    let Some(mut snapshot) = changes.write_trees(&writer, base, index_tree, scan)? else { return Ok(None) };
    snapshot.modes = snapshot.collect_unusual_modes(tree, changes.all_changed_paths());
    snapshot.commit = snapshot.stash_commit(tree.repo, message)?;
    Ok(Some(snapshot))
}

/// Returns the staged entries of a sparse checkout's index that are marked skip-worktree and whose file does
/// not exist.
fn staged_absent_paths(
    tree: &WorktreeContext<'_>,
    index: &Path,
    dirty: &WorktreeStatus,
) -> Result<Vec<RepoPath>, Error> {
    if !index_flags::has_sparse_patterns_file(&tree.git_dir) || dirty.staged().next().is_none() {
        return Ok(Vec::new());
    }
    let flagged = index_flags::flagged_entries_in(tree.repo, tree.dir, index)?;
    let skipped: HashSet<&RepoPath> = flagged.iter().filter(|f| f.skip_worktree).map(|f| &f.path).collect();
    let staged = dirty.staged().map(|entry| &entry.path);
    Ok(staged
        .filter(|path| skipped.contains(path) && !exists_in_real_folder(tree.dir, path))
        .cloned()
        .collect())
}

/// Changes of a worktree that a snapshot saves.
struct WorktreeChanges {
    /// Changes that git shows.
    status: WorktreeStatus,
    /// Paths of changes that git does not show because of index flags, and of staged files that a sparse
    /// checkout leaves out.
    hidden_changes: Vec<RepoPath>,
    /// Number of files that differ from HEAD.
    changed_file_count: usize,
    /// Version of the index that the changes were found with.
    index_version: Option<FileVersion>,
}

impl WorktreeChanges {
    /// Returns whether no tracked file differs from HEAD, except inside submodules.
    fn has_no_tracked_changes(&self) -> bool {
        self.hidden_changes.is_empty() && self.status.tracked().all(StatusEntry::is_only_inside_submodule)
    }

    /// Returns the paths that differ from HEAD, hidden changes included, without nested repositories.
    fn all_changed_paths(&self) -> impl Iterator<Item = &RepoPath> {
        self.status.entries.iter().filter(|e| !e.is_nested_repo).map(|e| &e.path).chain(&self.hidden_changes)
    }

    /// Writes the trees of the tracked and untracked files. Returns a snapshot with them, in which modes and
    /// commit are still to be set. Returns none when only unreadable files differ.
    fn write_trees(
        &self,
        writer: &TreeWriter<'_>,
        head_commit: CommitId,
        index_tree: TreeId,
        scan: &WorktreeScan,
    ) -> Result<Option<Snapshot>, Error> {
        let tree = writer.tree;
        let work_tree = writer.write_work_tree(
            &self.status,
            &self.hidden_changes,
            Some(index_tree).filter(|_| writer.facts.is_some()),
        )?;
        let (untracked_tree, unreadable) = writer.write_untracked_tree(&self.status)?;
        let files = self.changed_file_count - unreadable.len();
        if untracked_tree.is_none() && self.has_no_tracked_changes() {
            unreadable
                .into_iter()
                .map(UncapturedPath::unreadable)
                .for_each(|item| warn_uncaptured(tree, &item));
            return Ok(None);
        }
        let (empty_dirs, uncaptured) =
            writer.collect_uncaptured(&self.status, &self.hidden_changes, scan, unreadable)?;
        Ok(Some(Snapshot {
            commit: head_commit,
            head_commit,
            index_tree,
            work_tree,
            untracked_tree,
            intent_to_add: writer.intent_to_add_paths()?,
            empty_dirs,
            ignored: find_ignored_obstructions(
                tree,
                &self.status,
                &self.hidden_changes,
                head_commit,
                work_tree,
                scan.restored_ignored(),
            )?,
            present_skipped: find_present_skipped(tree, writer.raw_index)?,
            files,
            uncaptured,
            modes: Vec::new(),
            index_version: self.index_version,
            stages: writer.write_resolved_stages()?,
        }))
    }
}

/// Returns the changes that git shows, without untracked files at or below `spared`.
fn collect_changes(
    tree: &WorktreeContext<'_>,
    facts: Option<&ScanFacts>,
    spared: &[RepoPath],
) -> Result<WorktreeStatus, Error> {
    let mut worktree_status = match facts {
        Some(all) => all.worktree_status(),
        None => query_git_status(tree.repo.program(), tree.dir, true)?,
    };
    worktree_status.entries.retain(|e| e.kind != StatusKind::Untracked || !is_spared(&e.path, spared));
    Ok(worktree_status)
}

/// Returns the path of a worktree's index and its current version.
fn index_with_version(
    tree: &WorktreeContext<'_>,
) -> Result<(std::path::PathBuf, Option<FileVersion>), Error> {
    tree.repo.require_index(tree.dir)?;
    let index = tree.git_dir.join("index");
    let version = FileVersion::read(&index)?;
    Ok((index, version))
}

/// Returns changes that git does not show because of index flags. If the scan yielded facts, there are none.
fn hidden_paths(tree: &WorktreeContext<'_>, facts: Option<&ScanFacts>) -> Result<Vec<RepoPath>, Error> {
    match facts {
        Some(_) => Ok(Vec::new()),
        None => index_flags::hidden_changes(tree.repo, tree.dir, &tree.git_dir, tree.scratch),
    }
}

/// Creates the snapshot of a worktree in which no tracked or untracked file differs from HEAD's commit
/// `head_commit`. It covers ignored files, empty folders, and files that a sparse checkout shows. Writes a
/// copy of the index to `raw-index` in the scratch folder.
///
/// # Errors
/// Fails if the index cannot be copied, or an object cannot be written.
pub fn capture_unchanged(
    tree: &WorktreeContext<'_>,
    head_commit: CommitId,
    message: &str,
    scan: &WorktreeScan,
) -> Result<Snapshot, Error> {
    tree.repo.require_index(tree.dir)?;
    scratch_index::copy_with_mtime(&tree.git_dir.join("index"), &tree.raw_index())?;
    let base_tree = tree.repo.tree_of(head_commit)?;
    let mut snapshot = Snapshot {
        commit: head_commit,
        head_commit,
        index_tree: base_tree,
        work_tree: base_tree,
        untracked_tree: None,
        stages: None,
        intent_to_add: Vec::new(),
        empty_dirs: empty_folders(tree, scan)?,
        ignored: ignored_in_clean_worktree(tree, scan.restored_ignored())?,
        present_skipped: find_present_skipped(tree, &tree.raw_index())?,
        files: 0,
        uncaptured: Vec::new(),
        modes: Vec::new(),
        index_version: None,
    };
    snapshot.modes = snapshot.collect_unusual_modes(tree, std::iter::empty());
    snapshot.commit = snapshot.stash_commit(tree.repo, message)?;
    Ok(snapshot)
}

impl Snapshot {
    /// Returns permission bits that differ from those git gives a new file. They are of the changed paths
    /// `shown_by_git`, and of the snapshot's other files and empty folders.
    fn collect_unusual_modes<'p>(
        &'p self,
        tree: &WorktreeContext<'_>,
        shown_by_git: impl Iterator<Item = &'p RepoPath>,
    ) -> Vec<PathMode> {
        if !tree.repo.trusts_file_modes() {
            return Vec::new();
        }
        let ignored = self.ignored.iter().map(|file| &file.path);
        unusual_modes(
            tree.dir,
            shown_by_git.chain(ignored).chain(&self.present_skipped).chain(&self.empty_dirs),
        )
    }

    /// Writes the stash-shaped commit again, after a tree has changed.
    pub(crate) fn rewrite_commit(&mut self, repo: &Repo) -> Result<(), Error> {
        let message = repo.commit_subject(self.commit)?;
        self.commit = self.stash_commit(repo, &message)?;
        Ok(())
    }

    /// Writes the commits of the stash shape and returns the main one. It has the worktree's tree, and its
    /// parents are HEAD and commits of the index and the untracked files. Objects that only have to be
    /// retained are parents of the index's commit, of which git reads only the tree.
    fn stash_commit(&self, repo: &Repo, message: &str) -> Result<CommitId, Error> {
        let write = |tree, parents: &[CommitId], message: &str| {
            NewCommit { tree, parents, message }.write_as_proq(repo, None)
        };
        let mut index_parents = vec![self.head_commit];
        if let Some(tree) = self.stages {
            index_parents.push(write(tree, &[], &format!("sides of resolved conflicts on {message}"))?);
        }
        let index_commit = write(self.index_tree, &index_parents, &format!("index on {message}"))?;
        let mut parents = vec![self.head_commit, index_commit];
        if let Some(tree) = self.untracked_tree {
            parents.push(write(tree, &[], &format!("untracked files on {message}"))?);
        }
        write(self.work_tree, &parents, message)
    }
}

/// Returns whether a path is one of `spared` or below one of them.
fn is_spared(path: &RepoPath, spared: &[RepoPath]) -> bool {
    !spared.is_empty() && (spared.contains(path) || path.parents().any(|up| spared.contains(&up)))
}

/// Writes the tree of a worktree's tracked files as they are now, staged or not. Files that index flags hide
/// from git are written as they were staged.
pub fn write_tracked_tree(tree: &WorktreeContext<'_>) -> Result<TreeId, Error> {
    let unmerged = status(tree.repo, tree.dir, false)?.unmerged();
    if !unmerged.is_empty() {
        return Err(Error::Unmerged { dir: tree.dir.to_owned(), unmerged_paths: unmerged });
    }
    let raw_index = tree.raw_index();
    scratch_index::copy_with_mtime(&tree.git_dir.join("index"), &raw_index)?;
    let worktree_status = status(tree.repo, tree.dir, false)?;
    let (flagged, _) = split_flagged_edits(tree.repo, tree.dir, tree.scratch, &worktree_status)?;
    TreeWriter { tree, raw_index: &raw_index, facts: None }.write_work_tree(&worktree_status, &flagged, None)
}

/// Writes a commit that protects every object in a worktree's index, in every stage, from being pruned. An
/// index with conflicts allows no snapshot. Returns none when the index has no entries.
pub fn save_index_commit(tree: &WorktreeContext<'_>, message: &str) -> Result<Option<CommitId>, Error> {
    let index_file = tree.git_dir.join("index");
    let saved_tree = TreeWriter { tree, raw_index: &index_file, facts: None }
        .write_stage_tree(&["--stage", "--resolve-undo"])?;
    saved_tree
        .map(|tree_id| NewCommit { tree: tree_id, parents: &[], message }.write_as_proq(tree.repo, None))
        .transpose()
}
