//! Owns one worktree while its transition lock is held: the only way to a transition, a snapshot, a clear or a restore.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::{Error, Project, recover, snaps};
use crate::git::{self, LocalState, NewCommit, Oid, RepoPath, Restored, Seen, Snapshot, ThrowAway, Tree};
use crate::store::records::SnapRecord;
use crate::store::{Guard, LockName, Scratch};

/// A worktree that nobody else of git-proq changes meanwhile.
#[must_use]
pub(crate) struct Checkout<'a> {
    project: &'a Project,
    dir: PathBuf,
    git_dir: PathBuf,
    scratch: OnceCell<Scratch>,
    _lock: Guard,
}

impl<'a> Checkout<'a> {
    /// Takes the transition lock of the worktree at `dir`. What a dead process left half-done there is put right first.
    pub(crate) fn lock(project: &'a Project, dir: &Path) -> Result<Checkout<'a>, Error> {
        let git_dir = project.repo.git_dir_of(dir)?;
        let id = match git_dir.file_name() {
            Some(name) if git_dir != project.repo.common_dir() => name.to_string_lossy().into_owned(),
            // A linked worktree may be called "main" too.
            _ => "@main".to_owned(),
        };
        let lock = recover::take_lock(project, &LockName::Tree(id), |step| step.worktree() == Some(dir))?;
        let (dir, scratch) = (dir.to_owned(), OnceCell::new());
        Ok(Checkout { project, dir, git_dir, scratch, _lock: lock })
    }

    /// Its top folder.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Its git directory.
    pub(crate) fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// Refuses what a transition would refuse, without changing anything.
    pub(crate) fn require_free(&self, from: Oid, to: Oid) -> Result<(), Error> {
        self.require_free_for(from, to, None)
    }

    /// As [`Checkout::require_free`], for an undo in which files get the marks and bits of `brings` with their arrival.
    pub(crate) fn require_free_to_get(&self, from: Oid, to: Oid, brings: &LocalState) -> Result<(), Error> {
        self.look("check", |tree| Ok(git::require_free(tree, from, to, None, brings)?))
    }

    /// The same for a commit that may lie in `into` only.
    pub(crate) fn require_free_for(&self, from: Oid, to: Oid, into: Option<&ThrowAway>) -> Result<(), Error> {
        self.look("check", |tree| Ok(git::require_free(tree, from, to, into, &LocalState::default())?))
    }

    /// The same for the time when the local changes here have moved aside, and with them the files `aside`, which git does not track.
    pub(crate) fn require_free_once_clean(
        &self,
        ends: (Oid, Oid),
        aside: &HashSet<RepoPath>,
    ) -> Result<(), Error> {
        self.look("check", |tree| Ok(git::require_free_once_clean(tree, ends, aside)?))
    }

    /// Looks at all that lies here, for whatever has to be known of it while the lock is held.
    pub(crate) fn seen(&self) -> Seen {
        Seen::look(&self.project.repo, &self.dir, &self.git_dir)
    }

    /// Writes everything that differs from HEAD, which is at `base`, to git's objects, and hands it to `keep` together with
    /// the raw index. Untracked files at or below `spare` are nobody's change. None when nothing differs.
    pub(super) fn describe<T>(
        &self,
        base: Oid,
        why: &str,
        spare: &[RepoPath],
        keep: impl FnOnce(Snapshot, &Path) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        self.describe_seen(base, why, spare, &self.seen(), keep)
    }

    /// As [`Checkout::describe_seen`], and where nothing differs from HEAD a snapshot that says so.
    pub(super) fn describe_always<T>(
        &self,
        base: Oid,
        why: &str,
        spare: &[RepoPath],
        seen: &Seen,
        keep: impl FnOnce(Snapshot, &Path) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let message = format!("git-proq: {why}");
        self.look("snapshot", |tree| {
            let found = git::take_snapshot(tree, base, &message, spare, seen)?;
            let snapshot = match found {
                Some(snapshot) => snapshot,
                None => git::take_unchanged(tree, base, &message, seen)?,
            };
            keep(snapshot, &tree.scratch.join("raw-index"))
        })
    }

    /// The same by what was seen just now.
    pub(super) fn describe_seen<T>(
        &self,
        base: Oid,
        why: &str,
        spare: &[RepoPath],
        seen: &Seen,
        keep: impl FnOnce(Snapshot, &Path) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        self.look("snapshot", |tree| {
            let found = git::take_snapshot(tree, base, &format!("git-proq: {why}"), spare, seen)?;
            found.map(|snapshot| keep(snapshot, &tree.scratch.join("raw-index"))).transpose()
        })
    }

    /// As [`Checkout::describe`], in the middle of a merge, too: a file with conflicts counts as it is. With `always` there is a snapshot
    /// also where nothing differs from HEAD.
    pub(super) fn describe_unmerged<T>(
        &self,
        base: Oid,
        why: &str,
        always: bool,
        keep: impl FnOnce(Snapshot, &Path) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        let (message, seen) = (format!("git-proq: {why}"), self.seen());
        self.look("snapshot", |tree| {
            let snapshot = match git::take_unmerged(tree, base, &message, &seen)? {
                None if always => Some(git::take_unchanged(tree, base, &message, &seen)?),
                found => found,
            };
            snapshot.map(|snapshot| keep(snapshot, &tree.scratch.join("raw-index"))).transpose()
        })
    }

    /// A snapshot with what was written into its files since they were set aside; none when nothing was.
    pub(super) fn renewed(&self, snapshot: &Snapshot, id: &str) -> Result<Option<Snapshot>, Error> {
        let aside = snaps::aside(self.project, id)?;
        self.look("renew", |tree| Ok(git::renew(tree, snapshot, &aside)?))
    }

    /// Hands a copy of an index file to `keep`.
    pub(super) fn copy_of<T>(
        &self,
        index: &Path,
        keep: impl FnOnce(&Path) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.look("copy", |tree| {
            let copy = tree.scratch.join("raw-index");
            match std::fs::copy(index, &copy) {
                // One without anything counts as none.
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => std::fs::write(&copy, ""),
                copied => copied.map(drop),
            }
            .map_err(Error::io("copy", index))?;
            keep(&copy)
        })
    }

    /// Copies those files of a snapshot of this worktree to `aside` which its objects do not have byte for byte.
    pub(super) fn copy_files(&self, snapshot: &Snapshot, aside: &Path) -> Result<(), Error> {
        self.look("copy", |tree| Ok(git::copy_filtered(tree, snapshot, aside)?))
    }

    /// Copies the untracked files of a snapshot that came back here, and that no object has as they are, to `aside`.
    pub(super) fn copy_untracked(&self, snapshot: &Snapshot, aside: &Path) -> Result<(), Error> {
        self.look("copy", |tree| Ok(git::copy_untracked(tree, snapshot, aside)?))
    }

    /// Whether the index here has the same flags as another one of this worktree, as far as somebody set them by hand.
    pub(super) fn has_flags_like(&self, other: &Path) -> Result<bool, Error> {
        let index = self.git_dir.join("index");
        self.look("flags", |tree| Ok(git::has_same_flags_set(tree, &index, other)?))
    }

    /// As [`Checkout::has_flags_like`], but for entries that the index here has not.
    pub(super) fn has_flags_left_of(&self, other: &Path) -> Result<bool, Error> {
        let index = self.git_dir.join("index");
        self.look("flags", |tree| Ok(git::has_same_flags_left(tree, &index, other)?))
    }

    /// Whether two index files of this worktree have the same entries flagged as assume-unchanged and skip-worktree.
    pub(super) fn has_same_flags(&self, one: &Path, other: &Path) -> Result<bool, Error> {
        Ok(git::has_same_flags(&self.project.repo, &self.dir, one, other)?)
    }

    /// Removes `folders` as far as they are empty and not among `keep`, with the empty ones above them.
    pub(crate) fn remove_folders(&self, folders: &[RepoPath], keep: &[RepoPath]) {
        let stays =
            |folder: &RepoPath| keep.iter().any(|k| k == folder || k.parents().any(|up| up == *folder));
        for folder in folders {
            let chain =
                std::iter::once(folder.clone()).chain(folder.parents().collect::<Vec<_>>().into_iter().rev());
            for up in chain.filter(|up| !up.as_bytes().is_empty()).take_while(|up| !stays(up)) {
                if !git::is_pruned(&up.under(&self.dir)) {
                    break;
                }
            }
        }
    }

    /// How a snapshot would come back, without changing anything.
    pub(crate) fn foresee(&self, snap: &SnapRecord, now: Oid) -> Result<Restored, Error> {
        let raw = self.project.kept_index(&self.dir, &snap.id);
        let aside = snaps::aside(self.project, &snap.id)?;
        self.look("foresee", |tree| Ok(git::foresee(tree, &snap.snapshot, now, &aside, &raw)?))
    }

    /// Empty folders here, which git forgets. Nothing else differs from HEAD.
    pub(crate) fn empty_folders(&self, seen: &Seen) -> Result<Vec<RepoPath>, Error> {
        self.look("empty", |tree| Ok(git::empty_folders(tree, seen)?))
    }

    /// Whether a sparse checkout shows or leaves out other files than its patterns say: git changes that as soon as it goes to
    /// another commit, and only a snapshot brings it back.
    pub(super) fn is_odd(&self) -> Result<bool, Error> {
        self.look("odd", |tree| Ok(git::is_odd(tree)?))
    }

    /// Whether index entries have flags that somebody set by hand: git drops them with their files on the way to a commit that has
    /// none, and only a snapshot brings them back.
    pub(crate) fn is_flagged(&self) -> Result<bool, Error> {
        self.look("flags", |tree| Ok(git::is_flagged(tree)?))
    }

    /// The flags that somebody set by hand on index entries here; with `like`, those of them that this other index has too.
    pub(crate) fn flags(&self, like: Option<&Path>) -> Result<LocalState, Error> {
        Ok(LocalState::flags_set(&self.project.repo, &self.dir, like)?)
    }

    /// Puts files that are set aside back in their places, where those are free.
    pub(super) fn give_back(&self, aside: &Path, paths: &[RepoPath]) -> Result<(), Error> {
        Ok(git::give_back(&self.dir, aside, paths)?)
    }

    /// Makes folders again that a file has stood in the place of.
    pub(crate) fn make_folders(&self, folders: &[RepoPath]) {
        for folder in folders {
            // Where something else is now, that stays.
            drop(std::fs::create_dir_all(folder.under(&self.dir)));
        }
    }

    /// Files and folders here that git ignores.
    pub(crate) fn ignored(&self, seen: &Seen) -> Result<Vec<RepoPath>, Error> {
        Ok(seen.ignored(&self.project.repo, &self.dir)?)
    }

    /// What stays here whatever is shown: that, and repositories of their own, whose files git would
    /// take for untracked ones as soon as it has a file there, too.
    pub(crate) fn bystanders(&self, seen: &Seen) -> Result<Vec<RepoPath>, Error> {
        let repo = &self.project.repo;
        let mut all = self.ignored(seen)?;
        all.extend(seen.nested(repo, &self.dir)?);
        Ok(all)
    }

    /// Edited files that git was told not to look at.
    pub(crate) fn hidden_edits(&self) -> Result<Vec<RepoPath>, Error> {
        self.look("hidden", |tree| Ok(git::hidden_edits(tree.repo, tree.dir, &tree.git_dir, tree.scratch)?))
    }

    /// Paths with edits that a flag hides, and files that are gone though git was told to skip them.
    pub(super) fn hidden_changes(&self) -> Result<Vec<RepoPath>, Error> {
        self.look("hidden", |tree| Ok(git::hidden_changes(tree.repo, tree.dir, &tree.git_dir, tree.scratch)?))
    }

    /// A commit that keeps whatever the index names, conflicts and all.
    pub(crate) fn keep_index(&self, message: &str) -> Result<Option<Oid>, Error> {
        self.look("index", |tree| Ok(git::keep_index(tree, message)?))
    }

    /// A commit on top of `head` that keeps everything here that git does not ignore, conflicts and all.
    pub(crate) fn keep_laid_out(&self, head: Oid, message: &str) -> Result<Oid, Error> {
        self.look("laid-out", |tree| {
            let laid = git::laid_out(tree)?;
            Ok(NewCommit { tree: laid.tree, parents: &[head], message }.write_as_keeper(tree.repo, None)?)
        })
    }

    /// Everything here that git does not ignore, as a tree, conflicts and all.
    pub(crate) fn laid_out(&self) -> Result<git::Laid, Error> {
        self.look("laid-out", |tree| Ok(git::laid_out(tree)?))
    }

    /// The tracked files with edits that git does not show.
    pub(crate) fn edits_not_shown(&self) -> Result<Vec<RepoPath>, Error> {
        self.look("not-shown", |tree| {
            let dirt = git::status(tree.repo, tree.dir, false)?;
            Ok(git::shown_and_hidden(tree.repo, tree.dir, tree.scratch, &dirt)?.1)
        })
    }

    /// The tree of the tracked files as they are now, as far as git shows that.
    pub(crate) fn tracked_tree(&self) -> Result<Oid, Error> {
        self.look("tracked", |tree| Ok(git::tracked_tree(tree)?))
    }

    /// Looks, in an empty folder that is empty again afterwards.
    fn look<T>(&self, what: &str, work: impl FnOnce(&Tree<'_>) -> Result<T, Error>) -> Result<T, Error> {
        if self.scratch.get().is_none() {
            drop(self.scratch.set(self.project.store.layout().scratch()?));
        }
        let Some(scratch) = self.scratch.get() else { unreachable!("it was just set") };
        let dir = scratch.sub(what)?;
        let done = self.with_tree(&dir, work);
        drop(std::fs::remove_dir_all(&dir));
        done
    }

    /// Works on the tree with `scratch` for what is on its way.
    pub(super) fn with_tree<T>(
        &self,
        scratch: &Path,
        work: impl FnOnce(&Tree<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let lanes = self.project.lanes_dir();
        let off_limits = lanes.strip_prefix(&self.dir).ok().and_then(RepoPath::of);
        let warn = |text: String| self.project.listener.warn(text);
        work(&Tree {
            repo: &self.project.repo,
            dir: &self.dir,
            git_dir: self.git_dir.clone(),
            scratch,
            off_limits,
            warn: &warn,
        })
    }
}
