//! Owns reading trees, entry by entry, each decoded once.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;
use std::rc::Rc;

use gix::bstr::BStr;
use gix::objs::Kind;
use gix::objs::tree::EntryMode;
use gix::prelude::FindExt;

use super::{Error, Oid, loose};

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
pub(super) struct Items {
    /// All names, one after the other: a tree may have very many.
    names: Vec<u8>,
    all: Vec<(Range<usize>, Item)>,
}

impl Items {
    /// The entry of this name.
    pub(super) fn get(&self, name: &[u8]) -> Option<Item> {
        let at = self.all.binary_search_by(|(range, _)| self.names[range.clone()].cmp(name)).ok()?;
        Some(self.all[at].1)
    }

    /// All entries, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&BStr, Item)> {
        (0..self.all.len()).filter_map(|at| self.at(at))
    }

    fn at(&self, at: usize) -> Option<(&BStr, Item)> {
        let (range, item) = self.all.get(at)?;
        Some((BStr::new(&self.names[range.clone()]), *item))
    }

    /// Takes the entries of a tree, in git's order.
    fn of(tree: &gix::objs::TreeRef<'_>) -> Items {
        let (mut names, mut all) = (Vec::new(), Vec::with_capacity(tree.entries.len()));
        for entry in &tree.entries {
            let from = names.len();
            names.extend_from_slice(entry.filename);
            all.push((from..names.len(), Item { mode: entry.mode.kind().into(), id: entry.oid.to_owned() }));
        }
        let name = |(range, _): &(Range<usize>, Item)| &names[range.clone()];
        all.sort_by(|a, b| name(a).cmp(name(b)));
        // Only a broken tree has a name twice; the last one counts.
        all.dedup_by(|later, kept| {
            name(later) == name(kept) && {
                std::mem::swap(later, kept);
                true
            }
        });
        Items { names, all }
    }
}

/// Each name in one of three trees, with what each of them has there.
pub(super) struct Joined<'a>([(&'a Items, usize); 3]);

impl<'a> Joined<'a> {
    /// Reads the three side by side.
    pub(super) fn new(base: &'a Items, ours: &'a Items, theirs: &'a Items) -> Joined<'a> {
        Joined([(base, 0), (ours, 0), (theirs, 0)])
    }
}

impl<'a> Iterator for Joined<'a> {
    type Item = (&'a BStr, [Option<Item>; 3]);

    fn next(&mut self) -> Option<Self::Item> {
        let firsts = self.0.map(|(items, at)| items.at(at));
        let name = firsts.iter().flatten().map(|(name, _)| *name).min()?;
        let mut found = [None; 3];
        for ((first, side), found) in firsts.into_iter().zip(&mut self.0).zip(&mut found) {
            *found = first.filter(|(its, _)| *its == name).map(|(_, item)| item);
            side.1 += usize::from(found.is_some());
        }
        Some((name, found))
    }
}

/// Reads trees and files. One belongs to one thread; what it reads from can be shared.
pub(super) struct Reader {
    objects: gix::OdbHandle,
    /// The folder with objects in files of their own; none where git sees others in their place.
    loose: Option<PathBuf>,
    trees: RefCell<HashMap<gix::ObjectId, Rc<Items>>>,
    /// The trees of commits.
    commits: RefCell<HashMap<Oid, gix::ObjectId>>,
}

impl Reader {
    /// Reads from some place for objects.
    pub(super) fn of(objects: gix::OdbHandle) -> Reader {
        let store = objects.store_ref();
        let loose = store.replacements().next().is_none().then(|| store.path().to_owned());
        Reader { objects, loose, trees: RefCell::default(), commits: RefCell::default() }
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
        let bytes = self.object(Oid(id), Kind::Tree, what)?;
        let tree = gix::objs::TreeRef::from_bytes(&bytes, id.kind()).map_err(Error::object(what()))?;
        let items = Rc::new(Items::of(&tree));
        let mut trees = self.trees.borrow_mut();
        if trees.len() >= KEPT {
            trees.clear();
        }
        trees.insert(id, Rc::clone(&items));
        Ok(items)
    }

    /// The tree of a commit.
    pub(super) fn tree_of(&self, commit: Oid) -> Result<gix::ObjectId, Error> {
        if let Some(known) = self.commits.borrow().get(&commit) {
            return Ok(*known);
        }
        let what = || format!("commit {}", commit.short());
        let bytes = self.object(commit, Kind::Commit, what)?;
        let found = gix::objs::CommitRefIter::from_bytes(&bytes, commit.0.kind()).tree_id();
        let tree = found.map_err(Error::object(what()))?;
        let mut commits = self.commits.borrow_mut();
        if commits.len() >= KEPT {
            commits.clear();
        }
        commits.insert(commit, tree);
        Ok(tree)
    }

    /// The size of a file, read no further than needed.
    pub(super) fn size(&self, id: gix::ObjectId) -> Result<u64, Error> {
        let what = || format!("file {}", Oid(id).short());
        Ok(gix::prelude::HeaderExt::header(&self.objects, id).map_err(Error::object(what()))?.size())
    }

    /// The content of a file.
    pub(super) fn blob(&self, id: gix::ObjectId) -> Result<Vec<u8>, Error> {
        self.object(Oid(id), Kind::Blob, || format!("file {}", Oid(id).short()))
    }

    /// The content of a file that is no longer than `most`; none when it is longer.
    pub(super) fn small_blob(&self, id: gix::ObjectId, most: u64) -> Result<Option<Vec<u8>>, Error> {
        let short = |bytes: &Vec<u8>| bytes.len() as u64 <= most;
        if let Some(bytes) = self.loose(Oid(id), Kind::Blob) {
            return Ok(Some(bytes).filter(short));
        }
        if self.size(id)? > most { Ok(None) } else { self.blob(id).map(Some) }
    }

    fn object(&self, id: Oid, kind: Kind, what: impl Fn() -> String) -> Result<Vec<u8>, Error> {
        if let Some(bytes) = self.loose(id, kind) {
            return Ok(bytes);
        }
        let mut bytes = Vec::new();
        let found = match kind {
            Kind::Tree => self.objects.find_tree(&id.0, &mut bytes).map(drop),
            Kind::Commit => self.objects.find_commit(&id.0, &mut bytes).map(drop),
            Kind::Blob | Kind::Tag => self.objects.find_blob(&id.0, &mut bytes).map(drop),
        };
        found.map_err(Error::object(what()))?;
        Ok(bytes)
    }

    fn loose(&self, id: Oid, kind: Kind) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let found = loose::read(self.loose.as_ref()?, id, &mut bytes);
        (found == Some(kind)).then_some(bytes)
    }
}
