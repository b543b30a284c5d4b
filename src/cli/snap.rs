//! Owns `git proq snap`, its arguments included.

use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCompleter;
use serde::Serialize;

use super::complete::snap_ids;
use super::{Done, Session, identity, table, ui};
use crate::explain::Exit;
use crate::git::{LeftOut, Oid, RepoPath, Restored};
use crate::lane::{self, Brought, SnapFile, SnapState, SnapView};
use crate::store::{Moment, now};

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

/// One snapshot, for programs.
#[derive(Serialize)]
struct Row {
    id: String,
    why: String,
    at: Moment,
    /// waiting, edits, kept, restored, copy or automatic.
    state: &'static str,
    /// The lane whose preview it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    lane: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    restored: Option<Moment>,
    /// How many files.
    files: usize,
    /// What `git stash apply` takes.
    commit: Oid,
    /// The commit that HEAD was at.
    base: Oid,
}

#[derive(Serialize)]
struct List {
    snapshots: Vec<Row>,
}

#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    row: Row,
    paths: Vec<File>,
    /// What it could not hold.
    left: Vec<LeftOut>,
    empty_folders: Vec<RepoPath>,
}

#[derive(Serialize)]
struct File {
    path: RepoPath,
    /// Two letters as in `git status --short`.
    status: String,
}

#[derive(Serialize)]
struct Answer {
    id: String,
    commit: Oid,
    /// exactly, merged or conflict.
    restored: &'static str,
    conflicts: Vec<RepoPath>,
    /// Ignored files that came back with it before and are not as they were.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ignored_gone: Vec<RepoPath>,
    dry_run: bool,
}

pub(super) fn run(session: &Session, args: &Snap) -> Done {
    match &args.command {
        SnapCommand::List => list(session),
        SnapCommand::Show { id } => show(session, id),
        SnapCommand::Restore { id, dry_run } => restore(session, id, *dry_run),
    }
}

fn list(session: &Session) -> Done {
    let views = lane::snap_views(&session.project()?)?;
    if session.ui.json {
        session.ui.object(List { snapshots: views.iter().map(row).collect() });
        return Ok(Exit::Done);
    }
    if views.is_empty() {
        session.ui.say("no snapshot is kept");
        return Ok(Exit::Done);
    }
    let rows = views.iter().map(|view| {
        let snap = &view.record;
        vec![
            snap.id.clone(),
            ui::span(now().since(snap.at)),
            state(view),
            snap.snapshot.files.to_string(),
            snap.why.clone(),
        ]
    });
    session.ui.answer(table::render(&["ID", "AGE", "STATE", "FILES", "WHAT FOR"], rows.collect()));
    Ok(Exit::Done)
}

fn show(session: &Session, id: &str) -> Done {
    let project = session.project()?;
    let view = lane::find_snap(&project, id)?;
    let files = view.files(&project)?;
    if session.ui.json {
        let file = |f: SnapFile| File { path: f.path, status: f.status.iter().collect() };
        session.ui.object(Shown {
            row: row(&view),
            paths: files.into_iter().map(file).collect(),
            left: view.left().to_vec(),
            empty_folders: view.record.snapshot.empty_dirs.clone(),
        });
        return Ok(Exit::Done);
    }
    let snap = &view.record;
    let line = |key: &str, value: &str| {
        session.ui.answer(format!("{} {value}", console::style(format!("{key:<10}")).dim()));
    };
    line("snapshot", &snap.id);
    line("what for", &snap.why);
    line("taken", &snap.at.to_string());
    line(
        "state",
        &match snap.restored {
            Some(at) => format!("{}, {at}", state(&view)),
            None => state(&view),
        },
    );
    line("base", &snap.snapshot.base.short());
    line("read it", &format!("git stash apply {}", view.commit()));
    for path in snap.automatic.iter().flat_map(|automatic| &automatic.ignored) {
        line("ignored", &path.to_string());
    }
    for path in snap.automatic.iter().flat_map(|automatic| &automatic.too_large) {
        line("left out", &format!("{path} (ignored, and too large)"));
    }
    for folder in &snap.snapshot.empty_dirs {
        line("empty", &folder.to_string());
    }
    for left in view.left() {
        line("left out", &format!("{} ({})", left.path, left.what));
    }
    if !files.is_empty() {
        session.ui.answer("");
    }
    for file in files {
        session.ui.answer(format!("{} {}", file.status.iter().collect::<String>(), file.path));
    }
    Ok(Exit::Done)
}

fn restore(session: &Session, id: &str, dry_run: bool) -> Done {
    let project = session.project_to_change()?;
    identity::refuse_agent_for_others(&[], dry_run)?;
    let view = lane::find_snap(&project, id)?;
    let brought = lane::restore_snap(&project, &view, dry_run)?;
    let conflicts = match &brought.restored {
        Restored::Conflict(paths) => paths.clone(),
        Restored::Exactly | Restored::Merged => Vec::new(),
    };
    let exit = if conflicts.is_empty() { Exit::Done } else { Exit::Conflicts };
    if session.ui.json {
        let restored = match &brought.restored {
            Restored::Exactly => "exactly",
            Restored::Merged => "merged",
            Restored::Conflict(_) => "conflict",
        };
        let (id, commit) = (view.record.id.clone(), view.commit());
        session.ui.object(Answer {
            id,
            commit,
            restored,
            conflicts,
            ignored_gone: brought.ignored_gone,
            dry_run,
        });
    } else {
        say(session, &view, &brought, dry_run);
    }
    Ok(exit)
}

fn say(session: &Session, view: &SnapView, brought: &Brought, dry_run: bool) {
    let (id, dir) = (&view.record.id, brought.dir.display());
    let comes = if dry_run { "would come back" } else { "is back" };
    for path in &brought.ignored_in_the_way {
        session.ui.warn(format!("{path} was not restored: another file or a link is in its place"));
    }
    if !matches!(brought.restored, Restored::Conflict(_)) {
        for path in &brought.ignored_gone {
            session.ui.warn(format!(
                "{path} is not as it was: git ignores it, and it came back with this snapshot before; no copy was kept"
            ));
        }
    }
    match &brought.restored {
        Restored::Exactly if !brought.ignored_gone.is_empty() => {
            session.ui.answer(format!("snapshot {id} {comes} in {dir}, but for ignored files"));
        }
        Restored::Exactly => session.ui.answer(format!("snapshot {id} {comes} in {dir}, exactly as it was")),
        Restored::Merged => {
            session.ui.answer(format!("snapshot {id} {comes} in {dir}, merged into what is there now"));
        }
        Restored::Conflict(paths) => {
            let would = if dry_run { "would conflict" } else { "conflicts" };
            let files = ui::count(paths.len(), "file");
            session.ui.answer(format!("snapshot {id} {would} with what is in {dir} now, in {files}"));
            for path in paths.iter().take(10) {
                session.ui.answer(format!("  {path}"));
            }
            session.ui.say("nothing was changed; the snapshot is kept");
            let how = &brought.way_back;
            session.ui.hint(format!("bring it back {}: {} {}", how.aim(), how.command(), view.commit()));
        }
    }
}

fn row(view: &SnapView) -> Row {
    let snap = &view.record;
    let (state, lane) = match &view.state {
        SnapState::Waiting(lane) => ("waiting", Some(lane.clone())),
        SnapState::Edits(lane) => ("edits", Some(lane.clone())),
        SnapState::Kept => ("kept", None),
        SnapState::Restored => ("restored", None),
        SnapState::Copy if snap.automatic.is_some() => ("automatic", None),
        SnapState::Copy => ("copy", None),
    };
    Row {
        id: snap.id.clone(),
        why: snap.why.clone(),
        at: snap.at,
        state,
        lane,
        restored: snap.restored.filter(|_| !snap.copy),
        files: snap.snapshot.files,
        commit: snap.snapshot.commit,
        base: snap.snapshot.base,
    }
}

fn state(view: &SnapView) -> String {
    match &view.state {
        SnapState::Waiting(_) => "waiting".to_owned(),
        SnapState::Edits(lane) => format!("edits of {lane}"),
        SnapState::Kept => "kept".to_owned(),
        SnapState::Restored => "restored".to_owned(),
        SnapState::Copy if view.record.automatic.is_some() => "automatic".to_owned(),
        SnapState::Copy => "copy".to_owned(),
    }
}
