//! The `git proq queue` command.

use clap::Args;
use proq_lib::board::queue::{QueueRow, read_queue};
use proq_lib::types::Moment;

use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::terminal::table::Column;

/// Columns of the queue.
const COLUMNS: [Column; 6] = [
    Column::number("#"),
    Column::text("STATE", 8),
    Column::text("LANDS", 12),
    Column::new("PROCESS").hidden_at(2),
    Column::new("SINCE").hidden_at(1),
    Column::text("COMMAND", 12).hidden_at(3),
];

/// Show the merge queue
///
/// Each merge waits until those before it have finished, first come, first served. A merge that is
/// interrupted leaves the queue at once. While an agent resolves conflicts for a merge, that merge is not
/// in the queue; it returns at the end to merge the resolution.
///
/// Examples:
///     git proq queue
///     git proq queue --json | jq '.queue | length'
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Queue {}

pub(crate) fn run(context: &CommandContext, _args: &Queue) -> CommandResult {
    let project = context.project()?;
    context.show(read_queue(&project)?, |context, output| {
        let rows = output.queue.into_iter().map(table_cells).collect();
        context.ui.print_table(&COLUMNS, rows, "the merge queue is empty");
    })
}

fn table_cells(row: QueueRow) -> Vec<String> {
    let unknown = || "?".to_owned();
    let pid = row.pid.map_or_else(unknown, |pid| pid.to_string());
    let state =
        if row.is_suspended { format!("{}, stopped (Ctrl-Z)", row.state) } else { row.state.to_owned() };
    vec![
        row.position.to_string(),
        state,
        row.description.unwrap_or_else(unknown),
        row.host.filter(|_| !row.is_local).map_or_else(|| pid.clone(), |host| format!("{pid} on {host}")),
        row.since.map_or_else(unknown, Moment::to_local_text),
        row.command.unwrap_or_else(|| "of another version of git-proq".to_owned()),
    ]
}
