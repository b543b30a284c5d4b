//! A plan as a tree of phases, groups and tasks, for a user who has to approve it: agents, dependencies,
//! scopes and checks.

use std::fmt::Write as _;

use console::style;
use proq_base::terminal_text;
use proq_lib::swarm::ops::plan_view::PlanView;
use proq_plan::plan::PlanTask;

use crate::cli::plans::plan_text::{
    lane_count_text, phase_heading, push_lanes_and_longest_way, push_list, title_line,
};
use crate::cli::plans::text_parts::{clause, comma_list};
use crate::cli::terminal::ui;

/// Renders the tree, with `header` above it and a summary below it.
pub(crate) fn render(view: &PlanView, header: &[String]) -> String {
    let plan = view.plan();
    let mut out = title_line(plan);
    for line in header {
        let _ = writeln!(out, "{}", terminal_text::escape_line(line));
    }
    push_list(&mut out, "Warnings:", &plan.warnings);
    out.push('\n');
    let (waves, tasks) = (view.waves_by_task(), view.tasks());
    let mut position = 0;
    for (n, phase) in plan.phases.iter().enumerate() {
        if let Some(heading) = phase_heading(plan, n) {
            let _ = writeln!(out, "{}", style(terminal_text::escape_line(&heading)).bold());
        }
        for (g, group) in phase.groups.iter().enumerate() {
            let (has_heading, is_last) = (!group.theme.is_empty(), g + 1 == phase.groups.len());
            let (branch, indent) = if is_last { ("└─", "   ") } else { ("├─", "│  ") };
            if has_heading {
                let theme = terminal_text::escape_line(&group.theme);
                let rationale = style(clause(": ", &single_line(&group.rationale), "")).dim();
                let _ = writeln!(out, "{branch} {theme}{rationale}");
            }
            let indent = if has_heading { indent } else { "" };
            for t in 0..group.tasks.len() {
                let is_last_task = t + 1 == group.tasks.len() && (has_heading || is_last);
                push_task(&mut out, view, tasks[position], (position, waves[position]), indent, is_last_task);
                position += 1;
            }
        }
    }
    push_list(&mut out, "Criteria:", &plan.criteria);
    let _ = writeln!(out, "\n{}", summary_text(view));
    out.trim_end().to_owned()
}

/// Appends a task, with its dependencies, scope and checks below it.
fn push_task(
    out: &mut String,
    view: &PlanView,
    entry: PlanTask<'_>,
    (position, wave): (usize, Option<usize>),
    indent: &str,
    is_last: bool,
) {
    let task = entry.task;
    let (branch, continuation) = if is_last { ("└─", "   ") } else { ("├─", "│  ") };
    let wave = wave.map_or_else(|| "done".to_owned(), |wave| format!("wave {wave}"));
    let mut notes = vec![wave, task.size.to_string()];
    let (agent, model) = (view.plan().task_agent(entry), view.plan().task_model(entry));
    notes.extend(agent.map(|agent| format!("by {}", terminal_text::escape_line(agent))));
    notes.extend(model.map(|model| format!("model {}", terminal_text::escape_line(model))));
    let name = style(terminal_text::escape_line(&task.full_name())).bold();
    let title = terminal_text::escape_line(&task.title);
    let notes = style(format!("({})", notes.join(", "))).dim();
    let _ = writeln!(out, "{indent}{branch} {name} {title} {notes}");
    let mut push_line = |label: &str, text: &str| {
        let _ = writeln!(out, "{indent}{continuation}  {label} {text}");
    };
    let needs = view.task_names(view.graph().needs(position));
    if !needs.is_empty() {
        push_line("after ", &needs.join(", "));
    }
    if !task.scope.is_empty() {
        push_line("about ", &comma_list(task.scope.iter().map(|glob| terminal_text::escape_line(glob))));
    }
    for check in &task.checks {
        push_line("checks", &terminal_text::escape_line(check));
    }
}

/// Joins the lines of a text to one line.
fn single_line(text: &str) -> String {
    terminal_text::escape_line(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Formats the number of tasks, waves and lanes, and the critical path.
fn summary_text(view: &PlanView) -> String {
    let (tasks, waves) = (view.names.len(), view.waves.len());
    let counts = format!("{}, {}", ui::pluralize(tasks, "task"), ui::pluralize(waves, "wave"));
    let mut out = format!("{counts}. {}\n", lane_count_text(view));
    push_lanes_and_longest_way(&mut out, view);
    out
}
