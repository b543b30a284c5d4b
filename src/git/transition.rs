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

use super::index::{self, IndexLock};
use super::open_op::refuse_open;
use super::path::nul_separated;
use super::quarantine::{Quarantine, differing, is_blob, remove_empty, settle};
use super::ref_move::{self, Head, RefMove};
use super::repair::{has_moved, is_from_git};
use super::status::{changed_since, status};
use super::submodule::tell_left_behind;
use super::{Change, Error, Oid, Repo, RepoPath, Side, diff, flags, tree_changes};
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
/// as they are, staged state included.
///
/// # Errors
/// [`Error::OpenOperation`], [`Error::Overlap`], [`Error::Obstructed`], [`Error::IndexLocked`], [`Error::RefMoved`]:
/// refused, nothing changed. [`Error::Raced`]: files changed meanwhile and everything was put back.
pub(crate) fn transition(tree: &Tree<'_>, from: Oid, to: Oid, mv: &RefMove, why: &str) -> Result<(), Error> {
    let lock = IndexLock::take(tree.dir, &tree.git_dir, tree.scratch)?;
    let prepared = ref_move::prepare(tree, mv, (from, to), why)?;
    fault::point("transition.locked");
    refuse_stale(tree, from, mv)?;
    refuse_open(tree.dir, &tree.git_dir)?;
    let changes = tree_changes(tree.repo, from, to)?;
    if changes.is_empty() {
        prepared.commit()?;
        return Ok(());
    }
    let base = (*mv == RefMove::Nothing).then_some(from);
    refuse_overlap(tree, &changes, base)?;
    let moved = bring_files(tree, lock.index(), from, to, changes)?;
    // All that can fail on a full disk, or because somebody deleted our lock, comes before the ref moves.
    let staged = match lock.stage(moved.index()) {
        Ok(staged) => staged,
        Err(e) => {
            moved.undo(tree)?;
            return Err(e);
        }
    };
    fault::point("transition.staged");
    if let Err(e) = prepared.commit() {
        // git may fail over its log after the ref has moved; then there is no way back.
        if !has_moved(tree, from, to, mv).unwrap_or(false) {
            moved.undo(tree)?;
            return Err(e);
        }
        (tree.warn)(e.to_string());
    }
    fault::point("transition.moved");
    let installed = staged.install_whatever().map_err(|source| Error::Stuck {
        dir: tree.dir.to_owned(),
        kept: tree.scratch.to_owned(),
        source: Box::new(source),
    })?;
    fault::point("transition.installed");
    tell_left_behind(tree, &moved.changes);
    moved.keep();
    if let Some(kept) = installed {
        (tree.warn)(format!(
            "somebody changed the index of {} meanwhile, in spite of its lock; theirs is kept as {}",
            tree.dir.display(),
            kept.display()
        ));
    }
    Ok(())
}

/// Refuses what `transition` of a worktree whose HEAD is at `from` would refuse, and changes nothing.
///
/// # Errors
/// [`Error::OpenOperation`], [`Error::Overlap`], [`Error::Obstructed`].
pub(crate) fn require_free(tree: &Tree<'_>, from: Oid, to: Oid) -> Result<(), Error> {
    refuse_open(tree.dir, &tree.git_dir)?;
    refuse_overlap(tree, &tree_changes(tree.repo, from, to)?, None)
}

/// What the transaction itself does not check. One that switches HEAD checks what HEAD names, not where that branch is;
/// one that moves a branch does not check that HEAD is on it. Both hold HEAD.lock by now, if HEAD is what it should be.
fn refuse_stale(tree: &Tree<'_>, from: Oid, mv: &RefMove) -> Result<(), Error> {
    let moved = |name: &str, why: &str| Err(Error::RefMoved { name: name.to_owned(), why: why.to_owned() });
    match mv {
        RefMove::Switch { from: Head::Branch(branch), .. } => {
            if tree.repo.branch_tip(branch)? == Some(from) {
                return Ok(());
            }
            moved(branch, "it has moved meanwhile")
        }
        RefMove::Branch(branch) => {
            if tree.repo.head_branch(tree.dir, &tree.git_dir)?.as_deref() == Some(branch) {
                return Ok(());
            }
            moved(branch, "the worktree is on something else now")
        }
        RefMove::Switch { from: Head::Detached(_), .. } | RefMove::Nothing => Ok(()),
    }
}

/// Refuses when a local change, staged or not, shown by git or hidden by a flag, meets a path of `changes`. A change is
/// what differs from HEAD, or from `base` where HEAD has moved on already.
pub(super) fn refuse_overlap(tree: &Tree<'_>, changes: &[Change], base: Option<Oid>) -> Result<(), Error> {
    let forbidden = |c: &&Change| {
        tree.off_limits.as_ref().is_some_and(|off| c.path == *off || c.path.parents().any(|up| up == *off))
    };
    let paths: Vec<RepoPath> = changes.iter().filter(forbidden).map(|c| c.path.clone()).collect();
    if !paths.is_empty() {
        return Err(Error::Obstructed { dir: tree.dir.to_owned(), paths });
    }
    let touched: HashSet<&RepoPath> = changes.iter().map(|c| &c.path).collect();
    let links: HashSet<&RepoPath> = changes.iter().filter(|c| c.is_in_submodule()).map(|c| &c.path).collect();
    let dirt = match base {
        // From one commit of a submodule to another only the index goes; its folder is nobody's business here.
        None => {
            let mut dirt = status(tree.repo, tree.dir, false)?;
            dirt.entries.retain(|e| !(e.is_inside_submodule() && links.contains(&e.path)));
            dirt.paths()
        }
        Some(base) => changed_since(tree.repo, tree.dir, base)?,
    };
    let hidden = flags::hidden_edits(tree.repo, tree.dir, &tree.git_dir, tree.scratch)?;
    let mut met: Vec<RepoPath> = dirt
        .into_iter()
        .chain(hidden)
        .filter(|p| touched.contains(p) || p.parents().any(|up| touched.contains(&up)))
        .collect();
    if !met.is_empty() {
        met.sort();
        met.dedup();
        return Err(Error::Overlap { dir: tree.dir.to_owned(), paths: met });
    }
    let paths = obstructions(tree.dir, changes, tree.repo.setting_bool("core.ignoreCase") == Some(true));
    if paths.is_empty() {
        return Ok(());
    }
    Err(Error::Obstructed { dir: tree.dir.to_owned(), paths })
}

/// Files that git does not track, ignored ones included, standing where `changes` wants to put something.
/// (`read-tree` overwrites an ignored file and deletes an ignored folder without a word.)
fn obstructions(dir: &Path, changes: &[Change], ignore_case: bool) -> Vec<RepoPath> {
    let leaving: HashSet<&RepoPath> = changes.iter().filter(|c| c.old.is_some()).map(|c| &c.path).collect();
    let folded: HashSet<Vec<u8>> = if ignore_case {
        leaving.iter().map(|p| p.as_bytes().to_ascii_lowercase()).collect()
    } else {
        HashSet::new()
    };
    let mut out = Vec::new();
    let arriving = changes.iter().filter(|c| c.old.is_none() && c.new.is_some_and(|n| !n.is_gitlink()));
    for change in arriving {
        let blocked =
            change.path.parents().find(|up| up.under(dir).symlink_metadata().is_ok_and(|m| !m.is_dir()));
        match blocked {
            Some(up) if leaving.contains(&up) => continue,
            Some(up) => {
                out.push(up);
                continue;
            }
            None => {}
        }
        let Ok(meta) = change.path.under(dir).symlink_metadata() else { continue };
        if meta.is_dir() {
            strangers(dir, &change.path, &leaving, &mut out);
        } else if !folded.contains(&change.path.as_bytes().to_ascii_lowercase()) {
            out.push(change.path.clone());
        }
    }
    out.sort();
    out.dedup();
    out
}

/// Files below a folder that are not among those that go away.
fn strangers(dir: &Path, folder: &RepoPath, leaving: &HashSet<&RepoPath>, out: &mut Vec<RepoPath>) {
    use std::os::unix::ffi::OsStrExt;
    let Ok(entries) = std::fs::read_dir(folder.under(dir)) else {
        out.push(folder.clone());
        return;
    };
    for entry in entries.flatten() {
        let path = folder.join(entry.file_name().as_bytes());
        if entry.file_type().is_ok_and(|t| t.is_dir()) {
            strangers(dir, &path, leaving, out);
        } else if !leaving.contains(&path) {
            out.push(path);
        }
    }
}

/// Files that were brought over and can still be taken back.
#[must_use]
pub(super) struct Moved<'a> {
    dir: &'a Path,
    changes: Vec<Change>,
    held: Quarantine,
    next: PathBuf,
    to: Oid,
}

/// Brings the files from one tree to another with a second index, starting from a copy of `index`.
pub(super) fn bring_files<'a>(
    tree: &Tree<'a>,
    index: &Path,
    from: Oid,
    to: Oid,
    changes: Vec<Change>,
) -> Result<Moved<'a>, Error> {
    let next = tree.scratch.join("index");
    index::copy(index, &next)?;
    note_new_folders(tree, changes.iter().filter(|c| c.old.is_none()).map(|c| &c.path))?;
    let held = Quarantine::at(&tree.scratch.join("replaced"))?;
    for change in changes.iter().filter(|c| is_replaced(c)) {
        held.link(tree.dir, &change.path)?;
    }
    fault::point("transition.linked");
    settle(tree.repo, tree.dir, &next)?;
    let flagged = unflag(tree, &next, &changes)?;
    let moved = Moved { dir: tree.dir, changes, held, next, to };
    let brought = tree
        .repo
        .git_in(tree.dir)
        .args(["read-tree", "-m", "-u"])
        .args([from.to_string(), to.to_string()])
        .index(&moved.next)
        .changes()
        .run()
        .and_then(|_| moved.held.finish_removals(tree.dir, &moved.changes))
        .and_then(|()| flags::flag_again(tree.repo, tree.dir, &moved.next, &flagged));
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

/// The name in a step's folder of the list of folders that git will have to make.
const NEW_FOLDERS: &str = "new-folders";

/// Notes which folders have to be made for `arriving`: going back removes those, and no empty one that was there before.
pub(super) fn note_new_folders<'p>(
    tree: &Tree<'_>,
    arriving: impl Iterator<Item = &'p RepoPath>,
) -> Result<(), Error> {
    let mut missing: BTreeSet<RepoPath> = arriving.flat_map(|p| p.parents().collect::<Vec<_>>()).collect();
    missing.retain(|folder| folder.under(tree.dir).symlink_metadata().is_err());
    let list = tree.scratch.join(NEW_FOLDERS);
    let mut all = std::fs::read(&list).unwrap_or_default();
    all.extend(nul_separated(&missing));
    std::fs::write(&list, all).map_err(Error::io("write", &list))
}

/// Removes the folders that had to be made, as far as they are empty.
pub(super) fn remove_new_folders(tree: &Tree<'_>) {
    let list = std::fs::read(tree.scratch.join(NEW_FOLDERS)).unwrap_or_default();
    let mut folders: Vec<RepoPath> =
        list.split(|b| *b == 0).filter(|f| !f.is_empty()).map(RepoPath::new).collect();
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
    /// What a killed process had brought over, found from its scratch folder.
    pub(super) fn found(tree: &Tree<'a>, changes: Vec<Change>, to: Oid) -> Result<Moved<'a>, Error> {
        let held = Quarantine::at(&tree.scratch.join("replaced"))?;
        Ok(Moved { dir: tree.dir, changes, held, next: tree.scratch.join("index"), to })
    }

    /// Files that going back would replace and that are neither what was there nor what git was bringing.
    pub(super) fn strange(&self, tree: &Tree<'_>) -> Result<Vec<RepoPath>, Error> {
        let mut out = Vec::new();
        for change in self.changes.iter().filter(|c| self.held.holds(&c.path)) {
            let there = change.path.under(self.dir).symlink_metadata().is_ok();
            if !there || self.held.is_same_file(self.dir, &change.path) {
                continue;
            }
            let known = match change.new {
                Some(side) => is_from_git(tree, &change.path, side, self.to)?,
                None => false,
            };
            if !known {
                out.push(change.path.clone());
            }
        }
        Ok(out)
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
        self.held.differing(tree.repo, &tree.git_dir, &expected, &attributes)
    }

    /// Takes everything back: what git put there is set aside, what was there returns, by renames. A file that is not
    /// what git would have put there is somebody's own and stays.
    ///
    /// # Errors
    /// [`Error::Stuck`] when that failed too; it says where the files are, which are not deleted then.
    pub(super) fn undo(self, tree: &Tree<'_>) -> Result<(), Error> {
        self.take_back(tree).map_err(|source| Error::Stuck {
            dir: self.dir.to_owned(),
            kept: tree.scratch.to_owned(),
            source: Box::new(source),
        })
    }

    fn take_back(&self, tree: &Tree<'_>) -> Result<(), Error> {
        let arrived = Quarantine::at(&tree.scratch.join("arrived"))?;
        let expected: Vec<(RepoPath, Side)> = self
            .changes
            .iter()
            .filter(|c| c.old.is_none() && c.path.under(self.dir).symlink_metadata().is_ok())
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
        for change in self.changes.iter().filter(|c| self.held.holds(&c.path)) {
            if !self.held.is_same_file(self.dir, &change.path) {
                self.held.give_over(self.dir, &change.path)?;
            }
        }
        Ok(())
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
    pub(super) fn index(&self) -> &Path {
        &self.next
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
    let mut wanted: BTreeSet<RepoPath> = BTreeSet::from([RepoPath::new(".gitattributes")]);
    for path in paths {
        wanted.extend(path.parents().map(|up| up.join(b".gitattributes")));
    }
    diff::tree_files(repo, tree, &wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(path: &str, old: bool, new: bool) -> Change {
        let oid: Oid = "1".repeat(40).parse().unwrap();
        let side = |there: bool| there.then_some(Side { mode: 0o100_644, oid });
        Change { path: RepoPath::new(path), old: side(old), new: side(new) }
    }

    #[test]
    fn ignored_files_and_folders_in_the_way_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        std::fs::create_dir_all(root.join("build/deep")).unwrap();
        std::fs::write(root.join("build/deep/out"), "").unwrap();
        std::fs::write(root.join(".env"), "").unwrap();
        std::fs::write(root.join("file"), "").unwrap();
        let changes = [
            change(".env", false, true),
            change("build", false, true),
            change("file/below", false, true),
            change("new", false, true),
        ];
        let found: Vec<String> =
            obstructions(root, &changes, false).iter().map(ToString::to_string).collect();
        assert_eq!(found, [".env", "build/deep/out", "file"]);
    }

    #[test]
    fn what_the_change_itself_removes_does_not_stand_in_the_way() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("d")).unwrap();
        std::fs::write(dir.path().join("d/x"), "").unwrap();
        std::fs::write(dir.path().join("f"), "").unwrap();
        let changes = [
            change("d/x", true, false),
            change("d", false, true),
            change("f", true, false),
            change("f/y", false, true),
        ];
        assert_eq!(obstructions(dir.path(), &changes, false), []);
    }

    #[test]
    fn a_rename_in_case_only_is_no_obstruction_where_case_is_ignored() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("README"), "").unwrap();
        let changes = [change("readme", true, false), change("README", false, true)];
        assert_eq!(obstructions(dir.path(), &changes, true), []);
        assert_eq!(obstructions(dir.path(), &changes, false).len(), 1);
    }
}
