//! Work that follows a run, in separate git-proq processes that this process does not wait for: they check
//! which lanes overlap the lane now, and merge it if it is merged automatically.

use std::collections::BTreeSet;
use std::fs::File;
use std::time::Duration;

use proq_base::explain::Exit;
use proq_base::fail_points;
use proq_base::lane_name::LaneName;
use proq_base::process::command_builder::CommandBuilder;
use proq_base::process::strays::RUN_CONTEXT_VARS;
use proq_store as store;
use proq_store::Store;
use proq_store::locks::lock::{LockGuard, LockName, WaitLimit};
use proq_store::records::lane::AnyLane;
use proq_store::records::lane_state::{LaneState, LaneStatus};

use crate::agent::Error;
use crate::lane::Project;
use crate::lane::state::lane_state;
use crate::run::auto_merge;

/// Time limit for acquiring the landing lock. A process that only checks the lock, or waits for it, holds it
/// briefly.
const LOCK_WAIT_LIMIT: Duration = Duration::from_millis(250);

/// Reason for an automatic merge.
#[derive(Debug)]
pub enum MergeTrigger {
    /// The lane's run has finished. The lock marks the lane as being landed.
    RunEnded(LockGuard),
    /// Another landing has finished.
    Landing,
}

/// Work to start after a run.
#[derive(Debug, Default)]
#[must_use]
pub struct FollowUp {
    landing_lock: Option<LockGuard>,
    /// Whether another process was landing the lane when the run finished. That process may have missed the
    /// run's result.
    was_being_landed: bool,
    /// Reason why the landing lock could not be acquired, so that the lane is not merged automatically.
    lock_error: Option<String>,
    /// Whether the lane has new commits, which may overlap other lanes.
    has_new_commits: bool,
}

impl FollowUp {
    /// Determines the work after a run that leaves the lane in `status`. It is called before that is
    /// published, so that a lane with automatic merge is locked from the moment when it is done.
    pub fn prepare(store: &Store, lane: &AnyLane, status: LaneStatus, has_new_commits: bool) -> FollowUp {
        if !lane.auto_merge || status.state() != LaneState::Done {
            return FollowUp { has_new_commits, ..FollowUp::default() };
        }
        match acquire_landing_lock(store, &lane.name) {
            Ok(landing_lock) => FollowUp {
                was_being_landed: landing_lock.is_none(),
                landing_lock,
                lock_error: None,
                has_new_commits,
            },
            // The error does not change the result of the run.
            Err(e) => FollowUp { lock_error: Some(e.to_string()), has_new_commits, ..FollowUp::default() },
        }
    }

    /// Starts the processes that merge the lane or check it for overlaps. After a run in the main checkout,
    /// starts the automatic merges that waited for it. The caller has released the run lock, or the lane
    /// would appear busy.
    pub fn start(self, project: &Project, lane: &AnyLane) {
        if lane.works_in_place() {
            return start_waiting_merges(project, &lane.base);
        }
        if let Some(reason) = self.lock_error {
            return auto_merge::record_refused_merge(project, lane, &reason, Exit::Refused);
        }
        let landing_lock =
            if self.was_being_landed { reacquire_landing_lock(project, lane) } else { self.landing_lock };
        let Some(lock) = landing_lock else {
            if self.has_new_commits {
                start_overlap_check(project, lane);
            }
            return;
        };
        if let Some(reason) = auto_merge::undelivered_reason(&project.store, &lane.name) {
            drop(lock);
            return auto_merge::record_refused_merge(project, lane, &reason, Exit::Refused);
        }
        let names = std::slice::from_ref(&lane.name);
        if let Err(e) = start_auto_merge(project, MergeTrigger::RunEnded(lock), names) {
            auto_merge::record_refused_merge(project, lane, &e.to_string(), Exit::Refused);
        }
    }
}

/// Starts the automatic merges that had to wait while an agent worked in the checkout of their base.
fn start_waiting_merges(project: &Project, base: &str) {
    let waiting = auto_merge::lanes_waiting_to_land(project, &BTreeSet::from([base]));
    let names: Vec<LaneName> = waiting.into_iter().map(|lane| lane.name).collect();
    // A merge that cannot be started is retried after the next landing.
    if !names.is_empty() {
        drop(start_auto_merge(project, MergeTrigger::Landing, &names));
    }
}

/// Acquires the lock that marks a lane as being landed; none when another process is landing it.
///
/// # Errors
/// Fails when the lock cannot be acquired.
pub fn acquire_landing_lock(store: &Store, lane: &LaneName) -> Result<Option<LockGuard>, Error> {
    let lock = LockName::AutoMerge(lane.clone());
    match store.locks().acquire_within(&lock, WaitLimit::AtMost(LOCK_WAIT_LIMIT)) {
        Ok(lock) => Ok(Some(lock)),
        Err(store::Error::Locked { .. }) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// Waits for the landing that was in progress when the run finished. Returns the lane's landing lock if the
/// lane is still done and has not landed; none otherwise.
fn reacquire_landing_lock(project: &Project, lane: &AnyLane) -> Option<LockGuard> {
    project.store.locks().wait_until_free(&LockName::AutoMerge(lane.name.clone())).ok()?;
    fail_points::hit("landing.free");
    let current = project.any_lane(&lane.name).ok().filter(|current| current.is_same_lane(lane))?;
    let (state, _) = lane_state::effective_state(project, &current).ok()?;
    // A process that has acquired the lock since then knows the final state of the lane.
    if state == LaneState::Done {
        acquire_landing_lock(&project.store, &lane.name).ok().flatten()
    } else {
        None
    }
}

/// Starts a process that checks which lanes overlap this lane, if other lanes share its base. A failure to
/// start is ignored.
fn start_overlap_check(project: &Project, lane: &AnyLane) {
    let Ok(program_path) = project.git_proq_path() else { return };
    if project.owned_lanes().is_ok_and(|lanes| lanes.iter().any(|other| lane.may_conflict_with(other))) {
        let start = CommandBuilder::new(program_path, project.repo.command_dir()).args([
            "_overlaps",
            "--lane",
            lane.name.as_str(),
        ]);
        drop(start.without_vars(RUN_CONTEXT_VARS).spawn_detached());
    }
}

/// Starts a process that merges each of the lanes, and returns immediately.
///
/// # Errors
/// Fails when the process cannot be started.
pub fn start_auto_merge(project: &Project, trigger: MergeTrigger, lanes: &[LaneName]) -> Result<(), Error> {
    let (trigger_arg, lock_file): (_, Option<File>) = match trigger {
        MergeTrigger::RunEnded(lock) => ("run-ended", Some(lock.into_file())),
        MergeTrigger::Landing => ("retry", None),
    };
    let start = CommandBuilder::new(project.git_proq_path()?, project.repo.command_dir())
        .args(["merge", "--auto", trigger_arg])
        .args(lanes.iter().map(LaneName::as_str));
    let start = start.without_vars(RUN_CONTEXT_VARS);
    let start = match lock_file {
        Some(lock) => start.stdin(lock),
        None => start,
    };
    Ok(start.spawn_detached()?)
}
