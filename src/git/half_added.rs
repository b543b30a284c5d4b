//! Owns worktrees that a killed git had only begun to add: git's own mark is on them, and they are at no commit yet, which
//! `git fsck` calls an error.

use std::path::{Path, PathBuf};

use super::head_file::head_lossy;
use super::{Error, Repo, RepoPath};

/// What git writes to a worktree's `locked` for as long as it is adding it.
const ADDING: &[u8] = b"initializing";

impl Repo {
    /// The worktrees directly below `home`, an absolute path without links, that a git has begun to add and that are at no
    /// commit. It may be at it: whoever takes them away keeps that out first.
    pub(crate) fn half_added(&self, home: &Path) -> Vec<PathBuf> {
        let all = std::fs::read_dir(self.common_dir().join("worktrees")).into_iter().flatten().flatten();
        let folder = |admin: &Path| {
            let text = std::fs::read(admin.join("gitdir")).ok()?;
            RepoPath::new(text.trim_ascii_end()).under(admin).parent().map(Path::to_owned)
        };
        all.map(|entry| entry.path())
            .filter(|admin| is_half_added(admin))
            .filter_map(|admin| folder(&admin))
            .filter(|path| path.parent() == Some(home))
            .collect()
    }

    /// Takes git's files of such a worktree away, and its folder, if nothing else is in that. One that has a commit stays.
    ///
    /// # Errors
    /// When a file cannot be removed.
    pub(crate) fn forget_half_added(&self, path: &Path) -> Result<(), Error> {
        let Some(admin) = self.admin_dir_of(path).filter(|admin| is_half_added(admin)) else { return Ok(()) };
        let link = path.join(".git");
        match std::fs::remove_file(&link) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(Error::io("remove", &link)(e)),
            _ => drop(std::fs::remove_dir(path)),
        }
        std::fs::remove_dir_all(&admin).map_err(Error::io("remove", &admin))
    }
}

/// Older gits write an id of zeros first, newer ones nothing before the commit.
fn is_half_added(admin: &Path) -> bool {
    let adding = std::fs::read(admin.join("locked")).is_ok_and(|text| text.trim_ascii() == ADDING);
    let head = head_lossy(admin);
    adding && head.trim().bytes().all(|b| b == b'0')
}
