//! Owns reading trees, entry by entry.

use std::collections::BTreeMap;

use gix::bstr::BString;
use gix::objs::tree::EntryMode;

use super::{Error, Oid, Repo};

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

/// What a tree holds, by name.
pub(super) type Items = BTreeMap<BString, Item>;

/// Reads one tree, without what lies below its folders. Modes that old programs wrote are given the form that git gives
/// them.
///
/// # Errors
/// When it is not there, or cannot be read.
pub(super) fn read(repo: &Repo, id: gix::ObjectId) -> Result<Items, Error> {
    let what = || format!("tree {}", Oid(id).short());
    let found = repo.gix.find_tree(id).map_err(Error::object(what()))?;
    let tree = found.decode().map_err(Error::object(what()))?;
    let item = |mode: EntryMode, id: &gix::oid| Item { mode: mode.kind().into(), id: id.to_owned() };
    Ok(tree.entries.iter().map(|e| (e.filename.to_owned(), item(e.mode, e.oid))).collect())
}
