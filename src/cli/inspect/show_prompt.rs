//! `git proq show --prompt`: prints the prompt that the last run of a lane was given.

use std::io::IsTerminal;
use std::path::Path;

use proq_lib::board::rows::run_prompt::RunPrompt;
use proq_lib::types::AnyLane;

use crate::cli::invocation::context::{CommandContext, CommandResult};

/// Prints the prompt of the lane's last run from `dir`, the lane's record folder.
pub(crate) fn print_prompt(context: &CommandContext, lane: &AnyLane, dir: &Path) -> CommandResult {
    context.show(RunPrompt::load(lane, dir)?, |context, prompt| {
        if let Some(rules) = &prompt.rules {
            context.ui.status("apart from the prompt:");
            context.ui.print_text(rules);
            context.ui.print_line("");
            context.ui.status("the prompt:");
        }
        for (n, text) in std::iter::once(&prompt.prompt).chain(&prompt.delivered_messages).enumerate() {
            if n > 0 {
                context.ui.print_line("");
                context.ui.status("messages during the run:");
            }
            context.ui.print_text(text);
            if !std::io::stdout().is_terminal() && !text.ends_with('\n') {
                context.ui.print_line("");
            }
        }
    })
}
