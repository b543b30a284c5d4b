//! Owns one worktree while its transition lock is held: the only way to a transition, a snapshot, a clear or a restore.

use std::path::{Path, PathBuf};

use super::{Error, Project, snaps};
use crate::git::{self, Oid, RefMove, RepoPath, Restored, Tree};
use crate::store::records::SnapRecord;
use crate::store::{Guard, LockName, Scratch};

/// A worktree that nobody else of git-proq changes meanwhile.
#[must_use]
pub(crate) struct Checkout<'a> {
    project: &'a Project,
    dir: PathBuf,
    git_dir: PathBuf,
    scratch: Scratch,
    _lock: Guard,
}

impl<'a> Checkout<'a> {
    /// Takes the transition lock of the worktree at `dir`.
    pub(crate) fn lock(project: &'a Project, dir: &Path) -> Result<Checkout<'a>, Error> {
        let git_dir = project.repo.git_dir_of(dir)?;
        let id = match git_dir.file_name() {
            Some(name) if git_dir != project.repo.common_dir() => name.to_string_lossy().into_owned(),
            _ => "main".to_owned(),
        };
        // A linked worktree may be called "main" too.
        let id = if git_dir == project.repo.common_dir() { "@main".to_owned() } else { id };
        let lock = project.store.locks().take(&LockName::Tree(id))?;
        let scratch = project.store.layout().scratch()?;
        Ok(Checkout { project, dir: dir.to_owned(), git_dir, scratch, _lock: lock })
    }

    /// Its git directory.
    pub(crate) fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// Changes files, index and ref from one commit to another.
    pub(crate) fn transition(&self, from: Oid, to: Oid, mv: &RefMove, why: &str) -> Result<(), Error> {
        self.with_tree("transition", |tree| Ok(git::transition(tree, from, to, mv, why)?))
    }

    /// Refuses what a transition would refuse, without changing anything.
    pub(crate) fn require_free(&self, from: Oid, to: Oid) -> Result<(), Error> {
        self.with_tree("check", |tree| Ok(git::require_free(tree, from, to)?))
    }

    /// Keeps everything that differs from HEAD, which is at `base`. None when nothing does.
    pub(crate) fn snapshot(&self, base: Oid, why: &str) -> Result<Option<SnapRecord>, Error> {
        self.snapshot_without(base, why, &[])
    }

    /// The same, but untracked files at or below `spare` are nobody's change and stay where they are.
    pub(crate) fn snapshot_without(
        &self,
        base: Oid,
        why: &str,
        spare: &[RepoPath],
    ) -> Result<Option<SnapRecord>, Error> {
        self.with_tree("snapshot", |tree| snaps::take(self.project, tree, base, why, spare))
    }

    /// Empty folders here, which git forgets. Nothing else differs from HEAD.
    pub(crate) fn empty_folders(&self) -> Result<Vec<RepoPath>, Error> {
        self.with_tree("empty", |tree| Ok(git::empty_folders(tree)?))
    }

    /// Makes folders again that a file has stood in the place of.
    pub(crate) fn make_folders(&self, folders: &[RepoPath]) {
        for folder in folders {
            // Where something else is now, that stays.
            drop(std::fs::create_dir_all(folder.under(&self.dir)));
        }
    }

    /// Files and folders here that git ignores.
    pub(crate) fn ignored(&self) -> Result<Vec<RepoPath>, Error> {
        Ok(git::ignored(&self.project.repo, &self.dir)?)
    }

    /// Makes the worktree clean; its files move to the snapshot's folder.
    pub(crate) fn clear(&self, snap: &SnapRecord) -> Result<(), Error> {
        let aside = self.project.store.layout().snapshot(&snap.id);
        self.with_tree("clear", |tree| Ok(git::clear(tree, &snap.snapshot, &aside)?))
    }

    /// Brings a snapshot back onto HEAD, which is at `now`. The snapshot is kept. What was written into its files while
    /// they were set aside becomes a part of it first.
    pub(crate) fn restore(&self, snap: &mut SnapRecord, now: Oid) -> Result<Restored, Error> {
        let aside = self.project.store.layout().snapshot(&snap.id);
        let raw = aside.join("index");
        let renewed = self.with_tree("renew", |tree| Ok(git::renew(tree, &snap.snapshot, &aside)?))?;
        if let Some(new) = renewed {
            snaps::replace(self.project, snap, new)?;
        }
        self.with_tree("restore", |tree| Ok(git::restore(tree, &snap.snapshot, now, &aside, &raw)?))
    }

    /// Edited files that git was told not to look at.
    pub(crate) fn hidden_edits(&self) -> Result<Vec<RepoPath>, Error> {
        self.with_tree("hidden", |tree| {
            Ok(git::hidden_edits(tree.repo, tree.dir, &tree.git_dir, tree.scratch)?)
        })
    }

    /// The tree of the tracked files as they are now.
    pub(crate) fn tracked_tree(&self) -> Result<Oid, Error> {
        self.with_tree("tracked", |tree| Ok(git::tracked_tree(tree)?))
    }

    /// Each step works in an empty folder of its own, which is empty again afterwards.
    fn with_tree<T>(&self, step: &str, work: impl FnOnce(&Tree<'_>) -> Result<T, Error>) -> Result<T, Error> {
        let scratch = self.scratch.sub(step)?;
        let lanes = self.project.lanes_dir();
        let off_limits = lanes.strip_prefix(&self.dir).ok().and_then(RepoPath::of);
        let warn = |text: String| self.project.listener.warn(text);
        let tree = Tree {
            repo: &self.project.repo,
            dir: &self.dir,
            git_dir: self.git_dir.clone(),
            scratch: &scratch,
            off_limits,
            warn: &warn,
        };
        let done = work(&tree);
        if let Err(Error::Git(git::Error::Stuck { .. })) = &done {
            self.scratch.keep();
        }
        if done.is_ok() {
            drop(std::fs::remove_dir_all(&scratch));
        }
        done
    }
}
