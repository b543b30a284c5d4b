//! Owns what has to be known of a worktree before it is looked at, and what the look is for.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::clean::{BesideTracked, FOLDER, Walk};
use super::entries::Entries;
use super::folders::Folders;
use super::trees::Reader;
use super::{Oid, Repo, RepoPath, status};

/// What has to be known of a worktree before it is looked at.
#[derive(Clone)]
pub(super) struct Glance {
    dir: PathBuf,
    index: PathBuf,
    head: gix::ObjectId,
    hash: gix::hash::Kind,
    objects: gix::OdbHandle,
    /// Whether names that are written otherwise may be the same to git.
    folds: bool,
}

impl Glance {
    /// Finds out about the worktree whose top is `dir`. None when only git can read what there is.
    pub(super) fn at(repo: &Repo, dir: &Path) -> Option<Glance> {
        let tip = repo.head_read(dir)?;
        Glance::with(repo, dir, &repo.git_dir_of(dir).ok()?, tip)
    }

    /// The same where HEAD is taken to be at a commit. `git_dir` is the git directory of the worktree.
    pub(super) fn with(repo: &Repo, dir: &Path, git_dir: &Path, commit: Oid) -> Option<Glance> {
        let head = repo.tree_of(commit).ok()?.0;
        let folds = ["core.ignoreCase", "core.precomposeUnicode"];
        let folds = folds.iter().any(|key| repo.setting_bool(key) == Some(true));
        let index = git_dir.join("index");
        let (hash, objects) = (repo.gix.object_hash(), repo.gix.objects.clone());
        Some(Glance { dir: dir.to_owned(), index, head, hash, objects, folds })
    }

    /// Whether the index holds HEAD's tree, and each file is as the index has it; with `untracked`, also whether no other
    /// file is there. False when that is not so, and whenever it cannot be told for certain: a file that git was told not to
    /// look at, a submodule. A worktree that is looked at `alone` is divided among threads.
    ///
    /// A file is taken for unchanged by the rules of git's `Documentation/technical/racy-git.txt`: its times, size, owner
    /// and inode are those in the index, and the index was written in a later second. Otherwise it is read.
    pub(super) fn finds_nothing(&self, untracked: bool, alone: bool) -> bool {
        let Some(index) = self.index() else { return false };
        Walk::new(&self.dir, &index, untracked).finds_nothing(alone)
    }

    /// What differs from HEAD, untracked files included; none when not all of it is certain. `before` is what an earlier look
    /// left to be kept, and `now` when this one begins; also what this one leaves, if it is worth while.
    pub(super) fn finds(
        &self,
        before: Option<Vec<u8>>,
        now: SystemTime,
    ) -> (Option<Vec<status::Entry>>, Option<Vec<u8>>) {
        let Some(index) = self.index() else { return (None, None) };
        let top = rustix::fs::open(&self.dir, FOLDER, rustix::fs::Mode::empty());
        let mut folders = top.ok().and_then(|top| Folders::new(before, self.head, top, now));
        let found = Walk::new(&self.dir, &index, true).finds(&mut folders);
        let found = found.filter(|found| self.knows_names_of(found));
        let kept = found.as_ref().and(folders.as_ref()).and_then(Folders::kept);
        (found, kept)
    }

    /// All that lies there: what differs from HEAD, what else lies beside tracked files, and whether the index is a simple one.
    /// Each folder is read. None when not all of it is certain.
    pub(super) fn finds_all(&self) -> Option<(Vec<status::Entry>, BesideTracked, bool)> {
        let index = self.index()?;
        let (found, beside) = Walk::new(&self.dir, &index, true).finds_all()?;
        self.knows_names_of(&found).then(|| (found, beside, index.is_simple()))
    }

    /// What differs from the index, untracked files included, and what else lies beside tracked files, whatever the index holds.
    /// None when not all of it is certain.
    pub(super) fn finds_all_beside_index(&self) -> Option<(Vec<status::Entry>, BesideTracked)> {
        let index = Entries::read(&self.index, self.hash)?;
        let (found, beside) = Walk::new(&self.dir, &index, true).finds_all()?;
        (self.knows_names_of(&found) && !beside.is_mixed).then_some((found, beside))
    }

    /// A name that is missing, or not known, may be another way to write one that is.
    fn knows_names_of(&self, found: &[status::Entry]) -> bool {
        let is_name = |e: &status::Entry| !matches!(e.kind, status::Kind::Tracked { deleted: false, .. });
        !(self.folds && found.iter().any(is_name))
    }

    /// The index, if it surely holds exactly HEAD's tree.
    fn index(&self) -> Option<Entries> {
        let reader = || Reader::of(self.objects.clone());
        Entries::read(&self.index, self.hash).filter(|index| index.holds(self.head, reader))
    }

    /// Whether the index holds HEAD's tree, nobody told git to look away from any file, and those of `paths` that are in it
    /// are as it has them. What the other files are like does not matter.
    pub(super) fn finds_as_it_was<'p>(&self, paths: impl Iterator<Item = &'p RepoPath>) -> bool {
        let Some(index) = self.index() else { return false };
        if !index.all().iter().all(|at| index.entry(*at).is_seen()) {
            return false;
        }
        let walk = Walk::new(&self.dir, &index, false);
        let mut all = paths.filter_map(|path| index.find(path.as_bytes()));
        all.all(|entry| walk.finds_as_it_was(entry))
    }
}
