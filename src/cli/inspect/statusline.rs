//! `git proq statusline`: one short line for a prompt.

use clap::Args;
use proq_base::explain::Exit;
use proq_lib::board::status::status_line::StatusLine;

use crate::cli::invocation::context::{CommandContext, CommandResult};

/// Print one short line about the lanes, for a prompt
///
/// It names the lane of the current folder, the previewed lane, and how many lanes are in which state. It reads only records:
/// it takes no lock and starts no program. Outside of a repository it prints nothing.
///
/// Examples:
///     git proq statusline
///     git config --global alias.ps '!git proq statusline'
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct StatuslineArgs {}

pub(crate) fn run(context: &CommandContext, _args: &StatuslineArgs) -> CommandResult {
    // A prompt must not show errors.
    let Ok(line) = StatusLine::load(&context.dir) else { return Ok(Exit::Success) };
    context.show(line, |context, line| {
        let text = line.text();
        if !text.is_empty() {
            context.ui.print_verbatim(text);
        }
    })
}
