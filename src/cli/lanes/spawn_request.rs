//! Validated arguments of `git proq spawn`: the agent to start and the lane to make.

use std::path::{Path, PathBuf};

use proq_base::lane_name::LaneName;
use proq_lib::agent::command::agent_command;
use proq_lib::agent::command::agent_command::AgentCommand;
use proq_lib::lane::Project;
use proq_lib::lane::creation::create::NewLane;
use proq_lib::lane::inspection::base::Base;

use super::spawn_args::Spawn;
use crate::cli::arguments::lane_args;
use crate::cli::arguments::user_files::{read_text_or_stdin, resolve_attachments};
use crate::cli::invocation::context::CommandContext;
use crate::cli::invocation::failure::Failure;
use crate::cli::invocation::usage_error::UsageError;

/// Validated arguments of `git proq spawn`. Nothing is created before they are complete.
pub(crate) struct SpawnRequest {
    pub(crate) agent_command: Option<AgentCommand>,
    pub(crate) prompt: Option<String>,
    /// Command line of the user's own command. The lane is named after it.
    pub(crate) name_hint: Option<String>,
    /// Absolute paths of the files that belong to the prompt.
    pub(crate) attachments: Vec<PathBuf>,
}

impl SpawnRequest {
    pub(crate) fn from_args(
        context: &CommandContext,
        project: &Project,
        args: &Spawn,
    ) -> Result<SpawnRequest, Failure> {
        let prompt = match &args.file {
            None => args.prompt.clone(),
            Some(file) => Some(read_text_or_stdin(file)?),
        };
        let attachments = resolve_attachments(context, &args.attach)?;
        if args.empty {
            return Ok(SpawnRequest { agent_command: None, prompt, name_hint: None, attachments });
        }
        if !args.command.is_empty() && args.agent.is_none() {
            let agent_command = AgentCommand::from_user_command(
                &project.settings,
                &args.command,
                prompt.as_deref().unwrap_or_default(),
                &context.dir,
                &requested_run_options(args),
            )?;
            let argv: Vec<_> = args.command.iter().map(|w| w.to_string_lossy()).collect();
            return Ok(SpawnRequest {
                agent_command: Some(agent_command),
                prompt,
                name_hint: Some(argv.join(" ")),
                attachments,
            });
        }
        let agent = args.agent.as_deref().ok_or(UsageError::MissingArgument {
            problem: "nothing says what to start",
            example: "git proq spawn claude \"implement payments\"",
        })?;
        let prompt = prompt.ok_or(UsageError::MissingArgument {
            problem: "the agent needs a prompt",
            example: "git proq spawn claude \"implement payments\", or -f task.md",
        })?;
        let run_options =
            agent_command::RunOptions { agent_command: args.command.clone(), ..requested_run_options(args) };
        let agent_command = AgentCommand::from_profile(project, agent, &prompt, &context.dir, &run_options)?;
        Ok(SpawnRequest {
            agent_command: Some(agent_command),
            prompt: Some(prompt),
            name_hint: None,
            attachments,
        })
    }

    /// Returns the lane to make, on `base`. With `--carry` it begins with the uncommitted changes of
    /// `current_worktree`.
    pub(crate) fn new_lane(
        &self,
        args: &Spawn,
        base: Base,
        checks: Vec<String>,
        scope: Vec<String>,
        current_worktree: Option<&Path>,
    ) -> Result<NewLane<'_>, Failure> {
        Ok(NewLane {
            name: args.name.as_deref().map(LaneName::parse).transpose()?,
            prompt: self.prompt.as_deref(),
            name_hint: self.name_hint.as_deref(),
            agent: self.agent_command.as_ref().map(|agent_command| agent_command.agent.clone()),
            base,
            carry_from: current_worktree.filter(|_| args.carry).map(Path::to_owned),
            checks,
            sparse: lane_args::validate_sparse(args.sparse, &scope)?,
            scope,
            auto_merge: args.auto_merge,
            group: None,
            batch: None,
            set_up: args.set_up_level(),
        })
    }
}

/// Returns the run options that the command line requests.
fn requested_run_options(args: &Spawn) -> agent_command::RunOptions {
    agent_command::RunOptions { purpose: args.purpose(), ..args.run_args.run_options_with_window(args.tmux) }
}
