//! Owns trees in which a few paths were given something else, made without a checkout.

use std::collections::BTreeMap;

use gix::bstr::ByteSlice;
use gix::objs::tree::{Entry, EntryKind};
use gix::objs::{Blob, Tree};

use super::trees::Item;
use super::{Error, Oid, Repo, RepoPath};

/// What one path of a tree is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Graft {
    /// A file gets this content; one that is new may be read by all and is no program.
    Content(RepoPath, Vec<u8>),
    /// A file or folder gets another name, also in another folder.
    Rename(RepoPath, RepoPath),
}

impl Repo {
    /// The content of a file in a tree; none where there is no file, but perhaps something else.
    ///
    /// # Errors
    /// When an object is missing or broken.
    pub(crate) fn file_in(&self, tree: Oid, path: &RepoPath) -> Result<Option<Vec<u8>>, Error> {
        match self.item_in(tree.0, path)?.filter(|item| item.mode.is_blob()) {
            Some(item) => self.blob(Oid(item.id)).map(Some),
            None => Ok(None),
        }
    }

    /// Whether a tree has anything of this name.
    ///
    /// # Errors
    /// When an object is missing or broken.
    pub(crate) fn is_in(&self, tree: Oid, path: &RepoPath) -> Result<bool, Error> {
        Ok(self.item_in(tree.0, path)?.is_some())
    }

    /// Whether a folder of this name is in a tree, or could be: nothing else has its name, or that of one above it.
    ///
    /// # Errors
    /// When an object is missing or broken.
    pub(crate) fn is_folder_or_free(&self, tree: Oid, path: &RepoPath) -> Result<bool, Error> {
        // From the top, the path itself last.
        let mut above: Vec<RepoPath> = path.parents().chain([path.clone()]).collect();
        above.sort_by_key(|path| path.as_bytes().len());
        for path in above {
            match self.item_in(tree.0, &path)? {
                None => return Ok(true),
                Some(item) if item.mode.is_tree() => {}
                Some(_) => return Ok(false),
            }
        }
        Ok(true)
    }

    /// A tree with these changes, one after the other, written for good. A folder in which nothing is left is left out, as git
    /// has none.
    ///
    /// # Errors
    /// When an object is missing or broken, or cannot be written.
    pub(crate) fn grafted(&self, tree: Oid, grafts: &[Graft]) -> Result<Oid, Error> {
        let mut top = tree.0;
        for graft in grafts {
            top = match graft {
                Graft::Content(path, bytes) => {
                    let mode = match self.item_in(top, path)? {
                        Some(old) if old.mode.is_blob() => old.mode,
                        _ => EntryKind::Blob.into(),
                    };
                    let id = self.write_durably(&Blob { data: bytes.clone() })?.0;
                    self.set(top, path, Some(Item { mode, id }))?
                }
                Graft::Rename(from, to) => {
                    let Some(item) = self.item_in(top, from)? else { continue };
                    let without = self.set(top, from, None)?;
                    self.set(without, to, Some(item))?
                }
            };
        }
        Ok(Oid(top))
    }

    /// What a tree has at a path, which may be in folders; none where there is nothing.
    pub(super) fn item_in(&self, tree: gix::ObjectId, path: &RepoPath) -> Result<Option<Item>, Error> {
        let reader = self.reader();
        let mut tree = tree;
        let mut names = path.as_bytes().split_str("/").peekable();
        while let Some(name) = names.next() {
            match reader.tree(tree)?.get(name) {
                Some(item) if names.peek().is_none() => return Ok(Some(item)),
                Some(item) if item.is_tree() => tree = item.id,
                _ => return Ok(None),
            }
        }
        Ok(None)
    }

    fn set(&self, tree: gix::ObjectId, path: &RepoPath, item: Option<Item>) -> Result<gix::ObjectId, Error> {
        self.planted(Some(tree), &BTreeMap::from([(path, item)]))
    }

    /// A tree in which each of these paths has what is given for it, or nothing, written for good; without a tree to begin with,
    /// one of nothing else. None of the paths lies below another one. A folder in which nothing is left is left out.
    ///
    /// # Errors
    /// When an object is missing or broken, or cannot be written.
    pub(super) fn planted(
        &self,
        tree: Option<gix::ObjectId>,
        items: &BTreeMap<&RepoPath, Option<Item>>,
    ) -> Result<gix::ObjectId, Error> {
        let items: Vec<(&[u8], Option<Item>)> =
            items.iter().map(|(path, item)| (path.as_bytes(), *item)).collect();
        let made = self.planted_below(tree, &items)?;
        made.map_or_else(|| self.write_durably(&Tree::empty()).map(|id| id.0), Ok)
    }

    /// The folder with that changed; none when nothing is left in it. Items of one folder follow each other.
    fn planted_below(
        &self,
        tree: Option<gix::ObjectId>,
        items: &[(&[u8], Option<Item>)],
    ) -> Result<Option<gix::ObjectId>, Error> {
        let before = tree.map(|tree| self.reader().tree(tree)).transpose()?;
        let mut now: BTreeMap<&[u8], Item> = before
            .iter()
            .flat_map(|items| items.iter())
            .map(|(name, item)| (name.as_bytes(), item))
            .collect();
        let folder = |path: &[u8]| path.find_byte(b'/');
        for group in items.chunk_by(|a, b| {
            let (a, b) = (a.0, b.0);
            folder(a).is_some()
                && folder(a) == folder(b)
                && a[..folder(a).unwrap_or(0)] == b[..folder(b).unwrap_or(0)]
        }) {
            let Some((path, item)) = group.first().copied() else { continue };
            let (name, new) = match folder(path) {
                None => (path, item),
                Some(end) => {
                    let inner = now.get(&path[..end]).filter(|old| old.is_tree()).map(|old| old.id);
                    let below: Vec<(&[u8], Option<Item>)> =
                        group.iter().map(|(path, item)| (&path[end + 1..], *item)).collect();
                    let made = self.planted_below(inner, &below)?;
                    (&path[..end], made.map(|id| Item { mode: EntryKind::Tree.into(), id }))
                }
            };
            match new {
                Some(item) => now.insert(name, item),
                None => now.remove(name),
            };
        }
        let entry =
            |(name, item): (&[u8], Item)| Entry { mode: item.mode, filename: name.into(), oid: item.id };
        let mut entries: Vec<Entry> = now.into_iter().map(entry).collect();
        if entries.is_empty() {
            return Ok(None);
        }
        entries.sort();
        self.write_durably(&Tree { entries }).map(|id| Some(id.0))
    }
}
