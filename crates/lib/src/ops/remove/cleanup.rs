//! Clean-up: removal of lanes that are done with, of worktrees without a record, and of what has expired.

use proq_git::worktrees::worktree::WorktreeList;
use proq_store::records::lane::AnyLane;
use proq_store::records::lane_state::LaneState;
use serde::Serialize;

use super::removal::{RemovalOutcome, RemovalPlan};
use crate::lane::Project;
use crate::lane::inspection::list;
use crate::lane::inspection::pull_request_status::merged_request;
use crate::lane::removal::remove_lane::RemovalReason;
use crate::lane::removal::{expire, unrecorded_worktree};
use crate::lane::state::lane_state::effective_state;
use crate::ops::batch_rules::BatchRules;
use crate::ops::error::Error;
use crate::ops::reporter::{Progress, Reporter, SilentReporter};

/// Lanes to clean up.
#[derive(Debug, Clone, Default)]
pub struct CleanupRequest {
    /// The lanes; if empty, every lane whose state makes it a candidate, and unrecorded worktrees.
    pub lanes: Vec<AnyLane>,
    /// Whether lanes that changed nothing, or failed or ended without an answer, are candidates too.
    pub all: bool,
    /// Whether work in named lanes is saved and their agents are stopped first, instead of refusing.
    pub force: bool,
}

/// Lanes that a clean-up tries to remove.
#[derive(Debug, Clone)]
pub struct CleanupPlan(RemovalPlan);

/// Result of a clean-up, or forecast of one, which has no rows for lanes that would be removed.
#[derive(Debug, Serialize)]
pub struct CleanupOutcome {
    /// Lanes that were removed or retained.
    #[serde(flatten)]
    pub removal: RemovalOutcome,
    /// Whether there was neither a lane nor an unrecorded worktree to remove.
    #[serde(skip)]
    pub found_nothing: bool,
}

impl CleanupOutcome {
    /// Deletes expired snapshots, operations and trash, which ends a clean-up; a dry run deletes nothing. It
    /// may take long or fail, so the caller reports the outcome before.
    ///
    /// # Errors
    /// Fails if something expired cannot be deleted.
    pub fn delete_expired(&self, project: &Project) -> Result<(), Error> {
        match self.removal.dry_run {
            true => Ok(()),
            false => Ok(expire::delete_expired(project)?),
        }
    }
}

/// Selects the lanes to remove. Whether each may be removed is decided by what is in it, afterwards.
///
/// # Errors
/// Fails if the lanes cannot be read.
pub fn plan(
    project: &Project,
    request: &CleanupRequest,
    batches: &dyn BatchRules,
) -> Result<CleanupPlan, Error> {
    let mut lanes = request.lanes.clone();
    let are_named = !lanes.is_empty();
    if !are_named {
        for lane in project.all_lanes()? {
            if is_candidate(project, &lane, request.all, batches)? {
                lanes.push(lane);
            }
        }
    }
    Ok(CleanupPlan(RemovalPlan {
        operation: "cleanup",
        lanes,
        reason: RemovalReason::Cleanup,
        force: request.force,
        stop_agents: request.force,
        are_named,
    }))
}

/// Returns whether a lane that was not named is considered for removal, by its state.
fn is_candidate(
    project: &Project,
    lane: &AnyLane,
    include_all: bool,
    batches: &dyn BatchRules,
) -> Result<bool, Error> {
    if lane.batch.as_ref().is_some_and(|in_batch| batches.keeps_own_lanes(project, &in_batch.batch)) {
        return Ok(false);
    }
    let (state, _) = effective_state(project, lane)?;
    let Some(branch) = lane.branch() else {
        // An agent's answer is retained until the user removes it explicitly.
        let has_no_answer = matches!(state, LaneState::Failed | LaneState::Stalled | LaneState::Stopped);
        let is_finished = lane.works_in_place() && !state.is_busy();
        return Ok(include_all && (has_no_answer || is_finished));
    };
    if !state.is_busy() && merged_request(project, lane).is_some() {
        return Ok(true);
    }
    let is_missing = !lane.path.exists() || project.repo.branch_tip(branch)?.is_none();
    Ok(match state {
        LaneState::Landed => true,
        LaneState::NoChange | LaneState::Failed | LaneState::Stalled | LaneState::Stopped => {
            include_all || is_missing
        }
        LaneState::Done if lane.already_done => include_all || is_missing,
        LaneState::Starting | LaneState::Running | LaneState::Orphaned => false,
        _ => is_missing,
    })
}

impl CleanupPlan {
    /// Returns the number of lanes that [`CleanupPlan::execute`] would remove.
    #[must_use]
    pub fn count_removable(&self, project: &Project) -> usize {
        let forecast = self.0.forecast(project, &SilentReporter);
        forecast.lanes.iter().filter(|row| row.error.is_none()).count()
    }

    /// Returns what [`CleanupPlan::execute`] would do.
    ///
    /// # Errors
    /// Fails if the worktrees cannot be read.
    pub fn forecast(&self, project: &Project, reporter: &dyn Reporter) -> Result<CleanupOutcome, Error> {
        let mut removal = self.0.forecast(project, reporter);
        removal.lanes.retain(|row| row.error.is_some());
        self.finish(project, reporter, removal)
    }

    /// Removes the lanes in one operation and, unless they were named, unrecorded worktrees that hold no
    /// work; those with work become lanes. The caller deletes expired items afterwards, by
    /// [`CleanupOutcome::delete_expired`].
    ///
    /// # Errors
    /// Fails if the operation itself fails, or the worktrees cannot be read.
    pub fn execute(self, project: &Project, reporter: &dyn Reporter) -> Result<CleanupOutcome, Error> {
        let _scope = reporter.enter_cancellation();
        let removal = self.0.execute(project, reporter)?;
        self.finish(project, reporter, removal)
    }

    /// Removes unrecorded worktrees, unless this is a dry run.
    fn finish(
        &self,
        project: &Project,
        reporter: &dyn Reporter,
        removal: RemovalOutcome,
    ) -> Result<CleanupOutcome, Error> {
        let unrecorded = if self.0.are_named {
            Vec::new()
        } else {
            list::unrecorded_worktrees(project, &project.owned_lanes()?, &WorktreeList::read(&project.repo)?)?
        };
        for path in &unrecorded {
            match unrecorded_worktree::remove_unrecorded(project, path, removal.dry_run) {
                Ok(false) => {}
                Ok(true) => {
                    let is_removed = !removal.dry_run;
                    reporter.progress(Progress::UnrecordedWorktree { path, is_removed });
                }
                Err(e) => reporter.progress(Progress::UnrecordedRetained(&e.into())),
            }
        }
        let found_nothing = self.0.lanes.is_empty() && unrecorded.is_empty();
        Ok(CleanupOutcome { removal, found_nothing })
    }
}
