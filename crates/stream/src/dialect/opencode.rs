//! Parser for the stream of opencode, `opencode run --format json`.

use proq_base::money::NanoDollars;
use proq_base::usage::Tokens;
use serde_json::Value;

use crate::base::collector::EventCollector;
use crate::base::failure_kind::{FailureKind, classify_failure};
use crate::base::json::{content_text, count_at, dollars_at, text_at, tool_input_at};
use crate::base::parser::{Parser, event_type};
use crate::base::run_end::{Exit, ExitClass, RunEnd};

/// Number of consecutive empty steps (model requests without tokens) from which opencode counts as looping
/// without end.
const RUNAWAY_EMPTY_STEPS: u32 = 3;

/// Parser for opencode's lines. A step is one model request. The stream has no final line: the last step's
/// reason and the exit code reveal how the run ended.
#[derive(Default)]
pub(crate) struct OpenCodeParser {
    /// Reason for which the last step ended, as opencode reports it.
    last_step_reason: Option<String>,
    /// Number of consecutive steps without tokens: the provider broke off, and opencode repeats the request
    /// without end.
    empty_steps: u32,
    /// Whether the stream had an error event: opencode exits with 1 after one, even where it recovered.
    had_error: bool,
    /// Cost of all steps so far.
    cost: NanoDollars,
}

impl Parser for OpenCodeParser {
    fn parse_event(&mut self, line: &Value, collector: &mut EventCollector) {
        if let Some(id) = text_at(line, "/sessionID") {
            collector.set_session(id, None);
        }
        match event_type(line) {
            "step_start" => collector.clear_end(),
            "text" => collector.add_text(text_at(line, "/part/text").unwrap_or_default(), None),
            "reasoning" => collector.add_thinking(text_at(line, "/part/text").unwrap_or_default(), None),
            "tool_use" => parse_tool_call(&line["part"], collector),
            "step_finish" => self.finish_step(&line["part"], collector),
            "error" => {
                self.had_error = true;
                parse_error(&line["error"], collector);
            }
            kind => collector.add_unknown_line(kind),
        }
    }

    /// Returns the end of the run. A successful end does not count if opencode exited with an error code,
    /// except 1 after an error that it recovered from. The last reason `tool-calls` means that opencode
    /// exited instead of continuing; if a tool was refused, that ended the run.
    fn finish(&mut self, collector: &mut EventCollector, exit: Exit) -> Option<RunEnd> {
        if let Some(end) = collector.end.take() {
            // A later error would have replaced the end.
            let recovered = self.had_error && collector.error.is_none() && exit.code == Some(1);
            let exited_with_error =
                exit.terminating_signal().is_none() && exit.code.is_some_and(|code| code != 0) && !recovered;
            return (end.class != ExitClass::Done || !exited_with_error).then_some(end);
        }
        if let Some(reason) = self.runaway_reason() {
            return Some(RunEnd::failed(FailureKind::Provider, &reason));
        }
        if exit.terminating_signal().is_some() || collector.error.is_some() {
            return None;
        }
        match (self.last_step_reason.as_deref()?, collector.refusals.last()) {
            ("tool-calls", Some(last)) if exit.is_clean() => {
                Some(RunEnd::with_class(ExitClass::Refused, &format!("{}: {}", last.tool, last.message)))
            }
            ("unknown", _) => Some(RunEnd::failed(FailureKind::Provider, "the model's answer broke off")),
            _ => None,
        }
    }

    fn runaway_reason(&self) -> Option<String> {
        let times = self.empty_steps;
        (times >= RUNAWAY_EMPTY_STEPS).then(|| format!("the model's answer broke off {times} times in a row"))
    }
}

impl OpenCodeParser {
    /// Handles the end of a step. Output and reasoning are counted separately; their sum is the output.
    fn finish_step(&mut self, part: &Value, collector: &mut EventCollector) {
        let get = |path| count_at(part, path).unwrap_or(0);
        let reasoning = get("/tokens/reasoning");
        let step_usage = Tokens {
            input: get("/tokens/input"),
            cached_input: get("/tokens/cache/read"),
            cache_write: get("/tokens/cache/write"),
            output: get("/tokens/output").saturating_add(reasoning),
            reasoning,
        };
        let reason = text_at(part, "/reason").unwrap_or("unknown");
        self.empty_steps =
            if reason == "unknown" && step_usage.is_zero() { self.empty_steps.saturating_add(1) } else { 0 };
        self.last_step_reason = Some(crate::base::json::truncate(reason, 64));
        collector.add_turn();
        collector.add_usage(step_usage);
        self.cost = self.cost.saturating_add(dollars_at(part, "/cost").unwrap_or_default());
        // A zero cost for used tokens means that opencode knows no price, not that they are free.
        if !self.cost.is_zero() {
            collector.set_cost(self.cost);
        }
        match reason {
            "stop" => {
                let answer = collector.answer.clone();
                collector.set_end(RunEnd::done(), answer.as_deref());
            }
            "length" => {
                collector.set_end(RunEnd::failed(FailureKind::TokenLimit, "the answer got too long"), None);
            }
            "content-filter" => {
                collector.set_end(RunEnd::failed(FailureKind::Other, "the answer was filtered"), None);
            }
            _ => {}
        }
    }
}

fn parse_tool_call(part: &Value, collector: &mut EventCollector) {
    let id = text_at(part, "/callID").unwrap_or_default();
    let name = text_at(part, "/tool").unwrap_or("a tool");
    collector.add_tool_call(id, name, tool_input_at(part, "/state/input"), None);
    match text_at(part, "/state/status").unwrap_or_default() {
        "completed" => {
            collector.add_tool_result(
                id,
                true,
                &part.pointer("/state/output").map(content_text).unwrap_or_default(),
            );
        }
        "error" => {
            let error_text = text_at(part, "/state/error").unwrap_or_default();
            if error_text.contains("rejected permission") || error_text.contains("a rule which prevents you")
            {
                collector.add_refusal(Some(id), name, error_text);
            }
            collector.add_tool_result(id, false, error_text);
        }
        _ => {}
    }
}

fn parse_error(error: &Value, collector: &mut EventCollector) {
    let name = text_at(error, "/name").unwrap_or_default();
    let error_text = text_at(error, "/data/message").or(text_at(error, "/message")).unwrap_or(name);
    if name == "MessageAbortedError" {
        return collector.set_end(RunEnd::with_class(ExitClass::Interrupted, error_text), None);
    }
    let failure = classify_failure(count_at(error, "/data/statusCode"), &format!("{name} {error_text}"));
    collector.set_error(failure, error_text);
}
