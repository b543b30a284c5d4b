//! Files that a sparse checkout leaves out. Git applies the patterns again each time that it switches to
//! another commit. It removes files that a user has restored manually, and writes files that a user has
//! marked skip-worktree. Here an existing entry keeps its state, present or left out, and the patterns decide
//! only about new files.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use gix::index::entry::{Flags, Stage};

use super::sparse_patterns::{SparseExceptions, SparsePatterns};
use super::{index_flags, scratch_index};
use crate::base::folders::{
    exists_in_real_folder, has_real_parents, obstruction_above, remove_empty_parents, remove_empty_tree,
};
use crate::base::path::nul_separated;
use crate::history::tree_diff;
use crate::history::tree_diff::{TreeChange, TreeFile};
use crate::repository::worktree_context::WorktreeContext;
use crate::{Error, Oid, RepoPath, TreeId};

/// Expands the sparse directory entries of an index if one of `changes` lies below such an entry. Otherwise
/// git would not know that the files below it are left out, and would write them.
pub(crate) fn expand_sparse_folders(
    tree: &WorktreeContext<'_>,
    index: &Path,
    changes: &[TreeChange],
) -> Result<(), Error> {
    let options = gix::index::decode::Options::default();
    let decoded = gix::index::File::at(index, tree.repo.gix.object_hash(), true, options);
    let Some(sparse_index) = decoded.ok().filter(|read| read.is_sparse()) else { return Ok(()) };
    let folder_entry = |folder: &RepoPath| sparse_index.entry_by_path(folder.join(b"").as_bytes().into());
    let Some((folder, entry)) = changes.iter().flat_map(|c| c.path.parents()).find_map(|parent| {
        let entry = folder_entry(&parent)?;
        Some((parent, entry))
    }) else {
        return Ok(());
    };
    // Git expands all entries as soon as one file below them is named.
    let files = tree_diff::tree_files(tree.repo, TreeId(entry.id), &BTreeSet::new())?;
    let Some((first_file, _)) = files.first() else { return Ok(()) };
    let call = tree.repo.git_in(tree.dir).args(index_flags::KEEP_FLAGS_CONFIG);
    let call = call.args(["update-index", "--skip-worktree", "-z", "--stdin"]).use_index(index);
    call.input(nul_separated([&folder.join(first_file.as_bytes())])).mutating().run().map(drop)
}

/// Trees and late index entries with which git switches a sparse checkout between two commits without writing
/// left-out files.
pub(crate) struct SparseSwitch {
    /// Tree from which git switches.
    pub(crate) from_tree: Oid,
    /// Tree to which git switches.
    pub(crate) to_tree: Oid,
    /// Entries of left-out files that replace existing files or folders. They are added to the index after
    /// git has switched.
    late_entries: Vec<(RepoPath, TreeFile)>,
}

impl SparseSwitch {
    /// Updates those entries of `index` that have no file, so that git does not change them afterwards. These
    /// are changed entries marked skip-worktree, and new ones that the patterns leave out. Git writes files
    /// that are to be shown against the patterns. Empty folders in their places are removed. Returns `None`
    /// if the checkout is not sparse.
    pub fn prepare(
        tree: &WorktreeContext<'_>,
        index: &Path,
        changes: &[TreeChange],
        (from, to): (Oid, Oid),
        SparseExceptions { shown_against_patterns: shown, absent_against_patterns: left_out }: &SparseExceptions<'_>,
    ) -> Result<Option<SparseSwitch>, Error> {
        let Some(patterns) = SparsePatterns::load_for_tree(tree)? else { return Ok(None) };
        let flagged = index_flags::flagged_entries_in(tree.repo, tree.dir, index)?;
        let skipped: HashSet<&RepoPath> =
            flagged.iter().filter(|f| f.skip_worktree).map(|f| &f.path).collect();
        let is_skipped = |path: &RepoPath| skipped.contains(path) && !exists_in_real_folder(tree.dir, path);
        let present_paths =
            changes.iter().filter(|c| c.old.is_some() && !is_skipped(&c.path)).map(|c| &c.path);
        let present: HashSet<&RepoPath> = present_paths.collect();
        let present_parents: HashSet<RepoPath> = present.iter().flat_map(|path| path.parents()).collect();
        let replaces_present = |path: &RepoPath| {
            present_parents.contains(path) || path.parents().any(|parent| present.contains(&parent))
        };
        let is_left_out = |change: &&TreeChange| match (change.old, change.new) {
            (Some(old), _) if old.is_gitlink() => false,
            (_, Some(new)) if new.is_gitlink() => false,
            _ if shown.contains(&change.path) => false,
            (Some(_), _) => is_skipped(&change.path),
            (None, _) => left_out.contains(&change.path) || patterns.excludes(&change.path),
        };
        let shown_skipped: Vec<RepoPath> =
            shown.iter().filter(|path| skipped.contains(*path)).map(|path| (*path).clone()).collect();
        index_flags::clear_flags(tree.repo, tree.dir, index, &shown_skipped)?;
        let left_out_changes: Vec<&TreeChange> = changes.iter().filter(is_left_out).collect();
        let new_entries = left_out_changes.iter().filter_map(|c| Some((c.path.clone(), c.new?)));
        let (late, entries): (Vec<_>, Vec<_>) = new_entries.partition(|(path, _)| replaces_present(path));
        let mut input = Vec::new();
        // An entry may replace a folder of other entries.
        for change in left_out_changes.iter().filter(|c| c.new.is_none()) {
            let Some(old) = change.old else { continue };
            push_index_info(&mut input, 0, &old.oid.null().to_string(), &change.path);
        }
        add_skipped_entries(tree, index, input, &entries)?;
        // A rewritten entry has lost its assume-unchanged flag.
        let entry_paths: HashSet<&RepoPath> = entries.iter().map(|(path, _)| path).collect();
        let assumed: Vec<_> =
            flagged.into_iter().filter(|f| f.assume_unchanged && entry_paths.contains(&f.path)).collect();
        index_flags::restore_flags(tree.repo, tree.dir, index, &assumed)?;
        let is_taken = |path: &RepoPath| {
            path.to_fs_path(tree.dir).symlink_metadata().is_ok() || !has_real_parents(tree.dir, path)
        };
        let taken_paths =
            left_out_changes.iter().filter(|c| c.new.is_none() && is_taken(&c.path)).map(|c| &c.path);
        let from = tree_without_paths(tree, from, &taken_paths.collect::<Vec<_>>())?;
        let to = tree_without_paths(tree, to, &late.iter().map(|(path, _)| path).collect::<Vec<_>>())?;
        Ok(Some(SparseSwitch { from_tree: from, to_tree: to, late_entries: late }))
    }

    /// Adds the late entries, once git has switched the index to [`SparseSwitch::to_tree`].
    pub fn finish(&self, tree: &WorktreeContext<'_>, index: &Path) -> Result<(), Error> {
        add_skipped_entries(tree, index, Vec::new(), &self.late_entries)
    }
}

/// Passes `input` and then lines for `entries` to `git update-index --index-info`, and marks these entries
/// skip-worktree. Removes empty folders at their paths.
fn add_skipped_entries(
    tree: &WorktreeContext<'_>,
    index: &Path,
    mut input: Vec<u8>,
    entries: &[(RepoPath, TreeFile)],
) -> Result<(), Error> {
    for (path, side) in entries {
        push_index_info(&mut input, side.mode, &side.oid.to_string(), path);
    }
    let call = || tree.repo.git_in(tree.dir).args(index_flags::KEEP_FLAGS_CONFIG).use_index(index).mutating();
    if !input.is_empty() {
        call().args(["update-index", "-z", "--index-info"]).input(input).run()?;
    }
    mark_skip_worktree(tree, index, entries.iter().map(|(path, _)| path))?;
    // Git reports an empty folder in an entry's place as a change. Git, too, removes it where it writes the
    // file.
    for (path, _) in entries.iter().filter(|(path, _)| has_real_parents(tree.dir, path)) {
        remove_empty_tree(&path.to_fs_path(tree.dir));
        remove_empty_parents(tree.dir, path);
    }
    Ok(())
}

/// Returns the tree of the commit `from` without `paths`. With them, git would check for a file where the
/// index has none, and stop if something else is at or above its path.
fn tree_without_paths(tree: &WorktreeContext<'_>, from: Oid, paths: &[&RepoPath]) -> Result<Oid, Error> {
    if paths.is_empty() {
        return Ok(from);
    }
    let index = tree.scratch.join("without-left-out");
    scratch_index::remove_scratch_index(&index);
    let call = || tree.repo.git_in(tree.dir).use_index(&index).mutating();
    call().args(["read-tree", "--no-sparse-checkout"]).arg(from.to_string()).run()?;
    let nul_paths = nul_separated(paths.iter().copied());
    call().args(["update-index", "--force-remove", "-z", "--stdin"]).input(nul_paths).run()?;
    call().run_write_tree().map(TreeId::oid)
}

/// Returns those of `changes` that write or remove a file on disk. A new file is omitted if the sparse
/// checkout leaves it out, by its patterns or as an exception in `exceptions`. It still counts as written if
/// it replaces an old file or folder. So it does if its path is occupied: git takes the existing file for it
/// and may remove it.
pub(crate) fn changes_written_to_disk(
    tree: &WorktreeContext<'_>,
    changes: &[TreeChange],
    exceptions: &SparseExceptions<'_>,
) -> Result<Vec<TreeChange>, Error> {
    let Some(patterns) = SparsePatterns::load_for_tree(tree)? else { return Ok(changes.to_vec()) };
    let old_paths: HashSet<&RepoPath> = changes.iter().filter(|c| c.old.is_some()).map(|c| &c.path).collect();
    let old_parents: HashSet<RepoPath> = old_paths.iter().flat_map(|path| path.parents()).collect();
    let replaces_old = |path: &RepoPath| {
        old_parents.contains(path) || path.parents().any(|parent| old_paths.contains(&parent))
    };
    let is_left_out = |change: &&TreeChange| {
        let is_new_file = change.old.is_none() && change.new.is_some_and(|new| !new.is_gitlink());
        // Git follows links above the path, and so does this check.
        let is_free = change.path.to_fs_path(tree.dir).symlink_metadata().is_err();
        let is_left_out = match patterns.excludes(&change.path) {
            true => !exceptions.shown_against_patterns.contains(&change.path),
            false => exceptions.absent_against_patterns.contains(&change.path),
        };
        is_new_file && is_free && is_left_out && !replaces_old(&change.path)
    };
    Ok(changes.iter().filter(|change| !is_left_out(change)).cloned().collect())
}

fn push_index_info(input: &mut Vec<u8>, mode: u32, id: &str, path: &RepoPath) {
    input.extend_from_slice(format!("{mode:o} {id}\t").as_bytes());
    input.extend_from_slice(path.as_bytes());
    input.push(0);
}

/// Marks entries of an index skip-worktree.
pub(crate) fn mark_skip_worktree<'p>(
    tree: &WorktreeContext<'_>,
    index: &Path,
    paths: impl Iterator<Item = &'p RepoPath>,
) -> Result<(), Error> {
    let nul_paths = nul_separated(paths);
    if nul_paths.is_empty() {
        return Ok(());
    }
    let call = tree.repo.git_in(tree.dir).args(index_flags::KEEP_FLAGS_CONFIG);
    let call = call.args(["update-index", "--skip-worktree", "-z", "--stdin"]);
    call.use_index(index).input(nul_paths).mutating().run().map(drop)
}

/// Returns the entries of a sparse checkout's index that are marked skip-worktree although their file exists.
pub(crate) fn find_present_skipped(tree: &WorktreeContext<'_>, index: &Path) -> Result<Vec<RepoPath>, Error> {
    if !index_flags::has_sparse_patterns_file(&tree.git_dir) {
        return Ok(Vec::new());
    }
    let skipped: Vec<RepoPath> = if let Some(entries) = FileEntries::read(tree, index, &[]) {
        entries.0.into_iter().filter(|e| e.is_skip_worktree).map(|e| e.path).collect()
    } else {
        let flagged = index_flags::flagged_entries_in(tree.repo, tree.dir, index)?;
        flagged.into_iter().filter(|f| f.skip_worktree).map(|f| f.path).collect()
    };
    let mut presence = PresenceCheck::new(tree.dir);
    Ok(skipped.into_iter().filter(|path| presence.exists(path)).collect())
}

/// Returns, for each folder with files that a sparse checkout leaves out, the deepest existing folder above
/// these files.
pub(crate) fn folders_above_absent_files(tree: &WorktreeContext<'_>) -> Result<BTreeSet<RepoPath>, Error> {
    if !index_flags::has_sparse_patterns_file(&tree.git_dir) {
        return Ok(BTreeSet::new());
    }
    let flagged = index_flags::flagged_entries(tree.repo, tree.dir, &tree.git_dir)?;
    let is_folder =
        |folder: &RepoPath| folder.to_fs_path(tree.dir).symlink_metadata().is_ok_and(|meta| meta.is_dir());
    // In index order, files of one folder are adjacent.
    let (mut last_parent, mut folders) = (None, BTreeSet::new());
    for file in flagged.iter().filter(|f| f.skip_worktree) {
        let parent = file.path.parents().last();
        if parent != last_parent {
            folders.extend(file.path.parents().take_while(is_folder).last());
            last_parent = parent;
        }
    }
    Ok(folders)
}

/// Returns paths on disk that occupy the place of a skip-worktree entry which the patterns include, or of a
/// folder above it. git would overwrite such paths on the next switch to a commit. A returned folder may
/// contain no files. Empty if the checkout is not sparse.
pub(crate) fn skipped_obstructions(tree: &WorktreeContext<'_>) -> Result<BTreeSet<RepoPath>, Error> {
    if !index_flags::has_sparse_patterns_file(&tree.git_dir) {
        return Ok(BTreeSet::new());
    }
    let flagged = index_flags::flagged_entries(tree.repo, tree.dir, &tree.git_dir)?;
    let obstruction_of = |path: &RepoPath| {
        let is_folder = || path.to_fs_path(tree.dir).symlink_metadata().is_ok_and(|meta| meta.is_dir());
        obstruction_above(tree.dir, path).or_else(|| is_folder().then(|| path.clone()))
    };
    let skipped = flagged.iter().filter(|f| f.skip_worktree);
    let obstructions: Vec<(&RepoPath, RepoPath)> =
        skipped.filter_map(|f| Some((&f.path, obstruction_of(&f.path)?))).collect();
    if obstructions.is_empty() {
        return Ok(BTreeSet::new());
    }
    let Some(patterns) = SparsePatterns::load_for_tree(tree)? else { return Ok(BTreeSet::new()) };
    Ok(obstructions
        .into_iter()
        .filter(|(path, _)| !patterns.excludes(path))
        .map(|(_, obstruction)| obstruction)
        .collect())
}

/// Returns whether entries of a sparse checkout's index deviate from its patterns. They are left out although
/// the patterns include them, or present although the patterns exclude them. git would correct that on the
/// next switch to a commit. Returns true also if gitoxide cannot read the index.
pub fn deviates_from_patterns(tree: &WorktreeContext<'_>) -> Result<bool, Error> {
    let Some(patterns) = SparsePatterns::load_for_tree(tree)? else { return Ok(false) };
    let Some(index) = FileEntries::read(tree, &tree.git_dir.join("index"), &[]) else { return Ok(true) };
    let mut presence = PresenceCheck::new(tree.dir);
    let deviates = |entry: &FileEntry| {
        let is_left_out = entry.is_skip_worktree && !presence.exists(&entry.path);
        is_left_out != patterns.excludes(&entry.path)
    };
    Ok(index.0.iter().any(deviates))
}

/// Returns the files of HEAD, unchanged in the index, that a sparse checkout shows or leaves out against its
/// patterns. `present_skipped` are those that exist although their entry is marked skip-worktree. A left-out
/// file is reported as removed. The result depends only on the index, not on later changes of files.
pub(crate) fn pattern_exceptions(
    tree: &WorktreeContext<'_>,
    present_skipped: &[RepoPath],
    is_in_head: impl Fn(&RepoPath) -> bool,
) -> Result<Vec<TreeChange>, Error> {
    let Some(patterns) = SparsePatterns::load_for_tree(tree)? else { return Ok(Vec::new()) };
    let Some(index) = FileEntries::read(tree, &tree.git_dir.join("index"), present_skipped) else {
        return Ok(Vec::new());
    };
    let present: HashSet<&RepoPath> = present_skipped.iter().collect();
    let exception = |entry: FileEntry| {
        let is_left_out = entry.is_skip_worktree && !present.contains(&entry.path);
        if is_left_out == patterns.excludes(&entry.path) || !is_in_head(&entry.path) {
            return None;
        }
        let new = (!is_left_out).then_some(entry.side);
        Some(TreeChange { path: entry.path, old: Some(entry.side), new })
    };
    Ok(index.0.into_iter().filter_map(exception).collect())
}

/// Returns the files that a sparse checkout with this index had, with mode and id from the index.
/// `present_skipped` are those that existed although their entry is marked skip-worktree. Empty if the
/// checkout is not sparse.
pub(crate) fn present_files(
    tree: &WorktreeContext<'_>,
    index: &Path,
    present_skipped: &[RepoPath],
) -> Vec<(RepoPath, TreeFile)> {
    if !index_flags::has_sparse_patterns_file(&tree.git_dir) {
        return Vec::new();
    }
    let Some(entries) = FileEntries::read(tree, index, present_skipped) else { return Vec::new() };
    let present: HashSet<&RepoPath> = present_skipped.iter().collect();
    let existing =
        entries.0.into_iter().filter(|entry| !entry.is_skip_worktree || present.contains(&entry.path));
    existing.map(|entry| (entry.path, entry.side)).collect()
}

/// Changes on disk that a restore makes besides the snapshot's own changes. They make the files of a sparse
/// checkout agree with the restored index.
#[derive(Default)]
pub(crate) struct SparseAdjustments {
    /// Unchanged files of HEAD that the snapshot's checkout left out.
    pub removed: Vec<TreeChange>,
    /// Files to write to disk: the snapshot's checkout had them, and the current one leaves them out.
    pub added: Vec<(RepoPath, TreeFile)>,
}

impl SparseAdjustments {
    /// Compares the index of a snapshot with that of the worktree. `present_skipped` are files that the
    /// snapshot's checkout had although their entry was marked skip-worktree. `is_in_snapshot` tests for
    /// paths that the snapshot itself restores. `is_parked` tests for paths that a killed process has parked.
    pub fn compare(
        tree: &WorktreeContext<'_>,
        raw_index: &Path,
        present_skipped: &[RepoPath],
        is_in_snapshot: impl Fn(&RepoPath) -> bool,
        is_parked: impl Fn(&RepoPath) -> bool,
    ) -> SparseAdjustments {
        if !index_flags::has_sparse_patterns_file(&tree.git_dir) {
            return SparseAdjustments::default();
        }
        let Some(saved) = FileEntries::read(tree, raw_index, present_skipped) else {
            return SparseAdjustments::default();
        };
        let present: HashSet<&RepoPath> = present_skipped.iter().collect();
        let is_left_out = |entry: &FileEntry| entry.is_skip_worktree && !present.contains(&entry.path);
        let saved_paths: Vec<RepoPath> =
            saved.0.iter().filter(|entry| !is_left_out(entry)).map(|entry| entry.path.clone()).collect();
        let current_entries = FileEntries::read(tree, &tree.git_dir.join("index"), &saved_paths);
        let Some(current) = current_entries else { return SparseAdjustments::default() };
        let mut presence = PresenceCheck::new(tree.dir);
        let leaving = saved.0.iter().filter(|entry| is_left_out(entry) && !is_in_snapshot(&entry.path));
        let leaving = leaving.filter(|entry| presence.exists(&entry.path) || is_parked(&entry.path));
        let leaving =
            leaving.map(|entry| TreeChange { path: entry.path.clone(), old: Some(entry.side), new: None });
        let leaving = leaving.collect();
        let saved_set: HashSet<&RepoPath> = saved_paths.iter().collect();
        let mut later_presence = PresenceCheck::new(tree.dir);
        let arriving =
            current.0.into_iter().filter(|entry| entry.is_skip_worktree && saved_set.contains(&entry.path));
        let arriving =
            arriving.filter(|entry| !is_in_snapshot(&entry.path) && !later_presence.exists(&entry.path));
        SparseAdjustments {
            removed: leaving,
            added: arriving.map(|entry| (entry.path, entry.side)).collect(),
        }
    }
}

/// File entries of an index, without submodules, unmerged paths and unexpanded sparse folders.
struct FileEntries(Vec<FileEntry>);

/// Index entry of a file, with whether it is marked skip-worktree.
struct FileEntry {
    path: RepoPath,
    side: TreeFile,
    is_skip_worktree: bool,
}

impl FileEntries {
    /// Reads an index file; `None` if gitoxide cannot. A sparse directory entry is expanded if its folder
    /// exists, or is above one of `needed`, which must be in index order.
    fn read(tree: &WorktreeContext<'_>, file: &Path, needed: &[RepoPath]) -> Option<FileEntries> {
        let options = gix::index::decode::Options::default();
        let index = gix::index::File::at(file, tree.repo.gix.object_hash(), true, options).ok()?;
        let mut entries = Vec::new();
        for entry in index.entries() {
            let path = RepoPath::new(entry.path(&index).to_vec());
            if entry.mode.is_submodule() || entry.stage() != Stage::Unconflicted {
                continue;
            }
            if !entry.mode.is_sparse() {
                let side = TreeFile { mode: entry.mode.bits(), oid: Oid(entry.id) };
                let is_skipped = entry.flags.contains(Flags::SKIP_WORKTREE);
                entries.push(FileEntry { path, side, is_skip_worktree: is_skipped });
                continue;
            }
            let position = needed.partition_point(|needed| needed.as_bytes() < path.as_bytes());
            let is_above =
                needed.get(position).is_some_and(|next| next.as_bytes().starts_with(path.as_bytes()));
            let folder = RepoPath::new(path.as_bytes().strip_suffix(b"/").unwrap_or(path.as_bytes()));
            if is_above || folder.to_fs_path(tree.dir).symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
                let tree_files = tree_diff::tree_files(tree.repo, TreeId(entry.id), &BTreeSet::new()).ok()?;
                let folder_files = tree_files.into_iter().filter(|(_, side)| !side.is_gitlink());
                entries.extend(folder_files.map(|(name, side)| FileEntry {
                    path: folder.join(name.as_bytes()),
                    side,
                    is_skip_worktree: true,
                }));
            }
        }
        Some(FileEntries(entries))
    }
}

/// Check whether many paths, given in index order, exist on disk. A missing folder is checked only once.
struct PresenceCheck<'a> {
    dir: &'a Path,
    /// Path of the last missing folder, with a trailing slash; empty if none was found yet.
    missing_prefix: Vec<u8>,
}

impl<'a> PresenceCheck<'a> {
    fn new(dir: &'a Path) -> PresenceCheck<'a> {
        PresenceCheck { dir, missing_prefix: Vec::new() }
    }

    fn exists(&mut self, path: &RepoPath) -> bool {
        if !self.missing_prefix.is_empty() && path.as_bytes().starts_with(&self.missing_prefix) {
            return false;
        }
        if exists_in_real_folder(self.dir, path) {
            return true;
        }
        let is_folder = |folder: &RepoPath| {
            folder.to_fs_path(self.dir).symlink_metadata().is_ok_and(|meta| meta.is_dir())
        };
        if let Some(parent) = path.parents().find(|up| !is_folder(up)) {
            self.missing_prefix = parent.join(b"").as_bytes().to_vec();
        }
        false
    }
}
