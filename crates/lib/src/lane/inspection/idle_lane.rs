//! Idle lanes: lanes that count as done although the agent's interactive session continues in a terminal. The
//! agent has finished its turn, and there is committed work.

use proq_git::status::worktree_status::WorktreeStatus;
use proq_git::worktrees::worktree::WorktreeList;
use proq_store::Store;
use proq_store::records::lane::{AnyLane, LaneRecord};
use proq_store::records::lane_state::LaneState;

use super::evidence::inspect_worktree;
use crate::lane::state::conflict_validity;
use crate::lane::state::lane_state::effective_state;
use crate::lane::state::state_records::StateRecords;
use crate::lane::{Error, Project};

/// Detail shown for a lane that is done while its interactive agent is idle.
pub const IDLE_DETAIL: &str = "its agent is idle in its window";

/// Returns the state of a lane as it is displayed, with its detail. It differs from [`effective_state`] in
/// two cases: a lane whose interactive agent is idle with committed work is done, and so is a lane whose
/// conflict is over. Code that is about to change the lane must use [`effective_state`].
pub fn displayed_state(project: &Project, lane: &AnyLane) -> Result<(LaneState, Option<String>), Error> {
    let (state, detail) = effective_state(project, lane)?;
    let records = StateRecords::new(project.store.layout(), lane);
    if conflict_validity::is_landing_outdated(project, lane, &records, state) {
        return Ok((LaneState::Done, None));
    }
    let idle_with_work = match lane.clone().into_owned_lane() {
        Ok(lane) => state == LaneState::Running && is_idle_with_work(project, &lane)?,
        Err(_) => false,
    };
    Ok(if idle_with_work { (LaneState::Done, Some(IDLE_DETAIL.to_owned())) } else { (state, detail) })
}

/// Returns whether the lane's interactive agent is idle and the lane has committed work and no uncommitted
/// changes. The next message of the user to the agent ends this state.
pub fn is_idle_with_work(project: &Project, lane: &LaneRecord) -> Result<bool, Error> {
    Ok(effective_state(project, lane)?.0 == LaneState::Running
        && is_agent_idle(&project.store, lane)
        && has_committed_work(project, lane, None)?)
}

/// Returns whether the last activity of the lane's interactive agent was the end of its turn. An unreadable
/// record counts as not idle.
pub fn is_agent_idle<P>(store: &Store, lane: &LaneRecord<P>) -> bool {
    StateRecords::new(store.layout(), lane).is_agent_idle()
}

/// Returns whether the lane's last run is interactive and works on the task, not on a conflict.
pub fn is_interactive<P>(store: &Store, lane: &LaneRecord<P>) -> bool {
    StateRecords::new(store.layout(), lane).is_interactive()
}

/// Returns whether the lane has work to land, all of it committed on its branch. `dirt` is the worktree's
/// status if the caller has just read it.
pub(crate) fn has_committed_work(
    project: &Project,
    lane: &LaneRecord,
    dirt: Option<WorktreeStatus>,
) -> Result<bool, Error> {
    let evidence = inspect_worktree(project, lane, &WorktreeList::read(&project.repo)?, dirt)?;
    Ok(evidence.is_worktree_intact()
        && evidence.tip.is_some_and(|tip| tip != lane.start)
        && evidence.dirty_state.is_clean()
        && evidence.open_git_operation.is_none()
        && evidence.detached_work.is_none())
}
