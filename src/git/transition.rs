//! Owns the one way a working tree changes: from commit A to commit B, or not at all.
//!
//! Order of steps: lock the index, lock the refs, refuse what would lose something, give every touched file a second
//! name, let git bring files and a second index over, compare what was replaced, move the ref, install the index.
//! Whatever fails before the ref has moved is taken back by renames alone, so that a full disk cannot stop it.
//!
//! Limits: while git itself writes the files, which takes as long as their filters take, a file that an editor replaces by
//! rename, or that appears at a path which is about to be added, is overwritten and cannot be seen.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::bring::bring;
use super::index::{self, INDEX, IndexLock, NewIndex};
use super::left_out::{LeftOut, unfold};
use super::make_way::{Stranger, save, stranger};
use super::modes::{PathMode, give_modes};
use super::open_op::refuse_open;
use super::path;
use super::patterns::Against;
use super::quarantine::{Quarantine, differing, is_blob, remove_empty, settle, stands};
use super::ref_move::{self, Prepared, RefMove};
use super::refusal::{Local, refuse_done, refuse_overlap, refuse_stale};
use super::repair::{clear_locks, has_moved, is_from_git, let_go, note_untouched};
use super::status::is_surely_at;
use super::submodule::tell_left_behind;
use super::{Change, Error, LocalState, Oid, Repo, RepoPath, Side, diff, flags, tree_changes};
use crate::fault;

/// A working tree that is about to change. The caller holds its transition lock.
pub(crate) struct Tree<'a> {
    /// The repository.
    pub(crate) repo: &'a Repo,
    /// The top of the worktree.
    pub(crate) dir: &'a Path,
    /// Its git directory.
    pub(crate) git_dir: PathBuf,
    /// An existing empty folder below `proq/` for what is on its way.
    pub(crate) scratch: &'a Path,
    /// A folder of the worktree that no commit may write to: the one that holds other worktrees.
    pub(crate) off_limits: Option<RepoPath>,
    /// Where remarks go.
    pub(crate) warn: &'a dyn Fn(String),
}

/// Changes a working tree and the ref that names it from `from` to `to`. Changes of the user that do not overlap stay
/// as they are, staged state included. `brings` are flags and permission bits that files get with their arrival. Where HEAD goes to
/// something else, the index has no other flags that somebody set by hand than those: they belong to what is left.
///
/// # Errors
/// [`Error::OpenOperation`], [`Error::Overlap`], [`Error::Obstructed`], [`Error::IndexLocked`], [`Error::RefMoved`]:
/// refused, nothing changed. [`Error::Raced`]: files changed meanwhile and everything was put back.
pub(crate) fn transition(
    tree: &Tree<'_>,
    (from, to): (Oid, Oid),
    mv: &RefMove,
    why: &str,
    brings: &LocalState,
) -> Result<(), Error> {
    refuse_done(tree, from, to, mv)?;
    tree.repo.require_index(tree.dir)?;
    tree.repo.sync_new_objects(to, from)?;
    let lock = IndexLock::of(tree)?;
    let untouched = |e| note_untouched(tree).err().unwrap_or(e);
    let asked = ref_move::ask(tree, mv, (from, to), why).map_err(untouched)?;
    // Our lock keeps the index as it is, and HEAD does not matter here: this can be found out while git starts.
    let changes = tree_changes(tree.repo, from, to);
    let clean =
        changes.as_ref().is_ok_and(|changes| is_surely_at(tree.repo, tree.dir, &tree.git_dir, from, changes));
    let prepared = asked.prepared().map_err(untouched)?;
    fault::point("transition.locked");
    refuse_stale(tree, from, mv)?;
    refuse_open(tree.dir, &tree.git_dir)?;
    let changes = changes?;
    let (marks, modes) = (Marks::of(tree, mv, lock.index(), brings, &changes)?, brings.modes_of(&changes));
    if changes.is_empty() && marks.change_nothing {
        return make_move(tree, prepared, (from, to), mv);
    }
    // What is done in process sets neither.
    let is_plain = clean && marks.change_nothing && modes.is_empty();
    let local = if is_plain { Local::None } else { Local::beside(from, mv) };
    let against = against_patterns(mv, brings);
    refuse_overlap(tree, &changes, local, &against)?;
    let mut moved = bring_files(tree, lock.index(), (from, to), changes, local, &against)?;
    // All that can fail on a full disk, or because somebody deleted our lock, comes before the ref moves.
    let marked = mark(tree, &moved.next, &modes, &marks);
    let staged = match marked.and_then(|()| lock.stage(moved.take_index())) {
        Ok(staged) => staged,
        Err(e) => {
            moved.undo(tree)?;
            return Err(e);
        }
    };
    fault::point("transition.staged");
    if let Err(e) = make_move(tree, prepared, (from, to), mv) {
        moved.undo(tree)?;
        return Err(e);
    }
    tree.repo.sync_tables(&tree.git_dir);
    fault::point("transition.moved");
    let installed = staged.install_whatever().map_err(|source| moved.stuck(tree, source))?;
    fault::point("transition.installed");
    tell_left_behind(tree, &moved.changes);
    moved.keep();
    if let Some(kept) = installed {
        warn_of_kept_index(tree, &kept);
    }
    Ok(())
}

/// What a sparse checkout is to have against its patterns. Where HEAD goes to something else, a snapshot brings that.
fn against_patterns<'b>(mv: &RefMove, brings: &'b LocalState) -> Against<'b> {
    match mv {
        RefMove::Switch { .. } => Against::default(),
        _ => brings.against_patterns(),
    }
}

/// The flags that entries of the index get by a transition.
struct Marks {
    flagged: Vec<flags::Flagged>,
    /// Whether they are all that the index may have, rather than some more.
    are_all: bool,
    /// Whether the index has them already.
    change_nothing: bool,
}

impl Marks {
    /// What `brings` says about them, compared with what `index` has.
    fn of(
        tree: &Tree<'_>,
        mv: &RefMove,
        index: &Path,
        brings: &LocalState,
        changes: &[Change],
    ) -> Result<Marks, Error> {
        if !matches!(mv, RefMove::Switch { .. }) {
            let flagged = brings.flags_of(changes);
            return Ok(Marks { change_nothing: flagged.is_empty(), flagged, are_all: false });
        }
        let flagged = brings.flags();
        let there = flags::set_by_hand(tree.repo, tree.dir, &tree.git_dir, index)?;
        let names = |has: fn(&flags::Flagged) -> bool| {
            let of = |all: &[flags::Flagged]| -> BTreeSet<RepoPath> {
                all.iter().filter(|entry| has(entry)).map(|entry| entry.path.clone()).collect()
            };
            of(&flagged) == of(&there)
        };
        let change_nothing = names(|entry| entry.assumed) && names(|entry| entry.skipped);
        Ok(Marks { flagged, are_all: true, change_nothing })
    }
}

/// Gives files that were brought over the permission bits that they are to have, and entries of the index `next` the flags.
fn mark(tree: &Tree<'_>, next: &Path, modes: &[PathMode], marks: &Marks) -> Result<(), Error> {
    if !modes.is_empty() {
        let new = new_folders(tree)?;
        if give_modes(tree.dir, modes, |folder| new.contains(folder))? {
            flags::refresh(tree.repo, tree.dir, next)?;
        }
    }
    if marks.change_nothing {
        return Ok(());
    }
    if marks.are_all {
        flags::keep_only(tree, next, &marks.flagged)?;
    }
    flags::flag_again(tree.repo, tree.dir, next, &marks.flagged)
}

fn warn_of_kept_index(tree: &Tree<'_>, kept: &Path) {
    (tree.warn)(format!(
        "somebody changed the index of {} meanwhile, in spite of its lock; theirs is kept as {}",
        tree.dir.display(),
        kept.display()
    ));
}

/// Moves the ref, or says why not: then nothing has moved. Git may fail over its log after that, or be killed, and then there is no way
/// back: the locks that it has left go.
fn make_move(tree: &Tree<'_>, prepared: Prepared, (from, to): (Oid, Oid), mv: &RefMove) -> Result<(), Error> {
    match prepared.commit() {
        Ok(false) => return Ok(()),
        Ok(true) => {}
        Err(e) if has_moved(tree, from, to, mv).unwrap_or(false) => (tree.warn)(e.to_string()),
        Err(e) => return Err(e),
    }
    if let Err(e) = clear_locks(tree, to, mv) {
        (tree.warn)(e.to_string());
    }
    let_go(tree.repo, tree.scratch);
    Ok(())
}

/// Files that were brought over and can still be taken back.
#[must_use]
pub(super) struct Moved<'a> {
    dir: &'a Path,
    changes: Vec<Change>,
    held: Quarantine,
    /// Where git makes the index.
    next: PathBuf,
    /// That which was made in process.
    made: Option<NewIndex>,
    to: Oid,
}

/// Brings the files from one tree to another and makes of `index` a second one. `local` is what the user changed and does not
/// meet `changes`. A sparse checkout is then `against` its patterns.
pub(super) fn bring_files<'a>(
    tree: &Tree<'a>,
    index: &Path,
    (from, to): (Oid, Oid),
    changes: Vec<Change>,
    local: Local,
    against: &Against<'_>,
) -> Result<Moved<'a>, Error> {
    note_new_folders(tree, changes.iter().filter(|c| c.new.is_some()).map(|c| &c.path))?;
    let held = Quarantine::at(&tree.scratch.join(REPLACED))?;
    for change in changes.iter().filter(|c| is_replaced(c)) {
        held.link(tree.dir, &change.path)?;
    }
    let is_absent =
        |c: &&Change| is_replaced(c) && against.shown.contains(&c.path) && !stands(tree.dir, &c.path);
    let absent: Vec<RepoPath> = changes.iter().filter(is_absent).map(|c| c.path.clone()).collect();
    path::note(&tree.scratch.join(ABSENT), &absent)?;
    fault::point("transition.linked");
    let next = tree.scratch.join(INDEX);
    let mut moved = Moved { dir: tree.dir, changes, held, next, made: None, to };
    let here = match local {
        Local::None => bring(tree, &moved.held, index, &moved.changes, to),
        Local::FromHead | Local::From(_) => Ok(None),
    };
    let brought = here
        .and_then(|made| {
            moved.made = made;
            if moved.made.is_some() { Ok(()) } else { moved.bring_by_git(tree, index, from, against) }
        })
        .and_then(|()| moved.held.finish_removals(tree.dir, &moved.changes));
    if let Err(e) = brought {
        moved.undo(tree)?;
        return Err(e);
    }
    fault::point("transition.brought");
    let paths = moved.edited(tree, from)?;
    if paths.is_empty() {
        return Ok(moved);
    }
    moved.undo(tree)?;
    Err(Error::Raced { dir: tree.dir.to_owned(), paths })
}

/// The name in a step's folder of the second names of files that are replaced; it is there from before the first one is.
pub(super) const REPLACED: &str = "replaced";

/// The name in a step's folder of the list of changed files that a sparse checkout is to show and that were left out before.
const ABSENT: &str = "absent";

/// The name in a step's folder of the list of folders that git will have to make.
const NEW_FOLDERS: &str = "new-folders";

/// Notes which folders have to be made for `arriving`: going back removes those, and no empty one that was there before.
pub(super) fn note_new_folders<'p>(
    tree: &Tree<'_>,
    arriving: impl Iterator<Item = &'p RepoPath>,
) -> Result<(), Error> {
    let mut missing: BTreeSet<RepoPath> = arriving.flat_map(|p| p.parents().collect::<Vec<_>>()).collect();
    // A file in its place goes before.
    missing.retain(|folder| !folder.under(tree.dir).symlink_metadata().is_ok_and(|meta| meta.is_dir()));
    let list = tree.scratch.join(NEW_FOLDERS);
    // An earlier try of the same step may have made some.
    let mut all = path::noted(&list)?;
    all.extend(missing);
    path::note(&list, &all)
}

/// The folders that have to be made.
pub(super) fn new_folders(tree: &Tree<'_>) -> Result<Vec<RepoPath>, Error> {
    path::noted(&tree.scratch.join(NEW_FOLDERS))
}

/// Removes the folders that had to be made, as far as they are empty.
pub(super) fn remove_new_folders(tree: &Tree<'_>) {
    let mut folders = new_folders(tree).unwrap_or_default();
    // The deepest first.
    folders.sort_by(|a, b| b.cmp(a));
    for folder in folders {
        drop(remove_empty(&folder.under(tree.dir)));
    }
}

/// Takes the flags off the entries that `changes` replaces: git compares no file with such an entry again, and calls
/// one that was given a second name, or was only touched, "not uptodate". Returns those whose flags come back later.
fn unflag(tree: &Tree<'_>, index: &Path, changes: &[Change]) -> Result<Vec<flags::Flagged>, Error> {
    let touched: HashMap<&RepoPath, &Change> = changes.iter().map(|c| (&c.path, c)).collect();
    let mut flagged = flags::flagged_in(tree.repo, tree.dir, index)?;
    flagged.retain(|f| touched.contains_key(&f.path) && f.path.under(tree.dir).symlink_metadata().is_ok());
    if flagged.is_empty() {
        return Ok(Vec::new());
    }
    let paths: Vec<RepoPath> = flagged.iter().map(|f| f.path.clone()).collect();
    flags::clear_flags(tree.repo, tree.dir, index, &paths)?;
    flagged.retain(|f| touched.get(&f.path).is_some_and(|c| c.new.is_some()));
    Ok(flagged)
}

/// Whether a file stands there that git will replace or remove.
fn is_replaced(change: &Change) -> bool {
    change.old.is_some_and(|side| !side.is_gitlink())
}

impl<'a> Moved<'a> {
    /// Lets git bring the files and a copy of `index` over.
    fn bring_by_git(
        &self,
        tree: &Tree<'_>,
        index: &Path,
        from: Oid,
        against: &Against<'_>,
    ) -> Result<(), Error> {
        index::copy(index, &self.next)?;
        unfold(tree, &self.next, &self.changes)?;
        let linked = self.changes.iter().filter(|c| is_replaced(c)).map(|c| &c.path);
        let settled = settle(tree.repo, tree.dir, &self.next, linked)?;
        let flagged = unflag(tree, &self.next, &self.changes)?;
        let left_out = LeftOut::bring(tree, &self.next, &self.changes, (from, self.to), against)?;
        let (start, end) = left_out.as_ref().map_or((from, self.to), |left_out| (left_out.from, left_out.to));
        let call = tree.repo.git_in(tree.dir).args(settled.iter().copied()).args(flags::AS_MARKED).args([
            "read-tree",
            "-m",
            "-u",
        ]);
        let done = call
            .args(left_out.as_ref().map(|_| "--no-sparse-checkout"))
            .args([start.to_string(), end.to_string()])
            .index(&self.next)
            .changes()
            .run();
        done.map_err(|e| tree.repo.not_made(e, self.to))?;
        left_out.map_or(Ok(()), |left_out| left_out.finish(tree, &self.next))?;
        flags::flag_again(tree.repo, tree.dir, &self.next, &flagged)
    }

    /// What a killed process had brought over, found from its scratch folder.
    pub(super) fn found(tree: &Tree<'a>, changes: Vec<Change>, to: Oid) -> Result<Moved<'a>, Error> {
        let held = Quarantine::at(&tree.scratch.join(REPLACED))?;
        Ok(Moved { dir: tree.dir, changes, held, next: tree.scratch.join(INDEX), made: None, to })
    }

    /// What stands where files come back to, and is neither the file that was there nor what git was bringing. Where git cannot be
    /// asked, only what is byte for byte what was to come counts as that.
    fn strangers(&self, tree: &Tree<'_>) -> Vec<Stranger> {
        let is_known = |found: &Stranger, change: &Change| {
            let is_from = |side| is_from_git(tree, &found.path, side, self.to).unwrap_or(false);
            found.is_replaced && (self.held.is_like(self.dir, &found.path) || change.new.is_some_and(is_from))
        };
        let coming = self.changes.iter().filter(|c| self.held.holds(&c.path));
        let found = coming.filter_map(|change| Some((stranger(self.dir, &change.path)?, change)));
        found.filter(|(found, change)| !is_known(found, change)).map(|(found, _)| found).collect()
    }

    /// Files that were written to between being checked and being replaced: their old name was gone by then, the
    /// second one still shows the edit.
    fn edited(&self, tree: &Tree<'_>, from: Oid) -> Result<Vec<RepoPath>, Error> {
        let expected: Vec<(RepoPath, Side)> = self
            .changes
            .iter()
            .filter(|c| is_replaced(c) && self.held.holds(&c.path))
            .filter_map(|c| Some((c.path.clone(), c.old?)))
            .collect();
        if expected.is_empty() {
            return Ok(Vec::new());
        }
        let attributes = || attributes_for(tree.repo, from, expected.iter().map(|(p, _)| p));
        self.held.differing(tree, &expected, &attributes)
    }

    /// Takes everything back: what git put there is set aside, what was there returns, by renames. A file that is not
    /// what git would have put there is somebody's own and stays.
    ///
    /// # Errors
    /// [`Error::Stuck`] when that failed too; it says where the files are, which are not deleted then.
    pub(super) fn undo(self, tree: &Tree<'_>) -> Result<(), Error> {
        let undone = self.take_arrived(tree).and_then(|()| self.give_back(tree, &self.strangers(tree)));
        undone.map_err(|source| self.stuck(tree, source))
    }

    /// The same where all that is somebody's own makes way for what was there. Returns a commit with it, as far as one can hold it.
    ///
    /// # Errors
    /// As above.
    pub(super) fn undo_and_save(self, tree: &Tree<'_>) -> Result<Option<Oid>, Error> {
        let undone = self.take_arrived(tree).and_then(|()| save(tree, self.strangers(tree)));
        let undone = undone.and_then(|saved| self.give_back(tree, &[]).map(|()| saved));
        undone.map_err(|source| self.stuck(tree, source))
    }

    fn stuck(&self, tree: &Tree<'_>, source: Error) -> Error {
        Error::Stuck { dir: self.dir.to_owned(), kept: tree.scratch.to_owned(), source: Box::new(source) }
    }

    /// Takes away the new files that git put there.
    fn take_arrived(&self, tree: &Tree<'_>) -> Result<(), Error> {
        let arrived = Quarantine::fresh(tree.scratch, "arrived")?;
        let absent: HashSet<RepoPath> = path::noted(&tree.scratch.join(ABSENT))?.into_iter().collect();
        let is_new = |c: &&Change| c.old.is_none() || absent.contains(&c.path);
        let expected: Vec<(RepoPath, Side)> = self
            .changes
            .iter()
            .filter(|c| is_new(c) && stands(self.dir, &c.path))
            .filter_map(|c| Some((c.path.clone(), c.new?)))
            .collect();
        // On a full disk git cannot be asked; then only what is byte for byte git's is taken for git's.
        let own = self.foreign(tree, &expected).map(|own| self.without_cut_short(tree, own, &expected));
        let own = own.unwrap_or_else(|_| {
            let strange =
                |(path, side): &&(RepoPath, Side)| !is_blob(tree.repo, &path.under(self.dir), *side);
            expected.iter().filter(strange).map(|(path, _)| path.clone()).collect()
        });
        for (path, _) in expected.iter().filter(|(p, _)| !own.contains(p)) {
            arrived.take(self.dir, path)?;
        }
        remove_new_folders(tree);
        Ok(())
    }

    /// Brings back what was there, but for what would go over `strangers`.
    fn give_back(&self, tree: &Tree<'_>, strangers: &[Stranger]) -> Result<(), Error> {
        let is_in_the_way = |path: &RepoPath| {
            strangers.iter().any(|s| s.path == *path || path.parents().any(|up| up == s.path))
        };
        let mut edited = Vec::new();
        for change in self.changes.iter().filter(|c| self.held.holds(&c.path)) {
            if self.held.is_same_file(self.dir, &change.path) {
                continue;
            }
            if !is_in_the_way(&change.path) {
                self.held.give_over(self.dir, &change.path)?;
            } else if change.old.is_some_and(|side| !self.held.is_blob(tree.repo, &change.path, side)) {
                // Somebody wrote to what was there, and then put another file in its place: both are kept.
                edited.push(change.path.clone());
            }
        }
        match edited.is_empty() {
            true => Ok(()),
            false => Err(Error::Raced { dir: self.dir.to_owned(), paths: edited }),
        }
    }

    /// The paths without those that git was writing when it was killed: such a file ends somewhere.
    fn without_cut_short(
        &self,
        tree: &Tree<'_>,
        mut paths: Vec<RepoPath>,
        expected: &[(RepoPath, Side)],
    ) -> Vec<RepoPath> {
        paths.retain(|path| {
            let side = expected.iter().find(|(p, _)| p == path).map(|(_, side)| *side);
            !side.is_some_and(|side| is_from_git(tree, path, side, self.to).unwrap_or(false))
        });
        paths
    }

    /// Of files that stand where git was to put new ones, those that are something else.
    fn foreign(&self, tree: &Tree<'_>, expected: &[(RepoPath, Side)]) -> Result<Vec<RepoPath>, Error> {
        let check = tree.scratch.join("check-arrived");
        let paths = || expected.iter().map(|(p, _)| p);
        let attributes = || attributes_for(tree.repo, self.to, paths());
        differing(tree.repo, &tree.git_dir, self.dir, &check, expected, &attributes)
    }

    /// The index to install.
    fn take_index(&mut self) -> NewIndex {
        self.made.take().unwrap_or_else(|| NewIndex::At(self.next.clone()))
    }

    /// Accepts what was done.
    pub(super) fn keep(self) {
        self.held.discard();
    }
}

/// The `.gitattributes` files of a tree that can speak about `paths`: they decide how a file's bytes become a blob.
pub(super) fn attributes_for<'p>(
    repo: &Repo,
    tree: Oid,
    paths: impl Iterator<Item = &'p RepoPath>,
) -> Result<Vec<(RepoPath, Side)>, Error> {
    diff::tree_files(repo, tree, &attribute_paths(paths))
}

/// Where files with attributes lie that can speak about `paths`.
pub(super) fn attribute_paths<'p>(paths: impl Iterator<Item = &'p RepoPath>) -> BTreeSet<RepoPath> {
    let mut all = BTreeSet::from([RepoPath::new(".gitattributes")]);
    for path in paths {
        all.extend(path.parents().map(|up| up.join(b".gitattributes")));
    }
    all
}
