//! A batch that is followed while it runs, and the exit code of its end.

use proq_base::explain::Exit;
use proq_plan::schedule::action::BatchOutcome;
use proq_plan::schedule::state::State;
use proq_plan::schedule::task_phase::{FailureReason, TaskOutcome};
use proq_store::base::batch_id::BatchId;
use proq_store::locks::lock::LockName;

use crate::lane::Project;
use crate::ops;
use crate::swarm::Error;
use crate::swarm::batch::log::{LogLine, LogTail};
use crate::swarm::batch::record::Batch;
use crate::swarm::batch::scheduler;
use crate::swarm::status::progress::BatchProgress;
use crate::watch::subject::Subject;
use crate::watch::watcher::Watch;

/// Batch whose log is followed.
pub struct BatchFollower {
    /// The batch as it was created.
    pub batch: Batch,
    /// Lines of the log that were read without being shown, for a batch that is followed from now on.
    pub past_lines: Vec<LogLine>,
    /// Whether a scheduler process worked on the batch at the last read of its log.
    pub has_scheduler: bool,
    log: LogTail,
}

impl BatchFollower {
    /// Follows a batch from the start of its log.
    ///
    /// # Errors
    /// Fails if the batch cannot be read.
    pub fn from_start(project: &Project, id: &BatchId) -> Result<BatchFollower, Error> {
        let batch = Batch::load(&project.store, id)?;
        let log = batch.log_tail(&project.store);
        Ok(BatchFollower { batch, past_lines: Vec::new(), has_scheduler: true, log })
    }

    /// Follows a batch from now on.
    ///
    /// # Errors
    /// As [`BatchFollower::from_start`]; also fails if the log cannot be read.
    pub fn from_now(project: &Project, id: &BatchId) -> Result<BatchFollower, Error> {
        let mut follower = BatchFollower::from_start(project, id)?;
        follower.past_lines = follower.log.read_new_lines()?;
        Ok(follower)
    }

    /// Watches the batch's files. Its log is read after that, so that no entry is missed in between.
    ///
    /// # Errors
    /// Fails if nothing can be watched.
    pub fn watch<'p>(&self, project: &'p Project) -> Result<Watch<'p>, Error> {
        let mut watch = Watch::new(project)?;
        watch.add(Subject::Batch(self.batch.id().clone()));
        Ok(watch)
    }

    /// Returns the lines of the log that were written since the last call. A wait for `watch` ends once no
    /// scheduler works on the batch.
    ///
    /// # Errors
    /// Fails if the log or the scheduler's lock cannot be read.
    pub fn read_new_lines(
        &mut self,
        project: &Project,
        watch: &mut Watch<'_>,
    ) -> Result<Vec<LogLine>, Error> {
        watch.add_lock(&LockName::Batch(self.batch.id().clone()))?;
        // Checked before the log is read, so that entries written just before the scheduler exits are not
        // missed.
        self.has_scheduler = scheduler::is_running(&project.store, self.batch.id())?;
        Ok(self.log.read_new_lines()?)
    }

    /// Waits until no scheduler process works on the batch, and returns how far it is then.
    ///
    /// # Errors
    /// Fails if nothing can be watched, the log cannot be read, or a deferred signal was received.
    pub fn wait_for_end(mut self, project: &Project) -> Result<BatchProgress, ops::error::Error> {
        let mut watch = self.watch(project)?;
        while self.read_new_lines(project, &mut watch).map(|_| self.has_scheduler)? {
            watch.wait_for_change()?;
        }
        Ok(self.progress(project)?)
    }

    /// Reads how far the batch is.
    ///
    /// # Errors
    /// Fails if the log cannot be read.
    pub fn progress(&self, project: &Project) -> Result<BatchProgress, Error> {
        let lines = self.batch.read_log_lines(&project.store)?;
        Ok(BatchProgress::read(project, &self.batch, &lines, self.has_scheduler))
    }

    /// Returns the exit code for `state`, the state that the log of the batch leads to. Unmet criteria of a
    /// strict batch count as a failure.
    pub fn exit(&self, project: &Project, state: &State) -> Exit {
        let record = &self.batch.record;
        let has_unmet_criteria = || {
            record.strict
                && !record.criteria.is_empty()
                && !record.criteria_report(&project.store).is_some_and(|report| report.are_all_met())
        };
        match exit_of_task_outcomes(state, self.batch.tasks.len()) {
            Exit::Success if has_unmet_criteria() => Exit::Agent,
            exit => exit,
        }
    }
}

/// Returns the exit code for the outcome of a batch and of its first `tasks` tasks, without criteria.
fn exit_of_task_outcomes(state: &State, tasks: usize) -> Exit {
    let outcomes: Vec<TaskOutcome> = (0..tasks).filter_map(|task| state.task_outcome(task)).collect();
    let is_conflict =
        |outcome: &TaskOutcome| *outcome == TaskOutcome::Failed(FailureReason::ConflictUnresolved);
    let is_failure = |outcome: &TaskOutcome| {
        use TaskOutcome::{Failed, NoChange, SetAside};
        matches!(outcome, NoChange | SetAside | Failed(_)) && !is_conflict(outcome)
    };
    match state.final_outcome() {
        Some(BatchOutcome::Complete) => Exit::Success,
        Some(BatchOutcome::Aborted) => Exit::Refused,
        _ if outcomes.iter().any(is_failure) => Exit::Agent,
        _ if outcomes.iter().any(is_conflict) => Exit::Conflicts,
        _ => Exit::Refused,
    }
}
