//! Parser for the stream of Qwen Code, `qwen -o stream-json`: Claude's format with different counters.

use proq_base::usage::Tokens;
use serde_json::Value;

use super::claude::{add_content_blocks, add_tool_results, parse_system_line};
use super::gemini::failure_from_exit_code;
use crate::base::collector::EventCollector;
use crate::base::failure_kind::{FailureKind, classify_failure};
use crate::base::json::{content_text, count_at, flag_at, text_at};
use crate::base::parser::{Parser, event_type, tokens_from_total_input};
use crate::base::run_end::{Exit, RunEnd};

/// Prefix of an error message that Qwen Code writes as if it were the model's answer.
const API_ERROR_PREFIX: &str = "[API Error: ";

/// Parser for Qwen's lines.
#[derive(Default)]
pub(crate) struct QwenParser;

impl Parser for QwenParser {
    fn parse_event(&mut self, line: &Value, collector: &mut EventCollector) {
        match event_type(line) {
            "system" => parse_system_line(line, collector),
            "assistant" => parse_assistant_line(line, collector),
            "user" => add_tool_results(line, collector),
            "result" => parse_result_line(line, collector),
            "stream_event" | "control_request" | "control_response" => {}
            kind => collector.add_unknown_line(kind),
        }
    }

    /// Returns the end of the run. Where the agent reported no specific failure, the exit code determines it.
    /// The codes are Gemini's, except for 55, which means a limit on time or tool calls.
    fn finish(&mut self, collector: &mut EventCollector, exit: Exit) -> Option<RunEnd> {
        let reported_end = collector.end.clone();
        let is_unspecific = reported_end
            .as_ref()
            .map_or(collector.error.is_none(), |end| end.failure == Some(FailureKind::Other));
        let (failure, exit_message) = match exit.code.filter(|_| is_unspecific) {
            Some(55) => (
                FailureKind::Money,
                "it used up the time or the tool calls it was given (exit code 55)".to_owned(),
            ),
            Some(code @ (41 | 42 | 53)) => failure_from_exit_code(code)?,
            _ => return reported_end,
        };
        let message = reported_end.and_then(|end| end.text).unwrap_or(exit_message);
        Some(RunEnd::failed(failure, &message))
    }
}

/// Returns the tokens in a usage object, whose input includes cached tokens. Of the lines of one answer, only
/// the last one has counters.
fn usage_at(value: &Value, path: &str) -> Option<Tokens> {
    let usage = value.pointer(path)?;
    let get = |path| count_at(usage, path).unwrap_or(0);
    Some(tokens_from_total_input(
        get("/input_tokens"),
        get("/cache_read_input_tokens"),
        get("/cache_creation_input_tokens"),
        get("/output_tokens"),
        get("/output_tokens_details/reasoning_tokens"),
    ))
}

fn parse_assistant_line(line: &Value, collector: &mut EventCollector) {
    let is_main_agent = text_at(line, "/parent_tool_use_id").is_none();
    if is_main_agent {
        collector.clear_end();
    }
    let message = line.pointer("/message/content").map(content_text).unwrap_or_default();
    if message.starts_with(API_ERROR_PREFIX) {
        return collector.set_error(classify_failure(None, &message), &message);
    }
    add_content_blocks(line, collector);
    if let Some(message_usage) = usage_at(line, "/message/usage").filter(|u| !u.is_zero()) {
        collector.add_usage(message_usage);
        if is_main_agent {
            collector.set_context(Tokens { output: 0, ..message_usage }.total(), None);
        }
    }
}

/// Handles the result. Its counters cover the session: a resumed run continues them.
fn parse_result_line(line: &Value, collector: &mut EventCollector) {
    if flag_at(line, "/is_error") != Some(true) || collector.progress().session.is_some() {
        collector.set_session(text_at(line, "/session_id").unwrap_or_default(), None);
    }
    if let Some(turns) = count_at(line, "/num_turns") {
        collector.set_turns(turns);
    }
    for denial in line.pointer("/permission_denials").and_then(Value::as_array).into_iter().flatten() {
        let tool = text_at(denial, "/tool_name").unwrap_or("a tool");
        let id = text_at(denial, "/tool_use_id");
        collector.remember_command(id.unwrap_or_default(), &denial["tool_input"]);
        collector.add_refusal(id, tool, "it was not allowed");
    }
    if let Some(total) = usage_at(line, "/usage") {
        let run_usage = collector.run_usage_from_session(total);
        collector.set_usage(run_usage);
    }
    let subtype = text_at(line, "/subtype").unwrap_or_default();
    if !flag_at(line, "/is_error").unwrap_or(subtype != "success") {
        return collector.set_end(RunEnd::done(), text_at(line, "/result"));
    }
    let error_text = ["/error", "/result"]
        .iter()
        .find_map(|path| line.pointer(path))
        .map(content_text)
        .unwrap_or_default();
    let failure =
        if subtype == "error_max_turns" { FailureKind::Turns } else { classify_failure(None, &error_text) };
    collector.set_end(RunEnd::failed(failure, &error_text), None);
}
