//! State of a lane, checked against the locks of its run.

use proq_base::fail_points;
use proq_base::lane_name::LaneName;
use proq_store::Store;
use proq_store::base::run_number::RunNumber;
use proq_store::locks::lock::LockName;
use proq_store::records::agent::{Activity, ActivityRecord};
use proq_store::records::lane::LaneRecord;
use proq_store::records::lane_state::{LandingState, LaneState, LaneStatus, RunState};

use super::crash_reason::describe_crash;
use super::state_records::StateRecords;
use crate::lane::context::lane_records::load_present_or_past_lane;
use crate::lane::{Error, Project};

/// State detail between the exit of an agent and the write of its result, which a full disk may delay.
pub(crate) const RESULT_PENDING_DETAIL: &str = "its agent has ended; its result is being saved";

/// Returns the word for a lane's status, checked against its locks, and the detail of that state.
pub fn effective_state<P>(
    project: &Project,
    lane: &LaneRecord<P>,
) -> Result<(LaneState, Option<String>), Error> {
    let (status, detail) = effective_status(project, lane)?;
    Ok((status.state(), detail))
}

/// Returns a lane's status, checked against the locks of its run, and its detail. The run of a live agent that
/// waits for a person is [`RunState::Waiting`].
pub fn effective_status<P>(
    project: &Project,
    lane: &LaneRecord<P>,
) -> Result<(LaneStatus, Option<String>), Error> {
    status_by_records(project, lane, &StateRecords::new(project.store.layout(), lane))
}

/// Returns a lane's status as [`effective_status`] does. `records` are those of the lane.
pub(crate) fn status_by_records<P>(
    project: &Project,
    lane: &LaneRecord<P>,
    records: &StateRecords,
) -> Result<(LaneStatus, Option<String>), Error> {
    let with_run = |run| LaneStatus { run, ..lane.status };
    let locks = project.store.locks();
    if !lane.status.run.is_claimed() {
        // A process that the agent started may outlive it.
        if lane.last_run != RunNumber::NONE && locks.is_held(&LockName::AgentAlive(lane.name.clone()))? {
            return Ok((
                with_run(RunState::Orphaned),
                Some("a process of its agent is still running".into()),
            ));
        }
        return Ok((lane.status, lane.detail.clone()));
    }
    fail_points::hit("state.claimed");
    let alive = LockName::AgentAlive(lane.name.clone());
    if locks.is_held(&LockName::Run(lane.name.clone()))? {
        if lane.status.run != RunState::Starting && !locks.is_held(&alive)? {
            let detail = lane.detail.clone().or_else(|| Some(RESULT_PENDING_DETAIL.to_owned()));
            return Ok((lane.status, detail));
        }
        let run = match records.last_activity() {
            Some(Activity::NeedsApproval | Activity::Idle) if lane.status.run == RunState::Running => {
                RunState::Waiting
            }
            _ => lane.status.run,
        };
        let detail = records.activity.get().and_then(describe_activity).or_else(|| lane.detail.clone());
        return Ok((with_run(run), detail));
    }
    fail_points::hit("state.free");
    // The supervisor writes the final state before it releases the lock, so the record is read again.
    match load_present_or_past_lane(project, lane) {
        Ok((_, current)) if !current.status.run.is_claimed() => {
            return Ok((current.status, current.detail));
        }
        // That run has finished, and another one has started since the lock was checked.
        Ok((_, current)) if current.last_run != lane.last_run => {
            return effective_status(project, &current);
        }
        _ => {}
    }
    if locks.is_held(&alive)? {
        return Ok((with_run(RunState::Orphaned), Some("its agent is running without a supervisor".into())));
    }
    Ok((
        status_after_run(&project.store, &lane.name, RunState::Failed),
        Some(describe_crash(project, &lane.name)),
    ))
}

/// Returns a lane's status after a run that ended in `run`. After a run that resolves a conflict, the lane
/// is still in conflict while the record of the resolution exists.
pub(crate) fn status_after_run(store: &Store, lane: &LaneName, run: RunState) -> LaneStatus {
    // An unreadable record still means a conflict.
    let is_resolving = store.layout().resolution_record(lane).exists();
    LaneStatus { run, landing: if is_resolving { LandingState::Conflict } else { LandingState::Open } }
}

/// Returns an agent's activity in words; none while it works.
fn describe_activity(record: &ActivityRecord) -> Option<String> {
    let message_suffix = record.waits_for.as_ref().map(|text| format!(": {text}")).unwrap_or_default();
    match record.activity {
        Activity::Working => None,
        Activity::NeedsApproval => Some(format!("needs approval{message_suffix}")),
        Activity::Idle => Some("idle".to_owned()),
        Activity::Unknown => Some("its agent does not report whether it works or waits".to_owned()),
    }
}
