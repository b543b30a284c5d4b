//! Start of a supervisor process for a run of a lane.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use super::Error;
use super::agent_command::{self, AgentCommand, RunOptions};
use super::conversation;
use super::fresh_conversation;
use super::launch_spec::{self, LaunchSpec, PromptSource, new_session_id};
use super::new_run_record::new_run_record;
use super::profile::Permission;
use super::profile_catalog::find_profile;
use super::run_spec::RunSpec;
use super::startup_question;
use super::task_loop;
use crate::event;
use crate::fail_points;
use crate::lane::{self, ClaimedMessages, Inbox, Project, join_message_texts, state_after_run};
use crate::process::{CommandBuilder, ExitOutcome, RUN_CONTEXT_VARS, RUN_MARK_VAR};
use crate::store::records::{AnyLane, LanePurpose, LaneState, RunClass, RunRecord};
use crate::store::{LockGuard, Record, now};

/// Line that a supervisor prints when its agent runs.
pub(super) const STARTED_LINE: &str = "started";

/// Starts the next run of a lane under a supervisor, and returns when the agent runs. `program_path` is
/// git-proq. `lock` is the lane's run lock, which passes to the supervisor without a gap.
///
/// # Errors
/// [`Error::NewLaneAgentNotStarted`] when the agent could not be started; the lane is `failed` then.
/// [`Error::NextRunNotStarted`] when the lane had earlier runs; its state is unchanged then.
pub(crate) fn launch(
    project: &Project,
    lane: &AnyLane,
    lock: LockGuard,
    command: &AgentCommand,
    program_path: &Path,
) -> Result<AnyLane, Error> {
    start_supervisor(project, lane, lock, command, program_path, PromptSource::Task)
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
    program_path: &Path,
    prompt: &str,
) -> Result<AnyLane, Error> {
    start_supervisor(project, lane, lock, command, program_path, PromptSource::Conflict(prompt))
}

/// Starts a run with `prompt` instead of the lane's task, in a new conversation, as [`launch`] does. Without
/// `prompt`, the run gets the task.
///
/// # Errors
/// As [`launch`].
pub(crate) fn launch_with_prompt(
    project: &Project,
    lane: &AnyLane,
    lock: LockGuard,
    command: &AgentCommand,
    program_path: &Path,
    prompt: Option<&str>,
) -> Result<AnyLane, Error> {
    start_supervisor(
        project,
        lane,
        lock,
        command,
        program_path,
        prompt.map_or(PromptSource::Task, PromptSource::Text),
    )
}

/// Starts a run with messages from the lane's inbox, in the conversation that they are for. The messages
/// count as delivered once the agent has started, and wait in the inbox when it cannot be started.
pub(super) fn launch_with_messages(
    project: &Project,
    lane: &AnyLane,
    lock: LockGuard,
    (command, messages): (AgentCommand, &ClaimedMessages),
    program_path: &Path,
) -> Result<AnyLane, Error> {
    let command = command.with_messages(messages.ids());
    start_supervisor(
        project,
        lane,
        lock,
        &command,
        program_path,
        PromptSource::Text(&join_message_texts(messages.texts())),
    )
}

/// Prepares a run with the pending messages of a conversation. The supervisor in this process starts it.
pub(super) fn prepare_message_run(
    project: &Project,
    lane: &AnyLane,
    conversation: u32,
    program_path: &Path,
) -> Result<RunSpec, Error> {
    let mut messages = Inbox::new(project, &lane.name).claim(conversation)?;
    let (command, count) =
        build_message_command(project, lane, conversation, &messages.texts().collect::<Vec<_>>())?;
    messages.messages.truncate(count);
    let command = command.with_messages(messages.ids());
    let spec = prepare_run(
        project,
        lane,
        &command,
        program_path,
        PromptSource::Text(&join_message_texts(messages.texts())),
    )?;
    spec.claimed_messages.set(Some(messages));
    Ok(spec)
}

/// Checks whether the pending messages of a conversation could be sent to its agent.
///
/// # Errors
/// Fails with the reason why they could not.
pub(super) fn check_messages_deliverable(
    project: &Project,
    lane: &AnyLane,
    conversation: u32,
) -> Result<(), Error> {
    let messages = Inbox::new(project, &lane.name).claim(conversation)?;
    build_message_command(project, lane, conversation, &messages.texts().collect::<Vec<_>>()).map(drop)
}

/// Builds the command that sends messages to their conversation. Returns it with the number of messages that
/// fit into one prompt; the others wait for the next turn.
///
/// # Errors
/// Fails when even the first message cannot be sent.
pub(super) fn build_message_command(
    project: &Project,
    lane: &AnyLane,
    conversation: u32,
    texts: &[&str],
) -> Result<(AgentCommand, usize), Error> {
    let no_session = || Error::NoSession { lane: lane.name.clone() };
    let run =
        conversation::last_conversation_run(project, lane, Some(conversation))?.ok_or_else(no_session)?;
    let session = run.summary.session.clone().ok_or_else(no_session)?;
    let mut count = texts.len();
    loop {
        let text = join_message_texts(texts[..count].iter().copied());
        match command_from_run(project, lane.purpose(), &run, &text, Some(session.clone())) {
            Err(Error::InvalidPrompt { .. }) if count > 1 => count -= 1,
            command => return Ok((command?, count)),
        }
    }
}

/// Prepares a retry of `run` with the same prompt. The supervisor in this process starts it. The earlier
/// tries have cost `spent`, in 1e-9 USD.
pub(super) fn prepare_retry(
    project: &Project,
    lane: &AnyLane,
    run: &RunRecord,
    spent: u64,
    program_path: &Path,
) -> Result<RunSpec, Error> {
    let prompt_file = match run.has_prompt_override {
        true => project.store.layout().run_prompt_override(&lane.name, run.attempt),
        false => project.store.layout().task_prompt(&lane.name),
    };
    let text =
        crate::regular_file::read_store_text(&prompt_file).map_err(lane::Error::io("read", &prompt_file))?;
    // A run that resumed a conversation resumes it again; any other starts a new one.
    let command =
        command_from_run(project, lane.purpose(), run, &text, run.session.clone().filter(|_| run.resumed))?;
    let command = command.with_budget_spent(spent);
    prepare_run(
        project,
        lane,
        &command,
        program_path,
        if run.has_prompt_override { PromptSource::Text(&text) } else { PromptSource::Task },
    )
}

/// Prepares a run in a new conversation, with the prompt of `first` and a description of the progress since
/// then. The earlier runs have cost `spent`, in 1e-9 USD.
pub(super) fn prepare_fresh_run(
    project: &Project,
    lane: &AnyLane,
    first: &RunRecord,
    spent: u64,
    program_path: &Path,
) -> Result<RunSpec, Error> {
    let text = fresh_conversation::compose_prompt(project, lane, first, fresh_conversation::TOO_LONG_REASON)?;
    let command = command_from_run(project, lane.purpose(), first, &text, None)?.with_budget_spent(spent);
    prepare_run(project, lane, &command, program_path, PromptSource::Text(&text))
}

pub(super) fn prepare_run(
    project: &Project,
    lane: &AnyLane,
    command: &AgentCommand,
    program_path: &Path,
    prompt_source: PromptSource<'_>,
) -> Result<RunSpec, Error> {
    if lane.works_in_place() {
        lane::continue_in_place_run(project, lane)?;
    }
    let (lane, launch_spec) = prepare_launch(project, lane, command, program_path, prompt_source)?;
    RunSpec::load(project, &lane, lane.attempt, launch_spec.argv, launch_spec.env)
}

/// Builds a command with the options that `run` had.
fn command_from_run(
    project: &Project,
    purpose: Option<LanePurpose>,
    run: &RunRecord,
    prompt: &str,
    resume: Option<String>,
) -> Result<AgentCommand, Error> {
    let options = RunOptions {
        permission: run.permission.as_deref().and_then(Permission::from_name),
        model: run.model.clone(),
        max_turns: run.max_turns,
        resume,
        purpose,
        limits: run.limits,
        agent_command: run.agent_command.iter().map(OsString::from).collect(),
        ..RunOptions::default()
    };
    let command =
        AgentCommand::from_profile(project, &run.agent, prompt, project.repo.command_dir(), &options)?;
    Ok(command
        .with_conversation(run.conversation_number())
        .with_batch_task(run.batch.clone())
        .with_step_run(run.step_run.clone()))
}

pub(super) fn start_supervisor(
    project: &Project,
    old_lane: &AnyLane,
    lock: LockGuard,
    command: &AgentCommand,
    program_path: &Path,
    prompt_source: PromptSource<'_>,
) -> Result<AnyLane, Error> {
    let layout = project.store.layout();
    let log = layout.supervisor_log(&old_lane.name);
    // A request to stop earlier runs does not apply to this one.
    drop(std::fs::remove_file(layout.lane_wrap_up_marker(&old_lane.name)));
    // Held until a failed start is recorded. Without the lock the run would appear to have a dead supervisor.
    let lock_copy = lock.file().try_clone().map_err(lane::Error::io("keep the lock of", &log))?;
    let mark = new_session_id()?;
    let in_place_start = match old_lane.works_in_place() {
        true => Some(lane::start_in_place_run(project, old_lane, old_lane.attempt + 1)?),
        false => None,
    };
    fail_points::hit("launch.begun");
    let (lane, launch_spec) = prepare_launch(project, old_lane, command, program_path, prompt_source)?;
    drop(in_place_start);
    fail_points::hit("launch.prepared");
    let mut start = CommandBuilder::new(program_path, project.repo.command_dir())
        .args(["_supervise", "--lane"])
        .args([lane.name.clone(), "--attempt".to_owned(), lane.attempt.to_string(), "--".to_owned()])
        .args(launch_spec.argv)
        // The supervisor belongs to no other run, even if this process does.
        .without_vars(RUN_CONTEXT_VARS)
        .env(RUN_MARK_VAR, mark)
        .stdin(lock.into_file())
        .with_stderr_file(File::create(&log).ok());
    for (key, value) in &launch_spec.env {
        start = start.env(key, value);
    }
    let failure = wait_for_start(start, &log, "supervisor");
    fail_points::hit("launch.heard");
    let result = match failure {
        None => Ok(project.any_lane(&lane.name)?),
        Some(reason) => Err(record_start_failure(project, old_lane, lane.attempt, reason)?),
    };
    drop(lock_copy);
    result
}

/// Writes the record and the files of the next run, and sets the lane to `starting`.
fn prepare_launch(
    project: &Project,
    lane: &AnyLane,
    command: &AgentCommand,
    program_path: &Path,
    prompt_source: PromptSource<'_>,
) -> Result<(AnyLane, LaunchSpec), Error> {
    if let Some(purpose) = lane.purpose()
        && command.purpose != Some(purpose)
    {
        return Err(Error::InvalidReadOnlyRun {
            purpose: purpose.to_string(),
            reason: "does nothing but look",
        });
    }
    if !prompt_source.resolves_conflict() {
        lane::require_intact_worktree(project, lane)?;
    }
    let lane = &lane::ensure_ports(project, lane)?;
    if lane.is_detached() {
        lane::open_detached_worktree(project, lane)?;
    }
    let attempt = lane.attempt + 1;
    let resolves = prompt_source.resolves_conflict();
    lane::exclude_patterns(project, &command.profile().agent_files)?;
    let launch_spec = launch_spec::prepare(project, lane, command, attempt, program_path, prompt_source)?;
    startup_question::record_expected_question(project, lane, command, attempt)?;
    let has_prompt_override = matches!(prompt_source, PromptSource::Text(_));
    let step_run = command
        .step_run
        .clone()
        .map(|step_run| task_loop::save_state_before_run(project, lane, attempt, step_run))
        .transpose()?;
    let activity_text =
        step_run.as_ref().map(|step_run| task_loop::describe_step_run(step_run, &command.agent));
    let is_review = step_run.as_ref().is_some_and(|step_run| step_run.phase.is_review());
    let run = RunRecord {
        has_prompt_override,
        step_run,
        ..new_run_record(project, lane, command, &launch_spec, (attempt, resolves))?
    };
    run.save(&project.store.layout().run_record(&lane.name, attempt))?;
    let lane = project.update_lane(&lane.name, |record| {
        record.state = LaneState::Starting;
        record.attempt = attempt;
        if resolves {
            record.detail = Some("resolving its conflict".to_owned());
        } else {
            record.detail = activity_text;
            // A reviewer does not become the agent of the lane.
            if !is_review {
                record.agent = Some(command.agent.clone());
            }
        }
    })?;
    Ok((lane, launch_spec))
}

/// Starts a process and waits for its first line of output. Returns none when the line is [`STARTED_LINE`],
/// otherwise the reason of the failure. The reason contains `process_name` and the end of the process's error
/// log.
pub(crate) fn wait_for_start(start: CommandBuilder, log: &Path, process_name: &str) -> Option<String> {
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
                lane::last_output(log)
                    .map_or_else(|| exit_text.clone(), |output| format!("{exit_text}: {output}")),
            )
        }
        message => Some(message.to_owned()),
    }
}

/// Records that run `attempt` could not be started, and returns the error to report. After a failed first run
/// the lane is failed; otherwise it gets the state of `old_lane` back.
fn record_start_failure(
    project: &Project,
    old_lane: &AnyLane,
    attempt: u32,
    reason: String,
) -> Result<Error, Error> {
    // An error here is ignored, because the lane's record decides.
    drop(mark_run_not_started(project, &old_lane.name, attempt, &reason));
    let state = state_after_run(project, &old_lane.name, LaneState::Failed);
    let resolves = state == LaneState::Conflict;
    let first = old_lane.attempt == 0 && !resolves;
    let lane = project.update_lane(&old_lane.name, |record| {
        // The lock is no longer held here, so another run may have started.
        if record.attempt != attempt || !record.state.is_claimed() {
            return;
        }
        if first || resolves {
            record.state = state;
            record.detail = Some(reason.clone());
        } else {
            record.state = old_lane.state;
            record.detail.clone_from(&old_lane.detail);
            record.agent.clone_from(&old_lane.agent);
        }
    })?;
    let name = lane.name.clone();
    if !first && !resolves {
        return Ok(Error::NextRunNotStarted { lane: name, reason });
    }
    project.emit(event::EventName::RunEnded, Some(&lane), format!("lane '{name}': {reason}"));
    Ok(match first {
        true => Error::NewLaneAgentNotStarted { lane: name, reason },
        false => Error::ResolverNotStarted { lane: name, reason },
    })
}

/// Records in a run's record that the run never started, unless it has a process or has ended.
pub(super) fn mark_run_not_started(
    project: &Project,
    lane: &str,
    attempt: u32,
    reason: &str,
) -> Result<(), Error> {
    let path = project.store.layout().run_record(lane, attempt);
    let run = RunRecord::load(&path)?;
    if run.pid.is_some() || run.ended.is_some() {
        return Ok(());
    }
    let (outcome, class) = (Some(LaneState::Failed), Some(RunClass::Failed));
    let detail = Some(format!("it could not be started: {reason}"));
    Ok(RunRecord { ended: Some(now()), outcome, class, detail, ..run }.save(&path)?)
}

/// Refuses an agent that is not installed, before anything is created for it.
pub(crate) fn require_installed(project: &Project, agent: &str, dir: &Path) -> Result<(), Error> {
    agent_command::find_profile_program(&find_profile(&project.layers, agent)?, agent, dir).map(drop)
}
