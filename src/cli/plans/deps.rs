//! The `git proq deps` command.

pub(crate) mod graph_text;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use proq_base::explain::Exit;
use proq_base::terminal_text;
use proq_lib::lane::Project;
use proq_lib::swarm::ops::dependencies::Dependencies;
use proq_lib::swarm::ops::find_needs;
use proq_lib::swarm::ops::find_needs::{FindNeedsRequest, FoundNeeds};
use proq_plan::plan_source::ProposedEdge;

use crate::cli::arguments::candidates::installed_agent_names;
use crate::cli::arguments::plan_source::PlanSource;
use crate::cli::invocation::caller;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::failure::Failure;
use crate::cli::plans::text_parts::clause;
use crate::cli::runs::follow_run::follow_quietly;
use crate::cli::terminal::usage;

/// Show task dependencies of a plan
///
/// Below each task are the tasks that need it. A task that needs others too says so, and what depends on a
/// task is shown once. In a phase whose tasks run in order, each depends on the previous one.
///
/// With --agent, an agent looks for dependencies that nobody wrote down. It reads the current commit in a
/// temporary worktree. Its findings are checked and shown; once you approve them, `git proq deps` and `git
/// proq plan` use them, marked with * and the agent's name, as long as the text of the tasks stays the
/// same. Your files do not change. Known findings are not asked for again without --refresh, and --forget
/// removes them.
///
/// Examples:
///     git proq deps plan.toml
///     git proq deps all --agent claude
///     git proq deps plan.toml --dot | dot -Tsvg > plan.svg
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Deps {
    #[command(flatten)]
    source: PlanSource,
    /// Print a graph for Graphviz
    #[arg(long, conflicts_with = "json")]
    dot: bool,
    /// What an agent is asked
    #[command(flatten)]
    query_args: DependencyQueryArgs,
}

/// What is asked of an agent.
#[derive(Debug, Args)]
#[command(next_help_heading = "Missing dependencies")]
struct DependencyQueryArgs {
    /// Let AGENT look for missing dependencies
    #[arg(long, value_name = "AGENT", add = ArgValueCompleter::new(installed_agent_names))]
    agent: Option<String>,
    /// Model to use
    #[arg(long, value_name = "MODEL", requires = "agent")]
    model: Option<String>,
    /// Ask the agent again, even where it answered before
    #[arg(long, requires = "agent")]
    refresh: bool,
    /// Accept the findings without asking
    #[arg(long, short, requires = "agent")]
    yes: bool,
    /// Remove the findings of earlier runs
    #[arg(long, conflicts_with = "agent")]
    forget: bool,
}

pub(crate) fn run(context: &CommandContext, args: &Deps) -> CommandResult {
    if args.query_args.forget {
        return forget_proposals(context, args);
    }
    if let Some(agent) = &args.query_args.agent {
        return find_missing(context, args, agent);
    }
    let project = context.project()?;
    let plan = args.source.required_plan(context, "git proq deps plan.toml")?;
    print_graph(context, args, &Dependencies::new(plan.read_or_draft(&project)?, true));
    Ok(Exit::Success)
}

/// Has an agent find missing dependencies, and prompts the user to approve them.
fn find_missing(context: &CommandContext, args: &Deps, agent: &str) -> CommandResult {
    let project = context.project_for_write()?;
    let DependencyQueryArgs { model, refresh, yes, .. } = &args.query_args;
    let request = FindNeedsRequest {
        plan: args.source.required_plan(context, "git proq deps --agent claude plan.toml")?,
        agent: agent.to_owned(),
        model: model.clone(),
        refresh: *refresh,
        is_approved: *yes,
        calling_lane: caller::calling_lane(context, &project),
    };
    let plan = find_needs::plan(&project, &request)?;
    let mut found = plan.execute(&project, context, &|lane| follow_quietly(context, &project, lane))?;
    let is_open = found.is_open();
    if context.ui.json {
        if is_open && *yes {
            found.approve(&project, context)?;
        }
        found.dependencies.are_proposals_approved |= *yes;
        print_graph(context, args, &found.dependencies);
        // The JSON output also has the approval of each edge.
        return Ok(if is_open && !yes { Exit::Refused } else { Exit::Success });
    }
    if !args.dot {
        print_missing(context, &found.dependencies);
    }
    print_graph(context, args, &found.dependencies);
    if is_open {
        approve(context, &project, &found)?;
    }
    Ok(Exit::Success)
}

fn print_missing(context: &CommandContext, graph: &Dependencies) {
    let missing = &graph.loaded.approved_needs;
    context.ui.print_line(if missing.is_empty() { "nothing is missing" } else { "Missing:" });
    for ProposedEdge { task, needed, reason, .. } in missing {
        let (task, needed) = (&graph.tasks[*task].name, &graph.tasks[*needed].name);
        let line = format!("  {task} after {needed}{}", clause(": ", reason, ""));
        context.ui.print_line(terminal_text::escape_line(&line));
    }
    context.ui.print_line("");
}

/// Approves the missing dependencies and prints what they have cost.
fn approve(context: &CommandContext, project: &Project, found: &FoundNeeds<'_>) -> Result<(), Failure> {
    let approved = found.approve(project, context)?;
    let cost = approved.record.costs.cost.map(usage::cost_text).unwrap_or_default();
    let (needs, agent) = (approved.needs, terminal_text::escape_line(&approved.record.agent));
    let cost = clause(" (", &cost, ")");
    context.ui.status(format!("{needs} found by {agent} approved for these tasks{cost}"));
    Ok(())
}

fn print_graph(context: &CommandContext, args: &Deps, graph: &Dependencies) {
    if context.ui.json {
        context.ui.print_ordered_json(graph);
    } else if args.dot {
        context.ui.print_line(graph_text::dot_text(graph));
    } else {
        context.ui.print_line(graph_text::tree_text(graph));
    }
}

/// Deletes the saved dependencies that an agent found missing in the plan.
fn forget_proposals(context: &CommandContext, args: &Deps) -> CommandResult {
    let project = context.project_for_write()?;
    let plan = args.source.required_plan(context, "git proq deps --forget plan.toml")?;
    let forgotten = find_needs::forget(&project, &plan)?;
    context.show(serde_json::json!({ "forgotten": forgotten }), |context, _| {
        let text =
            if forgotten { "forgot what an agent found missing" } else { "there was nothing to forget" };
        context.ui.print_line(text);
    })
}
