//! Owns making a worktree clean again once a snapshot holds what made it dirty. Nothing is deleted: files move aside.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use super::bring::write;
use super::in_the_way::refuse_in_the_way;
use super::index::{self, INDEX, IndexLock, NewIndex};
use super::left_out::{against_patterns, had, leave_out};
use super::make_way::{Stranger, save, stranger};
use super::open_op::refuse_open;
use super::path::{self, nul_separated};
use super::patterns::Patterns;
use super::plain::{as_is, is_ordinary, is_plain};
use super::quarantine::{Quarantine, is_blob, move_new, prune_below, prune_parents, stands};
use super::renumber::Renumbered;
use super::repair::is_from_git;
use super::shut::refuse_shut;
use super::transition::{Tree, attributes_for};
use super::{Change, Error, Oid, RepoPath, Side, Snapshot, diff, flags, tree_changes};
use crate::fault;

/// Who keeps a commit with files that somebody has written, before others go back over them.
pub(crate) type Keep<'a> = &'a dyn Fn(Oid) -> Result<(), Error>;

/// Moves every path that the snapshot holds to `aside`, after comparing it with the snapshot, and puts HEAD's content
/// in its place. On any failure everything is as it was; `keep` is given what was written in its place meanwhile.
///
/// # Errors
/// [`Error::Raced`] when a file or the index changed since the snapshot was taken; [`Error::Shut`] and [`Error::Replaced`]
/// before anything is touched.
pub(crate) fn clear(tree: &Tree<'_>, snapshot: &Snapshot, aside: &Path, keep: Keep<'_>) -> Result<(), Error> {
    let lock = IndexLock::of(tree)?;
    refuse_open(tree.dir, &tree.git_dir)?;
    if snapshot.index_version.is_some() && lock.before() != snapshot.index_version {
        return Err(raced(tree, vec![RepoPath::new("the index")]));
    }
    // It is the very index that the snapshot was taken of.
    let is_at_head = snapshot.index_version.is_some()
        && snapshot.index_tree == tree.repo.tree_of(snapshot.base)?
        && snapshot.intent_to_add.is_empty()
        && snapshot.stages.is_none();
    let held = Held::to_clear(tree, snapshot)?;
    refuse_shut(tree, &held.all())?;
    refuse_in_the_way(tree, &held.tracked, &held.loose().map(|(path, _)| path).collect())?;
    let aside = Quarantine::at(aside)?;
    let done = held
        .move_aside(tree, &aside)
        .inspect(|()| fault::point("clear.moved"))
        .and_then(|()| held.check(tree, snapshot, &aside))
        .and_then(|()| held.fill(tree, snapshot, lock.index(), is_at_head));
    let done = done.inspect(|_| fault::point("clear.filled")).and_then(|next| lock.install(next));
    if let Err(e) = done {
        if let Some(saved) = held.take_back(tree, &aside, &snapshot.empty_dirs)? {
            keep(saved)?;
        }
        return Err(e);
    }
    fault::point("clear.installed");
    Ok(())
}

fn raced(tree: &Tree<'_>, paths: Vec<RepoPath>) -> Error {
    Error::Raced { dir: tree.dir.to_owned(), paths }
}

/// What a snapshot says about the files of a worktree.
pub(super) struct Held {
    /// The commit that HEAD was at.
    base: Oid,
    /// From HEAD to the tracked files as they were.
    pub(super) tracked: Vec<Change>,
    /// The untracked files.
    pub(super) untracked: Vec<(RepoPath, Side)>,
    /// The ignored files that stand where HEAD has something else. No object has their content.
    pub(super) ignored: Vec<(RepoPath, Side)>,
}

impl Held {
    /// Reads it from the snapshot's trees.
    pub(super) fn of(tree: &Tree<'_>, snapshot: &Snapshot) -> Result<Held, Error> {
        let mut tracked = tree_changes(tree.repo, snapshot.base, snapshot.work_tree)?;
        // Submodules are transitions of their own: their folders stay.
        tracked.retain(|c| ![c.old, c.new].into_iter().flatten().any(Side::is_gitlink));
        let untracked = match snapshot.untracked_tree {
            None => Vec::new(),
            Some(id) => diff::tree_files(tree.repo, id, &BTreeSet::new())?,
        };
        let ignored = snapshot.ignored.iter().map(|file| (file.path.clone(), file.side())).collect();
        Ok(Held { base: snapshot.base, tracked, untracked, ignored })
    }

    /// What a snapshot says about the files of a worktree that is to be cleared: also those that a sparse checkout shows or leaves out
    /// against its patterns. Who goes to another commit from a clear worktree finds it as git would have made it, and the snapshot's
    /// index says what comes back.
    pub(super) fn to_clear(tree: &Tree<'_>, snapshot: &Snapshot) -> Result<Held, Error> {
        let mut held = Held::of(tree, snapshot)?;
        if !flags::is_sparse(&tree.git_dir) {
            return Ok(held);
        }
        let own: BTreeSet<RepoPath> = held.all().into_iter().map(|change| change.path).collect();
        let staged = tree_changes(tree.repo, snapshot.base, snapshot.index_tree)?;
        let staged: BTreeSet<&RepoPath> =
            staged.iter().map(|c| &c.path).chain(&snapshot.intent_to_add).collect();
        let is_of_head = |path: &RepoPath| !own.contains(path) && !staged.contains(path);
        held.tracked.extend(against_patterns(tree, &snapshot.put_back, is_of_head)?);
        Ok(held)
    }

    /// Every path that it has otherwise than HEAD.
    pub(super) fn all(&self) -> Vec<Change> {
        let fresh =
            |(path, side): &(RepoPath, Side)| Change { path: path.clone(), old: None, new: Some(*side) };
        self.tracked.iter().cloned().chain(self.loose().map(fresh)).collect()
    }

    /// The files that git does not track, ignored or not.
    pub(super) fn loose(&self) -> impl Iterator<Item = &(RepoPath, Side)> {
        self.untracked.iter().chain(&self.ignored)
    }

    /// No object has an ignored file: where it is not in our keeping any more, what stands in its place stays as it is.
    pub(super) fn leave_lost(&mut self, holds: impl Fn(&RepoPath) -> bool) {
        let all = std::mem::take(&mut self.ignored);
        let (kept, lost): (Vec<_>, Vec<_>) = all.into_iter().partition(|(path, _)| holds(path));
        self.ignored = kept;
        self.tracked.retain(|c| c.new.is_some() || !lost.iter().any(|(path, _)| *path == c.path));
    }

    /// Changes of tracked files, and with them the arrival of the others. Where one was taken out of the index but kept, it is
    /// HEAD's that leaves first.
    pub(super) fn with_loose(&self, changes: &[Change]) -> Vec<Change> {
        let leaves = |path: &RepoPath| changes.iter().any(|c| c.path == *path && c.new.is_none());
        let fresh = self.loose().filter(|(path, _)| !leaves(path));
        let fresh = fresh.map(|(path, side)| Change { path: path.clone(), old: None, new: Some(*side) });
        changes.iter().cloned().chain(fresh).collect()
    }

    /// Every file that exists in the snapshot's worktree and not in HEAD in this form.
    pub(super) fn files(&self) -> Vec<(RepoPath, Side)> {
        self.tracked_files().chain(self.loose().cloned()).collect()
    }

    /// Those of them whose content the snapshot's objects have.
    pub(super) fn files_in_objects(&self) -> Vec<(RepoPath, Side)> {
        self.tracked_files().chain(self.untracked.iter().cloned()).collect()
    }

    fn tracked_files(&self) -> impl Iterator<Item = (RepoPath, Side)> {
        self.tracked.iter().filter_map(|c| Some((c.path.clone(), c.new?)))
    }

    /// The `.gitattributes` files that were in force when the snapshot was taken.
    pub(super) fn attributes(
        &self,
        tree: &Tree<'_>,
        snapshot: &Snapshot,
    ) -> Result<Vec<(RepoPath, Side)>, Error> {
        let files = self.files();
        let mut all = attributes_for(tree.repo, snapshot.work_tree, files.iter().map(|(p, _)| p))?;
        let own = self.untracked.iter().filter(|(p, _)| p.ends_with_name(b".gitattributes"));
        all.extend(own.cloned());
        Ok(all)
    }

    fn move_aside(&self, tree: &Tree<'_>, aside: &Quarantine) -> Result<(), Error> {
        let mut gone = Vec::new();
        for (path, _) in self.files() {
            if !aside.take(tree.dir, &path)? {
                gone.push(path.clone());
            }
            prune_parents(tree.dir, &path);
        }
        if gone.is_empty() { Ok(()) } else { Err(raced(tree, gone)) }
    }

    fn check(&self, tree: &Tree<'_>, snapshot: &Snapshot, aside: &Quarantine) -> Result<(), Error> {
        let attributes = || self.attributes(tree, snapshot);
        let edited = aside.differing(tree, &self.files(), &attributes)?;
        if edited.is_empty() { Ok(()) } else { Err(raced(tree, edited)) }
    }

    /// Brings HEAD's content to where files were taken away, and makes its index. The present one may be known to name what HEAD
    /// has.
    fn fill(
        &self,
        tree: &Tree<'_>,
        snapshot: &Snapshot,
        index: &Path,
        is_at_head: bool,
    ) -> Result<NewIndex, Error> {
        let next = tree.scratch.join(INDEX);
        let wanted: Vec<(RepoPath, Side)> =
            self.tracked.iter().filter_map(|c| Some((c.path.clone(), c.old?))).collect();
        if is_at_head && let Some(made) = self.fill_in_process(tree, index, &next, &wanted)? {
            return Ok(made);
        }
        index::copy(index, &next)?;
        let call = || tree.repo.git_in(tree.dir).args(flags::AS_MARKED).index(&next);
        if !is_at_head {
            // With the content of an empty file such an entry would pass for that file's, and stay.
            let announced = nul_separated(&snapshot.intent_to_add);
            if !announced.is_empty() {
                call()
                    .args(["update-index", "--force-remove", "-z", "--stdin"])
                    .input(announced)
                    .changes()
                    .run()?;
            }
            call().args(["read-tree", "-i", "-m"]).arg(snapshot.base.to_string()).changes().run()?;
        }
        let mut wanted: Vec<RepoPath> = wanted.into_iter().map(|(path, _)| path).collect();
        let skipped: BTreeSet<RepoPath> = flags::flagged(tree.repo, tree.dir, &tree.git_dir)?
            .into_iter()
            .filter(|f| f.skipped)
            .map(|f| f.path)
            .collect();
        if let Some(patterns) = Patterns::of(tree)? {
            // Where git would have them. What was otherwise comes back with the snapshot.
            let (out, rest): (Vec<_>, _) = wanted.into_iter().partition(|p| patterns.leave_out(p));
            // An empty folder in the place of one is a change to git; the snapshot has noted it.
            for path in &out {
                prune_below(&path.under(tree.dir));
            }
            leave_out(tree, &next, out.iter())?;
            wanted = rest;
        }
        let shown: Vec<RepoPath> = wanted.iter().filter(|p| skipped.contains(p)).cloned().collect();
        flags::clear_flags(tree.repo, tree.dir, &next, &shown)?;
        begin_filling(tree, &wanted)?;
        let list = nul_separated(&wanted);
        if !list.is_empty() {
            call().args(["checkout-index", "--index", "-z", "--stdin"]).input(list).changes().run()?;
        }
        Ok(NewIndex::At(next))
    }

    /// The same where nothing has a say in what git makes of these files, and `index` has what HEAD has. None when that is
    /// git's to do: then nothing was done.
    fn fill_in_process(
        &self,
        tree: &Tree<'_>,
        index: &Path,
        next: &Path,
        wanted: &[(RepoPath, Side)],
    ) -> Result<Option<NewIndex>, Error> {
        let as_they_were = |(path, side): &(RepoPath, Side)| Change {
            path: path.clone(),
            old: Some(*side),
            new: Some(*side),
        };
        let changes: Vec<Change> = wanted.iter().map(as_they_were).collect();
        // One with attributes that was taken away has a say in what git makes of the others.
        if !self.files().iter().all(|(path, _)| is_ordinary(path)) || !is_plain(tree, &changes) {
            return Ok(None);
        }
        let paths = wanted.iter().map(|(path, _)| path).collect();
        let plan = Renumbered::plan(tree, index, &paths);
        let Some(plan) = plan.filter(|plan| plan.writes_as_is(tree, wanted)) else { return Ok(None) };
        begin_filling(tree, &wanted.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>())?;
        for (path, side) in wanted {
            write(tree, path, *side)?;
        }
        if let Some(made) = plan.made(tree) {
            return Ok(Some(made));
        }
        index::copy(index, next)?;
        flags::refresh(tree.repo, tree.dir, next)?;
        Ok(Some(NewIndex::At(next.to_owned())))
    }

    /// Puts everything back where it was. What was filled in goes; what somebody else has put in the place of a file that comes back
    /// is kept: returns a commit with what one can hold, the rest has another name. A file that somebody made where the user
    /// had deleted one stays.
    pub(super) fn take_back(
        &self,
        tree: &Tree<'_>,
        aside: &Quarantine,
        empty_dirs: &[RepoPath],
    ) -> Result<Option<Oid>, Error> {
        let noted: BTreeSet<RepoPath> = path::noted(&tree.scratch.join(FILLED))?.into_iter().collect();
        let filled = Quarantine::fresh(tree.scratch, "filled")?;
        // Before anything was filled in, every file was set aside. One that is not there any more has come back already, by a
        // recovery that was cut short, and may look like a beginning of HEAD's.
        let files = self.files();
        let own: BTreeSet<&RepoPath> = files.iter().map(|(path, _)| path).collect();
        for path in noted.iter().filter(|path| !own.contains(path) && self.is_filled(tree, path)) {
            filled.take(tree.dir, path)?;
            // A file may have to return to where this folder is.
            prune_parents(tree.dir, path);
        }
        let saved = save(tree, self.strangers(tree, aside, &noted))?;
        for (path, _) in files.iter().filter(|(p, _)| aside.holds(p)) {
            aside.give_over(tree.dir, path)?;
            fault::point("clear.given");
        }
        for dir in empty_dirs {
            // Where somebody has put a file meanwhile, that stays.
            drop(std::fs::create_dir_all(dir.under(tree.dir)));
        }
        Ok(saved)
    }

    /// What stands where files come back to, and is neither such a file nor what was filled in.
    fn strangers(&self, tree: &Tree<'_>, aside: &Quarantine, noted: &BTreeSet<RepoPath>) -> Vec<Stranger> {
        let is_known = |found: &Stranger, side: Side| {
            found.is_replaced
                && (is_blob(tree.repo, &found.path.under(tree.dir), side)
                    || (noted.contains(&found.path) && self.is_filled(tree, &found.path)))
        };
        let coming = self.files().into_iter().filter(|(path, _)| aside.holds(path));
        let found = coming.filter_map(|(path, side)| Some((stranger(tree.dir, &path)?, side)));
        found.filter(|(found, side)| !is_known(found, *side)).map(|(found, _)| found).collect()
    }

    /// Whether what stands at a path that was noted before it was written is HEAD's file, or a beginning of it. Where git cannot
    /// be asked, on a full disk, only what is byte for byte HEAD's is.
    fn is_filled(&self, tree: &Tree<'_>, path: &RepoPath) -> bool {
        let head = self.tracked.iter().find(|c| c.path == *path).and_then(|c| c.old);
        let is_from = |side| is_from_git(tree, path, side, self.base).unwrap_or(false);
        stands(tree.dir, path) && head.is_some_and(is_from)
    }
}

/// The name in a step's folder of the list of files that it writes where files were moved away.
const FILLED: &str = "filled";

/// Notes what will be written, before it is: only that is taken for this step's own when it is taken back. Nothing may stand
/// there but empty folders, which the snapshot has noted.
fn begin_filling(tree: &Tree<'_>, paths: &[RepoPath]) -> Result<(), Error> {
    let mut there: Vec<RepoPath> =
        paths.iter().filter_map(|path| stranger(tree.dir, path)).map(|found| found.path).collect();
    there.dedup();
    if !there.is_empty() {
        return Err(raced(tree, there));
    }
    path::note(&tree.scratch.join(FILLED), paths)
}

/// Takes up what was written into set-aside files since: through a descriptor that was open, by a logger or a server.
/// Those bytes are the newest the user has. Returns the snapshot with them, or none when nothing was written. A file that was
/// only cut short has nothing that the snapshot lacks: it moves to a folder of its own, which a warning names, and the
/// snapshot's objects count.
pub(crate) fn renew(tree: &Tree<'_>, snapshot: &Snapshot, aside: &Path) -> Result<Option<Snapshot>, Error> {
    let held = Held::of(tree, snapshot)?;
    let quarantine = Quarantine::at(aside)?;
    let mut present = held.files_in_objects();
    let own: BTreeSet<RepoPath> = held.all().into_iter().map(|change| change.path).collect();
    let shown = had(tree, &aside.join("index"), &snapshot.put_back);
    present.extend(shown.into_iter().filter(|(path, _)| !own.contains(path)));
    present.retain(|(path, _)| quarantine.holds(path));
    let attributes = || held.attributes(tree, snapshot);
    let mut written = quarantine.differing(tree, &present, &attributes)?;
    let short: Vec<RepoPath> = present
        .iter()
        .filter(|(path, _)| written.contains(path))
        .filter(|(path, side)| is_cut_short(tree, &quarantine.place(path), (path, *side), snapshot.work_tree))
        .map(|(path, _)| path.clone())
        .collect();
    put_apart(tree, &quarantine, aside, &short)?;
    written.retain(|path| !short.contains(path));
    if written.is_empty() {
        return Ok(None);
    }
    let loose = |p: &&RepoPath| held.untracked.iter().any(|(u, _)| u == *p);
    let (untracked, tracked): (Vec<_>, Vec<_>) = written.iter().partition(loose);
    let mut new =
        Snapshot { work_tree: quarantine.retree(tree, snapshot.work_tree, &tracked)?, ..snapshot.clone() };
    if let Some(old) = snapshot.untracked_tree {
        new.untracked_tree = Some(quarantine.retree(tree, old, &untracked)?);
    }
    new.recommit(tree.repo)?;
    Ok(Some(new))
}

/// Copies those files of a snapshot of this worktree to `aside` which git would not write byte for byte from its objects, because
/// a filter or line ends may come in between, or because it ignores them.
pub(crate) fn copy_filtered(tree: &Tree<'_>, snapshot: &Snapshot, aside: &Path) -> Result<(), Error> {
    let held = Held::of(tree, snapshot)?;
    copy_unlike(tree, aside, &held.files_in_objects(), &held.ignored)
}

/// Copies those untracked files of a snapshot that came back to this worktree to `aside` which git would not write byte for byte
/// from its objects, and those that it ignores: the next way back takes them from there.
pub(crate) fn copy_untracked(tree: &Tree<'_>, snapshot: &Snapshot, aside: &Path) -> Result<(), Error> {
    let held = Held::of(tree, snapshot)?;
    copy_unlike(tree, aside, &held.untracked, &held.ignored)
}

fn copy_unlike(
    tree: &Tree<'_>,
    aside: &Path,
    files: &[(RepoPath, Side)],
    ignored: &[(RepoPath, Side)],
) -> Result<(), Error> {
    let aside = Quarantine::at(aside)?;
    let paths: Vec<RepoPath> = files.iter().map(|(path, _)| path.clone()).collect();
    let is_plain = as_is(tree.repo, tree.dir, &paths).is_some();
    let is_like =
        |(path, side): &&(RepoPath, Side)| is_plain && is_blob(tree.repo, &path.under(tree.dir), *side);
    let unlike = files.iter().filter(|file| !is_like(file)).chain(ignored);
    for (path, _) in unlike.filter(|(path, _)| !aside.holds(path)) {
        aside.copy(tree.dir, path)?;
    }
    Ok(())
}

/// Moves damaged copies to a new folder beside the set-aside files, and names it.
fn put_apart(tree: &Tree<'_>, from: &Quarantine, aside: &Path, paths: &[RepoPath]) -> Result<(), Error> {
    if paths.is_empty() {
        return Ok(());
    }
    let free = |n: &u32| !aside.join(format!("cut-short-{n}")).exists();
    let dir = aside.join(format!("cut-short-{}", (1..u32::MAX).find(free).unwrap_or_default()));
    for path in paths {
        let to = path.under(&dir);
        if let Some(parent) = to.parent() {
            std::fs::create_dir_all(parent).map_err(Error::io("create", parent))?;
        }
        move_new(&from.place(path), &to)?;
        (tree.warn)(format!(
            "{path} was cut short while it was set aside; it comes from git's objects, and the short copy is kept as {}",
            to.display()
        ));
    }
    Ok(())
}

/// Whether a file is a beginning of what a snapshot has at a path, and not all of it: as git keeps it, with other line ends, or
/// as its filters write it.
fn is_cut_short(tree: &Tree<'_>, file: &Path, (path, side): (&RepoPath, Side), from: Oid) -> bool {
    if side.mode == 0o120_000 || !file.symlink_metadata().is_ok_and(|meta| meta.is_file()) {
        return false;
    }
    let Ok(there) = std::fs::read(file) else { return false };
    let call = || tree.repo.git_in(tree.dir).env("GIT_ATTR_SOURCE", from.to_string());
    let kept = call().args(["cat-file", "blob"]).arg(side.oid.to_string()).run();
    let begins = |whole: &[u8], there: &[u8]| there.len() < whole.len() && whole.starts_with(there);
    if kept.is_ok_and(|kept| begins(&kept.stdout, &there) || begins(&unix(&kept.stdout), &unix(&there))) {
        return true;
    }
    let mut filtered = OsString::from("--path=").into_vec();
    filtered.extend_from_slice(path.as_bytes());
    let written = call()
        .args(["cat-file", "--filters"])
        .arg(OsString::from_vec(filtered))
        .arg(side.oid.to_string())
        .run();
    written.is_ok_and(|written| begins(&written.stdout, &there))
}

/// A text with the line ends of Unix. One that was cut amid a line end ends before it.
fn unix(text: &[u8]) -> Vec<u8> {
    let ends = |at: usize| text[at] == b'\r' && text.get(at + 1).is_none_or(|next| *next == b'\n');
    (0..text.len()).filter(|at| !ends(*at)).map(|at| text[at]).collect()
}
