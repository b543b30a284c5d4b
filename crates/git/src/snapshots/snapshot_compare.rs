//! Comparison of snapshots: whether two hold the same content, and whether one holds content that others
//! lack.

use std::collections::{BTreeMap, BTreeSet};

use super::snapshot::Snapshot;
use crate::history::tree_diff::{TreeFile, tree_changes, tree_files};
use crate::{Error, Repo, RepoPath, TreeId};

/// File by path; none for a deleted file.
type FilesByPath = BTreeMap<RepoPath, Option<TreeFile>>;

/// Function that reads one kind of a snapshot's files: tracked, staged, untracked or ignored.
type FilesReader<'a> = &'a dyn Fn(&Snapshot) -> Result<FilesByPath, Error>;

impl Snapshot {
    /// Returns whether two snapshots hold the same content, apart from empty folders.
    pub fn has_same_content(&self, other: &Snapshot) -> bool {
        let trees = |s: &Snapshot| (s.head_commit, s.index_tree, s.work_tree, s.untracked_tree, s.stages);
        trees(self) == trees(other)
            && self.intent_to_add == other.intent_to_add
            && self.ignored == other.ignored
    }

    /// Returns this snapshot with the commit of `other`, which holds the same content.
    pub fn with_id_of_equal(self, other: &Snapshot) -> Snapshot {
        Snapshot { commit: other.commit, ..self }
    }

    /// Returns whether `current` has exactly the content that results from restoring this snapshot by a
    /// merge. `merged_tree` is the merge of its tracked files with the new HEAD. An untracked file counts as
    /// a change of a tracked file if the new HEAD has its path and a sparse checkout leaves that out.
    pub fn matches_merge(&self, repo: &Repo, merged_tree: TreeId, current: &Snapshot) -> Result<bool, Error> {
        if self.untracked_tree == current.untracked_tree && merged_tree == current.work_tree {
            return Ok(true);
        }
        let mut own_untracked = untracked_files(repo, self)?;
        let base_files: FilesByPath =
            tree_files(repo, merged_tree, &own_untracked.keys().cloned().collect())?
                .into_iter()
                .map(|(path, side)| (path, Some(side)))
                .collect();
        let mut overriding: FilesByPath = own_untracked.clone();
        own_untracked.retain(|path, _| !base_files.contains_key(path));
        overriding.retain(|path, side| base_files.get(path).is_some_and(|base_side| base_side != side));
        let changes = tree_changes(repo, merged_tree, current.work_tree)?;
        let changes: FilesByPath = changes.into_iter().map(|c| (c.path, c.new)).collect();
        Ok(own_untracked == untracked_files(repo, current)? && overriding == changes)
    }

    /// Returns the paths of this snapshot's changes, staged or not, that no snapshot in `others` contains in
    /// the same form.
    pub fn paths_not_in_others(&self, repo: &Repo, others: &[Snapshot]) -> Result<Vec<RepoPath>, Error> {
        let tracked = |s: &Snapshot| changed_files(repo, s, s.work_tree);
        let staged = |s: &Snapshot| changed_files(repo, s, s.index_tree);
        let untracked = |s: &Snapshot| untracked_files(repo, s);
        let ignored = |s: &Snapshot| {
            Ok(s.ignored
                .iter()
                .map(|file| (file.path.clone(), Some(file.to_tree_file())))
                .collect::<FilesByPath>())
        };
        let readers: [FilesReader<'_>; 4] = [&tracked, &staged, &untracked, &ignored];
        let mut unique_paths = BTreeSet::new();
        for read_files in readers {
            let mut files = read_files(self)?;
            for other in others {
                let other_files = read_files(other)?;
                files.retain(|path, side| other_files.get(path) != Some(side));
            }
            unique_paths.extend(files.into_keys());
        }
        Ok(unique_paths.into_iter().collect())
    }
}

/// Returns the paths at which `tree` differs from the snapshot's base, each with its file in `tree`.
fn changed_files(repo: &Repo, snapshot: &Snapshot, tree: TreeId) -> Result<FilesByPath, Error> {
    Ok(tree_changes(repo, snapshot.head_commit, tree)?.into_iter().map(|c| (c.path, c.new)).collect())
}

fn untracked_files(repo: &Repo, snapshot: &Snapshot) -> Result<FilesByPath, Error> {
    let Some(tree) = snapshot.untracked_tree else { return Ok(FilesByPath::new()) };
    let files = tree_files(repo, tree, &BTreeSet::new())?;
    Ok(files.into_iter().map(|(path, side)| (path, Some(side))).collect())
}
