//! Command to start in a lane: an agent with its profile, or a command line of the user.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proq_base::config::layers::Layers;
use proq_base::config::settings::Settings;
use proq_base::explain::shell_quote;
use proq_base::money::NanoDollars;
use proq_base::process::find_executable;
use proq_store::base::run_number::RunNumber;
use proq_store::records::batched::RunTask;
use proq_store::records::lane::LanePurpose;
use proq_store::records::run::RunLimits;
use proq_store::records::step_run::StepRun;
use proq_stream::reader::Dialect;

use super::allowed_commands::AllowedCommands;
use crate::agent::Error;
use crate::agent::profiles::allow_pattern::AllowPattern;
use crate::agent::profiles::profile::permission::Permission;
use crate::agent::profiles::profile::{Profile, PromptDelivery, StrayPolicy, refuse_nul_byte};
use crate::agent::profiles::profile_catalog::{find_profile, similar_agent};
use crate::agent::profiles::template::PlaceholderValues;
use crate::agent::tmux::tmux_window;
use crate::lane::Project;

/// Options of a run that the user or the caller gave explicitly.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// Permission level of the agent.
    pub permission: Option<Permission>,
    /// Model that the agent is started with; none for that of the profile, else that of the settings.
    pub model: Option<String>,
    /// Maximum number of turns.
    pub max_turns: Option<u32>,
    /// Session to resume, by the agent's own id of it.
    pub resume: Option<String>,
    /// Purpose of a read-only run, such as a review; none for a run that works at a task.
    pub purpose: Option<LanePurpose>,
    /// Limits of time, stall and budget.
    pub limits: RunLimits,
    /// Whether the agent starts in a tmux window, which a user operates.
    pub in_window: bool,
    /// Command line for an agent whose profile has no command.
    pub agent_command: Vec<OsString>,
    /// Patterns of commands that the agent may run without a request, beside those of the settings.
    pub allow: Vec<String>,
}

impl RunOptions {
    /// Returns whether no permission, model, number of turns or limit is given. Other options do not count.
    pub fn has_no_agent_options(&self) -> bool {
        self.permission.is_none()
            && self.model.is_none()
            && self.max_turns.is_none()
            && self.limits == RunLimits::default()
            && self.allow.is_empty()
    }
}

/// Command that starts an agent or a user's program in a lane, with unexpanded placeholders and the options
/// of the run.
#[derive(Debug, Clone)]
pub struct AgentCommand {
    /// Name of the profile; `command` for a command line of the user.
    pub agent: String,
    /// Permission level of the agent.
    pub permission: Permission,
    /// Model that the agent is started with.
    pub model: Option<String>,
    /// Session to resume.
    pub resume: Option<String>,
    /// Purpose of a read-only run, such as a review; none for a run that works at a task.
    pub purpose: Option<LanePurpose>,
    /// Limits of time, stall and budget.
    pub limits: RunLimits,
    /// Whether the agent runs in a tmux window, which a user operates.
    pub in_window: bool,
    /// Maximum number of turns of the agent in one run; none for no limit.
    pub max_turns: Option<u32>,
    /// Conversation that the run continues or restarts, by the number of its first run.
    pub conversation: Option<RunNumber>,
    /// Ids of the lane's inbox messages that are part of the prompt.
    pub message_ids: Vec<String>,
    /// Part of the budget that earlier tries used.
    pub budget_spent_before: NanoDollars,
    /// Batch task that the run works at.
    pub batch_task: Option<RunTask>,
    /// Step of a task folder that the run executes.
    pub step_run: Option<StepRun>,
    /// Checks of the lane, which the agent's permission rules may name.
    pub(super) checks: Vec<String>,
    /// Commands that the agent may run without a request.
    pub(super) allowed: AllowedCommands,
    program: PathBuf,
    profile: Profile,
    /// Arguments of the user's command line, instead of the profile's arguments.
    user_args: Option<Vec<OsString>>,
}

impl AgentCommand {
    /// Creates the command of an agent by its profile's name. The prompt is passed in the way that the
    /// profile defines. The settings supply values that `options` does not give.
    ///
    /// # Errors
    /// Fails when the program is not found, the prompt cannot be passed, or the agent does not support an
    /// option.
    pub fn from_profile(
        project: &Project,
        agent: &str,
        prompt: &str,
        program_base_dir: &Path,
        options: &RunOptions,
    ) -> Result<AgentCommand, Error> {
        let settings = &project.settings;
        let permission = effective_permission(settings, options)?;
        let profile = find_profile(&project.layers, agent)?;
        let (program, user_args) = match options.agent_command.split_first() {
            None => (find_profile_program(&project.layers, &profile, agent, program_base_dir)?, None),
            Some((program, args)) if profile.needs_command() => {
                (find_program(program, program_base_dir)?, Some(args.to_vec()))
            }
            Some(_) => return Err(Error::UnexpectedCommand { agent: agent.to_owned() }),
        };
        match options.in_window {
            true => tmux_window::check_can_open(&profile, agent, prompt)?,
            false => profile.check_prompt(prompt)?,
        }
        if permission == Permission::Read && profile.permission.read.is_none() {
            return Err(Error::NoReadPermission { agent: agent.to_owned() });
        }
        let unsupported = |flag| Err(Error::UnsupportedOption { agent: agent.to_owned(), flag });
        if options.model.is_some() && !profile.has_option("model") {
            return unsupported("--model");
        }
        if options.max_turns.is_some() && !profile.has_option("max_turns") {
            return unsupported("--max-turns");
        }
        if options.resume.is_some() && !profile.can_resume() {
            return Err(Error::ResumeUnsupported { agent: agent.to_owned() });
        }
        let allowed = AllowedCommands::collect(project, &profile, agent, permission, &options.allow)?;
        let model = options.model.as_ref().or(profile.model.as_ref()).or(settings.model.as_ref());
        let max_turns = options.max_turns.or(Some(settings.max_turns)).filter(|n| *n > 0);
        Ok(AgentCommand {
            agent: agent.to_owned(),
            permission,
            model: model.filter(|_| profile.has_option("model")).cloned(),
            resume: options.resume.clone(),
            purpose: options.purpose,
            limits: effective_limits(settings, options),
            in_window: options.in_window,
            // A default limit that the agent does not support is dropped. Otherwise the run's record would
            // request it for the next run.
            max_turns: max_turns.filter(|_| profile.has_option("max_turns")),
            conversation: None,
            message_ids: Vec::new(),
            budget_spent_before: NanoDollars::ZERO,
            batch_task: None,
            step_run: None,
            checks: Vec::new(),
            allowed,
            program,
            profile,
            user_args,
        })
    }

    /// Creates the command of a user's command line. `{prompt}` and `{prompt_file}` in its arguments are
    /// expanded. Without them the prompt is only in the file that `PROQ_TASK_FILE` names.
    pub fn from_user_command(
        settings: &Settings,
        argv: &[OsString],
        prompt: &str,
        program_base_dir: &Path,
        options: &RunOptions,
    ) -> Result<AgentCommand, Error> {
        let (program, args) = argv.split_first().ok_or(Error::NoCommand)?;
        if let Some(purpose) = options.purpose.filter(|purpose| purpose.is_read_only()) {
            let reason = "needs an agent with a read-only mode, not a command";
            return Err(Error::InvalidReadOnlyRun { purpose: purpose.to_string(), reason });
        }
        if let Some(pattern) = options.allow.first() {
            let reason = "it is a command of yours, and no agent".to_owned();
            let (agent, pattern) = ("command".to_owned(), pattern.clone());
            return Err(Error::AllowUnsupported { agent, pattern, reason, instead: None });
        }
        refuse_nul_byte(prompt)?;
        if options.in_window {
            tmux_window::find_tmux()?;
        }
        let program_path = find_program(program, program_base_dir).map_err(Error::into_missing_command)?;
        Ok(AgentCommand {
            agent: "command".to_owned(),
            permission: Permission::default(),
            model: None,
            resume: None,
            purpose: options.purpose,
            limits: effective_limits(settings, options),
            in_window: options.in_window,
            max_turns: None,
            conversation: None,
            message_ids: Vec::new(),
            budget_spent_before: NanoDollars::ZERO,
            batch_task: None,
            step_run: None,
            checks: Vec::new(),
            allowed: AllowedCommands::default(),
            program: program_path,
            profile: Profile { prompt_only: true, prompt: PromptDelivery::File, ..Profile::default() },
            user_args: Some(args.to_vec()),
        })
    }

    /// Returns the command as part of the conversation whose first run has this number.
    pub(crate) fn with_conversation(self, conversation: RunNumber) -> AgentCommand {
        AgentCommand { conversation: Some(conversation), ..self }
    }

    /// Returns the command with the ids of the inbox messages that its prompt contains.
    pub(crate) fn with_messages(self, message_ids: Vec<String>) -> AgentCommand {
        AgentCommand { message_ids, ..self }
    }

    /// Returns the command as a further try, with the part of the budget that earlier tries used.
    pub(crate) fn with_budget_spent(self, budget_spent_before: NanoDollars) -> AgentCommand {
        AgentCommand { budget_spent_before, ..self }
    }

    /// Returns the command for a task of a batch.
    pub(crate) fn with_batch_task(self, batch: Option<RunTask>) -> AgentCommand {
        AgentCommand { batch_task: batch, ..self }
    }

    /// Returns the command for a step of a task folder.
    pub(crate) fn with_step_run(self, step_run: Option<StepRun>) -> AgentCommand {
        AgentCommand { step_run, ..self }
    }

    /// Returns the command with the checks of the lane's task, which its agent may run.
    pub fn with_checks(self, checks: Vec<String>) -> AgentCommand {
        AgentCommand { checks, ..self }
    }

    /// Returns the agent's name for messages; `your command` for a command line of the user.
    pub fn display_name(&self) -> &str {
        if self.is_user_command() { "your command" } else { &self.agent }
    }

    /// Returns a message that the agent was started. An agent in a window may need input from the user first.
    pub fn started_text(&self) -> String {
        format!(
            "{} is {}",
            self.display_name(),
            if self.in_window { "in a window of tmux" } else { "running" }
        )
    }

    /// Returns whether the permission level has an effect on this command.
    pub(crate) fn has_permission_level(&self) -> bool {
        !self.is_user_command() && !self.profile.prompt_only
    }

    /// Returns whether the command is a command line of the user and not an agent.
    pub(crate) fn is_user_command(&self) -> bool {
        self.user_args.is_some() && !self.uses_protocol()
    }

    /// Returns whether the agent is driven by the Agent Client Protocol.
    pub(crate) fn uses_protocol(&self) -> bool {
        self.profile.prompt == PromptDelivery::Protocol
    }

    /// Returns the command line that the user gave for an agent whose profile has none; empty for all other
    /// commands.
    pub(crate) fn user_agent_command(&self) -> Vec<String> {
        let Some(args) = self.user_args.as_ref().filter(|_| self.uses_protocol()) else { return Vec::new() };
        let program = self.program.as_os_str();
        std::iter::once(program)
            .chain(args.iter().map(OsString::as_os_str))
            .map(|w| w.to_string_lossy().into_owned())
            .collect()
    }

    /// Returns the permission level if it has an effect.
    pub fn permission_level(&self) -> Option<String> {
        self.has_permission_level().then(|| self.permission.to_string())
    }

    /// Returns whether the run may produce commits that land.
    pub fn can_land(&self) -> bool {
        self.purpose.is_none_or(|purpose| !purpose.is_read_only())
    }

    /// Returns a copy of the command that resumes no session.
    pub(crate) fn without_session(&self) -> AgentCommand {
        AgentCommand { resume: None, ..self.clone() }
    }

    /// Returns the patterns of commands that were given explicitly, beside those of the settings.
    pub fn allow_flags(&self) -> &[String] {
        &self.allowed.flags
    }

    /// Returns the profile of the agent.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Returns the format of the agent's output.
    pub fn dialect(&self) -> Dialect {
        self.profile.dialect
    }

    /// Returns how git-proq treats processes that the agent leaves running.
    pub(crate) fn stray_policy(&self) -> StrayPolicy {
        self.profile.strays
    }

    /// Returns whether the agent reads the prompt from standard input.
    pub fn prompt_on_stdin(&self) -> bool {
        self.user_args.is_none() && !self.in_window && self.profile.prompt == PromptDelivery::Stdin
    }

    /// Returns whether more prompts can be sent through standard input during the run.
    pub fn accepts_more_prompts(&self) -> bool {
        self.prompt_on_stdin() && self.profile.reads_prompts_on_stdin()
    }

    /// Returns the values of the placeholders that the command defines: model, turns, budget, session and
    /// checks.
    pub(crate) fn placeholder_values(&self) -> PlaceholderValues {
        let mut values = PlaceholderValues::default();
        values.set_optional("model", self.model.as_ref());
        values.set_optional("max_turns", self.max_turns.map(|n| n.to_string()));
        let budget_left = self.limits.budget.map(|budget| budget.saturating_sub(self.budget_spent_before));
        values.set_optional("budget", budget_left.map(|budget| budget.to_string()));
        values.set_optional("session", self.resume.as_ref());
        values.set_list(
            "check",
            self.checks.iter().filter(|check| is_literal_command(check)).cloned().collect(),
        );
        let (any, exact): (Vec<_>, Vec<_>) =
            self.allowed.patterns.iter().partition(|pattern| pattern.permits_any_arguments());
        values.set_list("allow", any.into_iter().map(AllowPattern::command).collect());
        values.set_list("allow_exact", exact.into_iter().map(AllowPattern::command).collect());
        values
    }

    /// Returns the argument vector, program first, with its placeholders expanded.
    pub fn argv(&self, values: &PlaceholderValues) -> Vec<OsString> {
        let args = match &self.user_args {
            None => self.profile.expand_args(self.args_template(), self.permission, values),
            Some(args) => args.iter().filter_map(|a| values.expand(a)).collect(),
        };
        std::iter::once(self.program.clone().into_os_string()).chain(args).collect()
    }

    /// Returns the command line for display, with the placeholders of the run unexpanded.
    pub fn display_command_line(&self) -> String {
        let args: Vec<String> = match &self.user_args {
            None => {
                self.profile.preview_args(self.args_template(), self.permission, &self.placeholder_values())
            }
            Some(args) => args.iter().map(|a| a.to_string_lossy().into_owned()).collect(),
        };
        let parts = std::iter::once(self.program.display().to_string()).chain(args);
        parts.map(|w| shell_quote(&w)).collect::<Vec<_>>().join(" ")
    }

    fn args_template(&self) -> &[String] {
        let args = &self.profile.args;
        match (self.in_window && !self.profile.prompt_only, self.resume.is_some()) {
            (true, true) => &args.interactive_resume,
            (true, false) => &args.interactive,
            // With the protocol, the client names the session to resume.
            (false, true) if !self.uses_protocol() => &args.resume,
            (false, _) => &args.start,
        }
    }
}

/// Returns the permission level of a run. A read-only purpose always has the level read, whatever the
/// settings contain.
fn effective_permission(settings: &Settings, options: &RunOptions) -> Result<Permission, Error> {
    let Some(purpose) = options.purpose.filter(|purpose| purpose.is_read_only()) else {
        return Ok(options.permission.or(Permission::from_name(&settings.permission)).unwrap_or_default());
    };
    let reason = match options.permission {
        _ if options.in_window => "cannot run in a window, whose output is not kept",
        None | Some(Permission::Read) => return Ok(Permission::Read),
        Some(_) => "allows only permission read",
    };
    Err(Error::InvalidReadOnlyRun { purpose: purpose.to_string(), reason })
}

/// Returns the requested limits, completed by those of the settings. Zero means no limit. A run in a window
/// has neither a stall limit nor a budget.
fn effective_limits(
    settings: &Settings,
    RunOptions { limits: requested, in_window, .. }: &RunOptions,
) -> RunLimits {
    let nonzero = |limit: Option<Duration>| limit.filter(|time| !time.is_zero());
    RunLimits {
        max_duration: nonzero(requested.max_duration.or(settings.max_time)),
        // The output in a window is for the user; git-proq does not read it.
        max_stall: nonzero(requested.max_stall.or(settings.stall_limit)).filter(|_| !in_window),
        budget: requested.budget.or(settings.run_budget).filter(|cost| !cost.is_zero() && !in_window),
    }
}

/// Returns the path of the program of a user's command line.
fn find_program(program: &OsString, dir: &Path) -> Result<PathBuf, Error> {
    let program = program.to_string_lossy();
    find_executable::find_executable(&program, dir).map_err(|_| Error::missing_program(&program, None))
}

/// Returns the path of the program of a profile. `layers` has the known agents, for a suggestion.
pub(crate) fn find_profile_program(
    layers: &Layers,
    profile: &Profile,
    agent: &str,
    dir: &Path,
) -> Result<PathBuf, Error> {
    if profile.program.is_empty() {
        return Err(Error::ProfileWithoutProgram { agent: agent.to_owned() });
    }
    profile.find_program(dir).map_err(|e| match e {
        Error::NotInstalled { program, about: None, .. } => {
            Error::missing_program(&program, similar_agent(layers, agent))
        }
        other => other,
    })
}

/// Returns whether an agent's permission rules can name a command literally: it has no wildcards, brackets or
/// quotes, which would permit more there.
pub(super) fn is_literal_command(check: &str) -> bool {
    !check.contains(|c: char| "*()[]{},\\\"'`".contains(c) || c.is_control())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_only_literal_commands_in_agent_rules() {
        assert!(is_literal_command("make test -j2"));
        for bad in ["rm *", "f(x)", "a\nb", "echo \"x\"", "a, b"] {
            assert!(!is_literal_command(bad), "{bad}");
        }
    }
}
