//! YAML reader that returns values with locations. It refuses what a plan does not need: aliases, which
//! expand a small file to a huge value, keys that are no text, and more than one document.

use std::sync::Arc;

use proq_base::terminal_text;
use saphyr_parser::{Event, Marker, Parser, ScalarStyle};

use super::plan_error::{PlanError, SourceLocation};
use super::source_node::{NodeValue, SourceNode, TableEntry};

/// Maximum nesting depth of lists and tables.
const MAX_DEPTH: usize = 64;

/// A list or a table whose end has not been read yet.
enum OpenCollection {
    List(SourceLocation, Vec<SourceNode>),
    /// A table, with the key whose value comes next.
    Table(SourceLocation, Vec<TableEntry>, Option<(String, SourceLocation)>),
}

impl OpenCollection {
    /// Converts a collection whose end has been read to a node.
    fn into_node(self) -> SourceNode {
        match self {
            OpenCollection::List(location, items) => SourceNode { location, value: NodeValue::List(items) },
            OpenCollection::Table(location, entries, _) => {
                SourceNode { location, value: NodeValue::Table(entries) }
            }
        }
    }
}

/// Reads the only document of a file. None when the file is empty.
///
/// # Errors
/// Fails at the first part that is no YAML, or that a plan cannot contain.
pub fn read(file: &Arc<str>, text: &str) -> Result<Option<SourceNode>, PlanError> {
    let locate = |marker: &Marker| SourceLocation {
        file: file.clone(),
        line: marker.line().max(1),
        column: marker.col() + 1,
    };
    let mut open_collections: Vec<OpenCollection> = Vec::new();
    let mut root: Option<SourceNode> = None;
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| syntax_error(&locate(error.marker()), error.info()))?;
        let start = locate(&span.start);
        let node = match event {
            Event::Scalar(text, style, ..) => {
                SourceNode { location: start, value: scalar_value(text.into_owned(), style) }
            }
            Event::SequenceStart(..) => {
                push_collection(&mut open_collections, OpenCollection::List(start, Vec::new()))?;
                continue;
            }
            Event::MappingStart(..) => {
                push_collection(&mut open_collections, OpenCollection::Table(start, Vec::new(), None))?;
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open_collections.pop() {
                Some(collection) => collection.into_node(),
                None => continue,
            },
            Event::Alias(_) => {
                return Err(PlanError::invalid(
                    &start,
                    "an alias (*) cannot be used here",
                    "write out what it stands for",
                ));
            }
            Event::DocumentStart(_) if root.is_some() => {
                return Err(PlanError::invalid(
                    &start,
                    "there is a second document in it",
                    "leave one in each file",
                ));
            }
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => continue,
        };
        match open_collections.last_mut() {
            None => root = Some(node),
            Some(OpenCollection::List(_, items)) => items.push(node),
            Some(OpenCollection::Table(_, entries, key)) => add_to_table(entries, key, node)?,
        }
    }
    Ok(root)
}

/// Returns the error for text that is no YAML. `info` is the parser's own message.
fn syntax_error(location: &SourceLocation, info: &str) -> PlanError {
    let message = terminal_text::escape_line(info);
    PlanError::invalid(location, message, "this is where it stops being YAML: https://yaml.org")
}

fn push_collection(
    open_collections: &mut Vec<OpenCollection>,
    collection: OpenCollection,
) -> Result<(), PlanError> {
    if open_collections.len() < MAX_DEPTH {
        open_collections.push(collection);
        return Ok(());
    }
    let (OpenCollection::List(location, _) | OpenCollection::Table(location, ..)) = &collection;
    let message = format!("lists and tables lie in each other more than {MAX_DEPTH} deep");
    Err(PlanError::invalid(location, message, "see what a plan looks like: git proq plan --init -"))
}

/// Adds a node to a table: as a key, or as the value of the pending key.
fn add_to_table(
    entries: &mut Vec<TableEntry>,
    key: &mut Option<(String, SourceLocation)>,
    node: SourceNode,
) -> Result<(), PlanError> {
    if let Some((key, location)) = key.take() {
        entries.push(TableEntry { key, location, node });
        return Ok(());
    }
    let text = match node.value {
        NodeValue::Text(text) => text,
        NodeValue::Integer(number) => number.to_string(),
        NodeValue::Bool(flag) => flag.to_string(),
        NodeValue::List(_) | NodeValue::Table(_) | NodeValue::Other(_) => {
            let message = format!("a key is a text, and this is {}", node.value.describe_kind());
            return Err(PlanError::invalid(
                &node.location,
                message,
                "put quotes around it, or write it as a list",
            ));
        }
    };
    if entries.iter().any(|entry| entry.key == text) {
        let message = format!("'{}' is there twice", terminal_text::escape_line(&text));
        return Err(PlanError::invalid(&node.location, message, "leave one of them out"));
    }
    *key = Some((text, node.location));
    Ok(())
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
