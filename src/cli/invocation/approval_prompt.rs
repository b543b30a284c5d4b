//! Prompts for the approval of commands that come with the repository.

use proq_lib::event::approval::{Approvals, ShellCommand};
use proq_lib::lane::{Error, Project};
use proq_lib::operation::run_operation::operate;
use proq_lib::ops::approvals;
use proq_store::records::approval::ApprovalsRecord;

use super::context::CommandContext;
use super::failure::Failure;

/// Number of characters of a command's id that are displayed, and minimum length of an id that the user
/// gives.
pub(crate) const SHORT_ID_LEN: usize = 8;

/// Question before commands are approved.
pub(crate) const APPROVE_QUESTION: &str = "let them run from now on? [y/N] ";

/// Prompts for what a landing needs approved, if the user can be prompted: the checks of `bases`, the
/// pre-merge hooks, and the conflict agent if one runs. Otherwise the landing itself refuses.
pub(crate) fn prompt_landing_approvals(
    context: &CommandContext,
    project: &Project,
    bases: impl IntoIterator<Item = String>,
    agent: Option<&str>,
) -> Result<(), Failure> {
    approvals::request_landing_approval(project, context, bases, agent)
}

/// Returns those of `commands` that are not approved.
pub(crate) fn unapproved_commands(commands: &[ShellCommand]) -> Vec<ShellCommand> {
    commands.iter().filter(|c| !c.approved).cloned().collect()
}

/// Replaces the approvals of the repository by `record`, as an operation that `undo` takes back.
pub(crate) fn save_approvals(
    project: &Project,
    approvals: &Approvals<'_>,
    record: &ApprovalsRecord,
) -> Result<(), Error> {
    operate(project, "approve", |op| op.save_record(record, &approvals.path))
}

/// Returns the first [`SHORT_ID_LEN`] characters of a command's id.
pub(crate) fn short_id(id: &str) -> &str {
    id.get(..SHORT_ID_LEN).unwrap_or(id)
}

/// Prints commands with their short id, kind, source and approval.
pub(crate) fn print_commands(context: &CommandContext, commands: &[ShellCommand]) {
    for ShellCommand { id, kind, line, source_file: from, approved } in commands {
        let from = from.as_ref().map_or("your own settings".to_owned(), |p| p.display().to_string());
        let state = match (approved, from.as_str()) {
            (true, "your own settings") => "needs no approval",
            (true, _) => "approved",
            (false, _) => "not approved",
        };
        let id = if *approved && state != "approved" { "-" } else { short_id(id) };
        context.ui.print_line(format!("{id:<SHORT_ID_LEN$}  {kind}  {line}  ({from}; {state})"));
    }
    if commands.is_empty() {
        context.ui.status("this repository brings no commands");
    }
}
