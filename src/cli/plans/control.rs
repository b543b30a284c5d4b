//! Commands that control a batch: pause, resume and abort.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use proq_base::hint;
use proq_base::money::NanoDollars;
use proq_lib::board::batch_hints::{abort_hint, retry_hint};
use proq_lib::swarm::ops::batch_lookup::read_progress;
use proq_lib::swarm::ops::control::{Halt, HaltRequest};
use proq_lib::swarm::ops::resume::{ResumeRequest, Resumption};
use proq_lib::swarm::ops::{control, resume};

use super::follow_batch::follow;
use crate::cli::arguments::candidates::batch_ids;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::usage_error::UsageError;

/// Pause a batch
///
/// Nothing new starts. Running tasks finish and land first; `git proq batch resume` continues. BATCH can be
/// left out while one is open.
///
/// Example:
///     git proq batch pause
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Pause {
    /// Batch ID [default: the open batch]
    #[arg(value_name = "BATCH", add = ArgValueCompleter::new(batch_ids))]
    batch: Option<String>,
    /// Show what would be done, without doing it
    #[arg(long)]
    dry_run: bool,
}

/// Resume a batch and follow its progress
///
/// Continues a batch that is paused, was aborted, or whose process was killed: running agents are taken
/// over, finished ones are found, and nothing runs twice. A conflict that was resolved meanwhile lands, and
/// failed checks run again. A batch that is running is only followed. `git proq batch report` has what
/// happened before.
///
/// Examples:
///     git proq batch resume
///     git proq batch resume 20261122-104500 --retry auth/login --detach
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Resume {
    /// Batch ID [default: the open batch]
    #[arg(value_name = "BATCH", add = ArgValueCompleter::new(batch_ids))]
    batch: Option<String>,
    /// Retry task ID, however often it failed [can be repeated]
    #[arg(long, value_name = "ID")]
    retry: Vec<String>,
    /// New limit of the total cost, in US dollars
    #[arg(long, value_name = "USD")]
    budget: Option<String>,
    /// Return once the batch has resumed
    #[arg(long)]
    detach: bool,
    /// Show what would be done, without doing it
    #[arg(long)]
    dry_run: bool,
}

/// Abort a batch (resumable)
///
/// Agents are asked to finish up, and stopped after agent.abort_grace seconds. All lanes and branches stay,
/// and so does the progress of the batch: `git proq batch resume` continues it, and `git proq cleanup --batch`
/// deletes it.
///
/// Examples:
///     git proq batch abort
///     git proq batch abort --hard
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Abort {
    /// Batch ID [default: the open batch]
    #[arg(value_name = "BATCH", add = ArgValueCompleter::new(batch_ids))]
    batch: Option<String>,
    /// Stop agents at once
    #[arg(long)]
    hard: bool,
    /// Show what would be done, without doing it
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn pause(context: &CommandContext, args: &Pause) -> CommandResult {
    halt(context, &HaltRequest { batch_name: args.batch.clone(), halt: Halt::Pause }, args.dry_run)
}

pub(crate) fn abort(context: &CommandContext, args: &Abort) -> CommandResult {
    let halt_kind = Halt::Abort { hard: args.hard };
    halt(context, &HaltRequest { batch_name: args.batch.clone(), halt: halt_kind }, args.dry_run)
}

fn halt(context: &CommandContext, request: &HaltRequest, dry_run: bool) -> CommandResult {
    let project = context.project_for_write()?;
    let plan = control::plan(&project, request)?;
    let id = plan.batch.clone();
    let halted_text = match plan.outcome_word() {
        Some(outcome) => format!("batch {id} has already ended: {outcome}"),
        None => format!("batch {id} is already {}", plan.state),
    };
    if dry_run {
        let text = match request.halt {
            _ if plan.is_halted => halted_text,
            Halt::Pause => format!("would pause batch {id}"),
            Halt::Abort { .. } => format!("would abort batch {id}"),
        };
        return context.show(plan, |context, _| context.ui.print_line(text));
    }
    context.show(plan.execute(&project)?, |context, outcome| {
        if outcome.was_halted {
            return context.ui.print_line(halted_text);
        }
        let show_progress = || hint!("show its progress: git proq batch status {id}");
        let (text, last_hint) = match request.halt {
            Halt::Pause => (
                match outcome.state {
                    word @ ("paused" | "over") => format!("is {word}"),
                    _ => "will pause when its running tasks have ended".to_owned(),
                },
                show_progress(),
            ),
            Halt::Abort { hard } => (
                match (outcome.is_over, hard) {
                    (true, _) => "is aborted".to_owned(),
                    (false, true) => "is being aborted: its agents are being stopped".to_owned(),
                    (false, false) => "is being aborted: its agents were asked to finish up".to_owned(),
                },
                match outcome.is_over {
                    true => abort_hint(&project, &id),
                    false => show_progress(),
                },
            ),
        };
        context.ui.print_line(format!("batch {id} {text}"));
        context.ui.hint(hint!("resume it: git proq batch resume {id}"));
        context.ui.hint(last_hint);
    })
}

pub(crate) fn resume(context: &CommandContext, args: &Resume) -> CommandResult {
    let project = context.project_for_write()?;
    let budget = args.budget.as_deref().map(|text| {
        let problem = "--budget takes US dollars; 0 is no limit";
        let example = "git proq batch resume --budget 12.50";
        NanoDollars::parse(text).ok_or(UsageError::MissingArgument { problem, example })
    });
    let (batch_name, retry) = (args.batch.clone(), args.retry.clone());
    let plan = resume::plan(&project, &ResumeRequest { batch_name, retry, budget: budget.transpose()? })?;
    if args.dry_run {
        let text = format!("would resume batch {}", plan.batch);
        return context.show(plan, |context, _| context.ui.print_line(text));
    }
    let outcome = plan.execute(&project)?;
    let id = &outcome.batch;
    let (text, progress) = match outcome.resumption {
        Resumption::NothingToDo => ("has ended: nothing to resume", Some(read_progress(&project, id)?)),
        _ if !args.detach => return follow(context, &project, outcome.follower),
        Resumption::CompletesEnd => ("resumed its last steps", None),
        Resumption::Continues => ("resumed", None),
    };
    context.show(&outcome, |context, _| {
        context.ui.print_line(format!("batch {id} {text}"));
        let default_hint = || hint!("show its tasks: git proq batch status {id}");
        if let Some(progress) = progress {
            context.ui.hint(retry_hint(&progress).unwrap_or_else(default_hint));
        }
    })
}
