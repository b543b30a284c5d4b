//! Supervision of one run while it lasts: the agent's process, its output and its limits.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use proq_base::process::command_builder::AsyncChild;
use proq_store::base::atomic::write as write_atomically;
use proq_store::base::record::Record;
use proq_store::base::run_number::RunNumber;
use proq_store::paths::layout::Layout;
use proq_store::records::lane::AnyLane;
use proq_store::records::run::{RunRecord, RunSummary};
use proq_stream::base::event::StreamEvent;
use proq_stream::base::run_end::Exit;
use proq_stream::reader::OutputReader;
use proq_stream::summary::Summary;

use super::live_status::LiveStatusFile;
use super::retries::RequestRetryTracker;
use super::stdin_writer::StdinWriter;
use super::tail::Tail;
use crate::agent::Error;
use crate::agent::base::limits::{Limits, RunClock, StopCause, wait_until};
use crate::agent::base::shutdown_signals::ShutdownSignals;
use crate::agent::launch::launcher::Launcher;
use crate::agent::launch::run_spec;
use crate::agent::launch::run_spec::{RunSpec, cost_so_far};
use crate::event::log;
use crate::lane;
use crate::lane::Project;

/// Maximum number of log chunks that are read in sequence before anything else is handled.
const MAX_CHUNKS_PER_READ: usize = 16;

/// Wait status of a process that SIGKILL ended.
pub(crate) const SIGKILL_WAIT_STATUS: i32 = 9;

/// How a run ended: exit status, cause, and a summary of its output.
pub struct RunExit {
    /// Exit status of the agent's process.
    pub status: ExitStatus,
    /// Reason for which git-proq ended the run. `None` when the agent exited on its own.
    pub cause: Option<StopCause>,
    /// Number of stray processes that the run left behind outside of its process group.
    pub(crate) stray_count: usize,
    /// Summary of the agent's output.
    pub summary: Summary,
    /// Summary of the agent's output in the form that the run's record has.
    pub(crate) recorded_summary: RunSummary,
    /// Error that made it impossible to watch the run, if git-proq ended the run because of one.
    pub(crate) watch_error: Option<String>,
    /// Hint at why the run ended, for a run whose output does not explain it.
    pub hint: Option<ExitHint>,
}

/// Hint at why a run ended.
pub enum ExitHint {
    /// The agent was only retrying failing requests at the end. The text describes them.
    Retrying(String),
    /// The agent had produced no output for this long when its run ended.
    Silent(Duration),
    /// Last text in the tmux window of the run.
    Screen(String),
}

/// A run to start and to watch until its end.
pub struct RunWatcher<'a> {
    /// Repository, store and settings of the run's lane.
    pub project: &'a Project,
    /// Lane in which the agent runs.
    pub lane: &'a AnyLane,
    /// Number of the run in its lane.
    pub run_number: RunNumber,
    /// Specification by which the agent is started.
    pub spec: &'a RunSpec,
    /// Limits at which git-proq stops the run.
    pub limits: Limits,
    /// Value of the environment variable that marks the run's processes.
    pub(crate) process_mark: &'a str,
}

/// State of a run while it is watched.
struct WatchState {
    log_tail: Tail,
    /// Reader of the agent's standard error, for dialects that report useful facts there.
    stderr_tail: Option<Tail>,
    retries: RequestRetryTracker,
    reader: OutputReader,
    clock: RunClock,
    live_file: LiveStatusFile,
    stdin_writer: StdinWriter,
    /// Events that were read from the log and are not handled yet.
    unhandled_events: Vec<StreamEvent>,
    /// Id of the session, until it is in the run's record.
    unrecorded_session: Option<String>,
    /// Number of delivered follow-up prompts that are not in the run's record yet.
    unrecorded_prompts: u32,
    /// Error that makes the run impossible to watch.
    watch_error: Option<String>,
    /// Whether the file that requests the agent to wrap up was created.
    is_wrap_up_requested: bool,
    /// Tip of the lane and modification time of STATUS.md at the last check.
    last_progress_marks: ProgressMarks,
}

/// Marks by which progress of a lane's work is recognized.
#[derive(PartialEq, Eq)]
struct ProgressMarks {
    /// Tip of the lane's branch; none without a branch.
    tip: Option<proq_git::CommitId>,
    /// Modification time of STATUS.md; none without the file.
    status_file_mtime: Option<std::time::SystemTime>,
}

impl RunWatcher<'_> {
    /// Starts the agent, passes its process group to `on_started`, and waits until it exits or must be
    /// stopped. Also ends every process that the agent left running.
    ///
    /// # Errors
    /// Fails when the agent could not be started, or was ended at once because `on_started` or a preparation
    /// of the watch failed.
    pub async fn run(
        &self,
        shutdown_signals: &mut ShutdownSignals,
        on_started: impl FnOnce(u32) -> Result<(), Error>,
    ) -> Result<RunExit, Error> {
        // While the other end of the pipe is open, the client of the Agent Client Protocol knows that it is
        // watched.
        let (mut child, mut stdin_pipe) = self.start_agent()?;
        let process_group = child.id().unwrap_or_default();
        let mut open_stdin_writer = || match stdin_pipe.take_if(|_| self.spec.launcher == Launcher::OpenStdin)
        {
            Some(pipe) => StdinWriter::start(self.spec, pipe),
            None => Ok(StdinWriter::default()),
        };
        let mut watch_state = match on_started(process_group)
            .and_then(|()| open_stdin_writer())
            .and_then(|writer| self.new_watch_state(writer))
        {
            Ok(watch_state) => watch_state,
            Err(e) => {
                self.end_all_processes(process_group);
                return Err(e);
            }
        };
        // From here on, no read or write error leaves the agent running alone.
        let outcome = self.wait_for_end(&mut child, &mut watch_state, shutdown_signals).await;
        // Measured before the stop, which may take a long time.
        let silence = watch_state.clock.idle_time(Instant::now());
        let (status, cause) = match outcome {
            WaitOutcome::Exited(status) => (status, None),
            WaitOutcome::Stop(cause) => {
                (self.stop_agent(&mut child, process_group, shutdown_signals).await, Some(cause))
            }
        };
        let strays = self.end_all_processes(process_group);
        while self.read_log(&mut watch_state) {}
        let usage_file =
            Layout::run_usage_file(&self.project.store.layout().run_dir(&self.lane.name, self.run_number));
        if let Ok(bytes) = proq_base::regular_file::read_store_file(usage_file) {
            watch_state.reader.read_usage_file(&bytes, &mut watch_state.unhandled_events);
        }
        let exit = Exit { code: status.code(), signal: status.signal() };
        let summary = watch_state.reader.finish(exit, &mut watch_state.unhandled_events);
        let account = run_spec::final_summary(watch_state.reader.progress(), &summary, None);
        watch_state.live_file.remove();
        let hint = watch_state.retries.describe().map_or(ExitHint::Silent(silence), ExitHint::Retrying);
        Ok(RunExit {
            status,
            cause,
            stray_count: strays,
            summary,
            recorded_summary: account,
            watch_error: watch_state.watch_error,
            hint: Some(hint),
        })
    }

    fn new_watch_state(&self, stdin_writer: StdinWriter) -> Result<WatchState, Error> {
        let layout = self.project.store.layout();
        let log_path = layout.run_log(&self.lane.name, self.run_number);
        let stderr_path = layout.run_stderr(&self.lane.name, self.run_number);
        Ok(WatchState {
            log_tail: Tail::open(&log_path).map_err(lane::Error::io("read", &log_path))?,
            // A missing error log is no reason to fail the run.
            stderr_tail: self
                .spec
                .dialect
                .reports_on_stderr()
                .then(|| Tail::open(&stderr_path).ok())
                .flatten(),
            retries: RequestRetryTracker::default(),
            reader: self.spec.new_output_reader(),
            clock: RunClock::start(self.limits, Instant::now()),
            live_file: LiveStatusFile::new(layout.run_live_view(&self.lane.name, self.run_number)),
            stdin_writer,
            unhandled_events: Vec::new(),
            unrecorded_session: None,
            unrecorded_prompts: 0,
            watch_error: None,
            is_wrap_up_requested: false,
            last_progress_marks: self.read_progress_marks(),
        })
    }

    async fn wait_for_end(
        &self,
        child: &mut AsyncChild,
        state: &mut WatchState,
        shutdown_signals: &mut ShutdownSignals,
    ) -> WaitOutcome {
        // Read the output written before the file was watched.
        self.read_stderr(state);
        loop {
            let has_more = self.read_log(state);
            if let Some(cause) = self.find_stop_cause(state) {
                return WaitOutcome::Stop(cause);
            }
            self.request_wrap_up(state);
            if !has_more {
                self.continue_after_turn(state);
            }
            let next_limit = state.clock.next_deadline();
            let limit_at = next_limit.map(|(at, _)| at);
            let live_file_due = state.live_file.next_write();
            let is_writing = state.stdin_writer.has_pending_output();
            tokio::select! {
                biased;
                () = shutdown_signals.wait() => return WaitOutcome::Stop(StopCause::Requested),
                status = child.wait() => match status {
                    Ok(status) => return WaitOutcome::Exited(status),
                    Err(e) => state.watch_error = Some(e.to_string()),
                },
                () = wait_until(live_file_due) => {
                    state.live_file.write(state.reader.progress());
                    self.record_session(state);
                }
                () = wait_until(limit_at) => {
                    if let Some((_, cause)) = next_limit && !self.has_new_progress(state, cause) {
                        return WaitOutcome::Stop(cause);
                    }
                }
                bytes = state.stdin_writer.write(), if is_writing => state.stdin_writer.record_written(&bytes),
                () = std::future::ready(()), if has_more => {}
                () = state.log_tail.wait_for_growth(), if !has_more => {}
                () = wait_for_growth(&mut state.stderr_tail) => self.read_stderr(state),
            }
        }
    }

    /// Once the turn of an agent with an open standard input has finished, sends it the next prompt, or
    /// closes its standard input.
    fn continue_after_turn(&self, state: &mut WatchState) {
        let reader = &state.reader;
        if state.stdin_writer.awaits_turn_end() && reader.has_reported_end() && reader.is_at_line_start() {
            let log_path = self.project.store.layout().run_log(&self.lane.name, self.run_number);
            let is_budget_spent = state.clock.is_budget_used_up(cost_so_far(reader.progress()));
            let (conversation, is_done) =
                (self.spec.conversation, reader.has_reported_success() && !is_budget_spent);
            state.stdin_writer.handle_turn_end(
                &self.project.store,
                self.lane,
                conversation,
                is_done,
                &log_path,
            );
        }
    }

    /// Reads the next chunks of the log, up to a maximum number. Returns whether there may be more.
    fn read_log(&self, state: &mut WatchState) -> bool {
        for _ in 0..MAX_CHUNKS_PER_READ {
            let chunk = match state.log_tail.read_chunk() {
                Ok(bytes) => bytes,
                Err(e) => {
                    state.watch_error = Some(format!("cannot read its log: {e}"));
                    return false;
                }
            };
            if chunk.is_empty() {
                return false;
            }
            state.reader.feed_stdout(chunk, &mut state.unhandled_events);
            let now = Instant::now();
            state.clock.record_progress(now);
            state.clock.set_done(state.reader.has_reported_end(), now);
            state.live_file.schedule_write();
            self.handle_events(state);
        }
        true
    }

    /// Reads the agent's standard error to its current end. After a read error it is read no more.
    fn read_stderr(&self, state: &mut WatchState) {
        loop {
            match state.stderr_tail.as_mut().map(Tail::read_chunk) {
                Some(Ok(chunk)) if !chunk.is_empty() => {
                    state.reader.feed_stderr(chunk, &mut state.unhandled_events);
                }
                Some(Ok(_)) | None => break,
                Some(Err(_)) => {
                    state.stderr_tail = None;
                    break;
                }
            }
        }
        self.handle_events(state);
    }

    /// Handles the new events: warns of retries, reports follow-up prompts, and records what must be on disk
    /// at once.
    fn handle_events(&self, state: &mut WatchState) {
        let known_prompts = state.unrecorded_prompts;
        for event in state.unhandled_events.drain(..) {
            state.retries.observe(&event);
            state.unrecorded_prompts += u32::from(state.stdin_writer.observe_event(
                &self.project.store,
                &self.lane.name,
                self.run_number,
                &event,
            ));
            match event {
                StreamEvent::Session { id, .. } => state.unrecorded_session = Some(id),
                StreamEvent::MessageSent { .. } => {
                    state.unrecorded_prompts += u32::from(self.spec.launcher == Launcher::Protocol);
                }
                _ => {}
            }
        }
        if state.unrecorded_prompts > known_prompts {
            let agent = self.lane.agent.as_deref().unwrap_or("its agent");
            let text = format!("lane '{}': {agent} gets another message in the same run", self.lane.name);
            self.project.emit(log::EventName::MessageDelivered, Some(self.lane), text);
        }
        if let Some(retry_text) = state.retries.next_report() {
            let agent = self.lane.agent.as_deref().unwrap_or("its agent");
            let text = format!("lane '{}': {agent} {retry_text}", self.lane.name);
            self.project.emit(log::EventName::AgentRetry, Some(self.lane), text);
        }
        self.record_session(state);
    }

    /// Records the session's id as soon as it is known, so that the session can be resumed in any case, and
    /// the number of follow-up prompts. A failed write, as on a full disk, is retried a second later. The
    /// session is in the run's result too.
    fn record_session(&self, state: &mut WatchState) {
        if state.unrecorded_session.is_none() && state.unrecorded_prompts == 0 {
            return;
        }
        let path = self.project.store.layout().run_record(&self.lane.name, self.run_number);
        let saved = RunRecord::load(&path).and_then(|mut run| {
            let original = run.clone();
            run.summary.session = state.unrecorded_session.clone().or(run.summary.session);
            run.delivery_count += state.unrecorded_prompts;
            if run != original {
                run.save(&path)?;
            }
            Ok(())
        });
        match saved {
            Ok(()) => (state.unrecorded_session, state.unrecorded_prompts) = (None, 0),
            Err(_) => state.live_file.schedule_write(),
        }
    }

    /// Returns the cause for which the run must stop now; none while it may continue.
    fn find_stop_cause(&self, state: &WatchState) -> Option<StopCause> {
        if state.watch_error.is_some() {
            return Some(StopCause::WatchFailed);
        }
        if state.reader.runaway_reason().is_some() {
            return Some(StopCause::RepeatedOutput);
        }
        // An agent that has finished its last turn costs nothing more, and its result counts.
        if !state.reader.has_reported_end()
            && state.clock.exceeds_budget(cost_so_far(state.reader.progress()))
        {
            return Some(StopCause::OverBudget);
        }
        self.is_context_filled_to(state, self.project.settings.context_stop).then_some(StopCause::ContextFull)
    }

    /// Returns whether at least `limit` percent of the context are used. Always false for an agent that has
    /// finished its last turn, and for a run that resolves a conflict.
    fn is_context_filled_to(&self, state: &WatchState, limit: Option<u64>) -> bool {
        let percent = state.reader.progress().context_percent();
        !self.spec.resolves_conflict
            && !state.reader.has_reported_end()
            && limit.zip(percent).is_some_and(|(limit, percent)| percent >= limit)
    }

    /// Creates, once, the file that requests the agent to wrap up. A failed write, as on a full disk, is
    /// retried.
    fn request_wrap_up(&self, state: &mut WatchState) {
        if !state.is_wrap_up_requested && self.is_context_filled_to(state, self.project.settings.context_warn)
        {
            let file = self.project.store.layout().run_wrap_up_marker(&self.lane.name, self.run_number);
            let text = b"The context is nearly full. Finish, commit, and end.\n";
            state.is_wrap_up_requested = write_atomically(&file, text).is_ok();
        }
    }

    /// Returns whether a run that is about to be stopped as stalled has a new commit or a changed STATUS.md.
    /// Always false for other causes. Records the activity in the run's clock.
    fn has_new_progress(&self, state: &mut WatchState, cause: StopCause) -> bool {
        if cause != StopCause::Stall {
            return false;
        }
        let activity = self.read_progress_marks();
        let is_new = activity != state.last_progress_marks;
        if is_new {
            state.last_progress_marks = activity;
            state.clock.record_progress(Instant::now());
        }
        is_new
    }

    /// Reads the current tip of the lane and modification time of its STATUS.md.
    fn read_progress_marks(&self) -> ProgressMarks {
        let status_metadata = std::fs::metadata(self.spec.work_dir.join("STATUS.md"));
        ProgressMarks {
            tip: self
                .lane
                .commit_branch()
                .and_then(|branch| self.project.repo.branch_tip(branch).ok().flatten()),
            status_file_mtime: status_metadata.and_then(|meta| meta.modified()).ok(),
        }
    }
}

/// Result of waiting for the end of a run.
enum WaitOutcome {
    /// The agent exited on its own.
    Exited(ExitStatus),
    /// git-proq must stop the run, for this cause.
    Stop(StopCause),
}

/// Waits until a file may have grown. Waits forever without a file.
async fn wait_for_growth(tail: &mut Option<Tail>) {
    match tail {
        Some(tail) => tail.wait_for_growth().await,
        None => std::future::pending().await,
    }
}
