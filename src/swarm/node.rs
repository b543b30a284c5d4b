//! Owns values as they were written in a file, each with its place: what plans in TOML and in YAML have in common.

use std::sync::Arc;

use super::Place;

/// A value and where it begins.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) place: Place,
    pub(super) value: Value,
}

#[derive(Debug, Clone)]
pub(super) enum Value {
    Text(String),
    Whole(i64),
    Truth(bool),
    List(Vec<Node>),
    Table(Vec<Entry>),
    /// Anything that no plan has, in words.
    Other(&'static str),
}

/// A key of a table, and its value.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) place: Place,
    pub(super) node: Node,
}

impl Value {
    /// What it is, in words.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Value::Text(_) => "a text",
            Value::Whole(_) => "a number",
            Value::Truth(_) => "true or false",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
            Value::Other(kind) => kind,
        }
    }
}

impl Node {
    /// The value of a key of a table.
    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        let Value::Table(entries) = &self.value else { return None };
        entries.iter().find(|entry| entry.key == key).map(|entry| &entry.node)
    }

    /// The text of a key.
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_text()
    }

    pub(super) fn as_text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// What is in the list of a key; nothing without one.
    pub(super) fn list(&self, key: &str) -> &[Node] {
        match self.get(key).map(|node| &node.value) {
            Some(Value::List(items)) => items,
            _ => &[],
        }
    }

    /// The texts in the list of a key.
    pub(super) fn texts(&self, key: &str) -> Vec<String> {
        self.list(key).iter().filter_map(Node::as_text).map(ToOwned::to_owned).collect()
    }
}

/// A file's text, in which places are looked up.
pub(super) struct Places<'t> {
    file: Arc<str>,
    text: &'t str,
    /// Where each line begins.
    starts: Vec<usize>,
}

impl<'t> Places<'t> {
    pub(super) fn new(file: &Arc<str>, text: &'t str) -> Places<'t> {
        let breaks = text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(at, _)| at + 1);
        Places { file: file.clone(), text, starts: std::iter::once(0).chain(breaks).collect() }
    }

    /// The place of a byte.
    pub(super) fn place(&self, at: usize) -> Place {
        let line = self.starts.partition_point(|start| *start <= at).max(1);
        let begin = self.starts[line - 1];
        let before = self.text.as_bytes().get(begin..at.min(self.text.len())).unwrap_or_default();
        // Every byte but those that go on with a character begins one.
        let column = before.iter().filter(|b| **b & 0xC0 != 0x80).count() + 1;
        Place { file: self.file.clone(), line, column }
    }

    /// The byte of a place; the text's end for one behind it.
    pub(super) fn byte(&self, place: &Place) -> usize {
        let Some(begin) = self.starts.get(place.line.saturating_sub(1)) else { return self.text.len() };
        let mut rest = self.text[*begin..].char_indices().map(|(at, _)| begin + at);
        rest.nth(place.column.saturating_sub(1)).unwrap_or(self.text.len())
    }

    /// The text.
    pub(super) fn text(&self) -> &'t str {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_in_characters() {
        let text = "ab\nüx\n\nend";
        let text = Places::new(&Arc::from("f"), text);
        let shown = |at| text.place(at).to_string();
        assert_eq!([shown(0), shown(2), shown(3), shown(5)], ["f:1:1", "f:1:3", "f:2:1", "f:2:2"]);
        assert_eq!([shown(7), shown(8), shown(99)], ["f:3:1", "f:4:1", "f:4:4"]);
        for at in [0, 2, 3, 5, 7, 8] {
            assert_eq!(text.byte(&text.place(at)), at);
        }
        assert_eq!(text.byte(&Place { line: 9, ..text.place(0) }), 11);
    }
}
