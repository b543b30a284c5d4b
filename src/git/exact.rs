//! Owns merging three trees where nothing needs a decision, in process: the very tree that git would make, or no answer.
//!
//! The trees are walked in lockstep, and only folders that differ on all three sides are entered. There is an answer as
//! long as each path was changed on one side only, or alike on both. Whatever git might see a rename in, or decide by
//! content, is git's: a path changed on both sides, or changed here and gone there; one that is gone on both, also inside
//! of folders that are alike; a folder that is gone on one side and changed on the other; a name that is a file here and a
//! folder there; nothing left at all.

use gix::bstr::BString;
use gix::objs::tree::Entry;
use gix::objs::{Tree, WriteTo};

use super::trees::{Item, Items, read};
use super::{Error, Oid, Repo};

/// A path needs a decision.
struct Undecided;

/// The inner result says whether there is an answer, the outer one whether all could be read.
type Walked<T> = Result<Result<T, Undecided>, Error>;

/// The merge of three trees as far as it has come.
struct Walk<'a> {
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
    let mut walk = Walk { repo, new: Vec::new() };
    let merged = walk.trees(Some(base.0), ours.0, theirs.0)?;
    Ok(merged.ok().flatten().map(|id| ExactTree { id: Oid(id), new: walk.new }))
}

impl Walk<'_> {
    /// The merged tree; none when nothing is left in it.
    fn trees(
        &mut self,
        base: Option<gix::ObjectId>,
        ours: gix::ObjectId,
        theirs: gix::ObjectId,
    ) -> Walked<Option<gix::ObjectId>> {
        let base = base.map_or_else(|| Ok(Items::new()), |id| read(self.repo, id))?;
        let (ours, theirs) = (read(self.repo, ours)?, read(self.repo, theirs)?);
        let mut names: Vec<&BString> = base.keys().chain(ours.keys()).chain(theirs.keys()).collect();
        names.sort_unstable();
        names.dedup();
        let mut entries = Vec::new();
        for name in names {
            let [b, o, t] = [&base, &ours, &theirs].map(|items| items.get(name).copied());
            match self.item(b, o, t)? {
                Ok(None) => {}
                Ok(Some(item)) => {
                    entries.push(Entry { mode: item.mode, filename: name.clone(), oid: item.id });
                }
                Err(Undecided) => return Ok(Err(Undecided)),
            }
        }
        if entries.is_empty() {
            return Ok(Ok(None));
        }
        entries.sort();
        self.keep(Tree { entries }).map(|id| Ok(Some(id)))
    }

    fn item(&mut self, base: Option<Item>, ours: Option<Item>, theirs: Option<Item>) -> Walked<Option<Item>> {
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
        if ![ours, theirs].into_iter().chain(base).all(Item::is_tree) {
            return Ok(Err(Undecided));
        }
        let merged = self.trees(base.map(|b| b.id), ours.id, theirs.id)?;
        Ok(merged.map(|id| id.map(|id| Item { mode: ours.mode, id })))
    }

    /// Whether something that was at a path is not there any more, the same on both sides: it may have been renamed.
    fn loses(&self, base: Option<Item>, both: Option<Item>) -> Result<bool, Error> {
        let Some(base) = base.filter(|b| Some(*b) != both) else { return Ok(false) };
        let Some(both) = both.filter(|now| now.is_tree() == base.is_tree()) else { return Ok(true) };
        if !base.is_tree() {
            return Ok(false);
        }
        let (before, after) = (read(self.repo, base.id)?, read(self.repo, both.id)?);
        for (name, item) in before {
            if self.loses(Some(item), after.get(&name).copied())? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Notes a tree that may be new.
    fn keep(&mut self, tree: Tree) -> Result<gix::ObjectId, Error> {
        let what = "a merged tree";
        let mut bytes = Vec::new();
        tree.write_to(&mut bytes).map_err(Error::object(what))?;
        let id = gix::objs::compute_hash(self.repo.gix.object_hash(), gix::objs::Kind::Tree, &bytes);
        let id = id.map_err(Error::object(what))?;
        if !self.repo.has_object(Oid(id)) {
            self.new.push(tree);
        }
        Ok(id)
    }
}
