//! The `git proq preview` command.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use proq_base::explain::Exit;
use proq_base::lane_name::LaneName;
use proq_lib::lane::Project;
use proq_lib::ops::preview;
use proq_lib::ops::preview::{PreviewChange, PreviewRequest};
use proq_lib::preview::enter::EnterResult;
use proq_lib::preview::leave::LeaveResult;
use proq_lib::preview::plan::PreviewPlan;
use proq_lib::preview::refresh::RefreshResult;
use proq_lib::snapshot::snap_restore;
use proq_lib::types::RestoreOutcome;

use crate::cli::arguments::candidates::owned_lane_names;
use crate::cli::invocation::caller;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::terminal::ui;

/// Show a lane in the main checkout, and go back
///
/// Your uncommitted changes, staged, unstaged and untracked, are set aside first and come back with --back exactly as
/// they were. Edits made while a lane is shown come back with its next preview; commits go to the lane.
///
/// Examples:
///     git proq preview payments
///     git proq preview --refresh
///     git proq preview --back
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
#[command(group = clap::ArgGroup::new("what").required(true).args(["lane", "back", "refresh"]))]
#[command(
    override_usage = "git proq preview [OPTIONS] LANE\n       git proq preview [OPTIONS] --back\n       git proq preview [OPTIONS] --refresh"
)]
pub(crate) struct Preview {
    /// The lane to show
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(owned_lane_names))]
    pub(crate) lane: Option<String>,
    /// Go back to where you were
    #[arg(long, short)]
    pub(crate) back: bool,
    /// Bring the preview to where its lane is now
    #[arg(long, short)]
    pub(crate) refresh: bool,
    /// Say what would change, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

pub(crate) fn run(context: &CommandContext, args: &Preview) -> CommandResult {
    let project = context.project_for_write()?;
    caller::refuse_lane_agent(args.dry_run)?;
    let request = match &args.lane {
        Some(name) => PreviewRequest::Show(Box::new(project.find_lane(name)?)),
        None if args.refresh => PreviewRequest::Refresh,
        None => PreviewRequest::Leave,
    };
    let plan = preview::plan(&project, &request)?;
    let outcome = if args.dry_run { plan.forecast(&project)? } else { plan.execute(&project)? };
    // A conflict has its own exit code, because the user has to resolve it.
    let exit = if outcome.conflicts.is_empty() { Exit::Success } else { Exit::Conflicts };
    if context.ui.json {
        context.ui.print_json(outcome);
        return Ok(exit);
    }
    match &outcome.change {
        PreviewChange::Entered(lane, entered) => print_entered(context, lane, entered),
        PreviewChange::Refreshed(refreshed) => print_refreshed(context, refreshed),
        PreviewChange::Left(left) => print_preview_end(context, &project, left),
        PreviewChange::Forecast(plan) => print_forecast(context, plan),
    }
    Ok(exit)
}

fn print_entered(context: &CommandContext, lane: &LaneName, entered: &EnterResult) {
    if entered.was_shown {
        context.ui.print_line(format!("the main checkout shows '{lane}' already"));
        context.ui.hint("bring it up to date: git proq preview --refresh");
        return;
    }
    context.ui.print_line(format!("the main checkout shows '{lane}' ({})", entered.tip.short()));
    if entered.changes_parked {
        context.ui.status(format!(
            "your changes on {} are set aside and come back with --back",
            entered.previous_head
        ));
    }
    if entered.restored_edits > 0 {
        context.ui.status("your edits from its last preview are back");
    }
    context.ui.hint("go back: git proq preview --back");
}

fn print_refreshed(context: &CommandContext, refreshed: &RefreshResult) {
    let (lane, new) = (&refreshed.lane, refreshed.new_commit.short());
    context.ui.print_line(match refreshed.old_commit == refreshed.new_commit {
        true => format!("the preview of '{lane}' is up to date ({new})"),
        false => format!("the preview of '{lane}' moved from {} to {new}", refreshed.old_commit.short()),
    });
}

/// Prints that the preview ended, and what became of the user's changes.
fn print_preview_end(context: &CommandContext, project: &Project, back: &LeaveResult) {
    context.ui.print_line(format!("the main checkout is on {} again", back.head));
    match &back.restore_outcome {
        None => {}
        Some(RestoreOutcome::Exact) => context.ui.status("your changes are back exactly as they were"),
        Some(RestoreOutcome::Merged) => {
            context.ui.status(format!("your changes are back, on top of what {} is now", back.head));
        }
        Some(RestoreOutcome::Conflict(paths)) => {
            context.ui.warn(format!(
                "{} has moved, and your changes conflict with it in {}; the checkout is clean and your changes are kept",
                back.head,
                ui::pluralize(paths.len(), "file")
            ));
            let method = snap_restore::choose_stash_method(&project.repo, back.conflicting_snapshot, paths);
            let id = back.conflicting_snapshot.map(|id| id.to_string()).unwrap_or_default();
            context.ui.hint(format!("bring them back {}: {} {id}", method.purpose(), method.command()));
        }
    }
    if back.saved_edits.is_some() {
        context
            .ui
            .status(format!("your edits in the preview come back with the next preview of '{}'", back.lane));
    }
}

/// Prints what the preview command would do.
fn print_forecast(context: &CommandContext, plan: &PreviewPlan) {
    context.ui.print_line(format!(
        "would bring the main checkout from {} to {}",
        plan.current_head, plan.target_head
    ));
    context.ui.print_line(format!("  files that change   {}", plan.changed_files));
    if !plan.parked_paths.is_empty() {
        context.ui.print_line(format!("  files set aside     {}", plan.parked_paths.len()));
        for path in plan.parked_paths.iter().take(10) {
            context.ui.print_line(format!("    {path}"));
        }
    }
    if plan.has_parked_changes && plan.lane.is_none() {
        let conflict_note = match plan.may_conflict {
            true => format!(", or stay kept if they conflict with {}", plan.target_head),
            false => String::new(),
        };
        context.ui.print_line(format!("  your own changes would come back{conflict_note}"));
    }
}
