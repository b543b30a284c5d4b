//! Reading of one run's output: bytes in any chunks become events.

use proq_base::usage::SessionTotals;
use serde::{Deserialize, Serialize};

use super::base::json;
use super::summary::{Summary, summarize};
use crate::base::client_line::CLIENT_LINE_PREFIX;
use crate::base::collector::EventCollector;
use crate::base::event::StreamEvent;
use crate::base::lines::{Line, LineSplitter};
use crate::base::parser::Parser;
use crate::base::price::Prices;
use crate::base::progress::Progress;
use crate::base::run_end::{Exit, ExitClass};
use crate::dialect::acp::AcpParser;
use crate::dialect::aider::AiderParser;
use crate::dialect::claude::ClaudeParser;
use crate::dialect::codex::CodexParser;
use crate::dialect::copilot::{CopilotParser, parse_usage_file};
use crate::dialect::gemini::GeminiParser;
use crate::dialect::opencode::OpenCodeParser;
use crate::dialect::pi::PiParser;
use crate::dialect::qwen::QwenParser;
use crate::dialect::text_output::TextParser;

/// Format of an agent's output.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    /// Claude Code with `--output-format stream-json`, Amp with `--stream-json`, Cursor with `stream-json`.
    Claude,
    /// Codex with `exec --json`.
    Codex,
    /// opencode with `run --format json`.
    #[serde(rename = "opencode")]
    OpenCode,
    /// Gemini CLI with `-o stream-json`.
    Gemini,
    /// Qwen Code with `-o stream-json`.
    Qwen,
    /// Copilot CLI with `--output-format json`.
    Copilot,
    /// Pi with `--mode json`.
    Pi,
    /// Aider with `--no-pretty --no-stream`.
    Aider,
    /// Messages that a client of the Agent Client Protocol receives, one per line, and the client's own
    /// lines.
    Acp,
    /// Any other program: text, and an exit code that reveals the outcome.
    #[default]
    Text,
}

impl Dialect {
    /// Returns the dialect with this name, as profiles and records contain it.
    pub fn from_name(name: &str) -> Option<Dialect> {
        let name = serde::de::value::StrDeserializer::<serde::de::value::Error>::new(name);
        Dialect::deserialize(name).ok()
    }

    /// Returns whether the output is a machine-readable format, not text for users.
    pub fn is_machine_readable(self) -> bool {
        !matches!(self, Dialect::Aider | Dialect::Text)
    }

    /// Returns whether the output reports how a run ended, so that the exit code is not the only evidence.
    pub fn reports_outcome(self) -> bool {
        self != Dialect::Text
    }

    /// Returns whether relevant events of a run appear only on the agent's standard error.
    pub fn reports_on_stderr(self) -> bool {
        self == Dialect::Gemini
    }

    fn new_parser(self) -> Box<dyn Parser + Send> {
        match self {
            Dialect::Claude => Box::<ClaudeParser>::default(),
            Dialect::Codex => Box::<CodexParser>::default(),
            Dialect::OpenCode => Box::<OpenCodeParser>::default(),
            Dialect::Gemini => Box::<GeminiParser>::default(),
            Dialect::Qwen => Box::<QwenParser>::default(),
            Dialect::Copilot => Box::<CopilotParser>::default(),
            Dialect::Pi => Box::<PiParser>::default(),
            Dialect::Aider => Box::<AiderParser>::default(),
            Dialect::Acp => Box::<AcpParser>::default(),
            Dialect::Text => Box::<TextParser>::default(),
        }
    }
}

impl std::fmt::Display for Dialect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.serialize(f)
    }
}

/// Reader of one run's output. It buffers at most one line of each output stream, and only up to a size
/// limit.
pub struct OutputReader {
    stdout_lines: LineSplitter,
    stderr_lines: LineSplitter,
    parser: Box<dyn Parser + Send>,
    collector: EventCollector,
}

impl OutputReader {
    /// Creates a reader for a run. `earlier_totals` are the totals after the last run of the session that is
    /// resumed, or empty. They count only if the stream names that session.
    pub fn new(dialect: Dialect, earlier_totals: &SessionTotals) -> OutputReader {
        let (stdout_lines, stderr_lines) = (LineSplitter::default(), LineSplitter::default());
        OutputReader {
            stdout_lines,
            stderr_lines,
            parser: dialect.new_parser(),
            collector: EventCollector::new(earlier_totals),
        }
    }

    /// Adds prices for an agent that reports only tokens, and the requested model for an agent that does not
    /// name its model.
    #[must_use]
    pub fn with_prices(mut self, prices: Prices, model: Option<String>) -> OutputReader {
        self.collector.set_prices_and_model(prices, model);
        self
    }

    /// Reads the next bytes of the agent's standard output, split anywhere, and appends the resulting events
    /// to `out`.
    pub fn feed_stdout(&mut self, bytes: &[u8], out: &mut Vec<StreamEvent>) {
        let (parser, collector) = (self.parser.as_mut(), &mut self.collector);
        self.stdout_lines.feed(bytes, |line| dispatch_line(line, parser, collector));
        collector.drain(out);
    }

    /// Reads the next bytes of the agent's standard error.
    pub fn feed_stderr(&mut self, bytes: &[u8], out: &mut Vec<StreamEvent>) {
        let (parser, collector) = (self.parser.as_mut(), &mut self.collector);
        self.stderr_lines.feed(bytes, |line| {
            if let Line::Complete(bytes) = line {
                let bytes = &bytes[..bytes.len().min(json::MAX_TEXT_BYTES)];
                parser.parse_stderr_line(&String::from_utf8_lossy(bytes), collector);
            }
        });
        collector.drain(out);
    }

    /// Adds the usage in the content of Copilot's `--usage-output-file` file; called before
    /// [`OutputReader::finish`]. Content in another format is ignored.
    pub fn read_usage_file(&mut self, bytes: &[u8], out: &mut Vec<StreamEvent>) {
        if let Some((tokens, model)) = parse_usage_file(bytes) {
            self.collector.set_model(model.as_deref().unwrap_or_default());
            let run_usage = self.collector.run_usage_from_session(tokens);
            self.collector.set_usage(run_usage);
            self.collector.drain(out);
        }
    }

    /// Ends reading after the process has exited, and returns the summary of the run.
    pub fn finish(&mut self, exit: Exit, out: &mut Vec<StreamEvent>) -> Summary {
        let (parser, collector) = (self.parser.as_mut(), &mut self.collector);
        self.stdout_lines.finish(|line| dispatch_line(line, parser, collector));
        collector.flush_chunks();
        let end = parser.finish(collector, exit);
        collector.flush_chunks();
        collector.drain(out);
        summarize(collector, end, exit)
    }

    /// Returns whether the agent has reported the end of its run. Its process may still run and start another
    /// turn.
    pub fn has_reported_end(&self) -> bool {
        self.collector.end.is_some()
    }

    /// Returns whether the agent has reported an end with success.
    pub fn has_reported_success(&self) -> bool {
        self.collector.end.as_ref().is_some_and(|end| end.class == ExitClass::Done)
    }

    /// Returns whether the bytes read so far end with a complete line.
    pub fn is_at_line_start(&self) -> bool {
        self.stdout_lines.is_at_line_start()
    }

    /// Returns the reason why the agent counts as repeating requests without end, if it does.
    pub fn runaway_reason(&self) -> Option<String> {
        self.parser.runaway_reason()
    }

    /// Returns the progress of the run so far.
    pub fn progress(&self) -> &Progress {
        self.collector.progress()
    }

    /// Returns the number of bytes that the reader holds in memory.
    #[cfg(test)]
    pub(crate) fn memory_bytes(&self) -> usize {
        self.stdout_lines.memory_bytes() + self.stderr_lines.memory_bytes() + self.collector.memory_bytes()
    }
}

/// Passes a line to the parser, by its kind: event of the agent, line of the client, or text. A line that is
/// too long is counted as unknown.
fn dispatch_line(line: Line<'_>, parser: &mut dyn Parser, collector: &mut EventCollector) {
    let Line::Complete(bytes) = line else {
        return collector.add_unknown_line("too long");
    };
    // The prefix is checked before trimming: an additional leading space distinguishes an agent's line from
    // the client's.
    let is_client_line = bytes.starts_with(CLIENT_LINE_PREFIX);
    let bytes = bytes.trim_ascii();
    if parser.can_skip_line(bytes) {
        return;
    }
    let value =
        Some(bytes).filter(|b| parser.writes_json() && b.starts_with(b"{")).and_then(json::parse_bounded);
    if let Some(value) = value {
        if is_client_line {
            parser.parse_client_line(&value, collector);
        } else {
            parser.parse_event(&value, collector);
        }
    } else {
        // The stored text is truncated further.
        let bytes = &bytes[..bytes.len().min(json::MAX_TEXT_BYTES * 2)];
        parser.parse_text_line(&String::from_utf8_lossy(bytes), collector);
    }
}
