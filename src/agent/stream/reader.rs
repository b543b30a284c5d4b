//! Owns reading one run's output: bytes in any pieces, events out.

use serde::{Deserialize, Serialize};

use super::acp::Acp;
use super::aider::Aider;
use super::claude::Claude;
use super::codex::Codex;
use super::copilot::{Copilot, read_usage_file};
use super::gemini::Gemini;
use super::lines::{Line, Lines};
use super::opencode::OpenCode;
use super::parser::Parser;
use super::pi::Pi;
use super::plain::Text;
use super::qwen::Qwen;
use super::said::OURS;
use super::summary::sum_up;
use super::tally::Tally;
use super::{Class, Event, Exit, Prices, Progress, SessionTotals, Summary, json};

/// What an agent's output is written in.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Dialect {
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
    /// What a client of the Agent Client Protocol receives, one message a line, and what it says itself.
    Acp,
    /// Any other program: text, and an exit code that tells.
    #[default]
    Text,
}

impl Dialect {
    /// The dialect of this name, as profiles and records have it.
    pub(crate) fn named(name: &str) -> Option<Dialect> {
        let name = serde::de::value::StrDeserializer::<serde::de::value::Error>::new(name);
        Dialect::deserialize(name).ok()
    }

    /// Whether it is no text that people read.
    pub(crate) fn is_for_machines(self) -> bool {
        !matches!(self, Dialect::Aider | Dialect::Text)
    }

    /// Whether its output says how a run ended, and not the exit code alone.
    pub(crate) fn judges_its_end(self) -> bool {
        self != Dialect::Text
    }

    /// Whether something that matters while a run lasts is among what it writes as errors only.
    pub(crate) fn tells_by_errors(self) -> bool {
        self == Dialect::Gemini
    }

    fn parser(self) -> Box<dyn Parser + Send> {
        match self {
            Dialect::Claude => Box::<Claude>::default(),
            Dialect::Codex => Box::<Codex>::default(),
            Dialect::OpenCode => Box::<OpenCode>::default(),
            Dialect::Gemini => Box::<Gemini>::default(),
            Dialect::Qwen => Box::<Qwen>::default(),
            Dialect::Copilot => Box::<Copilot>::default(),
            Dialect::Pi => Box::<Pi>::default(),
            Dialect::Aider => Box::<Aider>::default(),
            Dialect::Acp => Box::<Acp>::default(),
            Dialect::Text => Box::<Text>::default(),
        }
    }
}

impl std::fmt::Display for Dialect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.serialize(f)
    }
}

/// Reads one run's output. It holds one line at most, and that only up to a bound.
pub(crate) struct Reader {
    lines: Lines,
    errors: Lines,
    parser: Box<dyn Parser + Send>,
    tally: Tally,
}

impl Reader {
    /// A reader for a run. `before` is what the last run of the same session left, or nothing; it counts only if the stream
    /// names that session.
    pub(crate) fn new(dialect: Dialect, before: &SessionTotals) -> Reader {
        let (lines, errors) = (Lines::default(), Lines::default());
        Reader { lines, errors, parser: dialect.parser(), tally: Tally::new(before) }
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

    /// Takes the next bytes of what the agent writes as errors.
    pub(crate) fn feed_errors(&mut self, bytes: &[u8], out: &mut Vec<Event>) {
        let (parser, tally) = (self.parser.as_mut(), &mut self.tally);
        self.errors.feed(bytes, |line| {
            if let Line::Whole(bytes) = line {
                let bytes = &bytes[..bytes.len().min(json::LONGEST_TEXT)];
                parser.error_line(&String::from_utf8_lossy(bytes), tally);
            }
        });
        tally.drain(out);
    }

    /// Takes the file of Copilot's `--usage-output-file`, before the end. A file of another form changes nothing.
    pub(crate) fn read_usage_file(&mut self, bytes: &[u8], out: &mut Vec<Event>) {
        if let Some((tokens, model)) = read_usage_file(bytes) {
            self.tally.model(model.as_deref().unwrap_or_default());
            let own = self.tally.session_used(tokens);
            self.tally.usage(own);
            self.tally.drain(out);
        }
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

    /// Whether it has said that it finished, and that all went well.
    pub(crate) fn is_done(&self) -> bool {
        self.tally.end.as_ref().is_some_and(|end| end.class == Class::Done)
    }

    /// Whether all that was read so far ends with the end of a line.
    pub(crate) fn is_between_lines(&self) -> bool {
        self.lines.is_between()
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
        self.lines.weight() + self.errors.weight() + self.tally.weight()
    }
}

fn read(line: Line<'_>, parser: &mut dyn Parser, tally: &mut Tally) {
    let Line::Whole(bytes) = line else {
        return tally.unknown("too long");
    };
    // Before anything is trimmed: a space more is what tells an agent's line from the client's.
    let is_ours = bytes.starts_with(OURS);
    let bytes = bytes.trim_ascii();
    if parser.skips(bytes) {
        return;
    }
    let value = Some(bytes).filter(|b| parser.is_json() && b.starts_with(b"{")).and_then(json::read);
    if let Some(value) = value {
        if is_ours { parser.client(&value, tally) } else { parser.event(&value, tally) }
    } else {
        // What is kept of a text is shorter still.
        let bytes = &bytes[..bytes.len().min(json::LONGEST_TEXT * 2)];
        parser.words(&String::from_utf8_lossy(bytes), tally);
    }
}
