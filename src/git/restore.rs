//! Owns bringing a snapshot back: exactly where HEAD is what it was, by a three-way merge where it has moved.

use std::collections::HashSet;
use std::path::Path;

use super::as_edited::AsEdited;
use super::clear::Held;
use super::index::{self, INDEX, IndexLock, NewIndex};
use super::left_out::{Visible, leave_out};
use super::make_way::{Stranger, move_beside, save, stranger, stranger_above};
use super::modes::give_modes;
use super::open_op::refuse_open;
use super::path;
use super::patterns::Against;
use super::quarantine::{
    Quarantine, differing, is_below_folders, is_blob, prune_below, prune_parents, stands, stands_no_folder,
};
use super::rebuilt::Rebuilt;
use super::refusal::{Local, refuse_overlap};
use super::renumber::{Renumbered, forget_lengths, resized};
use super::restage::restage;
use super::restore_plan::{conflict_in_place, merged_onto, refuse_staged};
use super::status::is_surely_at;
use super::transition::{
    Moved, Tree, attributes_for, bring_files, new_folders, note_new_folders, remove_new_folders,
};
use super::truncated::is_cut_short;
use super::{Change, Error, Oid, RepoPath, Side, Snapshot, brought, flags, tree_changes};
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
    let mut work = Work::of(tree, snapshot, aside, raw_index)?;
    work.held.leave_lost(|path| work.aside.holds(path));
    let done = if tree.repo.tree_of(now)? == tree.repo.tree_of(snapshot.base)? && raw_index.exists() {
        work.exactly(raw_index, now).map(|()| Restored::Exactly)
    } else {
        work.merged(now, raw_index)
    };
    fault::point("restore.installed");
    done
}

/// The name in a step's folder of HEAD's own files that made way.
const CURRENT: &str = "current";

/// The name in a step's folder of the list of set-aside files that the step puts in place.
const GIVEN: &str = "given";

/// The name in a step's folder of the list of files that the step writes from the snapshot's objects.
const WRITTEN: &str = "written";

/// Files that a restore puts in place.
#[derive(Default)]
struct Given {
    /// The files that were set aside, which are moved.
    own: Vec<RepoPath>,
    /// Files that are written from the snapshot's objects.
    written: Vec<RepoPath>,
}

/// A snapshot that goes back to a worktree.
pub(super) struct Work<'a> {
    tree: &'a Tree<'a>,
    snapshot: &'a Snapshot,
    held: Held,
    aside: Quarantine,
    /// What a sparse checkout has to show and to leave out besides.
    visible: Visible,
}

impl<'a> Work<'a> {
    /// The work of bringing `snapshot` with `raw_index` back from `aside`.
    pub(super) fn of(
        tree: &'a Tree<'a>,
        snapshot: &'a Snapshot,
        aside: &Path,
        raw_index: &Path,
    ) -> Result<Work<'a>, Error> {
        let held = Held::of(tree, snapshot)?;
        let own: HashSet<RepoPath> = held.all().into_iter().map(|change| change.path).collect();
        let current = tree.scratch.join(CURRENT).join("files");
        let is_taken = |path: &RepoPath| path.under(&current).symlink_metadata().is_ok();
        let visible = Visible::of(tree, raw_index, &snapshot.put_back, |path| own.contains(path), is_taken);
        Ok(Work { tree, snapshot, held, aside: Quarantine::at(aside)?, visible })
    }

    /// Takes back what a killed process had begun, found from its scratch folder. Returns commits with files that somebody wrote
    /// since and that had to make way.
    pub(super) fn take_back(&self, now: Oid) -> Result<Vec<Oid>, Error> {
        let given = self.given()?;
        self.aside.remove_drafts(self.tree.dir, given.own.iter());
        let keep = |strangers| save(self.tree, strangers);
        if !self.tree.scratch.join(super::transition::REPLACED).exists() {
            let leaving = self.held.tracked.iter().filter(|c| c.old.is_some());
            let leaving: Vec<Change> = leaving.chain(&self.visible.leaving).cloned().collect();
            let current = Quarantine::at(&self.tree.scratch.join(CURRENT))?;
            let given = self.come(given, &leaving, &current)?;
            let written = keep(self.written_since(&given))?;
            let in_place = self.undo(&leaving, &current, given, keep)?;
            return Ok(written.into_iter().chain(in_place).collect());
        }
        let moved = match merged_onto(self.tree, self.snapshot, now, self.snapshot.work_tree)? {
            Ok(work) => Some(Moved::found(self.tree, tree_changes(self.tree.repo, now, work)?, work)?),
            Err(_) => None,
        };
        let written = keep(self.written_since(&given))?;
        self.take_again(&given)?;
        AsEdited::of(self.tree, &self.aside)?.take_again()?;
        let in_place = moved.map_or(Ok(None), |moved| moved.undo_and_save(self.tree))?;
        Ok(written.into_iter().chain(in_place).collect())
    }

    /// Files that stand where this step put some and that are not the snapshot's: somebody wrote them since. An ignored one is set
    /// aside again as it is.
    fn written_since(&self, given: &Given) -> Vec<Stranger> {
        let is_there = |path: &RepoPath| {
            let brought =
                !given.written.contains(path) || self.rebuilt(path).is_none_or(|r| r.has_brought(path));
            brought && !self.aside.holds(path) && stands_no_folder(self.tree.dir, path)
        };
        let mut expected = self.held.files_in_objects();
        expected
            .retain(|(path, _)| (given.own.contains(path) || given.written.contains(path)) && is_there(path));
        let attributes = || self.held.attributes(self.tree, self.snapshot);
        let index = self.tree.scratch.join("check-given");
        let Tree { repo, git_dir, dir, .. } = self.tree;
        let differing = differing(repo, git_dir, dir, &index, &expected, &attributes);
        let all = differing.unwrap_or_else(|_| {
            let is_other = |(path, side): &&(RepoPath, Side)| !is_blob(repo, &path.under(dir), *side);
            expected.iter().filter(is_other).map(|(path, _)| path.clone()).collect()
        });
        let written = all.into_iter().filter(|path| !is_cut_short(self.tree, self.snapshot, path, &expected));
        written.map(|path| Stranger { path, is_replaced: true }).collect()
    }

    /// The files that HEAD does not have as they were taken away: somebody wrote into them since. Where git cannot be asked, all
    /// that are not byte for byte HEAD's.
    fn written_away(&self, leaving: &[&Change], current: &Quarantine) -> Vec<RepoPath> {
        let expected: Vec<_> = leaving.iter().filter_map(|c| Some((c.path.clone(), c.old?))).collect();
        let attributes =
            || attributes_for(self.tree.repo, self.snapshot.base, expected.iter().map(|(p, _)| p));
        let differing = current.differing(self.tree, &expected, &attributes);
        differing.unwrap_or_else(|_| {
            let is_other = |(path, side): &&(RepoPath, Side)| !current.is_blob(self.tree.repo, path, *side);
            expected.iter().filter(is_other).map(|(path, _)| path.clone()).collect()
        })
    }

    /// Notes which of `files` will be put in place by this step, for whoever has to take it back: the others are there
    /// already.
    fn note_given(&self, files: &[(RepoPath, Side)]) -> Result<Given, Error> {
        let fresh = files.iter().filter(|(path, side)| !self.is_back(path, Some(*side)));
        let (own, written) = fresh.map(|(path, _)| path.clone()).partition(|path| self.aside.holds(path));
        let given = Given { own, written };
        // A folder counts as one that something is put into.
        let folders: Vec<RepoPath> = self.snapshot.empty_dirs.iter().map(|dir| dir.join(b"-")).collect();
        note_new_folders(self.tree, given.own.iter().chain(&given.written).chain(&folders))?;
        for (name, paths) in [(WRITTEN, &given.written), (GIVEN, &given.own)] {
            path::note(&self.tree.scratch.join(name), paths)?;
        }
        Ok(given)
    }

    /// What was noted; nothing when it did not come to that.
    fn given(&self) -> Result<Given, Error> {
        let noted = |name| path::noted(&self.tree.scratch.join(name));
        Ok(Given { own: noted(GIVEN)?, written: noted(WRITTEN)? })
    }

    /// Those of `given` that stand where this step puts them: not HEAD's own file of that path, which is there until it was taken away,
    /// unless it was left out.
    fn come(&self, mut given: Given, leaving: &[Change], current: &Quarantine) -> Result<Given, Error> {
        let may_be_heads = |path: &RepoPath| leaving.iter().any(|c| c.path == *path) && !current.holds(path);
        given.own.retain(|path| !may_be_heads(path) || !self.aside.holds(path));
        let returned = self.returned()?;
        let has_come = |path: &RepoPath| {
            self.rebuilt(path).is_some_and(|rebuilt| rebuilt.has_brought(path)) && !returned.holds(path)
        };
        given.written.retain(|path| !may_be_heads(path) || has_come(path));
        Ok(given)
    }

    /// Where files go that were written from the snapshot's objects and are taken away again.
    fn returned(&self) -> Result<Quarantine, Error> {
        Quarantine::at(&self.tree.scratch.join("returned"))
    }

    /// Takes files that were put in place away again: those that had been set aside are set aside again, and those that were
    /// written from the snapshot's objects go, since the objects still have them.
    fn take_again(&self, given: &Given) -> Result<(), Error> {
        for path in &given.own {
            if self.aside.take_again(self.tree.dir, path)? {
                prune_parents(self.tree.dir, path);
            }
        }
        let returned = self.returned()?;
        for path in &given.written {
            if self.rebuilt(path).map_or(Ok(false), |rebuilt| rebuilt.take_again(path, &returned))? {
                prune_parents(self.tree.dir, path);
            }
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
            refuse_staged(self.tree, now, self.snapshot)?;
        }
        let leaving: Vec<Change> = self
            .held
            .tracked
            .iter()
            .filter(|c| c.old.is_some() && !self.is_back(&c.path, self.side_of(c)))
            .chain(&self.visible.leaving)
            .cloned()
            .collect();
        self.refuse_in_the_way(&leaving, local)?;
        let current = Quarantine::at(&self.tree.scratch.join(CURRENT))?;
        let files = [self.held.files(), self.visible.arriving.clone()].concat();
        let given = self.note_given(&files)?;
        let done = self.take_current(&leaving, &current);
        let done = done.inspect(|()| fault::point("restore.taken"));
        let done = done.and_then(|()| self.give_back(&files));
        let done = done.and_then(|()| self.refreshed(raw_index, lock.index()));
        let done = done.and_then(|next| lock.install(next));
        if let Err(e) = done {
            let beside = |strangers: Vec<_>| move_beside(self.tree, &strangers);
            self.undo(&leaving, &current, given, beside)?;
            return Err(e);
        }
        brought::note(self.tree.dir, &self.aside, &self.held, &self.held.tracked);
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
        leave_out(self.tree, &next, self.snapshot.put_back.iter())?;
        Ok(NewIndex::At(next))
    }

    /// Refuses what stands where the snapshot's files belong, apart from those that are back already: somebody may have
    /// been cut off half-way.
    fn refuse_in_the_way(&self, leaving: &[Change], local: Local) -> Result<(), Error> {
        let mut all: Vec<Change> =
            self.held.tracked.iter().filter(|c| !self.is_back(&c.path, self.side_of(c))).cloned().collect();
        // A file taken out of the index but kept stands in HEAD's place, which leaves first.
        all.extend(self.visible.leaving.iter().cloned());
        let fresh = |path: &RepoPath| !leaving.iter().any(|c| c.path == *path);
        let arriving = self.held.loose().filter(|(p, side)| fresh(p) && !self.is_back(p, Some(*side)));
        all.extend(arriving.map(|(path, side)| Change { path: path.clone(), old: None, new: Some(*side) }));
        match refuse_overlap(self.tree, &all, local, &Against::default()) {
            Err(Error::Overlap { dir, mut paths, remedy }) => {
                // What is gone here and lies in our keeping is no change of anybody's, nor what is announced again.
                let is_ours = |p: &RepoPath| self.aside.holds(p) || self.snapshot.intent_to_add.contains(p);
                paths.retain(|p| stranger(self.tree.dir, p).is_some() || !is_ours(p));
                if paths.is_empty() { Ok(()) } else { Err(Error::Overlap { dir, paths, remedy }) }
            }
            other => other,
        }
    }

    /// What the snapshot has at the path of a change: a file that was taken out of the index may be there still.
    fn side_of(&self, change: &Change) -> Option<Side> {
        let loose = || self.held.loose().find(|(path, _)| *path == change.path).map(|(_, side)| *side);
        change.new.or_else(loose)
    }

    /// Whether a path is as the snapshot has it, and nothing else of it is left in our keeping. The same file may be: a way back
    /// that was cut short brought what was there before, and git takes no file with a flag away.
    fn is_back(&self, path: &RepoPath, side: Option<Side>) -> bool {
        let stands = stands(self.tree.dir, path);
        let has = |side| is_blob(self.tree.repo, &path.under(self.tree.dir), side);
        match side {
            Some(side) => {
                let kept_alike = || self.aside.is_blob(self.tree.repo, path, side);
                stands && has(side) && (!self.aside.holds(path) || kept_alike())
            }
            None => !stands,
        }
    }

    fn lock(&self) -> Result<IndexLock, Error> {
        let lock = IndexLock::of(self.tree)?;
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
        let edited = current.differing(self.tree, &expected, &attributes)?;
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
            if is_below_folders(self.tree.dir, path) {
                // As git does where it writes a file, but not behind a link that was put above it since it was looked at; whoever goes
                // back from here knows of the folder.
                prune_below(&path.under(self.tree.dir));
            }
            match (self.is_back(path, Some(*side)), self.aside.holds(path)) {
                (true, true) => self.aside.forget(path)?,
                (true, false) => {}
                (false, true) => self.aside.give(self.tree.dir, path)?,
                (false, false) => missing.push(path.clone()),
            }
        }
        self.rebuild(&missing)?;
        // Where HEAD has moved there may be a file now.
        let is_taken = |dir: &RepoPath| {
            stranger_above(self.tree.dir, dir).is_some() || stands_no_folder(self.tree.dir, dir)
        };
        for dir in self.snapshot.empty_dirs.iter().filter(|dir| !is_taken(dir)) {
            let dir = dir.under(self.tree.dir);
            std::fs::create_dir_all(&dir).map_err(Error::io("create", &dir))?;
        }
        self.give_modes(|path| self.snapshot.empty_dirs.contains(path))?;
        fault::point("restore.given");
        Ok(())
    }

    /// Gives what `is_meant` of files and new folders the permission bits that they had when the snapshot was taken.
    fn give_modes(&self, is_meant: impl Fn(&RepoPath) -> bool) -> Result<(), Error> {
        let mut modes = self.snapshot.modes.clone();
        modes.retain(|mode| is_meant(&mode.path));
        if modes.is_empty() {
            return Ok(());
        }
        let new = new_folders(self.tree)?;
        give_modes(self.tree.dir, &modes, |folder| new.contains(folder)).map(drop)
    }

    /// Writes files from the snapshot's trees.
    fn rebuild(&self, paths: &[RepoPath]) -> Result<(), Error> {
        let (loose, tracked): (Vec<_>, Vec<_>) = paths.iter().partition(|p| self.is_loose(p));
        self.written_from(self.snapshot.work_tree).bring(&tracked)?;
        match self.snapshot.untracked_tree {
            Some(id) => self.written_from(id).bring(&loose),
            None => Ok(()),
        }
    }

    fn is_loose(&self, path: &RepoPath) -> bool {
        self.held.untracked.iter().any(|(p, _)| p == path)
    }

    /// Where a path is written from; none for one that no tree of the snapshot has.
    fn rebuilt(&self, path: &RepoPath) -> Option<Rebuilt<'_>> {
        let from =
            if self.is_loose(path) { self.snapshot.untracked_tree } else { Some(self.snapshot.work_tree) };
        from.map(|id| self.written_from(id))
    }

    fn written_from(&self, id: Oid) -> Rebuilt<'_> {
        Rebuilt::of(self.tree, id, &self.snapshot.modes)
    }

    /// Takes back what was put in place and brings back what was there. `keep` keeps what others have put in its place.
    fn undo<T>(
        &self,
        leaving: &[Change],
        current: &Quarantine,
        given: Given,
        keep: impl FnOnce(Vec<Stranger>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let given = self.come(given, leaving, current)?;
        self.take_again(&given)?;
        let away: Vec<&Change> = leaving.iter().filter(|c| current.holds(&c.path)).collect();
        let (mut strangers, mut coming, mut replaced) = (Vec::new(), Vec::new(), Vec::new());
        for change in away {
            match stranger(self.tree.dir, &change.path) {
                Some(there) if there.is_replaced => replaced.push((change, there)),
                there => {
                    strangers.extend(there);
                    coming.push(&change.path);
                }
            }
        }
        let changes: Vec<&Change> = replaced.iter().map(|(change, _)| *change).collect();
        let written = self.written_away(&changes, current);
        // A file that somebody made where HEAD's own was is the newer one, and stays, unless somebody wrote into that as well.
        for (change, there) in replaced.into_iter().filter(|(change, _)| written.contains(&change.path)) {
            strangers.push(there);
            coming.push(&change.path);
        }
        let kept = keep(strangers)?;
        for path in coming {
            current.give_over(self.tree.dir, path)?;
        }
        Ok(kept)
    }

    fn merged(&self, now: Oid, raw_index: &Path) -> Result<Restored, Error> {
        let work = merged_onto(self.tree, self.snapshot, now, self.snapshot.work_tree)?;
        let staged = merged_onto(self.tree, self.snapshot, now, self.snapshot.index_tree)?;
        let (work, staged) = match (work, staged) {
            (Ok(work), Ok(staged)) => (work, staged),
            (Err(paths), _) | (_, Err(paths)) => return Ok(Restored::Conflict(paths)),
        };
        let changes = tree_changes(self.tree.repo, now, work)?;
        let lock = self.lock()?;
        refuse_staged(self.tree, now, self.snapshot)?;
        if let Some(conflict) = conflict_in_place(self.tree, &self.held, (self.snapshot.base, now), &changes)?
        {
            return Ok(conflict);
        }
        // What was changed since, or has something in its place, is left out as git would.
        let since = match self.visible.arriving.is_empty() {
            true => Vec::new(),
            false => tree_changes(self.tree.repo, self.snapshot.base, now)?,
        };
        let since: HashSet<&RepoPath> = since.iter().map(|c| &c.path).collect();
        let is_as_it_was = |path: &RepoPath| !since.contains(path) && stranger(self.tree.dir, path).is_none();
        let shown: Vec<_> = self.visible.arriving.iter().filter(|(path, _)| is_as_it_was(path)).collect();
        let files: Vec<(RepoPath, Side)> = self.held.loose().chain(shown.iter().copied()).cloned().collect();
        let given = self.note_given(&files)?;
        // Wherever the merge has brought it.
        let edited: Vec<RepoPath> =
            changes.iter().filter(|c| c.new.is_some()).map(|c| c.path.clone()).collect();
        let mut here: HashSet<&RepoPath> = edited.iter().collect();
        let coming = changes.clone();
        let against = Against { shown: here.clone(), ..Against::default() };
        let moved = bring_files(self.tree, lock.index(), (now, work), coming, Local::FromHead, &against)?;
        let as_edited = AsEdited::of(self.tree, &self.aside)?;
        here.extend(shown.iter().map(|(path, _)| path));
        let next = self.tree.scratch.join(INDEX);
        let done = self
            .give_back(&files)
            .and_then(|()| as_edited.give(&self.held, &changes, &next))
            .and_then(|()| self.give_modes(|path| !self.is_loose(path)))
            .and_then(|()| restage(self.tree, self.snapshot, (&next, staged), raw_index, &here))
            .and_then(|()| lock.install(NewIndex::At(next)));
        if let Err(e) = done {
            self.take_again(&given)?;
            as_edited.take_again()?;
            moved.undo(self.tree)?;
            return Err(e);
        }
        moved.keep();
        brought::note(self.tree.dir, &self.aside, &self.held, &changes);
        Ok(Restored::Merged)
    }
}
