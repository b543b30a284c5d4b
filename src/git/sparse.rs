//! Owns worktrees of which only some folders are checked out: git's sparse checkouts.

use std::path::Path;

use super::{Error, Repo, RepoPath};

impl Repo {
    /// Cuts the worktree at `dir`, which has no files yet, to the files at its top and those in and above these folders. The
    /// caller holds the worktrees' lock.
    ///
    /// # Errors
    /// When git will not.
    pub(crate) fn cut_worktree(&self, dir: &Path, folders: &[RepoPath]) -> Result<(), Error> {
        let set = self.git_in(dir).args(["sparse-checkout", "set", "--cone", "--no-sparse-index", "--stdin"]);
        set.input(lines(folders)).changes().run().map(drop)
    }

    /// Brings further folders to a worktree that is cut, or all there are.
    ///
    /// # Errors
    /// When git will not.
    pub(crate) fn widen_worktree(&self, dir: &Path, folders: Option<&[RepoPath]>) -> Result<(), Error> {
        let call = self.git_in(dir).arg("sparse-checkout");
        let call = match folders {
            Some(folders) => call.args(["add", "--stdin"]).input(lines(folders)),
            None => call.arg("disable"),
        };
        call.changes().run().map(drop)
    }

    /// The folders, or the patterns, that a sparse worktree has; none where it has all files.
    pub(crate) fn cut_of(&self, dir: &Path) -> Option<Vec<String>> {
        patterns(&self.git_dir_of(dir).ok()?)?;
        let listed = self.git_in(dir).args(["sparse-checkout", "list"]).run().ok()?;
        let text = String::from_utf8_lossy(&listed.stdout);
        Some(text.lines().map(ToOwned::to_owned).collect())
    }

    /// Whether two worktrees are cut alike, as far as their patterns say.
    pub(crate) fn are_cut_alike(&self, one: &Path, other: &Path) -> bool {
        let of = |dir: &Path| self.git_dir_of(dir).ok().and_then(|git_dir| patterns(&git_dir));
        of(one) == of(other)
    }
}

fn lines(folders: &[RepoPath]) -> Vec<u8> {
    folders.iter().flat_map(|folder| [folder.as_bytes(), b"\n"].concat()).collect()
}

/// The patterns of a worktree. They stay when a sparse checkout is given up.
fn patterns(git_dir: &Path) -> Option<Vec<u8>> {
    std::fs::read(git_dir.join("info/sparse-checkout")).ok()
}
