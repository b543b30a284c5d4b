//! Owns reading one run's output: bytes in any pieces, events out.

use serde::{Deserialize, Serialize};

use super::claude::Claude;
use super::codex::Codex;
use super::lines::{Line, Lines};
use super::opencode::OpenCode;
use super::parser::Parser;
use super::summary::sum_up;
use super::tally::Tally;
use super::{Event, Exit, Prices, Progress, SessionTotals, Summary, json};

/// What an agent's output is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Dialect {
    /// Claude Code with `--output-format stream-json`, Amp with `--stream-json`, Cursor with `stream-json`.
    Claude,
    /// Codex with `exec --json`.
    Codex,
    /// opencode with `run --format json`.
    #[serde(rename = "opencode")]
    OpenCode,
}

impl Dialect {
    fn parser(self) -> Box<dyn Parser + Send> {
        match self {
            Dialect::Claude => Box::<Claude>::default(),
            Dialect::Codex => Box::<Codex>::default(),
            Dialect::OpenCode => Box::<OpenCode>::default(),
        }
    }
}

/// Reads one run's output. It holds one line at most, and that only up to a bound.
pub(crate) struct Reader {
    lines: Lines,
    parser: Box<dyn Parser + Send>,
    tally: Tally,
}

impl Reader {
    /// A reader for a run. `before` is what the last run of the same session left, or nothing; it counts only if the stream
    /// names that session.
    pub(crate) fn new(dialect: Dialect, before: &SessionTotals) -> Reader {
        Reader { lines: Lines::default(), parser: dialect.parser(), tally: Tally::new(before) }
    }

    /// With prices for an agent that gives only tokens, and the model it was asked to use, for one that does not name it.
    #[must_use]
    pub(crate) fn expecting(mut self, prices: Prices, model: Option<String>) -> Reader {
        self.tally.expect(prices, model);
        self
    }

    /// Takes the next bytes, cut anywhere, and appends what they tell.
    pub(crate) fn feed(&mut self, bytes: &[u8], out: &mut Vec<Event>) {
        let (parser, tally) = (self.parser.as_mut(), &mut self.tally);
        self.lines.feed(bytes, |line| read(line, parser, tally));
        tally.drain(out);
    }

    /// Ends: the process has ended like this, and nothing more comes.
    pub(crate) fn finish(&mut self, how: Exit, out: &mut Vec<Event>) -> Summary {
        let (parser, tally) = (self.parser.as_mut(), &mut self.tally);
        self.lines.finish(|line| read(line, parser, tally));
        tally.flush();
        let end = parser.end(tally, how);
        tally.flush();
        tally.drain(out);
        sum_up(tally, end, how)
    }

    /// Whether the agent has said that it finished. Its process should end soon; it may also begin another turn.
    pub(crate) fn is_over(&self) -> bool {
        self.tally.end.is_some()
    }

    /// Why the agent will not come to an end by itself, if it goes round in a circle.
    pub(crate) fn runaway(&self) -> Option<String> {
        self.parser.runaway()
    }

    /// What the run has come to so far.
    pub(crate) fn progress(&self) -> &Progress {
        self.tally.progress()
    }

    /// How many bytes it holds.
    #[cfg(test)]
    pub(super) fn weight(&self) -> usize {
        self.lines.weight() + self.tally.weight()
    }
}

fn read(line: Line<'_>, parser: &mut dyn Parser, tally: &mut Tally) {
    match line {
        Line::TooLong => tally.unknown("too long"),
        Line::Whole(bytes) => {
            let bytes = bytes.trim_ascii();
            match bytes.first() {
                None => parser.words("", tally),
                Some(b'{') => match json::read(bytes).filter(serde_json::Value::is_object) {
                    Some(value) => parser.event(&value, tally),
                    None => parser.words(&String::from_utf8_lossy(bytes), tally),
                },
                Some(_) => parser.words(&String::from_utf8_lossy(bytes), tally),
            }
        }
    }
}
