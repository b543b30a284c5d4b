//! Owns what people want of a batch from any terminal: `git proq pause`, `resume` and `abort`.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde::Serialize;

use super::complete::batch_names;
use super::{Done, Failure, Session, resolve, status, swarm as command};
use crate::config::nano_dollars;
use crate::explain::Exit;
use crate::lane::Project;
use crate::swarm::{self, Batch, BatchError, BatchRecord, Ledger, Outcome, WishKind};

/// Pause a batch
///
/// Nothing new starts. What runs is ended and landed first, and `git proq resume` goes on. BATCH can be left out while one is
/// open.
///
/// Examples:
///     git proq pause
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Pause {
    /// The batch
    #[arg(value_name = "BATCH", add = ArgValueCompleter::new(batch_names))]
    batch: Option<String>,
    /// Say what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
}

/// Go on with a batch, and follow it
///
/// With one that is paused, that was aborted, or whose process was killed: agents that still run are taken over, what has ended
/// meanwhile is found, and nothing is run twice. A conflict that was resolved meanwhile lands, and checks that failed run
/// again. One that goes on is only followed. What happened before is in `git proq report`.
///
/// Examples:
///     git proq resume
///     git proq resume 20261122-104500 --retry auth/login --detach
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Resume {
    /// The batch
    #[arg(value_name = "BATCH", add = ArgValueCompleter::new(batch_names))]
    batch: Option<String>,
    /// Try this task again, however often it has failed; may be given again
    #[arg(long, value_name = "ID")]
    retry: Vec<String>,
    /// Let it cost this many US dollars in all
    #[arg(long, value_name = "USD")]
    budget: Option<String>,
    /// Return once it goes on
    #[arg(long)]
    detach: bool,
    /// Say what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
}

/// End a batch
///
/// Agents are told to wrap up, and stopped after agent.abort_grace seconds. Every lane and branch stays, and so does what the
/// batch has come to: `git proq resume` goes on with it, `git proq cleanup --batch` tidies up.
///
/// Examples:
///     git proq abort
///     git proq abort --hard
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Abort {
    /// The batch
    #[arg(value_name = "BATCH", add = ArgValueCompleter::new(batch_names))]
    batch: Option<String>,
    /// Stop agents at once
    #[arg(long)]
    hard: bool,
    /// Say what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
}

/// What `--json` answers.
#[derive(Serialize)]
struct Answer<'a> {
    batch: &'a str,
    state: &'a str,
    dry_run: bool,
}

/// The batch that is meant: the one that is named, or the only one that is open.
pub(super) fn which(
    project: &Project,
    asked: Option<&str>,
    command: &'static str,
) -> Result<BatchRecord, Failure> {
    if let Some(asked) = asked {
        return Ok(swarm::find_batch(project, asked)?);
    }
    let mut open = open(project);
    match (open.len(), open.pop()) {
        (1, Some((batch, _))) => Ok(batch),
        (_, last) => {
            let all = open.into_iter().chain(last).map(|(batch, _)| batch.id).collect();
            Err(swarm::Error::from(BatchError::Which { open: all, command }).into())
        }
    }
}

/// The batches that are not over, and those that were ended before they were, each with its state.
pub(super) fn open(project: &Project) -> Vec<(BatchRecord, &'static str)> {
    let mut out = Vec::new();
    for batch in swarm::batches(project, false) {
        let Ok(read) = Batch::load(project, &batch.id) else { continue };
        let Ok(lines) = read.log(project) else { continue };
        let state = read.state(&lines);
        match state.outcome_if_over() {
            None | Some(Outcome::Aborted | Outcome::Stopped) => out.push((batch, state.word())),
            Some(Outcome::Complete | Outcome::Partly) => {}
        }
    }
    out
}

fn require_there(batch: &BatchRecord) -> Result<(), Failure> {
    if batch.cleaned.is_some() {
        return Err(swarm::Error::from(BatchError::Cleaned { id: batch.id.clone() }).into());
    }
    Ok(())
}

/// Leaves a wish for a batch, and returns once it is heard.
pub(super) fn wish(project: &Project, id: &str, kind: WishKind) -> Result<(), Failure> {
    Ok(swarm::ask_batch(project, id, &resolve::this_program()?, vec![kind])?)
}

fn outcome(project: &Project, batch: &BatchRecord) -> Result<(Option<Outcome>, &'static str), Failure> {
    let read = Batch::load(project, &batch.id)?;
    let state = read.state(&read.log(project)?);
    Ok((state.outcome_if_over(), state.word()))
}

fn say(session: &Session, id: &str, state: &str, text: &str, dry_run: bool) {
    if session.ui.json {
        session.ui.object(Answer { batch: id, state, dry_run });
    } else {
        session.ui.answer(text);
    }
}

pub(super) fn pause(session: &Session, args: &Pause) -> Done {
    let project = session.project_to_change()?;
    let batch = which(&project, args.batch.as_deref(), "pause")?;
    require_there(&batch)?;
    let id = &batch.id;
    let (over, word) = outcome(&project, &batch)?;
    if over.is_some() || word == "paused" {
        say(session, id, word, &format!("batch {id} does not go on: it is {word}"), args.dry_run);
        return Ok(Exit::Done);
    }
    if args.dry_run {
        say(session, id, word, &format!("would pause batch {id}"), true);
        return Ok(Exit::Done);
    }
    wish(&project, id, WishKind::Pause)?;
    let (_, word) = outcome(&project, &batch)?;
    let text = match word {
        "paused" | "over" => format!("batch {id} is {word}"),
        _ => format!("batch {id} pauses once what runs has ended"),
    };
    say(session, id, word, &text, false);
    if !session.ui.json {
        session
            .ui
            .hint(format!("see how far it is: git proq status {id}   go on with it: git proq resume {id}"));
    }
    Ok(Exit::Done)
}

pub(super) fn resume(session: &Session, args: &Resume) -> Done {
    let project = session.project_to_change()?;
    let batch = match repairable(&project, args)? {
        Some(batch) => batch,
        None => which(&project, args.batch.as_deref(), "resume")?,
    };
    require_there(&batch)?;
    let id = &batch.id;
    let read = Batch::load(&project, id)?;
    let mut wishes = Vec::new();
    if let Some(text) = &args.budget {
        let what = "--budget takes US dollars; 0 is no limit";
        let mistake = super::Mistake::Missing { what, example: "git proq resume --budget 12.50" };
        let most = nano_dollars(text).ok_or(mistake)?;
        wishes.push(WishKind::Budget { most: Some(most).filter(|most| *most > 0) });
    }
    for name in &args.retry {
        wishes.push(WishKind::Retry { task: read.task_named(name)? });
    }
    let (over, word) = outcome(&project, &batch)?;
    // A conflict may have been resolved since, or what a check failed by repaired.
    let rests = match over {
        Some(Outcome::Complete | Outcome::Partly) => is_repairable(&project, &batch)?,
        _ => true,
    };
    if rests {
        wishes.push(WishKind::Resume);
    }
    if args.dry_run {
        say(session, id, word, &format!("would go on with batch {id}"), true);
        return Ok(Exit::Done);
    }
    let goes_on = word == "running" && swarm::is_run(&project, id)?;
    let at = command::Follow::from_here(&project, id)?;
    let owes = batch.is_unproven(&project) || Ledger::read(&project).map_err(swarm::Error::from)?.has(id);
    if wishes.is_empty() && owes {
        return end_it(session, &project, args, at, id);
    }
    match (wishes.is_empty(), goes_on) {
        (true, _) => {
            say(session, id, word, &format!("batch {id} is over; there is nothing to go on with"), false);
            if !session.ui.json {
                let again = status::try_again(&status::picture(&project, &batch)?);
                let any = || format!("try a task again: git proq resume {id} --retry ID");
                session.ui.hint(again.unwrap_or_else(any));
            }
            return Ok(Exit::Done);
        }
        // It is only followed.
        (false, true) if args.retry.is_empty() && args.budget.is_none() => {}
        (false, _) => swarm::ask_batch(&project, id, &resolve::this_program()?, wishes)?,
    }
    if args.detach {
        let (_, word) = outcome(&project, &batch)?;
        say(session, id, word, &format!("batch {id} goes on"), false);
        return Ok(Exit::Done);
    }
    command::follow(session, &project, at)
}

/// The last batch, where none is named or open and something of it may have been repaired since.
fn repairable(project: &Project, args: &Resume) -> Result<Option<BatchRecord>, Failure> {
    if args.batch.is_some() || !open(project).is_empty() {
        return Ok(None);
    }
    let Some(last) = swarm::batches(project, false).pop() else { return Ok(None) };
    Ok(is_repairable(project, &last)?.then_some(last))
}

/// Whether a task of a batch could not land because of a conflict or a check, was finished by a person after its run came to nothing,
/// or had its landing taken back.
fn is_repairable(project: &Project, batch: &BatchRecord) -> Result<bool, Failure> {
    let read = Batch::load(project, &batch.id)?;
    let state = read.state(&read.log(project)?);
    let is_stuck = |task: usize| {
        matches!(state.fate(task), Some(swarm::Fate::Failed(swarm::Why::Conflict | swarm::Why::Check)))
    };
    let is_repaired =
        || status::picture(project, batch).map(|it| it.tasks.iter().any(|task| task.is_repaired));
    Ok((0..read.tasks.len()).any(is_stuck) || swarm::has_taken_back(project, &read)? || is_repaired()?)
}

/// Goes on with what belongs to the end of a batch that is over: whoever did that was killed over it.
fn end_it(session: &Session, project: &Project, args: &Resume, at: command::Follow, id: &str) -> Done {
    let _by_whomever = swarm::resume_batch(project, id, &resolve::this_program()?)?;
    if args.detach {
        say(session, id, "over", &format!("batch {id} goes on with its end"), false);
        return Ok(Exit::Done);
    }
    command::follow(session, project, at)
}

pub(super) fn abort(session: &Session, args: &Abort) -> Done {
    let project = session.project_to_change()?;
    let batch = which(&project, args.batch.as_deref(), "abort")?;
    require_there(&batch)?;
    let id = &batch.id;
    let (over, word) = outcome(&project, &batch)?;
    if over.is_some() {
        say(session, id, word, &format!("batch {id} is over already"), args.dry_run);
        return Ok(Exit::Done);
    }
    if args.dry_run {
        say(session, id, word, &format!("would abort batch {id}"), true);
        return Ok(Exit::Done);
    }
    wish(&project, id, WishKind::Abort { hard: args.hard })?;
    let (over, word) = outcome(&project, &batch)?;
    let text = match over {
        Some(_) => format!("batch {id} is aborted"),
        None if args.hard => format!("batch {id} is being aborted: its agents are being stopped"),
        None => format!("batch {id} is being aborted: its agents are told to wrap up"),
    };
    say(session, id, word, &text, false);
    if !session.ui.json {
        session.ui.hint(format!(
            "all lanes stay; go on with it: git proq resume {id}   tidy up: git proq cleanup --batch {id}"
        ));
    }
    Ok(Exit::Done)
}
