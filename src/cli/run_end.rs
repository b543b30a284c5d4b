//! The end of a run for the user: its line, exit code, event, and the messages that are still pending.

use std::time::{Duration, Instant};

use super::{CommandContext, Failure, ui};
use crate::event::{Event, EventName};
use crate::explain::Exit;
use crate::lane::{self, Inbox, Project};
use crate::store::LockName;
use crate::store::records::{AnyLane, LaneState};

/// Maximum time that a supervisor may need between writing the final state and writing the event.
const FINAL_EVENT_TIMEOUT: Duration = Duration::from_secs(1);

/// Waits until the supervisor has written its event, which follows the state, so that the event log has it
/// when `git proq wait` returns.
pub(super) fn wait_for_final_event(project: &Project, lane: &AnyLane) -> Result<(), Failure> {
    let started = Instant::now();
    let lock = LockName::Run(lane.name.clone());
    // The session of an idle interactive agent continues.
    while started.elapsed() < FINAL_EVENT_TIMEOUT
        && !lane::is_agent_idle(project, lane)
        && project.store.locks().is_held(&lock)?
    {
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Makes the terminal notify the user that a run has ended.
pub(super) fn notify_run_ended(
    session: &CommandContext,
    project: &Project,
    lane: &AnyLane,
    state: LaneState,
) {
    let mut event = Event::new(EventName::RunEnded, format!("lane '{}': {state}", lane.name));
    event.lane = Some(lane.name.clone());
    session.ui.notify_terminal(project, &event);
}

/// Formats a lane and its final state as one line.
pub(super) fn state_line(lane: &AnyLane, state: LaneState) -> String {
    let detail_suffix = lane.detail.as_deref().map(|d| format!(" ({d})")).unwrap_or_default();
    format!("{}: {}{detail_suffix}", lane.name, ui::styled_state(state))
}

/// Returns the exit code for the final state of a run.
pub(super) fn exit_for_state(state: LaneState) -> Exit {
    match state {
        LaneState::Failed | LaneState::Stalled | LaneState::Stopped | LaneState::Orphaned => Exit::Agent,
        _ => Exit::Success,
    }
}

/// Prints how many messages are pending in a lane, if any are.
pub(super) fn print_pending_messages(session: &CommandContext, project: &Project, name: &str) {
    let count = Inbox::new(project, name).count();
    if count > 0 {
        session.ui.status(lane::pending_messages_text(name, count));
    }
}
