//! Yes-or-no questions to the user at the terminal.

use std::io::{BufRead, IsTerminal};

use proq_lib::ops::refusal::Refusal;

use super::context::CommandContext;
use super::failure::Failure;
use crate::cli::terminal::ui;

/// Returns whether no user can answer a question: stdin or stderr is no terminal, or the output is JSON.
pub(crate) fn cannot_prompt_user(context: &CommandContext) -> bool {
    !std::io::stdin().is_terminal() || !ui::stderr_is_terminal() || context.ui.json
}

/// Prompts the user for confirmation.
///
/// # Errors
/// [`Refusal::Declined`] if the answer is not yes.
pub(crate) fn require_confirmation(question: &str) -> Result<(), Failure> {
    if prompt_yes_no(question) { Ok(()) } else { Err(Refusal::Declined.into()) }
}

/// Prompts the user, and returns whether the answer is yes. An empty answer means no.
pub(crate) fn prompt_yes_no(question: &str) -> bool {
    matches!(prompt_for_line(question).trim(), "y" | "Y" | "yes")
}

/// Prompts the user, and returns whether the answer is yes. An empty answer means yes, because the user typed
/// the command.
pub(crate) fn prompt_yes_by_default(question: &str) -> bool {
    matches!(prompt_for_line(question).trim(), "" | "y" | "Y" | "yes")
}

/// Prints the question to standard error, and returns the line that the user types; empty at end of input.
fn prompt_for_line(question: &str) -> String {
    ui::print_inline(question);
    let mut answer = String::new();
    drop(std::io::stdin().lock().read_line(&mut answer));
    answer
}
