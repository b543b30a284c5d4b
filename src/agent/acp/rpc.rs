//! Owns the messages of JSON-RPC 2.0, one object a line: making ours, and reading an agent's without trusting it.

use serde_json::{Value, json};

use crate::agent::stream::read_bounded;

/// The number that says that a method is not known here.
pub(super) const UNKNOWN_METHOD: i64 = -32601;

/// A message of the agent's.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Message {
    /// A reply to what was asked under this number; the error as the agent words it.
    Reply(u64, Result<Value, Value>),
    /// It asks for something, and waits for an answer by this id.
    Asks {
        /// The id, whatever it is made of.
        id: Value,
        /// What.
        method: String,
        /// With what.
        params: Value,
    },
    /// It tells something.
    Tells {
        /// What.
        method: String,
        /// With what.
        params: Value,
    },
    /// No message at all.
    Noise,
}

impl Message {
    /// Reads a line.
    pub(super) fn read(line: &[u8]) -> Message {
        let line = line.trim_ascii();
        match Some(line).filter(|line| line.starts_with(b"{")).and_then(read_bounded) {
            Some(mut value) => Message::of(&mut value),
            None => Message::Noise,
        }
    }

    fn of(value: &mut Value) -> Message {
        let id = value.get("id").filter(|id| !id.is_null()).cloned();
        let params = value.get_mut("params").map_or(Value::Null, Value::take);
        if let Some(method) = value.get("method") {
            let Some(method) = method.as_str().map(str::to_owned) else { return Message::Noise };
            return match id {
                Some(id) => Message::Asks { id, method, params },
                None => Message::Tells { method, params },
            };
        }
        let Some(id) = id.as_ref().and_then(Value::as_u64) else { return Message::Noise };
        match (value.get_mut("error").map(Value::take), value.get_mut("result").map(Value::take)) {
            (Some(error), _) if !error.is_null() => Message::Reply(id, Err(error)),
            (_, Some(result)) => Message::Reply(id, Ok(result)),
            _ => Message::Noise,
        }
    }
}

/// Asks for something.
pub(super) fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// Tells something.
pub(super) fn notice(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

/// Answers what the agent asked.
pub(super) fn answer(id: &Value, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// Says that what the agent asked for cannot be had.
pub(super) fn refusal(id: &Value, code: i64, why: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": why } })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Message {
        Message::read(line.as_bytes())
    }

    #[test]
    fn messages_are_told_apart() {
        assert_eq!(read(r#" {"id":3,"result":{"a":1}}"#), Message::Reply(3, Ok(json!({"a":1}))));
        assert_eq!(read(r#"{"id":3,"result":null}"#), Message::Reply(3, Ok(Value::Null)));
        assert_eq!(read(r#"{"id":3,"error":{"code":1}}"#), Message::Reply(3, Err(json!({"code":1}))));
        let asks = Message::Asks { id: json!("x"), method: "m".to_owned(), params: Value::Null };
        assert_eq!(read(r#"{"id":"x","method":"m"}"#), asks);
        let tells = Message::Tells { method: "m".to_owned(), params: json!([1]) };
        assert_eq!(read(r#"{"id":null,"method":"m","params":[1]}"#), tells);
        let noise = [
            "",
            "x",
            "[]",
            "{}",
            r#"{"id":"3","result":1}"#,
            r#"{"id":3}"#,
            r#"{"method":1,"id":2}"#,
            "{\"id\":",
        ];
        for line in noise {
            assert_eq!(read(line), Message::Noise, "{line}");
        }
    }
}
