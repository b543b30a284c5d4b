//! The `git proq queue` command.

use clap::Args;
use proq_base::explain::Exit;
use proq_lib::ops::queue;
use proq_lib::ops::queue::QueueRow;

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

pub(crate) fn run(context: &CommandContext) -> CommandResult {
    let outcome = queue::list(&context.project()?)?;
    if context.ui.json {
        context.ui.print_json(outcome);
        return Ok(Exit::Success);
    }
    if outcome.queue.is_empty() {
        context.ui.status("nobody is landing anything");
        return Ok(Exit::Success);
    }
    let rows = outcome.queue.iter().map(table_cells).collect();
    context.ui.print_line(table::render(&["#", "STATE", "LANDS", "PROCESS", "SINCE", "COMMAND"], rows));
    Ok(Exit::Success)
}

fn table_cells(row: &QueueRow) -> Vec<String> {
    let (number, state) = (row.position.to_string(), row.state.to_owned());
    let (Some(lands), Some(pid), Some(since)) = (&row.description, row.pid, row.since) else {
        let unknown = || "?".to_owned();
        return vec![number, state, unknown(), unknown(), unknown(), "of another version of git-proq".into()];
    };
    let state = if row.is_suspended { format!("{state}, stopped (Ctrl-Z)") } else { state };
    let process = match &row.host {
        Some(host) if row.is_on_other_host => format!("{pid} on {host}"),
        _ => pid.to_string(),
    };
    vec![
        number,
        state,
        lands.clone(),
        process,
        since.to_local_text(),
        row.command.clone().unwrap_or_default(),
    ]
}
