//! In-process checkout from one commit to another where no local change is in the way: the same files and
//! index as `git read-tree -m -u` would produce.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use gix::index::entry::Stat;
use gix::index::extension::Tree as Cached;

use super::quarantine::{Quarantine, matches_blob};
use crate::base::folders::{has_real_parents, remove_empty_parents};
use crate::history::tree_diff::{TreeChange, TreeFile};
use crate::index::cached_tree::update_cached_tree;
use crate::index::entry_stat::index_stat;
use crate::index::index_lock::NewIndex;
use crate::index::no_conversion::needs_no_conversion;
use crate::index::raw_index;
use crate::index::raw_index::RawIndex;
use crate::index::raw_index::edit::IndexEdit;
use crate::index::scratch_index::file_system_time;
use crate::repository::attributes::attribute_paths_for;
use crate::repository::worktree_context::WorktreeContext;
use crate::{Error, Oid, Repo, RepoPath};

/// Writes the files of `changes` and turns the worktree's `index` into the one of commit `to`. Returns
/// `None`, with nothing done, when only git can do it. The index must match the worktree's commit and each of
/// these files must match the index. Existing files must have a hard link in `linked_files`.
///
/// # Errors
/// Fails when a file cannot be written or removed, or was replaced in the meantime; some files may have been
/// written by then.
pub(crate) fn checkout_changes(
    tree: &WorktreeContext<'_>,
    linked_files: &Quarantine,
    index: &Path,
    changes: &[TreeChange],
    to: Oid,
) -> Result<Option<NewIndex>, Error> {
    // On a file system without hard links, `links` holds copies, which cannot identify the file.
    let is_expected = |change: &TreeChange| match change.old {
        Some(_) => linked_files.is_same_file(tree.dir, &change.path),
        // An empty folder may be in the way, which git removes.
        None => change.path.to_fs_path(tree.dir).symlink_metadata().is_err(),
    };
    if !changes.iter().all(is_expected) || !needs_no_conversion(tree, changes) {
        return Ok(None);
    }
    let Some(planned_index) = PlannedIndex::plan(tree.repo, index, changes, to)? else { return Ok(None) };
    for change in changes.iter().filter(|change| change.new.is_none()) {
        remove_linked_file(tree, linked_files, &change.path)?;
    }
    // Prune before writing, so that new files can take the names of emptied folders, as git does.
    for change in changes.iter().filter(|change| change.new.is_none()) {
        remove_empty_parents(tree.dir, &change.path);
    }
    for change in changes {
        let Some(side) = change.new else { continue };
        if change.old.is_some() {
            remove_linked_file(tree, linked_files, &change.path)?;
        }
        write_new_file(tree, &change.path, side)?;
    }
    planned_index.finish(tree, changes).map(Some)
}

/// Removes a file if it is the one linked in `links`.
fn remove_linked_file(tree: &WorktreeContext<'_>, links: &Quarantine, path: &RepoPath) -> Result<(), Error> {
    let file = path.to_fs_path(tree.dir);
    if !links.is_same_file(tree.dir, path) && file.symlink_metadata().is_ok() {
        return Err(Error::Raced { dir: tree.dir.to_owned(), raced_paths: vec![path.clone()] });
    }
    match std::fs::remove_file(&file) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(Error::io("remove", &file)(e)),
        _ => Ok(()),
    }
}

/// Writes a file where none exists.
pub(crate) fn write_new_file(
    tree: &WorktreeContext<'_>,
    path: &RepoPath,
    side: TreeFile,
) -> Result<(), Error> {
    let file = path.to_fs_path(tree.dir);
    let content = tree.repo.blob(side.blob())?;
    let mode = if is_executable(side) { 0o777 } else { 0o666 };
    let parent = file.parent().unwrap_or(tree.dir);
    if !has_real_parents(tree.dir, path) {
        return Err(Error::io("create", parent)(std::io::ErrorKind::NotADirectory.into()));
    }
    std::fs::create_dir_all(parent).map_err(Error::io("create", parent))?;
    // Another process may have created the file; it must not be overwritten.
    let created = OpenOptions::new().write(true).create_new(true).mode(mode).open(&file);
    let mut created = created.map_err(Error::io("write", &file))?;
    created.write_all(&content).map_err(|e| {
        // A partly written file would pass for a file of the user's.
        let metadata_pair = created.metadata().ok().zip(file.symlink_metadata().ok());
        if metadata_pair
            .is_some_and(|(opened, current)| (opened.dev(), opened.ino()) == (current.dev(), current.ino()))
        {
            drop(std::fs::remove_file(&file));
        }
        Error::io("write", &file)(e)
    })
}

/// Returns whether the file has git's mode for executables.
fn is_executable(side: TreeFile) -> bool {
    side.mode & 0o100 != 0
}

/// Maximum number of files that are read again because they may have changed in the second the index was
/// written. Beyond that, git is faster.
const MAX_RACY_ENTRIES: usize = 256;

/// New index in preparation: the old index, whose entries of the checked-out files are replaced at the end.
struct PlannedIndex {
    /// Index before the checkout. The entries of changed files are replaced when the plan is finished.
    old_index: RawIndex,
    /// Byte offsets of entries whose files may have changed after they were recorded, in the same second.
    racy_offsets: Vec<u32>,
    /// Cached-tree extension of the new index.
    cached_trees: Cached,
}

impl PlannedIndex {
    /// Plans the new index from the one in `index_file`. `None` when that index has unsupported content or
    /// too many racy entries, does not match `changes`, or has attributes that may convert the files.
    fn plan(
        repo: &Repo,
        index_file: &Path,
        changes: &[TreeChange],
        to: Oid,
    ) -> Result<Option<PlannedIndex>, Error> {
        let entries = RawIndex::read(index_file, repo.gix.object_hash());
        let Some(entries) = entries.filter(|all| all.is_rewritable() && all.has_checksum()) else {
            return Ok(None);
        };
        let matches_index = |change: &TreeChange| match (entries.find(change.path.as_bytes()), change.old) {
            (Some(entry), Some(side)) => {
                entry.is_compared_by_git() && entry.mode() == side.mode && entry.id() == side.oid.0.as_slice()
            }
            (entry, side) => entry.is_none() && side.is_none(),
        };
        let racy: Vec<u32> = entries.racy_entry_offsets().take(MAX_RACY_ENTRIES + 1).collect();
        let attributes = attribute_paths_for(changes.iter().map(|change| &change.path));
        if !changes.iter().all(matches_index)
            || racy.len() > MAX_RACY_ENTRIES
            || !entries.has_no_conversion_rules(repo, &attributes)
        {
            return Ok(None);
        }
        let Some(mut cached_trees) = entries.cached_trees() else { return Ok(None) };
        update_cached_tree(repo.tree_reader(), &mut cached_trees, repo.tree_of(to)?.0)?;
        let removed = changes.iter().filter(|c| c.new.is_none()).count();
        let added = changes.iter().filter(|c| c.old.is_none()).count();
        let expected_count = u32::try_from(entries.entry_offsets().len() + added - removed).ok();
        Ok((cached_trees.num_entries == expected_count).then_some(PlannedIndex {
            old_index: entries,
            racy_offsets: racy,
            cached_trees,
        }))
    }

    /// Replaces the entries of the files that were checked out, and returns the new index.
    fn finish(mut self, tree: &WorktreeContext<'_>, changes: &[TreeChange]) -> Result<NewIndex, Error> {
        // Git treats a file that is checked out and edited in one clock tick as just as young as an index of
        // that time, and reads it again.
        let time = file_system_time(tree.scratch)?;
        self.invalidate_racy_entries(tree);
        let record_of =
            |change: &TreeChange| change.new.map(|side| new_index_fields(tree, &change.path, side));
        let mut edits: Vec<IndexEdit<'_>> =
            changes.iter().map(|change| IndexEdit { path: &change.path, new: record_of(change) }).collect();
        edits.sort_by_key(|edit| edit.path);
        Ok(NewIndex::InMemory(self.old_index.with_edits(&edits, &self.cached_trees)?, time))
    }

    /// Invalidates the entries of edited files that are as young as the old index: a younger index would
    /// report those files as unchanged. As in git, such an entry gets a length that matches no file.
    fn invalidate_racy_entries(&mut self, tree: &WorktreeContext<'_>) {
        for position in std::mem::take(&mut self.racy_offsets) {
            let entry = self.old_index.entry(position);
            let Ok(id) = gix::ObjectId::try_from(entry.id()) else { continue };
            let side = TreeFile { mode: entry.mode(), oid: Oid(id) };
            let file = RepoPath::new(entry.path()).to_fs_path(tree.dir);
            if !side.is_gitlink() && !matches_blob(tree.repo, &file, side) {
                self.old_index.clear_file_size(position);
            }
        }
    }
}

/// Returns stat data, mode and blob id for the new index entry of a file that was checked out. The size is 0
/// if the file has been changed or removed since, so that git reads it again.
fn new_index_fields(
    tree: &WorktreeContext<'_>,
    path: &RepoPath,
    side: TreeFile,
) -> (Stat, u32, gix::ObjectId) {
    let file = path.to_fs_path(tree.dir);
    let mut stat = rustix::fs::lstat(&file).map(|meta| index_stat(&meta)).unwrap_or_default();
    if !matches_blob(tree.repo, &file, side) {
        stat.size = 0;
    }
    (stat, if is_executable(side) { raw_index::EXECUTABLE_MODE } else { raw_index::FILE_MODE }, side.oid.0)
}

#[cfg(test)]
mod tests;
