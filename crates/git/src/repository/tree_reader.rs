//! Reader of trees, entry by entry; each tree is decoded once.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;
use std::rc::Rc;

use gix::bstr::BStr;
use gix::objs::Kind;
use gix::objs::tree::EntryMode;
use gix::prelude::FindExt;

use super::loose_objects;
use crate::{Error, Oid};

/// Maximum number of decoded trees that one reader caches. Many merges in one repository share most of their
/// trees.
const MAX_CACHED_TREES: usize = 20_000;

/// Entry of a tree, without its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TreeItem {
    /// Mode of the entry: folder, file, link or submodule.
    pub mode: EntryMode,
    /// Id of the object.
    pub id: gix::ObjectId,
}

impl TreeItem {
    /// Returns whether the entry is a folder.
    pub(crate) fn is_tree(self) -> bool {
        self.mode.is_tree()
    }
}

/// Entries of a tree, by name. They are ordered by the bytes of the names. git's order differs: there a
/// folder sorts as if its name ended in `/`.
#[derive(Debug, Default)]
pub(crate) struct TreeItems {
    /// All names, concatenated, since a tree may have very many.
    names: Vec<u8>,
    /// Range of each entry's name in `names`, with the entry, ordered by name.
    items: Vec<(Range<usize>, TreeItem)>,
}

impl TreeItems {
    /// Returns the entry with this name.
    pub fn get(&self, name: &[u8]) -> Option<TreeItem> {
        let at = self.items.binary_search_by(|(range, _)| self.names[range.clone()].cmp(name)).ok()?;
        Some(self.items[at].1)
    }

    /// Returns all entries, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&BStr, TreeItem)> {
        (0..self.items.len()).filter_map(|at| self.nth_item(at))
    }

    /// Returns the name and entry at a position in the order of names; `None` behind the last one.
    fn nth_item(&self, at: usize) -> Option<(&BStr, TreeItem)> {
        let (range, item) = self.items.get(at)?;
        Some((BStr::new(&self.names[range.clone()]), *item))
    }

    /// Copies the entries of a decoded tree, and sorts them by the bytes of their names.
    fn from_tree(tree: &gix::objs::TreeRef<'_>) -> TreeItems {
        let (mut names, mut items) = (Vec::new(), Vec::with_capacity(tree.entries.len()));
        for entry in &tree.entries {
            let start = names.len();
            names.extend_from_slice(entry.filename);
            items.push((
                start..names.len(),
                TreeItem { mode: entry.mode.kind().into(), id: entry.oid.to_owned() },
            ));
        }
        let name = |(range, _): &(Range<usize>, TreeItem)| &names[range.clone()];
        items.sort_by(|a, b| name(a).cmp(name(b)));
        // Only a corrupt tree has a name twice; the last one counts.
        items.dedup_by(|later, kept| {
            name(later) == name(kept) && {
                std::mem::swap(later, kept);
                true
            }
        });
        TreeItems { names, items }
    }
}

/// Iterator over all names in three trees, with the entry that each tree has for the name.
pub(crate) struct TreeJoin<'a>([(&'a TreeItems, usize); 3]);

impl<'a> TreeJoin<'a> {
    /// Creates an iterator over three trees in parallel.
    pub fn new(base: &'a TreeItems, ours: &'a TreeItems, theirs: &'a TreeItems) -> TreeJoin<'a> {
        TreeJoin([(base, 0), (ours, 0), (theirs, 0)])
    }
}

impl<'a> Iterator for TreeJoin<'a> {
    type Item = (&'a BStr, [Option<TreeItem>; 3]);

    fn next(&mut self) -> Option<Self::Item> {
        let next_items = self.0.map(|(items, at)| items.nth_item(at));
        let name = next_items.iter().flatten().map(|(name, _)| *name).min()?;
        let mut sides = [None; 3];
        for ((next_item, side), slot) in next_items.into_iter().zip(&mut self.0).zip(&mut sides) {
            *slot = next_item.filter(|(item_name, _)| *item_name == name).map(|(_, item)| item);
            side.1 += usize::from(slot.is_some());
        }
        Some((name, sides))
    }
}

/// Reader of trees and files. A reader belongs to one thread; its object store can be shared.
pub(crate) struct TreeReader {
    objects: gix::OdbHandle,
    /// Folder of loose objects; none if the repository has replacement objects.
    loose_dir: Option<PathBuf>,
    cached_trees: RefCell<HashMap<gix::ObjectId, Rc<TreeItems>>>,
    /// Cached trees of commits.
    trees_by_commit: RefCell<HashMap<Oid, gix::ObjectId>>,
}

impl TreeReader {
    /// Creates a reader of an object store.
    pub fn new(objects: gix::OdbHandle) -> TreeReader {
        let store = objects.store_ref();
        let loose_dir = store.replacements().next().is_none().then(|| store.path().to_owned());
        TreeReader {
            objects,
            loose_dir,
            cached_trees: RefCell::default(),
            trees_by_commit: RefCell::default(),
        }
    }

    /// Reads one tree, without the trees below it. Nonstandard modes that old programs wrote are normalized
    /// as git does.
    ///
    /// # Errors
    /// Fails if the tree is missing or cannot be read.
    pub fn tree(&self, id: gix::ObjectId) -> Result<Rc<TreeItems>, Error> {
        if let Some(cached) = self.cached_trees.borrow().get(&id) {
            return Ok(Rc::clone(cached));
        }
        let label = || format!("tree {}", Oid(id).short());
        let bytes = self.read_object(Oid(id), Kind::Tree, label)?;
        let tree = gix::objs::TreeRef::from_bytes(&bytes, id.kind()).map_err(Error::object(label()))?;
        let items = Rc::new(TreeItems::from_tree(&tree));
        let mut trees = self.cached_trees.borrow_mut();
        if trees.len() >= MAX_CACHED_TREES {
            trees.clear();
        }
        trees.insert(id, Rc::clone(&items));
        Ok(items)
    }

    /// Returns the tree of a commit. Fails for the id of any other object.
    pub fn tree_of(&self, commit: impl Into<Oid>) -> Result<gix::ObjectId, Error> {
        let commit = commit.into();
        if let Some(cached) = self.trees_by_commit.borrow().get(&commit) {
            return Ok(*cached);
        }
        let label = || format!("commit {}", commit.short());
        let bytes = self.read_object(commit, Kind::Commit, label)?;
        let found = gix::objs::CommitRefIter::from_bytes(&bytes, commit.0.kind()).tree_id();
        let tree = found.map_err(Error::object(label()))?;
        let mut commits = self.trees_by_commit.borrow_mut();
        if commits.len() >= MAX_CACHED_TREES {
            commits.clear();
        }
        commits.insert(commit, tree);
        Ok(tree)
    }

    /// Returns the size in bytes of a blob, without reading its content where possible.
    pub fn size(&self, id: gix::ObjectId) -> Result<u64, Error> {
        let label = || format!("file {}", Oid(id).short());
        Ok(gix::prelude::HeaderExt::header(&self.objects, id).map_err(Error::object(label()))?.size())
    }

    /// Returns the content of a file.
    pub fn blob(&self, id: gix::ObjectId) -> Result<Vec<u8>, Error> {
        self.read_object(Oid(id), Kind::Blob, || format!("file {}", Oid(id).short()))
    }

    /// Returns the content of a file; none when it is longer than `max_len` bytes.
    pub fn small_blob(&self, id: gix::ObjectId, max_len: u64) -> Result<Option<Vec<u8>>, Error> {
        let fits = |bytes: &Vec<u8>| bytes.len() as u64 <= max_len;
        if let Some(bytes) = self.read_loose(Oid(id), Kind::Blob) {
            return Ok(Some(bytes).filter(fits));
        }
        if self.size(id)? > max_len { Ok(None) } else { self.blob(id).map(Some) }
    }

    fn read_object(&self, id: Oid, kind: Kind, label: impl Fn() -> String) -> Result<Vec<u8>, Error> {
        if let Some(bytes) = self.read_loose(id, kind) {
            return Ok(bytes);
        }
        let mut bytes = Vec::new();
        let found = match kind {
            Kind::Tree => self.objects.find_tree(&id.0, &mut bytes).map(drop),
            Kind::Commit => self.objects.find_commit(&id.0, &mut bytes).map(drop),
            Kind::Blob | Kind::Tag => self.objects.find_blob(&id.0, &mut bytes).map(drop),
        };
        found.map_err(Error::object(label()))?;
        Ok(bytes)
    }

    fn read_loose(&self, id: Oid, kind: Kind) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let found = loose_objects::read_small_object(self.loose_dir.as_ref()?, id, &mut bytes);
        (found == Some(kind)).then_some(bytes)
    }
}
