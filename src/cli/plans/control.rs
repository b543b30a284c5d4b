//! Commands that control a batch: pause, resume and abort.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use proq_base::money::NanoDollars;
use proq_lib::board::batch_hints::retry_hint;
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
    let halted_text = match request.halt {
        Halt::Pause => format!("batch {id} does not go on: it is {}", plan.state),
        Halt::Abort { .. } => format!("batch {id} is over already"),
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
        let (text, hint) = match request.halt {
            Halt::Pause => (
                match outcome.state {
                    word @ ("paused" | "over") => format!("is {word}"),
                    _ => "pauses once what runs has ended".to_owned(),
                },
                format!("see how far it is: git proq status {id}   go on with it: git proq resume {id}"),
            ),
            Halt::Abort { hard } => (
                match (outcome.is_over, hard) {
                    (true, _) => "is aborted".to_owned(),
                    (false, true) => "is being aborted: its agents are being stopped".to_owned(),
                    (false, false) => "is being aborted: its agents are told to wrap up".to_owned(),
                },
                format!(
                    "all lanes stay; go on with it: git proq resume {id}   tidy up: git proq cleanup --batch {id}"
                ),
            ),
        };
        context.ui.print_line(format!("batch {id} {text}"));
        context.ui.hint(hint);
    })
}

pub(crate) fn resume(context: &CommandContext, args: &Resume) -> CommandResult {
    let project = context.project_for_write()?;
    let budget = args.budget.as_deref().map(|text| {
        let problem = "--budget takes US dollars; 0 is no limit";
        let example = "git proq resume --budget 12.50";
        NanoDollars::parse(text).ok_or(UsageError::MissingArgument { problem, example })
    });
    let (batch_name, retry) = (args.batch.clone(), args.retry.clone());
    let plan = resume::plan(&project, &ResumeRequest { batch_name, retry, budget: budget.transpose()? })?;
    if args.dry_run {
        let text = format!("would go on with batch {}", plan.batch);
        return context.show(plan, |context, _| context.ui.print_line(text));
    }
    let outcome = plan.execute(&project)?;
    let id = &outcome.batch;
    let (text, progress) = match outcome.resumption {
        Resumption::NothingToDo => {
            ("is over; there is nothing to go on with", Some(read_progress(&project, id)?))
        }
        _ if !args.detach => return follow(context, &project, outcome.follower),
        Resumption::CompletesEnd => ("goes on with its end", None),
        Resumption::Continues => ("goes on", None),
    };
    context.show(&outcome, |context, _| {
        context.ui.print_line(format!("batch {id} {text}"));
        let default_hint = || format!("try a task again: git proq resume {id} --retry ID");
        if let Some(progress) = progress {
            context.ui.hint(retry_hint(&progress).unwrap_or_else(default_hint));
        }
    })
}
