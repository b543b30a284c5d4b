//! Owns giving new worktrees their files, and keeping for the next time what was learned on the way.

use std::path::Path;

use super::{Error, Project};
use crate::git::{Filled, Oid, Sizes};
use crate::store::write_cache;

/// Fills worktrees that have no files yet with those of the commit that they are at.
///
/// # Errors
/// When a file cannot be written, or the user does not wait for it any more. What is there by then is the caller's to remove.
pub(super) fn fill(project: &Project, dirs: &[&Path], commit: Oid) -> Result<Filled, Error> {
    let file = project.store.layout().sizes();
    let mut sizes = Sizes::read(&std::fs::read(&file).unwrap_or_default());
    let filled = project.repo.fill_worktrees(dirs, commit, &mut sizes, &crate::interrupt::is_quiet)?;
    if let Some(bytes) = sizes.changed() {
        drop(write_cache(&file, bytes));
    }
    Ok(filled)
}
