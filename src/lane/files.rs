//! Owns the files of new lanes: folders of landed lanes are used where there are some, the others are filled.

use std::path::{Path, PathBuf};

use super::fill::fill as make;
use super::{Error, Operation, pool};
use crate::fault;
use crate::git::{Oid, RepoPath};

/// A lane's folder that git has on record and that is empty so far.
#[derive(Debug, Clone, Copy)]
pub(super) struct Folder<'a> {
    /// The lane.
    pub(super) name: &'a str,
    /// Its folder.
    pub(super) dir: &'a Path,
    /// The commit that it is at.
    pub(super) start: Oid,
}

/// What they have by now.
pub(super) struct Filled {
    /// What each has besides the files of its commit: what was kept in it.
    pub(super) kept: Vec<Vec<RepoPath>>,
    /// A checkout that was seen, on the way, to have no uncommitted changes of tracked files.
    pub(super) unchanged: Option<PathBuf>,
}

/// Fills them.
///
/// # Errors
/// When a file cannot be written, or it was cut short. What is there by then is the caller's to remove.
pub(super) fn fill(op: &Operation<'_>, folders: &[Folder<'_>]) -> Result<Filled, Error> {
    let project = op.project;
    let (mut kept, mut left) = (Vec::new(), Vec::new());
    for folder in folders {
        crate::interrupt::check()?;
        let mut taken = pool::take(op, folder)?;
        let full = match &mut taken {
            Some(taken) => taken.finish(project, folder.dir)?,
            None => false,
        };
        if !full {
            left.push(*folder);
        }
        kept.push(taken.map(|taken| taken.stays).unwrap_or_default());
    }
    let mut unchanged = None;
    for lanes in left.chunk_by(|a, b| a.start == b.start) {
        let dirs: Vec<&Path> = lanes.iter().map(|lane| lane.dir).collect();
        crate::interrupt::check()?;
        let filled = make(project, &dirs, lanes[0].start)?;
        project.listener.detail(format!("files: {}", filled.in_words()));
        fault::point("worktree.filled");
        unchanged = filled.unchanged;
    }
    crate::interrupt::check()?;
    Ok(Filled { kept, unchanged })
}
