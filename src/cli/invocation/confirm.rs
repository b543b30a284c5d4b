//! Yes-or-no questions to the user at the terminal.

use std::io::{BufRead, IsTerminal};

use super::context::CommandContext;
use super::failure::Failure;
use super::usage_error::UsageError;
use crate::cli::terminal::ui;

/// Returns whether no user can answer a question: stdin or stderr is no terminal, or the output is JSON.
pub(crate) fn cannot_prompt_user(context: &CommandContext) -> bool {
    !std::io::stdin().is_terminal() || !ui::stderr_is_terminal() || context.ui.json
}

/// Prompts the user for confirmation.
///
/// # Errors
/// [`UsageError::Declined`] if the answer is not yes.
pub(crate) fn confirm(question: &str) -> Result<(), Failure> {
    if is_confirmed(question) { Ok(()) } else { Err(UsageError::Declined.into()) }
}

/// Prompts the user, and returns whether the answer is yes.
pub(crate) fn is_confirmed(question: &str) -> bool {
    matches!(prompt(question).trim(), "y" | "Y" | "yes")
}

/// Prompts the user. An empty answer means yes, because the user typed the command.
pub(crate) fn is_confirmed_by_default(question: &str) -> bool {
    matches!(prompt(question).trim(), "" | "y" | "Y" | "yes")
}

fn prompt(question: &str) -> String {
    ui::print_inline(question);
    let mut answer = String::new();
    drop(std::io::stdin().lock().read_line(&mut answer));
    answer
}
