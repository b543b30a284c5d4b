//! Owns what a transition refuses before anything is touched: work of others on the ref, changes and files in the way.

use std::collections::HashSet;
use std::path::Path;

use super::diff::changes_by_git;
use super::left_out::without_left_out;
use super::local_state::LocalState;
use super::open_op::refuse_open;
use super::patterns::Against;
use super::ref_move::{Head, RefMove};
use super::repair::{forget_untouched, has_moved, note_untouched};
use super::shut::refuse_shut;
use super::status::{changed_since, status};
use super::transition::Tree;
use super::{Change, Error, Oid, Remedy, RepoPath, Side, ThrowAway, files_of, flags, tree_changes};

/// Refuses what `transition` of a worktree whose HEAD is at `from` would refuse, and changes nothing. `to` may lie in `into` only.
/// `brings` is what files get with their arrival.
///
/// # Errors
/// [`Error::OpenOperation`], [`Error::Overlap`], [`Error::Obstructed`].
pub(crate) fn require_free(
    tree: &Tree<'_>,
    from: Oid,
    to: Oid,
    into: Option<&ThrowAway>,
    brings: &LocalState,
) -> Result<(), Error> {
    refuse_open(tree.dir, &tree.git_dir)?;
    tree.repo.require_index(tree.dir)?;
    let changes = match into {
        None => tree_changes(tree.repo, from, to)?,
        Some(into) => changes_by_git(tree.repo, from, to, Some(into))?,
    };
    refuse_overlap(tree, &changes, Local::FromHead, &brings.against_patterns())
}

/// Refuses when the ref is where it is to go already: somebody else's work is nobody's to take back.
pub(super) fn refuse_done(tree: &Tree<'_>, from: Oid, to: Oid, mv: &RefMove) -> Result<(), Error> {
    if !has_moved(tree, from, to, mv)? {
        return forget_untouched(tree);
    }
    note_untouched(tree)?;
    Err(Error::RefMoved { name: mv.name(), why: "it has moved meanwhile".to_owned() })
}

/// What the transaction itself does not check. One that switches HEAD checks what HEAD names, not where that branch is;
/// one that moves a branch does not check that HEAD is on it. Both hold HEAD.lock by now, if HEAD is what it should be.
pub(super) fn refuse_stale(tree: &Tree<'_>, from: Oid, mv: &RefMove) -> Result<(), Error> {
    let moved = |name: &str, why: &str| Err(Error::RefMoved { name: name.to_owned(), why: why.to_owned() });
    match mv {
        RefMove::Switch { from: Head::Branch(branch), .. } => {
            if tree.repo.branch_tip(branch)? == Some(from) {
                return Ok(());
            }
            moved(branch, "it has moved meanwhile")
        }
        RefMove::Branch(branch) => {
            if tree.repo.name_in_head(tree.dir, &tree.git_dir, branch)?.is_some() {
                return Ok(());
            }
            moved(branch, "the worktree is on something else now")
        }
        RefMove::Switch { from: Head::Detached(_), .. } | RefMove::Nothing => Ok(()),
    }
}

/// The user's own changes in a worktree, staged or not, shown by git or hidden by a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Local {
    /// There are surely none that could meet the changes, and none in the index.
    None,
    /// What differs from HEAD.
    FromHead,
    /// What differs from this commit: HEAD has moved on already.
    From(Oid),
}

impl Local {
    /// Where changes are looked for of which nothing is known, in a worktree that leaves the commit `from`.
    pub(super) fn beside(from: Oid, mv: &RefMove) -> Local {
        match mv {
            RefMove::Nothing => Local::From(from),
            RefMove::Branch(_) | RefMove::Switch { .. } => Local::FromHead,
        }
    }
}

/// Refuses when a local change meets a path of `changes`, something that git does not track stands in their way, or files
/// cannot be changed there. A sparse checkout is then `against` its patterns.
pub(super) fn refuse_overlap(
    tree: &Tree<'_>,
    changes: &[Change],
    local: Local,
    against: &Against<'_>,
) -> Result<(), Error> {
    refuse_shut(tree, changes)?;
    refuse_off_limits(tree, changes)?;
    if let Some((paths, remedy)) = met(tree, changes, local)? {
        return Err(Error::Overlap { dir: tree.dir.to_owned(), paths, remedy });
    }
    let paths = obstructing(tree, changes, against)?;
    if paths.is_empty() { Ok(()) } else { Err(Error::Obstructed { dir: tree.dir.to_owned(), paths }) }
}

/// Refuses what `transition` would refuse of a worktree that is at `from` by then: its local changes have moved aside, and with them
/// the files `aside`, which git does not track. Changes nothing.
///
/// # Errors
/// [`Error::OpenOperation`], [`Error::Obstructed`], [`Error::Overlap`].
pub(crate) fn require_free_once_clean(
    tree: &Tree<'_>,
    (from, to): (Oid, Oid),
    aside: &HashSet<RepoPath>,
) -> Result<(), Error> {
    refuse_open(tree.dir, &tree.git_dir)?;
    let changes = tree_changes(tree.repo, from, to)?;
    refuse_shut(tree, &changes)?;
    refuse_off_limits(tree, &changes)?;
    let mut paths = obstructing(tree, &changes, &Against::default())?;
    paths.retain(|path| !aside.contains(path));
    if !paths.is_empty() {
        // What stands where HEAD has a file, above it or below it, moves aside too, ignored or not.
        let there: HashSet<RepoPath> = files_of(tree.repo, from)?.into_iter().collect();
        let above: HashSet<RepoPath> = there.iter().flat_map(RepoPath::parents).collect();
        let is_home = |path: &RepoPath| {
            there.contains(path) || above.contains(path) || path.parents().any(|up| there.contains(&up))
        };
        paths.retain(|path| !is_home(path));
    }
    if !paths.is_empty() {
        return Err(Error::Obstructed { dir: tree.dir.to_owned(), paths });
    }
    // What is changed inside of submodules stays where it is.
    let mut paths = met(tree, &changes, Local::FromHead)?.map(|(paths, _)| paths).unwrap_or_default();
    paths.retain(|path| path.under(tree.dir).join(".git").symlink_metadata().is_ok());
    if paths.is_empty() {
        return Ok(());
    }
    let remedy = Remedy::of(tree.repo, tree.dir, &paths);
    Err(Error::Overlap { dir: tree.dir.to_owned(), paths, remedy })
}

/// Refuses to write into the folder that holds other worktrees.
fn refuse_off_limits(tree: &Tree<'_>, changes: &[Change]) -> Result<(), Error> {
    let forbidden = |c: &&Change| {
        tree.off_limits.as_ref().is_some_and(|off| c.path == *off || c.path.parents().any(|up| up == *off))
    };
    let paths: Vec<RepoPath> = changes.iter().filter(forbidden).map(|c| c.path.clone()).collect();
    if paths.is_empty() { Ok(()) } else { Err(Error::Obstructed { dir: tree.dir.to_owned(), paths }) }
}

/// Files that git does not track where `changes` wants to put something.
fn obstructing(tree: &Tree<'_>, changes: &[Change], against: &Against<'_>) -> Result<Vec<RepoPath>, Error> {
    let folds = tree.repo.setting_bool("core.ignoreCase") == Some(true);
    let paths = obstructions(tree.dir, changes, folds);
    if paths.is_empty() {
        return Ok(paths);
    }
    // A sparse checkout makes no folder for a file that it leaves out, so nothing is in the way of one.
    Ok(obstructions(tree.dir, &without_left_out(tree, changes, against)?, folds))
}

/// Paths, and what gets their changes out of the way.
type Met = (Vec<RepoPath>, Remedy);

/// Local changes that meet a path of `changes`, or stand where it needs a folder: a staged file has no file on disk that would be
/// in the way, once it is gone there. None where none does.
fn met(tree: &Tree<'_>, changes: &[Change], local: Local) -> Result<Option<Met>, Error> {
    let touched: HashSet<&RepoPath> = changes.iter().map(|c| &c.path).collect();
    let links: HashSet<&RepoPath> = changes.iter().filter(|c| c.is_in_submodule()).map(|c| &c.path).collect();
    // Of one that has no folder nothing is lost.
    let replaced: HashSet<&RepoPath> =
        changes.iter().filter(|c| is_link(c.old) && !is_link(c.new)).map(|c| &c.path).collect();
    let new = changes.iter().filter(|c| c.new.is_some());
    let above: HashSet<RepoPath> = new.flat_map(|c| c.path.parents()).collect();
    let mut staged = HashSet::new();
    let dirt = match local {
        Local::None => return Ok(None),
        // From one commit of a submodule to another only the index goes; its folder is nobody's business here.
        Local::FromHead => {
            let mut dirt = status(tree.repo, tree.dir, false)?;
            let unmerged = dirt.unmerged();
            if !unmerged.is_empty() {
                return Err(Error::Unmerged { dir: tree.dir.to_owned(), paths: unmerged });
            }
            let is_gone = |path: &RepoPath| path.under(tree.dir).symlink_metadata().is_err();
            dirt.entries.retain(|e| {
                !(e.is_inside_submodule()
                    && (links.contains(&e.path) || is_gone(&e.path) && replaced.contains(&e.path)))
            });
            if !above.is_empty() {
                staged.extend(dirt.staged().map(|e| e.path.clone()));
                staged.extend(tree.repo.announced(tree.dir, None)?);
                staged.retain(|path| above.contains(path));
            }
            dirt.paths()
        }
        Local::From(base) => changed_since(tree.repo, tree.dir, base)?,
    };
    let hidden = flags::hidden_changes(tree.repo, tree.dir, &tree.git_dir, tree.scratch)?;
    let is_met = |p: &RepoPath| {
        touched.contains(p) || staged.contains(p) || p.parents().any(|up| touched.contains(&up))
    };
    let mut met: Vec<RepoPath> = dirt.into_iter().filter(is_met).collect();
    met.extend(hidden.into_iter().filter(is_met));
    met.sort();
    met.dedup();
    if met.is_empty() {
        return Ok(None);
    }
    let remedy = Remedy::of(tree.repo, tree.dir, &met);
    Ok(Some((met, remedy)))
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
    // Git removes a submodule's folder with all that is in it, commits that nobody else has included.
    let removed = changes.iter().filter(|c| is_link(c.old) && c.new.is_some() && !is_link(c.new));
    // One that may not be read counts as having something in it.
    let is_empty = |dir: &Path| std::fs::read_dir(dir).is_ok_and(|mut all| all.next().is_none());
    let is_filled = |c: &&Change| {
        let folder = c.path.under(dir);
        folder.symlink_metadata().is_ok_and(|meta| meta.is_dir()) && !is_empty(&folder)
    };
    out.extend(removed.filter(is_filled).map(|c| c.path.clone()));
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

fn is_link(side: Option<Side>) -> bool {
    side.is_some_and(Side::is_gitlink)
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
