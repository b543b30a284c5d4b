//! Parser for the output of any program: text, and an exit code that reveals how it ended.

use serde_json::Value;

use crate::base::collector::EventCollector;
use crate::base::failure_kind::classify_failure;
use crate::base::json::{MAX_TEXT_BYTES, truncate};
use crate::base::parser::Parser;
use crate::base::run_end::{Exit, RunEnd};

/// Parser for the lines of any program.
#[derive(Default)]
pub(crate) struct TextParser {
    tail: TextTail,
}

impl Parser for TextParser {
    fn parse_event(&mut self, line: &Value, collector: &mut EventCollector) {
        self.parse_text_line(&line.to_string(), collector);
    }

    fn parse_text_line(&mut self, line: &str, collector: &mut EventCollector) {
        self.tail.push_line(line);
        collector.add_text(&console::strip_ansi_codes(line), None);
    }

    fn writes_json(&self) -> bool {
        false
    }

    fn finish(&mut self, collector: &mut EventCollector, exit: Exit) -> Option<RunEnd> {
        collector.answer = self.tail.take();
        end_from_exit_code(collector, exit)
    }
}

/// Returns the end of a run by its exit code, for a program whose output does not report an end. `None` after
/// a signal.
pub(crate) fn end_from_exit_code(collector: &EventCollector, exit: Exit) -> Option<RunEnd> {
    if exit.is_clean() {
        return Some(RunEnd::done());
    }
    if exit.terminating_signal().is_some() {
        return None;
    }
    let last_text = collector.progress().last_text.clone().unwrap_or_default();
    Some(RunEnd::failed(classify_failure(None, &last_text), &last_text))
}

/// Last part of a program's output, up to a size limit.
#[derive(Default)]
pub(crate) struct TextTail {
    text: String,
}

impl TextTail {
    /// Appends a line.
    pub fn push_line(&mut self, line: &str) {
        self.text.push_str(&truncate(&console::strip_ansi_codes(line), MAX_TEXT_BYTES / 2));
        self.text.push('\n');
        // Half of the text is dropped at once, so that it is not moved for each line.
        if self.text.len() > MAX_TEXT_BYTES {
            let tail_start = self.text.ceil_char_boundary(self.text.len() - MAX_TEXT_BYTES / 2);
            self.text.drain(..tail_start);
        }
    }

    /// Removes and returns the text; none when it is blank.
    pub fn take(&mut self) -> Option<String> {
        let text = std::mem::take(&mut self.text);
        Some(text.trim()).filter(|t| !t.is_empty()).map(str::to_owned)
    }
}
