//! Edits of a plan's file that mark a task as done: entries in TOML and YAML, checkboxes in Markdown.

use std::ops::Range;

use proq_base::markdown::Line;

use crate::plan_error::SourceLocation;
use crate::source_node::{NodeValue, SourceNode, TableEntry, TextLocator};
use crate::stories;

/// A replacement for a range of bytes of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TextEdit {
    /// Bytes of the text that are replaced; empty for an insertion.
    pub range: Range<usize>,
    /// Text to put in their place.
    pub replacement: String,
}

/// The way in which a file marks an entry as done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DoneStyle {
    /// The text between a key and its value.
    separator: &'static str,
    /// The key to add to an entry that has none for its status.
    status_key: &'static str,
    /// The value that means done.
    done_value: String,
}

impl DoneStyle {
    /// Returns the style of a plan in TOML.
    pub fn toml() -> DoneStyle {
        DoneStyle { separator: " = ", status_key: "done", done_value: "true".to_owned() }
    }

    /// Returns the style of a list of stories: the one that other stories in the list use.
    pub(crate) fn stories(nodes: &[SourceNode]) -> DoneStyle {
        let status = |node: &SourceNode| node.get_text("status").map(ToOwned::to_owned);
        let words: Vec<String> = nodes.iter().filter_map(status).collect();
        let done_word = words.iter().find(|word| stories::is_done_status(word));
        let uses_passes = words.is_empty() && nodes.iter().any(|node| node.get("passes").is_some());
        let done_value = match (done_word, words.first()) {
            (Some(word), _) => word.trim().to_owned(),
            (None, Some(first_word)) if first_word.chars().all(|c| !c.is_lowercase()) => "DONE".to_owned(),
            (None, Some(first_word)) if first_word.starts_with(char::is_uppercase) => "Done".to_owned(),
            (None, _) => "done".to_owned(),
        };
        match uses_passes {
            true => DoneStyle { separator: ": ", status_key: "passes", done_value: "true".to_owned() },
            false => DoneStyle { separator: ": ", status_key: "status", done_value },
        }
    }

    /// Returns the edits that mark an entry as done; none where its text has an unusual form.
    pub(crate) fn mark_entry(&self, locator: &TextLocator<'_>, node: &SourceNode) -> Option<Vec<TextEdit>> {
        let NodeValue::Table(entries) = &node.value else { return None };
        let replacements = entries
            .iter()
            .filter_map(|entry| self.status_replacement(locator, entry))
            .collect::<Option<Vec<TextEdit>>>()?;
        if !replacements.is_empty() {
            return Some(replacements);
        }
        let id = entries.iter().find(|entry| entry.key == "id")?;
        self.insert_status(locator, id).map(|edit| vec![edit])
    }

    /// Returns the replacement for the value of `entry`, if its key holds the status. The inner option is
    /// none where the value is not found in the text.
    #[expect(
        clippy::option_option,
        reason = "of no matter here, and of matter but not to be found, are two things"
    )]
    fn status_replacement(&self, locator: &TextLocator<'_>, entry: &TableEntry) -> Option<Option<TextEdit>> {
        let new_value = match (entry.key.as_str(), &entry.node.value) {
            ("done" | "passes", NodeValue::Bool(false)) => "true",
            ("status", NodeValue::Text(_)) if self.status_key == "status" => self.done_value.as_str(),
            _ => return None,
        };
        let offset = locator.byte_offset(&entry.node.location);
        let after_offset = locator.text().get(offset..).unwrap_or_default();
        let quote = after_offset.chars().next().filter(|c| matches!(c, '"' | '\''));
        let value_start = offset + quote.map_or(0, char::len_utf8);
        let length = match &entry.node.value {
            NodeValue::Text(word) => word.len(),
            _ => "false".len(),
        };
        let old_value = locator.text().get(value_start..value_start + length);
        let is_found = match &entry.node.value {
            NodeValue::Text(word) => old_value == Some(word),
            _ => old_value.is_some_and(|old| old.eq_ignore_ascii_case("false")),
        };
        Some(is_found.then(|| TextEdit {
            range: value_start..value_start + length,
            replacement: new_value.to_owned(),
        }))
    }

    /// Returns the edit that inserts a status after the entry's id: on a new line, or on the same line where
    /// more text follows there.
    fn insert_status(&self, locator: &TextLocator<'_>, id: &TableEntry) -> Option<TextEdit> {
        let text = locator.text();
        let value_start = locator.byte_offset(&id.node.location);
        let after_start = text.get(value_start..)?;
        let quote_len = usize::from(after_start.starts_with(['"', '\'']));
        let length = match &id.node.value {
            NodeValue::Text(word) => word.len(),
            NodeValue::Integer(number) => number.to_string().len(),
            _ => return None,
        };
        let value_end = value_start + length + 2 * quote_len;
        let line_end = text.get(value_end..)?.find('\n').map_or(text.len(), |n| value_end + n);
        let after_value = text.get(value_end..line_end)?.trim();
        let pair = format!("{}{}{}", self.status_key, self.separator, self.done_value);
        if !after_value.is_empty() && !after_value.starts_with('#') {
            return Some(TextEdit { range: value_end..value_end, replacement: format!(", {pair}") });
        }
        let key_start = locator.byte_offset(&id.location);
        let line_start = text.get(..key_start)?.rfind('\n').map_or(0, |n| n + 1);
        // A character other than white space there is the mark of a list item.
        let indent: String =
            text[line_start..key_start].chars().map(|c| if c.is_whitespace() { c } else { ' ' }).collect();
        let (insert_at, newline) = match text[..line_end].strip_suffix('\r') {
            Some(line) => (line.len(), "\r\n"),
            None => (line_end, "\n"),
        };
        Some(TextEdit { range: insert_at..insert_at, replacement: format!("{newline}{indent}{pair}") })
    }
}

/// Box of an item that is not done.
const UNTICKED_BOX: &str = "[ ]";

/// Returns the edit that ticks the box of the item whose text starts at `location`; none where that is no
/// unticked item.
pub(crate) fn tick_box(locator: &TextLocator<'_>, location: &SourceLocation) -> Option<Vec<TextEdit>> {
    let line_start = locator.byte_offset(&SourceLocation { column: 1, ..location.clone() });
    let text = locator.text().get(line_start..)?.split('\n').next().unwrap_or_default();
    let item = Line { offset: line_start, text }.item().filter(|item| item.ticked == Some(false))?;
    // No bracket comes before the box, because the mark of an item is a dash or a number.
    let tick_offset = line_start + text.get(..item.text_offset_in_line)?.find(UNTICKED_BOX)? + 1;
    Some(vec![TextEdit { range: tick_offset..tick_offset + 1, replacement: "x".to_owned() }])
}
