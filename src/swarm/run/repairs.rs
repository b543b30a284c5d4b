//! Owns finding what a person did about tasks that could not land, or whose runs came to nothing: in their lanes, or by landing those.

use super::known::{Known, Work};
use super::landing::landed_by_hand;
use super::runner::own_lane;
use crate::git::Oid;
use crate::lane::Project;
use crate::store::records::{ConflictRecord, LaneRecord, LaneState};
use crate::store::{LockName, Record};
use crate::swarm::Error;
use crate::swarm::batch::Batch;
use crate::swarm::schedule::{Fate, Now, State, Why};

/// What a person did about a task.
pub(super) enum Repair {
    /// Nothing that could land.
    None,
    /// Nothing in its lane.
    AsItWas,
    /// This work is to land in place of its own.
    Commits(Work),
}

/// A batch, and what is known of it.
type Seen<'a> = (&'a Batch, &'a State, &'a Known);

/// Finds what a person did about a task: its branch has other commits than were to land, and no conflict is laid out or on record
/// for those; or its lane has landed on the batch's branch.
///
/// # Errors
/// When the repository or a record cannot be read.
pub(super) fn repair_of(project: &Project, seen: Seen<'_>, task: usize) -> Result<Repair, Error> {
    let (batch, state, known) = seen;
    let (work, landed) = match state.now(task) {
        Now::Over(Fate::Failed(Why::Check | Why::Conflict)) | Now::Conflict => (known.works.get(&task), true),
        Now::Over(Fate::Failed(Why::Run(_)) | Fate::SetAside) => (known.tried.get(&task), false),
        _ => return Ok(Repair::None),
    };
    let Some(work) = work else { return Ok(Repair::None) };
    let own = (batch.id(), batch.record.branch.as_str());
    if landed_by_hand(project, own, &work.lane, work.to)?.is_some() {
        return Ok(Repair::Commits(work.clone()));
    }
    let Some(lane) = own_lane(project, batch.id(), &work.lane)? else { return Ok(Repair::None) };
    let layout = project.store.layout();
    let held = project.store.locks().is_held(&LockName::Run(lane.name.clone()))?;
    let Some(tip) = project.repo.branch_tip(&lane.place.branch)? else { return Ok(Repair::None) };
    if held || layout.resolve(&lane.name).exists() {
        return Ok(Repair::None);
    }
    if tip == work.to {
        return Ok(Repair::AsItWas);
    }
    if !landed {
        return finished(project, seen, (task, work), &lane, tip);
    }
    // What was committed there by hand lands as it is, or conflicts as it is.
    if ConflictRecord::find(&layout.conflict(&lane.name))?.is_some_and(|known| known.theirs == tip) {
        return Ok(Repair::None);
    }
    let of = |from| Repair::Commits(Work { lane: lane.name.clone(), from, to: tip });
    if project.repo.is_ancestor(work.to, tip)? {
        return Ok(of(work.from));
    }
    Ok(start_of_rewritten(project, seen, (task, work), tip)?.map_or(Repair::None, of))
}

/// What was committed in the lane of a task since its run came to nothing: by a later run that ended well, or by hand.
fn finished(
    project: &Project,
    (batch, _, known): Seen<'_>,
    (task, work): (usize, &Work),
    lane: &LaneRecord,
    tip: Oid,
) -> Result<Repair, Error> {
    let is_its_own = lane.batch.as_ref().is_some_and(|of| of.task == batch.name(task));
    let by_hand = known.last_runs.get(&task) == Some(&lane.attempt);
    let ended_well = by_hand || lane.state == LaneState::Done;
    if !is_its_own || !ended_well || tip == work.from || !project.repo.is_ancestor(work.from, tip)? {
        return Ok(Repair::None);
    }
    Ok(Repair::Commits(Work { to: tip, ..work.clone() }))
}

/// Finds where a task's work begins after its commits were amended or rebased; `tip` is their last. None where they may belong to
/// another task of the same lane, or nothing of them is left.
fn start_of_rewritten(
    project: &Project,
    (batch, state, known): Seen<'_>,
    (task, work): (usize, &Work),
    tip: Oid,
) -> Result<Option<Oid>, Error> {
    let repo = &project.repo;
    let is_there = |other: usize| matches!(state.fate(other), Some(Fate::Landed | Fate::Already));
    let shares = |(other, lane): (&usize, &String)| *other != task && *lane == work.lane && !is_there(*other);
    if known.lanes.iter().any(shares) {
        return Ok(None);
    }
    let Some(branch) = repo.branch_tip(&batch.record.branch)? else { return Ok(None) };
    if repo.is_ancestor(tip, branch)? {
        return Ok(None);
    }
    // Below it may lie the work of others that landed in other commits.
    if repo.is_ancestor(work.from, tip)? && !repo.is_ancestor(work.from, branch)? {
        return Ok(Some(work.from));
    }
    Ok(repo.merge_base(branch, tip)?)
}
