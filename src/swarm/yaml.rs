//! Owns reading YAML as values with their places. What a plan has no use for is refused: aliases, which make much of little,
//! keys that are no text, and more than one document.

use std::sync::Arc;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle};

use super::node::{Entry, Node, Value};
use super::{Error, Place};
use crate::harmless;

/// How deep lists and tables may lie in each other.
const DEEPEST: usize = 64;

/// A list or a table that is not at its end yet.
enum Open {
    List(Place, Vec<Node>),
    /// With the key whose value comes next.
    Table(Place, Vec<Entry>, Option<(String, Place)>),
}

/// Reads the one document of a file; none when there is nothing in it.
///
/// # Errors
/// The first thing that is no YAML, or none of which a plan is made.
pub(super) fn read(file: &Arc<str>, text: &str) -> Result<Option<Node>, Error> {
    let place = |at: &Marker| Place { file: file.clone(), line: at.line().max(1), column: at.col() + 1 };
    let mut open: Vec<Open> = Vec::new();
    let mut top: Option<Node> = None;
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            let what = harmless::line(error.info());
            Error::wrong(&place(error.marker()), what, "this is where it stops being YAML: https://yaml.org")
        })?;
        let at = place(&span.start);
        let whole = match event {
            Event::Scalar(text, style, ..) => Node { place: at, value: scalar(text.into_owned(), style) },
            Event::SequenceStart(..) => {
                push(&mut open, Open::List(at, Vec::new()))?;
                continue;
            }
            Event::MappingStart(..) => {
                push(&mut open, Open::Table(at, Vec::new(), None))?;
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(Open::List(place, items)) => Node { place, value: Value::List(items) },
                Some(Open::Table(place, entries, _)) => Node { place, value: Value::Table(entries) },
                None => continue,
            },
            Event::Alias(_) => {
                return Err(Error::wrong(
                    &at,
                    "an alias (*) cannot be used here",
                    "write out what it stands for",
                ));
            }
            Event::DocumentStart(_) if top.is_some() => {
                return Err(Error::wrong(&at, "there is a second document in it", "leave one in each file"));
            }
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => continue,
        };
        match open.last_mut() {
            None => top = Some(whole),
            Some(Open::List(_, items)) => items.push(whole),
            Some(Open::Table(_, entries, key)) => put(entries, key, whole)?,
        }
    }
    Ok(top)
}

fn push(open: &mut Vec<Open>, new: Open) -> Result<(), Error> {
    if open.len() < DEEPEST {
        open.push(new);
        return Ok(());
    }
    let (Open::List(place, _) | Open::Table(place, ..)) = &new;
    let what = format!("lists and tables lie in each other more than {DEEPEST} deep");
    Err(Error::wrong(place, what, "see what a plan looks like: git proq plan --init -"))
}

/// Takes a key, or the value of the one before.
fn put(entries: &mut Vec<Entry>, key: &mut Option<(String, Place)>, node: Node) -> Result<(), Error> {
    if let Some((key, place)) = key.take() {
        entries.push(Entry { key, place, node });
        return Ok(());
    }
    let text = match node.value {
        Value::Text(text) => text,
        Value::Whole(number) => number.to_string(),
        Value::Truth(truth) => truth.to_string(),
        Value::List(_) | Value::Table(_) | Value::Other(_) => {
            let what = format!("a key is a text, and this is {}", node.value.kind());
            return Err(Error::wrong(&node.place, what, "put quotes around it, or write it as a list"));
        }
    };
    if entries.iter().any(|entry| entry.key == text) {
        let what = format!("'{}' is there twice", harmless::line(&text));
        return Err(Error::wrong(&node.place, what, "leave one of them out"));
    }
    *key = Some((text, node.place));
    Ok(())
}

/// What a scalar is by the core schema of YAML 1.2.
fn scalar(text: String, style: ScalarStyle) -> Value {
    if style != ScalarStyle::Plain {
        return Value::Text(text);
    }
    match text.as_str() {
        "" | "~" | "null" | "Null" | "NULL" => Value::Other("nothing"),
        "true" | "True" | "TRUE" => Value::Truth(true),
        "false" | "False" | "FALSE" => Value::Truth(false),
        number => match number.parse::<i64>() {
            // What reads as another number than was written, such as 007, is a name.
            Ok(whole) if whole.to_string() == number => Value::Whole(whole),
            _ => Value::Text(text),
        },
    }
}
