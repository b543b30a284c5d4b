//! Yes-or-no questions to the user at the terminal.

use std::io::{BufRead, IsTerminal};

use console::Term;
use proq_lib::ops::refusal::Refusal;

use super::context::CommandContext;
use super::failure::Failure;
use crate::cli::terminal::{prose, ui};

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
    print_question(question);
    let mut answer = String::new();
    drop(std::io::stdin().lock().read_line(&mut answer));
    answer
}

/// Prints a question to standard error, wrapped to the width of the terminal. The cursor stays behind it, after a
/// blank.
pub(crate) fn print_question(question: &str) {
    let question = question.trim_end();
    // The blank takes a column.
    let width = prose::line_width(&Term::stderr()).map(|width| width.saturating_sub(1));
    let wrapped = width.map(|width| prose::wrap(question, width));
    ui::print_inline(&format!("{} ", wrapped.as_deref().unwrap_or(question)));
}
