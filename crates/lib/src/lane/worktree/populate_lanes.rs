//! Files of new lanes: folders of landed lanes are reused where available, and the other worktrees are
//! populated from git.

use std::path::{Path, PathBuf};

use proq_base::fail_points;
use proq_git::RepoPath;

use super::pool;
use super::populate::{EmptyWorktree, populate_worktrees};
use crate::lane::Error;
use crate::operation::journaled_operation::Operation;

/// Result of populating new worktrees.
pub struct PopulateOutcome {
    /// Paths per worktree that a reused folder has in addition to the files of the commit.
    pub(crate) retained_paths: Vec<Vec<RepoPath>>,
    /// A checkout that was found, while files were written, to have no uncommitted changes of tracked files.
    pub unchanged_checkout: Option<PathBuf>,
}

/// Populates new worktrees, from the lane pool where possible.
///
/// # Errors
/// Fails when a file cannot be written, or when the user interrupts. The caller removes what was written by
/// then.
pub(crate) fn populate_lanes(
    op: &Operation<'_>,
    worktrees: &[EmptyWorktree<'_>],
) -> Result<PopulateOutcome, Error> {
    let project = op.project;
    let (mut retained_paths, mut remaining) = (Vec::new(), Vec::new());
    for worktree in worktrees {
        proq_base::interrupt::require_no_signal()?;
        let mut pooled = pool::reuse_folder(op, worktree)?;
        let is_complete = match &mut pooled {
            Some(pooled_folder) => pooled_folder.update_files(project, worktree.dir)?,
            None => false,
        };
        if !is_complete {
            remaining.push(*worktree);
        }
        retained_paths.push(pooled.map(|taken| taken.retained_paths).unwrap_or_default());
    }
    let mut unchanged = None;
    for lanes in remaining.chunk_by(|a, b| a.start == b.start) {
        let dirs: Vec<&Path> = lanes.iter().map(|lane| lane.dir).collect();
        proq_base::interrupt::require_no_signal()?;
        let populated = populate_worktrees(project, &dirs, lanes[0].start)?;
        project.listener.detail(format!("files: {}", populated.describe()));
        fail_points::hit("worktree.filled");
        unchanged = populated.clean_source;
    }
    proq_base::interrupt::require_no_signal()?;
    Ok(PopulateOutcome { retained_paths, unchanged_checkout: unchanged })
}
