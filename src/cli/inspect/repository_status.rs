//! The screen of `git proq status`: everything about a repository at a glance.

use proq_base::terminal_text::escape_line;
use proq_lib::board::queue::QueueRow;
use proq_lib::board::status::repository_status::{
    BatchSummary, RecentLanding, RepositoryStatus, StatusAttention,
};
use proq_lib::lane::Project;
use proq_lib::types::{LaneState, now};

use super::first_steps::first_hint;
use crate::cli::terminal::ui;
use crate::cli::terminal::ui::Ui;

/// Maximum number of lines below one heading; how many more there are is printed.
const MAX_LINES: usize = 8;

/// Prints the status of a repository, without sections that are empty.
pub(crate) fn print_status(ui: Ui, project: &Project, status: &RepositoryStatus) {
    if status.is_empty() {
        ui.print_line("No lanes yet.");
        return ui.hint(first_hint(project));
    }
    if let Some(preview) = &status.preview {
        let waiting = if preview.waiting { "; your changes are saved" } else { "" };
        ui.print_line(match preview.shown {
            true => format!("Preview of '{}', from {}{waiting}", preview.lane, preview.from),
            false => format!("The preview of '{}' was left with git{waiting}", preview.lane),
        });
        ui.print_line("  return: git proq preview --back");
    }
    print_section(ui, "Needs you", &status.attention, attention_lines);
    let count = |state: &LaneState| Some(format!("{} {state}", status.lanes.get(&state.to_string())?));
    let states: Vec<String> = LaneState::IN_DISPLAY_ORDER.iter().filter_map(count).collect();
    ui.print_line(match states.is_empty() {
        true => "Lanes: none".to_owned(),
        false => format!("Lanes: {}", states.join(", ")),
    });
    print_section(ui, "Batches", &status.batches, |batch| vec![batch_line(batch)]);
    print_section(ui, "Merge queue", &status.queue, |row| vec![queue_line(row)]);
    print_section(ui, "Landed in the last 24 hours", &status.landed, |landing| vec![landing_line(landing)]);
}

/// Prints a heading with the lines of its items; nothing without items.
fn print_section<T>(ui: Ui, heading: &str, items: &[T], lines_of: impl Fn(&T) -> Vec<String>) {
    if items.is_empty() {
        return;
    }
    ui.print_line(format!("{heading}:"));
    for line in items.iter().take(MAX_LINES).flat_map(lines_of) {
        ui.print_line(format!("  {line}"));
    }
    if let more @ 1.. = items.len().saturating_sub(MAX_LINES) {
        ui.print_line(format!("  and {more} more"));
    }
}

/// Returns a case that needs a person in one line, and the command that helps in the next.
fn attention_lines(StatusAttention { lane, case }: &StatusAttention) -> Vec<String> {
    let subject = lane.as_ref().map(|lane| format!("{lane}: ")).unwrap_or_default();
    let (why, command) = (escape_line(&case.why), escape_line(&case.command));
    vec![format!("{subject}{why}"), format!("  {command}")]
}

fn batch_line(batch: &BatchSummary) -> String {
    let (id, state, counts) = (&batch.batch, &batch.state, batch.counts);
    let summary = escape_line(&batch.summary);
    let separator = if summary.is_empty() { "" } else { "  " };
    format!("{id}  {state}, {} of {} landed{separator}{summary}", counts.landed, counts.tasks)
}

fn queue_line(row: &QueueRow) -> String {
    let age = row.since.map(|since| format!(", for {}", ui::short_duration(now().duration_since(since))));
    let description = row.description.as_deref().unwrap_or("another version of git-proq");
    format!("{}: {}{}", row.state, escape_line(description), age.unwrap_or_default())
}

fn landing_line(landing: &RecentLanding) -> String {
    let age = ui::short_duration(now().duration_since(landing.at));
    let commit = landing.commit.get(..8).unwrap_or(&landing.commit);
    format!("{}  on {} as {commit}, {age} ago", landing.lane, landing.onto)
}
