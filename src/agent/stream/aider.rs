//! Owns the output of Aider, `aider --no-pretty --no-stream`: text, and an exit code that says little.

use serde_json::Value;

use super::json::{LONGEST_MESSAGE, cut};
use super::parser::{Parser, without_cached};
use super::plain::{Tail, by_exit_code};
use super::summary::End;
use super::tally::Tally;
use super::trouble::judge;
use super::{Exit, Trouble};

/// What it says of itself before the answer.
const HEADER: &[&str] = &["Aider v", "Git repo: ", "Repo-map: "];

/// How Python begins the account of an exception.
const TRACEBACK: &str = "Traceback (most recent call last):";

/// Part of the path of each file of Aider in which requests are sent and edits are made. A check that Aider runs may print an account of
/// an exception too, which names none of these.
const OWN_FRAME: &str = "aider/coders/";

/// An exception, as far as its account was read. Without a terminal Aider breaks long lines at 80 columns, in the middle of paths.
#[derive(Default)]
struct Exception {
    is_own: bool,
    /// The end of what was read of its frames, without the breaks.
    frames: String,
    /// Its name and message.
    what: String,
}

/// How names of exceptions end.
const KINDS: &[&str] = &["Error", "Exception", "Timeout", "Interrupt", "Exit", "Warning"];

/// Whether a line says what an exception was: `module.Name: message`, or the name alone.
fn names_exception(line: &str) -> bool {
    let name = line.split(": ").next().unwrap_or_default().trim_end_matches(':');
    let is_path = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.');
    let last = name.rsplit('.').next().unwrap_or_default();
    is_path
        && last.starts_with(|c: char| c.is_ascii_uppercase())
        && KINDS.iter().any(|kind| last.ends_with(kind))
}

/// Aider's lines. It exits with 0 on most errors.
#[derive(Default)]
pub(super) struct Aider {
    said: Tail,
    answer: Option<String>,
    /// An error that goes on over several lines.
    failing: Option<String>,
    /// The last exception since an answer, after which Aider ends with 0 too.
    exception: Option<Exception>,
}

impl Parser for Aider {
    fn event(&mut self, line: &Value, tally: &mut Tally) {
        self.words(&line.to_string(), tally);
    }

    fn words(&mut self, line: &str, tally: &mut Tally) {
        let line = console::strip_ansi_codes(line);
        if let Some(failing) = &mut self.failing {
            if !line.is_empty() && failing.len() < LONGEST_MESSAGE {
                failing.push(' ');
                failing.push_str(&cut(&line, LONGEST_MESSAGE));
                return;
            }
            self.failed(tally);
        }
        self.trace(&line);
        if line.starts_with("litellm.") {
            self.failing = Some(cut(&line, LONGEST_MESSAGE));
        } else if line.contains("has hit a token limit") {
            tally.fail(Trouble::TokenLimit, &line);
        } else if let Some(model) = line.strip_prefix("Model: ").or(line.strip_prefix("Main model: ")) {
            tally.model(model.split(" with ").next().unwrap_or(model));
        } else if HEADER.iter().any(|head| line.starts_with(head)) {
            self.said.take();
            tally.unknown("header");
        } else if let Some(figures) = line.strip_prefix("Tokens: ") {
            // The answer is complete now; what follows is what became of it.
            self.answer = self.said.take();
            (self.exception, tally.error) = (None, None);
            tally.turn();
            used(figures, tally);
        } else {
            self.said.add(&line);
            tally.text(&line, None);
        }
    }

    fn is_json(&self) -> bool {
        false
    }

    fn end(&mut self, tally: &mut Tally, exit: Exit) -> Option<End> {
        self.failed(tally);
        if let Some(found) = self.exception.take().filter(|found| found.is_own && tally.error.is_none()) {
            let what =
                if found.what.is_empty() { "it ended with an exception of its own" } else { &found.what };
            tally.fail(judge(None, what), what);
        }
        tally.answer = self.answer.take();
        match &tally.error {
            Some((trouble, message)) if exit.ended_by().is_none() => Some(End::failed(*trouble, message)),
            _ => by_exit_code(tally, exit),
        }
    }
}

impl Aider {
    /// Follows the account of an exception: frames, and then what it was.
    fn trace(&mut self, line: &str) {
        if line == TRACEBACK {
            self.exception = Some(Exception::default());
            return;
        }
        let Some(open) = self.exception.as_mut().filter(|open| open.what.is_empty()) else { return };
        if names_exception(line) {
            open.what = cut(line, LONGEST_MESSAGE);
            return;
        }
        open.frames.push_str(line);
        open.is_own |= open.frames.contains(OWN_FRAME);
        let from = open.frames.ceil_char_boundary(open.frames.len().saturating_sub(OWN_FRAME.len()));
        open.frames.drain(..from);
    }

    fn failed(&mut self, tally: &mut Tally) {
        if let Some(said) = self.failing.take() {
            self.said.take();
            tally.fail(judge(None, &said), &said);
        }
    }
}

/// Reads `1.2k sent, 3.1k cache hit, 50 received. Cost: $0.01 message, $0.02 session.`; counts are rounded there.
fn used(figures: &str, tally: &mut Tally) {
    let (tokens, cost) = figures.split_once(" Cost: ").unwrap_or((figures, ""));
    let of = |what: &str| {
        let mut parts = tokens.trim_end_matches('.').split(", ");
        parts.find_map(|part| part.strip_suffix(what)).and_then(|n| rounded(n.trim())).unwrap_or(0)
    };
    tally.used(without_cached(of(" sent"), of(" cache hit"), of(" cache write"), of(" received"), 0));
    let session = cost.split(", ").find_map(|part| part.trim_end_matches('.').strip_suffix(" session"));
    if let Some(dollars) = session.and_then(|d| d.trim_start_matches('$').parse().ok()) {
        tally.cost(super::event::nanos(dollars));
    }
}

/// A count like `50`, `1.2k` or `3M`.
fn rounded(count: &str) -> Option<u64> {
    let (number, times) = match count.strip_suffix(['k', 'M']) {
        Some(number) if count.ends_with('k') => (number, 1e3),
        Some(number) => (number, 1e6),
        None => (count, 1.0),
    };
    let number: f64 = number.replace(',', "").parse().ok()?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "such a cast stops at the smallest and the largest number, as is wanted"
    )]
    Some((number * times).round() as u64)
}
