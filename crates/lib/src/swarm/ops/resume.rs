//! Continuation of a batch.

use proq_base::money::NanoDollars;
use proq_plan::schedule::task_phase::{FailureReason, TaskOutcome};
use proq_store::base::batch_id::BatchId;
use serde::Serialize;

use super::batch_lookup::{BatchState, find_batch_to_control, read_progress, unfinished_batches};
use super::follow::BatchFollower;
use crate::lane::Project;
use crate::ops::error::Error;
use crate::swarm::batch::control_request::ControlRequestKind;
use crate::swarm::batch::ledger::Ledger;
use crate::swarm::batch::record::{Batch, BatchRecord};
use crate::swarm::batch::{create, scheduler};
use crate::swarm::run::{control_requests, scheduler_process};
use crate::swarm::status::undone_landings;

/// Request to continue a batch.
#[derive(Debug, Clone, Default)]
pub struct ResumeRequest {
    /// Id of the batch or a prefix of it; none for the only unfinished batch, or for the newest one if tasks
    /// of it can land now.
    pub batch_name: Option<String>,
    /// Names of tasks that are tried again, however often they have failed.
    pub retry: Vec<String>,
    /// New cost limit of the entire batch; zero for no limit.
    pub budget: Option<NanoDollars>,
}

/// What continuing a batch would do. It serializes to the JSON output of a dry run.
#[derive(Debug, Serialize)]
pub struct ResumePlan {
    /// Id of the batch.
    pub batch: BatchId,
    /// State of the batch in a word.
    pub state: &'static str,
    /// Always true.
    dry_run: bool,
    #[serde(skip)]
    record: BatchRecord,
    /// Requests to the scheduler; empty for a batch that is over and has nothing to continue with.
    #[serde(skip)]
    requests: Vec<ControlRequestKind>,
    /// Whether the request was only to continue, without retries or a new limit.
    #[serde(skip)]
    is_plain: bool,
}

/// What became of the request to continue a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resumption {
    /// The batch continues, or was running already.
    Continues,
    /// The batch is over, and its last steps are completed.
    CompletesEnd,
    /// The batch is over, and there is nothing to continue with.
    NothingToDo,
}

/// A batch after the request to continue it. It serializes to the JSON output of a command that does not
/// follow the batch.
#[derive(Serialize)]
pub struct ResumeOutcome {
    /// Id of the batch.
    pub batch: BatchId,
    /// State of the batch in a word.
    pub state: &'static str,
    /// Always false.
    dry_run: bool,
    /// What became of the request.
    #[serde(skip)]
    pub resumption: Resumption,
    /// Reader of what happens in the batch from now on.
    #[serde(skip)]
    pub follower: BatchFollower,
}

/// Finds the batch, and what it can continue with.
///
/// # Errors
/// Fails when the batch or a task cannot be found or read, or the batch was cleaned up.
pub fn plan(project: &Project, request: &ResumeRequest) -> Result<ResumePlan, Error> {
    let record = match last_repairable_batch(project, request)? {
        Some(batch) => batch,
        None => find_batch_to_control(project, request.batch_name.as_deref(), "resume")?,
    };
    let loaded = Batch::load(&project.store, &record.id)?;
    let limit = |limit: NanoDollars| Some(limit).filter(|limit| !limit.is_zero());
    let mut requests: Vec<ControlRequestKind> =
        request.budget.map(|most| ControlRequestKind::Budget { limit: limit(most) }).into_iter().collect();
    for name in &request.retry {
        requests.push(ControlRequestKind::Retry { task: loaded.find_task(name)? });
    }
    let is_plain = requests.is_empty();
    let state = BatchState::read(&project.store, &record.id)?;
    // Since then, a conflict may have been resolved, or the cause of a failed check repaired.
    if state.is_open() || is_repairable(project, &record)? {
        requests.push(ControlRequestKind::Resume);
    }
    Ok(ResumePlan { batch: record.id.clone(), state: state.word, dry_run: true, record, requests, is_plain })
}

impl ResumePlan {
    /// Continues the batch, and returns once its scheduler has received the requests.
    ///
    /// # Errors
    /// Fails when no scheduler can be started, or none processes the requests in time.
    pub fn execute(self, project: &Project) -> Result<ResumeOutcome, Error> {
        let ResumePlan { batch, state, record, requests, is_plain, .. } = self;
        let is_scheduled = state == "running" && scheduler::is_running(&project.store, &batch)?;
        let follower = BatchFollower::from_now(project, &batch)?;
        let has_unfinished_end = record.has_unverified_criteria(&project.store)
            || Ledger::read(&project.store)?.has_claims_of(&batch);
        let (state, resumption) = if requests.is_empty() && has_unfinished_end {
            // The scheduler was killed before it completed the final steps of the batch.
            let _resumed = scheduler_process::resume_scheduler(project, &batch)?;
            ("over", Resumption::CompletesEnd)
        } else if requests.is_empty() {
            (state, Resumption::NothingToDo)
        } else {
            // A batch that runs already is only followed.
            if !(is_scheduled && is_plain) {
                control_requests::submit_requests(project, &batch, requests)?;
            }
            (BatchState::read(&project.store, &batch)?.word, Resumption::Continues)
        };
        Ok(ResumeOutcome { batch, state, dry_run: false, resumption, follower })
    }
}

/// Returns the newest batch if one of its tasks may be able to land now. Returns `None` if the request names a
/// batch, or if some batch is unfinished.
fn last_repairable_batch(project: &Project, request: &ResumeRequest) -> Result<Option<BatchRecord>, Error> {
    if request.batch_name.is_some() || !unfinished_batches(project).is_empty() {
        return Ok(None);
    }
    let Some(last) = create::list_batches(project, false).pop() else { return Ok(None) };
    Ok(is_repairable(project, &last)?.then_some(last))
}

/// Returns whether a finished batch may have tasks that can land now. A conflict or a failed check may have
/// blocked a task. A user may have completed a task after its run failed. Or the landing of a task was
/// undone.
fn is_repairable(project: &Project, batch: &BatchRecord) -> Result<bool, Error> {
    let loaded = Batch::load(&project.store, &batch.id)?;
    let state = loaded.fold_state(&loaded.read_log_lines(&project.store)?);
    let is_stuck = |task: usize| {
        matches!(
            state.task_outcome(task),
            Some(TaskOutcome::Failed(FailureReason::ConflictUnresolved | FailureReason::CheckFailed))
        )
    };
    let is_repaired =
        || read_progress(project, &batch.id).map(|progress| progress.tasks.iter().any(|t| t.is_repaired));
    Ok((0..loaded.tasks.len()).any(is_stuck)
        || undone_landings::has_undone_landings(project, &loaded)?
        || is_repaired()?)
}
