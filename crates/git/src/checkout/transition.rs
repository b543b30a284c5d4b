//! Transition of a working tree from one commit to another: either complete, or without any change. No other
//! code changes a working tree.
//!
//! Order of steps: lock the index, lock the refs, refuse to lose changes, give every touched file a second
//! name, let git write files and a second index, compare the replaced files, move the ref, install the index.
//! A failure before the ref has moved is undone by renames alone, so that a full disk cannot prevent the
//! undo.
//!
//! Limits: git itself writes the files, for as long as their filters take. During that time, an editor may
//! replace a file by rename, or create one at a path that is about to be added. Such a file is overwritten,
//! and the loss cannot be detected.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use proq_base::fail_points;

use super::fast_checkout::checkout_changes;
use super::preconditions::{LocalChangeSearch, refuse_overlap, refuse_ref_at_target, refuse_stale_head};
use super::quarantine::{Quarantine, ignore_ctime_options};
use super::ref_recovery::{clear_ref_locks, has_ref_moved, release_keeper_ref, write_untouched_marker};
use super::submodule::warn_stale_submodules;
use crate::base::folders::{exists_in_real_folder, remove_empty_folder};
use crate::base::head::RefMove;
use crate::base::path_list;
use crate::history::tree_diff::{TreeChange, TreeFile, tree_attribute_files, tree_changes};
use crate::index::file_modes::{PathMode, apply_modes};
use crate::index::index_lock::{IndexLock, NewIndex, StagedIndex};
use crate::index::scratch_index::INDEX_NAME;
use crate::index::sparse_entries::{SparseSwitch, expand_sparse_folders};
use crate::index::sparse_patterns::SparseExceptions;
use crate::index::{index_flags, scratch_index};
use crate::references::ref_transaction;
use crate::references::ref_transaction::PreparedMove;
use crate::repository::open_operation::require_no_git_operation;
use crate::repository::worktree_context::WorktreeContext;
use crate::status::local_state::LocalState;
use crate::status::status_query::index_certainly_at;
use crate::{CommitId, Error, Oid, RepoPath};

pub mod undo;

/// Moves a working tree and the ref that HEAD names from `from` to `to`. Changes of the user that do not
/// overlap are retained, including staged ones. `local_state` holds flags and permission bits to set on files
/// that are written. If HEAD switches to another ref, other flags that were set by hand are removed from the
/// index: they belong to the ref that is left.
///
/// # Errors
/// - [`Error::OperationInProgress`], [`Error::LocalChanges`], [`Error::Obstructed`], [`Error::IndexLocked`],
///   [`Error::RefNotMoved`]: refused, and nothing was changed
/// - [`Error::Raced`]: files changed concurrently, and everything was restored
pub fn transition(
    tree: &WorktreeContext<'_>,
    (from, to): (CommitId, CommitId),
    mv: &RefMove,
    reason: &str,
    local_state: &LocalState,
) -> Result<(), Error> {
    refuse_ref_at_target(tree, from, to, mv)?;
    tree.repo.require_index(tree.dir)?;
    tree.repo.sync_new_objects(to.oid(), from.oid())?;
    let lock = IndexLock::acquire_with_sharing(tree)?;
    let record_untouched = |e| write_untouched_marker(tree).err().unwrap_or(e);
    let requested = ref_transaction::start_move(tree, mv, (from, to), reason).map_err(record_untouched)?;
    // The lock protects the index, and HEAD does not matter here, so this is computed while git starts.
    let changes = tree_changes(tree.repo, from, to);
    let is_clean = changes
        .as_ref()
        .is_ok_and(|changes| index_certainly_at(tree.repo, tree.dir, &tree.git_dir, from, changes));
    let prepared = requested.wait_until_prepared().map_err(record_untouched)?;
    fail_points::hit("transition.locked");
    refuse_stale_head(tree, from, mv)?;
    require_no_git_operation(tree.dir, &tree.git_dir)?;
    let changes = changes?;
    let (flag_changes, modes) = (
        FlagChanges::compare_flags(tree, mv, lock.index(), local_state, &changes)?,
        local_state.changed_file_modes(&changes),
    );
    if changes.is_empty() && flag_changes.is_noop {
        return move_ref(tree, prepared, (from, to), mv);
    }
    // The in-process path sets neither flags nor modes.
    let can_checkout_in_process = is_clean && flag_changes.is_noop && modes.is_empty();
    let local = if can_checkout_in_process {
        LocalChangeSearch::None
    } else {
        LocalChangeSearch::from_move(from, mv)
    };
    let against = sparse_exceptions(mv, local_state);
    refuse_overlap(tree, &changes, local, &against)?;
    let mut applied = apply_files(tree, lock.index(), from, to.oid(), changes, local, &against)?;
    // Every step that can fail on a full disk, or because the lock was deleted, comes before the ref moves.
    let mark_result = apply_modes_and_flags(tree, &applied.git_written_index, &modes, &flag_changes);
    let staged_index = match mark_result.and_then(|()| lock.stage(applied.take_index())) {
        Ok(staged_index) => staged_index,
        Err(e) => {
            applied.undo(tree)?;
            return Err(e);
        }
    };
    fail_points::hit("transition.staged");
    if let Err(e) = move_ref(tree, prepared, (from, to), mv) {
        applied.undo(tree)?;
        return Err(e);
    }
    tree.repo.sync_reftables(&tree.git_dir);
    fail_points::hit("transition.moved");
    install_index(tree, staged_index, applied)
}

/// Installs the new index after the ref has moved, and accepts the written files.
///
/// # Errors
/// [`Error::RestoreFailed`] when the index cannot be installed.
fn install_index(
    tree: &WorktreeContext<'_>,
    staged_index: StagedIndex,
    applied: AppliedChanges<'_>,
) -> Result<(), Error> {
    let installed = staged_index
        .install_over_foreign_index()
        .map_err(|source| applied.restore_failed_error(tree, source))?;
    fail_points::hit("transition.installed");
    warn_stale_submodules(tree, &applied.changes);
    applied.accept();
    if let Some(saved_index) = installed {
        warn_replaced_index(tree, &saved_index);
    }
    Ok(())
}

/// Returns the exceptions from the patterns of a sparse checkout that `local_state` requires. None if HEAD
/// switches to another ref: restoring a snapshot sets them then.
fn sparse_exceptions<'b>(mv: &RefMove, local_state: &'b LocalState) -> SparseExceptions<'b> {
    match mv {
        RefMove::Switch { .. } => SparseExceptions::default(),
        _ => local_state.pattern_exceptions(),
    }
}

/// Flags to set on index entries during a transition.
struct FlagChanges {
    /// Entries with the flags to set.
    entries_to_flag: Vec<index_flags::FlaggedEntry>,
    /// Whether all other manual flags are removed from the index, so that it has exactly these.
    replaces_all_flags: bool,
    /// Whether nothing has to be set: the index has the flags already, or no entry gets one.
    is_noop: bool,
}

impl FlagChanges {
    /// Compares the flags in `local_state` with those of `index`.
    fn compare_flags(
        tree: &WorktreeContext<'_>,
        mv: &RefMove,
        index: &Path,
        local_state: &LocalState,
        changes: &[TreeChange],
    ) -> Result<FlagChanges, Error> {
        if !matches!(mv, RefMove::Switch { .. }) {
            let flagged = local_state.changed_file_flags(changes);
            return Ok(FlagChanges {
                is_noop: flagged.is_empty(),
                entries_to_flag: flagged,
                replaces_all_flags: false,
            });
        }
        let flagged = local_state.all_flags();
        let current = index_flags::manual_flags(tree.repo, tree.dir, &tree.git_dir, index)?;
        let has_same_paths = |has: fn(&index_flags::FlaggedEntry) -> bool| {
            let paths_with_flag = |all: &[index_flags::FlaggedEntry]| -> BTreeSet<RepoPath> {
                all.iter().filter(|entry| has(entry)).map(|entry| entry.path.clone()).collect()
            };
            paths_with_flag(&flagged) == paths_with_flag(&current)
        };
        let change_nothing =
            has_same_paths(|entry| entry.assume_unchanged) && has_same_paths(|entry| entry.skip_worktree);
        Ok(FlagChanges { entries_to_flag: flagged, replaces_all_flags: true, is_noop: change_nothing })
    }
}

/// Sets permission bits on files that were written, and flags on the entries of the index `index_file`.
fn apply_modes_and_flags(
    tree: &WorktreeContext<'_>,
    index_file: &Path,
    modes: &[PathMode],
    flag_changes: &FlagChanges,
) -> Result<(), Error> {
    if !modes.is_empty() {
        let created_dirs = read_new_folders(tree)?;
        if apply_modes(tree.dir, modes, |folder| created_dirs.contains(folder))? {
            index_flags::refresh_stat_data(tree.repo, tree.dir, index_file)?;
        }
    }
    if flag_changes.is_noop {
        return Ok(());
    }
    if flag_changes.replaces_all_flags {
        index_flags::clear_other_flags(tree, index_file, &flag_changes.entries_to_flag)?;
    }
    index_flags::restore_flags(tree.repo, tree.dir, index_file, &flag_changes.entries_to_flag)
}

/// Warns that another process changed the index despite its lock, and names the copy of that index.
fn warn_replaced_index(tree: &WorktreeContext<'_>, saved_index: &Path) {
    (tree.warn)(format!(
        "another program changed the index of {} despite its lock; its version is saved as {}",
        tree.dir.display(),
        saved_index.display()
    ));
}

/// Moves the ref of a transition. If it fails, the ref has not moved. If git moved the ref and then failed to
/// write the reflog, or was killed, the move counts as done. Locks that a killed git left are then removed.
fn move_ref(
    tree: &WorktreeContext<'_>,
    prepared: PreparedMove,
    (from, to): (CommitId, CommitId),
    mv: &RefMove,
) -> Result<(), Error> {
    match prepared.commit(tree.repo) {
        Ok(false) => return Ok(()),
        Ok(true) => {}
        Err(e) if has_ref_moved(tree, from, to, mv).unwrap_or(false) => (tree.warn)(e.to_string()),
        Err(e) => return Err(e),
    }
    if let Err(e) = clear_ref_locks(tree, to, mv) {
        (tree.warn)(e.to_string());
    }
    release_keeper_ref(tree.repo, tree.scratch);
    Ok(())
}

/// Files that were written to a worktree and can still be undone.
#[must_use]
pub(crate) struct AppliedChanges<'a> {
    /// Top of the worktree.
    dir: &'a Path,
    /// Changes that were applied.
    changes: Vec<TreeChange>,
    /// Hard links to the replaced files.
    replaced_files: Quarantine,
    /// File to which git writes the index.
    git_written_index: PathBuf,
    /// Index that was created in process.
    new_index: Option<NewIndex>,
    /// Commit or tree whose files are written.
    target_commit_or_tree: Oid,
}

/// Writes the files that differ between the trees of `from` and `to`, and builds the new index from `index`
/// in a second file. `local_search` is how the user's changes are found, which do not overlap `changes`.
/// `pattern_exceptions` holds the exceptions from the patterns of a sparse checkout.
pub(crate) fn apply_files<'a>(
    tree: &WorktreeContext<'a>,
    index: &Path,
    from: CommitId,
    to: Oid,
    changes: Vec<TreeChange>,
    local_search: LocalChangeSearch,
    pattern_exceptions: &SparseExceptions<'_>,
) -> Result<AppliedChanges<'a>, Error> {
    record_new_folders(tree, changes.iter().filter(|c| c.new.is_some()).map(|c| &c.path))?;
    let replaced = Quarantine::open(&tree.scratch.join(REPLACED_DIR))?;
    for change in changes.iter().filter(|c| touches_existing_file(c)) {
        replaced.link_in(tree.dir, &change.path)?;
    }
    let is_absent = |c: &&TreeChange| {
        touches_existing_file(c)
            && pattern_exceptions.shown_against_patterns.contains(&c.path)
            && !exists_in_real_folder(tree.dir, &c.path)
    };
    let absent: Vec<RepoPath> = changes.iter().filter(is_absent).map(|c| c.path.clone()).collect();
    path_list::write_path_list(&tree.scratch.join(NEWLY_SHOWN_LIST), &absent)?;
    fail_points::hit("transition.linked");
    let index_file = tree.scratch.join(INDEX_NAME);
    let mut applied = AppliedChanges {
        dir: tree.dir,
        changes,
        replaced_files: replaced,
        git_written_index: index_file,
        new_index: None,
        target_commit_or_tree: to,
    };
    let in_process = match local_search {
        LocalChangeSearch::None => {
            checkout_changes(tree, &applied.replaced_files, index, &applied.changes, to)
        }
        LocalChangeSearch::SinceHead | LocalChangeSearch::SinceCommit(_) => Ok(None),
    };
    let result = in_process
        .and_then(|new_index| {
            applied.new_index = new_index;
            if applied.new_index.is_some() {
                Ok(())
            } else {
                applied.apply_by_git(tree, index, from, pattern_exceptions)
            }
        })
        .and_then(|()| applied.replaced_files.finish_removals(tree.dir, &applied.changes));
    if let Err(e) = result {
        applied.undo(tree)?;
        return Err(e);
    }
    fail_points::hit("transition.brought");
    let paths = applied.edited_files(tree, from)?;
    if paths.is_empty() {
        return Ok(applied);
    }
    applied.undo(tree)?;
    Err(Error::Raced { dir: tree.dir.to_owned(), raced_paths: paths })
}

/// Name of a quarantine in a step's scratch folder, with hard links to the files that the step replaces. It
/// exists before the first file is replaced.
pub(crate) const REPLACED_DIR: &str = "replaced";

/// Name of a list in a step's scratch folder: changed files that a sparse checkout did not have on disk
/// before, and that the step writes.
const NEWLY_SHOWN_LIST: &str = "absent";

/// Name of a list in a step's scratch folder: folders that the step has to create.
const NEW_FOLDERS_LIST: &str = "new-folders";

/// Records in the scratch folder which folders have to be created for the files `arriving`. An undo removes
/// these folders, but no empty folder that existed before.
pub(crate) fn record_new_folders<'p>(
    tree: &WorktreeContext<'_>,
    arriving: impl Iterator<Item = &'p RepoPath>,
) -> Result<(), Error> {
    let mut missing: BTreeSet<RepoPath> = arriving.flat_map(|p| p.parents().collect::<Vec<_>>()).collect();
    // A file at the path of a folder is removed first.
    missing.retain(|folder| !folder.to_fs_path(tree.dir).symlink_metadata().is_ok_and(|meta| meta.is_dir()));
    let list = tree.scratch.join(NEW_FOLDERS_LIST);
    // An earlier attempt of the same step may have created some.
    let mut recorded = path_list::read_path_list(&list)?;
    recorded.extend(missing);
    path_list::write_path_list(&list, &recorded)
}

/// Reads the recorded list of folders that have to be created.
pub(crate) fn read_new_folders(tree: &WorktreeContext<'_>) -> Result<Vec<RepoPath>, Error> {
    path_list::read_path_list(&tree.scratch.join(NEW_FOLDERS_LIST))
}

/// Removes the folders that had to be created, if they are empty.
pub(crate) fn remove_new_folders(tree: &WorktreeContext<'_>) {
    let mut folders = read_new_folders(tree).unwrap_or_default();
    // Deepest folders first.
    folders.sort_by(|a, b| b.cmp(a));
    for folder in folders {
        drop(remove_empty_folder(&folder.to_fs_path(tree.dir)));
    }
}

/// Clears the flags of index entries that `changes` replace. git never compares a file with a flagged entry
/// again. It reports a file that got a second name or was only touched as "not uptodate". Returns the flags
/// of entries that exist after the changes, to be restored then.
fn clear_replaced_flags(
    tree: &WorktreeContext<'_>,
    index: &Path,
    changes: &[TreeChange],
) -> Result<Vec<index_flags::FlaggedEntry>, Error> {
    let change_by_path: HashMap<&RepoPath, &TreeChange> = changes.iter().map(|c| (&c.path, c)).collect();
    let mut flagged = index_flags::flagged_entries_in(tree.repo, tree.dir, index)?;
    flagged.retain(|f| {
        change_by_path.contains_key(&f.path) && f.path.to_fs_path(tree.dir).symlink_metadata().is_ok()
    });
    if flagged.is_empty() {
        return Ok(Vec::new());
    }
    let paths: Vec<RepoPath> = flagged.iter().map(|f| f.path.clone()).collect();
    index_flags::clear_flags(tree.repo, tree.dir, index, &paths)?;
    flagged.retain(|f| change_by_path.get(&f.path).is_some_and(|c| c.new.is_some()));
    Ok(flagged)
}

/// Returns whether the change replaces or removes a file.
fn touches_existing_file(change: &TreeChange) -> bool {
    change.old.is_some_and(|side| !side.is_gitlink())
}

impl<'a> AppliedChanges<'a> {
    /// Lets git write the files and a copy of `index`.
    fn apply_by_git(
        &self,
        tree: &WorktreeContext<'_>,
        index: &Path,
        from: CommitId,
        pattern_exceptions: &SparseExceptions<'_>,
    ) -> Result<(), Error> {
        scratch_index::copy_with_mtime(index, &self.git_written_index)?;
        expand_sparse_folders(tree, &self.git_written_index, &self.changes)?;
        let linked = self.changes.iter().filter(|c| touches_existing_file(c)).map(|c| &c.path);
        let git_options = ignore_ctime_options(tree.repo, tree.dir, &self.git_written_index, linked)?;
        let flagged = clear_replaced_flags(tree, &self.git_written_index, &self.changes)?;
        let left_out = SparseSwitch::prepare(
            tree,
            &self.git_written_index,
            &self.changes,
            (from.oid(), self.target_commit_or_tree),
            pattern_exceptions,
        )?;
        let (start, end) = left_out.as_ref().map_or((from.oid(), self.target_commit_or_tree), |left_out| {
            (left_out.from_tree, left_out.to_tree)
        });
        let command = tree
            .repo
            .git_in(tree.dir)
            .args(git_options.iter().copied())
            .args(index_flags::KEEP_FLAGS_CONFIG)
            .args(["read-tree", "-m", "-u"]);
        let result = command
            .args(left_out.as_ref().map(|_| "--no-sparse-checkout"))
            .args([start.to_string(), end.to_string()])
            .use_index(&self.git_written_index)
            .mutating()
            .run();
        result.map_err(|e| tree.repo.classify_checkout_error(e, self.target_commit_or_tree))?;
        left_out.map_or(Ok(()), |left_out| left_out.finish(tree, &self.git_written_index))?;
        index_flags::restore_flags(tree.repo, tree.dir, &self.git_written_index, &flagged)
    }

    /// Opens the changes of a killed process, as its scratch folder has them, so that they can be undone.
    pub(crate) fn open_from_scratch_folder(
        tree: &WorktreeContext<'a>,
        changes: Vec<TreeChange>,
        to: Oid,
    ) -> Result<AppliedChanges<'a>, Error> {
        let replaced = Quarantine::open(&tree.scratch.join(REPLACED_DIR))?;
        Ok(AppliedChanges {
            dir: tree.dir,
            changes,
            replaced_files: replaced,
            git_written_index: tree.scratch.join(INDEX_NAME),
            new_index: None,
            target_commit_or_tree: to,
        })
    }

    /// Returns the replaced files that the user edited after the check and before git replaced them. Their
    /// original name now belongs to git's file, but the second name in the quarantine shows the edit.
    fn edited_files(&self, tree: &WorktreeContext<'_>, from: CommitId) -> Result<Vec<RepoPath>, Error> {
        let expected: Vec<(RepoPath, TreeFile)> = self
            .changes
            .iter()
            .filter(|c| touches_existing_file(c) && self.replaced_files.contains(&c.path))
            .filter_map(|c| Some((c.path.clone(), c.old?)))
            .collect();
        if expected.is_empty() {
            return Ok(Vec::new());
        }
        let attributes = || tree_attribute_files(tree.repo, from, expected.iter().map(|(p, _)| p));
        self.replaced_files.differing_files(tree, &expected, &attributes)
    }

    /// Returns the new index to install: the one built in memory, or the file that git wrote.
    fn take_index(&mut self) -> NewIndex {
        self.new_index.take().unwrap_or_else(|| NewIndex::InFile(self.git_written_index.clone()))
    }

    /// Accepts the changes, and discards the second names of replaced files.
    pub fn accept(self) {
        self.replaced_files.discard();
    }
}
