//! Connectivity check: whether all objects that a commit adds exist.

use std::collections::HashSet;

use gix::ObjectId;

use crate::repository::tree_reader::TreeReader;
use crate::{CommitId, Error, Repo};

/// Maximum number of commits checked in process. For more, git's start-up time does not matter.
const MAX_COMMITS_CHECKED: usize = 500;

impl Repo {
    /// Fails when an object of `tip` that `base` lacks is missing. `base` is assumed to be complete.
    ///
    /// # Errors
    /// Fails with the message of `git rev-list --objects` about the missing object.
    pub fn require_connected(&self, tip: CommitId, base: CommitId) -> Result<(), Error> {
        let new_objects = self.list_new_objects(tip, base).ok().flatten();
        if new_objects.is_some_and(|objects| objects.iter().all(|id| self.gix.has_object(id))) {
            return Ok(());
        }
        self.git()
            .args(["rev-list", "--objects", "--quiet"])
            .args([tip.to_string(), "--not".to_owned(), base.to_string()])
            .run()
            .map(drop)
    }

    /// Returns the ids of all objects that `tip` has and `base` lacks, and of some that `base` has; none where
    /// only git can list them. An entry of a commit's tree is either in its first parent's tree, which is
    /// complete, or in the result. Commits and trees may come from memory: those were complete when they were
    /// read or written.
    pub(crate) fn list_new_objects(
        &self,
        tip: CommitId,
        base: CommitId,
    ) -> Result<Option<HashSet<ObjectId>>, Error> {
        let describe_object = || format!("history of {}", tip.short());
        if self.has_altered_history()? {
            return Ok(None);
        }
        let (reader, mut new_objects) = (self.tree_reader(), HashSet::new());
        let walk = self
            .gix
            .rev_walk([tip.0])
            .with_hidden([base.0])
            .all()
            .map_err(Error::object(describe_object()))?;
        for (n, step) in walk.enumerate() {
            let step = step.map_err(Error::object(describe_object()))?;
            let Some(parent) = step.parent_ids.first() else { return Ok(None) };
            if n == MAX_COMMITS_CHECKED {
                return Ok(None);
            }
            let (before, after) = (self.tree_of(CommitId(*parent))?.0, self.tree_of(CommitId(step.id))?.0);
            new_objects.insert(step.id);
            // Also for a tree that another of the commits has: each commit rests only on its first parent.
            if before != after {
                new_objects.insert(after);
                collect_new_objects(reader, Some(before), after, &mut new_objects)?;
            }
        }
        Ok(Some(new_objects))
    }
}

/// Collects the ids of all items of the tree `new_tree` that the tree `old_tree` does not have at the same
/// path, subtrees included. Commits of submodules are left out.
fn collect_new_objects(
    reader: &TreeReader,
    old_tree: Option<ObjectId>,
    new_tree: ObjectId,
    new_objects: &mut HashSet<ObjectId>,
) -> Result<(), Error> {
    let old_items = old_tree.map(|id| reader.tree(id)).transpose()?;
    for (name, item) in reader.tree(new_tree)?.iter() {
        let old_item = old_items.as_ref().and_then(|items| items.get(name));
        if old_item == Some(item) || item.mode.is_commit() {
            continue;
        }
        new_objects.insert(item.id);
        if item.is_tree() {
            collect_new_objects(
                reader,
                old_item.filter(|old| old.is_tree()).map(|old| old.id),
                item.id,
                new_objects,
            )?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use gix::ObjectId;

    use crate::Repo;
    use crate::base::test_repo::TestRepo;

    #[test]
    fn lists_objects_of_a_tree_that_comes_back() {
        let fixture = TestRepo::new();
        let expected = fixture.run_script(
            "repo",
            "mkdir d; echo 0 > d/x; git add .; git commit -qm 0; git branch base
            echo new > d/new; echo 1 > d/x; git add .; git commit -qm 1
            echo 2 > d/x; git commit -qam 2; echo 1 > d/x; git commit -qam 3
            git rev-list --objects base..main | cut -d' ' -f1",
        );
        let repo = Repo::discover(&fixture.parent_dir.join("repo")).unwrap();
        let [base, tip] = ["base", "main"].map(|name| repo.branch_tip(name).unwrap().unwrap());
        let listed = repo.list_new_objects(tip, base).unwrap().unwrap();
        for id in expected.split_whitespace() {
            assert!(listed.contains(&ObjectId::from_hex(id.as_bytes()).unwrap()), "{id}");
        }
    }
}
