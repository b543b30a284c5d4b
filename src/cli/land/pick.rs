//! The `git proq pick` command: lands one of several attempts, then discards the others.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use proq_base::explain::{Exit, Explain};
use proq_base::fail_points;
use proq_base::lane_name::LaneName;
use proq_lib::lane::Project;
use proq_lib::lane::inspection::attempts;
use proq_lib::lane::removal::remove_lane::RemovalReason;
use proq_lib::lane::state::lane_state::effective_state;
use proq_lib::merge::types::outcome::{LandingReport, LaneOutcome, Verdict};
use proq_lib::ops::lane_removal::LaneRemoval;
use proq_lib::ops::removal::RemovalPlan;
use proq_store::records::lane::LaneRecord;
use proq_store::records::lane_state::LaneState;
use serde::Serialize;

use super::landing_args::LandingArgs;
use super::merge_args::Merge;
use super::{landing, merge_retry};
use crate::cli::arguments::candidates::{owned_lane_names, user_branch_names};
use crate::cli::invocation::caller;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::failure::Failure;
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

/// Reason why an attempt cannot be picked.
#[derive(Debug, thiserror::Error, Explain)]
pub enum PickError {
    /// The lane does not belong to a group of attempts.
    #[error("lane '{lane}' is not one of several attempts; nothing was changed")]
    #[hint("land it: git proq merge {lane}")]
    NotInGroup {
        /// Name of the lane.
        lane: LaneName,
    },
    /// Agents are still running in attempts of the group.
    #[error("agents are still at work in {}; nothing was changed", busy.join(", "))]
    #[hint("wait for them: git proq wait {}", busy.join(" "))]
    #[hint("or stop them: git proq pick {lane} --stop")]
    AgentsRunning {
        /// Name of the attempt to pick.
        lane: LaneName,
        /// Names of the attempts with running agents.
        busy: Vec<LaneName>,
    },
}

pub(crate) fn run(context: &CommandContext, args: &Pick) -> CommandResult {
    let project = context.project_for_write()?;
    caller::refuse_lane_agent(args.dry_run)?;
    let (picked, landed_before) = find_attempt_or_landed(&project, &args.lane)?;
    let Some(group) = picked.group.clone() else {
        return Err(PickError::NotInGroup { lane: picked.name }.into());
    };
    let other_lanes = other_attempts(&project, &picked, &group, landed_before.is_some())?;
    require_no_running_agents(&project, &picked, &other_lanes, args)?;
    let report = match landed_before {
        Some(outcome) => {
            context.ui.status(format!("{} has landed on {} before", outcome.lane, outcome.onto));
            LandingReport { lanes: vec![outcome], ..LandingReport::default() }
        }
        None => land_picked_attempt(context, &project, args, &picked.name)?,
    };
    let mut exit = report.exit();
    let mut discarded = Vec::new();
    let is_on_base = |outcome: &LaneOutcome| {
        outcome.lane == picked.name
            && matches!(outcome.result, Verdict::Landed | Verdict::Resolved | Verdict::AlreadyLanded)
    };
    if report.lanes.iter().any(is_on_base) {
        fail_points::hit("pick.landed");
        discarded = discard_others(context, &project, args, other_lanes)?;
        let all_discarded = discarded.iter().all(|removal| removal.error.is_none());
        exit = if exit == Exit::Success && !all_discarded { Exit::Refused } else { exit };
    } else if !context.ui.json && !other_lanes.is_empty() {
        context.ui.status(format!("nothing was discarded; the attempts of '{group}' stay as they are"));
    }
    if context.ui.json {
        context.ui.print_json(PickOutput {
            report: &report,
            group: &group,
            discarded,
            dry_run: args.dry_run,
        });
    } else if discarded.iter().any(|removal| removal.removed) {
        context.ui.hint("bring the others back: git proq undo   once more takes the landing back too");
    }
    Ok(exit)
}

/// Returns the lane to pick. If it has landed and was removed, returns its last record and an outcome for it:
/// an earlier pick may have been interrupted before it discarded the other attempts.
fn find_attempt_or_landed(
    project: &Project,
    name_or_branch: &str,
) -> Result<(LaneRecord, Option<LaneOutcome>), Failure> {
    let lookup_error = match project.find_lane(name_or_branch) {
        Ok(lane) => return Ok((lane, None)),
        Err(e) => e,
    };
    let name = name_or_branch
        .strip_prefix(&format!("{}/", project.settings.branch_prefix))
        .unwrap_or(name_or_branch);
    let past_lanes = project.past_owned_lanes().into_iter().map(|(_, past)| past);
    let landed_lanes = past_lanes.filter(|past| past.name == name && past.state() == LaneState::Landed);
    let latest = landed_lanes
        .filter_map(|past| Some((past.landed.clone()?, past)))
        .max_by_key(|(landed, _)| landed.landed_at);
    let Some((landed, past)) = latest else { return Err(lookup_error.into()) };
    let Some(group) = &past.group else { return Err(lookup_error.into()) };
    if other_attempts(project, &past, group, true)?.is_empty() {
        return Err(lookup_error.into());
    }
    let outcome = LaneOutcome::new(&past.name, &landed.onto, Verdict::AlreadyLanded);
    Ok((past, Some(LaneOutcome { cleaned_up: true, ..outcome })))
}

/// Returns the other attempts of a group. If the picked lane is gone, attempts created after its landing are
/// left out, since they belong to a new group of the same name.
fn other_attempts(
    project: &Project,
    picked: &LaneRecord,
    group: &str,
    picked_is_gone: bool,
) -> Result<Vec<LaneRecord>, Failure> {
    let mut attempts = attempts::attempts_of_group(project, group)?;
    let landed_at = picked.landed.as_ref().filter(|_| picked_is_gone).map(|landed| landed.landed_at);
    attempts.retain(|lane| lane.name != picked.name && landed_at.is_none_or(|landed| lane.created <= landed));
    Ok(attempts)
}

/// Refuses if an agent runs in an attempt and no flag stops it: `--stop` stops all agents, `--force` those of
/// the other attempts.
fn require_no_running_agents(
    project: &Project,
    picked: &LaneRecord,
    others: &[LaneRecord],
    args: &Pick,
) -> Result<(), Failure> {
    let mut busy = Vec::new();
    for lane in others.iter().chain(std::iter::once(picked)) {
        let will_be_stopped = args.stop || (args.force && lane.name != picked.name);
        if !will_be_stopped && effective_state(project, lane)?.0.is_busy() {
            busy.push(lane.name.clone());
        }
    }
    if busy.is_empty() {
        return Ok(());
    }
    Err(PickError::AgentsRunning { lane: picked.name.clone(), busy }.into())
}

/// Lands the attempt as `git proq merge` does, and prints the outcome.
fn land_picked_attempt(
    context: &CommandContext,
    project: &Project,
    args: &Pick,
    lane: &LaneName,
) -> Result<LandingReport, Failure> {
    let args = Merge {
        batch: None,
        lanes: vec![lane.to_string()],
        all: false,
        order: "given".to_owned(),
        atomic: false,
        onto: args.onto.clone(),
        allow_deletions: false,
        force: args.force,
        stop: args.stop,
        landing_flags: args.landing_flags.clone(),
        dry_run: args.dry_run,
        auto: None,
        pick: true,
        simulated_lane: None,
    };
    let (report, agent) = landing::run_landing(context, project, &args, None)?;
    if !context.ui.json {
        landing::print_text_report(context, project, &args, agent, &report);
    }
    if !args.dry_run {
        merge_retry::start_auto_merge_retries(
            context,
            project,
            &merge_retry::landing_bases(&report),
            std::slice::from_ref(lane),
        );
    }
    Ok(report)
}

/// Discards the other attempts in one operation, and returns what became of each.
fn discard_others(
    context: &CommandContext,
    project: &Project,
    args: &Pick,
    others: Vec<LaneRecord>,
) -> Result<Vec<LaneRemoval>, Failure> {
    // An attempt that was removed concurrently needs no discard. A lane that was recreated under its name is
    // another lane.
    let still_exists =
        |lane: &LaneRecord| project.lane(&lane.name).is_ok_and(|current| current.is_same_lane(lane));
    let plan = RemovalPlan {
        operation: "pick",
        lanes: others.into_iter().filter(still_exists).map(LaneRecord::into_any).collect(),
        reason: RemovalReason::Discard,
        force: true,
        stop_agents: args.stop || args.force,
        are_named: true,
    };
    let reporter = RemovalReporter::new(context, project, RemovalReason::Discard);
    Ok(match args.dry_run {
        true => plan.forecast(project, &reporter),
        false => plan.execute(project, &reporter)?,
    }
    .lanes)
}
