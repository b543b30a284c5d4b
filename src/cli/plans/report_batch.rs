//! `git proq report`: the report on one batch.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use proq_base::explain::Exit;
use proq_base::terminal_text;
use proq_base::usage::Cost;
use proq_lib::board::batches::{BatchReport, batch_history};
use proq_lib::swarm::status::batch_history::BatchHistory;

use super::report_page;
use super::report_text::{cost_summary, criteria_lines, landed_summary, plan_mark_lines};
use crate::cli::arguments::candidates::batch_ids;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::terminal::table::render;
use crate::cli::terminal::{ui, usage};

/// Report on a batch: what landed, what did not, and what it cost
///
/// Without a name it is the last batch that there was. The page of --html is one file that needs nothing else.
///
/// Examples:
///     git proq report
///     git proq report 20261121-1405 --json
///     git proq report --html > report.html
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Report {
    /// The batch, or the beginning of its name
    #[arg(value_name = "BATCH", add = ArgValueCompleter::new(batch_ids))]
    batch: Option<String>,
    /// Print a page for a browser
    #[arg(long, conflicts_with = "json")]
    html: bool,
}

pub(crate) fn run(context: &CommandContext, args: &Report) -> CommandResult {
    let project = context.project()?;
    let history = batch_history(&project, args.batch.as_deref())?;
    if context.ui.json {
        context.ui.print_ordered_json(BatchReport::new(&project, history));
    } else if args.html {
        context.ui.print_text(&report_page::render_page(&history));
    } else {
        for line in terminal_lines(&history) {
            context.ui.print_line(line);
        }
    }
    Ok(Exit::Success)
}

/// Returns the report as lines for a terminal.
fn terminal_lines(history: &BatchHistory) -> Vec<String> {
    let mut out = header_lines(history);
    out.push(String::new());
    out.extend(task_table(history).lines().map(ToOwned::to_owned));
    push_section(&mut out, "criteria", criteria_lines(history));
    push_section(&mut out, "did not land at once", obstacle_lines(history));
    push_section(&mut out, "landings", landing_lines(history));
    push_section(&mut out, "remarks", note_lines(history));
    push_section(&mut out, "noted in the plan", plan_mark_lines(history));
    let unmarked_items =
        history.plan_marks.iter().flat_map(|marks| &marks.unmarked).filter(|item| !item.patch.is_empty());
    for item in unmarked_items {
        out.push(String::new());
        out.extend(terminal_text::escape_lines(&item.patch));
    }
    out
}

fn push_section(out: &mut Vec<String>, title: &str, lines: Vec<String>) {
    if !lines.is_empty() {
        out.push(String::new());
        out.push(console::style(title).bold().to_string());
        out.extend(lines.into_iter().map(|line| format!("  {}", terminal_text::escape_line(&line))));
    }
}

fn header_lines(history: &BatchHistory) -> Vec<String> {
    let progress = &history.progress;
    let reason_suffix = progress.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let mut out = vec![format!(
        "batch {}  {}{}",
        progress.batch,
        progress.state,
        terminal_text::escape_line(&reason_suffix)
    )];
    let mut push_fact = |name: &str, value: String| {
        if !value.is_empty() {
            out.push(format!("  {name:<8} {}", terminal_text::escape_line(&value)));
        }
    };
    push_fact("plan", format!("{}{}", progress.summary, source_names(history)));
    push_fact("landed", landed_summary(history));
    let landed_on_suffix =
        progress.landed_on.as_ref().map(|onto| format!("; all of it is on {onto}")).unwrap_or_default();
    push_fact("branch", format!("{} for {}{landed_on_suffix}", progress.branch, progress.base));
    push_fact(
        "took",
        format!(
            "{}, since {}",
            ui::short_duration(history.last_event_at.duration_since(history.began)),
            history.began
        ),
    );
    push_fact("cost", cost_summary(history));
    out
}

fn source_names(history: &BatchHistory) -> String {
    let names = history.sources.join(" ");
    if history.progress.summary.is_empty() { names } else { format!(" ({names})") }
}

fn task_table(history: &BatchHistory) -> String {
    let mut rows = Vec::new();
    for task in &history.progress.tasks {
        let wave = history.waves.iter().position(|wave| wave.contains(&task.name));
        let run_costs = history.runs.iter().filter(|run| run.task == task.name).filter_map(|run| run.cost);
        rows.push(vec![
            wave.map(|wave| (wave + 1).to_string()).unwrap_or_default(),
            terminal_text::escape_line(&task.name),
            task.state.clone(),
            if task.attempts > 0 { task.attempts.to_string() } else { String::new() },
            run_costs.reduce(Cost::plus).map(usage::cost_text).unwrap_or_default(),
            terminal_text::escape_line(task.detail.as_deref().unwrap_or(&task.title)),
        ]);
    }
    render(&["WAVE", "TASK", "STATE", "RUNS", "COST", "WHY, OR WHAT"], rows)
}

/// Returns a line for each conflict and failed check of the batch.
fn obstacle_lines(history: &BatchHistory) -> Vec<String> {
    let line = |obstacle: &proq_lib::swarm::status::batch_history::Obstacle| {
        let files: Vec<String> = obstacle.files.iter().map(ToString::to_string).collect();
        match (&obstacle.check, &obstacle.log) {
            (Some(check), Some(log)) => {
                format!("{}  `{check}` failed; it wrote {}", obstacle.task, log.display())
            }
            (Some(check), None) => format!("{}  `{check}` failed", obstacle.task),
            (None, _) => format!("{}  conflict, {}: {}", obstacle.task, obstacle.status, files.join(", ")),
        }
    };
    history.obstacles.iter().map(line).collect()
}

/// Returns a line for each landing: its time, tasks, tip and passed checks.
fn landing_lines(history: &BatchHistory) -> Vec<String> {
    let line = |landing: &proq_lib::swarm::status::batch_history::LandingEvent| {
        let tip = landing.tip.map(|tip| format!("  {}", tip.short())).unwrap_or_default();
        let checks = landing.checks.iter().map(|check| format!("`{check}`")).collect::<Vec<_>>().join(", ");
        let passed = if checks.is_empty() { String::new() } else { format!("  passed {checks}") };
        format!("{}  {}{tip}{passed}", landing.at, landing.tasks.join(", "))
    };
    history.landings.iter().map(line).collect()
}

/// Returns a line for each note in the batch's log.
fn note_lines(history: &BatchHistory) -> Vec<String> {
    let line = |note: &proq_lib::swarm::status::batch_history::HistoryNote| {
        let tasks_prefix =
            if note.tasks.is_empty() { String::new() } else { format!("{}: ", note.tasks.join(", ")) };
        format!("{}  {tasks_prefix}{}", note.at, note.text)
    };
    history.notes.iter().map(line).collect()
}
