//! Owns reading one line of JSON without trusting it: bounded in size, whatever is missing or of another form is none.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// How many values of one line are looked at. Numbers of a long list take many times their text in memory.
const MOST_VALUES: usize = 20_000;
/// The longest key.
const LONGEST_KEY: usize = 256;
/// The longest text of an event.
pub(in crate::agent) const LONGEST_TEXT: usize = 64 * 1024;
/// The longest output of a tool.
pub(super) const LONGEST_OUTPUT: usize = 16 * 1024;
/// The longest message, and the longest text in a tool's input.
pub(super) const LONGEST_MESSAGE: usize = 4 * 1024;
/// The longest name of a tool, a session, a model …
pub(super) const LONGEST_NAME: usize = 256;
/// How much of a tool's input is kept.
const LONGEST_INPUT: usize = 32 * 1024;

/// Reads one value. Nesting is bounded by the library, which refuses to go deeper than 128.
pub(crate) fn read(line: &[u8]) -> Option<Value> {
    let left = Cell::new(MOST_VALUES);
    let mut reader = serde_json::Deserializer::from_slice(line);
    let value = Bounded { left: &left }.deserialize(&mut reader).ok()?;
    reader.end().ok()?;
    Some(value)
}

struct Bounded<'a> {
    left: &'a Cell<usize>,
}

impl Bounded<'_> {
    fn take(&self) -> bool {
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        left > 0
    }
}

impl<'de> DeserializeSeed<'de> for Bounded<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Bounded<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::String(cut(text, LONGEST_TEXT)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut out = Vec::new();
        while self.take() {
            match items.next_element_seed(Bounded { left: self.left })? {
                Some(item) => out.push(item),
                None => return Ok(Value::Array(out)),
            }
        }
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Array(out))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut out = Map::new();
        while self.take() {
            match fields.next_key::<String>()? {
                Some(key) => {
                    let value = fields.next_value_seed(Bounded { left: self.left })?;
                    out.insert(cut(&key, LONGEST_KEY), value);
                }
                None => return Ok(Value::Object(out)),
            }
        }
        while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Value::Object(out))
    }
}

/// A text, cut at a letter's boundary.
pub(super) fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(most);
    format!("{}…", &text[..end])
}

/// The text at a path like `/message/id`.
pub(super) fn text<'v>(value: &'v Value, path: &str) -> Option<&'v str> {
    value.pointer(path).and_then(Value::as_str)
}

/// The count at a path; some write whole numbers with a point.
pub(super) fn count(value: &Value, path: &str) -> Option<u64> {
    let number = value.pointer(path)?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "such a cast stops at the smallest and the largest number, as is wanted"
    )]
    number.as_u64().or_else(|| number.as_f64().map(|n| n as u64))
}

/// The dollars at a path, as billionths.
pub(super) fn money(value: &Value, path: &str) -> Option<u64> {
    value.pointer(path).and_then(Value::as_f64).map(super::event::nanos)
}

/// The flag at a path.
pub(super) fn flag(value: &Value, path: &str) -> Option<bool> {
    value.pointer(path).and_then(Value::as_bool)
}

/// The list at a path; none is an empty one.
pub(super) fn list<'v>(value: &'v Value, path: &str) -> &'v [Value] {
    value.pointer(path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The words in a message's or result's content: a text, a list of blocks with texts, or anything around those.
pub(super) fn words(value: &Value) -> String {
    let mut out = String::new();
    gather(value, &mut out);
    cut(&out, LONGEST_OUTPUT)
}

fn gather(value: &Value, out: &mut String) {
    if out.len() > LONGEST_OUTPUT {
        return;
    }
    match value {
        Value::Null => {}
        Value::String(text) => {
            if !out.is_empty() {
                out.push('\n');
            }
            out.push_str(text);
        }
        Value::Array(items) => items.iter().for_each(|item| gather(item, out)),
        Value::Object(fields) => {
            match ["text", "content", "message", "output"].iter().find_map(|k| fields.get(*k)) {
                Some(inner) => gather(inner, out),
                None => gather(&Value::String(value.to_string()), out),
            }
        }
        other => gather(&Value::String(other.to_string()), out),
    }
}

/// A tool's input at a path as it is kept: long texts cut, and all of it bounded.
pub(super) fn input(value: &Value, path: &str) -> Value {
    let mut left = LONGEST_INPUT;
    value.pointer(path).map_or(Value::Null, |v| kept(v, &mut left))
}

fn kept(value: &Value, left: &mut usize) -> Value {
    *left = left.saturating_sub(8);
    match value {
        Value::String(text) => {
            let text = cut(text, LONGEST_MESSAGE.min(*left));
            *left = left.saturating_sub(text.len());
            Value::String(text)
        }
        Value::Array(items) => {
            let mut out = Vec::new();
            for item in items {
                if *left == 0 {
                    break;
                }
                out.push(kept(item, left));
            }
            Value::Array(out)
        }
        Value::Object(fields) => {
            let mut out = Map::new();
            for (key, item) in fields {
                if *left == 0 {
                    break;
                }
                *left = left.saturating_sub(key.len());
                out.insert(key.clone(), kept(item, left));
            }
            Value::Object(out)
        }
        other => other.clone(),
    }
}
