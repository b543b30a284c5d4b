//! An agent's report on its task, as text.

use proq_base::terminal_text;
use proq_lib::types::{ReportRecord, RunNumber};

use crate::cli::invocation::context::CommandContext;

/// Prints an agent's report, one labeled line per line of text.
pub(crate) fn print_report(context: &CommandContext, report: &ReportRecord) {
    let print_section = |key: &str, texts: &[String]| {
        for text in texts {
            for (n, text) in terminal_text::escape_lines(text).enumerate() {
                context.ui.print_field(if n == 0 { key } else { "" }, text);
            }
        }
    };
    print_section("reported", report.status.as_slice());
    print_section("found", &report.findings);
    print_section("to do", &report.human_steps);
    let run_suffix =
        if report.run == RunNumber::NONE { String::new() } else { format!(", in run {}", report.run) };
    context.ui.print_field("", format!("said {}{run_suffix}", report.at.to_local_text()));
}
