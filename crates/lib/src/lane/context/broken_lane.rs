//! Refusal to work in a lane whose worktree lacks what git needs to detect changes in it.

use proq_git::Repo;
use proq_git::worktrees::broken_worktree::WorktreeDefect;
use proq_store::records::lane::AnyLane;

use super::misplaced::find_folder_fault;
use crate::errors::broken_lane_error::BrokenLane;
use crate::lane::{Error, Project};

/// Returns which part of git's data the worktree of a lane lacks; none for a lane without its own worktree,
/// and for one whose folder is missing.
///
/// # Errors
/// Fails when the commit of the worktree cannot be read.
pub(crate) fn missing_git_data(repo: &Repo, lane: &AnyLane) -> Result<Option<WorktreeDefect>, Error> {
    match lane.branch() {
        Some(_) => Ok(repo.find_worktree_defect(&lane.path)?),
        None => Ok(None),
    }
}

/// Refuses a lane whose worktree is broken, or whose folder is not its worktree.
///
/// # Errors
/// [`Error::Broken`].
pub(crate) fn require_intact_worktree(project: &Project, lane: &AnyLane) -> Result<(), Error> {
    let name = lane.name.clone();
    if let Ok(lane) = lane.clone().into_owned_lane()
        && let Some(problem) = find_folder_fault(project, &lane)
    {
        return Err(BrokenLane {
            name,
            reason: problem.describe(&lane),
            repair_command: problem.fix_command(&project.repo, &lane),
        }
        .into());
    }
    let Some(missing) = missing_git_data(&project.repo, lane)? else { return Ok(()) };
    let repair = missing.repair_command(&project.repo, &lane.path, lane.branch().unwrap_or_default());
    Err(BrokenLane { name, reason: missing.describe().to_owned(), repair_command: Some(repair) }.into())
}
