//! The `git proq swarm` command.

use proq_base::hint;
use proq_base::money::NanoDollars;
use proq_lib::lane::Project;
use proq_lib::lane::inspection::base::Base;
use proq_lib::swarm::ops::follow::BatchFollower;
use proq_lib::swarm::ops::start;
use proq_lib::swarm::ops::start::{NewBatchPlan, SwarmPlan, SwarmRequest};
use proq_plan::schedule::options::{LandingFailurePolicy, LandingMode, LaneAssignment, TaskFailurePolicy};

use super::follow_batch::follow;
use super::plan_text::render;
use super::swarm_args::Swarm;
use crate::cli::invocation::caller;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::usage_error::UsageError;

/// Maximum number of a plan's tasks that the command prints with `--yes`.
const MAX_PLAN_TASKS_SHOWN: usize = 20;

pub(crate) fn run(context: &CommandContext, args: &Swarm) -> CommandResult {
    let project = context.project_for_write()?;
    let plan = start::plan(&project, &swarm_request(context, &project, args)?)?;
    if let SwarmPlan::Start(plan) = &plan {
        print_plan(context, args, plan);
        if args.dry_run {
            plan.forecast(&project, context)?;
            return context.show(plan, |context, _| context.ui.print_line("nothing was started"));
        }
    }
    let outcome = plan.execute(&project, context)?;
    let id = &outcome.batch.id;
    if args.detach {
        return context.show(&outcome, |context, _| {
            context.ui.print_line(format!("started batch {id}"));
            context.ui.hint(hint!("show its progress: git proq batch status {id}"));
            context.ui.hint(hint!("follow it: git proq batch resume {id}"));
        });
    }
    let Some(follower) = outcome.follower else {
        context.ui.status(format!("batch {id}"));
        return follow(context, &project, BatchFollower::from_start(&project, id)?);
    };
    follow(context, &project, follower)
}

fn swarm_request(
    context: &CommandContext,
    project: &Project,
    args: &Swarm,
) -> Result<SwarmRequest, UsageError> {
    let budget = args.budget.as_deref().map(|text| {
        let (problem, example) = ("--budget takes US dollars", "git proq swarm plan.toml --budget 12.50");
        let cost = NanoDollars::parse(text).filter(|cost| !cost.is_zero());
        cost.ok_or(UsageError::MissingArgument { problem, example })
    });
    let modes = [
        (args.waves, LandingMode::Waves),
        (args.phases, LandingMode::Phases),
        (args.one_lane, LandingMode::OneLane),
    ];
    Ok(SwarmRequest {
        plan: args.source.required_plan(context, "git proq swarm plan.toml")?,
        agent: args.agent.clone(),
        model: args.model.clone(),
        base: args.base.clone(),
        max_parallel: args.max_parallel.map(usize::from),
        mode: modes.into_iter().find(|(is_given, _)| *is_given).map(|(_, mode)| mode),
        lane_assignment: args.strategy.as_deref().map(LaneAssignment::from_setting),
        auto_merge: args.auto_merge,
        on_task_failure: args.on_task_failure.as_deref().map(TaskFailurePolicy::from_setting),
        on_landing_failure: args.on_merge_failure.as_deref().map(LandingFailurePolicy::from_setting),
        budget: budget.transpose()?,
        strict: args.strict,
        retry: args.retry.clone(),
        ignore_earlier: args.new,
        ignore_dirty: args.ignore_dirty,
        progress_file: args.progress_file.clone(),
        is_approved: args.yes,
        dry_run: args.dry_run,
        calling_lane: caller::calling_lane(context, project),
    })
}

fn print_plan(context: &CommandContext, args: &Swarm, plan: &NewBatchPlan) {
    if context.ui.json || context.ui.quiet {
        return;
    }
    // With `--yes` you have agreed already and do not read hundreds of tasks.
    let max_tasks = if args.yes && !args.dry_run { MAX_PLAN_TASKS_SHOWN } else { usize::MAX };
    context.ui.status(render(&plan.view, max_tasks));
    context.ui.status("");
    let Base { branch, start } = &plan.base;
    let landing_text = match plan.options.mode {
        LandingMode::Continuous => "each task lands as it is done",
        LandingMode::Waves => "each wave lands together",
        LandingMode::Phases => "each phase lands together",
        LandingMode::OneLane => "all of it is done in one lane and lands together",
    };
    let target_text =
        if plan.auto_merge { format!("on {branch} itself") } else { "on a branch of its own".to_owned() };
    context.ui.status(format!("From {branch} ({}): {landing_text}, {target_text}.", start.short()));
}
