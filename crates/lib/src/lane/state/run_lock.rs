//! Run lock of an idle lane: while a command holds it, no run can start in the lane.

use std::collections::BTreeMap;
use std::path::Path;

use proq_base::lane_name::LaneName;
use proq_base::run_class::RunClass;
use proq_store::base::clock::now;
use proq_store::base::record::Record;
use proq_store::locks::lock::{LockGuard, LockName};
use proq_store::records::lane::{AnyLane, LaneRecord};
use proq_store::records::lane_state::RunState;
use proq_store::records::run::RunRecord;

use crate::lane::context::lane_records::require_branch;
use crate::lane::state::crash_reason::describe_crash;
use crate::lane::state::lane_state::{effective_state, status_after_run};
use crate::lane::{Error, Project};
use crate::operation::recovery::lock_after_recovery;

/// Run locks that an undo holds until its operation ends. The operations that it undoes share them, since many
/// of them may concern one lane.
#[derive(Default)]
pub(crate) struct HeldRunLocks(pub(crate) BTreeMap<LaneName, LockGuard>);

impl Project {
    /// Refuses a lane with a running agent.
    pub fn require_idle<P>(&self, lane: &LaneRecord<P>) -> Result<(), Error> {
        if effective_state(self, lane)?.0.is_busy() {
            return Err(Error::Busy { name: lane.name.clone() });
        }
        Ok(())
    }

    /// Acquires the run lock of an idle lane: no run can start until it is released. Returns the record as
    /// read under the lock.
    ///
    /// # Errors
    /// [`Error::Busy`], also for an agent that outlived its supervisor.
    pub fn lock_idle_lane(&self, name: &LaneName) -> Result<(LaneRecord, LockGuard), Error> {
        self.lock_idle_record(&self.lane(name)?)
    }

    /// Acquires the run lock of an idle lane that the caller has read, and returns the record as read under
    /// the lock.
    ///
    /// # Errors
    /// See [`Project::lock_idle_lane`].
    pub fn lock_idle_record(&self, lane: &LaneRecord) -> Result<(LaneRecord, LockGuard), Error> {
        let (lane, lock) = self.lock_record(lane)?;
        Ok((require_branch(lane)?, lock))
    }

    /// Acquires the run lock of an idle lane of any kind, and returns the record as read under the lock.
    ///
    /// # Errors
    /// See [`Project::lock_idle_lane`].
    pub fn lock_any_idle_lane(&self, name: &LaneName) -> Result<(AnyLane, LockGuard), Error> {
        self.lock_record(&self.any_lane(name)?)
    }

    fn lock_record<P>(&self, lane: &LaneRecord<P>) -> Result<(AnyLane, LockGuard), Error> {
        self.require_idle(lane)?;
        let lock = run_lock_after_recovery(self, &lane.name, Some(&lane.path))?;
        if self.store.locks().is_held(&LockName::AgentAlive(lane.name.clone()))? {
            return Err(Error::Busy { name: lane.name.clone() });
        }
        Ok((self.close_crashed_run(self.any_lane(&lane.name)?)?, lock))
    }

    /// Records the end of a run whose supervisor crashed. The caller holds the run lock, which other
    /// processes would otherwise take for the supervisor's.
    pub(crate) fn close_crashed_run(&self, lane: AnyLane) -> Result<AnyLane, Error> {
        if !lane.state().is_claimed() {
            return Ok(lane);
        }
        let path = self.store.layout().run_record(&lane.name, lane.last_run);
        let reason = describe_crash(self, &lane.name);
        if let Some(run) = RunRecord::load_if_exists(&path)?.filter(|run| run.ended.is_none()) {
            let outcome = Some(RunState::Failed);
            let detail = Some(reason.clone());
            RunRecord { ended: Some(now()), outcome, class: Some(RunClass::Crashed), detail, ..run }
                .save(&path)?;
        }
        let status = status_after_run(&self.store, &lane.name, RunState::Failed);
        self.update_lane(&lane.name, |record| {
            record.status = status;
            record.detail = Some(reason);
        })
    }
}

/// Acquires the run lock of the lane `name` after recovery, like [`lock_after_recovery`]. `path` is
/// the lane's worktree, or `None` for the path on record.
pub(crate) fn run_lock_after_recovery(
    project: &Project,
    name: &LaneName,
    path: Option<&Path>,
) -> Result<LockGuard, Error> {
    let record_dir = project.store.layout().lane(name);
    let path = path.map(Path::to_owned).or_else(|| project.any_lane(name).ok().map(|lane| lane.path));
    let is_lane_path =
        |moved_path: &Path| moved_path == record_dir || path.as_ref().is_some_and(|path| moved_path == path);
    lock_after_recovery(project, &LockName::Run(name.clone()), |step| {
        step.moved_path().is_some_and(|path| is_lane_path(path.from) || is_lane_path(path.to))
    })
}
