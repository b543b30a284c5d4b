//! Owns what has to be known of a worktree before it is looked at, and what the look is for.

use std::path::{Path, PathBuf};

use gix::index::entry::Stage;
use gix::index::{Entry, File};

use super::clean::{UNSEEN, Walk};
use super::{Oid, Repo, RepoPath};

/// What has to be known of a worktree before it is looked at.
#[derive(Debug, Clone)]
pub(super) struct Glance {
    dir: PathBuf,
    index: PathBuf,
    head: gix::ObjectId,
    hash: gix::hash::Kind,
}

impl Glance {
    /// Finds out about the worktree whose top is `dir`. None when only git can read what there is.
    pub(super) fn at(repo: &Repo, dir: &Path) -> Option<Glance> {
        if repo.is_reftable() {
            return None;
        }
        let git_dir = repo.git_dir_of(dir).ok()?;
        let tip = match repo.head_branch(dir, &git_dir).ok()? {
            Some(branch) => repo.branch_tip(&branch).ok()??,
            None => Oid::from_hex(std::fs::read(git_dir.join("HEAD")).ok()?.trim_ascii_end())?,
        };
        Glance::with(repo, dir, &git_dir, tip)
    }

    /// The same where HEAD is taken to be at a commit. `git_dir` is the git directory of the worktree.
    pub(super) fn with(repo: &Repo, dir: &Path, git_dir: &Path, commit: Oid) -> Option<Glance> {
        let head = repo.tree_of(commit).ok()?.0;
        Some(Glance { dir: dir.to_owned(), index: git_dir.join("index"), head, hash: repo.gix.object_hash() })
    }

    /// Whether the index holds HEAD's tree, and each file is as the index has it; with `untracked`, also whether no other
    /// file is there. False when that is not so, and whenever it cannot be told for certain: a file that git was told not to
    /// look at, a submodule. A worktree that is looked at `alone` is divided among threads.
    ///
    /// A file is taken for unchanged by the rules of git's `Documentation/technical/racy-git.txt`: its times, size, owner
    /// and inode are those in the index, and the index was written in a later second. Otherwise it is read.
    pub(super) fn finds_nothing(&self, untracked: bool, alone: bool) -> bool {
        let Ok(index) = File::at(&self.index, self.hash, true, gix::index::decode::Options::default()) else {
            return false;
        };
        if !self.is_whole(&index) {
            return false;
        }
        Walk::new(&self.dir, &index, untracked, alone).finds_nothing()
    }

    /// Whether an index holds exactly HEAD's tree, and says so.
    fn is_whole(&self, index: &File) -> bool {
        let whole = index.tree().is_some_and(|tree| {
            tree.id == self.head
                && tree.num_entries.is_some_and(|n| usize::try_from(n) == Ok(index.entries().len()))
        });
        whole && !index.is_sparse()
    }

    /// Whether the index holds HEAD's tree, nobody told git to look away from any file, and those of `paths` that are in it
    /// are as it has them. What the other files are like does not matter.
    pub(super) fn finds_as_it_was<'p>(&self, paths: impl Iterator<Item = &'p RepoPath>) -> bool {
        let Ok(index) = File::at(&self.index, self.hash, true, gix::index::decode::Options::default()) else {
            return false;
        };
        let seen = |entry: &Entry| !entry.flags.intersects(UNSEEN) && entry.stage() == Stage::Unconflicted;
        if !self.is_whole(&index) || !index.entries().iter().all(seen) {
            return false;
        }
        let walk = Walk::new(&self.dir, &index, false, false);
        let mut all = paths.filter_map(|path| index.entry_by_path(path.as_bytes().into()));
        all.all(|entry| walk.finds_as_it_was(entry))
    }
}
