//! Forecast of how a snapshot would be restored, without touching the worktree.

use std::collections::BTreeSet;
use std::path::Path;

use super::clear::SnapshotFiles;
use super::snapshot::Snapshot;
use crate::base::folders::obstruction_above;
use crate::base::local_changes_remedy::LocalChangesRemedy;
use crate::checkout::preconditions::{LocalChangeSearch, refuse_overlap};
use crate::checkout::quarantine::matches_blob;
use crate::history::tree_diff::{TreeChange, tree_changes};
use crate::index::index_flags;
use crate::index::sparse_patterns::SparseExceptions;
use crate::merge::tree_merge::merge_trees;
use crate::repository::open_operation::require_no_git_operation;
use crate::repository::worktree_context::WorktreeContext;
use crate::status::status_query::status;
use crate::status::worktree_status::{StatusEntry, StatusKind};
use crate::{CommitId, Error, Repo, RepoPath, TreeId};

/// Outcome of restoring a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum RestoreOutcome {
    /// Files, modes and index are as they were.
    Exact,
    /// HEAD had moved and the changes were merged into its commit.
    Merged,
    /// HEAD had moved and these paths conflict. Nothing was changed; the snapshot still holds everything.
    Conflict(Vec<RepoPath>),
}

/// Returns how `restore` would restore `snapshot` in a worktree whose HEAD is at `head`.
///
/// # Errors
/// The refusals of `restore`: [`Error::LocalChanges`], [`Error::Obstructed`], [`Error::OperationInProgress`].
pub fn forecast_restore(
    tree: &WorktreeContext<'_>,
    snapshot: &Snapshot,
    head: CommitId,
    parked_dir: &Path,
    raw_index: &Path,
) -> Result<RestoreOutcome, Error> {
    require_no_git_operation(tree.dir, &tree.git_dir)?;
    let mut snapshot_files = SnapshotFiles::load(tree, snapshot)?;
    snapshot_files
        .drop_lost_ignored(|path| path.to_fs_path(&parked_dir.join("files")).symlink_metadata().is_ok());
    let untracked =
        snapshot_files.untracked_and_ignored().map(|(path, side)| (path.clone(), None, Some(*side)));
    let untracked = untracked.map(|(path, old, new)| TreeChange { path, old, new });
    if tree.repo.tree_of(head)? == tree.repo.tree_of(snapshot.head_commit)? && raw_index.exists() {
        refuse_staged(tree, head, snapshot)?;
        let parked_files = parked_dir.join("files");
        let is_restored = |c: &TreeChange| {
            let file = c.path.to_fs_path(tree.dir);
            match c.new {
                None => file.symlink_metadata().is_err(),
                Some(side) => {
                    matches_blob(tree.repo, &file, side)
                        && c.path.to_fs_path(&parked_files).symlink_metadata().is_err()
                }
            }
        };
        let (tracked, untracked): (Vec<TreeChange>, Vec<TreeChange>) =
            (snapshot_files.tracked.clone(), untracked.collect());
        let tracked: Vec<TreeChange> = tracked.into_iter().filter(|c| !is_restored(c)).collect();
        // A file that was removed from the index only stands at the path of HEAD's file, which leaves first.
        let is_displaced = |c: &TreeChange| tracked.iter().any(|t| t.path == c.path && t.old.is_some());
        let untracked: Vec<TreeChange> =
            untracked.into_iter().filter(|c| !is_restored(c) && !is_displaced(c)).collect();
        refuse_overlap(
            tree,
            &[tracked, untracked].concat(),
            LocalChangeSearch::SinceHead,
            &SparseExceptions::default(),
        )?;
        return Ok(RestoreOutcome::Exact);
    }
    let merge_onto_head = |theirs| merge_snapshot_tree(tree, snapshot, head, theirs);
    let merged_tree = match (merge_onto_head(snapshot.work_tree)?, merge_onto_head(snapshot.index_tree)?) {
        (Ok(merged_tree), Ok(_)) => merged_tree,
        (Err(paths), _) | (_, Err(paths)) => return Ok(RestoreOutcome::Conflict(paths)),
    };
    refuse_staged(tree, head, snapshot)?;
    let changes = tree_changes(tree.repo, head, merged_tree)?;
    let conflict = find_obstruction(tree, &snapshot_files, (snapshot.head_commit, head), &changes)?;
    Ok(conflict.unwrap_or(RestoreOutcome::Merged))
}

/// Merges the changes from the snapshot's base to `snapshot_tree`, a tree of the snapshot, onto the commit
/// `head`. Returns the merged tree, or the conflicting paths. No ref and no file of a worktree changes.
///
/// # Errors
/// Fails if git cannot read or merge the trees.
pub(crate) fn merge_snapshot_tree(
    tree: &WorktreeContext<'_>,
    snapshot: &Snapshot,
    head: CommitId,
    snapshot_tree: TreeId,
) -> Result<Result<TreeId, Vec<RepoPath>>, Error> {
    let (base_tree, ours) = (tree.repo.tree_of(snapshot.head_commit)?, tree.repo.tree_of(head)?);
    let merged = merge_trees(tree.repo, (base_tree, ours, snapshot_tree), tree.scratch, None)?;
    Ok(if merged.is_clean { Ok(merged.tree) } else { Err(merged.conflicted_paths()) })
}

/// Returns `RestoreOutcome::Conflict` with the paths where existing files block a merged restore; none if no
/// path is blocked. It covers the paths that `changes` write and those of the snapshot's untracked files.
/// `old_and_new_head` is HEAD's commit at the time of the snapshot, and its current commit.
///
/// # Errors
/// [`Error::LocalChanges`] when the user has changed files that `changes` change.
pub(crate) fn find_obstruction(
    tree: &WorktreeContext<'_>,
    snapshot_files: &SnapshotFiles,
    old_and_new_head: (CommitId, CommitId),
    changes: &[TreeChange],
) -> Result<Option<RestoreOutcome>, Error> {
    match refuse_overlap(
        tree,
        &snapshot_files.with_untracked(changes),
        LocalChangeSearch::SinceHead,
        &SparseExceptions::default(),
    ) {
        Err(Error::Obstructed { obstructing_paths: paths, .. }) => {
            return Ok(Some(RestoreOutcome::Conflict(paths)));
        }
        other => other?,
    }
    // No sparse pattern leaves these out.
    let is_removed = |path: &RepoPath| changes.iter().any(|c| c.path == *path && c.new.is_none());
    let blocking =
        snapshot_files.untracked_and_ignored().filter_map(|(path, _)| obstruction_above(tree.dir, path));
    let hidden = gained_files_at_folders(tree, snapshot_files, old_and_new_head)?;
    let blocking: BTreeSet<RepoPath> = blocking.chain(hidden).filter(|path| !is_removed(path)).collect();
    Ok((!blocking.is_empty()).then(|| RestoreOutcome::Conflict(blocking.into_iter().collect())))
}

/// Returns files that HEAD gained between two commits and whose path is a folder of the snapshot's untracked
/// files. A sparse checkout may leave such a file out: it is then not on disk, and would count as deleted by
/// the user. Empty if the checkout is not sparse.
fn gained_files_at_folders(
    tree: &WorktreeContext<'_>,
    snapshot_files: &SnapshotFiles,
    (old_head, new_head): (CommitId, CommitId),
) -> Result<BTreeSet<RepoPath>, Error> {
    if !index_flags::has_sparse_patterns_file(&tree.git_dir)
        || snapshot_files.untracked_and_ignored().next().is_none()
    {
        return Ok(BTreeSet::new());
    }
    let mut added = tree_changes(tree.repo, old_head, new_head)?;
    added.retain(|change| change.old.is_none());
    let added_paths: BTreeSet<&RepoPath> = added.iter().map(|change| &change.path).collect();
    let parents = snapshot_files.untracked_and_ignored().flat_map(|(path, _)| path.parents());
    Ok(parents.filter(|path| added_paths.contains(path)).collect())
}

/// Returns the staged paths of the worktree at `dir`; empty if the index matches HEAD's commit `head` or the
/// snapshot's index.
///
/// # Errors
/// Fails if git cannot read the index.
pub fn foreign_staged_paths(
    repo: &Repo,
    dir: &Path,
    head: CommitId,
    snapshot: &Snapshot,
) -> Result<Vec<RepoPath>, Error> {
    if repo.index_matches(dir, head)? || repo.index_matches(dir, snapshot.index_tree)? {
        return Ok(Vec::new());
    }
    let is_staged = |e: &&StatusEntry| matches!(e.kind, StatusKind::Tracked { staged: true, .. });
    Ok(status(repo, dir, false)?.tracked().filter(is_staged).map(|e| e.path.clone()).collect())
}

/// Fails if something is staged and the index is neither HEAD's nor the snapshot's: the restored index would
/// replace it.
pub(crate) fn refuse_staged(
    tree: &WorktreeContext<'_>,
    head: CommitId,
    snapshot: &Snapshot,
) -> Result<(), Error> {
    let paths = foreign_staged_paths(tree.repo, tree.dir, head, snapshot)?;
    if paths.is_empty() {
        return Ok(());
    }
    let remedy = LocalChangesRemedy::detect(tree.repo, tree.dir, &paths);
    Err(Error::LocalChanges { dir: tree.dir.to_owned(), overlapping_paths: paths, hint: remedy })
}
