//! Main loop of a batch's process: receive an event, log it, let the scheduler decide, execute its actions.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use proq_base::lane_name::LaneName;
use proq_base::process::{identity, wake};
use proq_base::{fail_points, interrupt};
use proq_plan::schedule::action::{Action, RunBase};
use proq_plan::schedule::event::ScheduleEvent;
use proq_plan::schedule::state::State;
use proq_plan::schedule::task_phase::TaskOutcome;
use proq_store::base::batch_id::BatchId;
use proq_store::base::record::Record;
use proq_store::locks::lock::LockGuard;
use proq_store::records::lane::LaneRecord;

use super::batch_events::emit_batch_event;
use super::initial_checks::InitialChecks;
use super::landing_thread::LandingThread;
use super::runner_event::RunnerEvent;
use crate::lane::Project;
use crate::lane::recovery;
use crate::swarm::Error;
use crate::swarm::batch::lanes::{batch_lanes, find_batch_lane};
use crate::swarm::batch::ledger::Ledger;
use crate::swarm::batch::log::{BatchLog, EventFacts};
use crate::swarm::batch::log_summary::LogSummary;
use crate::swarm::batch::record::Batch;
use crate::swarm::batch::scheduler::{SchedulerRecord, wake_other_schedulers};
use crate::swarm::landing::landed_marks::mark_landed;
use crate::swarm::status::progress::{BatchProgress, write_progress};

/// Delay before the log is written again after a failure, for example on a full disk.
const LOG_RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// Interval at which capacity is checked without an event, since runs outside of batches end without one.
const CAPACITY_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// A run that the scheduler wants to start.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunStart {
    /// Number of the task.
    pub(super) task: usize,
    /// Number of the lane.
    pub(super) lane: usize,
    /// Number of the attempt, from 1.
    pub(super) attempt: u32,
    /// Base of the run: a tip of the batch's branch, or the work of another task.
    pub(super) base: RunBase,
}

/// Process state of one running batch.
pub(super) struct Runner<'p> {
    pub(super) project: &'p Project,
    pub(super) batch: Batch,
    /// State of the scheduler after the events in the log.
    pub(super) state: State,
    pub(super) log_summary: LogSummary,
    pub(super) event_sender: Sender<RunnerEvent>,
    /// Names of the lanes, by lane number.
    pub(super) lane_names: BTreeMap<usize, LaneName>,
    /// Errors of lanes that could not be created, by lane number.
    pub(super) lane_creation_errors: BTreeMap<usize, String>,
    /// Runs that are to start and wait for capacity.
    pub(super) pending_starts: Vec<RunStart>,
    /// Runs that wait until their lane is idle, by task and attempt.
    pub(super) runs_waiting_for_lane: BTreeSet<(usize, u32)>,
    /// Runs whose end a thread waits for, by task and attempt.
    pub(super) watched_runs: BTreeSet<(usize, u32)>,
    pub(super) landing_thread: LandingThread,
    /// Checks as the user had configured them when this process started.
    pub(super) checks: InitialChecks,
    /// Tasks whose conflict an agent resolves.
    pub(super) resolving_tasks: BTreeSet<usize>,
    /// Whether the set-up of lanes is cancelled.
    pub(super) cancel_set_ups: Arc<AtomicBool>,
    /// Events to log and pass to the scheduler next.
    pub(super) pending_events: VecDeque<(ScheduleEvent, EventFacts)>,
    event_receiver: Receiver<RunnerEvent>,
    log: BatchLog,
    _lock: LockGuard,
}

/// Runs a batch until it has finished, or is paused with nothing under way. `lock` is the batch's lock.
/// `on_listening` is called as soon as signals are received.
///
/// # Errors
/// When the batch cannot be read.
pub fn run_batch(
    project: &Project,
    id: &BatchId,
    lock: LockGuard,
    on_listening: impl FnOnce(),
) -> Result<(), Error> {
    interrupt::defer_signals();
    let batch = Batch::load(&project.store, id)?;
    let (log, lines) = BatchLog::open(&project.store.layout().batch_event_log(id))?;
    let (event_sender, event_receiver) = mpsc::channel();
    forward_signals(&event_sender).map_err(|e| {
        crate::swarm::batch::error::BatchError::SchedulerNotStarted { id: id.clone(), reason: e.to_string() }
    })?;
    let own_pid = std::process::id();
    SchedulerRecord { pid: own_pid, start_time: identity::start_time_of(own_pid) }
        .save(&project.store.layout().batch_scheduler_record(id))?;
    on_listening();
    // The previous process of the batch may have crashed in the middle of an operation.
    recovery::recover(project)?;
    let checks = InitialChecks::capture(project)?;
    let landing_thread = LandingThread::spawn(&project.repo, checks.clone(), event_sender.clone());
    let mut runner = Runner {
        project,
        state: batch.fold_state(&lines),
        log_summary: LogSummary::from_lines(&batch, &lines),
        batch,
        event_sender,
        lane_names: BTreeMap::new(),
        lane_creation_errors: BTreeMap::new(),
        pending_starts: Vec::new(),
        runs_waiting_for_lane: BTreeSet::new(),
        watched_runs: BTreeSet::new(),
        landing_thread,
        checks,
        resolving_tasks: BTreeSet::new(),
        cancel_set_ups: Arc::default(),
        pending_events: VecDeque::new(),
        event_receiver,
        log,
        _lock: lock,
    };
    let result = runner.start_or_take_over().and_then(|()| runner.run_loop());
    if let Err(e) = &result
        && interrupt::require_no_signal().is_ok()
    {
        // The log then shows the user why no process continues the batch.
        drop(runner.log_note(&format!("the scheduler of this batch failed: {e}"), &[]));
    }
    result
}

/// Starts a thread that forwards signals to the main loop: those that wake it, and those that end this
/// process.
fn forward_signals(event_sender: &Sender<RunnerEvent>) -> std::io::Result<()> {
    let (mut signal_reader, signal_writer) = UnixStream::pair()?;
    wake::register_wake_pipe(&signal_writer)?;
    // The handler stays installed for as long as this process lives.
    std::mem::forget(interrupt::register_signal_pipe(&signal_writer)?);
    let event_sender = event_sender.clone();
    std::thread::Builder::new().spawn(move || {
        let _signal_writer = signal_writer;
        while signal_reader.read(&mut [0]).is_ok_and(|n| n > 0)
            && event_sender.send(RunnerEvent::Woken).is_ok()
        {}
    })?;
    Ok(())
}

impl Runner<'_> {
    /// Starts the batch, or takes it over from another process.
    fn start_or_take_over(&mut self) -> Result<(), Error> {
        for (number, lane) in batch_lanes(self.project, self.batch.id())? {
            self.lane_names.insert(number, lane.name);
        }
        // A finished batch continues only when the user requests it.
        if self.state.final_outcome().is_none() {
            self.log_undone_landings()?;
        }
        self.claim_open_tasks()?;
        self.refresh_capacity()?;
        if self.log_summary.has_begun {
            let runs = self.find_open_runs()?;
            self.pending_events
                .push_back((ScheduleEvent::BatchTakenOver { runs: runs.clone() }, EventFacts::default()));
            self.process_pending_events()?;
            for (task, attempt) in runs {
                self.watch_run(task, attempt);
            }
        } else {
            self.pending_events.push_back((ScheduleEvent::BatchStarted, EventFacts::default()));
        }
        self.process_pending_events()
    }

    /// Receives and handles messages until the batch has finished or is paused.
    fn run_loop(&mut self) -> Result<(), Error> {
        loop {
            self.process_requests()?;
            self.process_pending_events()?;
            interrupt::require_no_signal().map_err(proq_store::Error::from)?;
            let is_finished = self.state.final_outcome().is_some();
            if is_finished || self.state.pause_reason().is_some() {
                if is_finished {
                    self.mark_landed_in_plan();
                    // This is the last step: while the batch has claims on tasks, steps of its end may still
                    // be due.
                    Ledger::release_all(&self.project.store, self.batch.id())?;
                }
                wake_other_schedulers(&self.project.store, self.batch.id());
                return Ok(());
            }
            let polls_capacity = self.must_poll_capacity();
            let received = match polls_capacity {
                true => self.event_receiver.recv_timeout(CAPACITY_POLL_INTERVAL),
                false => self.event_receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match received {
                Ok(received) => self.handle_received(received)?,
                Err(_) => self.retry_waiting()?,
            }
        }
    }

    /// Handles a message from a thread or a signal.
    fn handle_received(&mut self, received: RunnerEvent) -> Result<(), Error> {
        match received {
            RunnerEvent::Woken => self.retry_waiting(),
            RunnerEvent::RunFinished(task, attempt) => self.handle_run_end(task, attempt),
            RunnerEvent::LandingFinished(landing) => self.queue_landing_events(landing),
            RunnerEvent::LandingDelayed(tasks, reason) => {
                // In a deleted repository every retry would fail.
                let git_dir = self.project.repo.common_dir();
                if git_dir.try_exists().is_ok_and(|exists| !exists) {
                    let reason = std::io::ErrorKind::NotFound.into();
                    return Err(proq_git::Error::io("read", git_dir)(reason).into());
                }
                self.log_note(&format!("retrying the merge: {reason}"), &tasks)
            }
            RunnerEvent::SetUpFinished(lane, failure) => self.queue_set_up_event(lane, failure),
            RunnerEvent::ConflictFinished(task, event, facts) => {
                self.resolving_tasks.remove(&task);
                self.pending_events.push_back((event, *facts));
                Ok(())
            }
        }
    }

    /// Retries claims and starts that others may have blocked.
    fn retry_waiting(&mut self) -> Result<(), Error> {
        self.claim_released_tasks()?;
        self.refresh_capacity()?;
        self.start_waiting_runs()
    }

    /// Processes all pending events.
    pub(super) fn process_pending_events(&mut self) -> Result<(), Error> {
        while let Some((event, facts)) = self.pending_events.pop_front() {
            self.process_event(&event, &facts)?;
        }
        Ok(())
    }

    /// Logs an event, passes it to the scheduler, and executes the returned actions.
    fn process_event(&mut self, event: &ScheduleEvent, facts: &EventFacts) -> Result<(), Error> {
        let failed_before = self.tasks_failed_before(event);
        let actions = self.log_and_apply(event, facts)?;
        self.save_failure_counts(event)?;
        self.log_stop_all(event, &actions)?;
        self.create_lanes(&actions)?;
        let is_recorded = |action: &&Action| matches!(action, Action::MarkFailed { task, .. } if failed_before.contains(task));
        for action in actions.iter().filter(|action| !is_recorded(action)) {
            fail_points::hit("batch.action");
            self.execute_action(action)?;
        }
        self.write_progress_file();
        Ok(())
    }

    /// Logs an event and passes it to the scheduler. Returns the actions to execute.
    pub(super) fn log_and_apply(
        &mut self,
        event: &ScheduleEvent,
        facts: &EventFacts,
    ) -> Result<Vec<Action>, Error> {
        fail_points::hit("batch.event");
        let line = self.retry_write(|log| log.append_event(event, facts.clone()))?;
        fail_points::hit("batch.written");
        self.log_summary.apply_line(&line);
        Ok(self.state.handle(event))
    }

    /// Returns the tasks that had failed before another process took the batch over: the event log already
    /// has them.
    fn tasks_failed_before(&self, event: &ScheduleEvent) -> Vec<usize> {
        let has_failed =
            |task: &usize| matches!(self.state.task_outcome(*task), Some(TaskOutcome::Failed(_)));
        match event {
            ScheduleEvent::BatchTakenOver { .. } => (0..self.batch.tasks.len()).filter(has_failed).collect(),
            _ => Vec::new(),
        }
    }

    /// Adds a note to the batch's log if the end of a run makes the scheduler stop running agents at once.
    fn log_stop_all(&mut self, event: &ScheduleEvent, actions: &[Action]) -> Result<(), Error> {
        let is_hard_stop = |action: &Action| matches!(action, Action::StopRun { hard: true, .. });
        let ScheduleEvent::RunEnded { task, .. } = event else { return Ok(()) };
        match actions.iter().filter(|action| is_hard_stop(action)).count() {
            0 => Ok(()),
            count => {
                let name = self.batch.task_name(*task);
                let agents = if count == 1 { "1 agent".to_owned() } else { format!("{count} agents") };
                self.log_note(&format!("'{name}' failed and stop-all is set: stopping {agents}"), &[])
            }
        }
    }

    /// Appends a note about `tasks` to the batch's log.
    pub(super) fn log_note(&mut self, text: &str, tasks: &[usize]) -> Result<(), Error> {
        let line = self.retry_write(|log| log.append_note(text, tasks))?;
        self.log_summary.apply_line(&line);
        Ok(())
    }

    /// Writes to the log, and retries until that succeeds, so that nothing is lost on a full disk.
    fn retry_write<T>(
        &mut self,
        mut write: impl FnMut(&mut BatchLog) -> Result<T, proq_store::Error>,
    ) -> Result<T, Error> {
        loop {
            match write(&mut self.log) {
                Ok(value) => return Ok(value),
                Err(e) => self.project.listener.warn(e.to_string()),
            }
            interrupt::require_no_signal().map_err(proq_store::Error::from)?;
            // Without its folder the batch does not exist any more.
            if !self.project.store.layout().batch(self.batch.id()).is_dir() {
                return Err(crate::swarm::batch::error::BatchError::CleanedUp {
                    id: self.batch.id().clone(),
                }
                .into());
            }
            std::thread::sleep(LOG_RETRY_INTERVAL);
        }
    }

    /// Carries out one action of the scheduler.
    fn execute_action(&mut self, action: &Action) -> Result<(), Error> {
        match action {
            Action::CreateLane { lane, task, branch_updates } => {
                self.create_lane(*lane, *task, *branch_updates)
            }
            Action::SetUpLane { lane } => self.set_up_lane(*lane),
            Action::StartRun { task, lane, attempt, base } => {
                let run_start = RunStart { task: *task, lane: *lane, attempt: *attempt, base: *base };
                self.start_run(run_start)
            }
            Action::StopRun { task, attempt, hard } => self.stop_run(*task, *attempt, *hard),
            Action::ResetLane { lane, task, base } => self.reset_lane(*lane, *task, *base),
            Action::Land { tasks, .. } => {
                self.queue_landing(tasks);
                Ok(())
            }
            Action::StartResolution { task } => self.start_resolver(*task),
            Action::StopResolution { task, hard } => self.stop_resolver(*task, *hard),
            Action::ReleaseTask { task } => self.release_task(*task),
            Action::DiscardLane { lane } => self.remove_landed_lane(*lane),
            Action::MarkFinished { .. } | Action::MarkPaused { .. } | Action::MarkFailed { .. } => {
                let report = match action {
                    Action::MarkFinished { outcome } => self.verify_criteria(*outcome)?,
                    _ => None,
                };
                emit_batch_event(self.project, &self.batch, &self.log_summary, (action, report.as_ref()));
                Ok(())
            }
            // These actions need no work: readers derive them from the log with the scheduler's state.
            Action::MarkQueued { .. }
            | Action::RetainLane { .. }
            | Action::MarkWaiting { .. }
            | Action::MarkSkipped { .. }
            | Action::MarkSetAside { .. } => Ok(()),
        }
    }

    /// Marks the landed tasks in the files of the plan, for a batch whose tasks land on the base. A failure
    /// is only a warning, since the tasks have landed.
    fn mark_landed_in_plan(&self) {
        // Work on the batch's own branch does not count as done for other batches and users yet.
        if !self.batch.record.auto_merge {
            return;
        }
        let record = &self.batch.record;
        let result = match self.project.repo.branch_tip(&record.base) {
            Ok(Some(tip)) => mark_landed(self.project, record, &record.base, tip).map(drop),
            Ok(None) => return,
            Err(e) => Err(e.into()),
        };
        if let Err(e) = result {
            self.project.listener.warn(format!("cannot mark merged tasks in the plan: {e}"));
        }
    }

    /// Writes the progress file that the user requested for the batch.
    fn write_progress_file(&self) {
        let Some(path) = &self.batch.record.progress_file else { return };
        let progress =
            BatchProgress::from_state(self.project, &self.batch, &self.state, &self.log_summary, true);
        write_progress(path, &progress);
    }

    /// Returns the record of the lane with this number, if the lane exists.
    pub(super) fn find_lane(&self, number: usize) -> Result<Option<LaneRecord>, Error> {
        let Some(name) = self.lane_names.get(&number) else { return Ok(None) };
        self.find_lane_by_name(name)
    }

    /// Returns the record of the batch's lane with this name; none if the lane is gone or the name belongs to
    /// another lane by now.
    pub(super) fn find_lane_by_name(&self, name: &LaneName) -> Result<Option<LaneRecord>, Error> {
        find_batch_lane(self.project, self.batch.id(), name)
    }
}
