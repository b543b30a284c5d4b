//! Dependencies of a plan as text: a tree, and a graph for Graphviz.

use std::fmt::Write as _;

use console::style;
use proq_base::terminal_text;
use proq_lib::swarm::ops::dependencies::{Dependencies, EdgeKind};

use crate::cli::plans::text_parts::clause;
use crate::cli::terminal::ui;

/// Index that stands for the tasks that the tree omits below their parent.
const OMITTED_TASKS_INDEX: usize = usize::MAX;

/// Maximum number of tasks per parent that get a line below it although the tree prints them in full below
/// another parent.
const MAX_REPEATED_TASKS: usize = 3;

/// Maximum number of dependencies that a task's line names in addition to its parent in the tree.
const MAX_OTHER_NEEDS_NAMED: usize = 8;

/// Maximum indentation of a line, in bytes. Deeper tasks are not indented further.
const MAX_INDENT_BYTES: usize = 120;

/// Returns for each task the parent below which the tree prints it first; `None` for a root.
fn first_parents(graph: &Dependencies) -> Vec<Option<usize>> {
    let mut parents = vec![None; graph.tasks.len()];
    let mut visited = vec![false; graph.tasks.len()];
    let roots = (0..graph.tasks.len()).filter(|task| graph.needs[*task].is_empty());
    let mut stack: Vec<(usize, Option<usize>)> = roots.map(|root| (root, None)).collect();
    stack.reverse();
    while let Some((task, parent)) = stack.pop() {
        if !std::mem::replace(&mut visited[task], true) {
            parents[task] = parent;
            stack.extend(graph.dependents[task].iter().rev().map(|next| (*next, Some(task))));
        }
    }
    parents
}

/// Formats the tasks as a tree. The traversal is iterative, because a chain can be as long as the plan.
pub(crate) fn tree_text(graph: &Dependencies) -> String {
    let mut out = String::new();
    let mut shown = vec![false; graph.tasks.len()];
    let first_parents = first_parents(graph);
    let roots = (0..graph.tasks.len()).filter(|task| graph.needs[*task].is_empty());
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
        let _ = writeln!(out, "{indent}{branch}{}", task_line(graph, task, parent, shown[task]));
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
            graph.dependents[task].iter().copied().filter(|next| is_listed(next)).collect();
        let has_omitted = children.len() < graph.dependents[task].len();
        let indent = if indent.len() < MAX_INDENT_BYTES { format!("{indent}{more}") } else { indent };
        stack.extend(has_omitted.then(|| (OMITTED_TASKS_INDEX, Some(task), indent.clone(), true)));
        for (n, next) in children.iter().enumerate().rev() {
            stack.push((*next, Some(task), indent.clone(), !has_omitted && n + 1 == children.len()));
        }
    }
    out.trim_end().to_owned()
}

/// Formats a task as a line of the tree.
fn task_line(graph: &Dependencies, task: usize, parent: Option<usize>, is_shown_above: bool) -> String {
    let row = &graph.tasks[task];
    let mut notes = Vec::new();
    if row.done {
        notes.push("done".to_owned());
    }
    let others = graph.needs[task].iter().filter(|(need, _)| Some(*need) != parent);
    let others: Vec<String> = others
        .map(|(need, kind)| match kind {
            EdgeKind::Agent => format!("{}*", graph.tasks[*need].name),
            EdgeKind::Needs | EdgeKind::Order => graph.tasks[*need].name.clone(),
        })
        .collect();
    if let Some(edge) = parent.and_then(|parent| graph.proposed_edge(task, parent)) {
        let used = if graph.are_proposals_approved { "" } else { ", not used" };
        notes.push(format!("* says {}{used}", terminal_text::escape_line(&edge.agent)));
    }
    if !others.is_empty() {
        let named = others.len().min(MAX_OTHER_NEEDS_NAMED);
        let more = match others.len() - named {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        notes.push(format!("also after {}{more}", others[..named].join(", ")));
    }
    if is_shown_above && !graph.dependents[task].is_empty() {
        notes.push(format!("{} below it, see above", ui::pluralize(graph.dependents[task].len(), "task")));
    }
    let notes = style(clause(" (", &notes.join("; "), ")")).dim();
    format!("{} {}{notes}", style(&row.name).bold(), terminal_text::escape_line(&row.title))
}

/// Formats the graph in the dot language of Graphviz.
pub(crate) fn dot_text(graph: &Dependencies) -> String {
    let mut out = "digraph plan {\n  rankdir=LR;\n  node [shape=box];\n".to_owned();
    for row in &graph.tasks {
        let label = format!("{}\n{}", row.name, terminal_text::escape_line(&row.title));
        let done = if row.done { ", style=dashed" } else { "" };
        let _ = writeln!(out, "  {} [label={}{done}];", quote_dot(&row.name), quote_dot(&label));
    }
    for (task, need, kind) in graph.edges() {
        let order = match kind {
            EdgeKind::Order => " [style=dotted]",
            EdgeKind::Agent => " [style=dashed]",
            EdgeKind::Needs => "",
        };
        let [need, task] = [need, task].map(|task| quote_dot(&graph.tasks[task].name));
        let _ = writeln!(out, "  {need} -> {task}{order};");
    }
    out.push('}');
    out
}

/// Quotes a string for Graphviz, where a backslash is an escape character.
fn quote_dot(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}
