//! Owns bringing a snapshot back: exactly where HEAD is what it was, by a three-way merge where it has moved.

use std::path::{Path, PathBuf};

use super::clear::Held;
use super::index::{self, IndexLock};
use super::open_op::refuse_open;
use super::path::nul_separated;
use super::quarantine::{Quarantine, prune_parents};
use super::transition::{Tree, attributes_for, bring_files, refuse_overlap};
use super::{Change, Error, Oid, RepoPath, Snapshot, flags, merge_trees, tree_changes};

/// How a snapshot came back.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub(crate) enum Restored {
    /// Files, modes and index are as they were.
    Exactly,
    /// HEAD had moved and the changes were merged into what it is now.
    Merged,
    /// HEAD had moved and these paths conflict. Nothing was changed; the snapshot still holds everything.
    Conflict(Vec<RepoPath>),
}

/// Brings `snapshot` back to a worktree whose HEAD is at `now`. `aside` is where `clear` put the files (what is missing
/// or altered there comes from the snapshot's objects), `raw_index` the index it kept.
///
/// # Errors
/// [`Error::Overlap`] or [`Error::Obstructed`] when something new stands where the snapshot's files belong: refused.
pub(crate) fn restore(
    tree: &Tree<'_>,
    snapshot: &Snapshot,
    now: Oid,
    aside: &Path,
    raw_index: &Path,
) -> Result<Restored, Error> {
    let work = Work { tree, snapshot, held: Held::of(tree, snapshot)?, aside: Quarantine::at(aside)? };
    if tree.repo.tree_of(now)? == tree.repo.tree_of(snapshot.base)? && raw_index.exists() {
        work.exactly(raw_index).map(|()| Restored::Exactly)
    } else {
        work.merged(now, raw_index)
    }
}

struct Work<'a> {
    tree: &'a Tree<'a>,
    snapshot: &'a Snapshot,
    held: Held,
    aside: Quarantine,
}

impl Work<'_> {
    fn exactly(&self, raw_index: &Path) -> Result<(), Error> {
        let lock = self.lock()?;
        let arrivals = self.held.untracked.iter().map(|(path, side)| Change {
            path: path.clone(),
            old: None,
            new: Some(*side),
        });
        let leaving: Vec<Change> = self.held.tracked.iter().filter(|c| c.old.is_some()).cloned().collect();
        let known: Vec<&RepoPath> = leaving.iter().map(|c| &c.path).collect();
        // A file taken out of the index but kept stands in HEAD's place, which leaves first.
        let fresh = arrivals.filter(|a| !known.contains(&&a.path));
        let all: Vec<Change> = self.held.tracked.iter().cloned().chain(fresh).collect();
        refuse_overlap(self.tree, &all)?;
        let current = Quarantine::at(&self.tree.scratch.join("current"))?;
        let next = self.tree.scratch.join("index");
        let done = self
            .take_current(&leaving, &current)
            .and_then(|()| self.give_back(&self.held.files()))
            .and_then(|()| {
                index::copy(raw_index, &next)?;
                flags::refresh(self.tree.repo, self.tree.dir, &next)
            });
        if let Err(e) = done {
            self.undo(&leaving, &current)?;
            return Err(e);
        }
        lock.install(&next)
    }

    fn lock(&self) -> Result<IndexLock, Error> {
        let lock = IndexLock::take(self.tree.dir, &self.tree.git_dir)?;
        refuse_open(self.tree.dir, &self.tree.git_dir)?;
        Ok(lock)
    }

    /// Moves HEAD's own files out of the way, after comparing them with HEAD.
    fn take_current(&self, leaving: &[Change], current: &Quarantine) -> Result<(), Error> {
        let mut expected = Vec::new();
        for change in leaving {
            if current.take(self.tree.dir, &change.path)? {
                expected.extend(change.old.map(|side| (change.path.clone(), side)));
            }
            prune_parents(self.tree.dir, &change.path);
        }
        let paths = expected.iter().map(|(p, _)| p);
        let attributes = attributes_for(self.tree.repo, self.snapshot.base, paths)?;
        let edited = current.differing(self.tree.repo, &self.tree.git_dir, &expected, &attributes)?;
        if edited.is_empty() {
            return Ok(());
        }
        Err(Error::Raced { dir: self.tree.dir.to_owned(), paths: edited })
    }

    /// Puts the snapshot's files in place: the very files where they are still what the snapshot says, else the
    /// content from its objects.
    fn give_back(&self, files: &[(RepoPath, super::Side)]) -> Result<(), Error> {
        let attributes = self.held.attributes(self.tree, self.snapshot)?;
        let altered = self.aside.differing(self.tree.repo, &self.tree.git_dir, files, &attributes)?;
        let mut rebuilt = Vec::new();
        for (path, _) in files {
            if altered.contains(path) {
                rebuilt.push(path.clone());
            } else {
                self.aside.give(self.tree.dir, path)?;
            }
        }
        self.rebuild(&rebuilt)?;
        for dir in &self.snapshot.empty_dirs {
            let dir = dir.under(self.tree.dir);
            std::fs::create_dir_all(&dir).map_err(Error::io("create", &dir))?;
        }
        Ok(())
    }

    /// Writes files from the snapshot's trees.
    fn rebuild(&self, paths: &[RepoPath]) -> Result<(), Error> {
        let untracked: Vec<&RepoPath> = self.held.untracked.iter().map(|(p, _)| p).collect();
        let (loose, tracked): (Vec<_>, Vec<_>) = paths.iter().partition(|p| untracked.contains(p));
        self.check_out(self.snapshot.work_tree, &tracked)?;
        match self.snapshot.untracked_tree {
            Some(id) => self.check_out(id, &loose),
            None => Ok(()),
        }
    }

    fn check_out(&self, from: Oid, paths: &[&RepoPath]) -> Result<(), Error> {
        if paths.is_empty() {
            return Ok(());
        }
        let index = self.tree.scratch.join(format!("from-{from}"));
        let call = || self.tree.repo.git_in(self.tree.dir).index(&index);
        call().args(["read-tree", "--no-sparse-checkout"]).arg(from.to_string()).changes().run()?;
        call()
            .args(["checkout-index", "--quiet", "-z", "--stdin"])
            .input(nul_separated(paths.iter().copied()))
            .changes()
            .run()
            .map(drop)
    }

    fn undo(&self, leaving: &[Change], current: &Quarantine) -> Result<(), Error> {
        for (path, _) in self.held.files().iter().filter(|(p, _)| !self.aside.holds(p)) {
            if leaving.iter().any(|c| c.path == *path) && !current.holds(path) {
                continue;
            }
            self.aside.take(self.tree.dir, path)?;
            prune_parents(self.tree.dir, path);
        }
        for change in leaving.iter().filter(|c| current.holds(&c.path)) {
            current.give_over(self.tree.dir, &change.path)?;
        }
        Ok(())
    }

    fn merged(&self, now: Oid, raw_index: &Path) -> Result<Restored, Error> {
        let work = self.merge(now, self.snapshot.work_tree)?;
        let staged = self.merge(now, self.snapshot.index_tree)?;
        let (work, staged) = match (work, staged) {
            (Ok(work), Ok(staged)) => (work, staged),
            (Err(paths), _) | (_, Err(paths)) => return Ok(Restored::Conflict(paths)),
        };
        let mut changes = tree_changes(self.tree.repo, now, work)?;
        changes.extend(self.held.untracked.iter().map(|(path, side)| Change {
            path: path.clone(),
            old: None,
            new: Some(*side),
        }));
        let lock = self.lock()?;
        match refuse_overlap(self.tree, &changes) {
            Err(Error::Obstructed { paths, .. }) => return Ok(Restored::Conflict(paths)),
            other => other?,
        }
        changes.truncate(changes.len() - self.held.untracked.len());
        let moved = bring_files(self.tree, lock.index(), now, work, changes)?;
        let next = self.tree.scratch.join("index");
        let done = self.give_back(&self.held.untracked).and_then(|()| self.stage(&next, staged, raw_index));
        if let Err(e) = done {
            for (path, _) in self.held.untracked.iter().filter(|(p, _)| !self.aside.holds(p)) {
                self.aside.take(self.tree.dir, path)?;
            }
            moved.undo()?;
            return Err(e);
        }
        let next: PathBuf = moved.keep();
        lock.install(&next)?;
        Ok(Restored::Merged)
    }

    /// What `theirs` changed relative to the snapshot's base, on top of `now`; or the paths that conflict.
    fn merge(&self, now: Oid, theirs: Oid) -> Result<Result<Oid, Vec<RepoPath>>, Error> {
        let repo = self.tree.repo;
        let before = repo.tree_of(self.snapshot.base)?;
        let merged = merge_trees(repo, before, repo.tree_of(now)?, theirs, self.tree.scratch)?;
        Ok(if merged.clean { Ok(merged.tree) } else { Err(merged.paths()) })
    }

    /// Gives a second index the staged state, the announced files and the flags of the raw index.
    fn stage(&self, next: &Path, staged: Oid, raw_index: &Path) -> Result<(), Error> {
        let repo = self.tree.repo;
        let call = || repo.git_in(self.tree.dir).index(next);
        call().args(["read-tree", "-m"]).arg(staged.to_string()).changes().run()?;
        let announced = nul_separated(self.snapshot.intent_to_add.iter());
        if !announced.is_empty() {
            call()
                .args(["add", "--intent-to-add", "--pathspec-from-file=-", "--pathspec-file-nul"])
                .env("GIT_LITERAL_PATHSPECS", "1")
                .input(announced)
                .changes()
                .run()?;
        }
        if raw_index.exists() {
            let flagged = flags::flagged_in(repo, self.tree.dir, raw_index)?;
            let assumed = nul_separated(flagged.iter().filter(|f| f.assumed).map(|f| &f.path));
            if !assumed.is_empty() {
                call()
                    .args(["update-index", "-q", "--assume-unchanged", "-z", "--stdin"])
                    .input(assumed)
                    .changes()
                    .run()?;
            }
        }
        flags::refresh(repo, self.tree.dir, next)
    }
}
