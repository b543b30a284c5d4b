//! The `git proq pick` command: lands one of several attempts, then discards the others.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use proq_base::explain::Exit;
use proq_lib::lane::removal::remove_lane::RemovalReason;
use proq_lib::merge::types::options::LandingOptions;
use proq_lib::merge::types::outcome::LandingReport;
use proq_lib::ops::lane_removal::LaneRemoval;
use proq_lib::ops::merge::MergeRequest;
use proq_lib::ops::pick;
use proq_lib::ops::pick::{PickOutcome, PickRequest};
use serde::Serialize;

use super::landing;
use super::landing_args::LandingArgs;
use crate::cli::arguments::candidates::{owned_lane_names, user_branch_names};
use crate::cli::invocation::caller;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::lanes::lane_removal::RemovalReporter;

/// Land one of several attempts, and discard the others
///
/// LANE lands as by `git proq merge`, with the same checks. Only when it is on its base, the other attempts of its group are
/// discarded as by `git proq discard --force`: their commits and uncommitted files are saved, their folders kept for a time.
/// Where it conflicts, fails a check or is refused, all of them stay.
///
/// While agents are at work in other attempts it is refused, and once another attempt has landed. With --stop or --force they are stopped, once LANE has landed.
///
/// `git proq undo` brings the other attempts back, another one takes the landing back as well. If it was cut off in between,
/// the same command once more discards what is left.
///
/// Exits as `git proq merge` does, and with 1 when an attempt could not be discarded.
///
/// Examples:
///     git proq pick pay-2
///     git proq pick pay-2 --strategy squash --stop
#[derive(Debug, Clone, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Pick {
    /// The attempt
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(owned_lane_names))]
    pub(crate) lane: String,
    /// Land on BRANCH instead of the lane's own base
    #[arg(long, value_name = "BRANCH", add = ArgValueCompleter::new(user_branch_names))]
    pub(crate) onto: Option<String>,
    /// Also if it failed, was stopped, or is not fit to land; and stop the agents of the others
    #[arg(long, short)]
    pub(crate) force: bool,
    /// Stop the agents that still run: its own first, and land what it has committed, the others' then
    #[arg(long)]
    pub(crate) stop: bool,
    /// How it lands
    #[command(flatten)]
    pub(crate) landing_flags: LandingArgs,
    /// Say what would land and what would be discarded, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// JSON output: the report of the landing, and the discarded attempts.
#[derive(Serialize)]
struct PickOutput<'a> {
    #[serde(flatten)]
    report: &'a LandingReport,
    group: &'a str,
    discarded: Vec<LaneRemoval>,
    dry_run: bool,
}

pub(crate) fn run(context: &CommandContext, args: &Pick) -> CommandResult {
    let project = context.project_for_write()?;
    caller::refuse_lane_agent(args.dry_run)?;
    let plan = pick::plan(&project, &args.request(context))?;
    let (group, landed_before, has_others) =
        (plan.group.clone(), plan.landed_before().cloned(), plan.has_others());
    if let Some(landed) = &landed_before {
        context.ui.status(format!("{} has landed on {} before", landed.lane, landed.onto));
    }
    let PickOutcome { merge, is_on_base, to_discard } =
        if args.dry_run { plan.forecast(&project, context)? } else { plan.execute(&project, context)? };
    if !context.ui.json && landed_before.is_none() {
        landing::print_text(context, &project, &merge, false);
    }
    merge.warnings.iter().for_each(|warning| context.ui.warn(warning));
    let mut exit = merge.report.exit();
    let mut discarded = Vec::new();
    if is_on_base {
        let reporter = RemovalReporter::new(context, &project, RemovalReason::Discard);
        let stop_agents = args.stop || args.force;
        let removal = pick::plan_discard(&project, &to_discard, stop_agents)?;
        discarded = match args.dry_run {
            true => removal.forecast(&project, &reporter),
            false => removal.execute(&project, &reporter)?,
        }
        .lanes;
        let all_discarded = discarded.iter().all(|removal| removal.error.is_none());
        exit = if exit == Exit::Success && !all_discarded { Exit::Refused } else { exit };
    } else if !context.ui.json && has_others {
        context.ui.status(format!("nothing was discarded; the attempts of '{group}' stay as they are"));
    }
    if context.ui.json {
        context.ui.print_json(PickOutput {
            report: &merge.report,
            group: &group,
            discarded,
            dry_run: args.dry_run,
        });
    } else if discarded.iter().any(|removal| removal.removed) {
        context.ui.hint("bring the others back: git proq undo   once more takes the landing back too");
    }
    Ok(exit)
}

impl Pick {
    /// Returns the request for this pick.
    fn request(&self, context: &CommandContext) -> PickRequest {
        let request = self.landing_flags.request(context);
        let options = LandingOptions { onto: self.onto.clone(), force: self.force, ..request.options };
        PickRequest { lane: self.lane.clone(), merge: MergeRequest { stop: self.stop, options, ..request } }
    }
}
