//! Owns saying how a snapshot would come back, without touching the worktree.

use std::collections::BTreeSet;
use std::path::Path;

use super::clear::Held;
use super::make_way::stranger_above;
use super::open_op::refuse_open;
use super::patterns::Against;
use super::quarantine::is_blob;
use super::refusal::{Local, refuse_overlap};
use super::status::{Entry, Kind, status};
use super::transition::Tree;
use super::{
    Change, Error, Oid, Remedy, Repo, RepoPath, Restored, Snapshot, flags, merge_trees, tree_changes,
};

/// How `restore` would bring `snapshot` back to a worktree whose HEAD is at `now`.
///
/// # Errors
/// What `restore` would refuse: [`Error::Overlap`], [`Error::Obstructed`], [`Error::OpenOperation`].
pub(crate) fn foresee(
    tree: &Tree<'_>,
    snapshot: &Snapshot,
    now: Oid,
    aside: &Path,
    raw_index: &Path,
) -> Result<Restored, Error> {
    refuse_open(tree.dir, &tree.git_dir)?;
    let mut held = Held::of(tree, snapshot)?;
    held.leave_lost(|path| path.under(&aside.join("files")).symlink_metadata().is_ok());
    let loose = held.loose().map(|(path, side)| (path.clone(), None, Some(*side)));
    let loose = loose.map(|(path, old, new)| Change { path, old, new });
    if tree.repo.tree_of(now)? == tree.repo.tree_of(snapshot.base)? && raw_index.exists() {
        refuse_staged(tree, now, snapshot)?;
        let files = aside.join("files");
        let is_back = |c: &Change| {
            let file = c.path.under(tree.dir);
            match c.new {
                None => file.symlink_metadata().is_err(),
                Some(side) => {
                    is_blob(tree.repo, &file, side) && c.path.under(&files).symlink_metadata().is_err()
                }
            }
        };
        let (tracked, loose): (Vec<Change>, Vec<Change>) = (held.tracked.clone(), loose.collect());
        let tracked: Vec<Change> = tracked.into_iter().filter(|c| !is_back(c)).collect();
        // A file taken out of the index but kept stands in HEAD's place, which leaves first.
        let leaving = |c: &Change| tracked.iter().any(|t| t.path == c.path && t.old.is_some());
        let loose: Vec<Change> = loose.into_iter().filter(|c| !is_back(c) && !leaving(c)).collect();
        refuse_overlap(tree, &[tracked, loose].concat(), Local::FromHead, &Against::default())?;
        return Ok(Restored::Exactly);
    }
    let merged = |theirs| merged_onto(tree, snapshot, now, theirs);
    let work = match (merged(snapshot.work_tree)?, merged(snapshot.index_tree)?) {
        (Ok(work), Ok(_)) => work,
        (Err(paths), _) | (_, Err(paths)) => return Ok(Restored::Conflict(paths)),
    };
    refuse_staged(tree, now, snapshot)?;
    let changes = tree_changes(tree.repo, now, work)?;
    let conflict = conflict_in_place(tree, &held, (snapshot.base, now), &changes)?;
    Ok(conflict.unwrap_or(Restored::Merged))
}

/// Merges what the tree `theirs`, one of a snapshot's, changed of the snapshot's base onto the commit `now`: the tree with both, or the
/// paths where they conflict. No ref and no file of a worktree changes.
///
/// # Errors
/// When git cannot read or merge the trees.
pub(super) fn merged_onto(
    tree: &Tree<'_>,
    snapshot: &Snapshot,
    now: Oid,
    theirs: Oid,
) -> Result<Result<Oid, Vec<RepoPath>>, Error> {
    let (before, ours) = (tree.repo.tree_of(snapshot.base)?, tree.repo.tree_of(now)?);
    let merged = merge_trees(tree.repo, (before, ours, theirs), tree.scratch, None)?;
    Ok(if merged.clean { Ok(merged.tree) } else { Err(merged.paths()) })
}

/// The conflict of a restore with what is in the worktree by now: at the paths that `changes` write, or that the snapshot's untracked
/// files go to. None where nothing is in their way. `moved` has the commit that HEAD was at when the snapshot was taken, and the one
/// that it is at now.
///
/// # Errors
/// [`Error::Overlap`] where the user has changed what `changes` change.
pub(super) fn conflict_in_place(
    tree: &Tree<'_>,
    held: &Held,
    moved: (Oid, Oid),
    changes: &[Change],
) -> Result<Option<Restored>, Error> {
    match refuse_overlap(tree, &held.with_loose(changes), Local::FromHead, &Against::default()) {
        Err(Error::Obstructed { paths, .. }) => return Ok(Some(Restored::Conflict(paths))),
        other => other?,
    }
    // No pattern leaves these out.
    let leaves = |path: &RepoPath| changes.iter().any(|c| c.path == *path && c.new.is_none());
    let above = held.loose().filter_map(|(path, _)| stranger_above(tree.dir, path));
    let unseen = unseen_above(tree, held, moved)?;
    let above: BTreeSet<RepoPath> = above.chain(unseen).filter(|path| !leaves(path)).collect();
    Ok((!above.is_empty()).then(|| Restored::Conflict(above.into_iter().collect())))
}

/// The files that HEAD has got from one commit to another in the place of a folder with untracked files of the snapshot. A sparse
/// checkout may leave them out: then they are nowhere on disk, and would count as deleted by the user. None where all files are there.
fn unseen_above(tree: &Tree<'_>, held: &Held, (from, now): (Oid, Oid)) -> Result<BTreeSet<RepoPath>, Error> {
    if !flags::is_sparse(&tree.git_dir) || held.loose().next().is_none() {
        return Ok(BTreeSet::new());
    }
    let mut new = tree_changes(tree.repo, from, now)?;
    new.retain(|change| change.old.is_none());
    let new: BTreeSet<&RepoPath> = new.iter().map(|change| &change.path).collect();
    let above = held.loose().flat_map(|(path, _)| path.parents());
    Ok(above.filter(|path| new.contains(path)).collect())
}

/// Paths that are staged in the worktree at `dir`, where the index is neither HEAD's, which is at `now`, nor the snapshot's own.
///
/// # Errors
/// When git cannot read the index.
pub(crate) fn staged_beside(
    repo: &Repo,
    dir: &Path,
    now: Oid,
    snapshot: &Snapshot,
) -> Result<Vec<RepoPath>, Error> {
    if repo.index_is_at(dir, now)? || repo.index_is_at(dir, snapshot.index_tree)? {
        return Ok(Vec::new());
    }
    let staged = |e: &&Entry| matches!(e.kind, Kind::Tracked { staged: true, .. });
    Ok(status(repo, dir, false)?.tracked().filter(staged).map(|e| e.path.clone()).collect())
}

/// Refuses when something is staged that is neither HEAD's nor the snapshot's own: it would be lost with the index.
pub(super) fn refuse_staged(tree: &Tree<'_>, now: Oid, snapshot: &Snapshot) -> Result<(), Error> {
    let paths = staged_beside(tree.repo, tree.dir, now, snapshot)?;
    if paths.is_empty() {
        return Ok(());
    }
    let remedy = Remedy::of(tree.repo, tree.dir, &paths);
    Err(Error::Overlap { dir: tree.dir.to_owned(), paths, remedy })
}
