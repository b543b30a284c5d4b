//! Owns `git proq op`: the operation log.

use clap::{Args, Subcommand};
use serde::Serialize;

use super::{Done, Session, table, ui, undo};
use crate::explain::Exit;
use crate::git::{Oid, RefMove};
use crate::lane::{self, Logged, OpLog, Project, Which};
use crate::store::records::Step;
use crate::store::{Moment, now};

/// Look at what git-proq did, and go back to any point of it
///
/// Every command that changed something is one operation. `git proq undo` takes the last one back.
///
/// Examples:
///     git proq op log
///     git proq op show 12
///     git proq op restore 11
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Op {
    /// What to do
    #[command(subcommand)]
    pub(crate) command: OpCommand,
}

/// What can be done with the log.
#[derive(Debug, Subcommand)]
pub(crate) enum OpCommand {
    /// List the operations, newest first
    Log {
        /// Only the last N
        #[arg(long, value_name = "N")]
        last: Option<usize>,
    },
    /// Show what one did: refs before and after, worktrees, snapshots, trash
    Show {
        /// The operation
        #[arg(value_name = "OP")]
        operation: u64,
    },
    /// Take back everything that came after an operation
    Restore {
        /// The operation that stands last afterwards; 0 for none
        #[arg(value_name = "OP")]
        operation: u64,
        /// Also when somebody built on it or it was pushed; what came after is kept under a ref
        #[arg(long, short)]
        force: bool,
        /// Say what would be taken back, and change nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// Take the last undo back
    Redo {
        /// Say what would be done, and change nothing
        #[arg(long)]
        dry_run: bool,
    },
}

#[derive(Serialize)]
struct Row {
    operation: u64,
    at: Moment,
    kind: String,
    command: String,
    did: String,
    /// Taken back since.
    undone: bool,
    /// A dead process's, ended by another.
    recovered: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    undoes: Vec<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    redoes: Option<u64>,
}

#[derive(Serialize)]
struct List {
    operations: Vec<Row>,
}

#[derive(Serialize)]
struct Detail {
    #[serde(flatten)]
    row: Row,
    pid: u32,
    host: String,
    refs: Vec<RefRow>,
    steps: Vec<Step>,
}

#[derive(Serialize)]
struct RefRow {
    name: String,
    before: Option<String>,
    after: Option<String>,
}

pub(super) fn run(session: &Session, args: &Op) -> Done {
    match &args.command {
        OpCommand::Log { last } => log(session, *last),
        OpCommand::Show { operation } => show(session, *operation),
        OpCommand::Restore { operation, force, dry_run } => {
            undo::take_back(session, Which::After(*operation), *force, *dry_run, true)
        }
        OpCommand::Redo { dry_run } => undo::take_back(session, Which::Undo, false, *dry_run, true),
    }
}

fn row(project: &Project, logged: &Logged) -> Row {
    let (header, entry) = (&logged.entry.header, &logged.entry);
    Row {
        operation: logged.number,
        at: header.at,
        kind: header.kind.clone(),
        command: header.command.clone(),
        did: lane::summary(entry, &project.settings.prefix),
        undone: logged.undone,
        recovered: entry.end.is_some_and(|(_, recovered)| recovered),
        undoes: header.undoes.clone(),
        redoes: header.redoes,
    }
}

fn log(session: &Session, last: Option<usize>) -> Done {
    let project = session.project()?;
    let log = OpLog::read(&project);
    let rows = log.all.iter().rev().take(last.unwrap_or(usize::MAX)).map(|l| row(&project, l));
    let operations: Vec<Row> = rows.collect();
    if session.ui.json {
        session.ui.object(List { operations });
        return Ok(Exit::Done);
    }
    if operations.is_empty() {
        session.ui.say("nothing was done yet");
        return Ok(Exit::Done);
    }
    let rows = operations.iter().map(|row| {
        let state = match (row.undone, row.recovered) {
            (true, _) => "undone",
            (false, true) => "cut short",
            (false, false) => "",
        };
        vec![
            row.operation.to_string(),
            ui::span(now().since(row.at)),
            state.to_owned(),
            row.command.clone(),
            row.did.clone(),
        ]
    });
    session.ui.answer(table::render(&["OP", "AGE", "STATE", "COMMAND", "WHAT IT DID"], rows.collect()));
    Ok(Exit::Done)
}

fn show(session: &Session, number: u64) -> Done {
    let project = session.project()?;
    let log = OpLog::read(&project);
    let logged = lane::require_operation(&log, number)?;
    let steps: Vec<Step> = logged.entry.standing().cloned().collect();
    let row = row(&project, logged);
    if session.ui.json {
        let header = &logged.entry.header;
        let refs = steps.iter().filter_map(ref_row).collect();
        session.ui.object(Detail { row, pid: header.pid, host: header.host.clone(), refs, steps });
        return Ok(Exit::Done);
    }
    let ui = session.ui;
    ui.answer(format!("operation  {number}{}", if row.undone { " (undone)" } else { "" }));
    ui.answer(format!("command    {}", row.command));
    ui.answer(format!("when       {}, {} ago", row.at, ui::span(now().since(row.at))));
    ui.answer(format!("who        process {} on {}", logged.entry.header.pid, logged.entry.header.host));
    if row.recovered {
        ui.answer("how        cut short, and put right by a later command");
    }
    ui.answer(format!("what       {}", row.did));
    for step in &steps {
        if let Some(line) = line_of(step) {
            ui.answer(format!("  {line}"));
        }
    }
    Ok(Exit::Done)
}

fn ref_row(step: &Step) -> Option<RefRow> {
    let text = |id: Option<Oid>| id.map(|id| id.to_string());
    match step {
        Step::Ref { name, old, new } => {
            Some(RefRow { name: name.clone(), before: text(*old), after: text(*new) })
        }
        Step::Anchor { name, new } => {
            Some(RefRow { name: name.clone(), before: None, after: text(Some(*new)) })
        }
        Step::Tree { from, to, mv, .. } => {
            let name = match mv {
                RefMove::Nothing => return None,
                RefMove::Branch(branch) => format!("refs/heads/{branch}"),
                RefMove::Switch { .. } => "HEAD".to_owned(),
            };
            Some(RefRow { name, before: text(Some(*from)), after: text(Some(*to)) })
        }
        Step::Worked { branch, from, to, .. } => Some(RefRow {
            name: format!("refs/heads/{branch}"),
            before: text(Some(*from)),
            after: text(Some(*to)),
        }),
        _ => None,
    }
}

/// A step for a person; none for records, which follow from the rest.
fn line_of(step: &Step) -> Option<String> {
    let short = |id: &Option<Oid>| id.map_or_else(|| "nothing".to_owned(), Oid::short);
    Some(match step {
        Step::Ref { name, old, new } => format!("{name}: {} -> {}", short(old), short(new)),
        Step::Anchor { name, new } => format!("kept: {name} -> {}", new.short()),
        Step::Tree { dir, from, to, mv, .. } => {
            let moved = match mv {
                RefMove::Nothing => String::new(),
                RefMove::Branch(name) => format!("{name} "),
                RefMove::Switch { from, to } => format!("{from} -> {to}, "),
            };
            format!("{}: {moved}{} -> {}", dir.display(), from.short(), to.short())
        }
        Step::Worked { dir, branch, from, to } => {
            format!(
                "{}: {branch} {} -> {} while an agent worked there",
                dir.display(),
                from.short(),
                to.short()
            )
        }
        Step::Snap { id, .. } => format!("snapshot {id}: git proq snap show {id}"),
        Step::Clear { dir, snap } => format!("{}: changes set aside as {snap}", dir.display()),
        Step::Restore { dir, snap, .. } => format!("{}: changes of {snap} brought back", dir.display()),
        Step::File { .. } => return None,
        Step::Move { from, to } => format!("{} -> {}", from.display(), to.display()),
        Step::Reuse { entry, dir } => format!("{}/worktree -> {}", entry.display(), dir.display()),
        Step::Regrow { entry, .. } => format!("{}/worktree: made anew", entry.display()),
        Step::Worktree { dir, .. } | Step::Resolve { dir, .. } => format!("{}: made", dir.display()),
    })
}
