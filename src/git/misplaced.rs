//! Owns finding the folder of a linked worktree that is not where a record has it.

use std::path::{Path, PathBuf};

use super::{Repo, RepoPath};

impl Repo {
    /// The folder that git has on record for the worktree `id` of a branch, where `path` is no worktree of this repository any more:
    /// `git worktree move` and `git worktree repair` write to git's record only.
    pub(crate) fn moved_worktree(&self, path: &Path, id: &str, branch: &str) -> Option<PathBuf> {
        let admin = self.common_dir().join("worktrees").join(id);
        if id.contains('/') || self.is_linked(path) {
            return None;
        }
        let top = recorded_link(&admin)?.parent()?.canonicalize().ok()?;
        let is_moved = top != path && self.names(&top, &admin) && self.was_on(&top, &admin, branch);
        is_moved.then_some(top)
    }

    /// Whether HEAD of a worktree is on a branch, or has left it there: somebody may have made another worktree of the same name.
    fn was_on(&self, top: &Path, admin: &Path, branch: &str) -> bool {
        let read = |name: &str| std::fs::read_to_string(admin.join(name)).unwrap_or_default();
        let rebased = ["rebase-merge/head-name", "rebase-apply/head-name"];
        self.head_branch(top, admin).ok().flatten().as_deref() == Some(branch)
            || read("logs/HEAD").contains(&format!("moving from {branch} to "))
            || rebased.iter().any(|name| read(name).trim_end().strip_prefix("refs/heads/") == Some(branch))
    }

    /// Whether a folder, not a link to one, says that it is a worktree of this repository.
    fn is_linked(&self, path: &Path) -> bool {
        let all = self.common_dir().join("worktrees");
        let own = self.git_dir_of(path).is_ok_and(|dir| dir.parent() == Some(&all) && dir.is_dir());
        own && path.symlink_metadata().is_ok_and(|meta| meta.is_dir())
    }

    /// Whether the `.git` of a folder names this admin folder.
    fn names(&self, top: &Path, admin: &Path) -> bool {
        let real = |path: &Path| path.canonicalize().ok();
        self.git_dir_of(top)
            .is_ok_and(|dir| dir == admin || (real(&dir).is_some() && real(&dir) == real(admin)))
    }
}

/// The `.git` file that an admin folder names.
fn recorded_link(admin: &Path) -> Option<PathBuf> {
    let text = std::fs::read(admin.join("gitdir")).ok()?;
    Some(RepoPath::new(text.trim_ascii_end()).under(admin))
}
