//! Owns the stream of Copilot CLI, `copilot --output-format json`, and the file in which it says what it has used.

use std::collections::VecDeque;

use serde_json::Value;

use super::Tokens;
use super::json::{LONGEST_NAME, count, cut, flag, input, text, words};
use super::parser::{Parser, kind_of, without_cached};
use super::summary::End;
use super::tally::Tally;
use super::trouble::judge;

/// How many open calls are remembered.
const MOST_OPEN: usize = 64;

/// Copilot's lines. Those that do not last are skipped, but for the word that it tries again.
#[derive(Default)]
pub(super) struct Copilot {
    /// Calls and their tools: an answer does not name the tool.
    open: VecDeque<(String, String)>,
}

impl Parser for Copilot {
    fn event(&mut self, line: &Value, tally: &mut Tally) {
        let data = line.get("data").unwrap_or(&Value::Null);
        match kind_of(line) {
            "result" => result(line, tally),
            "assistant.turn_retry" => {
                tally.retry(None, None, None, text(data, "/reason").unwrap_or("the request failed"));
            }
            _ if flag(line, "/ephemeral") == Some(true) => {}
            "session.start" | "session.resume" => {
                tally.session(text(data, "/sessionId").unwrap_or_default(), text(data, "/selectedModel"));
            }
            "assistant.turn_start" => {
                tally.goes_on();
                tally.turn();
            }
            "assistant.message" => message(data, tally),
            "tool.execution_start" => self.begin(data, tally),
            "tool.execution_complete" => self.complete(data, tally),
            "session.error" => {
                let said = text(data, "/message").unwrap_or_default();
                let kind = text(data, "/errorType").unwrap_or_default();
                tally.fail(judge(count(data, "/statusCode"), &format!("{kind} {said}")), said);
            }
            "session.warning" => tally.warn(text(data, "/message").unwrap_or_default()),
            "user.message" | "assistant.turn_end" | "session.info" => {}
            kind => tally.unknown(kind),
        }
    }
}

fn message(data: &Value, tally: &mut Tally) {
    tally.model(text(data, "/model").unwrap_or_default());
    let parent = text(data, "/parentToolCallId");
    tally.thinking(text(data, "/reasoningText").unwrap_or_default(), parent);
    tally.text(text(data, "/content").unwrap_or_default(), parent);
}

fn result(line: &Value, tally: &mut Tally) {
    tally.session(text(line, "/sessionId").unwrap_or_default(), None);
    if count(line, "/exitCode") == Some(0) {
        let answer = tally.answer.clone();
        return tally.finished(End::done(), answer.as_deref());
    }
    let end = match &tally.error {
        Some((trouble, message)) => End::failed(*trouble, message),
        None => End::failed(super::Trouble::Other, ""),
    };
    tally.finished(end, None);
}

impl Copilot {
    fn begin(&mut self, data: &Value, tally: &mut Tally) {
        let id = text(data, "/toolCallId").unwrap_or_default();
        let name = text(data, "/toolName").unwrap_or("a tool");
        if self.open.len() == MOST_OPEN {
            self.open.pop_front();
        }
        self.open.push_back((cut(id, LONGEST_NAME), cut(name, LONGEST_NAME)));
        tally.tool(id, name, input(data, "/arguments"), text(data, "/parentToolCallId"));
    }

    fn complete(&mut self, data: &Value, tally: &mut Tally) {
        let id = text(data, "/toolCallId").unwrap_or_default();
        let open = self.open.iter().position(|(open, _)| open == id).and_then(|at| self.open.remove(at));
        let ok = flag(data, "/success") == Some(true);
        let path = if ok { "/result/content" } else { "/error/message" };
        let output = data.pointer(path).map(words).unwrap_or_default();
        if text(data, "/error/code") == Some("denied") {
            let tool = open.map_or_else(|| "a tool".to_owned(), |(_, tool)| tool);
            tally.refuse(Some(id), &tool, &output);
        }
        tally.tool_result(id, ok, &output);
        if let Some(used) = count(data, "/toolTelemetry/metrics/context_current_tokens") {
            tally.context(used, count(data, "/toolTelemetry/metrics/context_token_limit"));
        }
    }
}

/// Reads the file of `--usage-output-file`: the tokens of the session, and the model if it was one.
pub(super) fn read_usage_file(bytes: &[u8]) -> Option<(Tokens, Option<String>)> {
    let file = super::json::read(bytes)?;
    let models = file.pointer("/modelMetrics")?.as_object()?;
    let tokens = models.values().fold(Tokens::default(), |sum, model| {
        let get = |name: &str| count(model, &format!("/usage/{name}")).unwrap_or(0);
        sum.plus(without_cached(
            get("inputTokens"),
            get("cacheReadTokens"),
            get("cacheWriteTokens"),
            get("outputTokens"),
            get("reasoningTokens"),
        ))
    });
    Some((tokens, models.keys().next().filter(|_| models.len() == 1).cloned()))
}
