//! Parse tree with source locations, shared by plans in TOML and YAML.

use std::sync::Arc;

use super::plan_error::{PlanError, SourceLocation};

/// A value with the location where it starts.
#[derive(Debug, Clone)]
pub struct SourceNode {
    /// Location in the file at which the value starts.
    pub location: SourceLocation,
    /// Parsed value, of any kind.
    pub value: NodeValue,
}

/// A parsed value of a TOML or YAML file.
#[derive(Debug, Clone)]
pub enum NodeValue {
    /// Text value, without quotes and escapes.
    Text(String),
    /// An integer, as TOML and YAML have it.
    Integer(i64),
    /// Truth value: true or false.
    Bool(bool),
    /// List of values, in the order of the file.
    List(Vec<SourceNode>),
    /// Table of keys and values, in the order of the file.
    Table(Vec<TableEntry>),
    /// A value of a kind that no plan uses, with its description.
    Other(&'static str),
}

/// A key of a table with its value.
#[derive(Debug, Clone)]
pub struct TableEntry {
    /// Name of the key, without quotes.
    pub key: String,
    /// Location of the key in the file.
    pub location: SourceLocation,
    /// Value of the key, with its own location.
    pub node: SourceNode,
}

impl NodeValue {
    /// Describes the kind of value, for messages.
    pub fn describe_kind(&self) -> &'static str {
        match self {
            NodeValue::Text(_) => "a text",
            NodeValue::Integer(_) => "a number",
            NodeValue::Bool(_) => "true or false",
            NodeValue::List(_) => "a list",
            NodeValue::Table(_) => "a table",
            NodeValue::Other(kind) => kind,
        }
    }
}

impl SourceNode {
    /// Returns the entries of a table. `noun` names the table and `keys` lists its keys, for the error.
    ///
    /// # Errors
    /// Fails for a value of any other kind.
    pub(crate) fn table_entries(&self, noun: &str, keys: &str) -> Result<&[TableEntry], PlanError> {
        let NodeValue::Table(entries) = &self.value else {
            let message = format!("{noun} is a table, and this is {}", self.value.describe_kind());
            return Err(PlanError::invalid(&self.location, message, format!("write it with keys: {keys}")));
        };
        Ok(entries)
    }

    /// Returns the value of a key of a table.
    pub fn get(&self, key: &str) -> Option<&SourceNode> {
        let NodeValue::Table(entries) = &self.value else { return None };
        entries.iter().find(|entry| entry.key == key).map(|entry| &entry.node)
    }

    /// Returns the text value of a key.
    pub(crate) fn get_text(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_text()
    }

    /// Returns a copy of the text value of a key.
    pub(crate) fn owned_text(&self, key: &str) -> Option<String> {
        self.get_text(key).map(ToOwned::to_owned)
    }

    /// Returns the value if it is a text; none for a value of any other kind.
    pub fn as_text(&self) -> Option<&str> {
        match &self.value {
            NodeValue::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the items in the list of a key; empty without a list.
    pub(crate) fn get_list(&self, key: &str) -> &[SourceNode] {
        match self.get(key).map(|node| &node.value) {
            Some(NodeValue::List(items)) => items,
            _ => &[],
        }
    }

    /// Returns the texts in the list of a key.
    pub(crate) fn get_texts(&self, key: &str) -> Vec<String> {
        self.get_list(key).iter().filter_map(SourceNode::as_text).map(ToOwned::to_owned).collect()
    }
}

/// A file's text, with conversion between byte offsets and locations.
pub(crate) struct TextLocator<'t> {
    file: Arc<str>,
    text: &'t str,
    /// The byte offset at which each line starts.
    line_starts: Vec<usize>,
}

impl<'t> TextLocator<'t> {
    pub fn new(file: &Arc<str>, text: &'t str) -> TextLocator<'t> {
        let starts_after_newline =
            text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(newline, _)| newline + 1);
        TextLocator {
            file: file.clone(),
            text,
            line_starts: std::iter::once(0).chain(starts_after_newline).collect(),
        }
    }

    /// Returns the location of a byte offset.
    pub fn locate(&self, offset: usize) -> SourceLocation {
        let line = self.line_starts.partition_point(|start| *start <= offset).max(1);
        let line_start = self.line_starts[line - 1];
        let line_before =
            self.text.as_bytes().get(line_start..offset.min(self.text.len())).unwrap_or_default();
        // Every byte except UTF-8 continuation bytes starts a character.
        let column = line_before.iter().filter(|b| **b & 0xC0 != 0x80).count() + 1;
        SourceLocation { file: self.file.clone(), line, column }
    }

    /// Returns the byte offset of a location; the text's length for a location past the end.
    pub(crate) fn byte_offset(&self, location: &SourceLocation) -> usize {
        let Some(line_start) = self.line_starts.get(location.line.saturating_sub(1)) else {
            return self.text.len();
        };
        let mut char_offsets =
            self.text[*line_start..].char_indices().map(|(char_offset, _)| line_start + char_offset);
        char_offsets.nth(location.column.saturating_sub(1)).unwrap_or(self.text.len())
    }

    /// Returns the text of the file.
    pub fn text(&self) -> &'t str {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_columns_in_characters() {
        let text = "ab\nüx\n\nend";
        let locator = TextLocator::new(&Arc::from("f"), text);
        let location_text = |at| locator.locate(at).to_string();
        assert_eq!(
            [location_text(0), location_text(2), location_text(3), location_text(5)],
            ["f:1:1", "f:1:3", "f:2:1", "f:2:2"]
        );
        assert_eq!([location_text(7), location_text(8), location_text(99)], ["f:3:1", "f:4:1", "f:4:4"]);
        for at in [0, 2, 3, 5, 7, 8] {
            assert_eq!(locator.byte_offset(&locator.locate(at)), at);
        }
        assert_eq!(locator.byte_offset(&SourceLocation { line: 9, ..locator.locate(0) }), 11);
    }
}
