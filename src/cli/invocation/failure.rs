//! Output of a failure: one line with the error, then its causes and hints.

use proq_base::explain::{Exit, Explain, without_os_codes};
use proq_base::{interrupt, terminal_text};
pub(crate) use proq_lib::ops::error::Error as Failure;
use serde::{Deserialize, Serialize};

use crate::cli::terminal::ui;

/// JSON output of a failure.
#[derive(Serialize, Deserialize)]
pub(crate) struct FailureOutput {
    /// Message, in one line.
    pub(crate) error: String,
    /// Causes, the nearest first.
    pub(crate) causes: Vec<String>,
    /// Hints on what to do.
    pub(crate) hints: Vec<String>,
    exit: u8,
}

impl FailureOutput {
    /// Describes a failure that is not due to a signal.
    pub(crate) fn new(failure: &Failure) -> FailureOutput {
        let error = failure.0.as_ref();
        FailureOutput {
            error: without_os_codes(&error.to_string()),
            causes: cause_lines(error),
            hints: error.hints().iter().map(ToString::to_string).collect(),
            exit: error.exit().code(),
        }
    }
}

/// Prints a failure and returns the exit code.
pub(crate) fn print_failure(failure: &Failure, json: bool) -> Exit {
    let signal = interrupt::received_signal();
    let exit = if signal == 0 { failure.0.exit() } else { Exit::Signal(signal) };
    let mut output = FailureOutput { exit: exit.code(), ..FailureOutput::new(failure) };
    if signal != 0 && !matches!(failure.0.exit(), Exit::Signal(_)) {
        // After Ctrl-C, git's own error about the same signal would only hide the cause.
        output.error = interrupt::Interrupted::BySignal.to_string();
    }
    if json {
        ui::Ui { json, quiet: true, verbose: false }.print_json(output);
        return exit;
    }
    ui::print_error("error:", &printable_text(&output.error), true);
    for cause in output.causes {
        ui::print_error("  caused by:", &printable_text(&cause), false);
    }
    for hint in output.hints {
        ui::print_hint(&printable_text(&hint));
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
        let text = without_os_codes(cause.to_string().trim_end());
        if !seen_text.contains(&text) {
            seen_text.push_str(&text);
            // Other programs and libraries may write long texts; only the first line is shown.
            out.push(text.lines().next().unwrap_or_default().to_owned());
        }
        source = cause.source();
    }
    out
}
