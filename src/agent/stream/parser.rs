//! Owns what a dialect's parser has to know how to do.

use serde_json::Value;

use super::summary::End;
use super::tally::Tally;
use super::{Exit, Tokens};

/// The parser of one dialect.
pub(super) trait Parser {
    /// One line that is a JSON object.
    fn event(&mut self, line: &Value, tally: &mut Tally);

    /// One line that the client of the protocol wrote, and not the agent. Where nobody tells it more, there is no such line.
    fn client(&mut self, line: &Value, tally: &mut Tally) {
        self.event(line, tally);
    }

    /// One line that is no JSON: most agents' own messages, and all that some say.
    fn words(&mut self, line: &str, tally: &mut Tally) {
        tally.noise(line);
    }

    /// One line of what it writes as errors.
    fn error_line(&mut self, _line: &str, _tally: &mut Tally) {}

    /// How it ended, if the stream or the exit code tells. Called once, after the last line.
    fn end(&mut self, tally: &mut Tally, _exit: Exit) -> Option<End> {
        tally.end.clone()
    }

    /// Whether it writes JSON, so that a line in braces is looked into.
    fn is_json(&self) -> bool {
        true
    }

    /// Whether a line is surely of no use, so that it need not be read.
    fn skips(&self, _line: &[u8]) -> bool {
        false
    }

    /// Why this run will not come to an end by itself, if that is so.
    fn runaway(&self) -> Option<String> {
        None
    }
}

/// A kind's name for events that nobody knows.
pub(super) fn kind_of(line: &Value) -> &str {
    line.get("type").and_then(Value::as_str).unwrap_or("no type")
}

/// What a session counts that includes what was cached in what was sent.
pub(super) fn without_cached(
    sent: u64,
    cached_input: u64,
    cache_write: u64,
    output: u64,
    reasoning: u64,
) -> Tokens {
    let input = sent.saturating_sub(cached_input).saturating_sub(cache_write);
    Tokens { input, cached_input, cache_write, output, reasoning }
}
