//! Index of a worktree in which a snapshot was restored although HEAD had moved.

use std::collections::HashSet;
use std::path::Path;

use super::snapshot::Snapshot;
use crate::index::index_flags;
use crate::index::index_flags::FlaggedEntry;
use crate::repository::worktree_context::WorktreeContext;
use crate::{Error, RepoPath, TreeId};

/// Writes the tree `staged_tree` to the index file `index_file`. Flags and intent-to-add entries come from
/// the snapshot's `raw_index`, where the file exists or its path is free. Entries of `visible_paths` are
/// marked skip-worktree only if the snapshot had their file in spite of that mark.
pub(crate) fn write_restored_index(
    tree: &WorktreeContext<'_>,
    snapshot: &Snapshot,
    (index_file, staged_tree): (&Path, TreeId),
    raw_index: &Path,
    visible_paths: &HashSet<&RepoPath>,
) -> Result<(), Error> {
    let repo = tree.repo;
    let git_command = || repo.git_in(tree.dir).use_index(index_file);
    git_command().args(["read-tree", "-i", "-m"]).arg(staged_tree.to_string()).mutating().run()?;
    index_flags::add_intent_to_add_entries(repo, index_file, raw_index, &snapshot.intent_to_add)?;
    let mut flagged = index_flags::flagged_entries_in(repo, tree.dir, raw_index)?;
    if !flagged.is_empty() && index_flags::is_sparse_active(repo, tree.dir, &tree.git_dir)? {
        // The sparse patterns decide which entries are skipped.
        for entry in &mut flagged {
            entry.skip_worktree = false;
        }
    }
    let newly_skipped =
        index_flags::flagged_entries_in(repo, tree.dir, index_file)?.into_iter().filter(|f| f.skip_worktree);
    let newly_skipped: Vec<RepoPath> =
        newly_skipped.map(|f| f.path).filter(|path| visible_paths.contains(path)).collect();
    index_flags::clear_flags(repo, tree.dir, index_file, &newly_skipped)?;
    let present_skipped = snapshot.present_skipped.iter().filter(|path| visible_paths.contains(path));
    flagged.extend(present_skipped.map(|path| FlaggedEntry {
        path: path.clone(),
        assume_unchanged: false,
        skip_worktree: true,
    }));
    index_flags::restore_flags(repo, tree.dir, index_file, &flagged)?;
    index_flags::refresh_stat_data(repo, tree.dir, index_file)
}
