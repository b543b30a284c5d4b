//! `git proq status`: shows the status of the repository, or the progress of batches.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use console::style;
use proq_base::explain::Exit;
use proq_base::hint;
use proq_base::terminal_text;
use proq_lib::board::batch_hints::status_hints;
use proq_lib::board::batches::{BatchList, BatchStatus, batch_status};
use proq_lib::board::status::repository_status::RepositoryStatus;
use proq_lib::swarm::status::progress::{BatchProgress, TaskProgress};
use serde::Serialize;

use super::report_text::criteria_lines;
use super::text_parts::{boxes_suffix, clause, count_texts, dollars};
use crate::cli::arguments::candidates::batch_ids;
use crate::cli::inspect::repository_status::print_status;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::terminal::table::Column;
use crate::cli::terminal::{page, table, ui};

/// Show the status of the repository
///
/// One screen: the preview, what needs you, lanes by state, batches, the merge queue, and recent landings. With BATCH, the
/// progress of that batch, as by `git proq batch status`.
///
/// Examples:
///     git proq status
///     git proq status --json
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Status {
    /// Batch to show instead
    #[arg(value_name = "BATCH", add = ArgValueCompleter::new(batch_ids))]
    batch: Option<String>,
    /// List every batch, finished ones too
    #[arg(long, hide = true, conflicts_with = "batch")]
    all: bool,
}

/// Show the progress of a batch
///
/// Without BATCH, that of the unfinished one; if there are more or none, a line for each batch.
///
/// Example:
///     git proq batch status
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct BatchStatusArgs {
    /// The batch
    #[arg(value_name = "BATCH", add = ArgValueCompleter::new(batch_ids))]
    pub(crate) batch: Option<String>,
    /// List every batch, finished ones too
    #[arg(long, conflicts_with = "batch")]
    pub(crate) all: bool,
}

/// JSON output: the status of the repository, beside the progress of the only batch or a list of all.
#[derive(Serialize)]
struct StatusOutput {
    #[serde(flatten)]
    batch: Option<Box<BatchProgress>>,
    #[serde(flatten)]
    batches: Option<BatchList>,
    repository: RepositoryStatus,
}

pub(crate) fn run(context: &CommandContext, args: &Status) -> CommandResult {
    if args.batch.is_some() || args.all {
        return show_batches(context, &BatchStatusArgs { batch: args.batch.clone(), all: args.all });
    }
    let project = context.project_to_read()?;
    let repository = RepositoryStatus::load(&project)?;
    if context.ui.json {
        let (batch, batches) = match batch_status(&project, None, false)? {
            BatchStatus::One(_, progress) => (Some(progress), None),
            BatchStatus::All(list) => (None, Some(list)),
        };
        context.ui.print_ordered_json(StatusOutput { batch, batches, repository });
    } else {
        print_status(context.ui, &project, &repository);
    }
    Ok(Exit::Success)
}

/// Shows the progress of the batch that is named, or of the unfinished one, or a line for each.
pub(crate) fn show_batches(context: &CommandContext, args: &BatchStatusArgs) -> CommandResult {
    let project = context.project_to_read()?;
    page::begin();
    match batch_status(&project, args.batch.as_deref(), args.all)? {
        BatchStatus::One(_, progress) if context.ui.json => context.ui.print_ordered_json(progress),
        BatchStatus::One(batch, progress) => {
            print_batch(context, &progress);
            for hint in status_hints(&project, &batch, &progress) {
                context.ui.hint(hint);
            }
        }
        BatchStatus::All(list) if context.ui.json => context.ui.print_json(list),
        BatchStatus::All(list) if list.batches.is_empty() => {
            context.ui.status("no batches yet");
            context.ui.hint(hint!("start one: git proq swarm plan.toml"));
        }
        BatchStatus::All(list) => {
            context
                .ui
                .print_line(table::render(&BATCH_COLUMNS, list.batches.iter().map(batch_row).collect()));
        }
    }
    Ok(Exit::Success)
}

/// Columns of the list of batches.
const BATCH_COLUMNS: [Column; 5] = [
    Column::new("BATCH"),
    Column::text("STATE", 8),
    Column::new("LANDED"),
    Column::number("COST").hidden_at(1),
    Column::text("PLAN", 12).hidden_at(2),
];

/// Columns of the table of a batch's tasks.
const TASK_COLUMNS: [Column; 5] = [
    Column::name("TASK"),
    Column::text("STATE", 8),
    Column::number("RUNS").hidden_at(2),
    Column::name("LANE").hidden_at(3),
    Column::text("DETAIL", 12).hidden_at(1),
];

fn batch_row(progress: &BatchProgress) -> Vec<String> {
    vec![
        progress.batch.to_string(),
        progress.displayed_state().to_owned(),
        format!("{} of {}", progress.counts.landed, progress.counts.tasks),
        progress.cost.map_or_else(|| "-".to_owned(), dollars),
        terminal_text::escape_line(&progress.summary),
    ]
}

fn print_batch(context: &CommandContext, progress: &BatchProgress) {
    let summary = terminal_text::escape_line(&clause("  ", &progress.summary, ""));
    context.ui.print_wrapped(&format!("batch {}{summary}", style(&progress.batch).bold()));
    let counts = progress.counts;
    let mut parts = vec![format!("{} of {} landed", counts.landed, ui::pluralize(counts.tasks, "task"))];
    parts.extend(count_texts([
        (counts.done_before, "done before"),
        (counts.running, "at work"),
        (counts.landing, "landing"),
        (counts.waiting, "waiting"),
        (counts.failed, "failed"),
        (counts.skipped, "skipped"),
        (counts.unfinished, "left over"),
    ]));
    parts.extend(progress.cost.map(dollars));
    let reason = progress.reason.as_deref().filter(|_| progress.state == "paused").unwrap_or_default();
    let state = format!("{}{}", progress.displayed_state(), clause(" (", reason, ")"));
    context.ui.print_wrapped(&format!("{state}: {}", parts.join(", ")));
    let landed_on = clause("; merged into ", progress.landed_on.as_deref().unwrap_or_default(), "");
    context.ui.print_wrapped(&format!("from {}, lands on {}{landed_on}", progress.base, progress.branch));
    context.ui.print_line("");
    let rows = progress.tasks.iter().map(|task| task_row(progress, task)).collect();
    context.ui.print_line(table::render(&TASK_COLUMNS, rows));
    if let Some(report) = &progress.criteria {
        context.ui.print_line("");
        for line in criteria_lines(report) {
            context.ui.print_wrapped(&line);
        }
    }
}

fn task_row(progress: &BatchProgress, task: &TaskProgress) -> Vec<String> {
    let elapsed_text = progress.lanes.iter().find(|lane| lane.task == task.name).map(|lane| {
        let activity = clause(", ", lane.activity.as_deref().unwrap_or_default(), "");
        format!("for {}{activity}", ui::short_duration(lane.elapsed))
    });
    let detail = task.detail.clone().or(elapsed_text).unwrap_or_else(|| task.title.clone());
    vec![
        task.name.clone(),
        format!("{}{}", task.state, boxes_suffix(task.boxes)),
        task.attempts.to_string(),
        task.lane.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string),
        terminal_text::escape_line(&detail),
    ]
}
