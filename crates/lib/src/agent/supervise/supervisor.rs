//! Supervisor process of a lane's runs. It holds the run lock during each run, and between a run and the run
//! that follows it.

pub mod messages;
pub mod retry;
pub mod retry_state;
pub mod state;
pub mod steps;

use std::ffi::OsString;

use proq_base::explain::describe_with_causes;
use proq_base::lane_name::LaneName;
use proq_base::process::{signals, strays};
use proq_base::run_class::RunClass;
use proq_base::{process, regular_file};
use proq_store::base::record::Record;
use proq_store::base::run_number::RunNumber;
use proq_store::locks::lock::LockName;
use proq_store::records::lane_state::RunState;
use proq_store::records::run::RunRecord;

use super::already_done::TaskCompletion;
use super::classify::{RunClassifier, RunOutcome, append_detail};
use super::follow_up::FollowUp;
use super::supervisor_start::{adopt_lock_from_stdin, record_start, reply_to_starter};
use super::{already_done, auto_snapshots};
use crate::agent::Error;
use crate::agent::base::shutdown_signals::ShutdownSignals;
use crate::agent::command::fresh_conversation::RestartCounter;
use crate::agent::git_guard::GitGuard;
use crate::agent::launch::launch_spec::new_session_id;
use crate::agent::launch::launcher::Launcher;
use crate::agent::launch::prepare_run;
use crate::agent::launch::prompt_marker::insert_prompt;
use crate::agent::launch::run_spec::RunSpec;
use crate::agent::launch::start_supervisor::{STARTED_LINE, mark_run_not_started};
use crate::agent::run::tmux_client;
use crate::agent::run::watch::{RunExit, RunWatcher};
use crate::event::log;
use crate::lane;
use crate::lane::Project;
use crate::lane::messages::inbox::Inbox;
use crate::lane::worktree::detached_worktree;
use messages::{can_receive_messages, describe_undelivered};
use retry_state::{BUDGET_SPENT_REASON, RetryState};
use state::{NextRun, Supervisor};

/// Supervises a lane's runs to their end and starts the follow-up work. The run lock is passed as standard
/// input, and the starter waits for an answer on standard output. In `argv`, `prompt_marker` stands for the
/// prompt in the run's file.
pub fn supervise(
    project: &Project,
    name: &LaneName,
    run_number: RunNumber,
    argv: Vec<OsString>,
    prompt_marker: Option<&str>,
) -> Result<(), Error> {
    signals::start_process_session();
    strays::adopt_orphans();
    let lock = adopt_lock_from_stdin(&project.store, &LockName::Run(name.clone()))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| process::Error::NotStarted { program: "the event loop".into(), source })?;
    // Before any agent exists, so that no early signal is missed.
    let shutdown_signals = {
        let _runtime_context = runtime.enter();
        ShutdownSignals::listen()?
    };
    let given_mark = std::env::var(strays::RUN_MARK_VAR).ok().filter(|mark| !mark.is_empty());
    let process_mark = given_mark.unwrap_or_else(new_session_id);
    let mut supervisor = Supervisor {
        project,
        lane: project.any_lane(name)?,
        runtime,
        shutdown_signals,
        process_mark,
        has_answered_starter: false,
        retry_state: RetryState::default(),
        restart_counter: RestartCounter::default(),
        last_verdict: None,
        follow_up: FollowUp::default(),
    };
    let argv = match prompt_marker {
        Some(marker) => read_prompt_into(project, name, run_number, &argv, marker),
        None => Ok(argv),
    };
    let first_run =
        argv.and_then(|argv| RunSpec::load(project, &supervisor.lane, run_number, argv, Vec::new()));
    let result = first_run.and_then(|spec| supervisor.run_until_done(spec));
    // From now on other commands find the lane as its record states, without a message in its inbox that this
    // process still had to deliver.
    drop(lock);
    if let Err(e) = &result
        && !supervisor.has_answered_starter
    {
        // The starter still waits: this is its answer.
        reply_to_starter(&describe_with_causes(e));
    }
    supervisor.follow_up.start(project, &supervisor.lane);
    result
}

/// Returns the argument vector with the run's prompt, as it is on disk, in place of `marker`.
fn read_prompt_into(
    project: &Project,
    name: &LaneName,
    run_number: RunNumber,
    argv: &[OsString],
    marker: &str,
) -> Result<Vec<OsString>, Error> {
    let file = project.store.layout().run_prompt(name, run_number);
    let prompt = regular_file::read_store_text(&file).map_err(lane::Error::io("read", &file))?;
    Ok(insert_prompt(argv, marker, &prompt))
}

impl Supervisor<'_> {
    /// Runs `spec` and every run that follows it.
    fn run_until_done(&mut self, mut spec: RunSpec) -> Result<(), Error> {
        loop {
            let next = match self.run_once(&spec) {
                Ok(NextRun::End) => None,
                Ok(NextRun::Retry(retry)) => self.prepare_retry(&spec, retry)?,
                Ok(NextRun::NewConversation(first_run_number)) => {
                    self.prepare_new_conversation(first_run_number)?
                }
                Ok(NextRun::Message) => self.prepare_message_run(&spec)?,
                Ok(NextRun::Step) => self.prepare_step_run()?,
                Err(e) => return Err(self.end_after_error(&spec, e)),
            };
            match next {
                Some(next) => spec = next,
                None => return Ok(()),
            }
        }
    }

    /// Runs `spec` once, writes its result and returns the decision about the next run.
    fn run_once(&mut self, spec: &RunSpec) -> Result<NextRun, Error> {
        let ended = self.run_and_watch(spec)?;
        let outside_note = GitGuard::finish(self.project, &self.lane, spec.run_number);
        let (project, lane) = (self.project, self.lane.clone());
        let finished_run =
            RunClassifier { project, lane: &lane, run_number: spec.run_number, spec, run_exit: &ended };
        let mut verdict = finished_run.classify(outside_note);
        if lane.is_detached()
            && let Err(e) = detached_worktree::close_detached_worktree(project, &lane)
        {
            project.listener.warn(e.to_string());
        }
        self.retry_state.record_run(spec, &ended);
        let stop_reason = self.record_step_run(&finished_run, &verdict)?;
        self.last_verdict = Some((spec.run_number, verdict.clone()));
        let mut can_receive =
            can_receive_messages(spec, &verdict) && stop_reason.is_none() && !self.is_wrap_up_requested();
        let mut undelivered = None;
        if can_receive && self.retry_state.is_budget_spent {
            // Messages are delivered in a separate run, which only a user who knows the cost of this run may
            // start.
            can_receive = false;
            undelivered = self.has_messages(spec).then(|| BUDGET_SPENT_REASON.to_owned());
        }
        if can_receive && self.has_messages(spec) {
            undelivered = self.finish_before_message_run(&finished_run, &verdict)?;
            if undelivered.is_none() {
                return Ok(NextRun::Message);
            }
            can_receive = false;
        }
        let next = match spec.step_run {
            Some(_) => self.plan_next_step(spec, &mut verdict, stop_reason),
            None => self.plan_next(spec, &mut verdict),
        };
        if !matches!(next, NextRun::End) {
            let (event_name, run_state) = match next {
                NextRun::Step => (log::EventName::AgentStep, RunState::Running),
                NextRun::Retry(_) => (log::EventName::AgentRetry, RunState::Retrying),
                _ => (log::EventName::AgentRetry, RunState::Running),
            };
            self.lane = self
                .write_with_retries(|| finished_run.write_interim_outcome(&verdict, event_name, run_state))?;
            self.last_verdict = None;
            return Ok(next);
        }
        if verdict.state == RunState::NoChange {
            self.check_already_done(spec, &mut verdict);
        }
        self.write_final_outcome(&finished_run, verdict, can_receive, undelivered)
    }

    /// Writes the outcome of a run that no other run follows. `undelivered` is the reason why messages for
    /// its agent were not delivered, if there are any. If the agent can receive messages and one arrives
    /// before the write, another run delivers it, and the result is [`NextRun::Message`].
    fn write_final_outcome(
        &mut self,
        finished_run: &RunClassifier<'_>,
        mut verdict: RunOutcome,
        mut can_receive: bool,
        mut undelivered: Option<String>,
    ) -> Result<NextRun, Error> {
        let (project, lane, spec) = (finished_run.project, finished_run.lane, finished_run.spec);
        loop {
            verdict.detail = append_detail(verdict.detail, undelivered.take());
            self.last_verdict = Some((spec.run_number, verdict.clone()));
            let inbox = Inbox::new(&project.store, &lane.name);
            if let Some(end) = self.write_with_retries(|| {
                finished_run
                    .write_outcome(&verdict, || can_receive && inbox.has_messages_for(spec.conversation))
            })? {
                (self.lane, self.follow_up) = end;
                return Ok(NextRun::End);
            }
            // A message arrived between the check and the write.
            undelivered = self.finish_before_message_run(finished_run, &verdict)?;
            if undelivered.is_none() {
                return Ok(NextRun::Message);
            }
            can_receive = false;
        }
    }

    /// Starts the agent, records its start, watches it to its end, and keeps the snapshot process running.
    fn run_and_watch(&mut self, spec: &RunSpec) -> Result<RunExit, Error> {
        let (project, lane) = (self.project, self.lane.clone());
        let limits = spec.limits;
        let (run_number, process_mark) = (spec.run_number, &self.process_mark);
        let watch = RunWatcher { project, lane: &lane, run_number, spec, limits, process_mark };
        let (has_answered_starter, process_mark, current_lane) =
            (&mut self.has_answered_starter, &self.process_mark, &mut self.lane);
        let last_verdict = &mut self.last_verdict;
        let on_started = |group: u32| {
            *current_lane = record_start(project, &lane, spec.run_number, group, process_mark)?;
            // The messages it delivers are gone from the inbox by now.
            drop(spec.claimed_messages.take());
            *last_verdict = None;
            // The snapshot process started before the run may have exited, as no agent was running yet.
            auto_snapshots::ensure_running(project);
            if !*has_answered_starter {
                reply_to_starter(STARTED_LINE);
                *has_answered_starter = true;
            }
            Ok(())
        };
        auto_snapshots::ensure_running(project);
        let shutdown_signals = &mut self.shutdown_signals;
        self.runtime.block_on(async {
            tokio::select! {
                ended = run_agent(&watch, shutdown_signals, on_started) => ended,
                never = auto_snapshots::keep_running(project) => match never {},
            }
        })
    }

    /// Decides what follows a run from its verdict, and adds the decision to the verdict's detail.
    fn plan_next(&mut self, spec: &RunSpec, verdict: &mut RunOutcome) -> NextRun {
        if !spec.resolves_conflict && self.is_wrap_up_requested() {
            set_stopped_by_wrap_up(verdict);
            return NextRun::End;
        }
        // The results of a read-only run exist only in the context that is full.
        if verdict.class == RunClass::ContextFull && self.lane.is_read_only() {
            return NextRun::End;
        }
        if verdict.class == RunClass::ContextFull && self.retry_state.is_budget_spent {
            verdict.detail = append_detail(verdict.detail.take(), Some(BUDGET_SPENT_REASON.to_owned()));
            return NextRun::End;
        }
        if verdict.class == RunClass::ContextFull {
            let first_run_number = self
                .restart_counter
                .count_context_full_run(spec.run_number, self.project.settings.max_chained_runs);
            let note = if first_run_number.is_some() {
                "it continues in a new conversation"
            } else {
                "it has used all its runs"
            };
            verdict.detail = verdict.detail.take().map(|reason| format!("{reason}; {note}"));
            return first_run_number.map_or(NextRun::End, NextRun::NewConversation);
        }
        self.plan_retry(spec, verdict)
    }

    /// Marks a run without changes as done when its task was already done before.
    fn check_already_done(&mut self, spec: &RunSpec, verdict: &mut RunOutcome) {
        let Ok(lane) = self.lane.clone().into_owned_lane() else { return };
        let check = already_done::check_already_done(
            self.project,
            &lane,
            spec.run_number,
            &mut self.shutdown_signals,
        );
        let found = self.runtime.block_on(check).unwrap_or_else(|e| {
            TaskCompletion::Unproven(Some(format!("cannot tell whether its task was done before: {e}")))
        });
        match found {
            TaskCompletion::AlreadyDone(evidence) => {
                (verdict.state, verdict.was_already_done) = (RunState::Done, true);
                verdict.detail = Some(evidence.to_owned());
            }
            TaskCompletion::Unproven(reason) => verdict.detail = verdict.detail.take().or(reason),
        }
    }

    /// Prepares the run that continues the request of an earlier run in a new conversation. If that fails,
    /// ends the lane as failed and returns `None`.
    fn prepare_new_conversation(&mut self, first_run_number: RunNumber) -> Result<Option<RunSpec>, Error> {
        let path = self.project.store.layout().run_record(&self.lane.name, first_run_number);
        let result = RunRecord::load(&path).map_err(Error::from).and_then(|first_run| {
            prepare_run::prepare_fresh_run(self.project, &self.lane, &first_run, self.retry_state.spent)
        });
        match result {
            Ok(spec) => Ok(Some(spec)),
            Err(e) => {
                self.end_run(RunState::Failed, &format!("it could not continue in a new conversation: {e}"))?;
                Ok(None)
            }
        }
    }

    /// Records the end of the lane's run after an error that stopped the supervisor, and returns that error.
    /// Before the starter has its answer, records nothing.
    fn end_after_error(&mut self, spec: &RunSpec, e: Error) -> Error {
        // The starter still waits, and restores the lane.
        if !self.has_answered_starter {
            return e;
        }
        let reason = describe_with_causes(&e);
        drop(mark_run_not_started(&self.project.store, &self.lane.name, spec.run_number, &reason));
        let last_verdict = self.last_verdict.as_ref();
        let ended = match last_verdict.map(|(run_number, verdict)| (*run_number == spec.run_number, verdict))
        {
            Some((true, verdict)) if spec.resolves_conflict => self.end_run(verdict.state, &reason),
            Some((true, _)) => self.end_with_last_verdict(&format!("cannot record all of that: {reason}")),
            Some((false, _)) => self.end_with_last_verdict(&describe_undelivered(&e)),
            None => self.end_run(RunState::Failed, &reason),
        };
        // Where nothing can be written, the next command finds the lane with a crashed supervisor.
        drop(ended);
        e
    }
}

/// Starts the agent with its launcher, passes its process group to `on_started`, and waits until it exits or
/// has to be stopped. Processes that it left running are stopped too.
///
/// # Errors
/// Fails when no process could be started.
async fn run_agent(
    watch: &RunWatcher<'_>,
    signals: &mut ShutdownSignals,
    on_started: impl FnOnce(u32) -> Result<(), Error>,
) -> Result<RunExit, Error> {
    match watch.spec.launcher {
        Launcher::Pipe | Launcher::OpenStdin | Launcher::Protocol => watch.run(signals, on_started).await,
        Launcher::Window => tmux_client::run(watch, signals, on_started).await,
    }
}

/// Changes the verdict of a run that ended well after a request to wrap up to `stopped`, because its task may
/// be half finished.
fn set_stopped_by_wrap_up(verdict: &mut RunOutcome) {
    if matches!(verdict.class, RunClass::Done | RunClass::ContextFull) {
        (verdict.state, verdict.class) = (RunState::Stopped, RunClass::Stopped);
        verdict.detail = append_detail(verdict.detail.take(), Some("asked to wrap up".to_owned()));
    }
}
