//! Worktrees that a killed `git worktree add` left unfinished: git's lock is on them and they have no commit
//! yet, which `git fsck` reports as an error.

use std::path::{Path, PathBuf};

use crate::repository::head_file::read_head_lossy;
use crate::{Error, Repo, RepoPath};

/// Content of a worktree's `locked` file while git is adding the worktree.
const ADD_LOCK_REASON: &[u8] = b"initializing";

impl Repo {
    /// Returns the worktrees directly below `parent_dir`, an absolute path without links, that git has
    /// started to add and that have no commit. Git may still be adding them: exclude that before you remove
    /// one.
    pub fn unfinished_worktrees(&self, parent_dir: &Path) -> Vec<PathBuf> {
        let admin_entries =
            std::fs::read_dir(self.common_dir().join("worktrees")).into_iter().flatten().flatten();
        let worktree_path = |git_dir: &Path| {
            let text = std::fs::read(git_dir.join("gitdir")).ok()?;
            RepoPath::new(text.trim_ascii_end()).to_fs_path(git_dir).parent().map(Path::to_owned)
        };
        admin_entries
            .map(|entry| entry.path())
            .filter(|git_dir| is_unfinished(git_dir))
            .filter_map(|git_dir| worktree_path(&git_dir))
            .filter(|path| path.parent() == Some(parent_dir))
            .collect()
    }

    /// Removes git's record of an unfinished worktree, its `.git` file, and its folder if that is otherwise
    /// empty. Does nothing to a worktree that has a commit.
    ///
    /// # Errors
    /// Fails if a file cannot be removed.
    pub fn remove_unfinished_worktree(&self, path: &Path) -> Result<(), Error> {
        let Some(git_dir) = self.worktree_admin_dir(path).filter(|dir| is_unfinished(dir)) else {
            return Ok(());
        };
        let link = path.join(".git");
        match std::fs::remove_file(&link) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(Error::io("remove", &link)(e)),
            _ => drop(std::fs::remove_dir(path)),
        }
        std::fs::remove_dir_all(&git_dir).map_err(Error::io("remove", &git_dir))
    }
}

/// Returns whether the git directory of a worktree has git's lock for adding it and has no commit yet. Older
/// versions of git write an id of zeros first, newer ones nothing.
fn is_unfinished(git_dir: &Path) -> bool {
    let is_adding =
        std::fs::read(git_dir.join("locked")).is_ok_and(|text| text.trim_ascii() == ADD_LOCK_REASON);
    let head = read_head_lossy(git_dir);
    is_adding && head.trim().bytes().all(|b| b == b'0')
}
