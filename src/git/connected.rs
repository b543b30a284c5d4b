//! Owns the question whether everything that a commit brings is there.

use std::collections::HashSet;

use gix::ObjectId;

use super::trees::Reader;
use super::{Error, Oid, Repo};

/// How many commits are looked at here. For more the time that git takes to start does not count.
const MOST: usize = 500;

impl Repo {
    /// Refuses when an object of `tip` that `base` lacks is not there. `base` is taken to be whole.
    ///
    /// # Errors
    /// What `git rev-list --objects` says of what is missing.
    pub(crate) fn require_connected(&self, tip: Oid, base: Oid) -> Result<(), Error> {
        if self.is_connected(tip, base).unwrap_or(false) {
            return Ok(());
        }
        self.git()
            .args(["rev-list", "--objects", "--quiet"])
            .args([tip.to_string(), "--not".to_owned(), base.to_string()])
            .run()
            .map(drop)
    }

    /// Whether that is certain without git. What a commit has in its tree is in its first parent's, which is whole because it
    /// was looked at or belongs to `base`, or differs from that, and is looked for on the disk. Commits and trees may be in
    /// memory: then they were whole when they were read, or are what was written.
    fn is_connected(&self, tip: Oid, base: Oid) -> Result<bool, Error> {
        let what = || format!("history of {}", tip.short());
        if self.has_made_up_history()? {
            return Ok(false);
        }
        let (reader, mut new) = (self.reader(), HashSet::new());
        let walk = self.gix.rev_walk([tip.0]).with_hidden([base.0]).all().map_err(Error::object(what()))?;
        for (n, step) in walk.enumerate() {
            let step = step.map_err(Error::object(what()))?;
            let Some(parent) = step.parent_ids.first() else { return Ok(false) };
            if n == MOST {
                return Ok(false);
            }
            let (before, after) = (self.tree_of(Oid(*parent))?.0, self.tree_of(Oid(step.id))?.0);
            new.insert(step.id);
            if before != after && new.insert(after) {
                brought(reader, Some(before), after, &mut new)?;
            }
        }
        Ok(new.iter().all(|id| self.gix.has_object(id)))
    }
}

/// Collects what a tree has that another has not in the same place, trees included.
fn brought(
    reader: &Reader,
    before: Option<ObjectId>,
    after: ObjectId,
    new: &mut HashSet<ObjectId>,
) -> Result<(), Error> {
    let before = before.map(|id| reader.tree(id)).transpose()?;
    for (name, item) in reader.tree(after)?.iter() {
        let was = before.as_ref().and_then(|items| items.get(name));
        if was == Some(item) || item.mode.is_commit() {
            continue;
        }
        new.insert(item.id);
        if item.is_tree() {
            brought(reader, was.filter(|was| was.is_tree()).map(|was| was.id), item.id, new)?;
        }
    }
    Ok(())
}
