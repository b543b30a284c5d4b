//! Owns making a worktree clean again once a snapshot holds what made it dirty. Nothing is deleted: files move aside.

use std::collections::BTreeSet;
use std::path::Path;

use super::bring::write;
use super::index::{self, INDEX, IndexLock, NewIndex};
use super::open_op::refuse_open;
use super::path::nul_separated;
use super::plain::{is_ordinary, is_plain};
use super::quarantine::{Quarantine, prune_below, prune_parents, stands};
use super::renumber::Renumbered;
use super::repair::{is_from_git, save};
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
    let lock = IndexLock::take(tree.dir, &tree.git_dir, tree.scratch)?;
    refuse_open(tree.dir, &tree.git_dir)?;
    if snapshot.index_version.is_some() && lock.before() != snapshot.index_version {
        return Err(raced(tree, vec![RepoPath::new("the index")]));
    }
    // It is the very index that the snapshot was taken of.
    let is_at_head = snapshot.index_version.is_some()
        && snapshot.index_tree == tree.repo.tree_of(snapshot.base)?
        && snapshot.intent_to_add.is_empty()
        && snapshot.stages.is_none();
    let held = Held::of(tree, snapshot)?;
    refuse_shut(tree, &held.all())?;
    let aside = Quarantine::at(aside)?;
    let done = held
        .move_aside(tree, &aside)
        .inspect(|()| fault::point("clear.moved"))
        .and_then(|()| held.check(tree, snapshot, &aside))
        .and_then(|()| held.fill(tree, snapshot.base, lock.index(), is_at_head));
    let done = done.inspect(|_| fault::point("clear.filled")).and_then(|next| lock.install(next));
    if let Err(e) = done {
        if let Some(saved) = save(tree, &held.strange(tree, &aside)?)? {
            keep(saved)?;
        }
        held.undo(tree, &aside, &snapshot.empty_dirs)?;
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
        Ok(Held { base: snapshot.base, tracked, untracked })
    }

    /// Every path that it has otherwise than HEAD.
    pub(super) fn all(&self) -> Vec<Change> {
        let fresh =
            |(path, side): &(RepoPath, Side)| Change { path: path.clone(), old: None, new: Some(*side) };
        self.tracked.iter().cloned().chain(self.untracked.iter().map(fresh)).collect()
    }

    /// Every file that exists in the snapshot's worktree and not in HEAD in this form.
    pub(super) fn files(&self) -> Vec<(RepoPath, Side)> {
        self.tracked
            .iter()
            .filter_map(|c| Some((c.path.clone(), c.new?)))
            .chain(self.untracked.iter().cloned())
            .collect()
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
        let edited = aside.differing(tree.repo, &tree.git_dir, &self.files(), &attributes)?;
        if edited.is_empty() { Ok(()) } else { Err(raced(tree, edited)) }
    }

    /// Brings HEAD's content to where files were taken away, and makes its index. The present one may be known to name what HEAD
    /// has.
    fn fill(&self, tree: &Tree<'_>, head: Oid, index: &Path, is_at_head: bool) -> Result<NewIndex, Error> {
        let next = tree.scratch.join(INDEX);
        let wanted: Vec<(RepoPath, Side)> =
            self.tracked.iter().filter_map(|c| Some((c.path.clone(), c.old?))).collect();
        if is_at_head && let Some(made) = self.fill_in_process(tree, index, &next, &wanted)? {
            return Ok(made);
        }
        index::copy(index, &next)?;
        let call = || tree.repo.git_in(tree.dir).index(&next);
        if !is_at_head {
            call().args(["read-tree", "-i", "-m"]).arg(head.to_string()).changes().run()?;
        }
        let mut wanted: Vec<RepoPath> = wanted.into_iter().map(|(path, _)| path).collect();
        let skipped: BTreeSet<RepoPath> = flags::flagged(tree.repo, tree.dir, &tree.git_dir)?
            .into_iter()
            .filter(|f| f.skipped)
            .map(|f| f.path)
            .collect();
        if flags::is_sparse(&tree.git_dir) {
            wanted.retain(|p| !skipped.contains(p));
        } else {
            let shown: Vec<RepoPath> = wanted.iter().filter(|p| skipped.contains(p)).cloned().collect();
            flags::clear_flags(tree.repo, tree.dir, &next, &shown)?;
        }
        for path in &wanted {
            // The snapshot has noted the empty folders.
            prune_below(&path.under(tree.dir));
        }
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
        for (path, side) in wanted {
            // The snapshot has noted the empty folders.
            prune_below(&path.under(tree.dir));
            write(tree, path, *side)?;
        }
        if let Some(made) = plan.made(tree) {
            return Ok(Some(made));
        }
        index::copy(index, next)?;
        flags::refresh(tree.repo, tree.dir, next)?;
        Ok(Some(NewIndex::At(next.to_owned())))
    }

    /// Files that going back would replace or remove and that are not what HEAD has there.
    pub(super) fn strange(&self, tree: &Tree<'_>, aside: &Quarantine) -> Result<Vec<RepoPath>, Error> {
        let mut out = Vec::new();
        for (path, _) in self.files().iter().filter(|(p, _)| aside.holds(p)) {
            let head = self.tracked.iter().find(|c| c.path == *path).and_then(|c| c.old);
            if !self.is_heads(tree, path, head)? {
                out.push(path.clone());
            }
        }
        Ok(out)
    }

    fn is_heads(&self, tree: &Tree<'_>, path: &RepoPath, head: Option<Side>) -> Result<bool, Error> {
        match head {
            // What is behind a link lies elsewhere.
            _ if !stands(tree.dir, path) => Ok(true),
            Some(side) => is_from_git(tree, path, side, self.base),
            None => Ok(false),
        }
    }

    /// Puts everything back where it was. A file that somebody made where the user had deleted one stays.
    pub(super) fn undo(
        &self,
        tree: &Tree<'_>,
        aside: &Quarantine,
        empty_dirs: &[RepoPath],
    ) -> Result<(), Error> {
        let filled = Quarantine::at(&tree.scratch.join("filled"))?;
        for change in self.tracked.iter().filter(|c| c.old.is_some() && c.new.is_none()) {
            // On a full disk git cannot be asked; what cannot be told apart stays.
            if !self.is_heads(tree, &change.path, change.old).unwrap_or(false) {
                continue;
            }
            filled.take(tree.dir, &change.path)?;
            // A file may have to return to where this folder is.
            prune_parents(tree.dir, &change.path);
        }
        for (path, _) in self.files().iter().filter(|(p, _)| aside.holds(p)) {
            aside.give_over(tree.dir, path)?;
        }
        for dir in empty_dirs {
            let dir = dir.under(tree.dir);
            std::fs::create_dir_all(&dir).map_err(Error::io("create", &dir))?;
        }
        Ok(())
    }
}

/// Takes up what was written into set-aside files since: through a descriptor that was open, by a logger or a server.
/// Those bytes are the newest the user has. Returns the snapshot with them, or none when nothing was written.
pub(crate) fn renew(tree: &Tree<'_>, snapshot: &Snapshot, aside: &Path) -> Result<Option<Snapshot>, Error> {
    let held = Held::of(tree, snapshot)?;
    let aside = Quarantine::at(aside)?;
    let present: Vec<(RepoPath, Side)> = held.files().into_iter().filter(|(p, _)| aside.holds(p)).collect();
    let attributes = || held.attributes(tree, snapshot);
    let written = aside.differing(tree.repo, &tree.git_dir, &present, &attributes)?;
    if written.is_empty() {
        return Ok(None);
    }
    let loose = |p: &&RepoPath| held.untracked.iter().any(|(u, _)| u == *p);
    let (untracked, tracked): (Vec<_>, Vec<_>) = written.iter().partition(loose);
    let mut new =
        Snapshot { work_tree: aside.retree(tree, snapshot.work_tree, &tracked)?, ..snapshot.clone() };
    if let Some(old) = snapshot.untracked_tree {
        new.untracked_tree = Some(aside.retree(tree, old, &untracked)?);
    }
    new.recommit(tree.repo)?;
    Ok(Some(new))
}
