//! Owns merging three trees where nothing needs a decision, in process: the very tree that git would make, or no answer.
//!
//! The trees are walked in lockstep, and only folders that differ on all three sides are entered. There is an answer as
//! long as each path was changed on one side only, or alike on both. Whatever git might see a rename in, or decide by
//! content, is git's: a path changed on both sides, or changed here and gone there; one that is gone on both, also inside
//! of folders that are alike; a folder that is gone on one side and changed on the other; a name that is a file here and a
//! folder there; nothing left at all.

use std::rc::Rc;

use gix::bstr::BStr;
use gix::objs::Tree;
use gix::objs::tree::Entry;

use super::trees::{Item, Items, Joined, Reader};
use super::{Error, Oid, Repo};

/// A path needs a decision.
pub(super) struct Undecided;

/// The inner result says whether there is an answer, the outer one whether all could be read.
type Walked<T> = Result<Result<T, Undecided>, Error>;

/// What is done with what a walk over three trees finds.
pub(super) trait Merger {
    /// Whether anybody wants to know what merged folders hold.
    const KEEPS: bool;

    /// Where trees are read.
    fn reader(&self) -> &Reader;

    /// What comes of a path that is no folder on any side and that each side changed in its own way; none when that is
    /// not known here. `path` is the whole path.
    fn decide(
        &mut self,
        path: &[u8],
        base: Option<Item>,
        ours: Item,
        theirs: Item,
    ) -> Result<Option<Item>, Error>;

    /// Takes the entries of a merged folder, and names it. In order of their names; none where nobody wants to know.
    fn keep(&mut self, entries: Vec<Entry>) -> Result<gix::ObjectId, Error>;
}

/// The walk over three trees, as far as it has come.
struct Walk<'m, M> {
    merger: &'m mut M,
    /// The folder that the walk is in, with a `/` at its end.
    folder: Vec<u8>,
}

/// Walks three trees in lockstep. The inner result is the merged tree, none when nothing is left in it.
pub(super) fn walk(
    merger: &mut impl Merger,
    base: gix::ObjectId,
    ours: gix::ObjectId,
    theirs: gix::ObjectId,
) -> Walked<Option<gix::ObjectId>> {
    Walk { merger, folder: Vec::new() }.trees(Some(base), ours, theirs)
}

/// Nothing is decided, and all that is merged is kept.
struct Exact<'a> {
    repo: &'a Repo,
    new: Vec<Tree>,
}

/// A merge without decisions: the tree, and those below it that are not in the repository yet.
#[derive(Debug, Clone)]
pub(super) struct ExactTree {
    /// Its id.
    pub(super) id: Oid,
    /// The trees to be written, each after those that it names.
    new: Vec<Tree>,
}

impl ExactTree {
    /// Writes what is new, on disk for good.
    pub(super) fn write(&self, repo: &Repo) -> Result<Oid, Error> {
        for tree in &self.new {
            repo.write_durably(tree)?;
        }
        Ok(self.id)
    }
}

/// Merges what `ours` and `theirs`, two commits, changed since their merge base. None when that needs a decision, when
/// there are several merge bases or none, or where git sees another history than the objects tell. Nothing is written.
///
/// # Errors
/// When an object cannot be read.
pub(super) fn merge_commits(repo: &Repo, ours: Oid, theirs: Oid) -> Result<Option<ExactTree>, Error> {
    if repo.has_made_up_history()? {
        return Ok(None);
    }
    let what = || format!("history of {}", theirs.short());
    let bases = repo.gix.merge_bases_many(ours.0, &[theirs.0]).map_err(Error::object(what()))?;
    let [base] = bases[..] else { return Ok(None) };
    let tree = |commit: Oid| repo.tree_of(commit);
    merge_trees(repo, tree(Oid(base.detach()))?, tree(ours)?, tree(theirs)?)
}

/// Merges what `ours` and `theirs` changed since `base`, all three trees. None when that needs a decision. Nothing is
/// written.
///
/// # Errors
/// When a tree cannot be read.
pub(super) fn merge_trees(
    repo: &Repo,
    base: Oid,
    ours: Oid,
    theirs: Oid,
) -> Result<Option<ExactTree>, Error> {
    let mut exact = Exact { repo, new: Vec::new() };
    let merged = walk(&mut exact, base.0, ours.0, theirs.0)?;
    Ok(merged.ok().flatten().map(|id| ExactTree { id: Oid(id), new: exact.new }))
}

impl<M: Merger> Walk<'_, M> {
    /// The merged tree; none when nothing is left in it.
    fn trees(
        &mut self,
        base: Option<gix::ObjectId>,
        ours: gix::ObjectId,
        theirs: gix::ObjectId,
    ) -> Walked<Option<gix::ObjectId>> {
        let reader = self.merger.reader();
        let base = base.map_or_else(|| Ok(Rc::new(Items::default())), |id| reader.tree(id))?;
        let (ours, theirs) = (reader.tree(ours)?, reader.tree(theirs)?);
        let (mut entries, mut empty) = (Vec::new(), true);
        for (name, [b, o, t]) in Joined::new(&base, &ours, &theirs) {
            match self.item(name, b, o, t)? {
                Ok(None) => {}
                Ok(Some(item)) => {
                    empty = false;
                    if M::KEEPS {
                        entries.push(Entry { mode: item.mode, filename: name.to_owned(), oid: item.id });
                    }
                }
                Err(Undecided) => return Ok(Err(Undecided)),
            }
        }
        if empty {
            return Ok(Ok(None));
        }
        self.merger.keep(entries).map(|id| Ok(Some(id)))
    }

    fn item(
        &mut self,
        name: &BStr,
        base: Option<Item>,
        ours: Option<Item>,
        theirs: Option<Item>,
    ) -> Walked<Option<Item>> {
        if ours == theirs {
            return Ok(if self.loses(base, ours)? { Err(Undecided) } else { Ok(ours) });
        }
        if ours == base {
            return Ok(Ok(theirs));
        }
        if theirs == base {
            return Ok(Ok(ours));
        }
        let (Some(ours), Some(theirs)) = (ours, theirs) else { return Ok(Err(Undecided)) };
        let all = || [ours, theirs].into_iter().chain(base);
        if !all().any(Item::is_tree) {
            let path: Vec<u8> = self.folder.iter().chain(name.iter()).copied().collect();
            return Ok(self.merger.decide(&path, base, ours, theirs)?.map(Some).ok_or(Undecided));
        }
        if !all().all(Item::is_tree) {
            return Ok(Err(Undecided));
        }
        let above = self.folder.len();
        self.folder.extend_from_slice(name);
        self.folder.push(b'/');
        let merged = self.trees(base.map(|b| b.id), ours.id, theirs.id)?;
        self.folder.truncate(above);
        Ok(merged.map(|id| id.map(|id| Item { mode: ours.mode, id })))
    }

    /// Whether something that was at a path is not there any more, the same on both sides: it may have been renamed.
    fn loses(&self, base: Option<Item>, both: Option<Item>) -> Result<bool, Error> {
        let Some(base) = base.filter(|b| Some(*b) != both) else { return Ok(false) };
        let Some(both) = both.filter(|now| now.is_tree() == base.is_tree()) else { return Ok(true) };
        if !base.is_tree() {
            return Ok(false);
        }
        let reader = self.merger.reader();
        let (before, after) = (reader.tree(base.id)?, reader.tree(both.id)?);
        for (name, item) in before.iter() {
            if self.loses(Some(item), after.get(name))? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Merger for Exact<'_> {
    const KEEPS: bool = true;

    fn reader(&self) -> &Reader {
        self.repo.reader()
    }

    fn decide(&mut self, _: &[u8], _: Option<Item>, _: Item, _: Item) -> Result<Option<Item>, Error> {
        Ok(None)
    }

    /// Notes a tree that may be new: one in a pack is written once more, which does no harm.
    fn keep(&mut self, mut entries: Vec<Entry>) -> Result<gix::ObjectId, Error> {
        entries.sort();
        let tree = Tree { entries };
        let (id, _) = self.repo.encode(&tree)?;
        if !self.repo.has_loose(id) {
            self.new.push(tree);
        }
        Ok(id.0)
    }
}
