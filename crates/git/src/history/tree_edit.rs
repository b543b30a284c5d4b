//! Edits of a few paths in a tree object, without a checkout.

use std::collections::BTreeMap;

use gix::bstr::ByteSlice;
use gix::objs::tree::{Entry, EntryKind};
use gix::objs::{Blob, Tree};

use crate::repository::tree_reader::TreeItem;
use crate::{BlobId, Error, Repo, RepoPath, TreeId};

/// Edit of one path in a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TreeEdit {
    /// Sets the content of a file. A new file gets mode 100644.
    Content(RepoPath, Vec<u8>),
    /// Renames a file or folder, also into another folder. Nothing changes if the first path does not exist.
    Rename(RepoPath, RepoPath),
}

impl Repo {
    /// Returns the content of a file in a tree; `None` if the path is absent or not a file.
    ///
    /// # Errors
    /// Fails if an object is missing or corrupt.
    pub fn read_tree_file(&self, tree: TreeId, path: &RepoPath) -> Result<Option<Vec<u8>>, Error> {
        match self.find_tree_item(tree.0, path)?.filter(|item| item.mode.is_blob()) {
            Some(item) => self.blob(BlobId(item.id)).map(Some),
            None => Ok(None),
        }
    }

    /// Returns whether a tree has an item at a path.
    ///
    /// # Errors
    /// Fails if an object is missing or corrupt.
    pub fn tree_has_path(&self, tree: TreeId, path: &RepoPath) -> Result<bool, Error> {
        Ok(self.find_tree_item(tree.0, path)?.is_some())
    }

    /// Returns whether a tree has a folder at a path, or could have one: no file is at the path or above it.
    ///
    /// # Errors
    /// Fails if an object is missing or corrupt.
    pub fn can_hold_folder(&self, tree: TreeId, path: &RepoPath) -> Result<bool, Error> {
        // Sorted from the top, with the path itself last.
        let mut ancestors: Vec<RepoPath> = path.parents().chain([path.clone()]).collect();
        ancestors.sort_by_key(|path| path.as_bytes().len());
        for path in ancestors {
            match self.find_tree_item(tree.0, &path)? {
                None => return Ok(true),
                Some(item) if item.mode.is_tree() => {}
                Some(_) => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Applies edits to a tree in order, and writes the result durably. Empty folders are left out, as git
    /// has none.
    ///
    /// # Errors
    /// Fails if an object is missing or corrupt, or cannot be written.
    pub fn edit_tree(&self, tree: TreeId, edits: &[TreeEdit]) -> Result<TreeId, Error> {
        let mut root = tree.0;
        for edit in edits {
            root = match edit {
                TreeEdit::Content(path, bytes) => {
                    let mode = match self.find_tree_item(root, path)? {
                        Some(old) if old.mode.is_blob() => old.mode,
                        _ => EntryKind::Blob.into(),
                    };
                    let id = self.write_durably(&Blob { data: bytes.clone() })?.0;
                    self.set_tree_item(root, path, Some(TreeItem { mode, id }))?
                }
                TreeEdit::Rename(from, to) => {
                    let Some(item) = self.find_tree_item(root, from)? else { continue };
                    let without = self.set_tree_item(root, from, None)?;
                    self.set_tree_item(without, to, Some(item))?
                }
            };
        }
        Ok(TreeId(root))
    }

    /// Returns the item of a tree at a path, which may lie in folders; `None` if there is none.
    pub(crate) fn find_tree_item(
        &self,
        tree: gix::ObjectId,
        path: &RepoPath,
    ) -> Result<Option<TreeItem>, Error> {
        let reader = self.tree_reader();
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

    fn set_tree_item(
        &self,
        tree: gix::ObjectId,
        path: &RepoPath,
        item: Option<TreeItem>,
    ) -> Result<gix::ObjectId, Error> {
        self.replace_tree_items(Some(tree), &BTreeMap::from([(path, item)]))
    }

    /// Sets or removes the item at each path of a tree, and writes the result durably. Without a tree the
    /// result holds only the given items. None of the paths may lie below another one. Empty folders are left
    /// out.
    ///
    /// # Errors
    /// Fails if an object is missing or corrupt, or cannot be written.
    pub(crate) fn replace_tree_items(
        &self,
        tree: Option<gix::ObjectId>,
        items: &BTreeMap<&RepoPath, Option<TreeItem>>,
    ) -> Result<gix::ObjectId, Error> {
        let items: Vec<(&[u8], Option<TreeItem>)> =
            items.iter().map(|(path, item)| (path.as_bytes(), *item)).collect();
        let new_tree = self.replace_items_below(tree, &items)?;
        new_tree.map_or_else(|| self.write_durably(&Tree::empty()).map(|id| id.0), Ok)
    }

    /// Applies items to one folder; returns `None` if the folder is empty afterwards. Items of one subfolder
    /// must be adjacent.
    fn replace_items_below(
        &self,
        tree: Option<gix::ObjectId>,
        items: &[(&[u8], Option<TreeItem>)],
    ) -> Result<Option<gix::ObjectId>, Error> {
        let old_tree = tree.map(|tree| self.tree_reader().tree(tree)).transpose()?;
        let mut new_items: BTreeMap<&[u8], TreeItem> = old_tree
            .iter()
            .flat_map(|items| items.iter())
            .map(|(name, item)| (name.as_bytes(), item))
            .collect();
        let folder_end = |path: &[u8]| path.find_byte(b'/');
        for group in items.chunk_by(|a, b| {
            let (a, b) = (a.0, b.0);
            folder_end(a).is_some()
                && folder_end(a) == folder_end(b)
                && a[..folder_end(a).unwrap_or(0)] == b[..folder_end(b).unwrap_or(0)]
        }) {
            let Some((path, item)) = group.first().copied() else { continue };
            let (name, new) = match folder_end(path) {
                None => (path, item),
                Some(end) => {
                    let subtree = new_items.get(&path[..end]).filter(|old| old.is_tree()).map(|old| old.id);
                    let subtree_items: Vec<(&[u8], Option<TreeItem>)> =
                        group.iter().map(|(path, item)| (&path[end + 1..], *item)).collect();
                    let new_subtree = self.replace_items_below(subtree, &subtree_items)?;
                    (&path[..end], new_subtree.map(|id| TreeItem { mode: EntryKind::Tree.into(), id }))
                }
            };
            match new {
                Some(item) => new_items.insert(name, item),
                None => new_items.remove(name),
            };
        }
        let entry =
            |(name, item): (&[u8], TreeItem)| Entry { mode: item.mode, filename: name.into(), oid: item.id };
        let mut entries: Vec<Entry> = new_items.into_iter().map(entry).collect();
        if entries.is_empty() {
            return Ok(None);
        }
        entries.sort();
        self.write_durably(&Tree { entries }).map(|id| Some(id.0))
    }
}
