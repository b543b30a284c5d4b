//! The changes of a lane, compared with the commit that it forked from.

use std::io::IsTerminal;

use proq_lib::board::diff::LaneDiff;
use proq_lib::types::PrintChunk;

use crate::cli::invocation::context::CommandContext;
use crate::cli::invocation::failure::Failure;
use crate::cli::terminal::log_sanitizer::LogSanitizer;

/// Prints a difference in git's format.
pub(crate) fn print_diff(context: &CommandContext, diff: &LaneDiff<'_>, stat: bool) -> Result<(), Failure> {
    let mut plain_output = LogSanitizer::default();
    let mut print = |chunk: &[u8]| context.ui.print_bytes(&plain_output.sanitize_chunk(chunk));
    let print: Option<PrintChunk<'_>> = if std::io::stdout().is_terminal() { Some(&mut print) } else { None };
    diff.show(stat, print)?;
    context.ui.print_bytes(&plain_output.finish());
    Ok(())
}
