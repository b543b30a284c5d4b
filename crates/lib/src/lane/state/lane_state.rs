//! State of a lane, checked against the locks of its run.

use proq_base::fail_points;
use proq_base::lane_name::LaneName;
use proq_store::Store;
use proq_store::base::record::Record;
use proq_store::base::run_number::RunNumber;
use proq_store::locks::lock::LockName;
use proq_store::records::agent::{Activity, ActivityRecord};
use proq_store::records::lane::LaneRecord;
use proq_store::records::lane_state::LaneState;

use super::crash_reason::describe_crash;
use crate::lane::context::lane_records::load_present_or_past_lane;
use crate::lane::{Error, Project};

/// State detail between the exit of an agent and the write of its result, which a full disk may delay.
pub(crate) const RESULT_PENDING_DETAIL: &str = "its agent has ended; what came of it is being written";

/// Returns a lane's state, checked against its locks, and the detail of that state.
pub fn effective_state<P>(
    project: &Project,
    lane: &LaneRecord<P>,
) -> Result<(LaneState, Option<String>), Error> {
    let is_claimed = lane.state.is_claimed();
    let locks = project.store.locks();
    if !is_claimed {
        // A process that the agent started may outlive it.
        if lane.last_run != RunNumber::NONE && locks.is_held(&LockName::AgentAlive(lane.name.clone()))? {
            return Ok((LaneState::Orphaned, Some("a process of its agent lives on".into())));
        }
        return Ok((lane.state, lane.detail.clone()));
    }
    fail_points::hit("state.claimed");
    let alive = LockName::AgentAlive(lane.name.clone());
    if locks.is_held(&LockName::Run(lane.name.clone()))? {
        let detail = match lane.state == LaneState::Running && !locks.is_held(&alive)? {
            true => lane.detail.clone().or_else(|| Some(RESULT_PENDING_DETAIL.to_owned())),
            false => describe_activity(&project.store, lane).or_else(|| lane.detail.clone()),
        };
        return Ok((lane.state, detail));
    }
    fail_points::hit("state.free");
    // The supervisor writes the final state before it releases the lock, so the record is read again.
    match load_present_or_past_lane(project, lane) {
        Ok((_, current)) if !current.state.is_claimed() => return Ok((current.state, current.detail)),
        // That run has finished, and another one has started since the lock was checked.
        Ok((_, current)) if current.last_run != lane.last_run => return effective_state(project, &current),
        _ => {}
    }
    if locks.is_held(&alive)? {
        return Ok((LaneState::Orphaned, Some("its supervisor is gone, its agent lives on".into())));
    }
    Ok((
        state_after_run(&project.store, &lane.name, LaneState::Failed),
        Some(describe_crash(project, &lane.name)),
    ))
}

/// Returns a lane's state after a run that finished in `state`. After a run that resolves a conflict, the
/// lane is still in conflict while the record of the resolution exists.
pub(crate) fn state_after_run(store: &Store, lane: &LaneName, state: LaneState) -> LaneState {
    // An unreadable record still means a conflict.
    if store.layout().resolution_record(lane).exists() { LaneState::Conflict } else { state }
}

/// Returns the activity that the agent of a lane's last run reported last; none when the record cannot be
/// read.
pub fn last_activity<P>(store: &Store, lane: &LaneRecord<P>) -> Option<Activity> {
    let path = store.layout().run_activity(&lane.name, lane.last_run);
    Some(ActivityRecord::load_if_exists(&path).ok()??.activity)
}

/// Returns the last reported activity of the lane's agent in words; none while it works, and when the record
/// cannot be read.
fn describe_activity<P>(store: &Store, lane: &LaneRecord<P>) -> Option<String> {
    let path = store.layout().run_activity(&lane.name, lane.last_run);
    let record = ActivityRecord::load_if_exists(&path).ok()??;
    let message_suffix = record.waits_for.map(|text| format!(": {text}")).unwrap_or_default();
    match record.activity {
        Activity::Working => None,
        Activity::NeedsApproval => Some(format!("needs approval{message_suffix}")),
        Activity::Idle => Some("idle".to_owned()),
        Activity::Unknown => Some("its agent does not tell whether it works or waits".to_owned()),
    }
}
