//! Owns the question whether everything that a commit brings is there.

use super::diff::compare;
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
    /// was looked at or belongs to `base`, or differs from that, and is looked for.
    fn is_connected(&self, tip: Oid, base: Oid) -> Result<bool, Error> {
        let what = || format!("history of {}", tip.short());
        if self.has_made_up_history()? {
            return Ok(false);
        }
        let walk = self.gix.rev_walk([tip.0]).with_hidden([base.0]).all().map_err(Error::object(what()))?;
        for (n, step) in walk.enumerate() {
            let step = step.map_err(Error::object(what()))?;
            let Some(parent) = step.parent_ids.first() else { return Ok(false) };
            if n == MOST {
                return Ok(false);
            }
            // Reading the trees shows that they are there.
            for change in compare(self, Oid(*parent), Oid(step.id))? {
                let there = |side: super::Side| side.is_gitlink() || self.gix.has_object(side.oid.0);
                if !change.new.is_none_or(there) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}
