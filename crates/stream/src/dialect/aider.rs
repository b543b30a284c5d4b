//! Parser for the output of Aider, `aider --no-pretty --no-stream`: text, and an exit code that reveals
//! little.

use serde_json::Value;

use super::text_output::{TextTail, end_from_exit_code};
use crate::base::collector::EventCollector;
use crate::base::failure_kind::{FailureKind, classify_failure};
use crate::base::json::{MAX_MESSAGE_BYTES, truncate};
use crate::base::parser::{Parser, tokens_from_total_input};
use crate::base::run_end::{Exit, RunEnd};

/// Prefixes of the lines in which Aider describes itself before the answer.
const HEADER_PREFIXES: &[&str] = &["Aider v", "Git repo: ", "Repo-map: "];

/// First line of a Python traceback.
const TRACEBACK_LINE: &str = "Traceback (most recent call last):";

/// Part of the path of every Aider source file that sends requests or applies edits. A check that Aider runs
/// may print a traceback too, which contains no such path.
const AIDER_FRAME_PATH: &str = "aider/coders/";

/// A Python exception that Aider printed, as far as its traceback was parsed. Without a terminal Aider breaks
/// long lines at 80 columns, even within a path.
#[derive(Default)]
struct PythonException {
    /// Whether a frame of the traceback is in Aider's own code.
    is_from_aider: bool,
    /// Last few characters of the traceback's frames so far, joined without line breaks, to find a path that
    /// is split over two lines.
    frames_tail: String,
    /// Name and message of the exception.
    description: String,
}

/// Suffixes of exception names.
const EXCEPTION_SUFFIXES: &[&str] = &["Error", "Exception", "Timeout", "Interrupt", "Exit", "Warning"];

/// Returns whether a line names an exception: `module.Name: message`, or the name alone.
fn is_exception_line(line: &str) -> bool {
    let name = line.split(": ").next().unwrap_or_default().trim_end_matches(':');
    let is_path = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.');
    let last = name.rsplit('.').next().unwrap_or_default();
    is_path
        && last.starts_with(|c: char| c.is_ascii_uppercase())
        && EXCEPTION_SUFFIXES.iter().any(|kind| last.ends_with(kind))
}

/// Parser for Aider's lines. Aider exits with 0 on most errors.
#[derive(Default)]
pub(crate) struct AiderParser {
    /// Last part of the output since the header or the last answer.
    output_tail: TextTail,
    /// Output before the last line of token counts.
    answer: Option<String>,
    /// An error message that continues over several lines.
    pending_error: Option<String>,
    /// The last exception since an answer. Aider exits with 0 after one, too.
    exception: Option<PythonException>,
}

impl Parser for AiderParser {
    fn parse_event(&mut self, line: &Value, collector: &mut EventCollector) {
        self.parse_text_line(&line.to_string(), collector);
    }

    fn parse_text_line(&mut self, line: &str, collector: &mut EventCollector) {
        let line = console::strip_ansi_codes(line);
        if let Some(error_text) = &mut self.pending_error {
            if !line.is_empty() && error_text.len() < MAX_MESSAGE_BYTES {
                error_text.push(' ');
                error_text.push_str(&truncate(&line, MAX_MESSAGE_BYTES));
                return;
            }
            self.emit_pending_error(collector);
        }
        self.track_exception(&line);
        if line.starts_with("litellm.") {
            self.pending_error = Some(truncate(&line, MAX_MESSAGE_BYTES));
        } else if line.contains("has hit a token limit") {
            collector.set_error(FailureKind::TokenLimit, &line);
        } else if let Some(model) = line.strip_prefix("Model: ").or(line.strip_prefix("Main model: ")) {
            collector.set_model(model.split(" with ").next().unwrap_or(model));
        } else if HEADER_PREFIXES.iter().any(|head| line.starts_with(head)) {
            self.output_tail.take();
            collector.add_unknown_line("header");
        } else if let Some(figures) = line.strip_prefix("Tokens: ") {
            // The answer is complete now; later lines report the edits made from it.
            self.answer = self.output_tail.take();
            (self.exception, collector.error) = (None, None);
            collector.add_turn();
            parse_usage(figures, collector);
        } else {
            self.output_tail.push_line(&line);
            collector.add_text(&line, None);
        }
    }

    fn writes_json(&self) -> bool {
        false
    }

    fn finish(&mut self, collector: &mut EventCollector, exit: Exit) -> Option<RunEnd> {
        self.emit_pending_error(collector);
        if let Some(exception) =
            self.exception.take().filter(|candidate| candidate.is_from_aider && collector.error.is_none())
        {
            let description = if exception.description.is_empty() {
                "it ended with an exception of its own"
            } else {
                &exception.description
            };
            collector.set_error(classify_failure(None, description), description);
        }
        collector.answer = self.answer.take();
        match &collector.error {
            Some((failure, message)) if exit.terminating_signal().is_none() => {
                Some(RunEnd::failed(*failure, message))
            }
            _ => end_from_exit_code(collector, exit),
        }
    }
}

impl AiderParser {
    /// Follows a traceback line by line: the frames, and then the exception.
    fn track_exception(&mut self, line: &str) {
        if line == TRACEBACK_LINE {
            self.exception = Some(PythonException::default());
            return;
        }
        let Some(exception) = self.exception.as_mut().filter(|unnamed| unnamed.description.is_empty()) else {
            return;
        };
        if is_exception_line(line) {
            exception.description = truncate(line, MAX_MESSAGE_BYTES);
            return;
        }
        exception.frames_tail.push_str(line);
        exception.is_from_aider |= exception.frames_tail.contains(AIDER_FRAME_PATH);
        let tail_start = exception
            .frames_tail
            .ceil_char_boundary(exception.frames_tail.len().saturating_sub(AIDER_FRAME_PATH.len()));
        exception.frames_tail.drain(..tail_start);
    }

    /// Emits the pending error message, if there is one.
    fn emit_pending_error(&mut self, collector: &mut EventCollector) {
        if let Some(message) = self.pending_error.take() {
            self.output_tail.take();
            collector.set_error(classify_failure(None, &message), &message);
        }
    }
}

/// Parses a line like `1.2k sent, 3.1k cache hit, 50 received. Cost: $0.01 message, $0.02 session.`, and adds
/// its tokens and cost to the collector. Aider rounds the counts.
fn parse_usage(figures: &str, collector: &mut EventCollector) {
    let (tokens, cost) = figures.split_once(" Cost: ").unwrap_or((figures, ""));
    let count_before = |suffix: &str| {
        let mut fields = tokens.trim_end_matches('.').split(", ");
        fields
            .find_map(|field| field.strip_suffix(suffix))
            .and_then(|n| parse_rounded_count(n.trim()))
            .unwrap_or(0)
    };
    collector.add_usage(tokens_from_total_input(
        count_before(" sent"),
        count_before(" cache hit"),
        count_before(" cache write"),
        count_before(" received"),
        0,
    ));
    let session_cost = cost.split(", ").find_map(|part| part.trim_end_matches('.').strip_suffix(" session"));
    if let Some(dollars) = session_cost.and_then(|d| d.trim_start_matches('$').parse().ok()) {
        collector.set_cost(proq_base::money::NanoDollars::from_dollars(dollars));
    }
}

/// Reads a count like `50`, `1.2k` or `3M`.
fn parse_rounded_count(count: &str) -> Option<u64> {
    let (number, factor) = match count.strip_suffix(['k', 'M']) {
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
    Some((number * factor).round() as u64)
}
