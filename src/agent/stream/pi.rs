//! Owns the stream of Pi, `pi --mode json`, of 0.73 and 0.87.

use serde_json::Value;

use super::Class;
use super::json::{LONGEST_MESSAGE, count, cut, flag, input, list, money, text, words};
use super::parser::{Parser, kind_of};
use super::summary::End;
use super::tally::Tally;
use super::trouble::judge;
use super::{Tokens, Trouble};

/// Pi's lines. It exits with 0 whatever happened; the last message says why it stopped.
#[derive(Default)]
pub(super) struct Pi {
    stop: Option<String>,
    error: String,
    cost: u64,
    /// Whether the last message has counters, and they say nothing at all.
    counts_nothing: bool,
    /// Whether the last message has neither words nor calls.
    is_empty: bool,
}

impl Parser for Pi {
    fn event(&mut self, line: &Value, tally: &mut Tally) {
        match kind_of(line) {
            "session" => tally.session(text(line, "/id").unwrap_or_default(), None),
            "agent_start" => tally.goes_on(),
            "turn_start" => tally.turn(),
            "message_end" if text(line, "/message/role") == Some("assistant") => self.message(line, tally),
            "tool_execution_start" => tally.tool(
                text(line, "/toolCallId").unwrap_or_default(),
                text(line, "/toolName").unwrap_or("a tool"),
                input(line, "/args"),
                None,
            ),
            "tool_execution_end" => tally.tool_result(
                text(line, "/toolCallId").unwrap_or_default(),
                flag(line, "/isError") != Some(true),
                &line.get("result").map(words).unwrap_or_default(),
            ),
            "auto_retry_start" => tally.retry(
                count(line, "/attempt"),
                count(line, "/maxAttempts"),
                count(line, "/delayMs"),
                text(line, "/errorMessage").unwrap_or("the request failed"),
            ),
            "agent_end" if flag(line, "/willRetry") != Some(true) => self.conclude(tally),
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
            kind => tally.unknown(kind),
        }
    }

    /// Each piece of an answer comes with all of it so far: most of the stream, of no use here.
    fn skips(&self, line: &[u8]) -> bool {
        line.starts_with(br#"{"type":"message_update""#)
    }
}

impl Pi {
    fn message(&mut self, line: &Value, tally: &mut Tally) {
        let message = &line["message"];
        tally.model(text(message, "/model").unwrap_or_default());
        for block in list(message, "/content") {
            match kind_of(block) {
                "text" => tally.text(text(block, "/text").unwrap_or_default(), None),
                "thinking" => tally.thinking(text(block, "/thinking").unwrap_or_default(), None),
                "toolCall" => {}
                other => tally.unknown(&format!("message_end/{other}")),
            }
        }
        let get = |name: &str| count(message, &format!("/usage/{name}")).unwrap_or(0);
        let used = Tokens {
            input: get("input"),
            cached_input: get("cacheRead"),
            cache_write: get("cacheWrite"),
            output: get("output"),
            reasoning: get("reasoning"),
        };
        self.counts_nothing = message.get("usage").is_some() && used.is_none();
        self.is_empty = list(message, "/content").is_empty();
        tally.used(used);
        self.cost = self.cost.saturating_add(money(message, "/usage/cost/total").unwrap_or(0));
        // Nothing for something means that it knows no price, not that there is none.
        if self.cost > 0 {
            tally.cost(self.cost);
        }
        if !used.is_none() {
            tally.context(used.total(), None);
        }
        self.stop = text(message, "/stopReason").map(|stop| cut(stop, 64));
        self.error = cut(text(message, "/errorMessage").unwrap_or_default(), LONGEST_MESSAGE);
        if self.stop.as_deref() == Some("error") {
            tally.fail(judge(None, &self.error), &self.error);
        }
    }

    fn conclude(&mut self, tally: &mut Tally) {
        match self.stop.as_deref() {
            // What 0.73 says of a stream that was cut. Some servers count nothing, of any message.
            Some("stop") if self.counts_nothing && (self.is_empty || !tally.progress().tokens.is_none()) => {
                tally.finished(End::failed(Trouble::Provider, "the model's answer broke off"), None);
            }
            Some("stop") => {
                let answer = tally.answer.clone();
                tally.finished(End::done(), answer.as_deref());
            }
            Some("error") => tally.finished(End::failed(judge(None, &self.error), &self.error), None),
            Some("aborted") => tally.finished(End::of(Class::Interrupted, &self.error), None),
            Some("length") => {
                tally.finished(End::failed(Trouble::TokenLimit, "the answer got too long"), None);
            }
            _ => {}
        }
    }
}
