//! Owns reading trees, entry by entry, each decoded once.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use gix::bstr::{BStr, BString};
use gix::objs::tree::EntryMode;
use gix::prelude::FindExt;

use super::{Error, Oid};

/// How many decoded trees one reader keeps. Many merges in one repository share most of theirs.
const KEPT: usize = 20_000;

/// An entry of a tree, without its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Item {
    /// What it is: a folder, a file, a link, a submodule.
    pub(super) mode: EntryMode,
    /// The object.
    pub(super) id: gix::ObjectId,
}

impl Item {
    /// Whether it is a folder.
    pub(super) fn is_tree(self) -> bool {
        self.mode.is_tree()
    }
}

/// What a tree holds, by name. The order is that of the bytes of the names, which is not git's: there a folder counts as if
/// its name ended in `/`.
#[derive(Debug, Default)]
pub(super) struct Items(Vec<(BString, Item)>);

impl Items {
    /// The entry of this name.
    pub(super) fn get(&self, name: &[u8]) -> Option<Item> {
        let at = self.0.binary_search_by(|(n, _)| n.as_slice().cmp(name)).ok()?;
        Some(self.0[at].1)
    }

    /// All entries, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&BStr, Item)> {
        self.0.iter().map(|(name, item)| (name.as_ref(), *item))
    }
}

/// Each name in one of three trees, with what each of them has there.
pub(super) struct Joined<'a>([&'a [(BString, Item)]; 3]);

impl<'a> Joined<'a> {
    /// Reads the three side by side.
    pub(super) fn new(base: &'a Items, ours: &'a Items, theirs: &'a Items) -> Joined<'a> {
        Joined([&base.0, &ours.0, &theirs.0])
    }
}

impl<'a> Iterator for Joined<'a> {
    type Item = (&'a BString, [Option<Item>; 3]);

    fn next(&mut self) -> Option<Self::Item> {
        let name = self.0.iter().filter_map(|rest| rest.first()).map(|(name, _)| name).min()?;
        let items = self.0.each_mut().map(|rest| match rest.split_first() {
            Some(((first, item), more)) if first == name => {
                *rest = more;
                Some(*item)
            }
            _ => None,
        });
        Some((name, items))
    }
}

/// Reads trees and files. One belongs to one thread; what it reads from can be shared.
pub(super) struct Reader {
    objects: gix::OdbHandle,
    trees: RefCell<HashMap<gix::ObjectId, Rc<Items>>>,
}

impl Reader {
    /// Reads from some place for objects.
    pub(super) fn of(objects: gix::OdbHandle) -> Reader {
        Reader { objects, trees: RefCell::default() }
    }

    /// Reads one tree, without what lies below its folders. Modes that old programs wrote are given the form that git gives
    /// them.
    ///
    /// # Errors
    /// When it is not there, or cannot be read.
    pub(super) fn tree(&self, id: gix::ObjectId) -> Result<Rc<Items>, Error> {
        if let Some(known) = self.trees.borrow().get(&id) {
            return Ok(Rc::clone(known));
        }
        let what = || format!("tree {}", Oid(id).short());
        let mut bytes = Vec::new();
        let tree = self.objects.find_tree(&id, &mut bytes).map_err(Error::object(what()))?;
        let item = |mode: EntryMode, id: &gix::oid| Item { mode: mode.kind().into(), id: id.to_owned() };
        let mut items: Vec<(BString, Item)> =
            tree.entries.iter().map(|e| (e.filename.to_owned(), item(e.mode, e.oid))).collect();
        items.sort_by(|a, b| a.0.cmp(&b.0));
        // Only a broken tree has a name twice; the last one counts.
        items.dedup_by(|later, kept| {
            later.0 == kept.0 && {
                std::mem::swap(later, kept);
                true
            }
        });
        let items = Rc::new(Items(items));
        let mut trees = self.trees.borrow_mut();
        if trees.len() >= KEPT {
            trees.clear();
        }
        trees.insert(id, Rc::clone(&items));
        Ok(items)
    }

    /// The tree of a commit.
    pub(super) fn tree_of(&self, commit: Oid) -> Result<gix::ObjectId, Error> {
        let what = || format!("commit {}", commit.short());
        let mut bytes = Vec::new();
        let found = self.objects.find_commit(&commit.0, &mut bytes).map_err(Error::object(what()))?;
        Ok(found.tree())
    }

    /// The size of a file, read no further than needed.
    pub(super) fn size(&self, id: gix::ObjectId) -> Result<u64, Error> {
        let what = || format!("file {}", Oid(id).short());
        Ok(gix::prelude::HeaderExt::header(&self.objects, id).map_err(Error::object(what()))?.size())
    }

    /// The content of a file.
    pub(super) fn blob(&self, id: gix::ObjectId) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        let what = || format!("file {}", Oid(id).short());
        self.objects.find_blob(&id, &mut bytes).map_err(Error::object(what()))?;
        Ok(bytes)
    }
}
