//! Owns the very bytes of edited files that come back though HEAD has moved: git would write them as its filters make them.

use std::path::{Path, PathBuf};

use super::clear::Held;
use super::file_copy::is_beginning;
use super::path;
use super::quarantine::Quarantine;
use super::renumber::forget_lengths;
use super::transition::Tree;
use super::{Change, Error, RepoPath, Side};
use crate::fault;

/// The name in a step's folder of the list of files that are put in place of what git wrote, and of the folder that they come from.
const AS_EDITED: &str = "as-edited";

/// Edited files that a merge leaves as they were, and that were set aside.
pub(super) struct AsEdited<'a> {
    tree: &'a Tree<'a>,
    aside: &'a Quarantine,
    copies: Quarantine,
}

impl<'a> AsEdited<'a> {
    /// Those in `aside`, which keeps them.
    pub(super) fn of(tree: &'a Tree<'a>, aside: &'a Quarantine) -> Result<AsEdited<'a>, Error> {
        Ok(AsEdited { tree, aside, copies: Quarantine::at(&tree.scratch.join(AS_EDITED))? })
    }

    /// Puts copies of those files that `changes` bring as a snapshot held them in the place of what git wrote for them, where that has
    /// other bytes; `next`, an index, knows nothing of their lengths then.
    pub(super) fn give(&self, held: &Held, changes: &[Change], next: &Path) -> Result<(), Error> {
        let is_unlike = |(path, _): &(RepoPath, Side)| {
            let (there, own) = (path.under(self.tree.dir), self.aside.place(path));
            self.aside.holds(path) && has_same_bytes(&there, &own) == Some(false)
        };
        let edited =
            changes.iter().filter(|c| held.tracked.iter().any(|t| t.path == c.path && t.new == c.new));
        let edited = edited.filter_map(|c| Some((c.path.clone(), c.new?)));
        let files: Vec<(RepoPath, Side)> = edited.filter(is_unlike).collect();
        if files.is_empty() {
            return Ok(());
        }
        let paths: Vec<RepoPath> = files.iter().map(|(path, _)| path.clone()).collect();
        path::note(&self.list(), &paths)?;
        for (path, _) in &files {
            self.copies.copy_of(self.aside, path)?;
            self.copies.give_over(self.tree.dir, path)?;
        }
        fault::point("restore.as-edited");
        forget_lengths(self.tree, next, &files)
    }

    /// Takes those copies away again, so that nobody takes them for edits of what git wrote.
    pub(super) fn take_again(&self) -> Result<(), Error> {
        let files = path::noted(&self.list())?;
        self.copies.remove_drafts(self.tree.dir, files.iter());
        for path in &files {
            let there = path.under(self.tree.dir);
            if has_same_bytes(&there, &self.aside.place(path)) == Some(true) {
                std::fs::remove_file(&there).map_err(Error::io("remove", &there))?;
            }
        }
        Ok(())
    }

    fn list(&self) -> PathBuf {
        self.tree.scratch.join(AS_EDITED).join("list")
    }
}

/// Whether two files have the same bytes; none where one of them is no regular file, or cannot be read.
fn has_same_bytes(one: &Path, other: &Path) -> Option<bool> {
    let (a, b) = (one.symlink_metadata().ok()?, other.symlink_metadata().ok()?);
    if !a.is_file() || !b.is_file() {
        return None;
    }
    if a.len() == b.len() { is_beginning(one, other).ok() } else { Some(false) }
}
