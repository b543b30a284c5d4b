//! Owns the stream of opencode, `opencode run --format json`.

use serde_json::Value;

use super::json::{count, input, money, text, words};
use super::parser::{Parser, kind_of};
use super::summary::End;
use super::tally::Tally;
use super::trouble::judge;
use super::{Class, Exit, Tokens, Trouble};

/// So many steps in a row that came to nothing are no accident.
const RUNAWAY: u32 = 3;

/// opencode's lines. There is no last one: the reason of the last step and the exit code say how it ended.
#[derive(Default)]
pub(super) struct OpenCode {
    /// Why the last step ended.
    reason: Option<String>,
    /// Steps in a row that came to nothing: the provider broke off, and it asks again without end.
    empty: u32,
    /// Whether the stream had an error event: opencode exits with 1 then, even where it recovered.
    erred: bool,
    cost: u64,
}

impl Parser for OpenCode {
    fn event(&mut self, line: &Value, tally: &mut Tally) {
        if let Some(id) = text(line, "/sessionID") {
            tally.session(id, None);
        }
        match kind_of(line) {
            "step_start" => tally.goes_on(),
            "text" => tally.text(text(line, "/part/text").unwrap_or_default(), None),
            "reasoning" => tally.thinking(text(line, "/part/text").unwrap_or_default(), None),
            "tool_use" => tool(&line["part"], tally),
            "step_finish" => self.step(&line["part"], tally),
            "error" => {
                self.erred = true;
                error(&line["error"], tally);
            }
            kind => tally.unknown(kind),
        }
    }

    /// `stop` needs a clean exit, or an error before it that explains the exit code; `tool-calls` means that it was about to go on, and did not.
    fn end(&mut self, tally: &mut Tally, exit: Exit) -> Option<End> {
        if let Some(end) = tally.end.take() {
            // An error since then has put one in place of the end.
            let got_over_it = self.erred && tally.error.is_none() && exit.code == Some(1);
            let failed = exit.ended_by().is_none() && exit.code.is_some_and(|code| code != 0) && !got_over_it;
            return (end.class != Class::Done || !failed).then_some(end);
        }
        if let Some(why) = self.runaway() {
            return Some(End::failed(Trouble::Provider, &why));
        }
        if exit.ended_by().is_some() || tally.error.is_some() {
            return None;
        }
        match (self.reason.as_deref()?, tally.refused.last()) {
            ("tool-calls", Some(last)) if exit.is_clean() => {
                Some(End::of(Class::Refused, &format!("{}: {}", last.tool, last.message)))
            }
            ("unknown", _) => Some(End::failed(Trouble::Provider, "the model's answer broke off")),
            _ => None,
        }
    }

    fn runaway(&self) -> Option<String> {
        let times = self.empty;
        (times >= RUNAWAY).then(|| format!("the model's answer broke off {times} times in a row"))
    }
}

impl OpenCode {
    /// What was generated and what was thought are told apart; together they are the output.
    fn step(&mut self, part: &Value, tally: &mut Tally) {
        let get = |path| count(part, path).unwrap_or(0);
        let reasoning = get("/tokens/reasoning");
        let used = Tokens {
            input: get("/tokens/input"),
            cached_input: get("/tokens/cache/read"),
            cache_write: get("/tokens/cache/write"),
            output: get("/tokens/output").saturating_add(reasoning),
            reasoning,
        };
        let reason = text(part, "/reason").unwrap_or("unknown");
        self.empty = if reason == "unknown" && used.is_none() { self.empty.saturating_add(1) } else { 0 };
        self.reason = Some(super::json::cut(reason, 64));
        tally.turn();
        tally.used(used);
        self.cost = self.cost.saturating_add(money(part, "/cost").unwrap_or(0));
        // Nothing for something means that it knows no price, not that there is none.
        if self.cost > 0 {
            tally.cost(self.cost);
        }
        match reason {
            "stop" => {
                let answer = tally.answer.clone();
                tally.finished(End::done(), answer.as_deref());
            }
            "length" => tally.finished(End::failed(Trouble::TokenLimit, "the answer got too long"), None),
            "content-filter" => tally.finished(End::failed(Trouble::Other, "the answer was filtered"), None),
            _ => {}
        }
    }
}

fn tool(part: &Value, tally: &mut Tally) {
    let id = text(part, "/callID").unwrap_or_default();
    let name = text(part, "/tool").unwrap_or("a tool");
    tally.tool(id, name, input(part, "/state/input"), None);
    match text(part, "/state/status").unwrap_or_default() {
        "completed" => {
            tally.tool_result(id, true, &part.pointer("/state/output").map(words).unwrap_or_default());
        }
        "error" => {
            let said = text(part, "/state/error").unwrap_or_default();
            if said.contains("rejected permission") || said.contains("a rule which prevents you") {
                tally.refuse(Some(id), name, said);
            }
            tally.tool_result(id, false, said);
        }
        _ => {}
    }
}

fn error(error: &Value, tally: &mut Tally) {
    let name = text(error, "/name").unwrap_or_default();
    let said = text(error, "/data/message").or(text(error, "/message")).unwrap_or(name);
    if name == "MessageAbortedError" {
        return tally.finished(End::of(Class::Interrupted, said), None);
    }
    let trouble = judge(count(error, "/data/statusCode"), &format!("{name} {said}"));
    tally.fail(trouble, said);
}
