//! Outlook of a lane with automatic merge: when it will land, or the reason why it does not.

use proq_store::locks::lock::LockName;
use proq_store::records::lane::AnyLane;
use proq_store::records::lane_state::LaneState;

use super::lane_details::LaneDetails;
use crate::lane::Project;
use crate::run::auto_merge;
use crate::run::auto_merge::AutoMergeStatus;

/// Describes when a lane with automatic merge lands; or why it does not, and the command that helps. `state`
/// is that of the lane for display.
#[must_use]
pub fn auto_merge_outlook(
    project: &Project,
    lane: &AnyLane,
    state: LaneState,
    details: &LaneDetails,
) -> String {
    let (name, base) = (&lane.name, &lane.base);
    let unless_forced =
        |run_end: &str| format!("no: its run {run_end}; to merge it anyway: git proq merge --force {name}");
    match state {
        LaneState::Idle | LaneState::Starting | LaneState::Running => {
            format!("merged into {base} when its run is done")
        }
        LaneState::Orphaned => {
            format!("no: a process of its agent is still running; stop it: git proq stop {name}")
        }
        LaneState::Done => outlook_when_done(project, lane, details),
        LaneState::Landed => "it landed".to_owned(),
        LaneState::Conflict => format!("no: it conflicts; resolve it: git proq resolve {name}"),
        LaneState::CheckFailed => format!("no: its check failed; retry: git proq merge {name}"),
        LaneState::Failed => unless_forced("failed"),
        LaneState::Stalled => unless_forced("stalled"),
        LaneState::Stopped => unless_forced("was stopped"),
        LaneState::NoChange => "no: it changed nothing".to_owned(),
        LaneState::Discarded => "no: it was discarded".to_owned(),
    }
}

/// Describes when a lane lands whose run is done; or why its landing was refused or ended early.
fn outlook_when_done(project: &Project, lane: &AnyLane, details: &LaneDetails) -> String {
    let (name, base) = (&lane.name, &lane.base);
    if project.store.locks().is_held(&LockName::AutoMerge(name.clone())).unwrap_or(false) {
        return format!("being merged into {base}: git proq queue");
    }
    let owned_lane = lane.clone().into_owned_lane().ok();
    let status = owned_lane.and_then(|lane| auto_merge::auto_merge_status(project, &lane).ok());
    if let Some(AutoMergeStatus::Blocked(reason) | AutoMergeStatus::BranchMoved(reason)) = status {
        return format!("refused: {reason}");
    }
    let retry = format!("tried again after the next landing on {base}");
    match lane.auto_merge_refusal.as_ref().map(|refused| &refused.refusal_reason) {
        Some(reason) if !details.pending_messages.is_empty() => format!("refused: {reason}"),
        Some(reason) => format!("refused: {reason}; {retry}"),
        None => format!("its merge was interrupted; {retry}; to merge it now: git proq merge {name}"),
    }
}
