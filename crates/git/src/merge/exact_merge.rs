//! Exact in-process merge of three trees where no path needs a decision: the same tree that git would write,
//! or no result.
//!
//! The trees are walked in lockstep, and only folders that differ on all three sides are entered. There is a
//! result if each path changed on one side only, or equally on both. Git decides every case in which it might
//! detect a rename or merge contents:
//! - a path that changed on both sides, or changed on one and was removed on the other
//! - a path removed on both sides, also inside folders that are equal
//! - a folder that was removed on one side and changed on the other
//! - a name that is a file on one side and a folder on the other
//! - an empty result

use std::rc::Rc;

use gix::bstr::BStr;
use gix::objs::Tree;
use gix::objs::tree::Entry;

use crate::repository::tree_reader::{TreeItem, TreeItems, TreeJoin, TreeReader};
use crate::{CommitId, Error, Repo, TreeId};

/// Result of a walk over three trees that stopped at a path which its merger cannot decide.
pub(crate) struct Undecided;

/// Result of a merge walk: the outer `Result` fails when an object cannot be read, the inner one when a path
/// needs a decision.
type MergeWalkResult<T> = Result<Result<T, Undecided>, Error>;

/// Handler that a walk over three trees calls for each path that both sides changed differently, and for each
/// merged folder.
pub(crate) trait TreeMerger {
    /// Whether the entries of merged folders are collected.
    const COLLECTS_ENTRIES: bool;

    /// Returns the reader of trees.
    fn reader(&self) -> &TreeReader;

    /// Merges a path that is not a folder on any side and that each side changed differently; `None` when
    /// this cannot be decided here. `path` is the full path.
    fn merge_changed_path(
        &mut self,
        path: &[u8],
        base: Option<TreeItem>,
        ours: TreeItem,
        theirs: TreeItem,
    ) -> Result<Option<TreeItem>, Error>;

    /// Adds the entries of a merged folder, sorted by name, and returns the folder's id. `entries` is empty
    /// unless they are collected.
    fn add_merged_tree(&mut self, entries: Vec<Entry>) -> Result<gix::ObjectId, Error>;
}

/// Walk over three trees in progress.
struct MergeWalk<'m, M> {
    merger: &'m mut M,
    /// Path of the current folder, with a trailing `/`.
    folder: Vec<u8>,
}

/// Walks three trees in lockstep and returns the merged tree; `None` when it is empty.
pub(crate) fn walk_trees(
    merger: &mut impl TreeMerger,
    base: gix::ObjectId,
    ours: gix::ObjectId,
    theirs: gix::ObjectId,
) -> MergeWalkResult<Option<gix::ObjectId>> {
    MergeWalk { merger, folder: Vec::new() }.merge_folder(Some(base), ours, theirs)
}

/// Merger that decides no path and collects all merged trees.
struct ExactMerger<'a> {
    repo: &'a Repo,
    /// Merged trees that may be new, each after the trees it references.
    new_trees: Vec<Tree>,
}

/// Result of a merge without decisions: the tree and its subtrees that are not in the repository yet.
#[derive(Debug, Clone)]
pub struct ExactMerge {
    /// Id of the merged tree.
    pub id: TreeId,
    /// Trees to write, each after the trees it references.
    new_trees: Vec<Tree>,
}

impl ExactMerge {
    /// Writes the new trees durably.
    pub fn write(&self, repo: &Repo) -> Result<TreeId, Error> {
        for tree in &self.new_trees {
            repo.write_durably(tree)?;
        }
        Ok(self.id)
    }
}

/// Merges the changes of two commits since their merge base, without writing. `None` when a path needs a
/// decision, when there is not exactly one merge base, or where git sees another history than the objects
/// record.
///
/// # Errors
/// Fails when an object cannot be read.
pub fn merge_commits(repo: &Repo, ours: CommitId, theirs: CommitId) -> Result<Option<ExactMerge>, Error> {
    if repo.has_altered_history()? {
        return Ok(None);
    }
    let describe_object = || format!("history of {}", theirs.short());
    let bases = repo.gix.merge_bases_many(ours.0, &[theirs.0]).map_err(Error::object(describe_object()))?;
    let [base] = bases[..] else { return Ok(None) };
    let tree = |commit: CommitId| repo.tree_of(commit);
    merge_trees(repo, tree(CommitId(base.detach()))?, tree(ours)?, tree(theirs)?)
}

/// Merges the changes of `ours` and `theirs` since `base`, all three trees, without writing. `None` when a
/// path needs a decision.
///
/// # Errors
/// Fails when a tree cannot be read.
pub fn merge_trees(
    repo: &Repo,
    base: TreeId,
    ours: TreeId,
    theirs: TreeId,
) -> Result<Option<ExactMerge>, Error> {
    let mut merger = ExactMerger { repo, new_trees: Vec::new() };
    let merged = walk_trees(&mut merger, base.0, ours.0, theirs.0)?;
    Ok(merged.ok().flatten().map(|id| ExactMerge { id: TreeId(id), new_trees: merger.new_trees }))
}

impl<M: TreeMerger> MergeWalk<'_, M> {
    /// Merges one folder; the result is `None` when nothing is left in it.
    fn merge_folder(
        &mut self,
        base: Option<gix::ObjectId>,
        ours: gix::ObjectId,
        theirs: gix::ObjectId,
    ) -> MergeWalkResult<Option<gix::ObjectId>> {
        let reader = self.merger.reader();
        let base = base.map_or_else(|| Ok(Rc::new(TreeItems::default())), |id| reader.tree(id))?;
        let (ours, theirs) = (reader.tree(ours)?, reader.tree(theirs)?);
        let (mut entries, mut is_empty) = (Vec::new(), true);
        for (name, [b, o, t]) in TreeJoin::new(&base, &ours, &theirs) {
            match self.merge_item(name, b, o, t)? {
                Ok(None) => {}
                Ok(Some(item)) => {
                    is_empty = false;
                    if M::COLLECTS_ENTRIES {
                        entries.push(Entry { mode: item.mode, filename: name.to_owned(), oid: item.id });
                    }
                }
                Err(Undecided) => return Ok(Err(Undecided)),
            }
        }
        if is_empty {
            return Ok(Ok(None));
        }
        self.merger.add_merged_tree(entries).map(|id| Ok(Some(id)))
    }

    fn merge_item(
        &mut self,
        name: &BStr,
        base: Option<TreeItem>,
        ours: Option<TreeItem>,
        theirs: Option<TreeItem>,
    ) -> MergeWalkResult<Option<TreeItem>> {
        if ours == theirs {
            return Ok(if self.has_removal(base, ours)? { Err(Undecided) } else { Ok(ours) });
        }
        if ours == base {
            return Ok(Ok(theirs));
        }
        if theirs == base {
            return Ok(Ok(ours));
        }
        let (Some(ours), Some(theirs)) = (ours, theirs) else { return Ok(Err(Undecided)) };
        let sides = || [ours, theirs].into_iter().chain(base);
        if !sides().any(TreeItem::is_tree) {
            let path: Vec<u8> = self.folder.iter().chain(name.iter()).copied().collect();
            return Ok(self.merger.merge_changed_path(&path, base, ours, theirs)?.map(Some).ok_or(Undecided));
        }
        if !sides().all(TreeItem::is_tree) {
            return Ok(Err(Undecided));
        }
        let parent_len = self.folder.len();
        self.folder.extend_from_slice(name);
        self.folder.push(b'/');
        let merged = self.merge_folder(base.map(|b| b.id), ours.id, theirs.id)?;
        self.folder.truncate(parent_len);
        Ok(merged.map(|id| id.map(|id| TreeItem { mode: ours.mode, id })))
    }

    /// Returns whether both sides of an item that they have alike lack a path that `base` has, at or below
    /// the item. Such a path may have been renamed.
    fn has_removal(&self, base: Option<TreeItem>, both: Option<TreeItem>) -> Result<bool, Error> {
        let Some(base) = base.filter(|b| Some(*b) != both) else { return Ok(false) };
        let Some(both) = both.filter(|now| now.is_tree() == base.is_tree()) else { return Ok(true) };
        if !base.is_tree() {
            return Ok(false);
        }
        let reader = self.merger.reader();
        let (before, after) = (reader.tree(base.id)?, reader.tree(both.id)?);
        for (name, item) in before.iter() {
            if self.has_removal(Some(item), after.get(name))? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl TreeMerger for ExactMerger<'_> {
    const COLLECTS_ENTRIES: bool = true;

    fn reader(&self) -> &TreeReader {
        self.repo.tree_reader()
    }

    fn merge_changed_path(
        &mut self,
        _: &[u8],
        _: Option<TreeItem>,
        _: TreeItem,
        _: TreeItem,
    ) -> Result<Option<TreeItem>, Error> {
        Ok(None)
    }

    /// Records a tree that may be new. A tree in a pack is written again, which is harmless.
    fn add_merged_tree(&mut self, mut entries: Vec<Entry>) -> Result<gix::ObjectId, Error> {
        entries.sort();
        let tree = Tree { entries };
        let (id, _) = self.repo.encode_object(&tree)?;
        if !self.repo.has_loose_object(id) {
            self.new_trees.push(tree);
        }
        Ok(id.0)
    }
}
