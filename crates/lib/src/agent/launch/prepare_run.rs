//! Preparation of a run: its command, its record, its files and the lane's state.

use std::ffi::OsString;

use proq_base::money::NanoDollars;
use proq_store::base::record::Record;
use proq_store::base::run_number::RunNumber;
use proq_store::records::lane::{AnyLane, LanePurpose};
use proq_store::records::lane_state::RunState;
use proq_store::records::run::RunRecord;

use super::launch_spec;
use super::launch_spec::{LaunchSpec, PromptSource};
use super::new_run_record::new_run_record;
use super::run_spec::RunSpec;
use crate::agent::Error;
use crate::agent::command::agent_command::{AgentCommand, RunOptions};
use crate::agent::command::{conversation, fresh_conversation, startup_question};
use crate::agent::profiles::profile::permission::Permission;
use crate::agent::task_loop::{active_task, step_prompt};
use crate::lane;
use crate::lane::Project;
use crate::lane::context::broken_lane;
use crate::lane::messages::inbox::{Inbox, join_texts as join_message_texts};
use crate::lane::worktree::{detached_worktree, lanes_folder, ports};
use crate::session::in_place;

/// Prepares a run with the pending messages of a conversation. The supervisor in this process starts it.
pub(crate) fn prepare_message_run(
    project: &Project,
    lane: &AnyLane,
    conversation: RunNumber,
) -> Result<RunSpec, Error> {
    let mut messages = Inbox::new(&project.store, &lane.name).claim(conversation)?;
    let (command, count) =
        build_message_command(project, lane, conversation, &messages.texts().collect::<Vec<_>>())?;
    messages.messages.truncate(count);
    let command = command.with_messages(messages.ids());
    let spec =
        prepare_run(project, lane, &command, PromptSource::Text(&join_message_texts(messages.texts())))?;
    spec.claimed_messages.set(Some(messages));
    Ok(spec)
}

/// Checks whether the pending messages of a conversation could be sent to its agent.
///
/// # Errors
/// Fails with the reason why they could not.
pub(crate) fn check_messages_deliverable(
    project: &Project,
    lane: &AnyLane,
    conversation: RunNumber,
) -> Result<(), Error> {
    let messages = Inbox::new(&project.store, &lane.name).claim(conversation)?;
    build_message_command(project, lane, conversation, &messages.texts().collect::<Vec<_>>()).map(drop)
}

/// Builds the command that sends messages to their conversation. Returns it with the number of messages that
/// fit into one prompt; the others wait for the next turn.
///
/// # Errors
/// Fails when even the first message cannot be sent.
pub(crate) fn build_message_command(
    project: &Project,
    lane: &AnyLane,
    conversation: RunNumber,
    texts: &[&str],
) -> Result<(AgentCommand, usize), Error> {
    let no_session = || Error::NoSession {
        lane: lane.name.clone(),
        message: join_message_texts(texts.iter().copied()),
        is_running: false,
    };
    let run = conversation::last_conversation_run(&project.store, lane, Some(conversation))?
        .ok_or_else(no_session)?;
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
/// tries have cost `spent`.
pub(crate) fn prepare_retry(
    project: &Project,
    lane: &AnyLane,
    run: &RunRecord,
    spent: NanoDollars,
) -> Result<RunSpec, Error> {
    let prompt_file = match run.has_prompt_override {
        true => project.store.layout().run_prompt_override(&lane.name, run.number),
        false => project.store.layout().task_prompt(&lane.name),
    };
    let text = proq_base::regular_file::read_store_text(&prompt_file)
        .map_err(lane::Error::io("read", &prompt_file))?;
    // A run that resumed a conversation resumes it again; any other starts a new one.
    let command = command_from_run(
        project,
        lane.purpose(),
        run,
        &text,
        run.chosen_session.clone().filter(|_| run.resumes_session),
    )?;
    let command = command.with_budget_spent(spent);
    prepare_run(
        project,
        lane,
        &command,
        if run.has_prompt_override { PromptSource::Text(&text) } else { PromptSource::Task },
    )
}

/// Prepares a run in a new conversation, with the prompt of `first` and a description of the progress since
/// then. The earlier runs have cost `spent`.
pub(crate) fn prepare_fresh_run(
    project: &Project,
    lane: &AnyLane,
    first: &RunRecord,
    spent: NanoDollars,
) -> Result<RunSpec, Error> {
    let text =
        fresh_conversation::compose_fresh_prompt(project, lane, first, fresh_conversation::TOO_LONG_REASON)?;
    let command = command_from_run(project, lane.purpose(), first, &text, None)?.with_budget_spent(spent);
    prepare_run(project, lane, &command, PromptSource::Text(&text))
}

/// Prepares the lane's next run with `command` in this supervisor: writes its record and files, and sets the
/// lane to `starting`.
pub(crate) fn prepare_run(
    project: &Project,
    lane: &AnyLane,
    command: &AgentCommand,
    prompt_source: PromptSource<'_>,
) -> Result<RunSpec, Error> {
    if lane.works_in_place() {
        in_place::carry_baseline_to_next_run(&project.store, lane)?;
    }
    let (lane, launch_spec) = prepare_launch(project, lane, command, prompt_source)?;
    RunSpec::load(project, &lane, lane.last_run, launch_spec.argv, launch_spec.env)
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
        allow: run.allow.clone(),
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

/// Writes the record and the files of the next run, and sets the lane to `starting`.
pub(crate) fn prepare_launch(
    project: &Project,
    lane: &AnyLane,
    command: &AgentCommand,
    prompt_source: PromptSource<'_>,
) -> Result<(AnyLane, LaunchSpec), Error> {
    if let Some(purpose) = lane.purpose()
        && command.purpose != Some(purpose)
    {
        return Err(Error::InvalidReadOnlyRun {
            purpose: purpose.to_string(),
            reason: "allows only read-only runs",
        });
    }
    if !prompt_source.resolves_conflict() {
        broken_lane::require_intact_worktree(project, lane)?;
    }
    let lane = &ports::ensure_ports(project, lane)?;
    if lane.is_detached() {
        detached_worktree::open_detached_worktree(project, lane)?;
    }
    let run_number = lane.last_run.next();
    let resolves = prompt_source.resolves_conflict();
    lanes_folder::exclude_patterns(&project.repo, &command.profile().agent_files)?;
    let launch_spec = launch_spec::prepare_launch_spec(project, lane, command, run_number, prompt_source)?;
    startup_question::record_expected_activity(project, lane, command, run_number)?;
    let has_prompt_override = matches!(prompt_source, PromptSource::Text(_));
    let step_run = command
        .step_run
        .clone()
        .map(|step_run| active_task::save_state_before_run(project, lane, run_number, step_run))
        .transpose()?;
    let activity_text =
        step_run.as_ref().map(|step_run| step_prompt::describe_step_run(step_run, &command.agent));
    let is_review = step_run.as_ref().is_some_and(|step_run| step_run.phase.is_review());
    let run = RunRecord {
        has_prompt_override,
        step_run,
        ..new_run_record(&project.repo, lane, command, &launch_spec, run_number, resolves)?
    };
    run.save(&project.store.layout().run_record(&lane.name, run_number))?;
    let lane = project.update_lane(&lane.name, |record| {
        record.set_run(RunState::Starting);
        record.last_run = run_number;
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
