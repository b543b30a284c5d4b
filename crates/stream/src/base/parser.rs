//! Interface of the parsers, one for each dialect.

use proq_base::usage::Tokens;
use serde_json::Value;

use super::collector::EventCollector;
use super::run_end::{Exit, RunEnd};

/// The parser of one dialect.
pub trait Parser {
    /// Handles one line that is a JSON object.
    fn parse_event(&mut self, line: &Value, collector: &mut EventCollector);

    /// Handles one line that git-proq wrote into the log as the agent's client. Without an own
    /// implementation, it counts as an event of the agent.
    fn parse_client_line(&mut self, line: &Value, collector: &mut EventCollector) {
        self.parse_event(line, collector);
    }

    /// Handles one line that is not JSON: a message of the agent's program, or output of an agent that writes
    /// only text.
    fn parse_text_line(&mut self, line: &str, collector: &mut EventCollector) {
        collector.add_non_event_line(line);
    }

    /// Handles one line of the agent's standard error.
    fn parse_stderr_line(&mut self, _line: &str, _collector: &mut EventCollector) {}

    /// Returns how the run ended, if the stream or the exit code reveals it. Called once, after the last
    /// line.
    fn finish(&mut self, collector: &mut EventCollector, _exit: Exit) -> Option<RunEnd> {
        collector.end.clone()
    }

    /// Returns whether the agent writes JSON, so that lines in braces are parsed.
    fn writes_json(&self) -> bool {
        true
    }

    /// Returns whether a line is known to be irrelevant, so that it is not parsed.
    fn can_skip_line(&self, _line: &[u8]) -> bool {
        false
    }

    /// Returns the reason why the run counts as repeating requests without end, if it does.
    fn runaway_reason(&self) -> Option<String> {
        None
    }
}

/// Returns the `type` of a line; a fixed text where it has none.
pub(crate) fn event_type(line: &Value) -> &str {
    line.get("type").and_then(Value::as_str).unwrap_or("no type")
}

/// Creates token counters from an input count that includes cached tokens.
pub(crate) fn tokens_from_total_input(
    total_input: u64,
    cached_input: u64,
    cache_write: u64,
    output: u64,
    reasoning: u64,
) -> Tokens {
    let input = total_input.saturating_sub(cached_input).saturating_sub(cache_write);
    Tokens { input, cached_input, cache_write, output, reasoning }
}
