//! Output of a failure: one line with the error, then its causes and hints.

use console::style;
use proq_base::explain::{Exit, Explain};
use proq_base::{interrupt, terminal_text};
pub(crate) use proq_lib::ops::error::Error as Failure;
use serde::Serialize;

use crate::cli::terminal::ui;

/// JSON output of a failure.
#[derive(Serialize)]
struct FailureOutput {
    error: String,
    causes: Vec<String>,
    hints: Vec<String>,
    exit: u8,
}

/// Prints a failure and returns the exit code.
pub(crate) fn print_failure(failure: &Failure, json: bool) -> Exit {
    let error = failure.0.as_ref();
    let signal = interrupt::received_signal();
    let exit = if signal == 0 { error.exit() } else { Exit::Signal(signal) };
    let hints: Vec<String> = error.hints().iter().map(ToString::to_string).collect();
    let causes = cause_lines(error);
    let message = match signal {
        0 => error.to_string(),
        // After Ctrl-C, git's own error about the same signal would only hide the cause.
        _ => interrupt::Interrupted.to_string(),
    };
    if json {
        let output = FailureOutput { error: message, causes, hints, exit: exit.code() };
        ui::Ui { json, quiet: true, verbose: false }.print_json(output);
        return exit;
    }
    ui::print_error("error:", &printable_text(&message), true);
    for cause in causes {
        ui::print_error("  caused by:", &printable_text(&cause), false);
    }
    for hint in hints {
        ui::print_error(&style("hint:").cyan().for_stderr().to_string(), &printable_text(&hint), false);
    }
    exit
}

/// Escapes terminal control characters. Names and settings in the text may come from a repository that
/// another user wrote.
fn printable_text(text: &str) -> String {
    terminal_text::escape_lines(text).collect::<Vec<_>>().join("\n")
}

/// Returns the chain of causes, without texts that an earlier line already contains.
fn cause_lines(error: &dyn Explain) -> Vec<String> {
    let mut seen_text = error.to_string();
    let mut out = Vec::new();
    let mut source = error.source();
    while let Some(cause) = source {
        let text = cause.to_string().trim_end().to_owned();
        if !seen_text.contains(&text) {
            seen_text.push_str(&text);
            // Other programs and libraries may write long texts; only the first line is shown.
            out.push(text.lines().next().unwrap_or_default().to_owned());
        }
        source = cause.source();
    }
    out
}
