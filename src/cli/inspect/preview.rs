//! The `git proq preview` command.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use proq_base::explain::Exit;
use proq_base::lane_name::LaneName;
use proq_git::Repo;
use proq_git::snapshots::restore_forecast::RestoreOutcome;
use proq_lib::lane::Project;
use proq_lib::preview::enter::EnterResult;
use proq_lib::preview::leave::LeaveResult;
use proq_lib::preview::plan::PreviewAction;
use proq_lib::preview::refresh::RefreshResult;
use proq_lib::preview::{enter, leave, plan, refresh};
use proq_lib::snapshot::snap_restore;
use serde::Serialize;

use crate::cli::arguments::candidates::owned_lane_names;
use crate::cli::invocation::caller;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::usage_error::UsageError;
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

#[derive(Serialize, Default)]
struct PreviewOutput {
    /// Name of the lane that the main checkout shows now, if any.
    lane: Option<LaneName>,
    /// Branch, lane or commit that the main checkout is on now.
    #[serde(rename = "on")]
    head: String,
    /// Id of the lane's commit that is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    tip: Option<String>,
    /// Whether the user's changes are parked until the preview ends.
    #[serde(rename = "waiting")]
    has_parked_changes: bool,
    /// How the user's changes were restored: `exactly`, `merged` or `conflict`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "restored")]
    restore_result: Option<&'static str>,
    /// Id of the stash-shaped commit that holds the user's changes, if a conflict prevented their restore.
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot: Option<String>,
    /// Paths whose conflicts prevented the restore.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    conflicts: Vec<String>,
    dry_run: bool,
}

pub(crate) fn run(context: &CommandContext, args: &Preview) -> CommandResult {
    let project = context.project_for_write()?;
    caller::refuse_lane_agent(args.dry_run)?;
    if args.dry_run {
        return print_plan(context, &project, args);
    }
    if args.back {
        return Ok(print_preview_end(context, &project.repo, &leave::leave_preview(&project)?));
    }
    if args.refresh {
        print_refreshed(context, &refresh::refresh_preview(&project)?);
        return Ok(Exit::Success);
    }
    let name = args.lane.as_deref().ok_or(UsageError::MissingArgument {
        problem: "nothing says which lane to show",
        example: "git proq preview payments",
    })?;
    let lane = project.find_lane(name)?;
    let entered = enter::enter_preview(&project, &lane.name)?;
    print_entered(context, &lane.name, &entered);
    Ok(Exit::Success)
}

fn print_entered(context: &CommandContext, lane: &LaneName, entered: &EnterResult) {
    if context.ui.json {
        context.ui.print_json(PreviewOutput {
            lane: Some(lane.clone()),
            head: lane.to_string(),
            tip: Some(entered.tip.to_string()),
            has_parked_changes: entered.changes_parked,
            ..PreviewOutput::default()
        });
        return;
    }
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
    if context.ui.json {
        context.ui.print_json(PreviewOutput {
            lane: Some(refreshed.lane.clone()),
            head: refreshed.lane.to_string(),
            tip: Some(refreshed.new_commit.to_string()),
            has_parked_changes: refreshed.has_parked_changes,
            ..PreviewOutput::default()
        });
    } else if refreshed.old_commit == refreshed.new_commit {
        context.ui.print_line(format!(
            "the preview of '{}' is up to date ({})",
            refreshed.lane,
            refreshed.new_commit.short()
        ));
    } else {
        context.ui.print_line(format!(
            "the preview of '{}' moved from {} to {}",
            refreshed.lane,
            refreshed.old_commit.short(),
            refreshed.new_commit.short()
        ));
    }
}

/// Prints that the preview ended, and returns the exit code. A conflict has its own exit code, because the
/// user has to resolve it.
fn print_preview_end(context: &CommandContext, repo: &Repo, back: &LeaveResult) -> Exit {
    let conflicts: Vec<String> = back.conflicts().iter().map(ToString::to_string).collect();
    let exit = if conflicts.is_empty() { Exit::Success } else { Exit::Conflicts };
    if context.ui.json {
        context.ui.print_json(PreviewOutput {
            head: back.head.to_string(),
            restore_result: back.restore_outcome.as_ref().map(restore_result_name),
            snapshot: back.conflicting_snapshot.map(|id| id.to_string()),
            conflicts,
            ..PreviewOutput::default()
        });
        return exit;
    }
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
            let (restore_command, id) = (
                snap_restore::choose_stash_method(repo, back.conflicting_snapshot, paths),
                back.conflicting_snapshot,
            );
            let id = id.map(|id| id.to_string()).unwrap_or_default();
            context.ui.hint(format!(
                "bring them back {}: {} {id}",
                restore_command.purpose(),
                restore_command.command()
            ));
        }
    }
    if back.saved_edits.is_some() {
        context
            .ui
            .status(format!("your edits in the preview come back with the next preview of '{}'", back.lane));
    }
    exit
}

/// Returns the name of a restore outcome in the JSON output: `exactly`, `merged` or `conflict`.
fn restore_result_name(restored: &RestoreOutcome) -> &'static str {
    match restored {
        RestoreOutcome::Exact => "exactly",
        RestoreOutcome::Merged => "merged",
        RestoreOutcome::Conflict(_) => "conflict",
    }
}

/// Prints what the preview command would do, without changes.
fn print_plan(context: &CommandContext, project: &Project, args: &Preview) -> CommandResult {
    let goal = match &args.lane {
        Some(lane) => PreviewAction::Show(lane),
        None if args.refresh => PreviewAction::Refresh,
        None => PreviewAction::Leave,
    };
    let plan = plan::plan_preview(project, goal)?;
    if context.ui.json {
        context.ui.print_json(PreviewOutput {
            lane: plan.lane.clone(),
            head: plan.target_head.clone(),
            has_parked_changes: !plan.parked_paths.is_empty() || plan.has_parked_changes,
            dry_run: true,
            ..PreviewOutput::default()
        });
        return Ok(Exit::Success);
    }
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
    Ok(Exit::Success)
}
