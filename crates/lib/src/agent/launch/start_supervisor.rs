//! Start of a supervisor process for a run of a lane.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use proq_base::config::layers::Layers;
use proq_base::fail_points;
use proq_base::lane_name::LaneName;
use proq_base::process::command_builder::CommandBuilder;
use proq_base::process::limited_process::ExitOutcome;
use proq_base::process::strays::{RUN_CONTEXT_VARS, RUN_MARK_VAR};
use proq_base::run_class::RunClass;
use proq_store::Store;
use proq_store::base::clock::now;
use proq_store::base::record::Record;
use proq_store::base::run_number::RunNumber;
use proq_store::locks::lock::LockGuard;
use proq_store::records::lane::AnyLane;
use proq_store::records::lane_state::{LandingState, RunState};
use proq_store::records::run::RunRecord;

use super::launch_spec::{PromptSource, new_session_id};
use super::prepare_run::prepare_launch;
use super::prompt_marker::MarkedArgv;
use crate::agent::Error;
use crate::agent::command::agent_command;
use crate::agent::command::agent_command::AgentCommand;
use crate::agent::profiles::profile_catalog::find_profile;
use crate::event::log;
use crate::lane;
use crate::lane::Project;
use crate::lane::messages::inbox::{ClaimedMessages, join_texts as join_message_texts};
use crate::lane::state::crash_reason;
use crate::lane::state::lane_state::status_after_run;
use crate::session::in_place;

/// Line that a supervisor prints when its agent runs.
pub(crate) const STARTED_LINE: &str = "started";

/// Starts the next run of a lane under a supervisor, and returns when the agent runs. `lock` is the lane's
/// run lock, which passes to the supervisor without a gap.
///
/// # Errors
/// [`Error::NewLaneAgentNotStarted`] when the agent could not be started; the lane is `failed` then.
/// [`Error::NextRunNotStarted`] when the lane had earlier runs; its state is unchanged then.
pub fn launch(
    project: &Project,
    lane: &AnyLane,
    lock: LockGuard,
    command: &AgentCommand,
) -> Result<AnyLane, Error> {
    start_supervisor(project, lane, lock, command, PromptSource::Task)
}

/// Starts a run that resolves the lane's conflict in the resolve worktree, with `prompt` instead of the
/// lane's task, as [`launch`] does.
///
/// # Errors
/// [`Error::ResolverNotStarted`] when the agent could not be started; the lane stays in `conflict` then.
pub(crate) fn launch_to_resolve(
    project: &Project,
    lane: &AnyLane,
    lock: LockGuard,
    command: &AgentCommand,
    prompt: &str,
) -> Result<AnyLane, Error> {
    start_supervisor(project, lane, lock, command, PromptSource::ConflictPrompt(prompt))
}

/// Starts a run with `prompt` instead of the lane's task, in a new conversation, as [`launch`] does. Without
/// `prompt`, the run gets the task.
///
/// # Errors
/// As [`launch`].
pub fn launch_with_prompt(
    project: &Project,
    lane: &AnyLane,
    lock: LockGuard,
    command: &AgentCommand,
    prompt: Option<&str>,
) -> Result<AnyLane, Error> {
    start_supervisor(project, lane, lock, command, prompt.map_or(PromptSource::Task, PromptSource::Text))
}

/// Starts a run with messages from the lane's inbox, in the conversation that they are for. The messages
/// count as delivered once the agent has started, and wait in the inbox when it cannot be started.
pub(crate) fn launch_with_messages(
    project: &Project,
    lane: &AnyLane,
    lock: LockGuard,
    command: AgentCommand,
    messages: &ClaimedMessages,
) -> Result<AnyLane, Error> {
    let command = command.with_messages(messages.ids());
    start_supervisor(project, lane, lock, &command, PromptSource::Text(&join_message_texts(messages.texts())))
}

/// Starts a supervisor for the lane's next run, and returns the lane once the agent has started.
pub fn start_supervisor(
    project: &Project,
    old_lane: &AnyLane,
    lock: LockGuard,
    command: &AgentCommand,
    prompt_source: PromptSource<'_>,
) -> Result<AnyLane, Error> {
    let layout = project.store.layout();
    let log = layout.supervisor_log(&old_lane.name);
    // A request to stop earlier runs does not apply to this one.
    drop(std::fs::remove_file(layout.lane_wrap_up_marker(&old_lane.name)));
    // Held until a failed start is recorded. Without the lock the run would appear to have a dead supervisor.
    let lock_copy = lock.file().try_clone().map_err(lane::Error::io("keep the lock of", &log))?;
    let mark = new_session_id();
    let in_place_start = match old_lane.works_in_place() {
        true => Some(in_place::start_in_place_run(project, old_lane, old_lane.last_run.next())?),
        false => None,
    };
    fail_points::hit("launch.begun");
    let (lane, launch_spec) = prepare_launch(project, old_lane, command, prompt_source)?;
    drop(in_place_start);
    fail_points::hit("launch.prepared");
    let mut start = CommandBuilder::new(project.git_proq_path()?, project.repo.command_dir())
        .args(["_supervise", "--lane"])
        .args([lane.name.to_string(), "--attempt".to_owned(), lane.last_run.to_string()])
        .args(supervisor_args(launch_spec.argv, launch_spec.marked_argv))
        // The supervisor belongs to no other run, even if this process does.
        .without_vars(RUN_CONTEXT_VARS)
        .env(RUN_MARK_VAR, mark)
        .stdin(lock.into_file())
        .with_stderr_file(File::create(&log).ok());
    for (key, value) in &launch_spec.env {
        start = start.env(key, value);
    }
    let failure = spawn_and_await_start(start, &log, "supervisor");
    fail_points::hit("launch.heard");
    let result = match failure {
        None => Ok(project.any_lane(&lane.name)?),
        Some(reason) => Err(record_start_failure(project, old_lane, lane.last_run, reason)?),
    };
    drop(lock_copy);
    result
}

/// Returns the arguments by which a supervisor gets the agent's command line. It reads a prompt among them from
/// the run's file.
fn supervisor_args(argv: Vec<OsString>, marked_argv: Option<MarkedArgv>) -> Vec<OsString> {
    let (mut args, argv) = match marked_argv {
        Some(MarkedArgv { marker, argv }) => (vec!["--prompt-marker".into(), marker.into()], argv),
        None => (Vec::new(), argv),
    };
    args.push("--".into());
    args.extend(argv);
    args
}

/// Starts a process and waits for its first line of output. Returns none when the line is `STARTED_LINE`,
/// otherwise the reason of the failure. The reason contains `process_name` and the end of the process's error
/// log.
pub fn spawn_and_await_start(start: CommandBuilder, log: &Path, process_name: &str) -> Option<String> {
    let mut child = match start.spawn_detached_piped() {
        Ok(child) => child,
        Err(e) => return Some(e.to_string()),
    };
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        drop(BufReader::new(stdout).read_line(&mut line));
    }
    match line.trim() {
        STARTED_LINE => None,
        // An empty line means that the process has exited, because its output ends with it.
        "" => {
            let exit_text = child.wait().map(|status| {
                format!("its {process_name} ended early, with {}", ExitOutcome::from_status(status))
            });
            let exit_text = exit_text.unwrap_or_else(|e| format!("its {process_name} ended early: {e}"));
            Some(
                crash_reason::last_output(log)
                    .map_or_else(|| exit_text.clone(), |output| format!("{exit_text}: {output}")),
            )
        }
        message => Some(message.to_owned()),
    }
}

/// Records that a run could not be started, and returns the error to report. After a failed first run the
/// lane is failed; otherwise it gets the state of `old_lane` back.
fn record_start_failure(
    project: &Project,
    old_lane: &AnyLane,
    run_number: RunNumber,
    reason: String,
) -> Result<Error, Error> {
    // An error here is ignored, because the lane's record decides.
    drop(mark_run_not_started(&project.store, &old_lane.name, run_number, &reason));
    let status = status_after_run(&project.store, &old_lane.name, RunState::Failed);
    let resolves = status.landing == LandingState::Conflict;
    let first = old_lane.last_run == RunNumber::NONE && !resolves;
    let lane = project.update_lane(&old_lane.name, |record| {
        // The lock is no longer held here, so another run may have started.
        if record.last_run != run_number || !record.state().is_claimed() {
            return;
        }
        if first || resolves {
            record.status = status;
            record.detail = Some(reason.clone());
        } else {
            record.status = old_lane.status;
            record.detail.clone_from(&old_lane.detail);
            record.agent.clone_from(&old_lane.agent);
        }
    })?;
    let name = lane.name.clone();
    if !first && !resolves {
        return Ok(Error::NextRunNotStarted { lane: name, reason });
    }
    project.emit(log::EventName::RunEnded, Some(&lane), format!("lane '{name}': {reason}"));
    Ok(match first {
        true => Error::NewLaneAgentNotStarted { lane: name, reason },
        false => Error::ResolverNotStarted { lane: name, reason },
    })
}

/// Records in a run's record that the run never started, unless it has a process or has ended.
pub(crate) fn mark_run_not_started(
    store: &Store,
    lane: &LaneName,
    run_number: RunNumber,
    reason: &str,
) -> Result<(), Error> {
    let path = store.layout().run_record(lane, run_number);
    let run = RunRecord::load(&path)?;
    if run.pid.is_some() || run.ended.is_some() {
        return Ok(());
    }
    let (outcome, class) = (Some(RunState::Failed), Some(RunClass::Failed));
    let detail = Some(format!("cannot start it: {reason}"));
    Ok(RunRecord { ended: Some(now()), outcome, class, detail, ..run }.save(&path)?)
}

/// Refuses an agent that is not installed, before anything is created for it.
pub fn require_installed(layers: &Layers, agent: &str, dir: &Path) -> Result<(), Error> {
    agent_command::find_profile_program(layers, &find_profile(layers, agent)?, agent, dir).map(drop)
}
