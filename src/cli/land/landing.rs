//! Landing of lanes for the commands that land: options, prompts, plan and report.

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::time::Duration;

use proq_base::config::key::Key;
use proq_base::config::layers::{Layers, Origin};
use proq_base::config::settings::Settings;
use proq_base::lane_name::LaneName;
use proq_lib::agent::command::agent_command;
use proq_lib::agent::launch::start_supervisor;
use proq_lib::lane::Project;
use proq_lib::lane::inspection::idle_lane;
use proq_lib::merge::land::landing;
use proq_lib::merge::resolution::resolve_agent;
use proq_lib::merge::types::options::{LandingOptions, PushMode, StackOrder};
use proq_lib::merge::types::outcome::{LandingPlan, LandingReport, PlannedLane};
use proq_lib::merge::types::{options, resolver};
use proq_lib::swarm::landing::batch_landing;
use proq_store::locks::lock::WaitLimit;
use proq_store::records::lane::{LaneRecord, MergeStrategy};
use serde::Serialize;

use super::landing_outcomes::print_outcomes;
use super::merge_args::Merge;
use super::merge_retry;
use super::unlanded_batches::print_unlanded_batches;
use crate::cli::invocation::approval_prompt;
use crate::cli::invocation::confirm::{cannot_prompt_user, prompt_yes_no};
use crate::cli::invocation::context::CommandContext;
use crate::cli::invocation::failure::Failure;
use crate::cli::invocation::usage_error::UsageError;
use crate::cli::terminal::{table, ui};

#[derive(Serialize)]
struct MergeOutput<'a> {
    #[serde(flatten)]
    report: &'a LandingReport,
    dry_run: bool,
}

/// Lands lanes, prints the outcomes, and starts the retries of automatic merges that waited for this landing.
pub(crate) fn land_and_retry_waiting(
    context: &CommandContext,
    project: &Project,
    args: &Merge,
) -> Result<LandingReport, Failure> {
    let report = land_and_print(context, project, args, None)?;
    if !args.dry_run {
        let attempted: Vec<LaneName> = report.lanes.iter().map(|line| line.lane.clone()).collect();
        merge_retry::start_auto_merge_retries(
            context,
            project,
            &merge_retry::landing_bases(&report),
            &attempted,
        );
    }
    Ok(report)
}

/// Lands lanes and prints the outcomes. `auto_lane` is the lane whose automatic merge this is.
pub(crate) fn land_and_print(
    context: &CommandContext,
    project: &Project,
    args: &Merge,
    auto_lane: Option<&LaneRecord>,
) -> Result<LandingReport, Failure> {
    let (report, agent) = run_landing(context, project, args, auto_lane)?;
    print_report(context, project, args, agent, &report);
    Ok(report)
}

/// Prints the outcomes of a landing, as JSON or as text.
pub(crate) fn print_report(
    context: &CommandContext,
    project: &Project,
    args: &Merge,
    agent: Option<&str>,
    report: &LandingReport,
) {
    if context.ui.json {
        context.ui.print_json(MergeOutput { report, dry_run: args.dry_run });
    } else {
        print_text_report(context, project, args, agent, report);
    }
}

/// Lands lanes, and returns the report and the agent that resolves conflicts.
pub(crate) fn run_landing<'a>(
    context: &CommandContext,
    project: &'a Project,
    args: &'a Merge,
    auto_lane: Option<&'a LaneRecord>,
) -> Result<(LandingReport, Option<&'a str>), Failure> {
    let agent = choose_conflict_agent(context, project, args, auto_lane)?;
    // Nothing lands where a conflict agent could not be started.
    project.git_proq_path()?;
    let allowance = resolver::Allowance::default();
    let run_options = agent_command::RunOptions::default();
    let session_ends =
        if auto_lane.is_some() { Vec::new() } else { confirm_session_ends(context, project, args)? };
    let request = LandingOptions {
        resolver: agent.map(|agent| resolver::Resolver {
            agent,
            retries: args.landing_flags.conflict_retries.unwrap_or(project.settings.conflict_retries),
            allowance: &allowance,
            run_options: &run_options,
            current_dir: &context.dir,
        }),
        lanes: &args.lanes,
        simulated_lane: args.simulated_lane.as_deref(),
        all: args.all,
        onto: args.onto.as_deref(),
        force: args.force,
        allow_deletions: args.allow_deletions,
        stopped_lanes: args.stop.then_some(&[]),
        endable_sessions: &session_ends,
        pick: args.pick,
        is_automatic: auto_lane.is_some(),
        keep_lanes: args.landing_flags.no_cleanup,
        strategy: args.landing_flags.strategy.as_deref().and_then(MergeStrategy::from_name),
        skip_hooks: args.landing_flags.no_verify,
        order: StackOrder::from_name(&args.order).unwrap_or_default(),
        atomic: args.atomic,
        push: push_mode(&project.settings, args),
        on_plan: &|plan| print_lanes_to_try(context, plan),
        dry_run: args.dry_run,
        extra_checks: &args.landing_flags.verify,
        no_checks: args.landing_flags.no_checks,
        jobs: args.landing_flags.jobs.map(usize::from),
        queue_wait: lock_wait_limit(args.landing_flags.lock_timeout),
    };
    Ok((landing::land_lanes(project, &request)?, agent))
}

/// Confirms with the user which agent sessions to end in lanes that are done. Returns no lane where the user
/// cannot be prompted.
fn confirm_session_ends(
    context: &CommandContext,
    project: &Project,
    args: &Merge,
) -> Result<Vec<LaneName>, Failure> {
    if args.stop || args.dry_run || cannot_prompt_user(context) {
        return Ok(Vec::new());
    }
    let lanes = match args.all {
        true => project.owned_lanes()?,
        false => args.lanes.iter().map(|name| project.find_lane(name)).collect::<Result<_, _>>()?,
    };
    let mut out = Vec::new();
    for lane in lanes {
        if idle_lane::is_idle_with_work(project, &lane)? {
            let name = lane.name;
            let question = format!(
                "lane '{name}' is done, and {}: end its session and land it? [y/N] ",
                idle_lane::IDLE_DETAIL
            );
            out.extend(prompt_yes_no(&question).then_some(name));
        }
    }
    Ok(out)
}

/// Prints the outcomes of a landing as text. With `--all`, also prints the batches whose work is not on their
/// base.
pub(crate) fn print_text_report(
    context: &CommandContext,
    project: &Project,
    args: &Merge,
    agent: Option<&str>,
    report: &LandingReport,
) {
    let is_named = agent.is_none() || args.landing_flags.conflict_agent.as_deref() == agent;
    let is_approved =
        is_named || agent.is_none_or(|agent| resolve_agent::require_agent_approved(project, agent).is_ok());
    let batches = if args.all { batch_landing::list_unlanded_batches(project) } else { Vec::new() };
    print_outcomes(context, args, (agent, if is_approved { "" } else { ", once it is approved" }), report);
    print_unlanded_batches(context, project, &batches);
}

/// Converts `--lock-timeout` to a limit. Without it a landing waits for its turn forever.
fn lock_wait_limit(limit: Option<Duration>) -> WaitLimit {
    match limit {
        None => WaitLimit::Forever,
        Some(Duration::ZERO) => WaitLimit::NoWait,
        Some(limit) => WaitLimit::AtMost(limit),
    }
}

/// Returns the agent that resolves conflicts, or `None`. Prompts for the approvals that the landing needs,
/// and fails if the user declines.
fn choose_conflict_agent<'a>(
    context: &CommandContext,
    project: &'a Project,
    args: &'a Merge,
    auto_lane: Option<&'a LaneRecord>,
) -> Result<Option<&'a str>, Failure> {
    let requested = args.landing_flags.conflict_agent.as_deref();
    // `--atomic` excludes a conflict agent: resolving one lane after the other cannot land all or none.
    let configured = if requested.is_some() || args.landing_flags.no_conflict_agent || args.atomic {
        None
    } else {
        project.settings.conflict_agent.as_deref()
    };
    let configured = configured.filter(|agent| {
        let is_installed = start_supervisor::require_installed(&project.layers, agent, &context.dir).is_ok();
        if !is_installed {
            context.ui.warn(format!(
                "there is no program for merge.conflict_agent '{agent}'; conflicts are left to you"
            ));
        }
        is_installed
    });
    if !args.dry_run {
        let bases = match args.landing_flags.no_checks || cannot_prompt_user(context) {
            true => BTreeSet::new(),
            false => options::landing_bases(project, &args.lanes, args.all, args.onto.as_deref())?,
        };
        approval_prompt::prompt_landing_approvals(context, project, bases, configured)?;
        configured.map_or(Ok(()), |agent| resolve_agent::require_agent_approved(project, agent))?;
    }
    let requested = requested.filter(|agent| !agent.is_empty());
    if let Some(agent) = requested {
        start_supervisor::require_installed(&project.layers, agent, &context.dir)?;
    }
    let lane_agent = auto_lane.and_then(|lane| usable_lane_agent(context, &project.layers, lane));
    let agent = requested.or(configured).or(lane_agent);
    if agent.is_none()
        && args.landing_flags.conflict_retries.is_some()
        && project.settings.conflict_agent.is_none()
    {
        let problem = "--conflict-retries is for an agent, and none is sent at conflicts";
        return Err(UsageError::MissingArgument {
            problem,
            example: "git proq merge --all --conflict-agent claude",
        }
        .into());
    }
    Ok(agent)
}

/// Returns the agent of a lane that lands automatically, if it can resolve conflicts. A
/// `merge.conflict_agent` setting takes precedence, even if it is empty.
fn usable_lane_agent<'a>(context: &CommandContext, layers: &Layers, lane: &'a LaneRecord) -> Option<&'a str> {
    let key = Key::find("merge.conflict_agent")?;
    let is_configured = !matches!(layers.get(key).1, Origin::Default);
    let agent = lane.agent.as_deref().filter(|agent| *agent != "command" && !is_configured)?;
    start_supervisor::require_installed(layers, agent, &context.dir).is_ok().then_some(agent)
}

/// Returns whether a landing pushes, by flag or by setting, and whether the push may prompt the user.
fn push_mode(settings: &Settings, args: &Merge) -> PushMode {
    if args.landing_flags.no_push || !(args.landing_flags.push || settings.merge_push) {
        return PushMode::Never;
    }
    if std::io::stdin().is_terminal() && ui::stderr_is_terminal() {
        PushMode::MayPrompt
    } else {
        PushMode::WithoutPrompt
    }
}

/// Prints the lanes that a landing will try, so that a user at a terminal can read them before a ref moves.
fn print_lanes_to_try(context: &CommandContext, plan: &LandingPlan) {
    if context.ui.json || context.ui.quiet || plan.lanes.len() < 2 || !ui::stderr_is_terminal() {
        return;
    }
    let row = |plan_line: &PlannedLane| {
        let (commits, files) =
            plan_line.size.map_or_else(Default::default, |(c, f)| (c.to_string(), f.to_string()));
        let plan_cell = plan_line
            .reason
            .as_ref()
            .map_or_else(|| plan.strategy.to_string(), |reason| format!("not: {reason}"));
        vec![plan_line.lane.to_string(), plan_line.onto.clone(), commits, files, plan_cell]
    };
    let head = ["LANE", "ONTO", "COMMITS", "FILES", "PLAN"];
    context.ui.status(table::render(&head, plan.lanes.iter().map(row).collect()));
    context.ui.status("");
}
