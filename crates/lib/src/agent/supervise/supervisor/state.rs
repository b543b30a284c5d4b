//! State of a lane's supervisor, and how it records the end of the lane's runs.

use std::time::{Duration, Instant};

use proq_store::base::run_number::RunNumber;
use proq_store::records::lane::AnyLane;
use proq_store::records::lane_state::RunState;
use tokio::runtime::Runtime;

use super::retry_state::{Retry, RetryState};
use crate::agent::Error;
use crate::agent::base::shutdown_signals::ShutdownSignals;
use crate::agent::command::fresh_conversation::RestartCounter;
use crate::agent::supervise::classify::{RunOutcome, append_detail};
use crate::agent::supervise::follow_up::FollowUp;
use crate::event::log;
use crate::lane::Project;
use crate::lane::state::lane_state::status_after_run;

/// Time limit for writing the result of a run. It is long enough that the user can free disk space.
const RECORD_WRITE_TIMEOUT: Duration = Duration::from_mins(10);

/// Time limit for writing the result of a run once a signal has requested the supervisor to exit.
const SIGNALED_WRITE_TIMEOUT: Duration = Duration::from_secs(1);

/// Delay before the second attempt to write the result of a run.
const FIRST_WRITE_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Maximum delay between two attempts to write the result of a run.
const MAX_WRITE_RETRY_DELAY: Duration = Duration::from_secs(5);

/// State of the supervisor of one lane.
pub struct Supervisor<'a> {
    /// Repository, store and settings of the supervised lane.
    pub project: &'a Project,
    /// Record of the supervised lane, as the supervisor last read or wrote it.
    pub lane: AnyLane,
    /// Tokio runtime in which the supervisor waits for agents, signals and timers.
    pub runtime: Runtime,
    pub(crate) shutdown_signals: ShutdownSignals,
    /// Value of the environment variable that marks the processes of the lane's runs.
    pub(crate) process_mark: String,
    /// Whether the starter was informed that the agent has started, or why not.
    pub(crate) has_answered_starter: bool,
    /// State of the retries since the last request to the agent (its task or messages), including the current
    /// run.
    pub(crate) retry_state: RetryState,
    /// Counter of the runs that continued the current task in a new conversation.
    pub(crate) restart_counter: RestartCounter,
    /// Number and verdict of the last run, until the messages for its agent are delivered. The lane ends with
    /// this verdict if they cannot be delivered.
    pub(crate) last_verdict: Option<(RunNumber, RunOutcome)>,
    /// Work to start in other processes once the run lock is free.
    pub follow_up: FollowUp,
}

/// Decision about the run that follows a finished run.
pub(crate) enum NextRun {
    /// No further run.
    End,
    /// Start the run again after a delay.
    Retry(Retry),
    /// A run in a new conversation that continues the request of the run with this number.
    NewConversation(RunNumber),
    /// A run that delivers the messages that were sent to the lane during the finished run.
    Message,
    /// The next run of a task folder.
    Step,
}

impl Supervisor<'_> {
    /// Calls `write` until it succeeds, so that a full disk loses no result. Gives up after
    /// [`RECORD_WRITE_TIMEOUT`], or after [`SIGNALED_WRITE_TIMEOUT`] once a signal has arrived. An error
    /// about a missing file is returned at once.
    pub(crate) fn write_with_retries<T>(
        &mut self,
        mut write: impl FnMut() -> Result<T, Error>,
    ) -> Result<T, Error> {
        let started = Instant::now();
        let mut delay = FIRST_WRITE_RETRY_DELAY;
        loop {
            // `stop` waits for this process to exit, and its signal may have arrived before this write began.
            let timeout = if self.shutdown_signals.has_received() {
                SIGNALED_WRITE_TIMEOUT
            } else {
                RECORD_WRITE_TIMEOUT
            };
            match write() {
                Err(e) if !is_not_found(&e) && started.elapsed() < timeout => {}
                result => return result,
            }
            self.runtime.block_on(async {
                tokio::select! {
                    () = self.shutdown_signals.wait() => {}
                    () = tokio::time::sleep(delay) => {}
                }
            });
            delay = (delay * 2).min(MAX_WRITE_RETRY_DELAY);
        }
    }

    /// Records that the lane's run ended in `run_state`, with `reason` as the lane's detail.
    pub(crate) fn end_run(&mut self, run_state: RunState, reason: &str) -> Result<(), Error> {
        self.end_run_with(run_state, Some(reason.to_owned()), false)
    }

    /// Records that the lane's run ended with this state and detail. `already_done` is whether its task had
    /// been done before.
    pub(crate) fn end_run_with(
        &mut self,
        run_state: RunState,
        detail: Option<String>,
        already_done: bool,
    ) -> Result<(), Error> {
        let (project, name) = (self.project, self.lane.name.clone());
        self.lane = self.write_with_retries(|| {
            Ok(project.update_lane(&name, |record| {
                record.status = status_after_run(&project.store, &name, run_state);
                record.detail.clone_from(&detail);
                record.already_done = already_done;
            })?)
        })?;
        let message =
            format!("lane '{}': {} ({})", self.lane.name, self.lane.state(), detail.unwrap_or_default());
        self.project.emit(log::EventName::RunEnded, Some(&self.lane), message);
        Ok(())
    }

    /// Records that the lane's run ended with the last verdict, and adds `reason` to its detail.
    pub(crate) fn end_with_last_verdict(&mut self, reason: &str) -> Result<(), Error> {
        let Some((_, verdict)) = self.last_verdict.take() else {
            return self.end_run(RunState::Failed, reason);
        };
        let detail = append_detail(verdict.detail, Some(reason.to_owned()));
        let status = status_after_run(&self.project.store, &self.lane.name, verdict.state);
        self.follow_up = FollowUp::prepare(&self.project.store, &self.lane, status, true);
        self.end_run_with(verdict.state, detail, verdict.was_already_done)
    }

    /// Returns whether a user requested that the lane stops once its current run has finished.
    pub(crate) fn is_wrap_up_requested(&self) -> bool {
        self.project.store.layout().lane_wrap_up_marker(&self.lane.name).exists()
    }
}

/// Returns whether an error was caused by a missing file or folder, such as a removed repository.
fn is_not_found(e: &Error) -> bool {
    let first: &(dyn std::error::Error + 'static) = e;
    std::iter::successors(Some(first), |e| e.source())
        .filter_map(|e| e.downcast_ref::<std::io::Error>())
        .any(|e| e.kind() == std::io::ErrorKind::NotFound)
}
