//! The changes of a lane, compared with the commit that it forked from.

use std::io::IsTerminal;

use proq_lib::board::diff::LaneDiff;
use proq_lib::lane::Project;
use proq_lib::types::{LaneRecord, PrintChunk, RunNumber};

use crate::cli::invocation::context::CommandContext;
use crate::cli::invocation::failure::Failure;
use crate::cli::terminal::log_sanitizer::LogSanitizer;

/// Prepares the comparison of a lane or one of its runs, and warns of files that cannot be read.
pub(crate) fn open<'p>(
    context: &CommandContext,
    project: &'p Project,
    lane: LaneRecord,
    run: Option<RunNumber>,
) -> Result<LaneDiff<'p>, Failure> {
    let diff = LaneDiff::open(project, lane, run)?;
    for path in &diff.unreadable_paths {
        context.ui.warn(format!("{path} is left out: it cannot be read"));
    }
    Ok(diff)
}

/// Prints a difference in git's format.
pub(crate) fn print_diff(context: &CommandContext, diff: &LaneDiff<'_>, stat: bool) -> Result<(), Failure> {
    let mut plain_output = LogSanitizer::default();
    let mut print = |chunk: &[u8]| context.ui.print_bytes(&plain_output.sanitize_chunk(chunk));
    let print: Option<PrintChunk<'_>> = if std::io::stdout().is_terminal() { Some(&mut print) } else { None };
    diff.show(stat, print)?;
    context.ui.print_bytes(&plain_output.finish());
    Ok(())
}
