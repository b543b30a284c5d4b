//! Runs without a dedicated branch: `git proq spawn` with `--mode plan`, `--mode answer` or `--in-place`, and
//! the output about them.

use proq_base::explain::Exit;
use proq_base::lane_name::LaneName;
use proq_lib::agent;
use proq_lib::agent::command::agent_command::AgentCommand;
use proq_lib::agent::hook_events::stop_gate;
use proq_lib::agent::launch::start_supervisor;
use proq_lib::errors::error;
use proq_lib::lane::Project;
use proq_lib::session::read_only;
use proq_lib::session::read_only::{GuestLaneRequest, ReadLocation};
use proq_store::records::lane::{AnyLane, LanePurpose};

use super::spawn_args::Spawn;
use super::spawn_request::SpawnRequest;
use crate::cli::arguments::run_args::refuse_or_warn_before_start;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::failure::Failure;
use crate::cli::invocation::usage_error::UsageError;
use crate::cli::runs::follow_run;
use crate::cli::runs::guest_lane_output::{base_and_start_text, print_json, print_plan};

/// Starts an agent in a lane that has no dedicated branch.
pub(crate) fn run(context: &CommandContext, args: &Spawn, purpose: LanePurpose) -> CommandResult {
    refuse_landing_flags(args, purpose)?;
    let project = context.project_for_write()?;
    let request = SpawnRequest::from_args(context, &project, args)?;
    let prompt = request.prompt.as_ref().or(request.name_hint.as_ref());
    let (Some(command), Some(prompt)) = (&request.agent_command, prompt) else {
        return Err(missing_prompt_error(purpose).into());
    };
    if prompt.trim().is_empty() {
        return Err(missing_prompt_error(purpose).into());
    }
    let name = args.name.as_deref().map(LaneName::parse).transpose()?;
    let location =
        if args.isolated { ReadLocation::Detached(args.base.as_deref()) } else { ReadLocation::MainCheckout };
    let lane_request = GuestLaneRequest { name, prompt, agent: command.agent.clone(), purpose, location };
    let plan = read_only::plan_guest_lane(&project, lane_request)?;
    let checks = match purpose.is_read_only() {
        true => Vec::new(),
        false => stop_gate::merge_checks(&project, &plan.target.rev_name, &[])?,
    };
    let command = &command.clone().with_checks(checks);
    refuse_or_warn_before_start(context, &project, [command])?;
    if args.dry_run {
        print_plan(context, &plan, command, purpose, &request.attachments);
        return Ok(Exit::Success);
    }
    // No lane is created whose agent could not be started.
    project.git_proq_path()?;
    let (lane, lock) = read_only::create_guest_lane(&project, &plan, &request.attachments)?;
    project.register_repository();
    let launch_result = start_supervisor::launch(&project, &lane, lock, command);
    let lane = launch_result.map_err(|e| forget_unstarted_in_place(&project, &lane, e))?;
    if args.wait {
        return follow_run::follow_and_report(context, &project, &lane, Some(command));
    }
    if context.ui.json {
        print_json(context, &lane, Some(command), lane.state(), None);
        return Ok(Exit::Success);
    }
    print_started(context, &lane, command, purpose);
    Ok(Exit::Success)
}

/// Removes the record of an in-place lane whose run was refused; any other lane stays. Nothing was changed
/// then. Returns the error to report.
fn forget_unstarted_in_place(project: &Project, lane: &AnyLane, e: agent::Error) -> Failure {
    let is_refused = matches!(&e, agent::Error::Lane(_));
    if is_refused
        && lane.works_in_place()
        && let Err(e) = read_only::forget_unstarted_lane(project, lane)
    {
        project.listener.warn(format!("lane '{}' is left: {e}", lane.name));
    }
    e.into()
}

fn print_started(context: &CommandContext, lane: &AnyLane, command: &AgentCommand, purpose: LanePurpose) {
    let name = &lane.name;
    if !purpose.is_read_only() {
        context.ui.print_line(format!(
            "lane '{name}' works in the main checkout, on {}",
            base_and_start_text(lane)
        ));
        context.ui.print_line(format!("  {}", lane.path.display()));
        context.ui.status(format!(
            "{} works there; what it changes is committed when it is done",
            command.display_name()
        ));
        context.ui.hint(format!(
            "follow it: git proq logs -f {name}   take it back then, by its number in: git proq op log"
        ));
        return;
    }
    context.ui.print_line(format!(
        "lane '{name}' for {}, looking at {}",
        error::purpose_phrase(purpose),
        base_and_start_text(lane)
    ));
    context.ui.print_line(format!("  {}", lane.path.display()));
    context.ui.status(format!("{} looks there, and changes nothing", command.display_name()));
    context.ui.hint(format!("wait for it: git proq wait {name}   read it then: git proq show {name}"));
}

/// Returns the error for a missing prompt or question.
fn missing_prompt_error(purpose: LanePurpose) -> UsageError {
    if !purpose.is_read_only() {
        return UsageError::MissingArgument {
            problem: "the agent needs a prompt",
            example: "git proq spawn --in-place claude \"fix the typos\"",
        };
    }
    UsageError::MissingArgument {
        problem: "the agent needs a question",
        example: "git proq spawn claude --mode answer \"where is the tax computed?\"",
    }
}

/// Refuses flags that only apply to a lane that will land.
fn refuse_landing_flags(args: &Spawn, purpose: LanePurpose) -> Result<(), Failure> {
    let mode = if purpose.is_read_only() { format!("--mode {purpose}") } else { "--in-place".to_owned() };
    let flags = [
        ("--base", args.base.is_some() && !args.isolated),
        ("--onto", args.onto.is_some()),
        ("--check", !args.check.is_empty()),
        ("--scope", !args.scope.is_empty()),
        ("--carry", args.carry),
        ("--empty", args.empty),
        ("--auto-merge", args.auto_merge),
        ("--count", args.count.is_some()),
        ("--agents", args.agents.is_some()),
    ];
    match flags.into_iter().find(|(_, is_given)| *is_given) {
        Some((flag, _)) => Err(UsageError::LandingFlagRefused { mode, flag }.into()),
        None => Ok(()),
    }
}
