//! Prompts for the approval of commands that come with the repository.

use proq_lib::event::approval::ShellCommand;
use proq_lib::swarm::ops::approve::SHORT_ID_LEN;

use super::context::CommandContext;

/// Question before commands are approved.
pub(crate) const APPROVE_QUESTION: &str = "Trust these commands? [y/N] ";

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
        context.ui.status("this repository defines no commands");
    }
}
