//! Parser for the stream of Claude Code, and of agents with the same format: Amp, and Cursor with its own
//! tool lines.

use std::time::Duration;

use proq_base::money::NanoDollars;
use proq_base::usage::Tokens;
use serde::Deserialize;
use serde_json::Value;

use crate::base::client_line::ClientLine;
use crate::base::collector::{EventCollector, RecentIds};
use crate::base::failure_kind::{FailureKind, classify_failure};
use crate::base::json::{content_text, count_at, dollars_at, flag_at, list_at, text_at, tool_input_at};
use crate::base::limit_reset;
use crate::base::parser::{Parser, event_type};
use crate::base::run_end::{Exit, ExitClass, RunEnd};

/// Parser for Claude's lines. Each line holds one content block. Lines that share a message id report the
/// usage of one message, so only the increase counts.
#[derive(Default)]
pub(crate) struct ClaudeParser {
    /// Last reported usage of recent messages, by message id.
    message_usages: RecentIds,
    /// Usage and cost that results have reported for this run.
    reported: ReportedTotals,
    /// Model requests in all turns of this run so far.
    total_turns: u64,
    /// How the last turn ended, as long as the agent has not reacted to the message that followed.
    previous_end: Option<RunEnd>,
}

#[derive(Default)]
struct ReportedTotals {
    tokens: Tokens,
    cost: NanoDollars,
}

impl Parser for ClaudeParser {
    fn parse_event(&mut self, line: &Value, collector: &mut EventCollector) {
        if matches!(event_type(line), "assistant" | "user" | "result") {
            self.previous_end = None;
        }
        match event_type(line) {
            "system" => parse_system_line(line, collector),
            "assistant" => self.parse_assistant_line(line, collector),
            "user" => add_tool_results(line, collector),
            "result" => self.parse_result_line(line, collector),
            "tool_call" => parse_cursor_tool_call(line, collector),
            "control_request" => parse_permission_request(line, collector),
            "rate_limit_event" => parse_rate_limit(line, collector),
            "thinking" | "stream_event" | "control_response" | "control_cancel_request" | "keep_alive" => {}
            kind => collector.add_unknown_line(kind),
        }
    }

    /// Handles a message that was sent to the agent: the end reported so far no longer counts. It counts
    /// again if the agent exits without a reaction to the message.
    fn parse_client_line(&mut self, line: &Value, collector: &mut EventCollector) {
        match ClientLine::deserialize(line) {
            Ok(ClientLine::Request { message: Some(message), .. }) => {
                self.previous_end = collector.end.clone().or(self.previous_end.take());
                collector.clear_end();
                collector.add_sent_message(&message);
            }
            _ => self.parse_event(line, collector),
        }
    }

    fn finish(&mut self, collector: &mut EventCollector, _exit: Exit) -> Option<RunEnd> {
        collector.end.clone().or(self.previous_end.take())
    }
}

pub(crate) fn parse_system_line(line: &Value, collector: &mut EventCollector) {
    match text_at(line, "/subtype").unwrap_or_default() {
        "init" => {
            collector.set_session(text_at(line, "/session_id").unwrap_or_default(), text_at(line, "/model"));
        }
        "permission_denied" => collector.add_refusal(
            text_at(line, "/tool_use_id"),
            text_at(line, "/tool_name").unwrap_or("a tool"),
            text_at(line, "/message").unwrap_or_default(),
        ),
        "api_retry" => {
            let reason = text_at(line, "/error").unwrap_or("the request failed");
            let status = count_at(line, "/error_status").map(|s| format!(" ({s})")).unwrap_or_default();
            collector.add_retry(
                count_at(line, "/attempt"),
                count_at(line, "/max_retries"),
                count_at(line, "/retry_delay_ms").map(Duration::from_millis),
                &format!("{reason}{status}"),
            );
        }
        "notification" => collector.add_warning(text_at(line, "/text").unwrap_or_default()),
        "hook_started" | "hook_progress" | "hook_response" | "status" => {}
        other => collector.add_unknown_line(&format!("system/{other}")),
    }
}

/// Adds the content blocks of a message in order. A subagent's block names the tool call that started the
/// subagent, and its text never counts as the answer.
pub(crate) fn add_content_blocks(line: &Value, collector: &mut EventCollector) {
    let parent = text_at(line, "/parent_tool_use_id");
    for block in list_at(line, "/message/content") {
        match event_type(block) {
            "text" => collector.add_text(text_at(block, "/text").unwrap_or_default(), parent),
            "thinking" => collector.add_thinking(text_at(block, "/thinking").unwrap_or_default(), parent),
            "tool_use" | "server_tool_use" | "mcp_tool_use" => collector.add_tool_call(
                text_at(block, "/id").unwrap_or_default(),
                text_at(block, "/name").unwrap_or("a tool"),
                tool_input_at(block, "/input"),
                parent,
            ),
            "redacted_thinking" => {}
            other => collector.add_unknown_line(&format!("assistant/{other}")),
        }
    }
}

/// Adds the tool results in a line. A line of the main agent also clears the reported end, since its turn
/// continues.
pub(crate) fn add_tool_results(line: &Value, collector: &mut EventCollector) {
    if text_at(line, "/parent_tool_use_id").is_none() {
        collector.clear_end();
    }
    for block in list_at(line, "/message/content").iter().filter(|b| event_type(b) == "tool_result") {
        collector.add_tool_result(
            text_at(block, "/tool_use_id").unwrap_or_default(),
            flag_at(block, "/is_error") != Some(true),
            &block.get("content").map(content_text).unwrap_or_default(),
        );
    }
}

/// Returns the tokens in the Anthropic usage object at `path`. Input excludes cached tokens, and output
/// includes thinking.
fn usage_at(value: &Value, path: &str) -> Option<Tokens> {
    let usage = value.pointer(path)?;
    Some(Tokens {
        input: count_at(usage, "/input_tokens").unwrap_or(0),
        cached_input: count_at(usage, "/cache_read_input_tokens").unwrap_or(0),
        cache_write: count_at(usage, "/cache_creation_input_tokens").unwrap_or(0),
        output: count_at(usage, "/output_tokens").unwrap_or(0),
        reasoning: count_at(usage, "/output_tokens_details/thinking_tokens").unwrap_or(0),
    })
}

/// Sums the tokens and the cost of all models in the object at `path`. `None` if that object is missing.
fn sum_model_usage(value: &Value, path: &str) -> Option<(Tokens, NanoDollars)> {
    let models = value.pointer(path)?.as_object()?;
    Some(models.values().fold((Tokens::default(), NanoDollars::ZERO), |(tokens, cost), model| {
        let get = |path| count_at(model, path).unwrap_or(0);
        let model_tokens = Tokens {
            input: get("/inputTokens"),
            cached_input: get("/cacheReadInputTokens"),
            cache_write: get("/cacheCreationInputTokens"),
            output: get("/outputTokens"),
            reasoning: get("/thinkingTokens"),
        };
        (tokens.plus(model_tokens), cost.saturating_add(dollars_at(model, "/costUSD").unwrap_or_default()))
    }))
}

impl ClaudeParser {
    /// Handles a message of the agent or a subagent: its content blocks and usage, or an error of the API.
    fn parse_assistant_line(&mut self, line: &Value, collector: &mut EventCollector) {
        let is_main_agent = text_at(line, "/parent_tool_use_id").is_none();
        if is_main_agent {
            collector.clear_end();
        }
        if flag_at(line, "/is_api_error_message") == Some(true) || text_at(line, "/error").is_some() {
            let message = content_text(line.pointer("/message/content").unwrap_or(&Value::Null));
            let kind = text_at(line, "/api_error_type").or(text_at(line, "/error")).unwrap_or_default();
            let failure = classify_failure(count_at(line, "/api_error_status"), &format!("{kind} {message}"));
            collector.set_error(failure, &message);
            return;
        }
        if let Some(id) = text_at(line, "/session_id") {
            collector.set_session(id, None);
        }
        add_content_blocks(line, collector);
        let Some(message_usage) = usage_at(line, "/message/usage") else { return };
        let id = text_at(line, "/message/id").unwrap_or_default();
        let Some(increase) = self.message_usages.record_usage_increase(id, message_usage) else { return };
        collector.add_model_usage(text_at(line, "/message/model"), increase);
        if is_main_agent {
            collector.set_context(Tokens { output: 0, ..message_usage }.total(), None);
        }
    }

    /// Handles a result line. In it, `usage` and `num_turns` cover this turn, but `modelUsage` and
    /// `total_cost_usd` cover all runs of the session. Where `model_usage_since_last_result` is present, it
    /// is preferred: it includes subagents, and is exact even if earlier runs are unknown.
    fn parse_result_line(&mut self, line: &Value, collector: &mut EventCollector) {
        if flag_at(line, "/is_error") != Some(true) || collector.progress().session.is_some() {
            collector.set_session(text_at(line, "/session_id").unwrap_or_default(), None);
        }
        for denial in list_at(line, "/permission_denials") {
            let tool = text_at(denial, "/tool_name").unwrap_or("a tool");
            let id = text_at(denial, "/tool_use_id");
            collector.remember_command(id.unwrap_or_default(), &denial["tool_input"]);
            collector.add_refusal(id, tool, "it was not allowed");
        }
        if let Some(turns) = count_at(line, "/num_turns") {
            self.total_turns = self.total_turns.saturating_add(turns);
            collector.set_turns(self.total_turns);
        }
        self.update_usage_and_cost(line, collector);
        let context_size = line.pointer("/modelUsage").and_then(Value::as_object).and_then(|models| {
            let current_model = collector.progress().model.as_ref().and_then(|name| models.get(name));
            current_model
                .or_else(|| models.values().next())
                .and_then(|model| count_at(model, "/contextWindow"))
        });
        if let Some(used) = collector.progress().context_used.filter(|_| context_size.is_some()) {
            collector.set_context(used, context_size);
        }
        collector.set_end(result_end(line), text_at(line, "/result"));
    }

    /// Sets the usage and the cost of the run from a result line.
    fn update_usage_and_cost(&mut self, line: &Value, collector: &mut EventCollector) {
        let session_sums = sum_model_usage(line, "/modelUsage");
        let run_tokens = session_sums.map(|(tokens, _)| collector.run_usage_from_session(tokens));
        let reported_cost =
            dollars_at(line, "/total_cost_usd").and_then(|total| collector.run_cost_from_session(total));
        let (tokens, cost) =
            if let Some((tokens, cost)) = sum_model_usage(line, "/model_usage_since_last_result") {
                self.reported.tokens = self.reported.tokens.plus(tokens);
                self.reported.cost = self.reported.cost.saturating_add(cost);
                (Some(self.reported.tokens), Some(self.reported.cost))
            } else {
                (run_tokens.or(usage_at(line, "/usage")), reported_cost)
            };
        if let Some(tokens) = tokens {
            collector.set_usage(tokens);
        }
        if let Some(cost) = cost.filter(|_| reported_cost.is_some()) {
            collector.set_cost(cost);
        }
    }
}

/// Returns the end of the run that a result reports. `subtype` is `success` for errors of the provider too.
fn result_end(line: &Value) -> RunEnd {
    let subtype = text_at(line, "/subtype").unwrap_or_default();
    if !flag_at(line, "/is_error").unwrap_or(subtype != "success") {
        return RunEnd::done();
    }
    let message = ["/result", "/errors", "/error"].iter().find_map(|path| {
        let content = line.pointer(path).map(content_text).unwrap_or_default();
        Some(content).filter(|s| !s.is_empty())
    });
    let message = message.unwrap_or_default();
    match (subtype, text_at(line, "/terminal_reason").unwrap_or_default()) {
        ("error_max_turns", _) | (_, "max_turns") => RunEnd::failed(FailureKind::Turns, &message),
        ("error_max_budget_usd", _) | (_, "budget_exhausted") => RunEnd::failed(FailureKind::Money, &message),
        (_, "prompt_too_long") => RunEnd::failed(FailureKind::TokenLimit, &message),
        (_, reason) if reason.starts_with("aborted") => RunEnd::with_class(ExitClass::Interrupted, &message),
        _ => {
            let kind = text_at(line, "/api_error_type").unwrap_or_default();
            RunEnd::failed(
                classify_failure(count_at(line, "/api_error_status"), &format!("{kind} {message}")),
                &message,
            )
        }
    }
}

fn parse_permission_request(line: &Value, collector: &mut EventCollector) {
    if text_at(line, "/request/subtype") == Some("can_use_tool") {
        collector.add_permission_request(
            text_at(line, "/request_id").unwrap_or_default(),
            text_at(line, "/request/tool_name").unwrap_or("a tool"),
            tool_input_at(line, "/request/input"),
        );
    }
}

/// Handles a report that a rate limit is reached or near.
fn parse_rate_limit(line: &Value, collector: &mut EventCollector) {
    let kind = text_at(line, "/rate_limit_info/rateLimitType").unwrap_or("rate");
    match text_at(line, "/rate_limit_info/status").unwrap_or_default() {
        "rejected" => {
            collector.limit_reset =
                count_at(line, "/rate_limit_info/resetsAt").and_then(limit_reset::reset_from_epoch);
            collector.set_error(FailureKind::RateLimit, &format!("the {kind} limit is reached"));
        }
        "allowed_warning" => collector.add_warning(&format!("the {kind} limit is near")),
        _ => {}
    }
}

/// Handles Cursor's tool calls: the tool is the name of the only field, as in `readToolCall`.
fn parse_cursor_tool_call(line: &Value, collector: &mut EventCollector) {
    let id = text_at(line, "/call_id").unwrap_or_default();
    let Some((name, call)) = line.get("tool_call").and_then(Value::as_object).and_then(|c| c.iter().next())
    else {
        return collector.add_unknown_line("tool_call");
    };
    let name = name.strip_suffix("ToolCall").unwrap_or(name);
    match text_at(line, "/subtype").unwrap_or_default() {
        "started" => collector.add_tool_call(id, name, tool_input_at(call, "/args"), None),
        "completed" => {
            let output = call.get("result").map(content_text).unwrap_or_default();
            if call.pointer("/result/rejected").is_some()
                || call.pointer("/result/permissionDenied").is_some()
            {
                collector.add_refusal(Some(id), name, &output);
            }
            collector.add_tool_result(id, call.pointer("/result/success").is_some(), &output);
        }
        other => collector.add_unknown_line(&format!("tool_call/{other}")),
    }
}
