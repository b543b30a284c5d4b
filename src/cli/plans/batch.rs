//! `git proq batch`: lists and controls batches.

use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCompleter;

use super::control::{Abort, Pause, Resume};
use super::report_batch::Report;
use super::status::BatchStatusArgs;
use super::{control, report_batch, status};
use crate::cli::arguments::candidates::{batch_ids, user_branch_names};
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::land::landing_args::LandingArgs;
use crate::cli::land::merge;
use crate::cli::land::merge_args::Merge;

/// Work with batches: runs of a plan
///
/// Without a command, list all batches. `git proq swarm` starts one.
///
/// Examples:
///     git proq batch
///     git proq batch status
///     git proq batch land 20261121-1405 --dry-run
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct BatchArgs {
    /// What to do
    #[command(subcommand)]
    command: Option<BatchCommand>,
}

/// What can be done with a batch.
#[derive(Debug, Subcommand)]
enum BatchCommand {
    Status(BatchStatusArgs),
    Report(Report),
    Pause(Pause),
    Resume(Resume),
    Abort(Abort),
    Land(Box<Land>),
}

/// Land the work of a batch on its base, in one step
///
/// What has landed on the branch of the batch lands through a lane of its own, `swarm-BATCH`.
///
/// Example:
///     git proq batch land 20261121-1405
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
struct Land {
    /// The batch
    #[arg(value_name = "BATCH", add = ArgValueCompleter::new(batch_ids))]
    batch: String,
    /// Land on BRANCH instead of the batch's base
    #[arg(long, value_name = "BRANCH", add = ArgValueCompleter::new(user_branch_names))]
    onto: Option<String>,
    /// Land a strict batch even if not all of its criteria are met
    #[arg(long)]
    force: bool,
    /// Allow deleting more than half of the files of the base
    #[arg(long)]
    allow_deletions: bool,
    /// How it lands
    #[command(flatten)]
    landing_flags: LandingArgs,
    /// Show what would be done, without doing it
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(context: &CommandContext, args: BatchArgs) -> CommandResult {
    match args.command {
        None => status::show_batches(context, &BatchStatusArgs { batch: None, all: true }),
        Some(BatchCommand::Status(args)) => status::show_batches(context, &args),
        Some(BatchCommand::Report(args)) => report_batch::run(context, &args),
        Some(BatchCommand::Pause(args)) => control::pause(context, &args),
        Some(BatchCommand::Resume(args)) => control::resume(context, &args),
        Some(BatchCommand::Abort(args)) => control::abort(context, &args),
        Some(BatchCommand::Land(args)) => merge::run(context, &args.into_merge()),
    }
}

impl Land {
    /// Returns the arguments of `git proq merge --batch` that do the same.
    fn into_merge(self) -> Merge {
        let Land { batch, onto, force, allow_deletions, landing_flags, dry_run } = self;
        Merge { onto, force, allow_deletions, landing_flags, dry_run, batch: Some(batch), ..Merge::default() }
    }
}
