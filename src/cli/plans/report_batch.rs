//! `git proq batch report`: the report on one batch.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use proq_base::explain::Exit;
use proq_base::terminal_text;
use proq_lib::board::batches::{BatchReport, batch_history};
use proq_lib::swarm::status::batch_history::{BatchHistory, LandingEvent, Obstacle};
use proq_lib::swarm::status::progress::TaskProgress;

use super::report_page;
use super::report_text::{cost_summary, criteria_lines, landed_summary, plan_mark_lines, unmarked_patches};
use super::text_parts::{clause, comma_list};
use crate::cli::arguments::candidates::batch_ids;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::terminal::table::{Column, render};
use crate::cli::terminal::{page, ui, usage};

/// Report on a batch: what landed, what did not, and its cost
///
/// Without BATCH, reports on the latest one. The HTML page is a single file without dependencies.
///
/// Examples:
///     git proq batch report
///     git proq batch report 20261121-1405 --json
///     git proq batch report --html > report.html
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Report {
    /// Batch ID, or the beginning of one
    #[arg(value_name = "BATCH", add = ArgValueCompleter::new(batch_ids))]
    batch: Option<String>,
    /// Print an HTML page
    #[arg(long, conflicts_with = "json")]
    html: bool,
}

pub(crate) fn run(context: &CommandContext, args: &Report) -> CommandResult {
    let project = context.project()?;
    page::begin();
    let history = batch_history(&project, args.batch.as_deref())?;
    if context.ui.json {
        context.ui.print_ordered_json(BatchReport::new(&project, history));
    } else if args.html {
        context.ui.print_text(&report_page::render_page(&history));
    } else {
        for line in terminal_lines(&history) {
            context.ui.print_wrapped(&line);
        }
    }
    Ok(Exit::Success)
}

/// Returns the report as lines for a terminal.
fn terminal_lines(history: &BatchHistory) -> Vec<String> {
    let mut out = header_lines(history);
    out.push(String::new());
    out.extend(task_table(history));
    let sections: [(&str, Vec<String>); 5] = [
        ("criteria", history.progress.criteria.as_ref().map(criteria_lines).unwrap_or_default()),
        ("did not land at once", history.obstacles.iter().map(obstacle_line).collect()),
        ("landings", history.landings.iter().map(landing_line).collect()),
        (
            "remarks",
            history
                .notes
                .iter()
                .map(|note| format!("{}  {}", note.at.to_local_date_time(), note.describe()))
                .collect(),
        ),
        ("marked in the plan", plan_mark_lines(history)),
    ];
    for (title, lines) in sections.into_iter().filter(|(_, lines)| !lines.is_empty()) {
        out.extend([String::new(), console::style(title).bold().to_string()]);
        out.extend(lines.iter().map(|line| format!("  {}", terminal_text::escape_line(line))));
    }
    for patch in unmarked_patches(history) {
        out.push(String::new());
        out.extend(terminal_text::escape_lines(patch));
    }
    out
}

fn header_lines(history: &BatchHistory) -> Vec<String> {
    let progress = &history.progress;
    let reason = progress.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let state = format!("{}{}", progress.state, terminal_text::escape_line(&reason));
    let sources = history.sources.join(" ");
    let sources = if progress.summary.is_empty() { sources } else { format!(" ({sources})") };
    let landed_on = clause("; all of it is on ", progress.landed_on.as_deref().unwrap_or_default(), "");
    let facts = [
        ("plan", format!("{}{sources}", progress.summary)),
        ("landed", landed_summary(history)),
        ("branch", format!("{} for {}{landed_on}", progress.branch, progress.base)),
        (
            "took",
            format!(
                "{}, since {}",
                ui::short_duration(history.duration()),
                history.began.to_local_date_time()
            ),
        ),
        ("cost", cost_summary(history)),
    ];
    let lines = facts.iter().filter(|(_, value)| !value.is_empty());
    let lines = lines.map(|(name, value)| format!("  {name:<8} {}", terminal_text::escape_line(value)));
    std::iter::once(format!("batch {}  {state}", progress.batch)).chain(lines).collect()
}

/// Columns of the table of tasks.
const TASK_COLUMNS: [Column; 6] = [
    Column::number("WAVE").hidden_at(3),
    Column::name("TASK"),
    Column::text("STATE", 8),
    Column::number("RUNS").hidden_at(4),
    Column::number("COST").hidden_at(2),
    Column::text("DETAIL", 12).hidden_at(1),
];

fn task_table(history: &BatchHistory) -> Vec<String> {
    let row = |task: &TaskProgress| {
        vec![
            history.wave_of(&task.name).map(|wave| wave.to_string()).unwrap_or_default(),
            terminal_text::escape_line(&task.name),
            task.state.clone(),
            if task.attempts > 0 { task.attempts.to_string() } else { String::new() },
            history.cost_of(&task.name).map(usage::cost_text).unwrap_or_default(),
            terminal_text::escape_line(task.detail.as_deref().unwrap_or(&task.title)),
        ]
    };
    let rows = history.progress.tasks.iter().map(row).collect();
    render(&TASK_COLUMNS, rows).lines().map(str::to_owned).collect()
}

/// Formats a conflict or a failed check of the batch.
fn obstacle_line(obstacle: &Obstacle) -> String {
    let Obstacle { task, status, files, .. } = obstacle;
    let log = obstacle.log.as_ref().map(|log| format!("; it wrote {}", log.display())).unwrap_or_default();
    match &obstacle.check {
        Some(check) => format!("{task}  `{check}` failed{log}"),
        None => format!("{task}  conflict, {status}: {}", comma_list(files)),
    }
}

/// Formats a landing: its time, tasks, tip and passed checks.
fn landing_line(landing: &LandingEvent) -> String {
    let tip = landing.tip.map(|tip| format!("  {}", tip.short())).unwrap_or_default();
    let checks = comma_list(landing.checks.iter().map(|check| format!("`{check}`")));
    format!(
        "{}  {}{tip}{}",
        landing.at.to_local_date_time(),
        landing.tasks.join(", "),
        clause("  passed ", &checks, "")
    )
}
