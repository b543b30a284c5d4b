//! Parser for the stream of Copilot CLI, `copilot --output-format json`, and for its usage file.

use std::collections::VecDeque;

use proq_base::usage::Tokens;
use serde_json::Value;

use crate::base::collector::EventCollector;
use crate::base::failure_kind::classify_failure;
use crate::base::json::{MAX_NAME_BYTES, content_text, count_at, flag_at, text_at, tool_input_at, truncate};
use crate::base::parser::{Parser, event_type, tokens_from_total_input};
use crate::base::run_end::RunEnd;

/// Maximum number of open tool calls that are remembered.
const MAX_OPEN_CALLS: usize = 64;

/// Parser for Copilot's lines. Lines marked as ephemeral are ignored, except for retry notices and the
/// result.
#[derive(Default)]
pub(crate) struct CopilotParser {
    /// Open tool calls, as call id and tool name: a result does not name the tool.
    open_calls: VecDeque<(String, String)>,
}

impl Parser for CopilotParser {
    fn parse_event(&mut self, line: &Value, collector: &mut EventCollector) {
        let data = line.get("data").unwrap_or(&Value::Null);
        match event_type(line) {
            "result" => parse_result(line, collector),
            "assistant.turn_retry" => {
                collector.add_retry(
                    None,
                    None,
                    None,
                    text_at(data, "/reason").unwrap_or("the request failed"),
                );
            }
            _ if flag_at(line, "/ephemeral") == Some(true) => {}
            "session.start" | "session.resume" => {
                collector.set_session(
                    text_at(data, "/sessionId").unwrap_or_default(),
                    text_at(data, "/selectedModel"),
                );
            }
            "assistant.turn_start" => {
                collector.clear_end();
                collector.add_turn();
            }
            "assistant.message" => parse_message(data, collector),
            "tool.execution_start" => self.start_tool(data, collector),
            "tool.execution_complete" => self.complete_tool(data, collector),
            "session.error" => {
                let error_text = text_at(data, "/message").unwrap_or_default();
                let kind = text_at(data, "/errorType").unwrap_or_default();
                collector.set_error(
                    classify_failure(count_at(data, "/statusCode"), &format!("{kind} {error_text}")),
                    error_text,
                );
            }
            "session.warning" => collector.add_warning(text_at(data, "/message").unwrap_or_default()),
            "user.message" | "assistant.turn_end" | "session.info" => {}
            kind => collector.add_unknown_line(kind),
        }
    }
}

fn parse_message(data: &Value, collector: &mut EventCollector) {
    collector.set_model(text_at(data, "/model").unwrap_or_default());
    let parent = text_at(data, "/parentToolCallId");
    collector.add_thinking(text_at(data, "/reasoningText").unwrap_or_default(), parent);
    collector.add_text(text_at(data, "/content").unwrap_or_default(), parent);
}

fn parse_result(line: &Value, collector: &mut EventCollector) {
    collector.set_session(text_at(line, "/sessionId").unwrap_or_default(), None);
    if count_at(line, "/exitCode") == Some(0) {
        let answer = collector.answer.clone();
        return collector.set_end(RunEnd::done(), answer.as_deref());
    }
    let end = match &collector.error {
        Some((failure, message)) => RunEnd::failed(*failure, message),
        None => RunEnd::failed(crate::base::failure_kind::FailureKind::Other, ""),
    };
    collector.set_end(end, None);
}

impl CopilotParser {
    /// Emits a tool call and remembers it as open.
    fn start_tool(&mut self, data: &Value, collector: &mut EventCollector) {
        let id = text_at(data, "/toolCallId").unwrap_or_default();
        let name = text_at(data, "/toolName").unwrap_or("a tool");
        if self.open_calls.len() == MAX_OPEN_CALLS {
            self.open_calls.pop_front();
        }
        self.open_calls.push_back((truncate(id, MAX_NAME_BYTES), truncate(name, MAX_NAME_BYTES)));
        collector.add_tool_call(
            id,
            name,
            tool_input_at(data, "/arguments"),
            text_at(data, "/parentToolCallId"),
        );
    }

    /// Emits the result of a tool call, a refusal if it was denied, and the fill of the context.
    fn complete_tool(&mut self, data: &Value, collector: &mut EventCollector) {
        let id = text_at(data, "/toolCallId").unwrap_or_default();
        let open_call =
            self.open_calls.iter().position(|(open, _)| open == id).and_then(|at| self.open_calls.remove(at));
        let ok = flag_at(data, "/success") == Some(true);
        let path = if ok { "/result/content" } else { "/error/message" };
        let output = data.pointer(path).map(content_text).unwrap_or_default();
        if text_at(data, "/error/code") == Some("denied") {
            let tool = open_call.map_or_else(|| "a tool".to_owned(), |(_, tool)| tool);
            collector.add_refusal(Some(id), &tool, &output);
        }
        collector.add_tool_result(id, ok, &output);
        if let Some(used) = count_at(data, "/toolTelemetry/metrics/context_current_tokens") {
            collector.set_context(used, count_at(data, "/toolTelemetry/metrics/context_token_limit"));
        }
    }
}

/// Parses the content of the `--usage-output-file` file: the tokens of the session, and the model if there
/// was only one.
pub(crate) fn parse_usage_file(bytes: &[u8]) -> Option<(Tokens, Option<String>)> {
    let file = crate::base::json::parse_bounded(bytes)?;
    let models = file.pointer("/modelMetrics")?.as_object()?;
    let tokens = models.values().fold(Tokens::default(), |sum, model| {
        let get = |name: &str| count_at(model, &format!("/usage/{name}")).unwrap_or(0);
        sum.plus(tokens_from_total_input(
            get("inputTokens"),
            get("cacheReadTokens"),
            get("cacheWriteTokens"),
            get("outputTokens"),
            get("reasoningTokens"),
        ))
    });
    Some((tokens, models.keys().next().filter(|_| models.len() == 1).cloned()))
}
