//! Automatic merges (`spawn --auto-merge`): of a lane whose run has finished, and again of lanes whose
//! landing was refused before.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Duration;

use super::merge::Merge;
use super::{CommandContext, CommandResult, Failure, UsageError, failure, merge, program_path};
use crate::agent::{self, MergeTrigger};
use crate::explain::Exit;
use crate::fail_points;
use crate::lane::{self, AutoMergeStatus, Project};
use crate::merge::{LandingReport, Verdict};
use crate::store::records::{AnyLane, LaneRecord, LaneState, RunRecord};
use crate::store::{Layout, LockGuard, LockName, Record};

/// Interval at which git-proq checks whether a supervisor that may still land its lane has exited.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Lands the given lanes in a background process, with a separate landing for each. `trigger` is `run-ended`
/// or `retry`. Output goes to a log next to the lane's run.
pub(super) fn run(session: &CommandContext, args: &Merge, trigger: &str) -> CommandResult {
    crate::process::start_session();
    crate::interrupt::defer_signals();
    let project = Project::open(&session.dir, session.ui.listener())?;
    let is_run_end = trigger == "run-ended";
    let (mut exit, mut bases) = (Exit::Success, BTreeSet::new());
    for name in &args.lanes {
        let lock = if is_run_end {
            Some(adopt_lock(&project, name)?)
        } else {
            agent::acquire_landing_lock(&project, name)?
        };
        // Without the lock, another process is landing the lane.
        let (Some(_lock), Ok(lane)) = (lock, project.lane(name)) else { continue };
        let blocked_reason = match start_landing(&project, &lane) {
            Ok(AutoMergeStatus::Ready) => None,
            Ok(AutoMergeStatus::NotDue) => continue,
            Ok(AutoMergeStatus::Blocked(reason) | AutoMergeStatus::BranchMoved(reason)) => Some(reason),
            Err(e) => Some(e.0.to_string()),
        };
        if let Some(reason) = blocked_reason {
            // A process that waits for the landing reads the reason from the record. A lane that is retried
            // already has a recorded reason.
            if is_run_end {
                lane::record_refused_merge(&project, &lane, &reason, Exit::Refused);
            }
            continue;
        }
        if is_run_end {
            // Overlaps are computed before the landing, while the other lanes can still be affected. A
            // failure here does not fail the landing.
            drop(crate::merge::report_overlaps_of_lane(&project, &lane.name));
        }
        exit = land_lane(session, &project, args, &lane);
        bases.insert(lane.base);
    }
    if is_run_end {
        let bases = bases.iter().map(String::as_str).collect();
        fail_points::hit("landing.over");
        retry_waiting_lanes(session, &project, &bases, &args.lanes);
    }
    Ok(exit)
}

/// Checks whether a lane lands now. If so, redirects all further output to a file next to the lane's run.
fn start_landing(project: &Project, lane: &LaneRecord) -> Result<AutoMergeStatus, Failure> {
    let status = lane::auto_merge_status(project, lane)?;
    if status == AutoMergeStatus::Ready {
        redirect_output(&project.store.layout().landing_log(&lane.name, lane.attempt))?;
    }
    Ok(status)
}

/// Adopts the lane's lock from standard input, and replaces standard input with `/dev/null`.
fn adopt_lock(project: &Project, lane: &str) -> Result<LockGuard, Failure> {
    let unreadable = |source| UsageError::Unreadable { path: "standard input".into(), source };
    let lock = std::io::stdin().as_fd().try_clone_to_owned().map_err(unreadable)?;
    let null = File::open("/dev/null").map_err(unreadable)?;
    rustix::stdio::dup2_stdin(&null).map_err(|e| unreadable(e.into()))?;
    Ok(project.store.locks().adopt(&LockName::AutoMerge(lane.to_owned()), File::from(lock)))
}

/// Redirects standard output and standard error to the end of a file.
fn redirect_output(path: &std::path::Path) -> Result<(), Failure> {
    let unwritable = |source| UsageError::Unwritable { path: path.to_owned(), source };
    let log = File::options().append(true).create(true).open(path).map_err(unwritable)?;
    rustix::stdio::dup2_stdout(&log).map_err(|e| unwritable(e.into()))?;
    rustix::stdio::dup2_stderr(&log).map_err(|e| unwritable(e.into()))?;
    Ok(())
}

/// Lands one lane, and records the reason if the landing is refused.
fn land_lane(session: &CommandContext, project: &Project, args: &Merge, lane: &LaneRecord) -> Exit {
    let args = Merge { lanes: vec![lane.name.clone()], auto: None, ..args.clone() };
    let result = lane::recover(project)
        .map_err(Failure::from)
        .and_then(|()| merge::land(session, project, &args, Some(lane)));
    match result {
        Ok(report) => {
            for line in report.lanes.iter().filter(|line| line.result == Verdict::Refused) {
                let reason = line.message.as_deref().unwrap_or("it may not land");
                lane::record_refused_merge(project, lane, reason, line.exit_code.unwrap_or(Exit::Refused));
            }
            report.exit()
        }
        Err(failure) => {
            let exit = failure::print_failure(&failure, false);
            // A signal is no refusal: the next landing treats this one as killed.
            if !matches!(exit, Exit::Signal(_)) {
                lane::record_refused_merge(project, lane, &failure.0.to_string(), exit);
            }
            exit
        }
    }
}

/// Returns the base branches of a landing.
pub(super) fn landing_bases(report: &LandingReport) -> BTreeSet<&str> {
    report.lanes.iter().map(|line| line.onto.as_str()).collect()
}

/// Starts a background process that retries waiting automatic merges on `bases`, and warns of lanes that will
/// no longer land. Called after a landing. Lanes in `attempted` are skipped. The background process starts no
/// further retries.
pub(super) fn retry_waiting_lanes(
    session: &CommandContext,
    project: &Project,
    bases: &BTreeSet<&str>,
    attempted: &[String],
) {
    for warning in lane::refuse_moved_lanes(project, bases, attempted) {
        session.ui.warn(warning);
    }
    let waiting = lane::lanes_waiting_to_land(project, bases).into_iter().map(|lane| lane.name);
    let lanes: Vec<String> = waiting.filter(|name| !attempted.contains(name)).collect();
    if lanes.is_empty() {
        return;
    }
    let start_result = program_path::current_program_path().and_then(|program_path| {
        Ok(agent::start_auto_merge(project, &program_path, MergeTrigger::Landing, &lanes)?)
    });
    if let Err(e) = start_result {
        session.ui.warn(format!("{} could not be tried again: {}", lanes.join(", "), e.0));
    }
}

/// Result of the automatic merge of a lane.
pub(super) struct AutoMergeResult {
    /// The lane as it is now, or as it was when it was removed.
    pub(super) lane: AnyLane,
    /// The outcome of the lane's run.
    pub(super) run_state: Option<LaneState>,
    /// The path of the landing's log.
    pub(super) log_path: PathBuf,
    /// The exit code of the landing.
    pub(super) exit: Exit,
    /// Whether the lane did not land and no reason is recorded, because the landing was killed.
    pub(super) is_unexplained: bool,
}

/// Waits until the landing of a lane whose run has finished is over, and returns its result.
pub(super) fn wait_for_landing(project: &Project, lane: &AnyLane) -> Result<AutoMergeResult, Failure> {
    let locks = project.store.locks();
    let mut is_last_check = false;
    loop {
        locks.wait_until_free(&LockName::AutoMerge(lane.name.clone()))?;
        // The landing may have been killed halfway.
        lane::recover(project)?;
        let result = read_result(project, lane)?;
        fail_points::hit("landing.looked");
        if !result.is_unexplained || is_last_check {
            return Ok(result);
        }
        // A landing that was in progress when the run finished held the lock until now. The supervisor
        // acquires it next, as long as it runs.
        is_last_check = !agent::has_live_supervisor(project, &result.lane)?;
        if !is_last_check {
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

/// Reads the current result of a lane's landing.
fn read_result(project: &Project, lane: &AnyLane) -> Result<AutoMergeResult, Failure> {
    let is_removed = project.lane(&lane.name).is_err();
    let (dir, current) = lane::load_present_or_past_lane(project, lane)?;
    let exit = match current.state {
        LaneState::Conflict => Exit::Conflicts,
        LaneState::CheckFailed => Exit::Agent,
        LaneState::Landed => Exit::Success,
        LaneState::Discarded => Exit::Refused,
        // All of its changes were on the base before.
        _ if is_removed => Exit::Success,
        _ => current
            .auto_merge_refusal
            .as_ref()
            .map_or(Exit::Refused, |refused| Exit::from_code(refused.exit_code)),
    };
    let run = RunRecord::load_if_exists(&dir.join(format!("runs/{}.toml", lane.attempt)))?;
    Ok(AutoMergeResult {
        run_state: run.and_then(|run| run.outcome),
        log_path: dir.join(Layout::landing_log_in_lane(lane.attempt)),
        exit,
        is_unexplained: !is_removed
            && current.auto_merge
            && current.state == LaneState::Done
            && current.auto_merge_refusal.is_none(),
        lane: current,
    })
}
