//! Runs without a dedicated branch: `git proq spawn` with `--mode plan`, `--mode answer` or `--in-place`, and
//! the output about them.

use proq_base::hint;
use proq_lib::errors::error;
use proq_lib::ops::start::spawn_guest::{GuestSpawnOutcome, GuestSpawnRequest, plan};
use proq_lib::types::{LaneName, LanePurpose};

use super::spawn_args::Spawn;
use crate::cli::arguments::user_files::resolve_attachments;
use crate::cli::invocation::caller;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::usage_error::UsageError;
use crate::cli::runs::follow_run;
use crate::cli::runs::guest_lane_output::{base_and_start_text, print_plan};
use crate::cli::terminal::ui::Ui;

/// Starts an agent in a lane that has no dedicated branch.
pub(crate) fn run(context: &CommandContext, args: &Spawn, purpose: LanePurpose) -> CommandResult {
    refuse_landing_flags(args, purpose)?;
    let project = context.project_for_write()?;
    let (program, prompt) = args.program_and_prompt(context, &project)?;
    let request = GuestSpawnRequest {
        name: args.name.as_deref().map(LaneName::from_user).transpose()?,
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
        return context.show(&plan, print_plan);
    }
    let outcome = plan.execute(&project)?;
    if args.wait {
        return follow_run::follow_and_report(context, &project, &outcome.lane, Some(&outcome.command));
    }
    context.show(&outcome, |context, outcome| print_started(context.ui, outcome, purpose))
}

fn print_started(ui: Ui, outcome: &GuestSpawnOutcome, purpose: LanePurpose) {
    let GuestSpawnOutcome { lane, command } = outcome;
    let (name, base, agent) = (&lane.name, base_and_start_text(lane), command.display_name());
    ui.print_line(match purpose.is_read_only() {
        true => format!("lane '{name}' for {}, reading {base}", error::purpose_phrase(purpose)),
        false => format!("lane '{name}' works in the main checkout, on {base}"),
    });
    ui.print_line(format!("  {}", lane.path.display()));
    if purpose.is_read_only() {
        ui.status(format!("{agent} reads the files there and changes nothing"));
        ui.hint(hint!("wait for it: git proq wait {name}"));
        ui.hint(hint!("read the result after that: git proq show {name}"));
    } else {
        ui.status(format!("{agent} works there; its changes are committed when it is done"));
        ui.hint(hint!("follow it: git proq logs -f {name}"));
        ui.hint(hint!("find its operation, to undo it later: git proq op log"));
    }
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
