//! YAML reader that returns values with locations. It refuses what a plan does not need: aliases, which
//! expand a small file to a huge value, keys that are no text, and more than one document.

use std::sync::Arc;

use proq_base::terminal_text;
use saphyr_parser::{Event, Marker, Parser, ScalarStyle, StrInput};

use super::plan_error::{PlanError, SourceLocation};
use super::source_node::{NodeValue, SourceNode, TableEntry};

/// Maximum nesting depth of lists and tables.
const MAX_DEPTH: usize = 64;

/// Reader of the nodes of a file, one after the other.
struct NodeReader<'t> {
    file: Arc<str>,
    parser: Parser<'t, StrInput<'t>>,
    /// Whether the start of a document was read; a second one is refused.
    has_document: bool,
}

/// Reads the only document of a file. None when the file is empty.
///
/// # Errors
/// Fails at the first part that is no YAML, or that a plan cannot contain.
pub fn read(file: &Arc<str>, text: &str) -> Result<Option<SourceNode>, PlanError> {
    let parser = Parser::new_from_str(text);
    let mut reader = NodeReader { file: file.clone(), parser, has_document: false };
    let root = reader.next_node(0)?;
    // There may be an error or a second document behind it.
    reader.next_node(0)?;
    Ok(root)
}

impl NodeReader<'_> {
    /// Reads the next node at a nesting depth. None at the end of the collection around it, and of the file.
    fn next_node(&mut self, depth: usize) -> Result<Option<SourceNode>, PlanError> {
        while let Some(parsed) = self.parser.next_event() {
            let (event, span) =
                parsed.map_err(|error| syntax_error(&self.locate(error.marker()), error.info()))?;
            let location = self.locate(&span.start);
            let value = match event {
                Event::Scalar(text, style, ..) => scalar_value(text.into_owned(), style),
                Event::SequenceStart(..) | Event::MappingStart(..) if depth == MAX_DEPTH => {
                    let message = format!("lists and tables are nested more than {MAX_DEPTH} deep");
                    let hint = "show an example of a plan: git proq plan --init -";
                    return Err(PlanError::invalid(&location, message, hint));
                }
                Event::SequenceStart(..) => NodeValue::List(self.read_items(depth + 1)?),
                Event::MappingStart(..) => NodeValue::Table(self.read_entries(depth + 1)?),
                Event::SequenceEnd | Event::MappingEnd => return Ok(None),
                Event::Alias(_) => {
                    let message = "an alias (*) cannot be used here";
                    return Err(PlanError::invalid(&location, message, "write its value instead"));
                }
                Event::DocumentStart(_) if self.has_document => {
                    let message = "the file has a second document";
                    return Err(PlanError::invalid(&location, message, "leave one in each file"));
                }
                Event::DocumentStart(_) => {
                    self.has_document = true;
                    continue;
                }
                Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => continue,
            };
            return Ok(Some(SourceNode { location, value }));
        }
        Ok(None)
    }

    /// Reads the items of a list up to its end.
    fn read_items(&mut self, depth: usize) -> Result<Vec<SourceNode>, PlanError> {
        std::iter::from_fn(|| self.next_node(depth).transpose()).collect()
    }

    /// Reads the entries of a table up to its end.
    fn read_entries(&mut self, depth: usize) -> Result<Vec<TableEntry>, PlanError> {
        let mut entries = Vec::new();
        while let Some(key_node) = self.next_node(depth)? {
            let location = key_node.location.clone();
            let key = unique_key(&entries, key_node)?;
            let Some(node) = self.next_node(depth)? else { break };
            entries.push(TableEntry { key, location, node });
        }
        Ok(entries)
    }

    /// Returns the location of a position that the parser reports.
    fn locate(&self, marker: &Marker) -> SourceLocation {
        SourceLocation { file: self.file.clone(), line: marker.line().max(1), column: marker.col() + 1 }
    }
}

/// Returns the error for text that is no YAML. `info` is the parser's own message.
fn syntax_error(location: &SourceLocation, info: &str) -> PlanError {
    let message = terminal_text::escape_line(info);
    PlanError::invalid(location, message, "this is where it stops being YAML: https://yaml.org")
}

/// Converts a node to a key that the entries do not have yet.
fn unique_key(entries: &[TableEntry], node: SourceNode) -> Result<String, PlanError> {
    let key = match node.value {
        NodeValue::Text(text) => text,
        NodeValue::Integer(number) => number.to_string(),
        NodeValue::Bool(flag) => flag.to_string(),
        NodeValue::List(_) | NodeValue::Table(_) | NodeValue::Other(_) => {
            let message = format!("a key is a text, and this is {}", node.value.describe_kind());
            let hint = "put quotes around it, or write it as a list";
            return Err(PlanError::invalid(&node.location, message, hint));
        }
    };
    if entries.iter().any(|entry| entry.key == key) {
        let message = format!("'{}' is defined twice", terminal_text::escape_line(&key));
        return Err(PlanError::invalid(&node.location, message, "leave one of them out"));
    }
    Ok(key)
}

/// Converts a scalar to a value according to the core schema of YAML 1.2.
fn scalar_value(text: String, style: ScalarStyle) -> NodeValue {
    if style != ScalarStyle::Plain {
        return NodeValue::Text(text);
    }
    match text.as_str() {
        "" | "~" | "null" | "Null" | "NULL" => NodeValue::Other("nothing"),
        "true" | "True" | "TRUE" => NodeValue::Bool(true),
        "false" | "False" | "FALSE" => NodeValue::Bool(false),
        number => match number.parse::<i64>() {
            // A number that would be written differently, such as 007, is a name.
            Ok(integer) if integer.to_string() == number => NodeValue::Integer(integer),
            _ => NodeValue::Text(text),
        },
    }
}
