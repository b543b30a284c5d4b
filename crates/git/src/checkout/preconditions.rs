//! Preconditions of a transition, checked before anything is changed: other work on the ref, and changes and
//! files in the way.

use std::collections::HashSet;
use std::path::Path;

use super::preflight::refuse_unchangeable;
use super::ref_recovery::{has_ref_moved, remove_untouched_marker, write_untouched_marker};
use crate::base::head::{Head, RefMove};
use crate::base::local_changes_remedy::LocalChangesRemedy;
use crate::history::tree_diff::{TreeChange, TreeFile, tree_changes, tree_changes_by_git, tree_paths};
use crate::index::index_flags;
use crate::index::sparse_entries::changes_written_to_disk;
use crate::index::sparse_patterns::SparseExceptions;
use crate::repository::objects::TempObjectStore;
use crate::repository::open_operation::require_no_git_operation;
use crate::repository::worktree_context::WorktreeContext;
use crate::status::local_state::LocalState;
use crate::status::status_query::{changed_paths_since, status};
use crate::{CommitId, Error, RepoPath};

/// Fails if a transition from `from`, the commit of the worktree's HEAD, to `to` would lose or hit the user's
/// work. It checks for an unfinished git operation, local changes and files in the way, and changes nothing.
/// `to` may exist only in `temp_store`. `arriving_state` is the local state that files get when they are
/// written.
///
/// # Errors
/// Fails with [`Error::OperationInProgress`], [`Error::LocalChanges`] or [`Error::Obstructed`].
pub fn preflight_transition(
    tree: &WorktreeContext<'_>,
    from: CommitId,
    to: CommitId,
    temp_store: Option<&TempObjectStore>,
    arriving_state: &LocalState,
) -> Result<(), Error> {
    require_no_git_operation(tree.dir, &tree.git_dir)?;
    tree.repo.require_index(tree.dir)?;
    let changes = changes_to_temp(tree, from, to, temp_store)?;
    refuse_overlap(tree, &changes, LocalChangeSearch::SinceHead, &arriving_state.pattern_exceptions())
}

/// Returns the changes of a transition. `to` may exist only in `temp_store`.
fn changes_to_temp(
    tree: &WorktreeContext<'_>,
    from: CommitId,
    to: CommitId,
    temp_store: Option<&TempObjectStore>,
) -> Result<Vec<TreeChange>, Error> {
    match temp_store {
        None => tree_changes(tree.repo, from, to),
        Some(temp_store) => tree_changes_by_git(tree.repo, from.oid(), to.oid(), Some(temp_store)),
    }
}

/// Fails if the ref of a transition is already at the target: another process moved it, and an undo must not
/// revert that move.
pub(crate) fn refuse_ref_at_target(
    tree: &WorktreeContext<'_>,
    from: CommitId,
    to: CommitId,
    mv: &RefMove,
) -> Result<(), Error> {
    if !has_ref_moved(tree, from, to, mv)? {
        return remove_untouched_marker(tree);
    }
    write_untouched_marker(tree)?;
    Err(Error::RefNotMoved { ref_name: mv.display_name(), reason: "it has moved meanwhile".to_owned() })
}

/// Fails if HEAD or its branch is no longer as expected. It checks only what the ref transaction does not. A
/// switch of HEAD verifies the name in HEAD, not the position of the old branch. A move of a branch does not
/// verify that HEAD is on it. In both cases HEAD.lock is held by now, if HEAD is as expected.
pub(crate) fn refuse_stale_head(
    tree: &WorktreeContext<'_>,
    from: CommitId,
    mv: &RefMove,
) -> Result<(), Error> {
    let moved_error = |name: &str, reason: &str| {
        Err(Error::RefNotMoved { ref_name: name.to_owned(), reason: reason.to_owned() })
    };
    match mv {
        RefMove::Switch { from: Head::Branch(branch), .. } => {
            if tree.repo.branch_tip(branch)? == Some(from) {
                return Ok(());
            }
            moved_error(branch, "it has moved meanwhile")
        }
        RefMove::Branch(branch) => {
            if tree.repo.branch_name_in_head(tree.dir, &tree.git_dir, branch)?.is_some() {
                return Ok(());
            }
            moved_error(branch, "the worktree is on something else now")
        }
        RefMove::Switch { from: Head::Detached(_), .. } | RefMove::Nothing => Ok(()),
    }
}

/// How the user's local changes in a worktree are found: staged or not, visible or hidden by an index flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LocalChangeSearch {
    /// Local changes are not searched for, because certainly none of them overlaps.
    None,
    /// Local changes are the differences from HEAD.
    SinceHead,
    /// Local changes are the differences from this commit, because HEAD has already moved.
    SinceCommit(CommitId),
}

impl LocalChangeSearch {
    /// Returns how to find the local changes of a worktree in a move of `mv` from the commit `from`.
    pub(crate) fn from_move(from: CommitId, mv: &RefMove) -> LocalChangeSearch {
        match mv {
            RefMove::Nothing => LocalChangeSearch::SinceCommit(from),
            RefMove::Branch(_) | RefMove::Switch { .. } => LocalChangeSearch::SinceHead,
        }
    }
}

/// Fails if a local change overlaps with `changes`, if untracked files are in the way, or if the affected
/// files cannot be changed. `exceptions` are the paths that a sparse checkout will show or leave out against
/// its patterns.
pub(crate) fn refuse_overlap(
    tree: &WorktreeContext<'_>,
    changes: &[TreeChange],
    local_search: LocalChangeSearch,
    exceptions: &SparseExceptions<'_>,
) -> Result<(), Error> {
    refuse_unchangeable(tree, changes)?;
    refuse_off_limits(tree, changes)?;
    if let Some((paths, hint)) = find_overlap(tree, changes, local_search)? {
        return Err(Error::LocalChanges { dir: tree.dir.to_owned(), overlapping_paths: paths, hint });
    }
    let paths = find_obstructions(tree, changes, exceptions)?;
    if paths.is_empty() {
        Ok(())
    } else {
        Err(Error::Obstructed { dir: tree.dir.to_owned(), obstructing_paths: paths })
    }
}

/// Fails if a transition from `from` to `to` would be refused once the worktree is clean at `from`. Its local
/// changes and the untracked files `untracked_to_park` will be parked before. `to` may exist only in
/// `temp_store`. Changes nothing.
///
/// # Errors
/// Fails with [`Error::OperationInProgress`], [`Error::Obstructed`] or [`Error::LocalChanges`].
pub fn preflight_once_clean(
    tree: &WorktreeContext<'_>,
    (from, to): (CommitId, CommitId),
    untracked_to_park: &HashSet<RepoPath>,
    temp_store: Option<&TempObjectStore>,
) -> Result<(), Error> {
    require_no_git_operation(tree.dir, &tree.git_dir)?;
    let changes = changes_to_temp(tree, from, to, temp_store)?;
    refuse_unchangeable(tree, &changes)?;
    refuse_off_limits(tree, &changes)?;
    let mut paths = find_obstructions(tree, &changes, &SparseExceptions::default())?;
    paths.retain(|path| !untracked_to_park.contains(path));
    if !paths.is_empty() {
        // Files in the place of a file of HEAD, above it or below it, are parked too, whether ignored or not.
        let tracked: HashSet<RepoPath> = tree_paths(tree.repo, from)?.into_iter().collect();
        let parent_folders: HashSet<RepoPath> = tracked.iter().flat_map(RepoPath::parents).collect();
        let is_in_tracked_place = |path: &RepoPath| {
            tracked.contains(path)
                || parent_folders.contains(path)
                || path.parents().any(|parent| tracked.contains(&parent))
        };
        paths.retain(|path| !is_in_tracked_place(path));
    }
    if !paths.is_empty() {
        return Err(Error::Obstructed { dir: tree.dir.to_owned(), obstructing_paths: paths });
    }
    // Changes inside submodules are not parked.
    let mut paths = find_overlap(tree, &changes, LocalChangeSearch::SinceHead)?
        .map(|(paths, _)| paths)
        .unwrap_or_default();
    paths.retain(|path| path.to_fs_path(tree.dir).join(".git").symlink_metadata().is_ok());
    if paths.is_empty() {
        return Ok(());
    }
    let hint = LocalChangesRemedy::detect(tree.repo, tree.dir, &paths);
    Err(Error::LocalChanges { dir: tree.dir.to_owned(), overlapping_paths: paths, hint })
}

/// Fails if `changes` would write into the folder that contains other worktrees.
fn refuse_off_limits(tree: &WorktreeContext<'_>, changes: &[TreeChange]) -> Result<(), Error> {
    let is_forbidden = |c: &&TreeChange| {
        tree.off_limits.as_ref().is_some_and(|forbidden_path| {
            c.path == *forbidden_path || c.path.parents().any(|parent| parent == *forbidden_path)
        })
    };
    let paths: Vec<RepoPath> = changes.iter().filter(is_forbidden).map(|c| c.path.clone()).collect();
    if paths.is_empty() {
        Ok(())
    } else {
        Err(Error::Obstructed { dir: tree.dir.to_owned(), obstructing_paths: paths })
    }
}

/// Returns untracked files in the way of `changes`, except where the sparse checkout excludes the new files.
fn find_obstructions(
    tree: &WorktreeContext<'_>,
    changes: &[TreeChange],
    exceptions: &SparseExceptions<'_>,
) -> Result<Vec<RepoPath>, Error> {
    let ignores_case = tree.repo.setting_bool("core.ignoreCase") == Some(true);
    let paths = scan_obstructions(tree.dir, changes, ignores_case);
    if paths.is_empty() {
        return Ok(paths);
    }
    // A sparse checkout creates no folder for a file that it excludes, so nothing is in the way of such a
    // file.
    Ok(scan_obstructions(tree.dir, &changes_written_to_disk(tree, changes, exceptions)?, ignores_case))
}

/// Paths where local changes overlap with a transition, and the hint how to get these changes out of the way.
type OverlapWithHint = (Vec<RepoPath>, LocalChangesRemedy);

/// Returns the local changes at a path of `changes` or where `changes` need a folder, with a hint; `None` if
/// no local change overlaps. A staged file whose file on disk is deleted counts too, although nothing on disk
/// is in the way.
fn find_overlap(
    tree: &WorktreeContext<'_>,
    changes: &[TreeChange],
    local_search: LocalChangeSearch,
) -> Result<Option<OverlapWithHint>, Error> {
    let touched: HashSet<&RepoPath> = changes.iter().map(|c| &c.path).collect();
    let submodules: HashSet<&RepoPath> =
        changes.iter().filter(|c| c.is_submodule_update()).map(|c| &c.path).collect();
    // A submodule without a folder has nothing to lose.
    let replaced_submodules: HashSet<&RepoPath> =
        changes.iter().filter(|c| is_submodule(c.old) && !is_submodule(c.new)).map(|c| &c.path).collect();
    let written = changes.iter().filter(|c| c.new.is_some());
    let parent_folders: HashSet<RepoPath> = written.flat_map(|c| c.path.parents()).collect();
    let mut staged = HashSet::new();
    let changed_paths = match local_search {
        LocalChangeSearch::None => return Ok(None),
        // A move from one commit of a submodule to another changes only the index; the submodule's folder
        // does not matter.
        LocalChangeSearch::SinceHead => {
            let mut dirty_state = status(tree.repo, tree.dir, false)?;
            let unmerged = dirty_state.unmerged();
            if !unmerged.is_empty() {
                return Err(Error::Unmerged { dir: tree.dir.to_owned(), unmerged_paths: unmerged });
            }
            let is_gone = |path: &RepoPath| path.to_fs_path(tree.dir).symlink_metadata().is_err();
            dirty_state.entries.retain(|e| {
                !(e.is_only_inside_submodule()
                    && (submodules.contains(&e.path)
                        || is_gone(&e.path) && replaced_submodules.contains(&e.path)))
            });
            if !parent_folders.is_empty() {
                staged.extend(dirty_state.staged().map(|e| e.path.clone()));
                staged.extend(tree.repo.intent_to_add_paths(tree.dir, None)?);
                staged.retain(|path| parent_folders.contains(path));
            }
            dirty_state.paths()
        }
        LocalChangeSearch::SinceCommit(base) => changed_paths_since(tree.repo, tree.dir, base)?,
    };
    let hidden = index_flags::hidden_changes(tree.repo, tree.dir, &tree.git_dir, tree.scratch)?;
    let overlaps = |p: &RepoPath| {
        touched.contains(p) || staged.contains(p) || p.parents().any(|parent| touched.contains(&parent))
    };
    let mut overlapping: Vec<RepoPath> = changed_paths.into_iter().filter(overlaps).collect();
    overlapping.extend(hidden.into_iter().filter(overlaps));
    overlapping.sort();
    overlapping.dedup();
    if overlapping.is_empty() {
        return Ok(None);
    }
    let hint = LocalChangesRemedy::detect(tree.repo, tree.dir, &overlapping);
    Ok(Some((overlapping, hint)))
}

/// Returns the files on disk, ignored ones included, that are in the way of `changes` and that `changes` do
/// not remove. `read-tree` would overwrite an ignored file and delete an ignored folder without a warning.
fn scan_obstructions(dir: &Path, changes: &[TreeChange], ignore_case: bool) -> Vec<RepoPath> {
    let removed_paths: HashSet<&RepoPath> =
        changes.iter().filter(|c| c.old.is_some()).map(|c| &c.path).collect();
    let lowercase_paths: HashSet<Vec<u8>> = if ignore_case {
        removed_paths.iter().map(|p| p.as_bytes().to_ascii_lowercase()).collect()
    } else {
        HashSet::new()
    };
    let mut out = Vec::new();
    // git removes a submodule's folder with its entire contents, including commits that exist nowhere else.
    let replaced_submodules =
        changes.iter().filter(|c| is_submodule(c.old) && c.new.is_some() && !is_submodule(c.new));
    // A folder that cannot be read counts as not empty.
    let is_empty = |dir: &Path| std::fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_none());
    let has_contents = |c: &&TreeChange| {
        let folder = c.path.to_fs_path(dir);
        folder.symlink_metadata().is_ok_and(|meta| meta.is_dir()) && !is_empty(&folder)
    };
    out.extend(replaced_submodules.filter(has_contents).map(|c| c.path.clone()));
    let created = changes.iter().filter(|c| c.old.is_none() && c.new.is_some_and(|n| !n.is_gitlink()));
    for change in created {
        let blocker = change
            .path
            .parents()
            .find(|parent| parent.to_fs_path(dir).symlink_metadata().is_ok_and(|m| !m.is_dir()));
        match blocker {
            Some(parent) if removed_paths.contains(&parent) => continue,
            Some(parent) => {
                out.push(parent);
                continue;
            }
            None => {}
        }
        let Ok(meta) = change.path.to_fs_path(dir).symlink_metadata() else { continue };
        if meta.is_dir() {
            collect_unremoved_files(dir, &change.path, &removed_paths, &mut out);
        } else if !lowercase_paths.contains(&change.path.as_bytes().to_ascii_lowercase()) {
            out.push(change.path.clone());
        }
    }
    out.sort();
    out.dedup();
    out
}

/// Returns whether one side of a change is a submodule; false for a side that does not exist.
fn is_submodule(side: Option<TreeFile>) -> bool {
    side.is_some_and(TreeFile::is_gitlink)
}

/// Collects in `out` the files below `folder` that are not in `removed_paths`; a folder that cannot be read
/// is collected itself.
fn collect_unremoved_files(
    dir: &Path,
    folder: &RepoPath,
    removed_paths: &HashSet<&RepoPath>,
    out: &mut Vec<RepoPath>,
) {
    use std::os::unix::ffi::OsStrExt;
    let Ok(entries) = std::fs::read_dir(folder.to_fs_path(dir)) else {
        out.push(folder.clone());
        return;
    };
    for entry in entries.flatten() {
        let path = folder.join(entry.file_name().as_bytes());
        if entry.file_type().is_ok_and(|t| t.is_dir()) {
            collect_unremoved_files(dir, &path, removed_paths, out);
        } else if !removed_paths.contains(&path) {
            out.push(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(path: &str, old: bool, new: bool) -> TreeChange {
        let oid = "1".repeat(40).parse().unwrap();
        let side = |exists: bool| exists.then_some(TreeFile { mode: 0o100_644, oid });
        TreeChange { path: RepoPath::new(path), old: side(old), new: side(new) }
    }

    #[test]
    fn finds_ignored_files_and_folders() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        std::fs::create_dir_all(root.join("build/deep")).unwrap();
        std::fs::write(root.join("build/deep/out"), "").unwrap();
        std::fs::write(root.join(".env"), "").unwrap();
        std::fs::write(root.join("file"), "").unwrap();
        let changes = [
            change(".env", false, true),
            change("build", false, true),
            change("file/below", false, true),
            change("new", false, true),
        ];
        let found: Vec<String> =
            scan_obstructions(root, &changes, false).iter().map(ToString::to_string).collect();
        assert_eq!(found, [".env", "build/deep/out", "file"]);
    }

    #[test]
    fn allows_files_that_changes_remove() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("d")).unwrap();
        std::fs::write(dir.path().join("d/x"), "").unwrap();
        std::fs::write(dir.path().join("f"), "").unwrap();
        let changes = [
            change("d/x", true, false),
            change("d", false, true),
            change("f", true, false),
            change("f/y", false, true),
        ];
        assert_eq!(scan_obstructions(dir.path(), &changes, false), []);
    }

    #[test]
    fn allows_case_only_rename_if_case_is_ignored() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("README"), "").unwrap();
        let changes = [change("readme", true, false), change("README", false, true)];
        assert_eq!(scan_obstructions(dir.path(), &changes, true), []);
        assert_eq!(scan_obstructions(dir.path(), &changes, false).len(), 1);
    }
}
