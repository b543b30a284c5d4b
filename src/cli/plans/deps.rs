//! The `git proq deps` command.

pub(crate) mod dependency_query;

use std::fmt::Write as _;

use clap::Args;
use console::style;
use proq_base::explain::Exit;
use proq_base::terminal_text;
use proq_lib::swarm::planner::missing_needs;
use proq_plan::plan::{PhaseOrder, PlanTask};
use proq_plan::plan_source::{LoadedPlan, ProposedEdge};
use serde::Serialize;

use crate::cli::arguments::plan_source::PlanSource;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::terminal::ui;

/// Show what waits for what in a plan
///
/// Below each task stand those that need it. One that needs others too says so, and what waits for a task is shown once. In a
/// phase whose tasks go one after the other, each waits for the one before it.
///
/// With --agent an agent looks for dependencies that nobody has written down. It looks at the commit that is checked out, in a
/// worktree that goes afterwards. What it found is checked, shown and, once you agree, used by `git proq deps` and `git proq plan`
/// for these tasks, marked with * and its name, for as long as what the tasks say stays as it is; your files are left alone.
/// What is known is not asked for again without --refresh, and --forget ends that.
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
    query_args: dependency_query::DependencyQueryArgs,
}

#[derive(Serialize)]
struct DepsOutput {
    tasks: Vec<TaskRow>,
    edges: Vec<Edge>,
}

#[derive(Serialize)]
struct TaskRow {
    name: String,
    title: String,
    phase: usize,
    done: bool,
}

/// A dependency: `task` waits for `needs`.
#[derive(Debug, Serialize)]
struct Edge {
    task: String,
    needs: String,
    #[serde(rename = "why")]
    kind: EdgeKind,
    /// The agent that found the dependency missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "because")]
    reason: Option<String>,
    /// Whether the user has approved the dependency.
    #[serde(skip_serializing_if = "Option::is_none")]
    approved: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum EdgeKind {
    /// The task names the dependency.
    Needs,
    /// The phase is serial, so each task waits for the one before it.
    Order,
    /// An agent found the dependency missing.
    Agent,
}

/// The dependencies between the tasks of a plan.
struct DependencyGraph<'f> {
    loaded_plan: &'f LoadedPlan,
    /// Whether the user approved the dependencies that an agent found missing.
    proposals_approved: bool,
    tasks: Vec<PlanTask<'f>>,
    /// The tasks that each task waits for.
    needs: Vec<Vec<(usize, EdgeKind)>>,
    /// The tasks that wait for each task.
    dependents: Vec<Vec<usize>>,
}

pub(crate) fn run(context: &CommandContext, args: &Deps) -> CommandResult {
    if args.query_args.forget {
        return forget_proposals(context, args);
    }
    let Some(agent) = &args.query_args.agent else {
        let project = context.project()?;
        let loaded_plan = args.source.read_plan_or_draft(context, &project, "git proq deps plan.toml")?;
        print_graph(context, args, &DependencyGraph::from_loaded_plan(&loaded_plan, true));
        return Ok(Exit::Success);
    };
    let project = context.project_for_write()?;
    let query = (&args.source, &args.query_args);
    let (loaded_plan, approved) = dependency_query::find_missing_needs(context, &project, query, agent)?;
    let is_open = !approved && !loaded_plan.approved_needs.is_empty();
    if context.ui.json {
        if is_open && args.query_args.yes {
            dependency_query::approve_proposals(context, &project, query, agent)?;
        }
        let approved = approved || args.query_args.yes;
        print_graph(context, args, &DependencyGraph::from_loaded_plan(&loaded_plan, approved));
        // The JSON output also has the approval of each edge.
        return Ok(if is_open && !approved { Exit::Refused } else { Exit::Success });
    }
    if !args.dot {
        let head = if loaded_plan.approved_needs.is_empty() { "nothing is missing" } else { "Missing:" };
        context.ui.print_line(head);
        for line in dependency_query::describe_proposals(&loaded_plan) {
            context.ui.print_line(format!("  {line}"));
        }
        context.ui.print_line("");
    }
    print_graph(context, args, &DependencyGraph::from_loaded_plan(&loaded_plan, approved));
    if is_open {
        dependency_query::approve_proposals(context, &project, query, agent)?;
    }
    Ok(Exit::Success)
}

fn print_graph(context: &CommandContext, args: &Deps, graph: &DependencyGraph<'_>) {
    if context.ui.json {
        context.ui.print_ordered_json(graph.to_output());
    } else if args.dot {
        context.ui.print_line(graph.dot_text());
    } else {
        context.ui.print_line(graph.tree_text());
    }
}

/// Deletes the saved dependencies that an agent found missing in the plan.
fn forget_proposals(context: &CommandContext, args: &Deps) -> CommandResult {
    let project = context.project_for_write()?;
    let loaded_plan =
        args.source.read_without_proposals(context, &project, "git proq deps --forget plan.toml")?;
    let forgotten = missing_needs::delete_proposals(&project, &loaded_plan.plan)?;
    if context.ui.json {
        context.ui.print_json(serde_json::json!({ "forgotten": forgotten }));
    } else {
        let text =
            if forgotten { "forgot what an agent found missing" } else { "there was nothing to forget" };
        context.ui.print_line(text);
    }
    Ok(Exit::Success)
}

/// Index that stands for the tasks that the tree omits below their parent.
const OMITTED_TASKS_INDEX: usize = usize::MAX;

/// Maximum number of tasks per parent that get a line below it although the tree prints them in full below
/// another parent.
const MAX_REPEATED_TASKS: usize = 3;

/// Maximum number of dependencies that a task's line names in addition to its parent in the tree.
const MAX_OTHER_NEEDS_NAMED: usize = 8;

/// Maximum indentation of a line, in bytes. Deeper tasks are not indented further.
const MAX_INDENT_BYTES: usize = 120;

impl<'f> DependencyGraph<'f> {
    fn from_loaded_plan(loaded_plan: &'f LoadedPlan, proposals_approved: bool) -> DependencyGraph<'f> {
        let tasks: Vec<PlanTask<'f>> = loaded_plan.plan.tasks().collect();
        let mut all_needs: Vec<Vec<(usize, EdgeKind)>> = Vec::new();
        let mut dependents = vec![Vec::new(); tasks.len()];
        for (index, task) in tasks.iter().enumerate() {
            let by_agent = |need: usize| {
                loaded_plan.approved_needs.iter().any(|edge| (edge.task, edge.needed) == (index, need))
            };
            let kind_of = |need: usize| if by_agent(need) { EdgeKind::Agent } else { EdgeKind::Needs };
            let mut needs: Vec<(usize, EdgeKind)> =
                loaded_plan.graph.needs(index).iter().map(|need| (*need, kind_of(*need))).collect();
            let previous = index
                .checked_sub(1)
                .filter(|before| task.order == PhaseOrder::Serial && tasks[*before].phase == task.phase);
            needs.extend(
                previous
                    .filter(|b| !loaded_plan.graph.needs(index).contains(b))
                    .map(|b| (b, EdgeKind::Order)),
            );
            for (need, _) in &needs {
                dependents[*need].push(index);
            }
            all_needs.push(needs);
        }
        DependencyGraph { loaded_plan, proposals_approved, tasks, needs: all_needs, dependents }
    }

    /// Returns the name of the task at index `task`.
    fn task_name(&self, task: usize) -> String {
        self.tasks[task].task.full_name()
    }

    fn to_output(&self) -> DepsOutput {
        let row = |spot: &PlanTask<'_>| TaskRow {
            name: spot.task.full_name(),
            title: spot.task.title.clone(),
            phase: spot.phase + 1,
            done: spot.task.done,
        };
        let edges =
            self.needs.iter().enumerate().flat_map(|(index, needs)| {
                needs.iter().map(move |(need, kind)| self.edge(index, *need, *kind))
            });
        DepsOutput { tasks: self.tasks.iter().map(row).collect(), edges: edges.collect() }
    }

    /// Returns the JSON object of the dependency of `task` on `need`.
    fn edge(&self, task: usize, need: usize, kind: EdgeKind) -> Edge {
        let proposed = self.proposed_edge(task, need);
        Edge {
            task: self.task_name(task),
            needs: self.task_name(need),
            kind,
            agent: proposed.map(|edge| edge.agent.clone()),
            reason: proposed.map(|edge| edge.reason.clone()).filter(|because| !because.is_empty()),
            approved: proposed.map(|_| self.proposals_approved),
        }
    }

    /// Returns the dependency between two tasks that an agent found missing, if any.
    fn proposed_edge(&self, task: usize, need: usize) -> Option<&ProposedEdge> {
        self.loaded_plan.approved_needs.iter().find(|edge| (edge.task, edge.needed) == (task, need))
    }

    /// Returns for each task the parent below which the tree prints it first; `None` for a root.
    fn first_parents(&self) -> Vec<Option<usize>> {
        let mut parents = vec![None; self.tasks.len()];
        let mut visited = vec![false; self.tasks.len()];
        let roots = (0..self.tasks.len()).filter(|task| self.needs[*task].is_empty());
        let mut stack: Vec<(usize, Option<usize>)> = roots.map(|root| (root, None)).collect();
        stack.reverse();
        while let Some((task, parent)) = stack.pop() {
            if !std::mem::replace(&mut visited[task], true) {
                parents[task] = parent;
                stack.extend(self.dependents[task].iter().rev().map(|next| (*next, Some(task))));
            }
        }
        parents
    }

    /// Formats the tasks as a tree. The traversal is iterative, because a chain can be as long as the plan.
    fn tree_text(&self) -> String {
        let mut out = String::new();
        let mut shown = vec![false; self.tasks.len()];
        let first_parents = self.first_parents();
        let roots = (0..self.tasks.len()).filter(|task| self.needs[*task].is_empty());
        let mut stack: Vec<(usize, Option<usize>, String, bool)> = Vec::new();
        stack.extend(roots.map(|root| (root, None, String::new(), true)));
        stack.reverse();
        while let Some((task, parent, indent, is_last)) = stack.pop() {
            if task == OMITTED_TASKS_INDEX {
                let _ = writeln!(out, "{indent}└─ … and more that are shown above");
                continue;
            }
            let (branch, more) = match (parent, is_last) {
                (None, _) => ("", ""),
                (Some(_), true) => ("└─ ", "   "),
                (Some(_), false) => ("├─ ", "│  "),
            };
            let _ = writeln!(out, "{indent}{branch}{}", self.task_line(task, parent, shown[task]));
            if std::mem::replace(&mut shown[task], true) {
                continue;
            }
            // A task whose subtree is printed elsewhere gets one line here, up to a maximum per parent.
            let mut repeated = 0;
            let mut is_listed = |next: &usize| {
                let is_first = first_parents[*next] == Some(task);
                repeated += usize::from(!is_first);
                is_first || repeated <= MAX_REPEATED_TASKS
            };
            let children: Vec<usize> =
                self.dependents[task].iter().copied().filter(|next| is_listed(next)).collect();
            let has_omitted = children.len() < self.dependents[task].len();
            let indent = if indent.len() < MAX_INDENT_BYTES { format!("{indent}{more}") } else { indent };
            stack.extend(has_omitted.then(|| (OMITTED_TASKS_INDEX, Some(task), indent.clone(), true)));
            for (n, next) in children.iter().enumerate().rev() {
                stack.push((*next, Some(task), indent.clone(), !has_omitted && n + 1 == children.len()));
            }
        }
        out.trim_end().to_owned()
    }

    /// Formats a task as a line of the tree.
    fn task_line(&self, task: usize, parent: Option<usize>, is_shown_above: bool) -> String {
        let plan_task = &self.tasks[task];
        let mut notes = Vec::new();
        if plan_task.task.done {
            notes.push("done".to_owned());
        }
        let others: Vec<String> = self.needs[task]
            .iter()
            .filter(|(need, _)| Some(*need) != parent)
            .map(|(need, kind)| match kind {
                EdgeKind::Agent => format!("{}*", self.task_name(*need)),
                EdgeKind::Needs | EdgeKind::Order => self.task_name(*need),
            })
            .collect();
        if let Some(edge) = parent.and_then(|parent| self.proposed_edge(task, parent)) {
            let used = if self.proposals_approved { "" } else { ", not used" };
            notes.push(format!("* says {}{used}", terminal_text::escape_line(&edge.agent)));
        }
        if !others.is_empty() {
            let more = others.len().saturating_sub(MAX_OTHER_NEEDS_NAMED);
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            notes.push(format!(
                "also after {}{more}",
                others[..others.len().min(MAX_OTHER_NEEDS_NAMED)].join(", ")
            ));
        }
        if is_shown_above && !self.dependents[task].is_empty() {
            notes.push(format!("{} below it, see above", ui::pluralize(self.dependents[task].len(), "task")));
        }
        let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) };
        let title = terminal_text::escape_line(&plan_task.task.title);
        format!("{} {title}{}", style(plan_task.task.full_name()).bold(), style(notes).dim())
    }

    /// Formats the graph in the dot language of Graphviz.
    fn dot_text(&self) -> String {
        let mut out = "digraph plan {\n  rankdir=LR;\n  node [shape=box];\n".to_owned();
        for task in &self.tasks {
            let label =
                format!("{}\n{}", task.task.full_name(), terminal_text::escape_line(&task.task.title));
            let done = if task.task.done { ", style=dashed" } else { "" };
            let _ =
                writeln!(out, "  {} [label={}{done}];", quote_dot(&task.task.full_name()), quote_dot(&label));
        }
        for edge in self.to_output().edges {
            let order = match edge.kind {
                EdgeKind::Order => " [style=dotted]",
                EdgeKind::Agent => " [style=dashed]",
                EdgeKind::Needs => "",
            };
            let _ = writeln!(out, "  {} -> {}{order};", quote_dot(&edge.needs), quote_dot(&edge.task));
        }
        out.push('}');
        out
    }
}

/// Quotes a string for Graphviz, where a backslash is an escape character.
fn quote_dot(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}
