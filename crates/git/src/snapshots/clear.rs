//! Cleaning of a worktree once a snapshot holds its dirty state. Nothing is deleted: files are parked.

use std::collections::BTreeSet;
use std::path::Path;

use proq_base::fail_points;

use super::ignored_obstructions::refuse_obstructions;
use super::snapshot::Snapshot;
use crate::base::folders::{exists_in_real_folder, remove_empty_parents, remove_empty_tree};
use crate::base::path::nul_separated;
use crate::base::path_list;
use crate::checkout::displaced_files::DisplacedFiles;
use crate::checkout::fast_checkout::write_new_file;
use crate::checkout::obstructions::{Obstruction, obstruction_after_cleanup};
use crate::checkout::partial_files::is_missing_or_git_written;
use crate::checkout::preflight::refuse_unchangeable;
use crate::checkout::quarantine::{Quarantine, matches_blob};
use crate::history::tree_diff;
use crate::history::tree_diff::{TreeChange, TreeFile, tree_attribute_files, tree_changes};
use crate::index::index_lock::{IndexLock, NewIndex};
use crate::index::no_conversion::{is_portable_path, needs_no_conversion, verbatim_rule};
use crate::index::refresh_index::IndexRefresh;
use crate::index::scratch_index::INDEX_NAME;
use crate::index::sparse_entries::{mark_skip_worktree, pattern_exceptions};
use crate::index::sparse_patterns::SparsePatterns;
use crate::index::{index_flags, scratch_index};
use crate::repository::open_operation::require_no_git_operation;
use crate::repository::worktree_context::WorktreeContext;
use crate::{CommitId, Error, RepoPath};

/// Callback that saves a commit of files that other processes have written where git-proq restores its own.
pub(crate) type SaveCommit<'a> = &'a dyn Fn(CommitId) -> Result<(), Error>;

/// Cleans a worktree: moves every file that differs from HEAD to `parked_dir` and compares it there with the
/// snapshot. Then writes HEAD's content in its place. Any failure restores the earlier state; `save_commit`
/// then receives a commit of files that other processes wrote there.
///
/// # Errors
/// Fails with [`Error::Raced`] when a file or the index changed since the snapshot was taken. Fails with
/// [`Error::NotWritable`] or [`Error::ReplacedBlobs`] before anything is touched.
pub fn clear_worktree(
    tree: &WorktreeContext<'_>,
    snapshot: &Snapshot,
    parked_dir: &Path,
    save_commit: SaveCommit<'_>,
) -> Result<(), Error> {
    let lock = IndexLock::acquire_with_sharing(tree)?;
    require_no_git_operation(tree.dir, &tree.git_dir)?;
    if snapshot.index_version.is_some() && lock.initial_version() != snapshot.index_version {
        return Err(raced_error(tree, vec![RepoPath::new("the index")]));
    }
    // The index is the one that the snapshot was taken of.
    let is_at_head = snapshot.index_version.is_some()
        && snapshot.index_tree == tree.repo.tree_of(snapshot.head_commit)?
        && snapshot.intent_to_add.is_empty()
        && snapshot.stages.is_none();
    let files = SnapshotFiles::load_for_clearing(tree, snapshot)?;
    refuse_unchangeable(tree, &files.all_changes())?;
    refuse_obstructions(
        tree,
        &files.tracked,
        &files.untracked_and_ignored().map(|(path, _)| path).collect(),
    )?;
    let parked = Quarantine::open(parked_dir)?;
    let result = files
        .park_files(tree, &parked)
        .inspect(|()| fail_points::hit("clear.moved"))
        .and_then(|()| files.require_parked_unchanged(tree, snapshot, &parked))
        .and_then(|()| files.write_head_files(tree, snapshot, lock.index(), is_at_head));
    let result = result.inspect(|_| fail_points::hit("clear.filled")).and_then(|next| lock.install(next));
    if let Err(e) = result {
        if let Some(commit) = files.undo(tree, &parked, &snapshot.empty_dirs)? {
            save_commit(commit)?;
            DisplacedFiles::forget_saved(tree);
        }
        return Err(e);
    }
    fail_points::hit("clear.installed");
    Ok(())
}

fn raced_error(tree: &WorktreeContext<'_>, paths: Vec<RepoPath>) -> Error {
    Error::Raced { dir: tree.dir.to_owned(), raced_paths: paths }
}

/// Files of a worktree that differ from HEAD, as a snapshot recorded them.
pub(crate) struct SnapshotFiles {
    /// Commit that HEAD pointed to.
    head_commit: CommitId,
    /// Changes from HEAD to the tracked files of the snapshot.
    pub tracked: Vec<TreeChange>,
    /// Untracked files.
    pub untracked: Vec<(RepoPath, TreeFile)>,
    /// Ignored files at paths where HEAD has something else. No object has their content.
    pub ignored: Vec<(RepoPath, TreeFile)>,
}

impl SnapshotFiles {
    /// Loads the differences from HEAD out of the snapshot's trees, without submodules.
    pub fn load(tree: &WorktreeContext<'_>, snapshot: &Snapshot) -> Result<SnapshotFiles, Error> {
        let mut tracked = tree_changes(tree.repo, snapshot.head_commit, snapshot.work_tree)?;
        // Submodules have separate transitions: their folders stay.
        tracked.retain(|c| ![c.old, c.new].into_iter().flatten().any(TreeFile::is_gitlink));
        let untracked = match snapshot.untracked_tree {
            None => Vec::new(),
            Some(id) => tree_diff::tree_files(tree.repo, id, &BTreeSet::new())?,
        };
        let ignored = snapshot.ignored.iter().map(|file| (file.path.clone(), file.to_tree_file())).collect();
        Ok(SnapshotFiles { head_commit: snapshot.head_commit, tracked, untracked, ignored })
    }

    /// Loads the files of a worktree that is about to be cleared, including those that a sparse checkout
    /// shows or leaves out against its patterns. A later switch to another commit then finds the worktree as
    /// git would have created it. The snapshot's index determines which of these files return.
    pub(crate) fn load_for_clearing(
        tree: &WorktreeContext<'_>,
        snapshot: &Snapshot,
    ) -> Result<SnapshotFiles, Error> {
        let mut files = SnapshotFiles::load(tree, snapshot)?;
        if !index_flags::has_sparse_patterns_file(&tree.git_dir) {
            return Ok(files);
        }
        let snapshot_paths: BTreeSet<RepoPath> =
            files.all_changes().into_iter().map(|change| change.path).collect();
        let staged = tree_changes(tree.repo, snapshot.head_commit, snapshot.index_tree)?;
        let staged: BTreeSet<&RepoPath> =
            staged.iter().map(|c| &c.path).chain(&snapshot.intent_to_add).collect();
        let is_from_head = |path: &RepoPath| !snapshot_paths.contains(path) && !staged.contains(path);
        files.tracked.extend(pattern_exceptions(tree, &snapshot.present_skipped, is_from_head)?);
        Ok(files)
    }

    /// Returns every path whose snapshot version differs from HEAD.
    pub(crate) fn all_changes(&self) -> Vec<TreeChange> {
        let addition = |(path, side): &(RepoPath, TreeFile)| TreeChange {
            path: path.clone(),
            old: None,
            new: Some(*side),
        };
        self.tracked.iter().cloned().chain(self.untracked_and_ignored().map(addition)).collect()
    }

    /// Returns the files that git does not track, ignored or not.
    pub(crate) fn untracked_and_ignored(&self) -> impl Iterator<Item = &(RepoPath, TreeFile)> {
        self.untracked.iter().chain(&self.ignored)
    }

    /// Removes from this list the ignored files for which `is_parked` returns false. No object has their
    /// content, so the files that are now at their paths stay unchanged.
    pub(crate) fn drop_lost_ignored(&mut self, is_parked: impl Fn(&RepoPath) -> bool) {
        let ignored = std::mem::take(&mut self.ignored);
        let (parked, lost): (Vec<_>, Vec<_>) = ignored.into_iter().partition(|(path, _)| is_parked(path));
        self.ignored = parked;
        self.tracked.retain(|c| c.new.is_some() || !lost.iter().any(|(path, _)| *path == c.path));
    }

    /// Returns `changes` of tracked files, followed by the additions of untracked and ignored files. Leaves
    /// out an addition at a path that `changes` remove: a file that was removed from the index but stayed on
    /// disk, where HEAD's version has to be removed first.
    pub(crate) fn with_untracked(&self, changes: &[TreeChange]) -> Vec<TreeChange> {
        let is_removed = |path: &RepoPath| changes.iter().any(|c| c.path == *path && c.new.is_none());
        let added = self.untracked_and_ignored().filter(|(path, _)| !is_removed(path));
        let added = added.map(|(path, side)| TreeChange { path: path.clone(), old: None, new: Some(*side) });
        changes.iter().cloned().chain(added).collect()
    }

    /// Returns every file that the snapshot's worktree has and HEAD does not have in this form.
    pub fn changed_files(&self) -> Vec<(RepoPath, TreeFile)> {
        self.tracked_files().chain(self.untracked_and_ignored().cloned()).collect()
    }

    /// Returns the changed files whose content is in the snapshot's objects.
    pub(crate) fn files_with_objects(&self) -> Vec<(RepoPath, TreeFile)> {
        self.tracked_files().chain(self.untracked.iter().cloned()).collect()
    }

    fn tracked_files(&self) -> impl Iterator<Item = (RepoPath, TreeFile)> {
        self.tracked.iter().filter_map(|c| Some((c.path.clone(), c.new?)))
    }

    /// Returns the `.gitattributes` files that were in effect when the snapshot was taken.
    pub(crate) fn attribute_files(
        &self,
        tree: &WorktreeContext<'_>,
        snapshot: &Snapshot,
    ) -> Result<Vec<(RepoPath, TreeFile)>, Error> {
        let files = self.changed_files();
        let mut all_attributes =
            tree_attribute_files(tree.repo, snapshot.work_tree, files.iter().map(|(p, _)| p))?;
        let untracked_attributes = self.untracked.iter().filter(|(p, _)| p.ends_with_name(b".gitattributes"));
        all_attributes.extend(untracked_attributes.cloned());
        Ok(all_attributes)
    }

    /// Moves the changed files to `parked`. Fails with [`Error::Raced`] if one of them no longer exists.
    fn park_files(&self, tree: &WorktreeContext<'_>, parked: &Quarantine) -> Result<(), Error> {
        let mut missing = Vec::new();
        for (path, _) in self.changed_files() {
            if !parked.move_in(tree.dir, &path)? {
                missing.push(path.clone());
            }
            remove_empty_parents(tree.dir, &path);
        }
        if missing.is_empty() { Ok(()) } else { Err(raced_error(tree, missing)) }
    }

    /// Fails with [`Error::Raced`] if a parked file differs from the snapshot's version.
    fn require_parked_unchanged(
        &self,
        tree: &WorktreeContext<'_>,
        snapshot: &Snapshot,
        parked: &Quarantine,
    ) -> Result<(), Error> {
        let attributes = || self.attribute_files(tree, snapshot);
        let edited = parked.differing_files(tree, &self.changed_files(), &attributes)?;
        if edited.is_empty() { Ok(()) } else { Err(raced_error(tree, edited)) }
    }

    /// Writes HEAD's content where files were parked, and creates HEAD's index. `index_matches_head` is
    /// whether the present index is known to match HEAD.
    fn write_head_files(
        &self,
        tree: &WorktreeContext<'_>,
        snapshot: &Snapshot,
        index: &Path,
        index_matches_head: bool,
    ) -> Result<NewIndex, Error> {
        let next_index = tree.scratch.join(INDEX_NAME);
        let head_files: Vec<(RepoPath, TreeFile)> =
            self.tracked.iter().filter_map(|c| Some((c.path.clone(), c.old?))).collect();
        if index_matches_head
            && let Some(new_index) =
                self.write_head_files_in_process(tree, index, &next_index, &head_files)?
        {
            return Ok(new_index);
        }
        scratch_index::copy_with_mtime(index, &next_index)?;
        let git_command =
            || tree.repo.git_in(tree.dir).args(index_flags::KEEP_FLAGS_CONFIG).use_index(&next_index);
        if !index_matches_head {
            // An intent-to-add entry has the blob id of an empty file, so git would take it for that file and
            // retain it.
            let added_paths = nul_separated(&snapshot.intent_to_add);
            if !added_paths.is_empty() {
                git_command()
                    .args(["update-index", "--force-remove", "-z", "--stdin"])
                    .input(added_paths)
                    .mutating()
                    .run()?;
            }
            git_command()
                .args(["read-tree", "-i", "-m"])
                .arg(snapshot.head_commit.to_string())
                .mutating()
                .run()?;
        }
        let paths: Vec<RepoPath> = head_files.into_iter().map(|(path, _)| path).collect();
        let skipped: BTreeSet<RepoPath> = index_flags::flagged_entries(tree.repo, tree.dir, &tree.git_dir)?
            .into_iter()
            .filter(|f| f.skip_worktree)
            .map(|f| f.path)
            .collect();
        let paths = mark_excluded_files(tree, &next_index, paths)?;
        let to_unflag: Vec<RepoPath> = paths.iter().filter(|p| skipped.contains(p)).cloned().collect();
        index_flags::clear_flags(tree.repo, tree.dir, &next_index, &to_unflag)?;
        record_planned_writes(tree, &paths)?;
        let list = nul_separated(&paths);
        if !list.is_empty() {
            git_command()
                .args(["checkout-index", "--index", "-z", "--stdin"])
                .input(list)
                .mutating()
                .run()?;
        }
        Ok(NewIndex::InFile(next_index))
    }

    /// Writes HEAD's content in process where no filter, attribute or hook affects these files and `index`
    /// matches HEAD. Returns `None`, with nothing done, when only git can do it.
    fn write_head_files_in_process(
        &self,
        tree: &WorktreeContext<'_>,
        index: &Path,
        head_index: &Path,
        head_files: &[(RepoPath, TreeFile)],
    ) -> Result<Option<NewIndex>, Error> {
        let unchanged = |(path, side): &(RepoPath, TreeFile)| TreeChange {
            path: path.clone(),
            old: Some(*side),
            new: Some(*side),
        };
        let changes: Vec<TreeChange> = head_files.iter().map(unchanged).collect();
        // A parked `.gitattributes` file affects what git writes for the other files.
        if !self.changed_files().iter().all(|(path, _)| is_portable_path(path))
            || !needs_no_conversion(tree, &changes)
        {
            return Ok(None);
        }
        let paths = head_files.iter().map(|(path, _)| path).collect();
        let plan = IndexRefresh::plan(tree, index, &paths);
        let Some(plan) = plan.filter(|plan| plan.writes_verbatim(tree, head_files)) else { return Ok(None) };
        record_planned_writes(tree, &head_files.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>())?;
        for (path, side) in head_files {
            write_new_file(tree, path, *side)?;
        }
        if let Some(new_index) = plan.build(tree) {
            return Ok(Some(new_index));
        }
        scratch_index::copy_with_mtime(index, head_index)?;
        index_flags::refresh_stat_data(tree.repo, tree.dir, head_index)?;
        Ok(Some(NewIndex::InFile(head_index.to_owned())))
    }

    /// Undoes [`clear_worktree`]: restores the parked files to their places and removes the files that
    /// git-proq wrote. Files of other processes at those places are saved. The returned commit has those that
    /// a commit can hold; the others are renamed. A file created where the user had deleted one stays.
    pub fn undo(
        &self,
        tree: &WorktreeContext<'_>,
        parked: &Quarantine,
        empty_dirs: &[RepoPath],
    ) -> Result<Option<CommitId>, Error> {
        let written_paths: BTreeSet<RepoPath> =
            path_list::read_path_list(&tree.scratch.join(PLANNED_WRITES_LIST))?.into_iter().collect();
        let mut displaced = DisplacedFiles::open(tree)?;
        // Every file was parked before anything was written. A file that is no longer parked was restored by
        // an interrupted recovery, and may resemble a prefix of HEAD's file.
        let files = self.changed_files();
        let snapshot_paths: BTreeSet<&RepoPath> = files.iter().map(|(path, _)| path).collect();
        displaced.inspect(snapshot_paths.iter().copied().chain(&written_paths));
        for path in written_paths
            .iter()
            .filter(|path| !snapshot_paths.contains(path) && self.is_written_head_file(tree, path))
        {
            displaced.discard(path)?;
            // A file may have to return to the place of this folder.
            remove_empty_parents(tree.dir, path);
        }
        let saved_commit = displaced.preserve(self.foreign_files(tree, parked, &written_paths))?;
        for (path, _) in files.iter().filter(|(p, _)| parked.contains(p)) {
            displaced.replace(path, parked)?;
            fail_points::hit("clear.given");
        }
        for dir in empty_dirs {
            // A file that was put there in the meantime stays.
            drop(std::fs::create_dir_all(dir.to_fs_path(tree.dir)));
        }
        displaced.finish()?;
        Ok(saved_commit)
    }

    /// Returns the files at paths to restore that are neither the snapshot's files nor the ones git-proq
    /// wrote.
    fn foreign_files(
        &self,
        tree: &WorktreeContext<'_>,
        parked: &Quarantine,
        written_paths: &BTreeSet<RepoPath>,
    ) -> Vec<Obstruction> {
        let is_known = |foreign: &Obstruction, side: TreeFile| {
            foreign.is_replaceable
                && (matches_blob(tree.repo, &foreign.path.to_fs_path(tree.dir), side)
                    || (written_paths.contains(&foreign.path)
                        && self.is_written_head_file(tree, &foreign.path)))
        };
        let to_restore = self.changed_files().into_iter().filter(|(path, _)| parked.contains(path));
        let foreign =
            to_restore.filter_map(|(path, side)| Some((obstruction_after_cleanup(tree.dir, &path)?, side)));
        foreign.filter(|(found, side)| !is_known(found, *side)).map(|(found, _)| found).collect()
    }

    /// Returns whether the file at `path`, where git-proq planned to write HEAD's file, is that file or a
    /// prefix of it. Where git cannot run, on a full disk, only a file that is byte for byte HEAD's counts.
    fn is_written_head_file(&self, tree: &WorktreeContext<'_>, path: &RepoPath) -> bool {
        let head_side = self.tracked.iter().find(|c| c.path == *path).and_then(|c| c.old);
        let is_from_side =
            |side| is_missing_or_git_written(tree, path, side, self.head_commit.oid()).unwrap_or(false);
        exists_in_real_folder(tree.dir, path) && head_side.is_some_and(is_from_side)
    }
}

/// Name, in a step's folder, of the list of files that the step writes where files were parked.
const PLANNED_WRITES_LIST: &str = "filled";

/// Records paths in the scratch folder before HEAD's files are written there: an undo removes only recorded
/// files. Fails if anything but empty folders exists at a path; the snapshot has recorded empty folders.
fn record_planned_writes(tree: &WorktreeContext<'_>, paths: &[RepoPath]) -> Result<(), Error> {
    let mut obstacles: Vec<RepoPath> = paths
        .iter()
        .filter_map(|path| obstruction_after_cleanup(tree.dir, path))
        .map(|found| found.path)
        .collect();
    obstacles.dedup();
    if !obstacles.is_empty() {
        return Err(raced_error(tree, obstacles));
    }
    path_list::write_path_list(&tree.scratch.join(PLANNED_WRITES_LIST), paths)
}

/// Marks the files that the sparse patterns exclude as skip-worktree in `index`. Returns the other files.
fn mark_excluded_files(
    tree: &WorktreeContext<'_>,
    index: &Path,
    paths: Vec<RepoPath>,
) -> Result<Vec<RepoPath>, Error> {
    let Some(patterns) = SparsePatterns::load_for_tree(tree)? else { return Ok(paths) };
    // Follow git's patterns here. Files that differ from them return with the snapshot.
    let (excluded, included): (Vec<_>, _) = paths.into_iter().partition(|p| patterns.excludes(p));
    // Git treats an empty folder in place of a file as a change; the snapshot has recorded it.
    for path in &excluded {
        remove_empty_tree(&path.to_fs_path(tree.dir));
    }
    mark_skip_worktree(tree, index, excluded.iter())?;
    Ok(included)
}

/// Copies files of a snapshot of this worktree to `parked_dir` where git would not write the same bytes from
/// its objects: a filter or line ends may intervene, or git ignores the file.
pub fn copy_filtered_files(
    tree: &WorktreeContext<'_>,
    snapshot: &Snapshot,
    parked_dir: &Path,
) -> Result<(), Error> {
    let files = SnapshotFiles::load(tree, snapshot)?;
    copy_files_unlike_blobs(tree, parked_dir, &files.files_with_objects(), &files.ignored)
}

/// Copies files of a snapshot that were just restored to `parked_dir`: the ignored files, and those untracked
/// files of which git would write other bytes from its objects. The next undo restores them from there.
pub fn copy_untracked_files(
    tree: &WorktreeContext<'_>,
    snapshot: &Snapshot,
    parked_dir: &Path,
) -> Result<(), Error> {
    let files = SnapshotFiles::load(tree, snapshot)?;
    copy_files_unlike_blobs(tree, parked_dir, &files.untracked, &files.ignored)
}

/// Copies to `parked_dir` those of `files` of which git would write other bytes, and all `ignored` files,
/// except files that it has already.
fn copy_files_unlike_blobs(
    tree: &WorktreeContext<'_>,
    parked_dir: &Path,
    files: &[(RepoPath, TreeFile)],
    ignored: &[(RepoPath, TreeFile)],
) -> Result<(), Error> {
    let parked = Quarantine::open(parked_dir)?;
    let paths: Vec<RepoPath> = files.iter().map(|(path, _)| path.clone()).collect();
    let is_unconverted = verbatim_rule(tree.repo, tree.dir, &paths).is_some();
    let matches_blob = |(path, side): &&(RepoPath, TreeFile)| {
        is_unconverted && matches_blob(tree.repo, &path.to_fs_path(tree.dir), *side)
    };
    let differing = files.iter().filter(|file| !matches_blob(file)).chain(ignored);
    for (path, _) in differing.filter(|(path, _)| !parked.contains(path)) {
        parked.copy_in(tree.dir, path)?;
    }
    Ok(())
}
