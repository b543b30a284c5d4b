//! Owns bringing a snapshot back: exactly where HEAD is what it was, by a three-way merge where it has moved.

use std::path::Path;

use super::clear::Held;
use super::index::{self, INDEX, IndexLock, NewIndex};
use super::open_op::refuse_open;
use super::path::nul_separated;
use super::quarantine::{Quarantine, is_blob, prune_parents, stands};
use super::refusal::{Local, refuse_overlap};
use super::renumber::{Renumbered, resized};
use super::repair::save;
use super::status::{Entry, Kind, is_surely_at, status};
use super::transition::{Moved, Tree, attributes_for, bring_files, note_new_folders, remove_new_folders};
use super::{Change, Error, Oid, RepoPath, Side, Snapshot, flags, merge_trees, tree_changes};
use crate::fault;

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
    let work = Work::of(tree, snapshot, aside)?;
    let done = if tree.repo.tree_of(now)? == tree.repo.tree_of(snapshot.base)? && raw_index.exists() {
        work.exactly(raw_index, now).map(|()| Restored::Exactly)
    } else {
        work.merged(now, raw_index)
    };
    fault::point("restore.installed");
    done
}

/// The name in a step's folder of the list of files that the step puts in place.
const GIVEN: &str = "given";

/// A snapshot that goes back to a worktree.
pub(super) struct Work<'a> {
    tree: &'a Tree<'a>,
    snapshot: &'a Snapshot,
    held: Held,
    aside: Quarantine,
}

impl<'a> Work<'a> {
    /// The work of bringing `snapshot` back from `aside`.
    pub(super) fn of(tree: &'a Tree<'a>, snapshot: &'a Snapshot, aside: &Path) -> Result<Work<'a>, Error> {
        Ok(Work { tree, snapshot, held: Held::of(tree, snapshot)?, aside: Quarantine::at(aside)? })
    }

    /// Takes back what a killed process had begun, found from its scratch folder. Returns a commit with files that
    /// somebody wrote since and that had to make way.
    pub(super) fn take_back(&self, now: Oid) -> Result<Option<Oid>, Error> {
        let given = self.given()?;
        if !self.tree.scratch.join(super::transition::REPLACED).exists() {
            let leaving: Vec<Change> =
                self.held.tracked.iter().filter(|c| c.old.is_some()).cloned().collect();
            let current = Quarantine::at(&self.tree.scratch.join("current"))?;
            self.undo(&leaving, &current, &given)?;
            return Ok(None);
        }
        self.take_again(&given)?;
        let Ok(work) = self.merge(now, self.snapshot.work_tree)? else { return Ok(None) };
        let moved = Moved::found(self.tree, tree_changes(self.tree.repo, now, work)?, work)?;
        let saved = save(self.tree, &moved.strange(self.tree)?)?;
        moved.undo_over_saved(self.tree)?;
        Ok(saved)
    }

    /// Notes which of `files` will be put in place by this step, for whoever has to take it back: the others are there
    /// already.
    fn note_given(&self, files: &[(RepoPath, Side)]) -> Result<Vec<RepoPath>, Error> {
        let fresh = files.iter().filter(|(path, side)| !self.is_back(path, Some(*side)));
        let given: Vec<RepoPath> = fresh.map(|(path, _)| path.clone()).collect();
        note_new_folders(self.tree, given.iter())?;
        let list = self.tree.scratch.join(GIVEN);
        std::fs::write(&list, nul_separated(&given)).map_err(Error::io("write", &list))?;
        Ok(given)
    }

    /// What was noted; nothing when it did not come to that.
    fn given(&self) -> Result<Vec<RepoPath>, Error> {
        let list = self.tree.scratch.join(GIVEN);
        match std::fs::read(&list) {
            Ok(text) => Ok(text.split(|b| *b == 0).filter(|f| !f.is_empty()).map(RepoPath::new).collect()),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(e) => Err(Error::io("read", &list)(e)),
        }
    }

    /// Files that were put in place go back to our keeping.
    fn take_again(&self, given: &[RepoPath]) -> Result<(), Error> {
        for path in given.iter().filter(|p| !self.aside.holds(p)) {
            self.aside.take(self.tree.dir, path)?;
            prune_parents(self.tree.dir, path);
        }
        remove_new_folders(self.tree);
        Ok(())
    }

    fn exactly(&self, raw_index: &Path, now: Oid) -> Result<(), Error> {
        let lock = self.lock()?;
        // Nobody else writes to the index any more.
        let is_at = |changes| is_surely_at(self.tree.repo, self.tree.dir, &self.tree.git_dir, now, changes);
        let local = if is_at(&self.held.all()) { Local::None } else { Local::FromHead };
        if local != Local::None {
            self.refuse_staged(now)?;
        }
        let leaving: Vec<Change> = self
            .held
            .tracked
            .iter()
            .filter(|c| c.old.is_some() && !self.is_back(&c.path, c.new))
            .cloned()
            .collect();
        self.refuse_in_the_way(&leaving, local)?;
        let current = Quarantine::at(&self.tree.scratch.join("current"))?;
        let given = self.note_given(&self.held.files())?;
        let done = self.take_current(&leaving, &current);
        let done = done.inspect(|()| fault::point("restore.taken"));
        let done = done.and_then(|()| self.give_back(&self.held.files()));
        let done = done.and_then(|()| self.refreshed(raw_index, lock.index()));
        let done = done.and_then(|next| lock.install(next));
        if let Err(e) = done {
            self.undo(&leaving, &current, &given)?;
            return Err(e);
        }
        Ok(())
    }

    /// Makes of the raw index the one that is to be: it notes what the files are like by now. What has been written since is in
    /// the `current` one, or was given back.
    fn refreshed(&self, raw_index: &Path, current: &Path) -> Result<NewIndex, Error> {
        let files = self.held.files();
        let paths = files.iter().map(|(path, _)| path).collect();
        let plan = Renumbered::plan_like(self.tree, raw_index, current, &paths);
        if let Some(made) = plan.and_then(|plan| plan.made(self.tree)) {
            return Ok(made);
        }
        let next = self.tree.scratch.join(INDEX);
        index::copy(raw_index, &next)?;
        forget_lengths(self.tree, &next, &resized(self.tree.repo, raw_index, current))?;
        flags::refresh(self.tree.repo, self.tree.dir, &next)?;
        Ok(NewIndex::At(next))
    }

    /// Refuses when something is staged that is neither HEAD's nor the snapshot's own: it would be lost with the index.
    fn refuse_staged(&self, now: Oid) -> Result<(), Error> {
        if self.tree.repo.index_is_at(self.tree.dir, now)?
            || self.tree.repo.index_is_at(self.tree.dir, self.snapshot.index_tree)?
        {
            return Ok(());
        }
        let staged = |e: &&Entry| matches!(e.kind, Kind::Tracked { staged: true, .. });
        let dirt = status(self.tree.repo, self.tree.dir, false)?;
        let paths = dirt.tracked().filter(staged).map(|e| e.path.clone()).collect();
        Err(Error::Overlap { dir: self.tree.dir.to_owned(), paths })
    }

    /// Refuses what stands where the snapshot's files belong, apart from those that are back already: somebody may have
    /// been cut off half-way.
    fn refuse_in_the_way(&self, leaving: &[Change], local: Local) -> Result<(), Error> {
        let mut all: Vec<Change> =
            self.held.tracked.iter().filter(|c| !self.is_back(&c.path, c.new)).cloned().collect();
        // A file taken out of the index but kept stands in HEAD's place, which leaves first.
        let fresh = |path: &RepoPath| !leaving.iter().any(|c| c.path == *path);
        let arriving =
            self.held.untracked.iter().filter(|(p, side)| fresh(p) && !self.is_back(p, Some(*side)));
        all.extend(arriving.map(|(path, side)| Change { path: path.clone(), old: None, new: Some(*side) }));
        match refuse_overlap(self.tree, &all, local) {
            Err(Error::Overlap { dir, mut paths }) => {
                // What is gone here and lies in our keeping is no change of anybody's.
                paths.retain(|p| p.under(self.tree.dir).symlink_metadata().is_ok() || !self.aside.holds(p));
                if paths.is_empty() { Ok(()) } else { Err(Error::Overlap { dir, paths }) }
            }
            other => other,
        }
    }

    /// Whether a path is as the snapshot has it, and nothing of it is left in our keeping.
    fn is_back(&self, path: &RepoPath, side: Option<Side>) -> bool {
        let stands = stands(self.tree.dir, path);
        let has = |side| is_blob(self.tree.repo, &path.under(self.tree.dir), side);
        match side {
            Some(side) => !self.aside.holds(path) && stands && has(side),
            None => !stands,
        }
    }

    fn lock(&self) -> Result<IndexLock, Error> {
        let lock = IndexLock::take(self.tree.dir, &self.tree.git_dir, self.tree.scratch)?;
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
        let attributes =
            || attributes_for(self.tree.repo, self.snapshot.base, expected.iter().map(|(p, _)| p));
        let edited = current.differing(self.tree.repo, &self.tree.git_dir, &expected, &attributes)?;
        if edited.is_empty() {
            return Ok(());
        }
        Err(Error::Raced { dir: self.tree.dir.to_owned(), paths: edited })
    }

    /// Puts the snapshot's files in place: the very files that were set aside, and from the snapshot's objects those
    /// that are missing there.
    fn give_back(&self, files: &[(RepoPath, Side)]) -> Result<(), Error> {
        let mut missing = Vec::new();
        for (path, side) in files {
            if self.aside.holds(path) {
                self.aside.give(self.tree.dir, path)?;
            } else if !self.is_back(path, Some(*side)) {
                missing.push(path.clone());
            }
        }
        self.rebuild(&missing)?;
        for dir in &self.snapshot.empty_dirs {
            let dir = dir.under(self.tree.dir);
            std::fs::create_dir_all(&dir).map_err(Error::io("create", &dir))?;
        }
        fault::point("restore.given");
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
        index::forget(&index);
        let call = || self.tree.repo.git_in(self.tree.dir).index(&index);
        call().args(["read-tree", "--no-sparse-checkout"]).arg(from.to_string()).changes().run()?;
        call()
            .args(["checkout-index", "-z", "--stdin"])
            .input(nul_separated(paths.iter().copied()))
            .changes()
            .run()
            .map(drop)
    }

    fn undo(&self, leaving: &[Change], current: &Quarantine, given: &[RepoPath]) -> Result<(), Error> {
        // Where HEAD's own file was not taken away yet, it is that one which stands there.
        let untouched = |path: &&RepoPath| leaving.iter().any(|c| c.path == **path) && !current.holds(path);
        let given: Vec<RepoPath> = given.iter().filter(|p| !untouched(p)).cloned().collect();
        self.take_again(&given)?;
        for Change { path, old, .. } in leaving.iter().filter(|c| current.holds(&c.path)) {
            if !stands(self.tree.dir, path) {
                current.give(self.tree.dir, path)?;
            } else if !old.is_some_and(|side| current.is_blob(self.tree.repo, path, side)) {
                // Somebody wrote to what was there, and then put another file in its place: both are kept.
                return Err(Error::Raced { dir: self.tree.dir.to_owned(), paths: vec![path.clone()] });
            }
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
        self.refuse_staged(now)?;
        match refuse_overlap(self.tree, &changes, Local::FromHead) {
            Err(Error::Obstructed { paths, .. }) => return Ok(Restored::Conflict(paths)),
            other => other?,
        }
        changes.truncate(changes.len() - self.held.untracked.len());
        let given = self.note_given(&self.held.untracked)?;
        let moved = bring_files(self.tree, lock.index(), now, work, changes, Local::FromHead)?;
        let next = self.tree.scratch.join(INDEX);
        let done = self
            .give_back(&self.held.untracked)
            .and_then(|()| self.stage(&next, staged, raw_index))
            .and_then(|()| lock.install(NewIndex::At(next)));
        if let Err(e) = done {
            self.take_again(&given)?;
            moved.undo(self.tree)?;
            return Err(e);
        }
        moved.keep();
        Ok(Restored::Merged)
    }

    /// What `theirs` changed relative to the snapshot's base, on top of `now`; or the paths that conflict.
    fn merge(&self, now: Oid, theirs: Oid) -> Result<Result<Oid, Vec<RepoPath>>, Error> {
        let repo = self.tree.repo;
        let before = repo.tree_of(self.snapshot.base)?;
        let merged = merge_trees(repo, (before, repo.tree_of(now)?, theirs), self.tree.scratch, None)?;
        Ok(if merged.clean { Ok(merged.tree) } else { Err(merged.paths()) })
    }

    /// Gives a second index the staged state, the announced files and the flags of the raw index.
    fn stage(&self, next: &Path, staged: Oid, raw_index: &Path) -> Result<(), Error> {
        let repo = self.tree.repo;
        let call = || repo.git_in(self.tree.dir).index(next);
        call().args(["read-tree", "-i", "-m"]).arg(staged.to_string()).changes().run()?;
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

/// Has git forget what an index notes of files, so that it reads them.
fn forget_lengths(tree: &Tree<'_>, index: &Path, files: &[(RepoPath, Side)]) -> Result<(), Error> {
    if files.is_empty() {
        return Ok(());
    }
    let mut input = Vec::new();
    for (path, side) in files {
        input.extend_from_slice(format!("{:o} {}\t", side.mode, side.oid).as_bytes());
        input.extend_from_slice(path.as_bytes());
        input.push(0);
    }
    let call = tree.repo.git_in(tree.dir).args(["update-index", "-z", "--index-info"]);
    call.index(index).input(input).changes().run().map(drop)
}
