//! Readers for the fields of tool calls and usage reports in messages of the Agent Client Protocol.

use proq_base::usage::Tokens;
use serde_json::Value;

use crate::base::json::{
    MAX_NAME_BYTES, MAX_OUTPUT_BYTES, content_text, count_at, list_at, text_at, tool_input_at, truncate,
};

/// Returns whether a value is an object with fields, or any other value but null.
pub(super) fn has_content(value: &Value) -> bool {
    value.as_object().map_or(!value.is_null(), |fields| !fields.is_empty())
}

/// Returns the input of a tool call. Where no input is reported, returns an object with the call's title, if
/// it has one.
pub(super) fn call_input(call: &Value) -> Value {
    let raw_input = tool_input_at(call, "/rawInput");
    match text_at(call, "/title") {
        Some(title) if !has_content(&raw_input) => {
            serde_json::json!({ "title": truncate(title, MAX_NAME_BYTES) })
        }
        _ => raw_input,
    }
}

/// Returns a tool's name, else its kind, else the call's title, which is usually a sentence.
pub(super) fn tool_name(call: &Value) -> String {
    let names = ["/name", "/_meta/toolName", "/_meta/claudeCode/toolName", "/kind", "/title"];
    let mut candidates = names.iter().filter_map(|path| text_at(call, path)).filter(|name| *name != "other");
    truncate(candidates.next().unwrap_or("a tool"), MAX_NAME_BYTES)
}

/// Returns the output of a tool: its texts, else terminal output, else raw text, else the paths of changed
/// files, else other raw output.
pub(super) fn tool_output(update: &Value) -> String {
    let content = list_at(update, "/content");
    let texts: Vec<Value> =
        content.iter().filter(|c| text_at(c, "/type") == Some("content")).cloned().collect();
    let texts = content_text(&Value::Array(texts));
    if !texts.is_empty() {
        return texts;
    }
    if let Some(terminal_output) = text_at(update, "/_meta/terminal_output_delta/data") {
        return truncate(terminal_output, MAX_OUTPUT_BYTES);
    }
    let paths: Vec<&str> = content.iter().filter_map(|c| text_at(c, "/path")).collect();
    match update.get("rawOutput") {
        Some(Value::String(raw_text)) => truncate(raw_text, MAX_OUTPUT_BYTES),
        _ if !paths.is_empty() => paths.join("\n"),
        Some(raw) => content_text(raw),
        None => String::new(),
    }
}

/// Reads the protocol's token counts at `path`. Agents differ in whether input includes cached tokens, and
/// whether output includes reasoning; the total reveals which.
pub(super) fn usage_at(value: &Value, path: &str) -> Option<Tokens> {
    let usage = value.pointer(path).filter(|u| u.is_object())?;
    let get = |name: &str| u128::from(count_at(usage, name).unwrap_or(0));
    let (input_total, output_total, reasoning) =
        (get("/inputTokens"), get("/outputTokens"), get("/thoughtTokens"));
    let (cache_read, cache_written) = (get("/cachedReadTokens"), get("/cachedWriteTokens"));
    let total = get("/totalTokens");
    let separate_total = input_total + output_total + cache_read + cache_written;
    let (input_includes_cache, output_excludes_reasoning) = if total == separate_total {
        (false, false)
    } else if total == input_total + output_total {
        (true, false)
    } else if total == input_total + output_total + reasoning {
        (true, true)
    } else {
        (false, total == separate_total + reasoning)
    };
    let input_tokens = if input_includes_cache {
        input_total.saturating_sub(cache_read).saturating_sub(cache_written)
    } else {
        input_total
    };
    let output_tokens = if output_excludes_reasoning { output_total + reasoning } else { output_total };
    let to_u64 = |n: u128| u64::try_from(n).unwrap_or(u64::MAX);
    Some(Tokens {
        input: to_u64(input_tokens),
        cached_input: to_u64(cache_read),
        cache_write: to_u64(cache_written),
        output: to_u64(output_tokens),
        reasoning: to_u64(reasoning),
    })
}
