//! The `git proq pick` command: lands one of several attempts, then discards the others.

use std::path::Path;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use proq_base::hint;
use proq_lib::lane::removal::remove_lane::RemovalReason;
use proq_lib::merge::types::options::LandingOptions;
use proq_lib::merge::types::outcome::LandingReport;
use proq_lib::ops::land::merge::{MergeOutcome, MergeRequest};
use proq_lib::ops::land::pick;
use proq_lib::ops::land::pick::{PickOutcome, PickRequest};
use proq_lib::ops::lane_removal::LaneRemoval;
use serde::Serialize;

use super::landing;
use super::landing_args::LandingArgs;
use crate::cli::arguments::candidates::{owned_lane_names, user_branch_names};
use crate::cli::invocation::caller;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::lanes::lane_removal::RemovalReporter;

/// Merge one of several attempts, and delete the others
///
/// LANE merges as by `git proq merge`, with the same checks. Once it is on its base, the other attempts of
/// its group are deleted as by `git proq discard --force`: their commits and uncommitted files are saved.
/// If LANE conflicts, fails a check or is refused, all attempts stay.
///
/// Refused while agents of other attempts run, and once another attempt has merged. With --stop or --force,
/// the agents are stopped after LANE has merged.
///
/// `git proq undo` restores the other attempts; another one also undoes the merge. After an interruption,
/// run the same command again to delete what is left.
///
/// Exits as `git proq merge` does, and with 1 if an attempt could not be deleted.
///
/// Examples:
///     git proq pick pay-2
///     git proq pick pay-2 --strategy squash --stop
#[derive(Debug, Clone, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Pick {
    /// Attempt to merge
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(owned_lane_names))]
    pub(crate) lane: String,
    /// Merge into BRANCH instead of the lane's base
    #[arg(long, value_name = "BRANCH", add = ArgValueCompleter::new(user_branch_names))]
    pub(crate) onto: Option<String>,
    /// Pick even if it failed or was stopped; stop the other agents
    #[arg(long, short_alias = 'f')]
    pub(crate) force: bool,
    /// Stop running agents of all attempts
    #[arg(long)]
    pub(crate) stop: bool,
    /// How it lands
    #[command(flatten)]
    pub(crate) landing_flags: LandingArgs,
    /// Show what would be done, without doing it
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// JSON output: the report of the landing, and the discarded attempts.
#[derive(Serialize)]
struct PickOutput {
    #[serde(flatten)]
    report: LandingReport,
    group: String,
    discarded: Vec<LaneRemoval>,
    dry_run: bool,
}

pub(crate) fn run(context: &CommandContext, args: &Pick) -> CommandResult {
    let project = context.project_for_write()?;
    caller::refuse_lane_agent(args.dry_run)?;
    let mut plan = pick::plan(&project, &args.request(&context.dir))?;
    if args.landing_flags.edit && !args.dry_run {
        plan.edit_messages(&project)?;
    }
    let (group, has_others) = (plan.group.clone(), plan.has_others());
    let has_landed_before = plan.landed_before().is_some();
    if let Some(landed) = plan.landed_before() {
        context.ui.status(format!("{} has already landed on {}", landed.lane, landed.onto));
    }
    let reporter = RemovalReporter::new(context, &project, RemovalReason::Discard);
    let on_landed = |merge: &MergeOutcome| {
        if !context.ui.json && !has_landed_before {
            landing::print_text(context, &project, merge, false);
        }
        merge.warnings.iter().for_each(|warning| context.ui.warn(warning));
    };
    let outcome = plan.execute(&project, &reporter, &on_landed)?;
    let exit = match outcome.exit() {
        exit if args.dry_run => landing::exit_of_forecast(context, &outcome.merge.report, exit),
        exit => exit,
    };
    let PickOutcome { merge: MergeOutcome { report, dry_run, .. }, discarded } = outcome;
    if context.ui.json {
        let discarded = discarded.unwrap_or_default();
        context.ui.print_json(PickOutput { report, group, discarded, dry_run });
    } else if discarded.iter().flatten().any(|removal| removal.removed) {
        context.ui.hint(hint!("restore the others; once more, undo the landing too: git proq undo"));
    } else if discarded.is_none() && has_others {
        context.ui.status(format!("nothing was discarded: the attempts of '{group}' are unchanged"));
    }
    Ok(exit)
}

impl Pick {
    /// Returns the request for this pick, by a command that was started in `dir`.
    fn request(&self, dir: &Path) -> PickRequest {
        let request = self.landing_flags.request(dir);
        let options = LandingOptions { onto: self.onto.clone(), force: self.force, ..request.options };
        PickRequest {
            lane: self.lane.clone(),
            merge: MergeRequest { stop: self.stop, options, ..request },
            dry_run: self.dry_run,
        }
    }
}
