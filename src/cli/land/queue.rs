//! The `git proq queue` command.

use clap::Args;
use proq_base::explain::Exit;
use proq_store::base::clock::Moment;
use proq_store::locks::merge_queue;
use proq_store::locks::merge_queue::QueueEntry;
use serde::Serialize;

use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::terminal::table;

/// Show who is landing lanes right now, and who waits for that
///
/// Each `git proq merge` waits until those before it have ended, first come, first served. One that is ended, with Ctrl-C
/// or in any other way, is out of the queue at once. While an agent resolves conflicts for a merge, that merge is not in the
/// queue; it comes back at the end to land what was resolved.
///
/// Examples:
///     git proq queue
///     git proq queue --json | jq '.queue | length'
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Queue {}

#[derive(Serialize)]
struct QueueRow {
    /// Place in the queue, from 1.
    position: usize,
    /// State of the landing: `landing` for the first, `waiting` for the others.
    state: &'static str,
    /// Whether Ctrl-Z suspended the process. Landings behind it then wait.
    #[serde(rename = "stopped")]
    is_suspended: bool,
    /// Whether the landing takes every lane that is done (`--all`), not named lanes.
    all: bool,
    lanes: Vec<String>,
    onto: Option<String>,
    pid: Option<u32>,
    host: Option<String>,
    command: Option<String>,
    /// Time since which the process lands or waits; `None` if another version of git-proq wrote the entry.
    since: Option<Moment>,
}

#[derive(Serialize)]
struct QueueOutput {
    queue: Vec<QueueRow>,
}

pub(crate) fn run(context: &CommandContext) -> CommandResult {
    let project = context.project()?;
    let entries = merge_queue::queued_landings(project.store.locks())?;
    if context.ui.json {
        let queue = entries.into_iter().enumerate().map(|(n, entry)| queue_row(n, entry)).collect();
        context.ui.print_json(QueueOutput { queue });
        return Ok(Exit::Success);
    }
    if entries.is_empty() {
        context.ui.status("nobody is landing anything");
        return Ok(Exit::Success);
    }
    let rows = entries.iter().enumerate().map(|(n, entry)| table_cells(n, entry.as_ref())).collect();
    context.ui.print_line(table::render(&["#", "STATE", "LANDS", "PROCESS", "SINCE", "COMMAND"], rows));
    Ok(Exit::Success)
}

/// Returns the state of the n-th entry, counted from 0. The first one is landing.
fn state_at_queue_index(n: usize) -> &'static str {
    if n == 0 { "landing" } else { "waiting" }
}

fn queue_row(n: usize, entry: Option<QueueEntry>) -> QueueRow {
    let is_suspended = entry.as_ref().is_some_and(|p| p.holder.is_suspended());
    let (request, holder) = entry.map(|p| (p.request, p.holder)).unzip();
    let (lanes, onto) = request.map(|w| (w.lanes, w.onto)).unwrap_or_default();
    QueueRow {
        position: n + 1,
        state: state_at_queue_index(n),
        is_suspended,
        all: holder.is_some() && lanes.is_empty(),
        lanes,
        onto,
        pid: holder.as_ref().map(|h| h.pid),
        since: holder.as_ref().map(|h| h.since),
        host: holder.as_ref().map(|h| h.host.clone()),
        command: holder.map(|h| h.command),
    }
}

fn table_cells(n: usize, entry: Option<&QueueEntry>) -> Vec<String> {
    let (number, state) = ((n + 1).to_string(), state_at_queue_index(n).to_owned());
    let Some(QueueEntry { request, holder }) = entry else {
        let unknown = || "?".to_owned();
        return vec![number, state, unknown(), unknown(), unknown(), "of another version of git-proq".into()];
    };
    let state = if holder.is_suspended() { format!("{state}, stopped (Ctrl-Z)") } else { state };
    let process = if holder.is_on_this_host() {
        holder.pid.to_string()
    } else {
        format!("{} on {}", holder.pid, holder.host)
    };
    let (landing_text, since) = (request.describe(), holder.since.to_local_text());
    vec![number, state, landing_text, process, since, holder.command.clone()]
}
