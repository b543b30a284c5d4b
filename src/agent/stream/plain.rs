//! Owns the output of any program: text, and an exit code that says how it ended.

use serde_json::Value;

use super::Exit;
use super::json::{LONGEST_TEXT, cut};
use super::parser::Parser;
use super::summary::End;
use super::tally::Tally;
use super::trouble::judge;

/// Any program's lines.
#[derive(Default)]
pub(super) struct Text {
    said: Tail,
}

impl Parser for Text {
    fn event(&mut self, line: &Value, tally: &mut Tally) {
        self.words(&line.to_string(), tally);
    }

    fn words(&mut self, line: &str, tally: &mut Tally) {
        self.said.add(line);
        tally.text(&console::strip_ansi_codes(line), None);
    }

    fn is_json(&self) -> bool {
        false
    }

    fn end(&mut self, tally: &mut Tally, exit: Exit) -> Option<End> {
        tally.answer = self.said.take();
        by_exit_code(tally, exit)
    }
}

/// With no word for the end, the exit code is all there is.
pub(super) fn by_exit_code(tally: &Tally, exit: Exit) -> Option<End> {
    if exit.is_clean() {
        return Some(End::done());
    }
    if exit.ended_by().is_some() {
        return None;
    }
    let last = tally.progress().last_text.clone().unwrap_or_default();
    Some(End::failed(judge(None, &last), &last))
}

/// The end of what was said, up to a bound.
#[derive(Default)]
pub(super) struct Tail {
    text: String,
}

impl Tail {
    /// Appends a line.
    pub(super) fn add(&mut self, line: &str) {
        self.text.push_str(&cut(&console::strip_ansi_codes(line), LONGEST_TEXT / 2));
        self.text.push('\n');
        // Half of the room at once, so that it is not moved for each line.
        if self.text.len() > LONGEST_TEXT {
            let from = self.text.ceil_char_boundary(self.text.len() - LONGEST_TEXT / 2);
            self.text.drain(..from);
        }
    }

    /// What was said, which is forgotten then.
    pub(super) fn take(&mut self) -> Option<String> {
        let text = std::mem::take(&mut self.text);
        Some(text.trim()).filter(|t| !t.is_empty()).map(str::to_owned)
    }
}
