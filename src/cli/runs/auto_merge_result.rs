//! Result of the automatic merge of a lane, awaited after its run.

use std::path::PathBuf;
use std::time::Duration;

use proq_base::explain::Exit;
use proq_base::fail_points;
use proq_lib::agent::control::stop;
use proq_lib::lane::Project;
use proq_lib::lane::context::lane_records;
use proq_lib::lane::recovery;
use proq_store::base::record::Record;
use proq_store::locks::lock::LockName;
use proq_store::paths::layout::Layout;
use proq_store::records::lane::AnyLane;
use proq_store::records::lane_state::{LaneState, RunState};
use proq_store::records::run::RunRecord;

use crate::cli::invocation::failure::Failure;

/// Interval at which git-proq checks whether a supervisor that may still land its lane has exited.
const SUPERVISOR_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Result of the automatic merge of a lane.
pub(crate) struct AutoMergeResult {
    /// The lane as it is now, or as it was when it was removed.
    pub(crate) lane: AnyLane,
    /// The final state of the lane's run; `None` if it is not recorded.
    pub(crate) run_state: Option<RunState>,
    /// The path of the landing's log.
    pub(crate) log_path: PathBuf,
    /// The exit code of the landing.
    pub(crate) exit: Exit,
    /// Whether the lane has neither landed nor a recorded refusal: its landing was killed or has not begun.
    pub(crate) has_no_landing_outcome: bool,
}

/// Waits until the landing of a lane whose run has finished is over, and returns its result.
pub(crate) fn wait_for_landing(project: &Project, lane: &AnyLane) -> Result<AutoMergeResult, Failure> {
    let locks = project.store.locks();
    let mut is_last_check = false;
    loop {
        locks.wait_until_free(&LockName::AutoMerge(lane.name.clone()))?;
        // The landing may have been killed halfway.
        recovery::recover(project)?;
        let result = read_result(project, lane)?;
        fail_points::hit("landing.looked");
        if !result.has_no_landing_outcome || is_last_check {
            return Ok(result);
        }
        // A landing that was in progress when the run finished held the lock until now. The supervisor
        // acquires it next, as long as it runs.
        is_last_check = !stop::has_live_supervisor(&project.store, &result.lane)?;
        if !is_last_check {
            std::thread::sleep(SUPERVISOR_POLL_INTERVAL);
        }
    }
}

/// Reads the result of a lane's landing as it is now. The landing may still go on.
fn read_result(project: &Project, lane: &AnyLane) -> Result<AutoMergeResult, Failure> {
    let is_removed = project.lane(&lane.name).is_err();
    let (dir, current) = lane_records::load_present_or_past_lane(project, lane)?;
    let exit = match current.state() {
        LaneState::Conflict => Exit::Conflicts,
        LaneState::CheckFailed => Exit::Agent,
        LaneState::Landed => Exit::Success,
        LaneState::Discarded => Exit::Refused,
        // All of its changes were on the base before.
        _ if is_removed => Exit::Success,
        _ => current
            .auto_merge_refusal
            .as_ref()
            .map_or(Exit::Refused, |refused| Exit::from_code(refused.landing_exit_code)),
    };
    let run = RunRecord::load_if_exists(&Layout::run_record_in(&dir, lane.last_run))?;
    Ok(AutoMergeResult {
        run_state: run.and_then(|run| run.outcome),
        log_path: Layout::auto_merge_log_in(&dir, lane.last_run),
        exit,
        has_no_landing_outcome: !is_removed
            && current.auto_merge
            && current.state() == LaneState::Done
            && current.auto_merge_refusal.is_none(),
        lane: current,
    })
}
