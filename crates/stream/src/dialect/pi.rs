//! Parser for the stream of Pi, `pi --mode json`, of versions 0.73 and 0.87.

use std::time::Duration;

use proq_base::money::NanoDollars;
use proq_base::usage::Tokens;
use serde_json::Value;

use crate::base::collector::EventCollector;
use crate::base::failure_kind::{FailureKind, classify_failure};
use crate::base::json::{
    MAX_MESSAGE_BYTES, content_text, count_at, dollars_at, flag_at, list_at, text_at, tool_input_at, truncate,
};
use crate::base::parser::{Parser, event_type};
use crate::base::run_end::{ExitClass, RunEnd};

/// Parser for Pi's lines. Pi always exits with 0, so the reason in its last message reveals how the run
/// ended.
#[derive(Default)]
pub(crate) struct PiParser {
    /// Reason for which the last message ended, as Pi reports it.
    stop_reason: Option<String>,
    /// Error in the last message; empty without one.
    error_message: String,
    /// Cost of all messages so far.
    cost: NanoDollars,
    /// Whether the last message reports usage, and all its counters are zero.
    has_zero_usage: bool,
    /// Whether the last message has no content blocks.
    has_no_content: bool,
}

impl Parser for PiParser {
    fn parse_event(&mut self, line: &Value, collector: &mut EventCollector) {
        match event_type(line) {
            "session" => collector.set_session(text_at(line, "/id").unwrap_or_default(), None),
            "agent_start" => collector.clear_end(),
            "turn_start" => collector.add_turn(),
            "message_end" if text_at(line, "/message/role") == Some("assistant") => {
                self.parse_message(line, collector);
            }
            "tool_execution_start" => collector.add_tool_call(
                text_at(line, "/toolCallId").unwrap_or_default(),
                text_at(line, "/toolName").unwrap_or("a tool"),
                tool_input_at(line, "/args"),
                None,
            ),
            "tool_execution_end" => collector.add_tool_result(
                text_at(line, "/toolCallId").unwrap_or_default(),
                flag_at(line, "/isError") != Some(true),
                &line.get("result").map(content_text).unwrap_or_default(),
            ),
            "auto_retry_start" => collector.add_retry(
                count_at(line, "/attempt"),
                count_at(line, "/maxAttempts"),
                count_at(line, "/delayMs").map(Duration::from_millis),
                text_at(line, "/errorMessage").unwrap_or("the request failed"),
            ),
            "agent_end" if flag_at(line, "/willRetry") != Some(true) => self.emit_end(collector),
            "agent_end"
            | "agent_settled"
            | "auto_retry_end"
            | "message_start"
            | "message_update"
            | "message_end"
            | "turn_end"
            | "tool_execution_update"
            | "compaction_start"
            | "compaction_end"
            | "queue_update" => {}
            kind => collector.add_unknown_line(kind),
        }
    }

    /// Skips `message_update` lines: each repeats the answer so far. They are most of the stream and
    /// irrelevant here.
    fn can_skip_line(&self, line: &[u8]) -> bool {
        line.starts_with(br#"{"type":"message_update""#)
    }
}

impl PiParser {
    fn parse_message(&mut self, line: &Value, collector: &mut EventCollector) {
        let message = &line["message"];
        collector.set_model(text_at(message, "/model").unwrap_or_default());
        for block in list_at(message, "/content") {
            match event_type(block) {
                "text" => collector.add_text(text_at(block, "/text").unwrap_or_default(), None),
                "thinking" => collector.add_thinking(text_at(block, "/thinking").unwrap_or_default(), None),
                "toolCall" => {}
                other => collector.add_unknown_line(&format!("message_end/{other}")),
            }
        }
        let get = |name: &str| count_at(message, &format!("/usage/{name}")).unwrap_or(0);
        let message_usage = Tokens {
            input: get("input"),
            cached_input: get("cacheRead"),
            cache_write: get("cacheWrite"),
            output: get("output"),
            reasoning: get("reasoning"),
        };
        self.has_zero_usage = message.get("usage").is_some() && message_usage.is_zero();
        self.has_no_content = list_at(message, "/content").is_empty();
        collector.add_usage(message_usage);
        self.cost = self.cost.saturating_add(dollars_at(message, "/usage/cost/total").unwrap_or_default());
        // A zero cost for used tokens means that Pi knows no price, not that they are free.
        if !self.cost.is_zero() {
            collector.set_cost(self.cost);
        }
        if !message_usage.is_zero() {
            collector.set_context(message_usage.total(), None);
        }
        self.stop_reason = text_at(message, "/stopReason").map(|stop| truncate(stop, 64));
        self.error_message =
            truncate(text_at(message, "/errorMessage").unwrap_or_default(), MAX_MESSAGE_BYTES);
        if self.stop_reason.as_deref() == Some("error") {
            collector.set_error(classify_failure(None, &self.error_message), &self.error_message);
        }
    }

    fn emit_end(&mut self, collector: &mut EventCollector) {
        match self.stop_reason.as_deref() {
            // Pi 0.73 reports a stream that broke off in this way. Some servers never count tokens, for any
            // message.
            Some("stop")
                if self.has_zero_usage && (self.has_no_content || !collector.progress().tokens.is_zero()) =>
            {
                collector
                    .set_end(RunEnd::failed(FailureKind::Provider, "the model's answer broke off"), None);
            }
            Some("stop") => {
                let answer = collector.answer.clone();
                collector.set_end(RunEnd::done(), answer.as_deref());
            }
            Some("error") => collector.set_end(
                RunEnd::failed(classify_failure(None, &self.error_message), &self.error_message),
                None,
            ),
            Some("aborted") => {
                collector.set_end(RunEnd::with_class(ExitClass::Interrupted, &self.error_message), None);
            }
            Some("length") => {
                collector.set_end(RunEnd::failed(FailureKind::TokenLimit, "the answer got too long"), None);
            }
            _ => {}
        }
    }
}
