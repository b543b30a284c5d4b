//! Parsing of one untrusted line of JSON: its size in memory is bounded, and a missing or malformed part
//! counts as absent.

use std::cell::Cell;
use std::fmt;

use proq_base::money::NanoDollars;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Maximum number of values parsed from one line, because a number takes far more memory than its text.
const MAX_VALUES_PER_LINE: usize = 20_000;
/// Size limit of an object key, in bytes.
const MAX_KEY_BYTES: usize = 256;
/// Size limit of an event's text, in bytes.
pub const MAX_TEXT_BYTES: usize = 64 * 1024;
/// Size limit of a tool's output, in bytes.
pub const MAX_OUTPUT_BYTES: usize = 16 * 1024;
/// Size limit of a message, and of one text in a tool's input, in bytes.
pub(crate) const MAX_MESSAGE_BYTES: usize = 4 * 1024;
/// Size limit of the name of a tool, a session or a model, in bytes.
pub(crate) const MAX_NAME_BYTES: usize = 256;
/// Size limit of a tool's complete input, in bytes.
const MAX_TOOL_INPUT_BYTES: usize = 32 * 1024;

/// Parses one JSON value, with a bounded number of values and bounded texts. `None` if it is malformed, or
/// nested deeper than the 128 levels that the library accepts.
pub fn parse_bounded(line: &[u8]) -> Option<Value> {
    let remaining_values = Cell::new(MAX_VALUES_PER_LINE);
    let mut reader = serde_json::Deserializer::from_slice(line);
    let value = BoundedValueSeed { remaining_values: &remaining_values }.deserialize(&mut reader).ok()?;
    reader.end().ok()?;
    Some(value)
}

struct BoundedValueSeed<'a> {
    /// Number of values that may still be parsed.
    remaining_values: &'a Cell<usize>,
}

impl BoundedValueSeed<'_> {
    /// Takes one value off the remaining number; false if none remains.
    fn try_consume(&self) -> bool {
        let remaining = self.remaining_values.get();
        self.remaining_values.set(remaining.saturating_sub(1));
        remaining > 0
    }
}

impl<'de> DeserializeSeed<'de> for BoundedValueSeed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for BoundedValueSeed<'_> {
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
        Ok(Value::String(truncate(text, MAX_TEXT_BYTES)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut out = Vec::new();
        while self.try_consume() {
            match items.next_element_seed(BoundedValueSeed { remaining_values: self.remaining_values })? {
                Some(item) => out.push(item),
                None => return Ok(Value::Array(out)),
            }
        }
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Array(out))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut out = Map::new();
        while self.try_consume() {
            match fields.next_key::<String>()? {
                Some(key) => {
                    let value = fields
                        .next_value_seed(BoundedValueSeed { remaining_values: self.remaining_values })?;
                    out.insert(truncate(&key, MAX_KEY_BYTES), value);
                }
                None => return Ok(Value::Object(out)),
            }
        }
        while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Value::Object(out))
    }
}

/// Truncates a text at a character boundary, and marks the cut with "…".
pub fn truncate(text: &str, max_bytes: usize) -> String {
    if text.len() <= max_bytes {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(max_bytes);
    format!("{}…", &text[..end])
}

/// Returns the text at a JSON pointer like `/message/id`.
pub(crate) fn text_at<'v>(value: &'v Value, path: &str) -> Option<&'v str> {
    value.pointer(path).and_then(Value::as_str)
}

/// Returns the count at a path; some agents write integers with a decimal point.
pub(crate) fn count_at(value: &Value, path: &str) -> Option<u64> {
    let number = value.pointer(path)?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "such a cast stops at the smallest and the largest number, as is wanted"
    )]
    number.as_u64().or_else(|| number.as_f64().map(|n| n as u64))
}

/// Returns the amount of money at a path, where the value is a number of dollars.
pub(crate) fn dollars_at(value: &Value, path: &str) -> Option<NanoDollars> {
    value.pointer(path).and_then(Value::as_f64).map(NanoDollars::from_dollars)
}

/// Returns the boolean at a path.
pub(crate) fn flag_at(value: &Value, path: &str) -> Option<bool> {
    value.pointer(path).and_then(Value::as_bool)
}

/// Returns the list at a path; a missing one is empty.
pub fn list_at<'v>(value: &'v Value, path: &str) -> &'v [Value] {
    value.pointer(path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns the text in the content of a message or result. The content is a string, a list of blocks with
/// texts, or an object that contains one of the two.
pub(crate) fn content_text(value: &Value) -> String {
    let mut out = String::new();
    append_content_text(value, &mut out);
    truncate(&out, MAX_OUTPUT_BYTES)
}

/// Appends the texts in a value, one per line, up to the size limit.
fn append_content_text(value: &Value, out: &mut String) {
    if out.len() > MAX_OUTPUT_BYTES {
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
        Value::Array(items) => items.iter().for_each(|item| append_content_text(item, out)),
        Value::Object(fields) => {
            match ["text", "content", "message", "output"].iter().find_map(|k| fields.get(*k)) {
                Some(inner) => append_content_text(inner, out),
                None => append_content_text(&Value::String(value.to_string()), out),
            }
        }
        other => append_content_text(&Value::String(other.to_string()), out),
    }
}

/// Returns a tool's input at a path, with long texts truncated and the total size bounded; null if it is
/// missing.
pub(crate) fn tool_input_at(value: &Value, path: &str) -> Value {
    let mut remaining_bytes = MAX_TOOL_INPUT_BYTES;
    value.pointer(path).map_or(Value::Null, |v| truncate_value(v, &mut remaining_bytes))
}

/// Returns a value with its texts truncated, and takes its size off `remaining_bytes`. What no longer fits is
/// left out.
fn truncate_value(value: &Value, remaining_bytes: &mut usize) -> Value {
    *remaining_bytes = remaining_bytes.saturating_sub(8);
    match value {
        Value::String(text) => {
            let text = truncate(text, MAX_MESSAGE_BYTES.min(*remaining_bytes));
            *remaining_bytes = remaining_bytes.saturating_sub(text.len());
            Value::String(text)
        }
        Value::Array(items) => {
            let mut out = Vec::new();
            for item in items {
                if *remaining_bytes == 0 {
                    break;
                }
                out.push(truncate_value(item, remaining_bytes));
            }
            Value::Array(out)
        }
        Value::Object(fields) => {
            let mut out = Map::new();
            for (key, item) in fields {
                if *remaining_bytes == 0 {
                    break;
                }
                *remaining_bytes = remaining_bytes.saturating_sub(key.len());
                out.insert(key.clone(), truncate_value(item, remaining_bytes));
            }
            Value::Object(out)
        }
        other => other.clone(),
    }
}
