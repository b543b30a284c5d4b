//! Logs of runs converted for output, and followed while they grow.

use std::borrow::Cow;
use std::fs::File;
use std::io::{IsTerminal, Read};
use std::path::Path;
use std::time::Duration;

use proq_base::usage::SessionTotals;
use proq_lib::lane::Project;
use proq_lib::lane::context::lane_records;
use proq_lib::lane::inspection::idle_lane;
use proq_store::base::record::Record;
use proq_store::paths::layout::Layout;
use proq_store::records::lane::{AnyLane, LaneRecord};
use proq_store::records::lane_state::LaneState;
use proq_store::records::run::RunRecord;
use proq_stream::base::event::StreamEvent;
use proq_stream::base::run_end;
use proq_stream::reader::{Dialect, OutputReader};

use crate::cli::invocation::failure::Failure;
use crate::cli::invocation::usage_error::UsageError;
use crate::cli::terminal::log_renderer::LogRenderer;
use crate::cli::terminal::log_sanitizer::LogSanitizer;

/// Interval at which a growing log is read. It is short enough for a user who watches.
const POLL_INTERVAL: Duration = Duration::from_millis(80);

/// Maximum number of bytes of a log that are read at once.
const CHUNK_LEN: usize = 64 * 1024;

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

    /// Creates a view of a run's log: rendered if its dialect is known and `raw` is not set; otherwise as
    /// [`LogView::unstructured`].
    pub(crate) fn from_record(run: Option<&RunRecord>, raw: bool) -> LogView {
        let dialect = run.and_then(|run| Dialect::from_name(run.dialect.as_deref()?));
        match dialect.filter(|dialect| dialect.is_machine_readable() && !raw) {
            None => LogView::unstructured(raw),
            Some(dialect) => LogView::Rendered(Box::new((
                OutputReader::new(dialect, &SessionTotals::default()),
                LogRenderer::default(),
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

    /// Parses a complete log into events; empty if its format is unknown.
    pub(crate) fn parse_events(&mut self, bytes: &[u8]) -> Vec<StreamEvent> {
        let mut events = Vec::new();
        if let LogView::Rendered(renderer) = self {
            renderer.0.feed_stdout(bytes, &mut events);
            drop(renderer.0.finish(run_end::Exit::default(), &mut events));
        }
        events
    }
}

/// Passes the unread rest of a file to `consume` in chunks.
pub(crate) fn read_chunks(file: &mut File, consume: &mut dyn FnMut(&[u8])) -> std::io::Result<()> {
    let mut buffer = vec![0; CHUNK_LEN];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(length) => consume(&buffer[..length]),
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// Passes a log to `consume` as it grows, until the lane's run has finished. The logs of retries and further
/// turns follow.
pub(crate) fn follow_log(
    project: &Project,
    lane: &AnyLane,
    log: &Path,
    consume: &mut dyn FnMut(&[u8]),
) -> Result<(AnyLane, LaneState), Failure> {
    let unreadable = |source| UsageError::Unreadable { path: log.to_owned(), source };
    // An automatic merge may remove the lane right after its run, which moves the file.
    let mut file = proq_base::regular_file::open_store_file(log).map_err(unreadable)?;
    let mut run = lane.last_run;
    loop {
        // The state is read first, so that everything written before the end is read below.
        let (dir, lane) = lane_records::load_present_or_past_lane(project, lane)?;
        let (state, detail) = idle_lane::displayed_state(project, &lane)?;
        read_chunks(&mut file, consume).map_err(unreadable)?;
        let next = Layout::run_log_in(&dir, run.next());
        if lane.last_run > run && next.exists() {
            (file, run) = (proq_base::regular_file::open_store_file(&next).map_err(unreadable)?, run.next());
            continue;
        }
        if !state.is_busy() {
            // The supervisor may have updated the record since it was read here.
            return Ok((LaneRecord { detail, ..lane }, state));
        }
        if !lane.state().is_busy() {
            // The run has finished, but its background processes may continue indefinitely.
            let state = lane.state();
            return Ok((lane, state));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Follows a run until it finishes, and reports the last line of each new output.
pub(crate) fn watch_last_line(
    project: &Project,
    lane: &AnyLane,
    log: &Path,
    report_line: &mut dyn FnMut(&str),
) -> Result<(AnyLane, LaneState), Failure> {
    let run = RunRecord::load_if_exists(&project.store.layout().run_record(&lane.name, lane.last_run))?;
    let mut view = LogView::from_record(run.as_ref(), false);
    follow_log(project, lane, log, &mut |bytes| {
        let output = view.convert(bytes);
        let text = String::from_utf8_lossy(&output);
        if let Some(line) = text.lines().rev().find(|l| !l.trim().is_empty()) {
            report_line(&console::strip_ansi_codes(line));
        }
    })
}
