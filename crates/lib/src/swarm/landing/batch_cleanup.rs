//! Clean-up of a batch: removal of its lanes and its branch.

use proq_base::lane_name::LaneName;
use proq_git::CommitId;
use proq_git::worktrees::worktree::WorktreeList;
use proq_plan::schedule::task_phase::TaskOutcome;
use proq_store::base::batch_id::BatchId;
use proq_store::base::clock::now;
use proq_store::base::id::new_id;
use proq_store::locks::lock::LockName;
use proq_store::records::lane::LaneRecord;
use serde::Serialize;

use super::batch_landing::{find_landed_branch, find_landing_lane, landing_hint, last_known_tip};
use crate::lane;
use crate::lane::Project;
use crate::lane::inspection::evidence;
use crate::lane::removal::remove_lane;
use crate::lane::removal::remove_lane::RemovalReason;
use crate::lane::state::lane_state::effective_state;
use crate::operation::journaled_operation::Operation;
use crate::operation::run_operation::operate;
use crate::swarm::Error;
use crate::swarm::batch::error::BatchError;
use crate::swarm::batch::lanes::batch_lanes;
use crate::swarm::batch::ledger::Ledger;
use crate::swarm::batch::record::{Batch, BatchRecord};

/// Result of cleaning up a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CleanupReport {
    /// Id of the batch.
    pub batch: BatchId,
    /// Names of the removed lanes.
    pub lanes: Vec<LaneName>,
    /// The ref that keeps the commits which had landed only on the batch's branch.
    #[serde(rename = "saved")]
    pub saved_ref: Option<String>,
    /// Whether nothing was changed.
    pub dry_run: bool,
}

/// Refuses the clean-up where a lane has work that would be removed with it.
fn refuse_unlanded_work(project: &Project, id: &BatchId, lanes: &[LaneRecord]) -> Result<(), Error> {
    let worktrees = WorktreeList::read(&project.repo)?;
    let mut lanes_with_work = Vec::new();
    for lane in lanes {
        match remove_lane::refuse_removal(lane, &evidence::gather(project, lane, &worktrees)?, false) {
            Ok(()) => {}
            Err(lane::Error::RemovalRefused { name, reasons, .. }) => {
                lanes_with_work.push(format!("'{name}' ({})", reasons.join("; ")));
            }
            Err(e) => return Err(e.into()),
        }
    }
    match lanes_with_work.is_empty() {
        true => Ok(()),
        false => Err(BatchError::LanesHaveWork { id: id.clone(), lanes: lanes_with_work }.into()),
    }
}

/// What the clean-up of a batch removes.
struct CleanupPlan {
    /// The lanes of the batch, with its landing lane.
    lanes: Vec<LaneRecord>,
    /// Tip of the batch's own branch, as far as it is known.
    tip: Option<CommitId>,
    /// Whether the base lacks commits of that branch.
    is_unlanded: bool,
}

/// Returns whether the clean-up of a batch without a scheduler would be refused.
pub(crate) fn is_cleanup_refused(project: &Project, batch: &BatchRecord) -> bool {
    batch.cleaned.is_some() || plan_cleanup(project, batch, false).is_err()
}

/// Finds what the clean-up of a batch removes, and refuses it where work would be lost.
fn plan_cleanup(project: &Project, batch: &BatchRecord, force: bool) -> Result<CleanupPlan, Error> {
    let id = &batch.id;
    let mut lanes: Vec<LaneRecord> = batch_lanes(project, id)?.into_iter().map(|(_, lane)| lane).collect();
    lanes.extend(find_landing_lane(project, id).ok());
    for lane in &lanes {
        if effective_state(project, lane)?.0.is_busy() {
            return Err(BatchError::StillRunning { id: id.clone(), agents: true }.into());
        }
    }
    let tip = if batch.auto_merge { None } else { last_known_tip(project, batch)? };
    let is_unlanded = match (tip, project.repo.branch_tip(&batch.base)?) {
        (Some(tip), Some(base)) => tip != batch.start && !evidence::is_contained(project, tip, base)?,
        (Some(tip), None) => tip != batch.start && find_landed_branch(project, batch)?.is_none(),
        (None, _) => false,
    };
    if !force {
        refuse_unlanded_work(project, id, &lanes)?;
    }
    if is_unlanded && !force {
        let loaded = Batch::load(&project.store, id)?;
        let state = loaded.fold_state(&loaded.read_log_lines(&project.store)?);
        let has_landed = |task: &usize| state.task_outcome(*task) == Some(TaskOutcome::Landed);
        let count = (0..loaded.tasks.len()).filter(has_landed).count();
        let (id, base, hint) = (id.clone(), batch.base.clone(), landing_hint(project, batch, "land them"));
        return Err(BatchError::TasksNotLanded { id, count, base, hint }.into());
    }
    Ok(CleanupPlan { lanes, tip, is_unlanded })
}

/// Removes the lanes of a batch, with everything in them saved, and its branch, as one operation. With
/// `dry_run` nothing is changed.
///
/// # Errors
/// Fails while the batch runs. Without `force`, also fails where a lane has work that is nowhere else. The
/// same holds for tasks that have landed on the batch's branch but not on its base.
pub fn clean_up(
    project: &Project,
    batch: &BatchRecord,
    force: bool,
    dry_run: bool,
) -> Result<CleanupReport, Error> {
    let id = &batch.id;
    if batch.cleaned.is_some() {
        return Err(BatchError::CleanedUp { id: id.clone() }.into());
    }
    let lock = project.store.locks().try_acquire(&LockName::Batch(id.clone()))?;
    let _lock = lock.ok_or_else(|| BatchError::StillRunning { id: id.clone(), agents: false })?;
    let CleanupPlan { lanes, tip, is_unlanded } = plan_cleanup(project, batch, force)?;
    let names: Vec<LaneName> = lanes.into_iter().map(|lane| lane.name).collect();
    if dry_run {
        return Ok(CleanupReport { batch: id.clone(), lanes: names, saved_ref: None, dry_run });
    }
    let saved_ref = operate(project, "cleanup", |op| {
        for name in &names {
            crate::preview::remove_lane::remove_previewed_lane(op, name, RemovalReason::Discard, true)
                .map(drop)?;
        }
        let saved_ref =
            tip.map(|tip| remove_batch_branch(op, batch, tip, is_unlanded)).transpose()?.flatten();
        let record = BatchRecord { cleaned: Some(now()), ..batch.clone() };
        op.save_record(&record, &project.store.layout().batch_record(id))?;
        Ok::<_, Error>(saved_ref)
    })?;
    Ledger::release_all(&project.store, id)?;
    Ok(CleanupReport { batch: id.clone(), lanes: names, saved_ref, dry_run })
}

/// Removes the branch of a batch, which is or was at `tip`. If the tip `is_unlanded` on the base, returns the
/// ref that keeps it.
fn remove_batch_branch(
    op: &Operation<'_>,
    batch: &BatchRecord,
    tip: CommitId,
    is_unlanded: bool,
) -> Result<Option<String>, Error> {
    let saved_ref = is_unlanded.then(|| format!("refs/proq/saved/batch-{}-{}", batch.id, new_id()));
    if let Some(name) = &saved_ref {
        op.anchor(name, tip)?;
    }
    // The user may have deleted the branch before.
    if op.project.repo.branch_tip(&batch.branch)?.is_some() {
        op.delete_ref(&format!("refs/heads/{}", batch.branch), tip)?;
    }
    Ok(saved_ref)
}
