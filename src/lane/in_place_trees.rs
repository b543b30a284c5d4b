//! Owns comparing the main checkout with what it was before a run: what changed, what of that is not committed, and what was the user's.

use std::collections::{BTreeMap, BTreeSet};

use super::{Checkout, Error, Project};
use crate::git::{self, Oid, Repo, RepoPath, Side, Snapshot};
use crate::store::records::{AnyLane, BeforeRecord};

/// A file of an index.
pub(super) type Staged = (RepoPath, Option<(u32, Oid)>);

/// How the main checkout differs from what it was.
pub(super) struct Difference {
    /// The commit that it is at.
    pub(super) head: Oid,
    /// Files whose content, or whether they are there at all, is not as it was. Whether git knows them makes no difference.
    pub(super) changed: BTreeSet<RepoPath>,
    /// What differs from HEAD, with what it is; none for what is gone.
    pub(super) uncommitted: BTreeMap<RepoPath, Option<Side>>,
    /// What is staged and differs from HEAD.
    pub(super) staged: BTreeSet<Staged>,
}

impl Difference {
    /// Compares. `before` is the commit that it was at, and what else is known of it.
    pub(super) fn find(
        project: &Project,
        checkout: &Checkout<'_>,
        lane: &AnyLane,
        (tip, before): (Oid, &BeforeRecord),
    ) -> Result<Difference, Error> {
        let repo = &project.repo;
        let none = || Error::Unborn { branch: lane.base.clone() };
        let head = repo.head_of(&lane.path)?.ok_or_else(none)?;
        let why = format!("what is in the main checkout after a run of lane {}", lane.name);
        let now = checkout.describe(head, &why, &[], |snapshot, _| Ok(snapshot))?;
        let was = snapshot_of(project, before)?;
        let changed = sides(repo, (was.as_ref(), tip), (now.as_ref(), head))?;
        let uncommitted = sides(repo, (None, head), (now.as_ref(), head))?;
        let only_new =
            |all: BTreeMap<RepoPath, [Option<Side>; 2]>| all.into_iter().map(|(path, [_, new])| (path, new));
        Ok(Difference {
            head,
            changed: changed.into_keys().collect(),
            uncommitted: only_new(uncommitted).collect(),
            staged: now.as_ref().map(|now| staged(repo, now)).transpose()?.unwrap_or_default(),
        })
    }
}

/// What was the user's before a run: not the run's to commit.
pub(super) struct Yours {
    /// Files, and whole folders that were ignored.
    files: BTreeSet<RepoPath>,
    /// The folders that any of them lies in.
    above: BTreeSet<RepoPath>,
    /// What was staged and differed from HEAD.
    pub(super) staged_before: BTreeSet<Staged>,
}

impl Yours {
    /// What was uncommitted or ignored, and what git was told not to look at.
    pub(super) fn of(
        project: &Project,
        checkout: &Checkout<'_>,
        before: &BeforeRecord,
    ) -> Result<Yours, Error> {
        let mut yours = Yours::of_files(project, before)?;
        for path in checkout.hidden_edits()? {
            yours.above.extend(path.parents());
            yours.files.insert(path);
        }
        Ok(yours)
    }

    /// The same without what git was told not to look at.
    pub(super) fn of_files(project: &Project, before: &BeforeRecord) -> Result<Yours, Error> {
        let repo = &project.repo;
        let mut files: BTreeSet<RepoPath> = before.apart.iter().chain(&before.ignored).cloned().collect();
        let mut staged_before = BTreeSet::new();
        if let Some(was) = snapshot_of(project, before)? {
            files.extend(sides(repo, (None, was.base), (Some(&was), was.base))?.into_keys());
            staged_before = staged(repo, &was)?;
            files.extend(staged_before.iter().map(|(path, _)| path.clone()));
            files.extend(was.intent_to_add);
        }
        let above = files.iter().flat_map(RepoPath::parents).collect();
        Ok(Yours { files, above, staged_before })
    }

    /// Whether a file is one of these, stands in the place of a folder with one, or below where one was.
    pub(super) fn holds(&self, path: &RepoPath) -> bool {
        self.files.contains(path)
            || self.above.contains(path)
            || path.parents().any(|up| self.files.contains(&up))
    }
}

fn snapshot_of(project: &Project, before: &BeforeRecord) -> Result<Option<Snapshot>, Error> {
    before.snap.as_ref().map(|id| Ok(project.snap(id)?.snapshot)).transpose()
}

/// The files that differ between two states, each a snapshot or, where nothing is uncommitted, a commit.
fn sides(
    repo: &Repo,
    (was, tip): (Option<&Snapshot>, Oid),
    (now, head): (Option<&Snapshot>, Oid),
) -> Result<BTreeMap<RepoPath, [Option<Side>; 2]>, Error> {
    let tree = |snapshot: Option<&Snapshot>, commit| match snapshot {
        Some(snapshot) => Ok(snapshot.work_tree),
        None => repo.tree_of(commit),
    };
    let mut out: BTreeMap<RepoPath, [Option<Side>; 2]> = BTreeMap::new();
    for change in git::tree_changes(repo, tree(was, tip)?, tree(now, head)?)? {
        out.insert(change.path, [change.old, change.new]);
    }
    for (at, snapshot) in [was, now].into_iter().enumerate() {
        if let Some(loose) = snapshot.and_then(|s| s.untracked_tree) {
            for (path, side) in git::tree_files(repo, loose, &BTreeSet::new())? {
                out.entry(path).or_default()[at] = Some(side);
            }
        }
    }
    out.retain(|_, [old, new]| old != new);
    Ok(out)
}

fn staged(repo: &Repo, snapshot: &Snapshot) -> Result<BTreeSet<Staged>, Error> {
    let all = git::tree_changes(repo, repo.tree_of(snapshot.base)?, snapshot.index_tree)?;
    Ok(all.into_iter().map(|c| (c.path, c.new.map(|side| (side.mode, side.oid)))).collect())
}
