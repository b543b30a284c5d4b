//! `git proq status`: shows the progress of batches.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use console::style;
use proq_base::explain::Exit;
use proq_base::terminal_text;
use proq_lib::board::batches::{BatchStatus, batch_status};
use proq_lib::lane::Project;
use proq_lib::swarm::batch::record::BatchRecord;
use proq_lib::swarm::landing::batch_landing;
use proq_lib::swarm::status::progress::{BatchProgress, TaskProgress};

use super::batch_hints::{criteria_lines, partly_landed_hint, paused_hints};
use crate::cli::arguments::candidates::batch_ids;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::terminal::{table, ui};

/// Show how far a batch is
///
/// Without BATCH, the one that is open; where several are, or none is, a line for each.
///
/// Examples:
///     git proq status
///     git proq status --all
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Status {
    /// The batch
    #[arg(value_name = "BATCH", add = ArgValueCompleter::new(batch_ids))]
    batch: Option<String>,
    /// A line for every batch, also those that are over
    #[arg(long, conflicts_with = "batch")]
    all: bool,
}

pub(crate) fn run(context: &CommandContext, args: &Status) -> CommandResult {
    let project = context.project()?;
    let list = match batch_status(&project, args.batch.as_deref(), args.all)? {
        BatchStatus::One(batch, progress) => {
            print_batch(context, &project, &batch, &progress);
            return Ok(Exit::Success);
        }
        BatchStatus::All(list) => list,
    };
    if context.ui.json {
        context.ui.print_json(list);
    } else if list.batches.is_empty() {
        context.ui.status("no plan was run here yet");
        context.ui.hint("begin: git proq swarm PLAN");
    } else {
        let rows = list.batches.iter().map(batch_row).collect();
        context.ui.print_line(table::render(&["BATCH", "STATE", "LANDED", "TASKS", "COST", "ABOUT"], rows));
    }
    Ok(Exit::Success)
}

fn displayed_state(progress: &BatchProgress) -> String {
    let is_resting = matches!(progress.state, "over" | "paused");
    match (&progress.reason, progress.has_scheduler || is_resting) {
        (Some(reason), _) if progress.state == "over" => reason.clone(),
        (_, true) => progress.state.to_owned(),
        // The log shows the batch as running, but no scheduler process works on it.
        (_, false) => "interrupted".to_owned(),
    }
}

fn batch_row(progress: &BatchProgress) -> Vec<String> {
    vec![
        progress.batch.to_string(),
        displayed_state(progress),
        progress.counts.landed.to_string(),
        progress.counts.tasks.to_string(),
        progress.cost.map_or_else(|| "-".to_owned(), |cost| format!("${:.2}", cost.to_dollars())),
        terminal_text::escape_line(&progress.summary),
    ]
}

fn print_batch(context: &CommandContext, project: &Project, batch: &BatchRecord, progress: &BatchProgress) {
    if context.ui.json {
        return context.ui.print_ordered_json(progress);
    }
    let summary_suffix =
        if progress.summary.is_empty() { String::new() } else { format!("  {}", progress.summary) };
    context.ui.print_line(format!(
        "batch {}{}",
        style(&progress.batch).bold(),
        terminal_text::escape_line(&summary_suffix)
    ));
    let counts = progress.counts;
    let mut parts = vec![format!("{} of {} landed", counts.landed, ui::pluralize(counts.tasks, "task"))];
    for (count, label) in [
        (counts.done_before, "done before"),
        (counts.running, "at work"),
        (counts.landing, "landing"),
        (counts.waiting, "waiting"),
        (counts.failed, "failed"),
        (counts.skipped, "skipped"),
        (counts.unfinished, "left over"),
    ] {
        if count > 0 {
            parts.push(format!("{count} {label}"));
        }
    }
    parts.extend(progress.cost.map(|cost| format!("${:.2}", cost.to_dollars())));
    let reason_suffix =
        progress.reason.as_ref().filter(|_| progress.state == "paused").map(|reason| format!(" ({reason})"));
    context.ui.print_line(format!(
        "{}{}: {}",
        displayed_state(progress),
        reason_suffix.unwrap_or_default(),
        parts.join(", ")
    ));
    let landed_on_suffix =
        progress.landed_on.as_ref().map(|onto| format!("; all of that is on {onto}")).unwrap_or_default();
    context.ui.print_line(format!("from {}, lands on {}{landed_on_suffix}", progress.base, progress.branch));
    context.ui.print_line("");
    context.ui.print_line(task_table(progress));
    if let Some(report) = &progress.criteria {
        context.ui.print_line("");
        for line in criteria_lines(report) {
            context.ui.print_line(line);
        }
    }
    if displayed_state(progress) == "complete"
        && !progress.has_scheduler
        && batch.has_unverified_criteria(&project.store)
    {
        context.ui.hint(format!("have its criteria looked at: git proq resume {}", batch.id));
    }
    print_hints(context, project, batch, progress);
}

fn task_table(progress: &BatchProgress) -> String {
    let task_row = |task: &TaskProgress| {
        let lane_progress = progress.lanes.iter().find(|lane| lane.task == task.name);
        let elapsed_text = lane_progress.map(|lane| {
            let step_suffix = lane.activity.as_ref().map(|step| format!(", {step}")).unwrap_or_default();
            format!("for {}{step_suffix}", ui::short_duration(lane.elapsed))
        });
        let detail = task.detail.clone().or(elapsed_text).unwrap_or_else(|| task.title.clone());
        vec![
            task.name.clone(),
            format!(
                "{}{}",
                task.state,
                task.boxes.map(|boxes| format!(" {}/{}", boxes.done, boxes.total)).unwrap_or_default()
            ),
            task.attempts.to_string(),
            task.lane.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string),
            terminal_text::escape_line(&detail),
        ]
    };
    let rows = progress.tasks.iter().map(task_row).collect();
    table::render(&["TASK", "STATE", "RUNS", "LANE", "MORE"], rows)
}

fn print_hints(context: &CommandContext, project: &Project, batch: &BatchRecord, progress: &BatchProgress) {
    let id = &batch.id;
    if batch.cleaned.is_some() {
        return context.ui.hint("it was cleaned up: its lanes and its branch are gone");
    }
    if displayed_state(progress) == "partly"
        && let Some(hint) = partly_landed_hint(progress)
    {
        context.ui.hint(hint);
    }
    match (displayed_state(progress).as_str(), progress.counts.landed) {
        ("running" | "pausing" | "stopping", _) => {
            context.ui.hint(format!("follow it: git proq resume {id}"));
        }
        ("complete" | "partly", _) if progress.on_base => {
            context.ui.hint(format!("tidy up: git proq cleanup --batch {id}"));
        }
        ("complete" | "partly", landed) if landed > 0 && !batch.auto_merge => {
            context.ui.hint(batch_landing::landing_hint(
                project,
                batch,
                &format!("land it on {}", batch.base),
            ));
        }
        ("complete" | "partly", _) => {}
        ("paused", _) => {
            for hint in paused_hints(progress) {
                context.ui.hint(hint);
            }
        }
        _ => context.ui.hint(format!("go on with it: git proq resume {id}")),
    }
}
