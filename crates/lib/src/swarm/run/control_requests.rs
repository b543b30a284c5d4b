//! Control requests for a batch: submitting them, and processing them in its scheduler.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use proq_plan::schedule::event::ScheduleEvent;
use proq_plan::schedule::task_phase::{FailureReason, TaskOutcome};
use proq_store::base::batch_id::BatchId;
use proq_store::locks::change_watcher::DirWatcher;

use super::runner::Runner;
use super::scheduler_process::{ResumeOutcome, resume_scheduler};
use crate::lane::Project;
use crate::swarm::Error;
use crate::swarm::batch::control_request::{ControlRequest, ControlRequestKind, pending_requests};
use crate::swarm::batch::error::BatchError;
use crate::swarm::batch::log::EventFacts;
use crate::swarm::batch::log_summary::TaskCommits;
use crate::swarm::batch::scheduler::{is_running, wake_scheduler};
use crate::swarm::status::manual_repairs::{ManualRepair, find_repair};

/// Interval at which git-proq checks whether a scheduler still runs the batch.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Interval at which a scheduler that has not processed a request yet is woken again.
const WAKE_INTERVAL: Duration = Duration::from_secs(2);

/// Time limit for requests to be processed. A scheduler that is creating a lane of a large repository does
/// not react until it has finished that.
const REQUEST_TIMEOUT: Duration = Duration::from_mins(2);

/// Submits control requests for a batch, starts a scheduler if none runs, and returns once the requests are
/// processed.
///
/// # Errors
/// When no scheduler can be started, or none processes the requests in time.
pub fn submit_requests(project: &Project, id: &BatchId, kinds: Vec<ControlRequestKind>) -> Result<(), Error> {
    let mut paths = Vec::new();
    for kind in kinds {
        paths.push(ControlRequest::submit(&project.store, id, kind)?);
    }
    let submitted_at = Instant::now();
    let changes = DirWatcher::watch(&project.store.layout().batch_requests_dir(id));
    let mut last_wake: Option<Instant> = None;
    while paths.iter().any(|path| path.exists()) {
        // A scheduler that is just exiting does not process the request any more. The next scheduler reads
        // pending requests when it starts.
        let has_scheduler = is_running(&project.store, id)?;
        if !has_scheduler {
            let (ResumeOutcome::AlreadyRunning | ResumeOutcome::Started) = resume_scheduler(project, id)?;
        } else if last_wake.is_none_or(|at| at.elapsed() >= WAKE_INTERVAL) {
            wake_scheduler(&project.store, id);
            last_wake = Some(Instant::now());
        }
        if submitted_at.elapsed() > REQUEST_TIMEOUT {
            let seconds = REQUEST_TIMEOUT.as_secs();
            return Err(BatchError::SchedulerTimeout { id: id.clone(), seconds }.into());
        }
        changes.wait(POLL_INTERVAL);
    }
    Ok(())
}

impl Runner<'_> {
    /// Processes pending control requests. A request is deleted once it is in the log.
    pub(super) fn process_requests(&mut self) -> Result<(), Error> {
        for (path, request) in pending_requests(&self.project.store, self.batch.id()) {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            if !self.log_summary.answered_request_ids.contains(&name) {
                self.process_request(&request.kind, name)?;
            }
            std::fs::remove_file(&path).map_err(proq_store::Error::io("remove", &path))?;
        }
        Ok(())
    }

    /// Processes a control request; `name` is its id.
    fn process_request(&mut self, kind: &ControlRequestKind, name: String) -> Result<(), Error> {
        let facts = EventFacts { request_id: Some(name), ..EventFacts::default() };
        let event = match kind {
            ControlRequestKind::Pause => ScheduleEvent::Pause,
            ControlRequestKind::Resume => {
                self.landing_thread.enable_retries();
                self.cancel_set_ups.store(false, Ordering::Relaxed);
                self.continue_undone_tasks()?;
                self.claim_open_tasks()?;
                self.process_manual_repairs()?;
                ScheduleEvent::Resume
            }
            ControlRequestKind::Abort { hard } => {
                self.landing_thread.disable_retries();
                self.cancel_set_ups.store(true, Ordering::Relaxed);
                ScheduleEvent::Abort { hard: *hard }
            }
            ControlRequestKind::Retry { task } => {
                self.continue_undone_tasks()?;
                self.claim_open_tasks()?;
                ScheduleEvent::Retry { task: *task }
            }
            ControlRequestKind::Budget { limit } => ScheduleEvent::BudgetSet { limit: *limit },
        };
        self.pending_events.push_back((event, facts));
        self.process_pending_events()
    }

    /// Queues and processes the events of tasks that the user has repaired or finished in their lanes since.
    /// Checks of unchanged work run again, since the cause may have been repaired elsewhere.
    fn process_manual_repairs(&mut self) -> Result<(), Error> {
        for task in 0..self.batch.tasks.len() {
            if self.resolving_tasks.contains(&task) {
                continue;
            }
            let repair = find_repair(self.project, (&self.batch, &self.state, &self.log_summary), task)?;
            let detail = Some("by hand".to_owned());
            match repair {
                ManualRepair::NewCommits(TaskCommits { lane, work_start: from, work_end: to }) => {
                    let (lane, from, to) = (Some(lane), Some(from), Some(to));
                    let facts =
                        EventFacts { lane, work_start: from, work_end: to, detail, ..EventFacts::default() };
                    let run_failed = matches!(
                        self.state.task_outcome(task),
                        Some(TaskOutcome::Failed(FailureReason::RunFailed(_)) | TaskOutcome::SetAside)
                    );
                    let event = if run_failed {
                        ScheduleEvent::FinishedByHand { task }
                    } else {
                        ScheduleEvent::ConflictResolved { task }
                    };
                    self.pending_events.push_back((event, facts));
                }
                ManualRepair::Unchanged
                    if self.state.task_outcome(task)
                        == Some(TaskOutcome::Failed(FailureReason::CheckFailed)) =>
                {
                    self.pending_events
                        .push_back((ScheduleEvent::RecheckRequested { task }, EventFacts::default()));
                }
                ManualRepair::Unchanged | ManualRepair::None => {}
            }
        }
        self.process_pending_events()
    }
}
