//! Owns stopping a lane's agent, with or without a supervisor to ask.

use std::time::{Duration, Instant};

use super::Error;
use crate::event;
use crate::lane::{Project, effective_state, state_after};
use crate::process;
use crate::store::records::{AnyLane, LaneState, RunRecord, Supervisor};
use crate::store::{LockName, Record, write_atomically};

/// How much longer than the grace time a supervisor may take: it commits what was left.
const MARGIN: Duration = Duration::from_secs(20);

/// How long the locks of a process that was killed may be seen.
const GOING: Duration = Duration::from_secs(2);

/// Stops the agent of a lane and returns when it is over.
///
/// # Errors
/// [`Error::NotRunning`] when nothing runs, [`Error::StillRunning`] when it did not end.
pub(crate) fn stop(project: &Project, name: &str) -> Result<AnyLane, Error> {
    let until = Instant::now() + project.settings.stop_grace + MARGIN;
    let state = settled_state(project, name, until)?;
    let lane = project.any_lane(name)?;
    match state {
        LaneState::Running => ask_supervisor(project, &lane, until),
        LaneState::Orphaned => end_orphan(project, &lane),
        _ => Err(Error::NotRunning { lane: lane.name }),
    }
}

/// How often a supervisor is asked that is to give no grace.
const AGAIN: Duration = Duration::from_millis(50);

/// The same without grace: a supervisor that is asked again while it waits for its agent ends that at once.
///
/// # Errors
/// As [`stop`].
pub(crate) fn stop_at_once(project: &Project, name: &str) -> Result<AnyLane, Error> {
    let until = Instant::now() + MARGIN;
    let lock = LockName::Run(name.to_owned());
    while settled_state(project, name, until)? == LaneState::Running && Instant::now() < until {
        ask_watcher(project, &project.any_lane(name)?)?;
        std::thread::sleep(AGAIN);
        if !project.store.locks().is_held(&lock)? {
            return Ok(project.any_lane(name)?);
        }
    }
    stop(project, name)
}

/// Asks the agent of a lane to come to its end by itself: the file that `PROQ_WRAP_UP` names appears, and nothing is begun after its run.
/// One that runs still after `grace` is stopped. Returns when it is over.
///
/// # Errors
/// As [`stop`].
pub(crate) fn stop_gently(project: &Project, name: &str, grace: Duration) -> Result<AnyLane, Error> {
    let until = Instant::now() + grace;
    if settled_state(project, name, until)? != LaneState::Running {
        return stop(project, name);
    }
    let layout = project.store.layout();
    write_atomically(&layout.wrap_up(name), b"")?;
    let lock = LockName::Run(name.to_owned());
    let mut asked = 0;
    while project.store.locks().is_held(&lock)? {
        if Instant::now() > until {
            return stop(project, name);
        }
        let run = project.any_lane(name)?.attempt;
        // The next one may have begun before it was known that none is wanted.
        if run != asked {
            let text = b"Somebody wants you to come to your end. Finish, commit, and end.\n";
            write_atomically(&layout.run_wrap_up(name, run), text)?;
            asked = run;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let lane = project.any_lane(name)?;
    let (state, detail) = effective_state(project, &lane)?;
    Ok(AnyLane { state, detail, ..lane })
}

/// The state once it is not `starting` any more: only then is it on record who watches the run.
fn settled_state(project: &Project, name: &str, until: Instant) -> Result<LaneState, Error> {
    loop {
        let (state, _) = effective_state(project, &project.any_lane(name)?)?;
        if state != LaneState::Starting || Instant::now() > until {
            return Ok(state);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Asks the process that watches the lane's run to end it, and no other one: the run may end meanwhile, and somebody else take
/// its lock.
fn ask_supervisor(project: &Project, lane: &AnyLane, until: Instant) -> Result<AnyLane, Error> {
    let lock = LockName::Run(lane.name.clone());
    let locks = project.store.locks();
    let mut asked = false;
    while locks.is_held(&lock)? {
        if !asked {
            asked = ask_watcher(project, lane)?;
        }
        if !asked && let Some(over) = is_over(project, lane)? {
            return Ok(over);
        }
        if Instant::now() > until {
            let seconds = (project.settings.stop_grace + MARGIN).as_secs();
            return Err(Error::StillRunning { lane: lane.name.clone(), seconds });
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    // It may have been kept from writing its last word.
    let lane = project.any_lane(&lane.name)?;
    let (state, detail) = effective_state(project, &lane)?;
    Ok(AnyLane { state, detail, ..lane })
}

/// Sends the supervisor of the lane's run the wish that it end, if it lives.
fn ask_watcher(project: &Project, lane: &AnyLane) -> Result<bool, Error> {
    let watcher = watcher(project, lane)?;
    watcher.as_ref().map(|watcher| process::signal_process(watcher.pid)).transpose()?;
    Ok(watcher.is_some())
}

/// Whether the supervisor of a lane's last run lives: it may land the lane yet.
///
/// # Errors
/// When the run's record cannot be read.
pub(crate) fn is_watched(project: &Project, lane: &AnyLane) -> Result<bool, Error> {
    Ok(watcher(project, lane)?.is_some())
}

/// The supervisor of a lane's last run, if it lives. One that tries again has noted itself with the run before, too.
fn watcher(project: &Project, lane: &AnyLane) -> Result<Option<Supervisor>, Error> {
    for attempt in [lane.attempt, lane.attempt.saturating_sub(1)] {
        let run = RunRecord::find(&project.store.layout().run_record(&lane.name, attempt))?;
        let watcher = run.and_then(|run| run.supervisor);
        if let Some(watcher) = watcher.filter(|one| process::lives(one.pid, one.birth.as_deref())) {
            return Ok(Some(watcher));
        }
    }
    Ok(None)
}

/// The lane as its run left it, when that has ended by itself and another one has begun.
fn is_over(project: &Project, lane: &AnyLane) -> Result<Option<AnyLane>, Error> {
    if project.any_lane(&lane.name)?.attempt == lane.attempt {
        return Ok(None);
    }
    let run = RunRecord::find(&project.store.layout().run_record(&lane.name, lane.attempt))?;
    let ended = run.and_then(|run| Some((run.outcome?, run.detail)));
    Ok(ended.map(|(state, detail)| AnyLane { state, detail, ..lane.clone() }))
}

/// Ends an agent whose supervisor is gone: by the group on record, if that is still the same process.
fn end_orphan(project: &Project, lane: &AnyLane) -> Result<AnyLane, Error> {
    let run = RunRecord::load(&project.store.layout().run_record(&lane.name, lane.attempt))?;
    let mut lives_on = false;
    if let Some(pid) = run.pid
        && process::is_same(pid, run.birth.as_deref())
    {
        lives_on = !process::end_group(pid, project.settings.stop_grace);
    }
    if let (Some(mark), false) = (&run.mark, run.keeps_strays) {
        // A shell of its tools has a session of its own, and not always the lock.
        process::end_marked(mark, project.settings.stop_grace);
    }
    let lock = LockName::Alive(lane.name.clone());
    if is_held_on(project, &lock)? {
        // They inherited the lock from the agent, so they are its own, whatever session they fled to.
        process::end_holders(&project.store.locks().path(&lock), project.settings.stop_grace);
    }
    if is_held_on(project, &lock)? {
        let seconds = project.settings.stop_grace.as_secs();
        return Err(match lives_on {
            true => Error::StillRunning { lane: lane.name.clone(), seconds },
            false => Error::Escaped { lane: lane.name.clone(), file: project.store.locks().path(&lock) },
        });
    }
    if !lane.state.is_claimed() {
        // The run itself was over and has its result.
        return Ok(lane.clone());
    }
    let state = state_after(project, &lane.name, LaneState::Stopped);
    let lane = project.update_lane(&lane.name, |record| {
        record.state = state;
        record.detail = Some("its supervisor was gone".into());
    })?;
    project.tell(event::Name::RunEnded, Some(&lane), format!("lane '{}': stopped", lane.name));
    Ok(lane)
}

/// Whether a lock is still held when its holders have had the time to be gone: a killed process is shown as ended while its
/// threads still are, and with them its locks.
fn is_held_on(project: &Project, lock: &LockName) -> Result<bool, Error> {
    let since = Instant::now();
    while project.store.locks().is_held(lock)? {
        if since.elapsed() > GOING {
            return Ok(true);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(false)
}
