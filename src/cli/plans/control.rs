//! Control of a batch from any terminal: `git proq pause`, `resume` and `abort`.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use proq_base::explain::Exit;
use proq_base::money::NanoDollars;
use proq_lib::lane::Project;
use proq_lib::swarm;
use proq_lib::swarm::batch::control_request::ControlRequestKind;
use proq_lib::swarm::batch::error::BatchError;
use proq_lib::swarm::batch::ledger::Ledger;
use proq_lib::swarm::batch::record::{Batch, BatchRecord};
use proq_lib::swarm::batch::{create, scheduler};
use proq_lib::swarm::run::{control_requests, scheduler_process};
use proq_lib::swarm::status::undone_landings;
use proq_plan::schedule::action::BatchOutcome;
use proq_plan::schedule::task_phase;
use proq_store::Store;
use proq_store::base::batch_id::BatchId;
use serde::Serialize;

use super::batch_follower::BatchFollower;
use super::batch_hints::retry_hint;
use super::batch_state::{batch_progress, send_control_request, unfinished_batches};
use super::follow_batch::follow;
use crate::cli::arguments::candidates::batch_ids;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::failure::Failure;
use crate::cli::invocation::usage_error::UsageError;

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
    #[arg(value_name = "BATCH", add = ArgValueCompleter::new(batch_ids))]
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
    #[arg(value_name = "BATCH", add = ArgValueCompleter::new(batch_ids))]
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
    #[arg(value_name = "BATCH", add = ArgValueCompleter::new(batch_ids))]
    batch: Option<String>,
    /// Stop agents at once
    #[arg(long)]
    hard: bool,
    /// Say what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
}

/// The `--json` output of a control command.
#[derive(Serialize)]
struct ControlOutput<'a> {
    batch: &'a BatchId,
    state: &'a str,
    dry_run: bool,
}

/// Returns the batch named `name`, or the only unfinished one if no name is given. `command` is the command
/// for the hint if the batch is ambiguous.
pub(crate) fn find_named_or_only_batch(
    project: &Project,
    name: Option<&str>,
    command: &'static str,
) -> Result<BatchRecord, Failure> {
    if let Some(name) = name {
        return Ok(create::find_batch(project, name)?);
    }
    let mut candidates = unfinished_batches(project);
    match (candidates.len(), candidates.pop()) {
        (1, Some((batch, _))) => Ok(batch),
        (_, last) => {
            let ids = candidates.into_iter().chain(last).map(|(batch, _)| batch.id).collect();
            Err(swarm::Error::from(BatchError::AmbiguousBatch { open: ids, command }).into())
        }
    }
}

fn require_not_cleaned_up(batch: &BatchRecord) -> Result<(), Failure> {
    if batch.cleaned.is_some() {
        return Err(swarm::Error::from(BatchError::CleanedUp { id: batch.id.clone() }).into());
    }
    Ok(())
}

/// Returns the final outcome of a batch, `None` while it is unfinished, and a word for its state.
fn outcome_and_state_word(
    store: &Store,
    batch: &BatchRecord,
) -> Result<(Option<BatchOutcome>, &'static str), Failure> {
    let loaded = Batch::load(store, &batch.id)?;
    let state = loaded.fold_state(&loaded.read_log_lines(store)?);
    Ok((state.final_outcome(), state.status_word()))
}

fn print_state(context: &CommandContext, id: &BatchId, state: &str, text: &str, dry_run: bool) {
    if context.ui.json {
        context.ui.print_json(ControlOutput { batch: id, state, dry_run });
    } else {
        context.ui.print_line(text);
    }
}

pub(crate) fn pause(context: &CommandContext, args: &Pause) -> CommandResult {
    let project = context.project_for_write()?;
    let batch = find_named_or_only_batch(&project, args.batch.as_deref(), "pause")?;
    require_not_cleaned_up(&batch)?;
    let id = &batch.id;
    let (finished, word) = outcome_and_state_word(&project.store, &batch)?;
    if finished.is_some() || word == "paused" {
        print_state(context, id, word, &format!("batch {id} does not go on: it is {word}"), args.dry_run);
        return Ok(Exit::Success);
    }
    if args.dry_run {
        print_state(context, id, word, &format!("would pause batch {id}"), true);
        return Ok(Exit::Success);
    }
    send_control_request(&project, id, ControlRequestKind::Pause)?;
    let (_, word) = outcome_and_state_word(&project.store, &batch)?;
    let text = match word {
        "paused" | "over" => format!("batch {id} is {word}"),
        _ => format!("batch {id} pauses once what runs has ended"),
    };
    print_state(context, id, word, &text, false);
    if !context.ui.json {
        context
            .ui
            .hint(format!("see how far it is: git proq status {id}   go on with it: git proq resume {id}"));
    }
    Ok(Exit::Success)
}

pub(crate) fn resume(context: &CommandContext, args: &Resume) -> CommandResult {
    let project = context.project_for_write()?;
    let batch = match last_repairable_batch(&project, args)? {
        Some(batch) => batch,
        None => find_named_or_only_batch(&project, args.batch.as_deref(), "resume")?,
    };
    require_not_cleaned_up(&batch)?;
    let id = &batch.id;
    let loaded = Batch::load(&project.store, id)?;
    let mut requests = Vec::new();
    if let Some(text) = &args.budget {
        let problem = "--budget takes US dollars; 0 is no limit";
        let usage_error = UsageError::MissingArgument { problem, example: "git proq resume --budget 12.50" };
        let limit = NanoDollars::parse(text).ok_or(usage_error)?;
        requests.push(ControlRequestKind::Budget { limit: Some(limit).filter(|limit| !limit.is_zero()) });
    }
    for name in &args.retry {
        requests.push(ControlRequestKind::Retry { task: loaded.find_task(name)? });
    }
    let (finished, word) = outcome_and_state_word(&project.store, &batch)?;
    // Since then, a conflict may have been resolved, or the cause of a failed check repaired.
    let is_resumable = match finished {
        Some(BatchOutcome::Complete | BatchOutcome::Partial) => is_repairable(&project, &batch)?,
        _ => true,
    };
    if is_resumable {
        requests.push(ControlRequestKind::Resume);
    }
    if args.dry_run {
        print_state(context, id, word, &format!("would go on with batch {id}"), true);
        return Ok(Exit::Success);
    }
    let is_scheduled = word == "running" && scheduler::is_running(&project.store, id)?;
    let follower = BatchFollower::from_now(&project.store, id)?;
    let has_unfinished_end = batch.has_unverified_criteria(&project.store)
        || Ledger::read(&project.store).map_err(swarm::Error::from)?.has_claims_of(id);
    if requests.is_empty() && has_unfinished_end {
        return finish_interrupted_batch(context, &project, args, follower, id);
    }
    match (requests.is_empty(), is_scheduled) {
        (true, _) => return print_nothing_to_resume(context, &project, &batch, word),
        // The batch runs already, so it is only followed.
        (false, true) if args.retry.is_empty() && args.budget.is_none() => {}
        (false, _) => {
            control_requests::submit_requests(&project, id, requests)?;
        }
    }
    if args.detach {
        let (_, word) = outcome_and_state_word(&project.store, &batch)?;
        print_state(context, id, word, &format!("batch {id} goes on"), false);
        return Ok(Exit::Success);
    }
    follow(context, &project, follower)
}

/// Prints that a batch is over, and the command that tries a task again.
fn print_nothing_to_resume(
    context: &CommandContext,
    project: &Project,
    batch: &BatchRecord,
    state: &str,
) -> CommandResult {
    let id = &batch.id;
    print_state(context, id, state, &format!("batch {id} is over; there is nothing to go on with"), false);
    if !context.ui.json {
        let retry_hint = retry_hint(&batch_progress(project, batch)?);
        let default_hint = || format!("try a task again: git proq resume {id} --retry ID");
        context.ui.hint(retry_hint.unwrap_or_else(default_hint));
    }
    Ok(Exit::Success)
}

/// Returns the newest batch if one of its tasks may be able to land now. Returns `None` if the command line
/// names a batch, or if some batch is unfinished.
fn last_repairable_batch(project: &Project, args: &Resume) -> Result<Option<BatchRecord>, Failure> {
    if args.batch.is_some() || !unfinished_batches(project).is_empty() {
        return Ok(None);
    }
    let Some(last) = create::list_batches(project, false).pop() else { return Ok(None) };
    Ok(is_repairable(project, &last)?.then_some(last))
}

/// Returns whether a finished batch may have tasks that can land now. A conflict or a failed check may have
/// blocked a task. A user may have completed a task after its run failed. Or the landing of a task was
/// undone.
fn is_repairable(project: &Project, batch: &BatchRecord) -> Result<bool, Failure> {
    let loaded = Batch::load(&project.store, &batch.id)?;
    let state = loaded.fold_state(&loaded.read_log_lines(&project.store)?);
    let is_stuck = |task: usize| {
        matches!(
            state.task_outcome(task),
            Some(task_phase::TaskOutcome::Failed(
                task_phase::FailureReason::ConflictUnresolved | task_phase::FailureReason::CheckFailed
            ))
        )
    };
    let is_repaired =
        || batch_progress(project, batch).map(|progress| progress.tasks.iter().any(|task| task.is_repaired));
    Ok((0..loaded.tasks.len()).any(is_stuck)
        || undone_landings::has_undone_landings(project, &loaded)?
        || is_repaired()?)
}

/// Completes the final steps of a finished batch, whose scheduler was killed before it completed them.
fn finish_interrupted_batch(
    context: &CommandContext,
    project: &Project,
    args: &Resume,
    follower: BatchFollower,
    id: &BatchId,
) -> CommandResult {
    let _resumed = scheduler_process::resume_scheduler(project, id)?;
    if args.detach {
        print_state(context, id, "over", &format!("batch {id} goes on with its end"), false);
        return Ok(Exit::Success);
    }
    follow(context, project, follower)
}

pub(crate) fn abort(context: &CommandContext, args: &Abort) -> CommandResult {
    let project = context.project_for_write()?;
    let batch = find_named_or_only_batch(&project, args.batch.as_deref(), "abort")?;
    require_not_cleaned_up(&batch)?;
    let id = &batch.id;
    let (finished, word) = outcome_and_state_word(&project.store, &batch)?;
    if finished.is_some() {
        print_state(context, id, word, &format!("batch {id} is over already"), args.dry_run);
        return Ok(Exit::Success);
    }
    if args.dry_run {
        print_state(context, id, word, &format!("would abort batch {id}"), true);
        return Ok(Exit::Success);
    }
    send_control_request(&project, id, ControlRequestKind::Abort { hard: args.hard })?;
    let (finished, word) = outcome_and_state_word(&project.store, &batch)?;
    let text = match finished {
        Some(_) => format!("batch {id} is aborted"),
        None if args.hard => format!("batch {id} is being aborted: its agents are being stopped"),
        None => format!("batch {id} is being aborted: its agents are told to wrap up"),
    };
    print_state(context, id, word, &text, false);
    if !context.ui.json {
        context.ui.hint(format!(
            "all lanes stay; go on with it: git proq resume {id}   tidy up: git proq cleanup --batch {id}"
        ));
    }
    Ok(Exit::Success)
}
