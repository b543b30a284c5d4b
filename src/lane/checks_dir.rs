//! Owns where the worktrees for checks lie, outside of the repository, and what a git that died while it added one left there.

use std::path::{Path, PathBuf};

use super::Project;
use crate::store::LockName;

impl Project {
    /// The folder of this repository's worktrees for checks. None where there is no place for them. It may not be there.
    pub(crate) fn checks_dir(&self) -> Option<PathBuf> {
        Some(self.settings.verify_location.as_ref()?.join(name(self)))
    }
}

/// The repository's name for a person, and what tells it from others of that name: where it lies.
fn name(project: &Project) -> String {
    let home = project.repo.main_worktree().unwrap_or(project.repo.common_dir());
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '-' };
    let short: String = home.file_stem().unwrap_or_default().to_string_lossy().chars().map(plain).collect();
    let path = project.repo.common_dir().as_os_str().as_encoded_bytes();
    let id = project.repo.blob_id(path).map(|id| id.to_string()).unwrap_or_default();
    format!("{short}-{}", id.get(..12).unwrap_or("x"))
}

/// Takes away what a dead process's git had begun to add there: until it is gone `git fsck` finds fault with it. What cannot be
/// removed stays; the next check makes the worktree anew anyway.
pub(super) fn sweep(project: &Project) {
    let Some(home) = project.checks_dir().and_then(|dir| dir.canonicalize().ok()) else { return };
    for path in project.repo.half_added(&home) {
        let Some(lock) = lock_of(&path) else { continue };
        // Whoever lives and is adding it holds both.
        if let Ok(Some(_place)) = project.store.locks().try_take(&lock)
            && let Ok(Some(_adding)) = project.store.locks().try_take(&LockName::Worktrees)
        {
            drop(project.repo.forget_half_added(&path));
        }
    }
}

/// Which lock is on the worktree of that name.
fn lock_of(path: &Path) -> Option<LockName> {
    let name = path.file_name()?.to_str()?;
    match name.strip_prefix("slot-") {
        Some(number) => number.parse().ok().map(LockName::Slot),
        None => (name == "hooks").then_some(LockName::Hooks),
    }
}
