//! `git proq snap`: lists, shows and restores snapshots of uncommitted changes.

use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCompleter;
use proq_base::explain::Exit;
use proq_base::lane_name::LaneName;
use proq_git::snapshots::restore_forecast::RestoreOutcome;
use proq_git::status::special_files::UncapturedPath;
use proq_git::{CommitId, RepoPath};
use proq_lib::snapshot::snap_restore::RestoreReport;
use proq_lib::snapshot::snap_view::{SnapFile, SnapState, SnapView};
use proq_lib::snapshot::{snap_restore, snap_view};
use proq_store::base::clock::{Moment, now};
use serde::Serialize;

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

/// JSON object of one snapshot.
#[derive(Serialize)]
struct SnapshotRow {
    id: String,
    #[serde(rename = "why")]
    reason: String,
    /// Time at which the snapshot was taken.
    #[serde(rename = "at")]
    taken_at: Moment,
    /// One of waiting, edits, kept, restored, copy, automatic.
    state: &'static str,
    /// Lane whose preview the snapshot waits for, or whose edits it holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    lane: Option<LaneName>,
    /// Time at which the snapshot was restored; `None` if it was not, or is only a copy.
    #[serde(rename = "restored", skip_serializing_if = "Option::is_none")]
    restored_at: Option<Moment>,
    /// Number of files in the snapshot.
    files: usize,
    /// Commit that `git stash apply` takes.
    commit: CommitId,
    /// Commit that HEAD was at when the snapshot was taken.
    base: CommitId,
}

#[derive(Serialize)]
struct SnapshotList {
    snapshots: Vec<SnapshotRow>,
}

#[derive(Serialize)]
struct SnapshotDetails {
    #[serde(flatten)]
    row: SnapshotRow,
    paths: Vec<FileEntry>,
    /// Paths that the snapshot could not capture.
    #[serde(rename = "left")]
    left_out: Vec<UncapturedPath>,
    empty_folders: Vec<RepoPath>,
}

#[derive(Serialize)]
struct FileEntry {
    path: RepoPath,
    /// Status in two letters, as in `git status --short`.
    status: String,
}

#[derive(Serialize)]
struct RestoreOutput {
    id: String,
    commit: CommitId,
    /// One of exactly, merged, conflict.
    #[serde(rename = "restored")]
    restore_result: &'static str,
    conflicts: Vec<RepoPath>,
    /// Ignored files that an earlier restore of this snapshot wrote and that have changed since.
    #[serde(rename = "ignored_gone", skip_serializing_if = "Vec::is_empty")]
    lost_ignored: Vec<RepoPath>,
    dry_run: bool,
}

pub(crate) fn run(context: &CommandContext, args: &Snap) -> CommandResult {
    match &args.command {
        SnapCommand::List => list(context),
        SnapCommand::Show { id } => show(context, id),
        SnapCommand::Restore { id, dry_run } => restore(context, id, *dry_run),
    }
}

fn list(context: &CommandContext) -> CommandResult {
    let views = snap_view::snap_views(&context.project()?)?;
    if context.ui.json {
        context.ui.print_json(SnapshotList { snapshots: views.iter().map(snapshot_row).collect() });
        return Ok(Exit::Success);
    }
    if views.is_empty() {
        context.ui.status("no snapshot is kept");
        return Ok(Exit::Success);
    }
    let rows = views.iter().map(|view| {
        let snap = &view.record;
        vec![
            snap.id.clone(),
            ui::short_duration(now().duration_since(snap.at)),
            state_text(view),
            snap.snapshot.files.to_string(),
            snap.reason.clone(),
        ]
    });
    context.ui.print_line(table::render(&["ID", "AGE", "STATE", "FILES", "WHAT FOR"], rows.collect()));
    Ok(Exit::Success)
}

fn show(context: &CommandContext, id: &str) -> CommandResult {
    let project = context.project()?;
    let view = snap_view::find_snap(&project, id)?;
    let files = view.files(&project.repo)?;
    if context.ui.json {
        let file = |f: SnapFile| FileEntry { path: f.path, status: f.status.iter().collect() };
        context.ui.print_json(SnapshotDetails {
            row: snapshot_row(&view),
            paths: files.into_iter().map(file).collect(),
            left_out: view.uncaptured_paths().to_vec(),
            empty_folders: view.record.snapshot.empty_dirs.clone(),
        });
        return Ok(Exit::Success);
    }
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
            Some(at) => format!("{}, {at}", state_text(&view)),
            None => state_text(&view),
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
    if !files.is_empty() {
        context.ui.print_line("");
    }
    for file in files {
        context.ui.print_line(format!("{} {}", file.status.iter().collect::<String>(), file.path));
    }
    Ok(Exit::Success)
}

fn restore(context: &CommandContext, id: &str, dry_run: bool) -> CommandResult {
    let project = context.project_for_write()?;
    caller::refuse_lane_agent(dry_run)?;
    let view = snap_view::find_snap(&project, id)?;
    let report = snap_restore::restore_snapshot(&project, &view, dry_run)?;
    let conflicts = match &report.outcome {
        RestoreOutcome::Conflict(paths) => paths.clone(),
        RestoreOutcome::Exact | RestoreOutcome::Merged => Vec::new(),
    };
    let exit = if conflicts.is_empty() { Exit::Success } else { Exit::Conflicts };
    if context.ui.json {
        let restored = match &report.outcome {
            RestoreOutcome::Exact => "exactly",
            RestoreOutcome::Merged => "merged",
            RestoreOutcome::Conflict(_) => "conflict",
        };
        let (id, commit) = (view.record.id.clone(), view.commit());
        context.ui.print_json(RestoreOutput {
            id,
            commit,
            restore_result: restored,
            conflicts,
            lost_ignored: report.lost_ignored,
            dry_run,
        });
    } else {
        print_restored(context, &view, &report, dry_run);
    }
    Ok(exit)
}

fn print_restored(context: &CommandContext, view: &SnapView, report: &RestoreReport, dry_run: bool) {
    let (id, dir) = (&view.record.id, report.dir.display());
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
                view.commit()
            ));
        }
    }
}

fn snapshot_row(view: &SnapView) -> SnapshotRow {
    let snap = &view.record;
    let (state, lane) = match &view.state {
        SnapState::AwaitsPreviewExit(lane) => ("waiting", Some(lane.clone())),
        SnapState::AwaitsNextPreview(lane) => ("edits", Some(lane.clone())),
        SnapState::Saved => ("kept", None),
        SnapState::Restored => ("restored", None),
        SnapState::CopyOnly if snap.automatic.is_some() => ("automatic", None),
        SnapState::CopyOnly => ("copy", None),
    };
    SnapshotRow {
        id: snap.id.clone(),
        reason: snap.reason.clone(),
        taken_at: snap.at,
        state,
        lane,
        restored_at: snap.restored.filter(|_| !snap.is_copy),
        files: snap.snapshot.files,
        commit: snap.snapshot.commit,
        base: snap.snapshot.head_commit,
    }
}

fn state_text(view: &SnapView) -> String {
    match &view.state {
        SnapState::AwaitsPreviewExit(_) => "waiting".to_owned(),
        SnapState::AwaitsNextPreview(lane) => format!("edits of {lane}"),
        SnapState::Saved => "kept".to_owned(),
        SnapState::Restored => "restored".to_owned(),
        SnapState::CopyOnly if view.record.automatic.is_some() => "automatic".to_owned(),
        SnapState::CopyOnly => "copy".to_owned(),
    }
}
