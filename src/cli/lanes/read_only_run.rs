//! Runs without a dedicated branch: `git proq spawn` with `--mode plan`, `--mode answer` or `--in-place`, and
//! the output about them.

use proq_base::explain::Exit;
use proq_lib::agent::command::agent_command::AgentCommand;
use proq_lib::errors::error;
use proq_lib::ops::start::spawn_guest::{GuestSpawnRequest, plan};
use proq_lib::types::{AnyLane, LaneName, LanePurpose};

use super::spawn_args::Spawn;
use crate::cli::arguments::user_files::resolve_attachments;
use crate::cli::invocation::caller;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::usage_error::UsageError;
use crate::cli::runs::follow_run;
use crate::cli::runs::guest_lane_output::{base_and_start_text, print_plan};

/// Starts an agent in a lane that has no dedicated branch.
pub(crate) fn run(context: &CommandContext, args: &Spawn, purpose: LanePurpose) -> CommandResult {
    refuse_landing_flags(args, purpose)?;
    let project = context.project_for_write()?;
    let (program, prompt) = args.program_and_prompt()?;
    let request = GuestSpawnRequest {
        name: args.name.as_deref().map(LaneName::parse).transpose()?,
        prompt,
        program,
        purpose,
        options: args.run_options(),
        dir: context.dir.clone(),
        calling_lane: caller::calling_lane(context, &project),
        isolated: args.isolated,
        base: args.base.clone(),
        attachments: resolve_attachments(context, &args.attach)?,
    };
    let plan = plan(&project, &request)?;
    if args.dry_run {
        match context.ui.json {
            true => context.ui.print_json(plan),
            false => print_plan(context, &plan),
        }
        return Ok(Exit::Success);
    }
    let outcome = plan.execute(&project)?;
    if args.wait {
        return follow_run::follow_and_report(context, &project, &outcome.lane, Some(&outcome.command));
    }
    match context.ui.json {
        true => context.ui.print_json(outcome),
        false => print_started(context, &outcome.lane, &outcome.command, purpose),
    }
    Ok(Exit::Success)
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

/// Refuses flags that only apply to a lane that will land.
fn refuse_landing_flags(args: &Spawn, purpose: LanePurpose) -> Result<(), UsageError> {
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
        Some((flag, _)) => Err(UsageError::LandingFlagRefused { mode, flag }),
        None => Ok(()),
    }
}
