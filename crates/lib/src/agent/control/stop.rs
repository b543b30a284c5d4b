//! Stopping a lane's agent, with or without a supervisor that can be signaled.

use std::time::{Duration, Instant};

use proq_base::lane_name::LaneName;
use proq_base::process::{identity, signals, strays};
use proq_store::Store;
use proq_store::base::atomic::write as write_atomically;
use proq_store::base::record::Record;
use proq_store::base::run_number::RunNumber;
use proq_store::locks::lock::LockName;
use proq_store::records::lane::AnyLane;
use proq_store::records::lane_state::{LaneState, LaneStatus, RunState};
use proq_store::records::run::{RunRecord, SupervisorProcess};

use crate::agent::Error;
use crate::event::log;
use crate::lane::Project;
use crate::lane::state::lane_state::{effective_state, effective_status, status_after_run};

/// Time that a supervisor may take beyond the grace time: it commits what the agent left.
const SUPERVISOR_MARGIN: Duration = Duration::from_secs(20);

/// Time for which the locks of a killed process may still appear as held.
const LOCK_RELEASE_TIMEOUT: Duration = Duration::from_secs(2);

/// Stops the agent of a lane and returns when its run is finished.
///
/// # Errors
/// [`Error::NotRunning`] when nothing runs, [`Error::StillRunning`] when the run did not end.
pub fn stop(project: &Project, name: &LaneName) -> Result<AnyLane, Error> {
    let deadline = Instant::now() + project.settings.stop_grace + SUPERVISOR_MARGIN;
    let state = state_once_started(project, name, deadline)?;
    let lane = project.any_lane(name)?;
    match state {
        LaneState::Running => stop_supervised_run(project, &lane, deadline),
        LaneState::Orphaned => stop_orphaned_run(project, &lane),
        _ => Err(Error::NotRunning { lane: lane.name }),
    }
}

/// Interval at which a supervisor is signaled that should grant no grace time.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(50);

/// Stops the agent of a lane without grace time: a supervisor that receives a second signal while it waits
/// for its agent ends the agent at once.
///
/// # Errors
/// Same as [`stop`].
pub(crate) fn stop_without_grace(project: &Project, name: &LaneName) -> Result<AnyLane, Error> {
    let deadline = Instant::now() + SUPERVISOR_MARGIN;
    let lock = LockName::Run(name.clone());
    while state_once_started(project, name, deadline)? == LaneState::Running && Instant::now() < deadline {
        signal_supervisor(&project.store, &project.any_lane(name)?)?;
        std::thread::sleep(SIGNAL_INTERVAL);
        if !project.store.locks().is_held(&lock)? {
            return Ok(project.any_lane(name)?);
        }
    }
    stop(project, name)
}

/// Requests the agent of a lane to finish: the file that `PROQ_WRAP_UP` names appears, and no further run
/// starts. A run that still lasts after `grace` is stopped. Returns when the run is finished.
///
/// # Errors
/// Same as [`stop`].
pub fn stop_after_wrap_up(project: &Project, name: &LaneName, grace: Duration) -> Result<AnyLane, Error> {
    let deadline = Instant::now() + grace;
    if state_once_started(project, name, deadline)? != LaneState::Running {
        return stop(project, name);
    }
    let layout = project.store.layout();
    write_atomically(&layout.lane_wrap_up_marker(name), b"")?;
    let lock = LockName::Run(name.clone());
    let mut requested_run = RunNumber::NONE;
    while project.store.locks().is_held(&lock)? {
        if Instant::now() > deadline {
            return stop(project, name);
        }
        let run = project.any_lane(name)?.last_run;
        // The next run may have started before the request to finish was known.
        if run != requested_run {
            let text = b"You are asked to finish. Complete your current step, commit, and exit.\n";
            write_atomically(&layout.run_wrap_up_marker(name, run), text)?;
            requested_run = run;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let lane = project.any_lane(name)?;
    let (status, detail) = effective_status(project, &lane)?;
    Ok(AnyLane { status, detail, ..lane })
}

/// Waits until the lane is no longer `starting` and returns its state: only then the supervisor of the run is
/// on record.
fn state_once_started(project: &Project, name: &LaneName, deadline: Instant) -> Result<LaneState, Error> {
    loop {
        let (state, _) = effective_state(project, &project.any_lane(name)?)?;
        if state != LaneState::Starting || Instant::now() > deadline {
            return Ok(state);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Signals the supervisor of the lane's run and waits until the run ends. No other process is signaled: the
/// run may end concurrently, and another process may take its lock.
fn stop_supervised_run(project: &Project, lane: &AnyLane, deadline: Instant) -> Result<AnyLane, Error> {
    let lock = LockName::Run(lane.name.clone());
    let locks = project.store.locks();
    let mut was_signaled = false;
    while locks.is_held(&lock)? {
        if !was_signaled {
            was_signaled = signal_supervisor(&project.store, lane)?;
        }
        if !was_signaled && let Some(finished_lane) = lane_if_run_superseded(project, lane)? {
            return Ok(finished_lane);
        }
        if Instant::now() > deadline {
            let seconds = (project.settings.stop_grace + SUPERVISOR_MARGIN).as_secs();
            return Err(Error::StillRunning { lane: lane.name.clone(), seconds });
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    // The supervisor may have been prevented from writing its last state, so the effective state is read.
    let lane = project.any_lane(&lane.name)?;
    let (status, detail) = effective_status(project, &lane)?;
    Ok(AnyLane { status, detail, ..lane })
}

/// Signals the supervisor of the lane's run to end it, and returns whether there is a live supervisor.
fn signal_supervisor(store: &Store, lane: &AnyLane) -> Result<bool, Error> {
    let supervisor = live_supervisor(store, lane)?;
    supervisor.as_ref().map(|recorded| signals::terminate_process(recorded.pid)).transpose()?;
    Ok(supervisor.is_some())
}

/// Returns whether the supervisor of a lane's last run is alive: it may still merge the lane.
///
/// # Errors
/// Fails when the run's record cannot be read.
pub fn has_live_supervisor(store: &Store, lane: &AnyLane) -> Result<bool, Error> {
    Ok(live_supervisor(store, lane)?.is_some())
}

/// Returns the supervisor of a lane's last run; none when it does not live. While a supervisor prepares the
/// next run, only the record of the run before names it, so that record is read too.
fn live_supervisor(store: &Store, lane: &AnyLane) -> Result<Option<SupervisorProcess>, Error> {
    for run_number in [lane.last_run, lane.last_run.previous()] {
        let run = RunRecord::load_if_exists(&store.layout().run_record(&lane.name, run_number))?;
        let supervisor = run.and_then(|run| run.supervisor);
        if let Some(live_process) = supervisor
            .filter(|recorded| identity::is_process_running(recorded.pid, recorded.start_time.as_deref()))
        {
            return Ok(Some(live_process));
        }
    }
    Ok(None)
}

/// Returns the lane with the state and detail of the given lane's run, once that run has ended and another
/// one has started. `None` otherwise.
fn lane_if_run_superseded(project: &Project, lane: &AnyLane) -> Result<Option<AnyLane>, Error> {
    if project.any_lane(&lane.name)?.last_run == lane.last_run {
        return Ok(None);
    }
    let run = RunRecord::load_if_exists(&project.store.layout().run_record(&lane.name, lane.last_run))?;
    let result = run.and_then(|run| Some((run.outcome?, run.detail)));
    Ok(result.map(|(run, detail)| AnyLane { status: LaneStatus::of_run(run), detail, ..lane.clone() }))
}

/// Ends the agent of a lane whose supervisor no longer lives, and records the run as stopped. Ends the
/// recorded process group if it is still the same process, processes with the run's process mark, and holders
/// of the agent's lock.
fn stop_orphaned_run(project: &Project, lane: &AnyLane) -> Result<AnyLane, Error> {
    let run = RunRecord::load(&project.store.layout().run_record(&lane.name, lane.last_run))?;
    let mut survived = false;
    if let Some(pid) = run.pid
        && identity::is_same_process(pid, run.start_time.as_deref())
    {
        survived = !signals::stop_group(pid, project.settings.stop_grace);
    }
    if let (Some(mark), false) = (&run.process_mark, run.keeps_strays) {
        // A shell that the agent's tools started has its own session, and does not always hold the lock.
        strays::stop_marked_processes(mark, project.settings.stop_grace);
    }
    let lock = LockName::AgentAlive(lane.name.clone());
    if is_locked_after_wait(&project.store, &lock)? {
        // Holders inherited the lock from the agent, so they belong to it, whatever session they moved to.
        signals::stop_lock_holders(&project.store.locks().lock_path(&lock), project.settings.stop_grace);
    }
    if is_locked_after_wait(&project.store, &lock)? {
        let seconds = project.settings.stop_grace.as_secs();
        return Err(match survived {
            true => Error::StillRunning { lane: lane.name.clone(), seconds },
            false => Error::UnknownLeftoverProcess {
                lane: lane.name.clone(),
                file: project.store.locks().lock_path(&lock),
            },
        });
    }
    if !lane.state().is_claimed() {
        // The run was already finished and has its result.
        return Ok(lane.clone());
    }
    let status = status_after_run(&project.store, &lane.name, RunState::Stopped);
    let lane = project.update_lane(&lane.name, |record| {
        record.status = status;
        record.detail = Some("its supervisor had crashed".into());
    })?;
    project.emit(log::EventName::RunEnded, Some(&lane), format!("lane '{}': stopped", lane.name));
    Ok(lane)
}

/// Returns whether a lock is still held after its holders have had time to disappear: a killed process
/// appears as ended while its threads, and with them its locks, still exist.
fn is_locked_after_wait(store: &Store, lock: &LockName) -> Result<bool, Error> {
    let since = Instant::now();
    while store.locks().is_held(lock)? {
        if since.elapsed() > LOCK_RELEASE_TIMEOUT {
            return Ok(true);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(false)
}
