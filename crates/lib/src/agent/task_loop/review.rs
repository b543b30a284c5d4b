//! Protection of a lane during a review, which must change nothing: recording the state before it, and
//! reverting changes made during it.

use proq_git::Repo;
use proq_git::status::status_query;
use proq_store::records::lane::LaneRecord;
use proq_store::records::run::RunRecord;
use proq_store::records::step_run::StepRun;

use crate::agent::Error;
use crate::lane::Project;
use crate::lane::context::head_ownership;
use crate::run::rewind::{LaneFingerprint, rewind_lane};

/// Result of reverting the changes that were made during a review.
pub(super) enum RevertOutcome {
    /// Nothing was changed.
    Unchanged,
    /// The changes were reverted; the text describes where they are saved.
    Reverted(String),
    /// The changes cannot be reverted, for this reason.
    Failed(String),
}

/// Returns `step_run` with the state of the lane before a review: whether it is clean, and its fingerprint.
/// Returns a run that is no review unchanged.
pub(super) fn with_state_before_review(
    repo: &Repo,
    lane: &LaneRecord,
    step_run: StepRun,
) -> Result<StepRun, Error> {
    if !step_run.phase.is_review() {
        return Ok(step_run);
    }
    let was_clean = status_query::status(repo, &lane.path, true)?.is_clean();
    Ok(StepRun {
        was_clean,
        fingerprint_before_review: Some(LaneFingerprint::capture(repo, lane)?.hash_text()),
        ..step_run
    })
}

/// Reverts changes that happened in the lane during a review.
pub(super) fn revert_review_changes(
    project: &Project,
    lane: &LaneRecord,
    run: &RunRecord,
    step_run: &StepRun,
) -> Result<RevertOutcome, Error> {
    let failed = |reason: &str| {
        let reviewer = &run.agent;
        RevertOutcome::Failed(format!(
            "while {reviewer} reviewed step {}, the lane was changed: {reason}",
            step_run.step
        ))
    };
    if let Some(head_problem) = head_ownership::move_branch_to_head(project, lane)? {
        return Ok(failed(&head_problem));
    }
    if Some(LaneFingerprint::capture(&project.repo, lane)?.hash_text()) == step_run.fingerprint_before_review
    {
        return Ok(RevertOutcome::Unchanged);
    }
    if !step_run.was_clean {
        return Ok(failed("there was uncommitted work before, so it cannot be separated"));
    }
    let description = format!("what the review in run {} of lane {} had changed", run.number, lane.name);
    match rewind_lane(project, lane, run.tip_before, &description) {
        // Nothing differs: another version of git-proq computed the recorded fingerprint.
        Ok(saved) => Ok(saved.describe().map_or(RevertOutcome::Unchanged, RevertOutcome::Reverted)),
        Err(e) => Ok(failed(&format!("it could not be undone: {e}"))),
    }
}
