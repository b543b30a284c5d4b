//! Folder of the worktrees for checks, outside of the repository, and cleanup of what a killed `git worktree
//! add` left there.

use std::path::{Path, PathBuf};

use proq_git::Repo;
use proq_store::locks::lock::LockName;

use crate::lane::Project;

/// Beginning of the folder names of check worktrees; the number follows, from 1.
const CHECK_WORKTREE_PREFIX: &str = "git-proq-checks-";

/// Beginning of the folder names that earlier versions used; the number follows, from 0.
const FORMER_CHECK_WORKTREE_PREFIX: &str = "slot-";

impl Project {
    /// Returns the folder of this repository's worktrees for checks; none where no location is configured.
    /// The folder may not exist.
    pub(crate) fn checks_dir(&self) -> Option<PathBuf> {
        Some(self.settings.verify_location.as_ref()?.join(repo_dir_name(&self.repo)))
    }
}

/// Returns a readable folder name for the repository, with a hash of its path that makes the name unique.
fn repo_dir_name(repo: &Repo) -> String {
    let repo_dir = repo.main_worktree().unwrap_or(repo.common_dir());
    let to_safe_char = |c: char| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '-' };
    let short: String =
        repo_dir.file_stem().unwrap_or_default().to_string_lossy().chars().map(to_safe_char).collect();
    let path = repo.common_dir().as_os_str().as_encoded_bytes();
    let id = repo.blob_id(path).map(|id| id.to_string()).unwrap_or_default();
    format!("{short}-{}", id.get(..12).unwrap_or("x"))
}

/// Removes check worktrees that a killed git had only begun to add: until they are removed, `git fsck`
/// reports an error. One that cannot be removed stays; the next check creates it again.
pub(crate) fn remove_unfinished_check_worktrees(project: &Project) {
    let Some(checks_dir) = project.checks_dir().and_then(|dir| dir.canonicalize().ok()) else { return };
    for path in project.repo.unfinished_worktrees(&checks_dir) {
        let Some(lock) = worktree_lock(&path) else { continue };
        // A live process that is adding the worktree holds both locks.
        if let Ok(Some(_place)) = project.store.locks().try_acquire(&lock)
            && let Ok(Some(_adding)) = project.store.locks().try_acquire(&LockName::WorktreeList)
        {
            drop(project.repo.remove_unfinished_worktree(&path));
        }
    }
}

/// Returns the folder name of the check worktree with this number, from 0. Other tools show it in lists of
/// worktrees.
pub(crate) fn check_worktree_name(number: usize) -> String {
    format!("{CHECK_WORKTREE_PREFIX}{}", number + 1)
}

/// Returns the folder name that earlier versions gave to the check worktree with this number.
pub(crate) fn former_check_worktree_name(number: usize) -> String {
    format!("{FORMER_CHECK_WORKTREE_PREFIX}{number}")
}

/// Returns the lock that protects the check worktree at `path`, derived from its folder name.
fn worktree_lock(path: &Path) -> Option<LockName> {
    let name = path.file_name()?.to_str()?;
    let number = match name.strip_prefix(CHECK_WORKTREE_PREFIX) {
        Some(number) => number.parse::<usize>().ok().and_then(|number| number.checked_sub(1)),
        None => name.strip_prefix(FORMER_CHECK_WORKTREE_PREFIX).and_then(|number| number.parse().ok()),
    };
    number.map(LockName::CheckWorktree).or((name == "hooks").then_some(LockName::HookWorktree))
}
