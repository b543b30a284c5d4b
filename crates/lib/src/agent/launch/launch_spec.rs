//! Launch specification of an agent run: its prompt, its files, its environment variables and its argument
//! vector.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use proq_base::diagnostics::Listener;
use proq_store::base::atomic::{create_private_dir, write as write_atomically};
use proq_store::base::run_number::RunNumber;
use proq_store::paths::layout::Layout;
use proq_store::records::lane::AnyLane;
use proq_store::records::ports::Ports;

use super::prompt_marker::MarkedArgv;
use super::run_spec::work_dir_and_prompt_file;
use crate::agent::Error;
use crate::agent::command::agent_command::AgentCommand;
use crate::agent::command::prompt::{RunPrompt, build_prompt};
use crate::agent::command::{conversation, fresh_conversation, startup_question};
use crate::agent::hook_events::stop_gate;
use crate::agent::profiles::agent_env;
use crate::agent::profiles::agent_env::EnvVar;
use crate::agent::profiles::profile::PROFILE_FILES;
use crate::agent::profiles::template::PlaceholderValues;
use crate::lane::Project;
use crate::lane::worktree::set_up::env;

/// Source of a run's prompt.
#[derive(Debug, Clone, Copy)]
pub enum PromptSource<'a> {
    /// The lane's task. The run works in the lane's worktree.
    Task,
    /// This text, which starts or continues a conversation. The run works in the lane's worktree.
    Text(&'a str),
    /// This prompt for the lane's conflict. The run works in the resolve worktree.
    ConflictPrompt(&'a str),
}

impl PromptSource<'_> {
    /// Returns whether the run resolves the lane's conflict.
    pub fn resolves_conflict(self) -> bool {
        matches!(self, PromptSource::ConflictPrompt(_))
    }
}

/// Everything one agent run is started with: argument vector, environment and session id.
#[derive(Debug)]
pub struct LaunchSpec {
    /// Argument vector, program first.
    pub argv: Vec<OsString>,
    /// The argument vector without the prompt; none if the prompt is no argument.
    pub marked_argv: Option<MarkedArgv>,
    /// Environment variables.
    pub env: Vec<(String, OsString)>,
    /// Session id, if it is known before the start.
    pub session: Option<String>,
}

/// Writes the prompt and the files of a run, and expands its command line.
pub fn prepare_launch_spec(
    project: &Project,
    lane: &AnyLane,
    command: &AgentCommand,
    run_number: RunNumber,
    prompt_source: PromptSource<'_>,
) -> Result<LaunchSpec, Error> {
    let layout = project.store.layout();
    let (dir, prompt_file) =
        work_dir_and_prompt_file(project, lane, run_number, prompt_source.resolves_conflict());
    let checks = stop_gate::lane_checks(project, lane)?;
    let run_prompt = compose_run_prompt(project, lane, command, run_number, &checks, prompt_source)?;
    write_atomically(&prompt_file, run_prompt.prompt.as_bytes())?;
    let run_dir = layout.run_dir(&lane.name, run_number);
    let records_dir = layout.agent_data_dir(&lane.name);
    create_private_dir(&run_dir)?;
    create_private_dir(&records_dir)?;
    write_restart_prompt(project, lane, command, run_number, &checks, prompt_source)?;
    let session = match &command.resume {
        Some(session) => Some(session.clone()),
        None if command.profile().capabilities.session_id_settable => Some(new_session_id()),
        None => None,
    };
    let hook_timeout = stop_gate::stop_hook_timeout(&project.settings, &checks).as_secs();
    let mut values = command.clone().with_checks(checks).placeholder_values();
    if let Some(rules) = &run_prompt.rules {
        let rules_file = layout.run_rules(&lane.name, run_number);
        write_atomically(&rules_file, rules.as_bytes())?;
        values.set("system_prompt", rules);
        values.set("system_prompt_file", rules_file);
    }
    values.set("prompt", &run_prompt.prompt);
    values.set("prompt_file", prompt_file);
    values.set_optional(
        "trusted_dir",
        startup_question::dir_to_trust_for_run(&project.repo, command.profile(), &dir),
    );
    values.set("common_dir", project.repo.common_dir());
    values.set("git_dir", project.repo.worktree_git_dir(&dir)?);
    values.set("lane", lane.name.as_str());
    values.set("lane_dir", dir);
    values.set("attempt", run_number.to_string());
    values.set("exe", project.git_proq_path()?);
    values.set("hook_timeout", hook_timeout.to_string());
    values.set("hook_timeout_ms", (hook_timeout * 1000).to_string());
    values.set("usage_file", Layout::run_usage_file(&run_dir));
    values.set("records_dir", records_dir);
    values.set("run_dir", &run_dir);
    values.set_optional("session", session.as_ref());
    let file_env = write_profile_files(&project.listener, command, &run_dir, &mut values)?;
    let mut env = profile_env(command, &values, file_env);
    env.extend(run_env(project, lane, command, run_number, prompt_source)?);
    let (argv, marker) = (command.argv(&values), new_session_id());
    values.set("prompt", &marker);
    let marked_argv = MarkedArgv::new(&argv, command.argv(&values), marker, &run_prompt.prompt);
    Ok(LaunchSpec { argv, marked_argv, env, session })
}

/// Returns the environment variables of the agent's profile, with those for a window if the run has one.
fn profile_env(command: &AgentCommand, values: &PlaceholderValues, file_env: Vec<EnvVar>) -> Vec<EnvVar> {
    let mut env = agent_env::profile_env(command.profile(), command.permission, values);
    env.extend(file_env);
    if command.in_window {
        env.extend(agent_env::window_env(command.profile(), values));
    }
    env
}

/// Returns the environment variables that describe the run, the lane, its ports and the batch task to an
/// agent.
fn run_env(
    project: &Project,
    lane: &AnyLane,
    command: &AgentCommand,
    run_number: RunNumber,
    prompt_source: PromptSource<'_>,
) -> Result<Vec<EnvVar>, Error> {
    let mut env: Vec<EnvVar> = vec![
        ("PROQ_LANE".to_owned(), lane.name.as_str().into()),
        ("PROQ_ATTEMPT".to_owned(), run_number.to_string().into()),
        ("PROQ_PROGRAM".to_owned(), project.git_proq_path()?.into()),
        ("PROQ_TASK_FILE".to_owned(), task_file(project, lane, run_number, prompt_source).into()),
    ];
    env.extend(batch_task_env(command).into_iter().chain(port_env(project, lane)));
    let wrap_up_marker = project.store.layout().run_wrap_up_marker(&lane.name, run_number);
    env.push(("PROQ_WRAP_UP".to_owned(), wrap_up_marker.into()));
    Ok(env)
}

/// Returns the environment variables with the lane's ports, and with the file that lists them.
fn port_env(project: &Project, lane: &AnyLane) -> Vec<(String, OsString)> {
    let env_file_variable =
        env::refresh_env_file(project, lane).map(|file| ("PROQ_ENV_FILE".to_owned(), file.into()));
    let variables = lane.ports.into_iter().flat_map(Ports::variables);
    env_file_variable
        .into_iter()
        .chain(variables.map(|(name, value)| (name.to_owned(), value.into())))
        .collect()
}

/// Returns the file with the task of a run.
fn task_file(
    project: &Project,
    lane: &AnyLane,
    run_number: RunNumber,
    prompt_source: PromptSource<'_>,
) -> PathBuf {
    match prompt_source.resolves_conflict() {
        true => work_dir_and_prompt_file(project, lane, run_number, true).1,
        false => project.store.layout().task_prompt(&lane.name),
    }
}

/// Returns the environment variables with the batch task of a run.
fn batch_task_env(command: &AgentCommand) -> Vec<(String, OsString)> {
    let Some(run_task) = &command.batch_task else { return Vec::new() };
    vec![
        ("PROQ_BATCH".to_owned(), run_task.batch.as_str().into()),
        ("PROQ_TASK".to_owned(), run_task.task.clone().into()),
        ("PROQ_TASK_ATTEMPT".to_owned(), run_task.attempt.to_string().into()),
    ]
}

/// Composes the prompt of a run. A text that replaces the lane's task is also saved unchanged.
fn compose_run_prompt(
    project: &Project,
    lane: &AnyLane,
    command: &AgentCommand,
    run_number: RunNumber,
    checks: &[String],
    prompt_source: PromptSource<'_>,
) -> Result<RunPrompt, Error> {
    match prompt_source {
        PromptSource::ConflictPrompt(prompt) => Ok(RunPrompt { rules: None, prompt: prompt.to_owned() }),
        PromptSource::Task => build_prompt(project, lane, command, checks, None),
        PromptSource::Text(text) => {
            let file = project.store.layout().run_prompt_override(&lane.name, run_number);
            write_atomically(&file, text.as_bytes())?;
            build_prompt(project, lane, command, checks, Some(text))
        }
    }
}

/// Writes the prompt that replaces the usual one when an agent cannot resume its conversation. Does so only
/// for a run that resumes a conversation by the Agent Client Protocol.
fn write_restart_prompt(
    project: &Project,
    lane: &AnyLane,
    command: &AgentCommand,
    run_number: RunNumber,
    checks: &[String],
    prompt_source: PromptSource<'_>,
) -> Result<(), Error> {
    if let (Some(_), true, PromptSource::Text(text)) =
        (&command.resume, command.uses_protocol(), prompt_source)
    {
        let restart_prompt_file = project.store.layout().run_restart_prompt(&lane.name, run_number);
        write_atomically(
            &restart_prompt_file,
            compose_restart_prompt(project, lane, command, checks, text)?.as_bytes(),
        )?;
    }
    Ok(())
}

/// Composes the prompt for an agent that cannot resume its conversation: the history of the conversation, and
/// `text`.
fn compose_restart_prompt(
    project: &Project,
    lane: &AnyLane,
    command: &AgentCommand,
    checks: &[String],
    text: &str,
) -> Result<String, Error> {
    let history = match conversation::last_conversation_run(&project.store, lane, command.conversation)? {
        Some(run) => {
            let first = fresh_conversation::first_run_of_conversation(&project.store, lane, run)?;
            fresh_conversation::compose_fresh_prompt(
                project,
                lane,
                &first,
                fresh_conversation::NOT_RESUMABLE_REASON,
            )? + "\n# Your next task\n\n"
        }
        None => String::new(),
    };
    Ok(build_prompt(project, lane, &command.without_session(), checks, Some(&(history + text)))?.prompt)
}

/// Writes the profile's files for a run. A file that lacks a value is left out, with the options that name
/// it. Returns the environment variables that name files.
fn write_profile_files(
    listener: &Listener,
    command: &AgentCommand,
    run_dir: &Path,
    values: &mut PlaceholderValues,
) -> Result<Vec<EnvVar>, Error> {
    let profile = command.profile();
    let mut env = Vec::new();
    for (name, file_name) in PROFILE_FILES {
        let Some(template) = profile.files.get(name) else { continue };
        let Some(text) = values.expand(OsStr::new(template)) else { continue };
        let text = match agent_env::merged_file_text(&profile.env_file, name, text) {
            Err(e @ Error::CannotMergeUserFile { .. }) => {
                let consequence = "its own file is used, so the tools and hooks of git-proq are missing";
                listener.warn(format!("{}: {e}; {consequence}", command.display_name()));
                continue;
            }
            text => text?,
        };
        let path = Layout::run_profile_file(run_dir, file_name);
        write_atomically(&path, text.as_encoded_bytes())?;
        env.extend(agent_env::file_env(&profile.env_file, name, &path));
        if name == "plugin" {
            values.set("plugin_url", file_url(&path));
        }
        values.set(name, path);
    }
    Ok(env)
}

/// Returns a path as a `file:` URL.
fn file_url(path: &Path) -> String {
    let is_unreserved = |b: &u8| b.is_ascii_alphanumeric() || b"-._~/".contains(b);
    let bytes = path.as_os_str().as_encoded_bytes().iter();
    let text: String = bytes
        .map(|b| if is_unreserved(b) { char::from(*b).to_string() } else { format!("%{b:02X}") })
        .collect();
    format!("file://{text}")
}

/// Returns a random session id in the form that agents accept, a version 4 UUID. It is unique across
/// machines, so it also serves as the process mark of a run.
pub fn new_session_id() -> String {
    uuid::Uuid::new_v4().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_ids_are_distinct_uuids() {
        let (a, b) = (new_session_id(), new_session_id());
        assert_ne!(a, b);
        assert_eq!(a.len(), 36);
        assert_eq!(&a[14..15], "4");
        assert!("89ab".contains(&a[19..20]));
    }

    #[test]
    fn escapes_special_characters_in_file_urls() {
        assert_eq!(file_url(Path::new("/a b/#é.ts")), "file:///a%20b/%23%C3%A9.ts");
    }
}
