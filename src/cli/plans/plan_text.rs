//! A plan as text: its tasks in a table, its waves, lanes, longest path and estimated time.

use std::fmt::Write as _;

use console::style;
use proq_base::terminal_text;
use proq_lib::swarm::ops::plan_view::PlanView;
use proq_plan::plan;
use proq_plan::plan::{PhaseOrder, Plan};
use proq_plan::plan_source::ProposedEdge;

use super::text_parts::{clause, comma_list};
use crate::cli::terminal::table::Column;
use crate::cli::terminal::{table, ui};

/// Renders the plan as text for the user, with its first `max_tasks` tasks.
pub(crate) fn render(view: &PlanView, max_tasks: usize) -> String {
    let plan = view.plan();
    let mut out = title_line(plan);
    let done = plan.tasks().filter(|entry| entry.task.done).count();
    let _ = writeln!(
        out,
        "{} ({}): {}, {done} done, {}",
        terminal_text::escape_line(&view.sources.join(" ")),
        view.loaded.format,
        ui::pluralize(view.names.len(), "task"),
        ui::pluralize(view.waves.len(), "wave"),
    );
    push_list(&mut out, "Warnings:", &plan.warnings);
    push_list(&mut out, if plan.phases.len() > 1 { "Phases:" } else { "Groups:" }, &phase_lines(plan));
    let _ = writeln!(out, "\n{}\n", task_table(view, max_tasks));
    if view.names.len() > max_tasks {
        let _ = writeln!(out, "and {} more; --dry-run lists all\n", view.names.len() - max_tasks);
    }
    let _ = writeln!(out, "{}", lane_count_text(view));
    push_lanes_and_longest_way(&mut out, view);
    out.push_str(&estimated_time_text(view));
    push_list(&mut out, "Approved dependencies from an agent:", &proposed_need_lines(view));
    push_list(&mut out, "Criteria:", &plan.criteria);
    out.trim_end().to_owned()
}

/// Formats the summary of a plan as the first line of its text.
pub(crate) fn title_line(plan: &Plan) -> String {
    let title = if plan.summary.is_empty() { "A plan" } else { &plan.summary };
    format!("{}\n", style(terminal_text::escape_line(title)).bold())
}

/// Appends which tasks share a lane with the scopes that overlap, and the critical path.
pub(crate) fn push_lanes_and_longest_way(out: &mut String, view: &PlanView) {
    for lane in view.sharing.shared_lanes() {
        let _ = writeln!(out, "One lane for {}, one after the other:", view.task_names(&lane).join(", "));
        for overlap in view.overlaps_of_lane(&lane) {
            let [one, two] = overlap.tasks.map(|task| &view.names[task]);
            let [a, b] = overlap.globs.each_ref().map(|glob| terminal_text::escape_line(glob));
            let globs = if a == b { a } else { format!("{a} and {b}") };
            let _ = writeln!(out, "  {one} and {two} both have {globs}");
        }
    }
    if !view.critical_path.tasks.is_empty() {
        let path_text = view.task_names(&view.critical_path.tasks).join(" -> ");
        let (weight, total) = (view.critical_path.weight, view.weight_of_open_tasks());
        let _ = writeln!(out, "Critical path: {path_text} ({weight} of {total} by size)");
    }
}

/// Returns a line for each dependency that an agent found missing.
fn proposed_need_lines(view: &PlanView) -> Vec<String> {
    let line = |edge: &ProposedEdge| {
        let (task, needed) = (&view.names[edge.task], &view.names[edge.needed]);
        format!("{task} after {needed}, from {}{}", edge.agent, clause(": ", &edge.reason, ""))
    };
    view.loaded.approved_needs.iter().map(line).collect()
}

/// Appends a heading and the items below it; nothing if there are no items.
pub(crate) fn push_list(out: &mut String, heading: &str, items: &[String]) {
    if !items.is_empty() {
        let _ = writeln!(out, "\n{heading}");
        for item in items {
            let _ = writeln!(out, "  {}", terminal_text::escape_line(item));
        }
    }
}

/// Returns a line for each phase, and for each group with a theme; empty for a plan without both.
fn phase_lines(plan: &Plan) -> Vec<String> {
    let indent = if plan.phases.len() == 1 { "" } else { "  " };
    let mut out = Vec::new();
    for (n, phase) in plan.phases.iter().enumerate() {
        out.extend(phase_heading(plan, n));
        for group in phase.groups.iter().filter(|group| !group.theme.is_empty()) {
            let ids = comma_list(group.tasks.iter().map(plan::Task::full_name));
            let rationale = clause(". ", &group.rationale, "");
            out.push(format!("{indent}{}: {ids}{rationale}", group.theme));
        }
    }
    out
}

/// Formats the number, title and order of the phase with index `n`; none for the only phase of a plan, if it
/// has neither.
pub(crate) fn phase_heading(plan: &Plan, n: usize) -> Option<String> {
    let phase = &plan.phases[n];
    let is_serial = phase.order == PhaseOrder::Serial;
    let order = if is_serial { ", one task after the other" } else { "" };
    (plan.phases.len() > 1 || !phase.title.is_empty() || is_serial)
        .then(|| format!("{}.{}{order}", n + 1, clause(" ", &phase.title, "")))
}

/// Formats the number of lanes and the limit that caps it.
pub(crate) fn lane_count_text(view: &PlanView) -> String {
    let (lanes, widest) = (view.max_active_lanes(), view.sharing.max_concurrent_lanes(&view.waves));
    let limit = if widest > lanes { format!(", of {widest} that could run") } else { String::new() };
    format!("Lanes: {lanes} at a time{limit} (--max-parallel {})", view.max_parallel)
}

/// Formats the estimated time; empty where the plan cannot be simulated.
fn estimated_time_text(view: &PlanView) -> String {
    let span = view.simulation.as_ref().map_or(0, |simulated| simulated.makespan);
    if span == 0 {
        return String::new();
    }
    let by_size = format!("as long as {} in sequence", ui::pluralize(span, "small task"));
    match view.pace {
        Some(pace) => {
            let about = ui::short_duration(pace.small_tasks_duration(span));
            let runs = ui::pluralize(pace.sample_count, "run");
            format!("Time: about {about}, {by_size}, at the pace of the last {runs} here\n")
        }
        None => format!("Time: {by_size}\n"),
    }
}

/// Columns of the table of tasks.
const TASK_COLUMNS: [Column; 9] = [
    Column::new("WAVE"),
    Column::name("LANE").hidden_at(3),
    Column::name("TASK"),
    Column::new("SIZE").hidden_at(2),
    Column::text("AGENT", 6).hidden_at(4),
    Column::new("STEPS").hidden_at(5),
    Column::text("NEEDS", 8).hidden_at(1),
    Column::text("SCOPE", 8).hidden_at(7),
    Column::text("TITLE", 12).hidden_at(6),
];
/// Indexes of the columns of tasks that are left out if no task has a value.
const OPTIONAL_TASK_COLUMNS: [usize; 4] = [4, 5, 6, 7];

/// Renders the table of tasks: first those that are done, then wave by wave.
fn task_table(view: &PlanView, max_tasks: usize) -> String {
    let (waves, tasks) = (view.waves_by_task(), view.tasks());
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by_key(|task| (waves[*task], *task));
    let rows = order.into_iter().take(max_tasks).map(|position| {
        let entry = tasks[position];
        let task = entry.task;
        let needs = view.task_names(view.graph().needs(position));
        let progress = task.progress.map(|p| format!("{}/{}", p.done, p.total));
        vec![
            waves[position].map_or_else(|| "done".to_owned(), |wave| wave.to_string()),
            view.simulated_lane(position).map_or_else(|| "-".to_owned(), |lane| lane.to_string()),
            view.names[position].clone(),
            task.size.to_string(),
            view.plan().task_agent(entry).map_or_else(|| "-".to_owned(), terminal_text::escape_line),
            progress.unwrap_or_else(|| "-".to_owned()),
            shorten_list(&needs),
            shorten_list(&task.scope),
            terminal_text::escape_line(&task.title),
        ]
    });
    let mut rows: Vec<Vec<String>> = rows.collect();
    for index in OPTIONAL_TASK_COLUMNS {
        // A column without any text is left out.
        if rows.iter().all(|row| row[index] == "-") {
            for row in &mut rows {
                row[index].clear();
            }
        }
    }
    table::render(&TASK_COLUMNS, rows)
}

/// Formats the first items of a list, and the number of the others.
fn shorten_list(items: &[String]) -> String {
    /// Maximum number of items shown. The others are only counted.
    const MAX_ITEMS_SHOWN: usize = 3;
    let shown = comma_list(items.iter().take(MAX_ITEMS_SHOWN).map(|item| terminal_text::escape_line(item)));
    match items.len() {
        0 => "-".to_owned(),
        n if n > MAX_ITEMS_SHOWN => format!("{shown}, +{}", n - MAX_ITEMS_SHOWN),
        _ => shown,
    }
}
