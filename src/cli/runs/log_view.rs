//! Logs of runs converted for output, and followed while they grow.

use std::borrow::Cow;
use std::io::IsTerminal;
use std::path::Path;

use proq_base::usage::SessionTotals;
use proq_lib::types::RunRecord;
use proq_stream::base::run_end;
use proq_stream::reader::{Dialect, OutputReader};

use crate::cli::terminal::log_renderer::LogRenderer;
use crate::cli::terminal::log_sanitizer::LogSanitizer;

/// Conversion of a log for output: unchanged, safe for a terminal, or rendered from its events.
pub(crate) enum LogView {
    Verbatim,
    TerminalSafe(LogSanitizer),
    Rendered(Box<(OutputReader, LogRenderer)>),
}

impl LogView {
    /// Creates a view of a log in an unknown format. Terminal escape sequences pass only with `raw` or if
    /// standard output is not a terminal.
    pub(crate) fn unstructured(raw: bool) -> LogView {
        match !raw && std::io::stdout().is_terminal() {
            true => LogView::TerminalSafe(LogSanitizer::default()),
            false => LogView::Verbatim,
        }
    }

    /// Creates a view of a run's log: rendered if its dialect is known and `raw` is not set, with paths relative to
    /// the lane's worktree; otherwise as [`LogView::unstructured`].
    pub(crate) fn from_record(run: Option<&RunRecord>, worktree: &Path, raw: bool) -> LogView {
        let dialect = run.and_then(|run| Dialect::from_name(run.dialect.as_deref()?));
        match dialect.filter(|dialect| dialect.is_machine_readable() && !raw) {
            None => LogView::unstructured(raw),
            Some(dialect) => LogView::Rendered(Box::new((
                OutputReader::new(dialect, &SessionTotals::default()),
                LogRenderer::new(worktree),
            ))),
        }
    }

    /// Converts the next bytes of the log.
    pub(crate) fn convert<'b>(&mut self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        match self {
            LogView::Verbatim => Cow::Borrowed(bytes),
            LogView::TerminalSafe(log) => Cow::Owned(log.sanitize_chunk(bytes)),
            LogView::Rendered(renderer) => {
                let (reader, render) = renderer.as_mut();
                let mut events = Vec::new();
                reader.feed_stdout(bytes, &mut events);
                let text: String = events.iter().map(|event| render.render_event(event)).collect();
                Cow::Owned(text.into_bytes())
            }
        }
    }

    /// Returns the remaining output at the end of the log.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        let (reader, render) = match self {
            LogView::Verbatim => return Vec::new(),
            LogView::TerminalSafe(log) => return log.finish(),
            LogView::Rendered(renderer) => renderer.as_mut(),
        };
        let mut events = Vec::new();
        drop(reader.finish(run_end::Exit::default(), &mut events));
        events.iter().map(|event| render.render_event(event)).collect::<String>().into_bytes()
    }
}
