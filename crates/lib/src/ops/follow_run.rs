//! Following of a run to its end: its log while it grows, and the landing after it.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proq_base::explain::Exit;
use proq_base::{fail_points, regular_file};
use proq_store::base::record::Record;
use proq_store::locks::lock::LockName;
use proq_store::paths::layout::Layout;
use proq_store::records::lane::{AnyLane, LaneRecord};
use proq_store::records::lane_state::{LaneState, RunState};
use proq_store::records::run::RunRecord;

use super::error::Error;
use super::reporter::Reporter;
use crate::agent::control::stop;
use crate::lane;
use crate::lane::Project;
use crate::lane::context::lane_records;
use crate::lane::inspection::idle_lane;
use crate::lane::recovery;
use crate::watch::subject::Subject;
use crate::watch::watcher::Watch;

/// Maximum number of bytes of a log that are read at once.
const CHUNK_LEN: usize = 64 * 1024;

/// Interval at which git-proq checks whether a supervisor that may still land its lane has exited.
const SUPERVISOR_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Returns the record of a lane's last run; none if it has none.
///
/// # Errors
/// Fails when the record cannot be read.
pub fn last_run_record(project: &Project, lane: &AnyLane) -> Result<Option<RunRecord>, Error> {
    Ok(RunRecord::load_if_exists(&project.store.layout().run_record(&lane.name, lane.last_run))?)
}

/// Passes the unread rest of a file to `consume` in chunks.
///
/// # Errors
/// Fails when the file cannot be read.
pub fn read_chunks(file: &mut File, consume: &mut dyn FnMut(&[u8])) -> std::io::Result<()> {
    let mut buffer = vec![0; CHUNK_LEN];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(length) => consume(&buffer[..length]),
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// Passes a log to `consume` as it grows, until the lane's run has finished. The logs of retries and further
/// turns follow. Returns the lane and its state then.
///
/// # Errors
/// Fails when a log or a record cannot be read, or the caller cancels it; the run goes on then.
pub fn follow_log(
    project: &Project,
    lane: &AnyLane,
    log: &Path,
    reporter: &dyn Reporter,
    consume: &mut dyn FnMut(&[u8]),
) -> Result<(AnyLane, LaneState), Error> {
    let _scope = reporter.enter_cancellation();
    let unreadable = |e| lane::Error::io("read", log)(e);
    let mut watch = Watch::new(project)?;
    watch.add(Subject::Lane(lane.name.clone()));
    watch.add(Subject::Runs(lane.name.clone()));
    // An automatic merge may remove the lane right after its run, which moves the file.
    let mut file = regular_file::open_store_file(log).map_err(unreadable)?;
    let mut run = lane.last_run;
    loop {
        // The state is read first, so that everything written before the end is read below.
        let (dir, lane) = lane_records::load_present_or_past_lane(project, lane)?;
        let (state, detail) = idle_lane::displayed_state(project, &lane)?;
        read_chunks(&mut file, consume).map_err(unreadable)?;
        let next = Layout::run_log_in(&dir, run.next());
        if lane.last_run > run && next.exists() {
            (file, run) = (regular_file::open_store_file(&next).map_err(unreadable)?, run.next());
            continue;
        }
        if !state.is_busy() {
            // The supervisor may have updated the record since it was read here.
            return Ok((LaneRecord { detail, ..lane }, state));
        }
        if !lane.state().is_busy() {
            // The run has finished, but its background processes may continue indefinitely.
            let state = lane.state();
            return Ok((lane, state));
        }
        if !watch.add_run_end(&lane, state)? {
            watch.wait_for_change()?;
        }
    }
}

/// Result of the automatic merge of a lane.
#[derive(Debug)]
pub struct AutoMergeResult {
    /// The lane as it is now, or as it was when it was removed.
    pub lane: AnyLane,
    /// The final state of the lane's run; `None` if it is not recorded.
    pub run_state: Option<RunState>,
    /// The path of the landing's log.
    pub log_path: PathBuf,
    /// The exit code of the landing.
    pub exit: Exit,
    /// Whether the lane has neither landed nor a recorded refusal: its landing was killed or has not begun.
    pub has_no_landing_outcome: bool,
}

/// Waits until the landing of a lane whose run has finished is over, and returns its result.
///
/// # Errors
/// Fails when a lock or a record cannot be read, a landing that was killed cannot be recovered, or the caller
/// cancels it; the landing goes on then.
pub fn wait_for_landing(
    project: &Project,
    lane: &AnyLane,
    reporter: &dyn Reporter,
) -> Result<AutoMergeResult, Error> {
    let _scope = reporter.enter_cancellation();
    let (mut watch, mut is_last_check) = (Watch::new(project)?, false);
    loop {
        watch.add_lock(&LockName::AutoMerge(lane.name.clone()))?;
        watch.wait_for_change()?;
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
            watch.pause(SUPERVISOR_POLL_INTERVAL)?;
        }
    }
}

/// Reads the result of a lane's landing as it is now. The landing may still go on.
fn read_result(project: &Project, lane: &AnyLane) -> Result<AutoMergeResult, Error> {
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
