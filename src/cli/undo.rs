//! Owns `git proq undo` and the way every undo talks.

use std::io::{BufRead, IsTerminal};

use clap::Args;
use serde::Serialize;

use super::{Done, Failure, Mistake, Session, identity, ui};
use crate::explain::Exit;
use crate::lane::{self, Project, Undo as Plan, Which};
use crate::swarm::{self, BatchError};

/// Take the last operation back
///
/// Refs, worktrees, files and records become what they were before it; removed lanes come back with everything that was in
/// them. Either all of it, or nothing and the reason. Again takes the one before back; `git proq op redo` goes forward.
///
/// With a number, only if that is the last operation that stands.
///
/// Examples:
///     git proq undo
///     git proq undo --dry-run
///     git proq op log
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Undo {
    /// The operation, as `git proq op log` numbers it; needed for one of another terminal when nobody can be asked
    #[arg(value_name = "OP")]
    pub(crate) operation: Option<u64>,
    /// Also when somebody built on it or it was pushed; what came after is kept under a ref
    #[arg(long, short)]
    pub(crate) force: bool,
    /// Show what would be taken back, or why it cannot be, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Serialize)]
struct Answer {
    /// The operations that were, or would be, taken back, newest first.
    operations: Vec<u64>,
    /// What was typed for the newest of them.
    command: String,
    dry_run: bool,
    /// Files and folders in which tasks that landed by them stay noted as done.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    still_noted: Vec<String>,
}

pub(super) fn run(session: &Session, args: &Undo) -> Done {
    take_back(session, Which::Last(args.operation), args.force, args.dry_run, args.operation.is_some())
}

/// Takes operations back. `sure` means that somebody named them.
pub(super) fn take_back(session: &Session, which: Which, force: bool, dry_run: bool, sure: bool) -> Done {
    let project = session.project_to_change()?;
    identity::refuse_agent_for_others(&[], dry_run)?;
    let plan = lane::plan_undo(&project, which).map_err(|e| not_by_itself(&project, e))?;
    if !sure && !plan.own {
        ask(session, &plan, dry_run)?;
    }
    let records = lane::records_of_undo(&project, &plan);
    swarm::require_none_open(&project, &records, (force, plan.forced()))?;
    if dry_run {
        lane::foresee_undo(&project, &plan, force)?;
    } else {
        lane::undo(&project, &plan, force)?;
    }
    // What is in no commit is a person's file, which may have been changed since.
    let still_noted = if which == Which::Undo { Vec::new() } else { swarm::still_noted(&project, &records) };
    if session.ui.json {
        let (operations, command) = (plan.numbers, plan.command);
        session.ui.object(Answer { operations, command, dry_run, still_noted });
        return Ok(Exit::Done);
    }
    let verb = match (which, dry_run) {
        (Which::Undo, false) => "took back the undo",
        (Which::Undo, true) => "would take back the undo",
        (_, false) => "undid",
        (_, true) => "would undo",
    };
    let what = match plan.numbers.as_slice() {
        [one] => format!("operation {one}: {}", plan.command),
        many => format!("{}, the last of them: {}", ui::count(many.len(), "operation"), plan.command),
    };
    session.ui.answer(format!("{verb} {what}"));
    let are = if dry_run { "would still be" } else { "are still" };
    for path in still_noted {
        session.ui.warn(format!("tasks {are} noted as done in {path}, which git-proq does not change back"));
    }
    if !dry_run && which != Which::Undo {
        session.ui.hint("go forward again: git proq op redo");
    }
    Ok(Exit::Done)
}

/// The error about an operation that is not the last one; where a batch that is not over landed tasks since, so that taking back all
/// that came after is refused, one that says so.
fn not_by_itself(project: &Project, e: lane::Error) -> Failure {
    let lane::Error::Undo(lane::UndoError::NotLast { asked, .. }) = &e else { return e.into() };
    let since = lane::plan_undo(project, Which::After(asked.saturating_sub(1)));
    let landed = since.map(|plan| lane::records_of_undo(project, &plan)).unwrap_or_default();
    match swarm::first_open(project, &landed, false) {
        Ok(Some((id, runs))) => {
            swarm::Error::from(BatchError::LandedSince { operation: *asked, id, runs }).into()
        }
        _ => e.into(),
    }
}

/// Asks before something of another terminal, or of a program, is taken back. With `dry_run` it says that it would.
fn ask(session: &Session, plan: &Plan, dry_run: bool) -> Result<(), Failure> {
    let what = format!(
        "operation {} was started in another terminal or by another program: {}",
        plan.numbers[0], plan.command
    );
    let alone = !std::io::stdin().is_terminal() || !ui::stderr_is_terminal() || session.ui.json;
    if alone {
        return Err(Mistake::Unsure { what, number: plan.numbers[0] }.into());
    }
    if dry_run {
        session.ui.say(format!("{what}\nwould ask whether to undo it"));
        return Ok(());
    }
    ui::part(&format!("{what}\nundo it? [y/N] "));
    let mut answer = String::new();
    drop(std::io::stdin().lock().read_line(&mut answer));
    if matches!(answer.trim(), "y" | "Y" | "yes") {
        return Ok(());
    }
    Err(Mistake::Declined.into())
}
