//! Parser for the stream of Codex, `codex exec --json`.

use serde_json::{Value, json};

use crate::base::collector::{EventCollector, RecentIds};
use crate::base::failure_kind::classify_failure;
use crate::base::json::{content_text, count_at, text_at, tool_input_at};
use crate::base::parser::{Parser, event_type, tokens_from_total_input};
use crate::base::run_end::RunEnd;

/// Parser for Codex' lines. Codex reports neither its model nor a price.
#[derive(Default)]
pub(crate) struct CodexParser {
    /// Ids of the items whose tool calls were emitted.
    started_items: RecentIds,
}

impl Parser for CodexParser {
    fn parse_event(&mut self, line: &Value, collector: &mut EventCollector) {
        match event_type(line) {
            "thread.started" => collector.set_session(text_at(line, "/thread_id").unwrap_or_default(), None),
            "turn.started" => collector.clear_end(),
            "item.started" => self.start_item(&line["item"], collector),
            "item.completed" => self.complete_item(&line["item"], collector),
            "item.updated" => {}
            "turn.completed" => parse_turn_completed(line, collector),
            "turn.failed" => {
                let message = text_at(line, "/error/message").unwrap_or("the turn failed");
                collector.set_end(RunEnd::failed(classify_failure(None, message), message), None);
            }
            "error" => parse_error(text_at(line, "/message").unwrap_or_default(), collector),
            kind => collector.add_unknown_line(kind),
        }
    }
}

/// Handles the end of a turn. Its counters cover the complete thread; input includes cached tokens.
fn parse_turn_completed(line: &Value, collector: &mut EventCollector) {
    let get = |name: &str| count_at(line, &format!("/usage/{name}")).unwrap_or(0);
    if line.get("usage").is_some_and(Value::is_object) {
        let total = tokens_from_total_input(
            get("input_tokens"),
            get("cached_input_tokens"),
            get("cache_write_input_tokens"),
            get("output_tokens"),
            get("reasoning_output_tokens"),
        );
        let run_usage = collector.run_usage_from_session(total);
        collector.set_usage(run_usage);
    }
    let answer = collector.answer.clone();
    collector.set_end(RunEnd::done(), answer.as_deref());
}

/// Handles an error, or a notice that Codex retries: `Reconnecting... 1/5 (reason)`.
fn parse_error(message: &str, collector: &mut EventCollector) {
    let Some(details) = message.strip_prefix("Reconnecting") else {
        return collector.set_error(classify_failure(None, message), message);
    };
    let details = details.trim_start_matches(['.', '…', ' ']);
    let (numbers, reason) = details.split_once(' ').unwrap_or((details, ""));
    let mut numbers = numbers.split('/').map(|n| n.parse().ok());
    let (attempt, max_attempts) = (numbers.next().flatten(), numbers.next().flatten());
    collector.add_retry(attempt, max_attempts, None, reason.trim_start_matches('(').trim_end_matches(')'));
}

impl CodexParser {
    /// Emits the tool call of an item, unless it was emitted already. Codex reports some calls only when they
    /// have finished.
    fn start_item(&mut self, item: &Value, collector: &mut EventCollector) {
        let Some((name, tool_input)) = tool_name_and_input(item) else { return };
        let id = text_at(item, "/id").unwrap_or_default();
        if self.started_items.insert(id) {
            collector.add_tool_call(id, &name, tool_input, None);
        }
    }

    /// Handles a completed item: text, reasoning, a warning, or a tool call with its result.
    fn complete_item(&mut self, item: &Value, collector: &mut EventCollector) {
        match event_type(item) {
            "agent_message" => collector.add_text(text_at(item, "/text").unwrap_or_default(), None),
            "reasoning" => collector.add_thinking(text_at(item, "/text").unwrap_or_default(), None),
            "error" => collector.add_warning(text_at(item, "/message").unwrap_or_default()),
            "todo_list" => {}
            _ if tool_name_and_input(item).is_some() => {
                self.start_item(item, collector);
                finish_item(item, collector);
            }
            kind => collector.add_unknown_line(&format!("item/{kind}")),
        }
    }
}

/// Returns the tool name and the input of an item. `None` if the item is not a tool call.
fn tool_name_and_input(item: &Value) -> Option<(String, Value)> {
    let kind = event_type(item);
    Some(match kind {
        "command_execution" => (kind.to_owned(), command_input(item)),
        "file_change" => (kind.to_owned(), tool_input_at(item, "/changes")),
        "web_search" => (kind.to_owned(), tool_input_at(item, "/query")),
        "mcp_tool_call" => {
            let (server, tool) =
                (text_at(item, "/server").unwrap_or("?"), text_at(item, "/tool").unwrap_or("?"));
            (format!("{server}.{tool}"), tool_input_at(item, "/arguments"))
        }
        _ => return None,
    })
}

/// Returns the input of a command without the shell that Codex starts it with: `cargo test` for
/// `/bin/bash -lc 'cargo test'`.
fn command_input(item: &Value) -> Value {
    let input = tool_input_at(item, "/command");
    let Some(line) = input.as_str() else { return input };
    let mut words = line.splitn(3, ' ');
    let shell = words.next().and_then(|program| program.rsplit('/').next());
    let is_shell = matches!(shell, Some("bash" | "sh" | "zsh")) && matches!(words.next(), Some("-lc" | "-c"));
    let script = words.next().filter(|_| is_shell).and_then(unquote_word);
    json!({ "command": script.as_deref().unwrap_or(line) })
}

/// Removes the quotes of one word of a shell; none for several words or an unclosed quote.
fn unquote_word(word: &str) -> Option<String> {
    let mut out = String::new();
    let (mut quote, mut chars) = (None, word.chars());
    while let Some(c) = chars.next() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('\'' | '"', None) => quote = Some(c),
            ('\\', None | Some('"')) => out.push(chars.next()?),
            (c, None) if c.is_whitespace() => return None,
            _ => out.push(c),
        }
    }
    quote.is_none().then_some(out)
}

/// Emits the result of a tool call, and a refusal if the call was declined.
fn finish_item(item: &Value, collector: &mut EventCollector) {
    let id = text_at(item, "/id").unwrap_or_default();
    let status = text_at(item, "/status").unwrap_or("completed");
    let error_message = text_at(item, "/error/message");
    let code = count_at(item, "/exit_code").unwrap_or(0);
    let output = match error_message {
        Some(message) => message.to_owned(),
        None if event_type(item) == "file_change" => String::new(),
        None => {
            text_at(item, "/aggregated_output").map_or_else(|| content_text(&item["result"]), str::to_owned)
        }
    };
    let refused = error_message.is_some_and(|m| m.contains("requires approval")) || status == "declined";
    if refused {
        let name = tool_name_and_input(item).map(|(name, _)| name).unwrap_or_default();
        collector.add_refusal(Some(id), &name, error_message.unwrap_or("it was declined"));
    }
    collector.add_tool_result(id, status == "completed" && error_message.is_none() && code == 0, &output);
}
