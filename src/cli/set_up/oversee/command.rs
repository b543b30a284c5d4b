//! Arguments of `git proq supervise`, and starting or resuming the supervising agent.

use std::path::{Path, PathBuf};

use clap::Args;
use proq_base::explain::Exit;
use proq_base::process::command_builder::CommandBuilder;
use proq_lib::agent::launch::launch_spec::new_session_id;
use proq_lib::agent::launch::overseer::{
    Overseer, OverseerCommand, OverseerOptions, last_session, lock_session, save_session,
};
use proq_lib::lane::Project;
use proq_lib::types::OverseerRecord;
use serde::Serialize;

use super::initial_prompt;
use crate::cli::invocation::caller;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::failure::Failure;
use crate::cli::invocation::usage_error::UsageError;
use crate::cli::set_up::mcp::lane_tools::TOOLS_WITHOUT_CONFIRMATION;

/// Start an agent that supervises all lanes
///
/// It runs here, in your terminal and in the main checkout, and is told how the lanes stand and what it may do. It gets the
/// tools of `git proq mcp --supervisor` for this run; nothing is written into its own settings. It asks you before it stops
/// an agent, shows a lane in your checkout or lands one.
///
/// There is one per repository. The next time its session goes on; --new begins another one. Claude Code and Gemini CLI are told
/// which session that is; Codex and opencode go on with the last one that they held here, whoever began it. AGENT is claude, codex, gemini, opencode, or one of your own that is like them; without it, the one that
/// supervised last or the first installed.
///
/// Examples:
///     git proq supervise
///     git proq supervise codex
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Oversee {
    /// The agent
    #[arg(value_name = "AGENT")]
    pub(crate) agent: Option<String>,
    /// Begin a new session
    #[arg(long)]
    pub(crate) new: bool,
    /// Say what would be started and what it would be told, and start nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Serialize)]
struct SuperviseOutput<'a> {
    agent: &'a str,
    session: Option<&'a str>,
    resumed: bool,
    command: Vec<String>,
    prompt: &'a str,
    exit: Option<i32>,
    dry_run: bool,
}

/// Settled details of the supervising agent's start: agent, program, session, whether the session is resumed,
/// and prompt.
struct LaunchPlan {
    agent: Overseer,
    program: PathBuf,
    /// Id of the session: that to resume, or a new one.
    session: String,
    resume: bool,
    prompt: String,
}

pub(crate) fn run(context: &CommandContext, args: &Oversee) -> CommandResult {
    let project = context.project_for_write()?;
    caller::refuse_in_lane(context, &project)?;
    let lock = (!args.dry_run).then(|| lock_session(&project)).transpose()?;
    let launch_plan = plan_launch(&project, args, last_session(&project)?)?;
    let settings = project.store.layout().overseer_settings();
    let command = launch_plan.agent.build_command(&OverseerOptions {
        git_proq_path: project.git_proq_path()?,
        prompt: &launch_plan.prompt,
        session: &launch_plan.session,
        resume: launch_plan.resume,
        allowed_tools: TOOLS_WITHOUT_CONFIRMATION,
        settings_path: &settings,
    })?;
    if args.dry_run {
        print_plan(context, &launch_plan, &command);
        return Ok(Exit::Success);
    }
    let exit_code = run_agent(&project, &launch_plan, &command, &settings)?;
    drop(lock);
    if context.ui.json {
        print_json(context, &launch_plan, &command, exit_code);
    }
    if exit_code == Some(0) {
        return Ok(Exit::Success);
    }
    let end_text =
        exit_code.map_or_else(|| "by a signal".to_owned(), |code| format!("with exit code {code}"));
    context.ui.warn(format!("{} ended {end_text}", launch_plan.agent.name));
    if launch_plan.resume {
        context.ui.hint("if its session is gone, begin a new one: git proq supervise --new");
    }
    Ok(Exit::Agent)
}

/// Chooses the agent (given, last or first installed), its session and its prompt. `last_record` is that of
/// the last supervising agent.
fn plan_launch(
    project: &Project,
    args: &Oversee,
    last_record: Option<OverseerRecord>,
) -> Result<LaunchPlan, Failure> {
    let dir = project.repo.command_dir();
    let mut agents = Overseer::load_all(&project.layers)?;
    let requested = args.agent.as_deref().or(last_record.as_ref().map(|last| last.agent.as_str()));
    let position = match requested {
        Some(name) => agents.iter().position(|agent| agent.name == name),
        None => agents.iter().position(|agent| agent.find_program(dir).is_ok()),
    };
    let Some(position) = position else {
        let known = agents.into_iter().map(|agent| agent.name).collect();
        return Err(match requested {
            Some(agent) => UsageError::CannotSupervise { agent: agent.to_owned(), known }.into(),
            None => UsageError::NoSupervisingAgent { known }.into(),
        });
    };
    let agent = agents.swap_remove(position);
    let program = agent.find_program(dir)?;
    let last_record = last_record.filter(|last| last.agent == agent.name && agent.can_resume() && !args.new);
    let resume = last_record.is_some();
    let session = last_record.map_or_else(new_session_id, |last| last.session);
    // Only an agent whose session git-proq chooses surely resumes the session that started with the rules.
    let rules_known = resume && agent.resumes_by_id();
    Ok(LaunchPlan {
        agent,
        program,
        session,
        resume,
        prompt: initial_prompt::build_prompt(project, rules_known)?,
    })
}

/// Runs the agent on this terminal until it exits, and returns its exit code; none if a signal ended it.
fn run_agent(
    project: &Project,
    plan: &LaunchPlan,
    command: &OverseerCommand,
    settings: &Path,
) -> Result<Option<i32>, Failure> {
    command.write_settings(settings)?;
    // The record is saved before the start, since the terminal may close before the agent exits.
    save_session(project, &plan.agent.name, &plan.session)?;
    let mut start =
        CommandBuilder::new(&plan.program, project.repo.command_dir()).args(command.args.iter().cloned());
    for (name, value) in &command.env {
        start = start.env(name, value.clone());
    }
    let status = start.run_on_terminal();
    // A Ctrl-C during the run was meant for the agent.
    proq_base::interrupt::clear_signal();
    Ok(status?.code())
}

fn print_plan(context: &CommandContext, plan: &LaunchPlan, command: &OverseerCommand) {
    if context.ui.json {
        print_json(context, plan, command, None);
        return;
    }
    let session_text = match (plan.resume, plan.agent.can_resume()) {
        (true, _) if !plan.agent.resumes_by_id() => ", and go on with its last session here".to_owned(),
        (true, _) => format!(", and go on with session {}", plan.session),
        (false, _) if plan.agent.resumes_by_id() => format!(", in a new session {}", plan.session),
        (false, _) => ", in a new session".to_owned(),
    };
    context.ui.print_line(format!("would start {}{session_text}; it would be told:", plan.program.display()));
    context.ui.print_line("");
    context.ui.print_line(plan.prompt.trim_end());
}

fn print_json(context: &CommandContext, plan: &LaunchPlan, command: &OverseerCommand, exit: Option<i32>) {
    let program = std::iter::once(plan.program.as_os_str());
    let argv =
        program.chain(command.args.iter().map(AsRef::as_ref)).map(|w| w.to_string_lossy().into_owned());
    context.ui.print_json(SuperviseOutput {
        agent: &plan.agent.name,
        session: plan.agent.resumes_by_id().then_some(plan.session.as_str()),
        resumed: plan.resume,
        command: argv.collect(),
        prompt: &plan.prompt,
        exit,
        dry_run: exit.is_none(),
    });
}
