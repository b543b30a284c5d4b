//! Owns `git proq approve`: its arguments, the question, and asking it before a landing.

use std::io::{BufRead, IsTerminal};

use clap::Args;
use serde::Serialize;

use super::{Done, Failure, Mistake, Session, ui};
use crate::event::{Approvals, Command};
use crate::explain::Exit;
use crate::lane::{Error, Project, operate};
use crate::store::records::{ApprovalsRecord, Approved};

/// Allow commands that come with the repository to run
///
/// The verify.commands and the merge.conflict_agent of a proq.toml run only after this, and a changed one asks again: what
/// counts is the command line itself, not what the scripts say that it starts. proq.toml is read from the main checkout, as it lies there; while a
/// lane is previewed that is the lane's. Commands of your own settings and of --verify need no approval.
///
/// Examples:
///     git proq approve
///     git proq approve --list
///     git proq approve --revoke
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Approve {
    /// Approve them without a question
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// List what was approved before
    #[arg(long, conflicts_with_all = ["yes", "revoke", "dry_run"])]
    pub(crate) list: bool,
    /// Take all approvals of this repository back
    #[arg(long, conflicts_with = "yes")]
    pub(crate) revoke: bool,
    /// Say what would change, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Serialize)]
struct Answer {
    /// What the settings ask for.
    commands: Vec<Row>,
    /// All that is approved.
    approved: Vec<Approved>,
    dry_run: bool,
}

#[derive(Serialize)]
struct Row {
    kind: &'static str,
    command: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    approved: bool,
}

pub(super) fn run(session: &Session, args: &Approve) -> Done {
    let project = match args.list {
        true => session.project()?,
        false => session.project_to_change()?,
    };
    let mut approvals = Approvals::read(&project.repo, &project.store)?;
    let commands = approvals.of_all(&project.layers, &project.settings);
    let open = unapproved(&commands);
    let mut record = approvals.record.clone();
    if args.revoke {
        record = ApprovalsRecord::default();
        if !session.ui.json {
            session.ui.answer(match (approvals.record.approved.len(), args.dry_run) {
                (0, _) => "nothing was approved".to_owned(),
                (n, false) => format!("took back the approval of {}", ui::count(n, "command")),
                (n, true) => format!("would take back the approval of {}", ui::count(n, "command")),
            });
        }
    } else if args.list {
        list(session, &record);
    } else {
        if !session.ui.json {
            show(session, &commands);
        }
        if !open.is_empty() && !args.dry_run {
            if !args.yes {
                ask(session)?;
            }
            record = approvals.with(&open);
        }
    }
    if record != approvals.record && !args.dry_run {
        save(&project, &approvals, &record)?;
        if !args.revoke && !session.ui.json {
            session.ui.answer(format!("approved {}", ui::count(open.len(), "command")));
        }
    }
    if session.ui.json {
        if !args.dry_run {
            approvals.record = record;
        }
        let commands = approvals.of_all(&project.layers, &project.settings);
        let commands = commands.into_iter().map(Row::from).collect();
        session.ui.object(Answer { commands, approved: approvals.record.approved, dry_run: args.dry_run });
    }
    Ok(Exit::Done)
}

/// Asks for what a landing needs approved, where somebody can be asked: the checks, and the agent for conflicts, if they are
/// to run. Where not, the landing itself refuses.
pub(super) fn before_landing(
    session: &Session,
    project: &Project,
    checks: bool,
    agent: Option<&str>,
) -> Result<(), Failure> {
    let approvals = Approvals::read(&project.repo, &project.store)?;
    let lines = if checks { project.settings.verify_commands.as_slice() } else { &[] };
    let mut commands = approvals.of_settings(&project.layers, lines);
    commands.extend(agent.map(|agent| approvals.of_agent(&project.layers, agent)));
    let open = unapproved(&commands);
    if open.is_empty() || nobody_to_ask(session) {
        return Ok(());
    }
    show(session, &commands);
    ask(session)?;
    Ok(save(project, &approvals, &approvals.with(&open))?)
}

fn unapproved(commands: &[Command]) -> Vec<Command> {
    commands.iter().filter(|c| !c.approved).cloned().collect()
}

fn save(project: &Project, approvals: &Approvals<'_>, record: &ApprovalsRecord) -> Result<(), Error> {
    operate(project, "approve", |op| op.save(record, &approvals.path))
}

fn list(session: &Session, record: &ApprovalsRecord) {
    if session.ui.json {
        return;
    }
    for Approved { kind, command, at, .. } in &record.approved {
        session.ui.answer(format!("{kind}  {command}  ({at})"));
    }
    if record.approved.is_empty() {
        session.ui.say("nothing was approved");
    }
}

fn show(session: &Session, commands: &[Command]) {
    for Command { kind, line, from, approved } in commands {
        let from = from.as_ref().map_or("your own settings".to_owned(), |p| p.display().to_string());
        let state = match (approved, from.as_str()) {
            (true, "your own settings") => "needs no approval",
            (true, _) => "approved",
            (false, _) => "not approved",
        };
        session.ui.answer(format!("{kind}  {line}  ({from}; {state})"));
    }
    if commands.is_empty() {
        session.ui.say("this repository brings no commands");
    }
}

fn nobody_to_ask(session: &Session) -> bool {
    !std::io::stdin().is_terminal() || !ui::stderr_is_terminal() || session.ui.json
}

fn ask(session: &Session) -> Result<(), Failure> {
    if nobody_to_ask(session) {
        return Err(Mistake::Unapproved.into());
    }
    super::undo::eprint_question("let them run whenever lanes land? [y/N] ");
    let mut answer = String::new();
    drop(std::io::stdin().lock().read_line(&mut answer));
    if matches!(answer.trim(), "y" | "Y" | "yes") {
        return Ok(());
    }
    Err(Mistake::Declined.into())
}

impl From<Command> for Row {
    fn from(Command { kind, line, from, approved }: Command) -> Row {
        Row { kind, command: line, from: from.map(|p| p.display().to_string()), approved }
    }
}
