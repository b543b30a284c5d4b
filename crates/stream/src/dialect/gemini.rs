//! Parser for the stream of Gemini CLI, `gemini -o stream-json`, and for its exit codes.

use std::time::Duration;

use serde_json::Value;

use crate::base::collector::EventCollector;
use crate::base::failure_kind::{FailureKind, classify_failure};
use crate::base::json::{content_text, count_at, flag_at, text_at, tool_input_at};
use crate::base::parser::{Parser, event_type, tokens_from_total_input};
use crate::base::run_end::{Exit, RunEnd};

/// Parser for Gemini's lines. Messages arrive in chunks.
#[derive(Default)]
pub(crate) struct GeminiParser;

impl Parser for GeminiParser {
    fn parse_event(&mut self, line: &Value, collector: &mut EventCollector) {
        match event_type(line) {
            "init" => collector
                .set_session(text_at(line, "/session_id").unwrap_or_default(), text_at(line, "/model")),
            "message" => parse_message(line, collector),
            "tool_use" => collector.add_tool_call(
                text_at(line, "/tool_id").unwrap_or_default(),
                text_at(line, "/tool_name").unwrap_or("a tool"),
                tool_input_at(line, "/parameters"),
                None,
            ),
            "tool_result" => parse_tool_result(line, collector),
            "error" => {
                let error_text = text_at(line, "/message").unwrap_or_default();
                if text_at(line, "/severity") == Some("warning") {
                    collector.add_warning(error_text);
                } else {
                    collector.set_error(classify_failure(None, error_text), error_text);
                }
            }
            "result" => parse_result(line, collector),
            kind => collector.add_unknown_line(kind),
        }
    }

    fn parse_stderr_line(&mut self, line: &str, collector: &mut EventCollector) {
        if let Some((attempt, delay, reason)) = parse_retry_line(line) {
            collector.add_retry(Some(attempt), None, delay, reason);
        }
    }

    /// Returns the end of the run. The exit code determines it where the agent reported neither end nor
    /// error, or an end without a specific failure.
    fn finish(&mut self, collector: &mut EventCollector, exit: Exit) -> Option<RunEnd> {
        let reported_end = collector.end.clone();
        let is_unspecific = reported_end
            .as_ref()
            .map_or(collector.error.is_none(), |end| end.failure == Some(FailureKind::Other));
        let Some((failure, exit_message)) =
            exit.code.and_then(failure_from_exit_code).filter(|_| is_unspecific)
        else {
            return reported_end;
        };
        let message = reported_end.and_then(|end| end.text).unwrap_or(exit_message);
        Some(RunEnd::failed(failure, &message))
    }
}

/// Parses a retry notice into the number of the failed attempt, the delay, and the reason. The forms are
/// `Attempt 1 failed with status 429. Retrying with backoff...` and `Attempt 4 failed: REASON Retrying after
/// 32691ms...`.
fn parse_retry_line(line: &str) -> Option<(u64, Option<Duration>, &str)> {
    let (attempt, details) = line.trim().strip_prefix("Attempt ")?.split_once(" failed")?;
    let (reason, schedule) = details.split_once(" Retrying ")?;
    let delay = schedule
        .strip_prefix("after ")
        .and_then(|text| text.split_once("ms"))
        .and_then(|(ms, _)| ms.parse().ok())
        .map(Duration::from_millis);
    let reason =
        reason.trim_start_matches([':', ' ']).trim_start_matches("with ").trim_end_matches(['.', ' ']);
    Some((attempt.parse().ok()?, delay, reason))
}

/// Returns the failure that an exit code means: some codes are Gemini's own, others are the last eight bits
/// of an HTTP status.
pub(crate) fn failure_from_exit_code(code: i32) -> Option<(FailureKind, String)> {
    let failure = |kind, text: &str| Some((kind, text.to_owned()));
    match code {
        41 => failure(FailureKind::Auth, "it is not logged in (exit code 41)"),
        42 => failure(
            FailureKind::Other,
            "it does not take this prompt, or does not know the session (exit code 42)",
        ),
        53 => failure(FailureKind::Turns, "it reached its turn limit (exit code 53)"),
        55 => failure(FailureKind::Other, "it does not trust the folder (exit code 55)"),
        144..=255 => {
            let status = u64::try_from(code).ok()? + 256;
            Some((classify_failure(Some(status), ""), format!("the provider answered with status {status}")))
        }
        _ => None,
    }
}

fn parse_message(line: &Value, collector: &mut EventCollector) {
    let content = text_at(line, "/content").unwrap_or_default();
    match (text_at(line, "/role"), flag_at(line, "/delta")) {
        (Some("assistant"), Some(true)) => collector.add_chunk(content, false),
        (Some("assistant"), _) => collector.add_text(content, None),
        _ => {}
    }
}

fn parse_tool_result(line: &Value, collector: &mut EventCollector) {
    let id = text_at(line, "/tool_id").unwrap_or_default();
    let ok = text_at(line, "/status") == Some("success");
    let output = ["/output", "/error"]
        .iter()
        .find_map(|path| line.pointer(path))
        .map(content_text)
        .unwrap_or_default();
    if text_at(line, "/error/type") == Some("policy_violation") || !ok && output.contains("denied by policy")
    {
        // A call id begins with the name of its tool.
        let tool = id.split("__").next().filter(|t| !t.is_empty()).unwrap_or("a tool");
        collector.add_refusal(Some(id), tool, &output);
    }
    collector.add_tool_result(id, ok, &output);
}

/// Handles the result. Its counters cover this run. Tokens of the total that are neither input nor output are
/// reasoning.
fn parse_result(line: &Value, collector: &mut EventCollector) {
    let get = |name: &str| count_at(line, &format!("/stats/{name}")).unwrap_or(0);
    let (input_tokens, output_tokens) = (get("input_tokens"), get("output_tokens"));
    let reasoning_tokens = get("total_tokens").saturating_sub(input_tokens).saturating_sub(output_tokens);
    collector.set_usage(tokens_from_total_input(
        input_tokens,
        get("cached"),
        0,
        output_tokens.saturating_add(reasoning_tokens),
        reasoning_tokens,
    ));
    collector.flush_chunks();
    if text_at(line, "/status") == Some("success") {
        let answer = collector.answer.clone();
        return collector.set_end(RunEnd::done(), answer.as_deref());
    }
    let end = match (text_at(line, "/error/message"), collector.error.take()) {
        (None, Some((failure, message))) => RunEnd::failed(failure, &message),
        (message, _) => {
            let message = message.unwrap_or("it ended with an error that it does not name");
            RunEnd::failed(classify_failure(None, message), message)
        }
    };
    collector.set_end(end, None);
}
