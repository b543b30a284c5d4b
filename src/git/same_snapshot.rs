//! Owns comparing snapshots: whether two hold the same, and whether one holds anything that others do not.

use std::collections::{BTreeMap, BTreeSet};

use super::{Error, Oid, Repo, RepoPath, Side, Snapshot, tree_changes, tree_files};

/// Paths and what they are; none for a file that was deleted.
type Files = BTreeMap<RepoPath, Option<Side>>;

/// A way to read a part of what a snapshot holds.
type Part<'a> = &'a dyn Fn(&Snapshot) -> Result<Files, Error>;

impl Snapshot {
    /// Whether it holds what another one does, empty folders aside.
    pub(crate) fn holds_what(&self, other: &Snapshot) -> bool {
        let trees = |s: &Snapshot| (s.base, s.index_tree, s.work_tree, s.untracked_tree, s.stages);
        trees(self) == trees(other)
            && self.intent_to_add == other.intent_to_add
            && self.ignored == other.ignored
    }

    /// This one with the commit of another one that holds the same.
    pub(crate) fn named(self, other: &Snapshot) -> Snapshot {
        Snapshot { commit: other.commit, ..self }
    }

    /// Whether `there` is what this one has become where the merge of its tracked files is `merged`: each untracked file whose path the
    /// base has got since, left out of a sparse checkout, is a change of that file.
    pub(crate) fn has_become(&self, repo: &Repo, merged: Oid, there: &Snapshot) -> Result<bool, Error> {
        if self.untracked_tree == there.untracked_tree && merged == there.work_tree {
            return Ok(true);
        }
        let mut own = untracked(repo, self)?;
        let base: Files = tree_files(repo, merged, &own.keys().cloned().collect())?
            .into_iter()
            .map(|(path, side)| (path, Some(side)))
            .collect();
        let mut over: Files = own.clone();
        own.retain(|path, _| !base.contains_key(path));
        over.retain(|path, side| base.get(path).is_some_and(|of_base| of_base != side));
        let changes = tree_changes(repo, merged, there.work_tree)?;
        let changes: Files = changes.into_iter().map(|c| (c.path, c.new)).collect();
        Ok(own == untracked(repo, there)? && over == changes)
    }

    /// The files that it has otherwise than HEAD, staged or not, and that are so in none of `others`.
    pub(crate) fn added_to(&self, repo: &Repo, others: &[Snapshot]) -> Result<Vec<RepoPath>, Error> {
        let tracked = |s: &Snapshot| changed(repo, s, s.work_tree);
        let staged = |s: &Snapshot| changed(repo, s, s.index_tree);
        let untracked = |s: &Snapshot| untracked(repo, s);
        let ignored = |s: &Snapshot| {
            Ok(s.ignored.iter().map(|file| (file.path.clone(), Some(file.side()))).collect::<Files>())
        };
        let parts: [Part<'_>; 4] = [&tracked, &staged, &untracked, &ignored];
        let mut added = BTreeSet::new();
        for part in parts {
            let mut own = part(self)?;
            for other in others {
                let known = part(other)?;
                own.retain(|path, side| known.get(path) != Some(side));
            }
            added.extend(own.into_keys());
        }
        Ok(added.into_iter().collect())
    }
}

fn changed(repo: &Repo, snapshot: &Snapshot, tree: Oid) -> Result<Files, Error> {
    Ok(tree_changes(repo, snapshot.base, tree)?.into_iter().map(|c| (c.path, c.new)).collect())
}

fn untracked(repo: &Repo, snapshot: &Snapshot) -> Result<Files, Error> {
    let Some(tree) = snapshot.untracked_tree else { return Ok(Files::new()) };
    let files = tree_files(repo, tree, &BTreeSet::new())?;
    Ok(files.into_iter().map(|(path, side)| (path, Some(side))).collect())
}
