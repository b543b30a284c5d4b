//! git's sparse checkouts: worktrees in which only some folders are checked out.

use std::path::Path;

use crate::{Error, Repo, RepoPath};

impl Repo {
    /// Limits the worktree at `dir`, which has no files yet, to the files at its top and those in and above
    /// `folders`. The caller holds the worktrees' lock.
    ///
    /// # Errors
    /// Fails if git refuses.
    pub fn set_sparse_folders(&self, dir: &Path, folders: &[RepoPath]) -> Result<(), Error> {
        let command =
            self.git_in(dir).args(["sparse-checkout", "set", "--cone", "--no-sparse-index", "--stdin"]);
        command.input(folder_lines(folders)).mutating().run().map(drop)
    }

    /// Adds folders to a sparse checkout, or disables it when `folders` is none.
    ///
    /// # Errors
    /// Fails if git refuses.
    pub fn widen_sparse_checkout(&self, dir: &Path, folders: Option<&[RepoPath]>) -> Result<(), Error> {
        let command = self.git_in(dir).arg("sparse-checkout");
        let command = match folders {
            Some(folders) => command.args(["add", "--stdin"]).input(folder_lines(folders)),
            None => command.arg("disable"),
        };
        command.mutating().run().map(drop)
    }

    /// Returns the folders or patterns of a sparse checkout; none when the worktree has all files.
    pub fn sparse_patterns(&self, dir: &Path) -> Option<Vec<String>> {
        read_patterns(&self.worktree_git_dir(dir).ok()?)?;
        let listed = self.git_in(dir).args(["sparse-checkout", "list"]).run().ok()?;
        let text = String::from_utf8_lossy(&listed.stdout);
        Some(text.lines().map(ToOwned::to_owned).collect())
    }

    /// Returns whether two worktrees have the same sparse patterns.
    pub fn have_same_sparse_patterns(&self, left: &Path, right: &Path) -> bool {
        let patterns_at =
            |dir: &Path| self.worktree_git_dir(dir).ok().and_then(|git_dir| read_patterns(&git_dir));
        patterns_at(left) == patterns_at(right)
    }
}

fn folder_lines(folders: &[RepoPath]) -> Vec<u8> {
    folders.iter().flat_map(|folder| [folder.as_bytes(), b"\n"].concat()).collect()
}

/// Reads the file with a worktree's sparse patterns; none if it cannot be read. The file also exists after a
/// sparse checkout was disabled.
fn read_patterns(git_dir: &Path) -> Option<Vec<u8>> {
    std::fs::read(git_dir.join("info/sparse-checkout")).ok()
}
