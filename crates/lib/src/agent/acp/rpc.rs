//! JSON-RPC 2.0 messages, one object per line: building those of the client, and parsing those of an agent
//! without trusting it.

use proq_stream::base::json::parse_bounded;
use serde_json::{Value, json};

/// JSON-RPC error code for an unknown method.
pub(super) const METHOD_NOT_FOUND: i64 = -32601;

/// JSON-RPC message that was received from the agent.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum RpcMessage {
    /// Response to the request with this id, with its result or the agent's error object.
    Response(u64, Result<Value, Value>),
    /// Request of the agent, which waits for a response.
    Request {
        /// The request's id, of any JSON type.
        id: Value,
        method: String,
        params: Value,
    },
    /// Notification, which gets no response.
    Notification { method: String, params: Value },
    /// A line that is not a valid message.
    Invalid,
}

impl RpcMessage {
    /// Parses a line of the agent's output.
    pub(super) fn parse(line: &[u8]) -> RpcMessage {
        let line = line.trim_ascii();
        match Some(line).filter(|line| line.starts_with(b"{")).and_then(parse_bounded) {
            Some(mut value) => RpcMessage::from_value(&mut value),
            None => RpcMessage::Invalid,
        }
    }

    fn from_value(value: &mut Value) -> RpcMessage {
        let id = value.get("id").filter(|id| !id.is_null()).cloned();
        let params = value.get_mut("params").map_or(Value::Null, Value::take);
        if let Some(method) = value.get("method") {
            let Some(method) = method.as_str().map(str::to_owned) else { return RpcMessage::Invalid };
            return match id {
                Some(id) => RpcMessage::Request { id, method, params },
                None => RpcMessage::Notification { method, params },
            };
        }
        let Some(id) = id.as_ref().and_then(Value::as_u64) else { return RpcMessage::Invalid };
        match (value.get_mut("error").map(Value::take), value.get_mut("result").map(Value::take)) {
            (Some(error), _) if !error.is_null() => RpcMessage::Response(id, Err(error)),
            (_, Some(result)) => RpcMessage::Response(id, Ok(result)),
            _ => RpcMessage::Invalid,
        }
    }
}

/// Builds a request.
pub(super) fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// Builds a notification.
pub(super) fn notification(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

/// Builds the response to a request of the agent.
pub(super) fn response(id: &Value, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// Builds the error response to a request of the agent that cannot be served.
pub(super) fn error_response(id: &Value, code: i64, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> RpcMessage {
        RpcMessage::parse(line.as_bytes())
    }

    #[test]
    fn distinguishes_message_kinds() {
        assert_eq!(parse(r#" {"id":3,"result":{"a":1}}"#), RpcMessage::Response(3, Ok(json!({"a":1}))));
        assert_eq!(parse(r#"{"id":3,"result":null}"#), RpcMessage::Response(3, Ok(Value::Null)));
        assert_eq!(parse(r#"{"id":3,"error":{"code":1}}"#), RpcMessage::Response(3, Err(json!({"code":1}))));
        let expected_request =
            RpcMessage::Request { id: json!("x"), method: "m".to_owned(), params: Value::Null };
        assert_eq!(parse(r#"{"id":"x","method":"m"}"#), expected_request);
        let expected_notification = RpcMessage::Notification { method: "m".to_owned(), params: json!([1]) };
        assert_eq!(parse(r#"{"id":null,"method":"m","params":[1]}"#), expected_notification);
        let invalid_lines = [
            "",
            "x",
            "[]",
            "{}",
            r#"{"id":"3","result":1}"#,
            r#"{"id":3}"#,
            r#"{"method":1,"id":2}"#,
            "{\"id\":",
        ];
        for line in invalid_lines {
            assert_eq!(parse(line), RpcMessage::Invalid, "{line}");
        }
    }
}
