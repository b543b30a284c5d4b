//! The `git proq preview` command.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use proq_base::explain::Exit;
use proq_base::hint;
use proq_base::lane_name::LaneName;
use proq_lib::lane::Project;
use proq_lib::ops::preview;
use proq_lib::ops::preview::{PreviewChange, PreviewOutcome, PreviewRequest};
use proq_lib::preview::enter::EnterResult;
use proq_lib::preview::leave::LeaveResult;
use proq_lib::preview::main_checkout::{PreviewStatus, preview_status};
use proq_lib::preview::plan::PreviewPlan;
use proq_lib::preview::refresh::RefreshResult;
use proq_lib::snapshot::snap_restore;
use proq_lib::types::{RestoreOutcome, now};
use serde::Serialize;

use crate::cli::arguments::candidates::owned_lane_names;
use crate::cli::invocation::caller;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::terminal::ui;
use crate::cli::terminal::ui::Ui;

/// Check out a lane in your main checkout; your edits stay safe
///
/// Your uncommitted changes, staged, unstaged and untracked, are saved first, and --back restores them
/// exactly. Edits that you make during a preview return with its next preview; commits go to the lane.
///
/// Without LANE, shows which lane the main checkout shows.
///
/// Examples:
///     git proq preview payments
///     git proq preview --refresh
///     git proq preview --back
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
#[command(group = clap::ArgGroup::new("what").args(["lane", "back", "refresh"]))]
#[command(
    override_usage = "git proq preview [OPTIONS] [LANE]\n       git proq preview [OPTIONS] --back\n       git proq preview [OPTIONS] --refresh"
)]
pub(crate) struct Preview {
    /// Lane name [default: lane of the current folder]
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(owned_lane_names))]
    pub(crate) lane: Option<String>,
    /// Return to your branch and restore your changes
    #[arg(long, short)]
    pub(crate) back: bool,
    /// Update the preview to the lane's latest commit
    #[arg(long, short)]
    pub(crate) refresh: bool,
    /// Show what would be done, without doing it
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// JSON output about the open preview.
#[derive(Serialize)]
struct OpenPreview {
    /// The open preview; null without one.
    preview: Option<PreviewStatus>,
}

pub(crate) fn run(context: &CommandContext, args: &Preview) -> CommandResult {
    if args.lane.is_none() && !args.back && !args.refresh {
        let project = context.project_to_read()?;
        if caller::current_lane_name(&project)?.is_none() {
            let preview = preview_status(&project)?;
            return context.show(&OpenPreview { preview }, |context, open| print_status(context.ui, open));
        }
    }
    let project = match args.back {
        true => context.project_to_recover()?,
        false => context.project_for_write()?,
    };
    caller::refuse_lane_agent(args.dry_run)?;
    let request = match &args.lane {
        None if args.refresh => PreviewRequest::Refresh,
        None if args.back => PreviewRequest::Leave,
        given => {
            let name = caller::lane_or_current(&project, given.as_ref())?;
            PreviewRequest::Show(Box::new(project.find_lane(&name)?))
        }
    };
    let plan = preview::plan(&project, &request)?;
    let outcome = if args.dry_run { plan.forecast(&project)? } else { plan.execute(&project)? };
    // A conflict has its own exit code, because the user has to resolve it.
    let exit = if outcome.conflicts.is_empty() { Exit::Success } else { Exit::Conflicts };
    let print_change = |context: &CommandContext, outcome: &PreviewOutcome| match &outcome.change {
        PreviewChange::Entered(lane, entered) => print_entered(context.ui, lane, entered),
        PreviewChange::Refreshed(refreshed) => print_refreshed(context.ui, refreshed),
        PreviewChange::Left(left) => print_preview_end(context.ui, &project, left),
        PreviewChange::Forecast(plan) => print_forecast(context.ui, plan),
    };
    context.show(&outcome, print_change).and(Ok(exit))
}

/// Prints which lane the main checkout shows, since when, and how to go back.
fn print_status(ui: Ui, open: &OpenPreview) {
    let Some(PreviewStatus { lane, since, previous_head, has_parked_changes, is_shown, .. }) = &open.preview
    else {
        ui.print_line("no preview is open");
        return ui.hint(hint!("list lanes: git proq list"));
    };
    let age = ui::short_duration(now().duration_since(*since));
    ui.print_line(match is_shown {
        true => format!("the main checkout shows '{lane}', for {age}; it was on {previous_head}"),
        false => {
            format!("the preview of '{lane}', {age} old, was left with git; it began on {previous_head}")
        }
    });
    if *has_parked_changes {
        ui.status(format!("saved your uncommitted changes on {previous_head}; --back restores them"));
    }
    ui.hint(hint!("return: git proq preview --back"));
}

fn print_entered(ui: Ui, lane: &LaneName, entered: &EnterResult) {
    if entered.was_shown {
        ui.print_line(format!("the main checkout shows '{lane}' already"));
        return ui.hint(hint!("update it: git proq preview --refresh"));
    }
    ui.print_line(format!("the main checkout shows '{lane}' ({})", entered.tip.short()));
    if entered.changes_parked {
        let head = &entered.previous_head;
        ui.status(format!("saved your uncommitted changes on {head}; --back restores them"));
    }
    if entered.restored_edits > 0 {
        ui.status("restored your edits from its last preview");
    }
    ui.hint(hint!("return: git proq preview --back"));
}

fn print_refreshed(ui: Ui, refreshed: &RefreshResult) {
    let (lane, new) = (&refreshed.lane, refreshed.new_commit.short());
    ui.print_line(match refreshed.old_commit == refreshed.new_commit {
        true => format!("the preview of '{lane}' is up to date ({new})"),
        false => format!("the preview of '{lane}' moved from {} to {new}", refreshed.old_commit.short()),
    });
}

/// Prints that the preview ended, and what became of the user's changes.
fn print_preview_end(ui: Ui, project: &Project, back: &LeaveResult) {
    let (lane, head) = (&back.lane, &back.head);
    ui.print_line(format!("the main checkout is on {head} again"));
    match &back.restore_outcome {
        None => {}
        Some(RestoreOutcome::Exact) => ui.status("restored your uncommitted changes exactly"),
        Some(RestoreOutcome::Merged) => {
            ui.status(format!("restored your uncommitted changes on top of the new {head}"));
        }
        Some(RestoreOutcome::Conflict(paths)) => {
            let files = ui::pluralize(paths.len(), "file");
            ui.warn(format!("{head} has moved, and your changes conflict with it in {files}; the checkout is clean and your changes are kept"));
            let method = snap_restore::choose_stash_method(&project.repo, back.conflicting_snapshot, paths);
            let id = back.conflicting_snapshot.map(|id| id.to_string()).unwrap_or_default();
            ui.hint(hint!("restore them {}: {} {id}", method.purpose(), method.command()));
        }
    }
    if back.saved_edits.is_some() {
        ui.status(format!("saved your edits in the preview; the next preview of '{lane}' restores them"));
    }
}

/// Prints what the preview command would do.
fn print_forecast(ui: Ui, plan: &PreviewPlan) {
    let PreviewPlan { current_head, target_head, .. } = plan;
    ui.print_line(format!("would switch the main checkout from {current_head} to {target_head}"));
    ui.print_line(format!("  files that change   {}", plan.changed_files));
    if !plan.parked_paths.is_empty() {
        ui.print_line(format!("  files set aside     {}", plan.parked_paths.len()));
        ui.print_each("    ", plan.parked_paths.iter().take(10));
    }
    if plan.has_parked_changes && plan.lane.is_none() {
        let conflict_note = match plan.may_conflict {
            true => format!(", or stay kept if they conflict with {target_head}"),
            false => String::new(),
        };
        ui.print_line(format!("  your own changes would be restored{conflict_note}"));
    }
}
