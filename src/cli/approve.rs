//! Owns `git proq approve`: its arguments, the question, and asking it before a landing.

use std::io::{BufRead, IsTerminal};

use clap::{Args, ValueHint};
use clap_complete::engine::ArgValueCompleter;
use serde::Serialize;

use super::complete::branch_names;
use super::plan_source::{Form, PlanSource};
use super::{Done, Failure, Mistake, Session, identity, ui};
use crate::config::Settings;
use crate::event::{Approvals, Command, no_hooks};
use crate::explain::{Exit, word};
use crate::harmless;
use crate::lane::{self, Error, Given, Project, operate};
use crate::store::records::{ApprovalsRecord, Approved};
use crate::swarm;

/// Allow commands that come with the repository to run
///
/// The verify.commands, the lane.setup commands, the merge.conflict_agent and the hooks of a proq.toml run only after this, and a changed one asks
/// again: what counts is the command line itself and what it is for, not what the scripts say that it starts. Each has an ID,
/// and with IDs only those are approved, or taken back. proq.toml is read from the main checkout, as it lies there. Its
/// checks are those of the branch that you are on, or of --onto: where the main checkout has another one, as while a lane is
/// previewed, or lacks the file, those of that branch's last commit. Commands of your own settings and of --verify need no approval.
///
/// A plan that lies in a repository may bring commands, too: checks of its tasks, and criteria. `git proq swarm` runs it only
/// once those are approved, with --plan.
///
/// Examples:
///     git proq approve
///     git proq approve 3f9c21aa
///     git proq approve --onto release
///     git proq approve --plan plan.toml
///     git proq approve --list
///     git proq approve --revoke 3f9c21aa
///     git proq approve --revoke
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Approve {
    /// Only these, by the beginnings of their IDs
    #[arg(value_name = "ID", conflicts_with = "list")]
    pub(crate) ids: Vec<String>,
    /// Approve them without a question
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// List all commands that the repository brings, and all that was approved before
    #[arg(long, conflicts_with_all = ["yes", "revoke", "dry_run"])]
    pub(crate) list: bool,
    /// Take approvals back: those with an ID, or without one all of this repository
    #[arg(long, conflicts_with = "yes")]
    pub(crate) revoke: bool,
    /// The commands of this plan, named as for `git proq swarm`, in place of those of proq.toml; may be given again
    #[arg(long, value_name = "SOURCE", value_hint = ValueHint::AnyPath)]
    pub(crate) plan: Vec<String>,
    /// What the plan is written in, where its name does not tell
    #[arg(long, value_name = "FORM", requires = "plan")]
    pub(crate) format: Option<Form>,
    /// The checks of landings on this branch, in place of those of the branch that you are on
    #[arg(long, value_name = "BRANCH", conflicts_with = "plan", add = ArgValueCompleter::new(branch_names))]
    pub(crate) onto: Option<String>,
    /// Say what would change, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

impl Approve {
    /// The arguments that say which commands it is about.
    fn which(&self) -> String {
        let onto = self.onto.iter().map(|branch| format!(" --onto {}", word(branch)));
        let ids = self.ids.iter().map(|id| format!(" {}", word(id)));
        let plan = PlanSource::named(&self.plan, self.format).to_approve();
        harmless::line(&std::iter::once(plan).chain(onto).chain(ids).collect::<String>())
    }
}

/// So much of an ID is shown, and is the least that can be typed.
const SHORT: usize = 8;

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
    id: String,
    kind: String,
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
    // What an agent wants to run is for somebody else to allow.
    if !args.list && !args.revoke {
        identity::refuse_in_lane(session, &project)?;
    }
    let mut approvals = Approvals::read(&project.repo, &project.store)?;
    let commands = chosen(brought(session, &project, &approvals, args)?, args)?;
    let open = unapproved(&commands);
    let mut record = approvals.record.clone();
    if args.revoke {
        record = without(&approvals.record, &args.ids)?;
        say_revoked(session, args, approvals.record.approved.len() - record.approved.len());
    } else if args.list {
        list(session, &record, &open);
    } else {
        if !session.ui.json {
            show(session, &commands);
        }
        if !open.is_empty() && !args.dry_run {
            if !args.yes {
                ask(session, args)?;
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
        let commands = brought(session, &project, &approvals, args)?;
        let commands = commands.into_iter().map(Row::from).collect();
        session.ui.object(Answer { commands, approved: approvals.record.approved, dry_run: args.dry_run });
    }
    Ok(Exit::Done)
}

/// The commands that it is about: those of a plan, or those of the settings.
fn brought(
    session: &Session,
    project: &Project,
    approvals: &Approvals<'_>,
    args: &Approve,
) -> Result<Vec<Command>, Failure> {
    if args.plan.is_empty() {
        let layers = match &args.onto {
            Some(onto) => project.checks_on(&lane::resolve_base(project, None, Some(onto))?.branch)?.layers,
            None => lane::current_layers(project)?,
        };
        return Ok(approvals.of_all(&layers, &Settings::from_layers(&layers)));
    }
    let found = PlanSource::named(&args.plan, args.format).read_without_a_word(session, project)?;
    Ok(swarm::commands_of(project, &found, &session.dir)?)
}

/// Asks for these, where somebody can be asked and some are not approved.
pub(super) fn commands(session: &Session, project: &Project, commands: &[Command]) -> Result<(), Failure> {
    let open = unapproved(commands);
    if open.is_empty() || nobody_to_ask(session) {
        return Ok(());
    }
    let approvals = Approvals::read(&project.repo, &project.store)?;
    show(session, commands);
    confirm()?;
    Ok(save(project, &approvals, &approvals.with(&open))?)
}

/// Asks for what a landing needs approved, where somebody can be asked: the checks of these bases, and the agent for conflicts,
/// if it is to run. Where not, the landing itself refuses.
pub(super) fn before_landing(
    session: &Session,
    project: &Project,
    bases: impl IntoIterator<Item = String>,
    agent: Option<&str>,
) -> Result<(), Failure> {
    let approvals = Approvals::read(&project.repo, &project.store)?;
    let mut commands: Vec<Command> = Vec::new();
    for base in bases {
        let checks = project.checks_on(&base)?;
        let of_base = approvals.of_settings(&checks.layers, &checks.commands);
        commands.extend(of_base.into_iter().filter(|check| !commands.contains(check)).collect::<Vec<_>>());
    }
    commands.extend(agent.map(|agent| approvals.of_agent(&project.layers, agent)));
    if !no_hooks() {
        commands.extend(approvals.of_hook(&project.layers, "pre-merge"));
    }
    self::commands(session, project, &commands)
}

/// Asks for what gets a new lane ready, where that is to run and somebody can be asked. Where not, making the lane refuses.
pub(super) fn before_set_up(session: &Session, project: &Project, given: Given) -> Result<(), Failure> {
    if given != Given::Whole || project.settings.set_up.commands.is_empty() {
        return Ok(());
    }
    let approvals = Approvals::read(&project.repo, &project.store)?;
    self::commands(session, project, &approvals.of_set_up(&project.layers, &project.settings))
}

fn unapproved(commands: &[Command]) -> Vec<Command> {
    commands.iter().filter(|c| !c.approved).cloned().collect()
}

fn save(project: &Project, approvals: &Approvals<'_>, record: &ApprovalsRecord) -> Result<(), Error> {
    operate(project, "approve", |op| op.save(record, &approvals.path))
}

/// The commands that were asked for; all without an ID.
fn chosen(all: Vec<Command>, args: &Approve) -> Result<Vec<Command>, Failure> {
    if args.ids.is_empty() || args.revoke {
        return Ok(all);
    }
    one_of_each(&args.ids, |id| all.iter().any(|command| command.id.starts_with(id)))?;
    Ok(all.into_iter().filter(|c| args.ids.iter().any(|id| c.id.starts_with(id.as_str()))).collect())
}

/// What is left when those with these IDs are taken back; nothing without an ID.
fn without(record: &ApprovalsRecord, ids: &[String]) -> Result<ApprovalsRecord, Failure> {
    if ids.is_empty() {
        return Ok(ApprovalsRecord::default());
    }
    one_of_each(ids, |id| record.approved.iter().any(|approved| approved.id.starts_with(id)))?;
    let stays = |approved: &&Approved| !ids.iter().any(|id| approved.id.starts_with(id.as_str()));
    Ok(ApprovalsRecord { approved: record.approved.iter().filter(stays).cloned().collect() })
}

/// Refuses an ID that nothing has.
fn one_of_each(ids: &[String], is_there: impl Fn(&str) -> bool) -> Result<(), Failure> {
    match ids.iter().find(|id| id.len() < SHORT || !is_there(id)) {
        Some(id) => Err(Mistake::NoApproval { id: id.clone() }.into()),
        None => Ok(()),
    }
}

fn say_revoked(session: &Session, args: &Approve, count: usize) {
    if session.ui.json {
        return;
    }
    session.ui.answer(match (count, args.dry_run) {
        (0, _) => "nothing was approved".to_owned(),
        (n, false) => format!("took back the approval of {}", ui::count(n, "command")),
        (n, true) => format!("would take back the approval of {}", ui::count(n, "command")),
    });
}

fn short(id: &str) -> &str {
    id.get(..SHORT).unwrap_or(id)
}

fn list(session: &Session, record: &ApprovalsRecord, open: &[Command]) {
    if session.ui.json {
        return;
    }
    for Approved { id, kind, command, at } in &record.approved {
        session.ui.answer(format!("{}  {kind}  {command}  ({at})", short(id)));
    }
    for Command { id, kind, line, .. } in open {
        session.ui.answer(format!("{}  {kind}  {line}  (not approved)", short(id)));
    }
    if record.approved.is_empty() && open.is_empty() {
        session.ui.say("nothing was approved");
    }
}

fn show(session: &Session, commands: &[Command]) {
    for Command { id, kind, line, from, approved } in commands {
        let from = from.as_ref().map_or("your own settings".to_owned(), |p| p.display().to_string());
        let state = match (approved, from.as_str()) {
            (true, "your own settings") => "needs no approval",
            (true, _) => "approved",
            (false, _) => "not approved",
        };
        let id = if *approved && state != "approved" { "-" } else { short(id) };
        session.ui.answer(format!("{id:<SHORT$}  {kind}  {line}  ({from}; {state})"));
    }
    if commands.is_empty() {
        session.ui.say("this repository brings no commands");
    }
}

pub(super) fn nobody_to_ask(session: &Session) -> bool {
    !std::io::stdin().is_terminal() || !ui::stderr_is_terminal() || session.ui.json
}

fn ask(session: &Session, args: &Approve) -> Result<(), Failure> {
    if nobody_to_ask(session) {
        let of = if args.plan.is_empty() { "this repository's proq.toml" } else { "this plan" };
        return Err(Mistake::Unapproved { of, which: args.which() }.into());
    }
    confirm()
}

fn confirm() -> Result<(), Failure> {
    super::ui::part("let them run from now on? [y/N] ");
    let mut answer = String::new();
    drop(std::io::stdin().lock().read_line(&mut answer));
    if matches!(answer.trim(), "y" | "Y" | "yes") {
        return Ok(());
    }
    Err(Mistake::Declined.into())
}

impl From<Command> for Row {
    fn from(Command { id, kind, line, from, approved }: Command) -> Row {
        Row {
            id,
            kind: kind.into_owned(),
            command: line,
            from: from.map(|p| p.display().to_string()),
            approved,
        }
    }
}
