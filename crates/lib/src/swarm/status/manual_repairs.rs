//! Manual repairs of tasks that could not land or whose runs failed: work of the user in their lanes, or a
//! landing of those lanes.

use proq_base::lane_name::LaneName;
use proq_git::{CommitId, Repo};
use proq_plan::schedule::state::State;
use proq_plan::schedule::status_queries::TaskStatus;
use proq_plan::schedule::task_phase::{FailureReason, TaskOutcome};
use proq_store::base::batch_id::BatchId;
use proq_store::base::record::Record;
use proq_store::locks::lock::LockName;
use proq_store::records::conflict::ConflictRecord;
use proq_store::records::lane::LaneRecord;
use proq_store::records::lane_state::LaneState;

use crate::lane::Project;
use crate::swarm::Error;
use crate::swarm::batch::lanes::find_batch_lane;
use crate::swarm::batch::log_summary::{LogSummary, TaskCommits};
use crate::swarm::batch::record::Batch;

/// What the user did about a task that could not land or whose run failed.
pub(crate) enum ManualRepair {
    /// Nothing that could land.
    None,
    /// The task's lane is unchanged.
    Unchanged,
    /// The user's work in the lane, which lands in place of the task's own work.
    NewCommits(TaskCommits),
}

/// A batch, its scheduler state, and the facts of its log.
type BatchView<'a> = (&'a Batch, &'a State, &'a LogSummary);

/// Finds what the user did about a task that could not land or whose run failed. New commits count if they
/// can land: the lane has no open conflict with them, and nothing runs there. So does a landing of the lane
/// on the batch's branch.
///
/// # Errors
/// When the repository or a record cannot be read.
pub(crate) fn find_repair(
    project: &Project,
    view: BatchView<'_>,
    task: usize,
) -> Result<ManualRepair, Error> {
    let (batch, state, known) = view;
    let (work, was_to_land) = match state.task_status(task) {
        TaskStatus::Settled(TaskOutcome::Failed(
            FailureReason::CheckFailed | FailureReason::ConflictUnresolved,
        ))
        | TaskStatus::Conflict => (known.task_commits.get(&task), true),
        TaskStatus::Settled(TaskOutcome::Failed(FailureReason::RunFailed(_)) | TaskOutcome::SetAside) => {
            (known.failed_commits.get(&task), false)
        }
        _ => return Ok(ManualRepair::None),
    };
    let Some(work) = work else { return Ok(ManualRepair::None) };
    let batch_and_branch = (batch.id(), batch.record.branch.as_str());
    if find_manual_landing(project, batch_and_branch, &work.lane, work.work_end)?.is_some() {
        return Ok(ManualRepair::NewCommits(work.clone()));
    }
    let Some(lane) = find_batch_lane(project, batch.id(), &work.lane)? else { return Ok(ManualRepair::None) };
    let layout = project.store.layout();
    let is_running = project.store.locks().is_held(&LockName::Run(lane.name.clone()))?;
    let Some(tip) = project.repo.branch_tip(&lane.kind.branch)? else { return Ok(ManualRepair::None) };
    if is_running || layout.resolution_record(&lane.name).exists() {
        return Ok(ManualRepair::None);
    }
    if tip == work.work_end {
        return Ok(ManualRepair::Unchanged);
    }
    if !was_to_land {
        return find_finished_work(&project.repo, view, (task, work), &lane, tip);
    }
    // A manual commit that conflicts is already on record as this conflict, so it is no repair.
    if ConflictRecord::load_if_exists(&layout.conflict_record(&lane.name))?
        .is_some_and(|conflict| conflict.theirs == tip)
    {
        return Ok(ManualRepair::None);
    }
    let new_commits = |from| {
        ManualRepair::NewCommits(TaskCommits { lane: lane.name.clone(), work_start: from, work_end: tip })
    };
    if project.repo.is_ancestor(work.work_end, tip)? {
        return Ok(new_commits(work.work_start));
    }
    Ok(find_rewritten_start(&project.repo, view, (task, work), tip)?.map_or(ManualRepair::None, new_commits))
}

/// Finds commits in the lane of a task since its run failed, by a later run that succeeded or by the user.
fn find_finished_work(
    repo: &Repo,
    (batch, _, known): BatchView<'_>,
    (task, work): (usize, &TaskCommits),
    lane: &LaneRecord,
    tip: CommitId,
) -> Result<ManualRepair, Error> {
    let belongs_to_task = lane.batch.as_ref().is_some_and(|in_batch| in_batch.task == batch.task_name(task));
    let is_by_hand = known.last_failed_runs.get(&task) == Some(&lane.last_run);
    let ended_well = is_by_hand || lane.state() == LaneState::Done;
    if !belongs_to_task || !ended_well || tip == work.work_start || !repo.is_ancestor(work.work_start, tip)? {
        return Ok(ManualRepair::None);
    }
    Ok(ManualRepair::NewCommits(TaskCommits { work_end: tip, ..work.clone() }))
}

/// Finds where a task's work begins after its commits were amended or rebased; `tip` is the last new commit.
/// None where the commits may belong to another task of the same lane, or all of them are on the branch
/// already.
fn find_rewritten_start(
    repo: &Repo,
    (batch, state, known): BatchView<'_>,
    (task, work): (usize, &TaskCommits),
    tip: CommitId,
) -> Result<Option<CommitId>, Error> {
    let is_on_branch = |other: usize| {
        matches!(state.task_outcome(other), Some(TaskOutcome::Landed | TaskOutcome::AlreadyDone))
    };
    let shares_lane =
        |(other, lane): (&usize, &LaneName)| *other != task && *lane == work.lane && !is_on_branch(*other);
    if known.last_lanes.iter().any(shares_lane) {
        return Ok(None);
    }
    let Some(branch) = repo.branch_tip(&batch.record.branch)? else { return Ok(None) };
    if repo.is_ancestor(tip, branch)? {
        return Ok(None);
    }
    // Work of other tasks that landed in other commits may lie below.
    if repo.is_ancestor(work.work_start, tip)? && !repo.is_ancestor(work.work_start, branch)? {
        return Ok(Some(work.work_start));
    }
    Ok(repo.merge_base(branch, tip)?)
}

/// Finds the commit with which the user landed a task's work on the batch's branch, with `git proq merge
/// LANE`.
pub(crate) fn find_manual_landing(
    project: &Project,
    (batch, branch): (&BatchId, &str),
    lane: &LaneName,
    work_tip: CommitId,
) -> Result<Option<CommitId>, Error> {
    let past_lanes = project.past_owned_lanes().into_iter().map(|(_, lane)| lane);
    let is_own = |it: &LaneRecord| {
        it.name == *lane && it.batch.as_ref().is_some_and(|in_batch| in_batch.batch == *batch)
    };
    let candidates = find_batch_lane(project, batch, lane)?.into_iter().chain(past_lanes.filter(is_own));
    let landings = candidates.filter_map(|lane| lane.landed).filter(|landed| landed.onto == branch);
    let Some(tip) = project.repo.branch_tip(branch)? else { return Ok(None) };
    for landing in landings {
        let contains_work = project.repo.is_ancestor(work_tip, landing.tip)?;
        if contains_work && project.repo.is_ancestor(landing.commit, tip)? {
            return Ok(Some(landing.commit));
        }
    }
    Ok(None)
}
