//! `git proq snap`: lists, shows and restores snapshots of uncommitted changes.

use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCompleter;
use proq_base::explain::Exit;
use proq_lib::ops::snapshot;
use proq_lib::ops::snapshot::{RestoreRequest, SnapshotRow};
use proq_lib::types::{RestoreOutcome, now};

use crate::cli::arguments::candidates::snap_ids;
use crate::cli::invocation::caller;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::terminal::{table, ui};

/// Look at snapshots of uncommitted changes, and bring them back
///
/// One is taken whenever changes are set aside: before a preview, when a lane with uncommitted work goes. A copy is taken
/// of what an agent left uncommitted in its lane. While agents run, automatic ones are taken of the main checkout and of
/// lanes, ignored files included. ID may be the beginning of one. Plain git reads them too: git stash apply refs/proq/snap/ID.
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
    pub(crate) command: SnapCommand,
}

/// What can be done with snapshots.
#[derive(Debug, Subcommand)]
pub(crate) enum SnapCommand {
    /// List the snapshots, newest first
    List,
    /// Show what one holds, and what was left out of it
    Show {
        /// The snapshot
        #[arg(value_name = "ID", add = ArgValueCompleter::new(snap_ids))]
        id: String,
    },
    /// Bring one back onto the worktree you are in
    Restore {
        /// The snapshot
        #[arg(value_name = "ID", add = ArgValueCompleter::new(snap_ids))]
        id: String,
        /// Say how it would come back, and change nothing
        #[arg(long)]
        dry_run: bool,
    },
}

pub(crate) fn run(context: &CommandContext, args: &Snap) -> CommandResult {
    match &args.command {
        SnapCommand::List => list(context),
        SnapCommand::Show { id } => show(context, id),
        SnapCommand::Restore { id, dry_run } => restore(context, id, *dry_run),
    }
}

fn list(context: &CommandContext) -> CommandResult {
    let list = snapshot::list(&context.project()?)?;
    if context.ui.json {
        context.ui.print_json(list);
        return Ok(Exit::Success);
    }
    if list.snapshots.is_empty() {
        context.ui.status("no snapshot is kept");
        return Ok(Exit::Success);
    }
    let rows = list.snapshots.iter().map(|row| {
        let snap = &row.view.record;
        vec![
            snap.id.clone(),
            ui::short_duration(now().duration_since(snap.at)),
            state_text(row),
            snap.snapshot.files.to_string(),
            snap.reason.clone(),
        ]
    });
    context.ui.print_line(table::render(&["ID", "AGE", "STATE", "FILES", "WHAT FOR"], rows.collect()));
    Ok(Exit::Success)
}

fn show(context: &CommandContext, id: &str) -> CommandResult {
    let details = snapshot::show(&context.project()?, id)?;
    if context.ui.json {
        context.ui.print_json(details);
        return Ok(Exit::Success);
    }
    let view = &details.row.view;
    let snap = &view.record;
    let print_field = |key: &str, value: &str| {
        context.ui.print_line(format!("{} {value}", console::style(format!("{key:<10}")).dim()));
    };
    print_field("snapshot", &snap.id);
    print_field("what for", &snap.reason);
    print_field("taken", &snap.at.to_string());
    print_field(
        "state",
        &match snap.restored {
            Some(at) => format!("{}, {at}", state_text(&details.row)),
            None => state_text(&details.row),
        },
    );
    print_field("base", &snap.snapshot.head_commit.short());
    print_field("read it", &format!("git stash apply {}", view.commit()));
    for path in snap.automatic.iter().flat_map(|automatic| &automatic.copied_ignored_files) {
        print_field("ignored", &path.to_string());
    }
    for path in snap.automatic.iter().flat_map(|automatic| &automatic.too_large) {
        print_field("left out", &format!("{path} (ignored, and too large)"));
    }
    for folder in &snap.snapshot.empty_dirs {
        print_field("empty", &folder.to_string());
    }
    for item in view.uncaptured_paths() {
        print_field("left out", &format!("{} ({})", item.path, item.kind));
    }
    if !details.paths.is_empty() {
        context.ui.print_line("");
    }
    for file in &details.paths {
        context.ui.print_line(format!("{} {}", file.status, file.path));
    }
    Ok(Exit::Success)
}

fn restore(context: &CommandContext, id: &str, dry_run: bool) -> CommandResult {
    let project = context.project_for_write()?;
    caller::refuse_lane_agent(dry_run)?;
    let plan = snapshot::plan(&project, &RestoreRequest { id: id.to_owned() })?;
    let outcome = if dry_run { plan.forecast(&project)? } else { plan.execute(&project)? };
    let exit = if outcome.conflicts.is_empty() { Exit::Success } else { Exit::Conflicts };
    if context.ui.json {
        context.ui.print_json(outcome);
    } else {
        print_restored(context, &outcome);
    }
    Ok(exit)
}

fn print_restored(context: &CommandContext, restored: &snapshot::RestoreOutcome) {
    let (report, dry_run) = (&restored.report, restored.dry_run);
    let (id, dir) = (&restored.id, report.dir.display());
    let verb = if dry_run { "would come back" } else { "is back" };
    for path in &report.blocked_ignored {
        context.ui.warn(format!("{path} was not restored: another file or a link is in its place"));
    }
    if !matches!(report.outcome, RestoreOutcome::Conflict(_)) {
        for path in &report.lost_ignored {
            context.ui.warn(format!(
                "{path} is not as it was: git ignores it, and it came back with this snapshot before; no copy was kept"
            ));
        }
    }
    match &report.outcome {
        RestoreOutcome::Exact if !report.lost_ignored.is_empty() => {
            context.ui.print_line(format!("snapshot {id} {verb} in {dir}, but for ignored files"));
        }
        RestoreOutcome::Exact => {
            context.ui.print_line(format!("snapshot {id} {verb} in {dir}, exactly as it was"));
        }
        RestoreOutcome::Merged => {
            context.ui.print_line(format!("snapshot {id} {verb} in {dir}, merged into what is there now"));
        }
        RestoreOutcome::Conflict(paths) => {
            let conflict_verb = if dry_run { "would conflict" } else { "conflicts" };
            let file_count = ui::pluralize(paths.len(), "file");
            context.ui.print_line(format!(
                "snapshot {id} {conflict_verb} with what is in {dir} now, in {file_count}"
            ));
            for path in paths.iter().take(10) {
                context.ui.print_line(format!("  {path}"));
            }
            context.ui.status("nothing was changed; the snapshot is kept");
            let stash_method = &report.stash_method;
            context.ui.hint(format!(
                "bring it back {}: {} {}",
                stash_method.purpose(),
                stash_method.command(),
                restored.commit
            ));
        }
    }
}

fn state_text(row: &SnapshotRow) -> String {
    match (&row.lane, row.state) {
        (Some(lane), "edits") => format!("edits of {lane}"),
        (_, state) => state.to_owned(),
    }
}
