//! `git proq snap`: lists, shows and restores snapshots of uncommitted changes.

use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCompleter;
use proq_base::explain::Exit;
use proq_base::hint;
use proq_lib::ops::snapshot;
use proq_lib::ops::snapshot::{RestoreRequest, SnapshotDetails, SnapshotRow};
use proq_lib::types::RestoreOutcome;

use crate::cli::arguments::candidates::snap_ids;
use crate::cli::invocation::caller;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::terminal::table::Column;
use crate::cli::terminal::ui::Ui;
use crate::cli::terminal::{page, ui};

/// Columns of the list of snapshots.
const SNAPSHOT_COLUMNS: [Column; 5] = [
    Column::new("ID"),
    Column::new("WHEN").hidden_at(2),
    Column::text("STATE", 6).hidden_at(1),
    Column::number("FILES").hidden_at(3),
    Column::text("WHAT FOR", 12).hidden_at(4),
];

/// List and restore snapshots of uncommitted changes
///
/// A snapshot is taken whenever uncommitted changes are saved: before a preview, or when a lane with
/// uncommitted work is removed. What an agent left uncommitted in its lane is copied too. While agents run,
/// automatic snapshots of the main checkout and of lanes are taken, ignored files included. ID may be the
/// beginning of one. Plain git reads them too: git stash apply refs/proq/snap/ID. Without a subcommand,
/// lists the snapshots.
///
/// Examples:
///     git proq snap list
///     git proq snap show 20260102
///     git proq snap restore 20260102-030405-77-1
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Snap {
    /// What to do
    #[command(subcommand)]
    pub(crate) command: Option<SnapCommand>,
}

/// What can be done with snapshots.
#[derive(Debug, Subcommand)]
pub(crate) enum SnapCommand {
    /// List snapshots, newest first
    List,
    /// Show the files of a snapshot, and what it left out
    Show {
        /// Snapshot ID, or the beginning of one
        #[arg(value_name = "ID", add = ArgValueCompleter::new(snap_ids))]
        id: String,
    },
    /// Restore a snapshot into the current worktree
    Restore {
        /// Snapshot ID, or the beginning of one
        #[arg(value_name = "ID", add = ArgValueCompleter::new(snap_ids))]
        id: String,
        /// Show what would be done, without doing it
        #[arg(long)]
        dry_run: bool,
    },
}

pub(crate) fn run(context: &CommandContext, args: &Snap) -> CommandResult {
    match args.command.as_ref().unwrap_or(&SnapCommand::List) {
        SnapCommand::List => list(context),
        SnapCommand::Show { id } => {
            context.show(&snapshot::show(&context.project_to_read()?, id)?, print_details)
        }
        SnapCommand::Restore { id, dry_run } => restore(context, id, *dry_run),
    }
}

fn list(context: &CommandContext) -> CommandResult {
    page::begin();
    context.show(&snapshot::list(&context.project_to_read()?)?, |context, list| {
        let rows = list.snapshots.iter().map(|row| {
            let snap = &row.view.record;
            vec![
                snap.id.clone(),
                ui::age(snap.at),
                state_text(row),
                snap.snapshot.files.to_string(),
                snap.reason.clone(),
            ]
        });
        context.ui.print_table(&SNAPSHOT_COLUMNS, rows.collect(), "no snapshot is kept");
    })
}

fn print_details(context: &CommandContext, SnapshotDetails { row, paths, .. }: &SnapshotDetails) {
    let (ui, view) = (context.ui, &row.view);
    let snap = &view.record;
    ui.print_field("snapshot", &snap.id);
    ui.print_field("what for", &snap.reason);
    ui.print_field("taken", snap.at);
    let restored = snap.restored.map(|at| format!(", {at}")).unwrap_or_default();
    ui.print_field("state", format!("{}{restored}", state_text(row)));
    ui.print_field("base", snap.snapshot.head_commit.short());
    ui.print_field("read it", format!("git stash apply {}", view.commit()));
    if let Some(automatic) = &snap.automatic {
        automatic.copied_ignored_files.iter().for_each(|path| ui.print_field("ignored", path));
        for path in &automatic.too_large {
            ui.print_field("left out", format!("{path} (ignored, and too large)"));
        }
    }
    snap.snapshot.empty_dirs.iter().for_each(|folder| ui.print_field("empty", folder));
    for item in view.uncaptured_paths() {
        ui.print_field("left out", format!("{} ({})", item.path, item.kind));
    }
    if !paths.is_empty() {
        ui.print_line("");
    }
    ui.print_each("", paths.iter().map(|file| format!("{} {}", file.status, file.path)));
}

fn restore(context: &CommandContext, id: &str, dry_run: bool) -> CommandResult {
    let project = context.project_to_recover()?;
    caller::refuse_lane_agent(dry_run)?;
    let plan = snapshot::plan(&project, &RestoreRequest { id: id.to_owned() })?;
    let outcome = if dry_run { plan.forecast(&project)? } else { plan.execute(&project)? };
    let exit = if outcome.conflicts.is_empty() { Exit::Success } else { Exit::Conflicts };
    context.show(&outcome, |context, outcome| print_restored(context.ui, outcome)).and(Ok(exit))
}

fn print_restored(ui: Ui, restored: &snapshot::RestoreOutcome) {
    let snapshot::RestoreOutcome { id, report, dry_run, .. } = restored;
    let dir = report.dir.display();
    let verb = if *dry_run { "would be restored" } else { "was restored" };
    for path in &report.blocked_ignored {
        ui.warn(format!("{path} was not restored: another file or a link is in its place"));
    }
    let how = match &report.outcome {
        RestoreOutcome::Exact if !report.lost_ignored.is_empty() => ", but for ignored files",
        RestoreOutcome::Exact => ", exactly as it was",
        RestoreOutcome::Merged => ", merged into the current files",
        RestoreOutcome::Conflict(paths) => {
            let conflict_verb = if *dry_run { "would conflict" } else { "conflicts" };
            let files = ui::pluralize(paths.len(), "file");
            ui.print_line(format!("snapshot {id} {conflict_verb} with the current files in {dir}: {files}"));
            ui.print_each("  ", paths.iter().take(10));
            ui.status("nothing was changed; the snapshot is kept");
            let (method, commit) = (&report.stash_method, restored.commit);
            return ui.hint(hint!("restore it {}: {} {commit}", method.purpose(), method.command()));
        }
    };
    for path in &report.lost_ignored {
        ui.warn(format!(
            "{path} is not as it was: git ignores it, and it came back with this snapshot before; no copy was kept"
        ));
    }
    ui.print_line(format!("snapshot {id} {verb} in {dir}{how}"));
}

fn state_text(row: &SnapshotRow) -> String {
    match (&row.lane, row.state) {
        (Some(lane), "edits") => format!("edits of {lane}"),
        (_, state) => state.to_owned(),
    }
}
