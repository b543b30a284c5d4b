//! Owns the messages that a client of the Agent Client Protocol receives. Whoever holds the connection feeds each message as
//! one line; after `session/load` from its reply on, since the session's past is sent before it.

use std::collections::VecDeque;

use serde_json::Value;

use super::json::{LONGEST_NAME, count, cut, input, list, money, text, words};
use super::parser::{Parser, without_cached};
use super::summary::End;
use super::tally::{Recent, Tally};
use super::trouble::judge;
use super::{Class, Exit, Tokens, Trouble};

/// How many calls wait for what they are given.
const MOST_HELD: usize = 64;

/// The protocol's messages.
#[derive(Default)]
pub(super) struct Acp {
    /// Calls that are announced and not told yet, since what they are given comes later.
    held: VecDeque<Call>,
    told: Recent,
    ended: Recent,
    /// The message that the last piece belongs to.
    speaking: Option<String>,
    /// What pieces say to have used, and what replies say.
    pieces: Tokens,
    replies: Tokens,
}

struct Call {
    id: String,
    name: String,
    input: Value,
}

impl Parser for Acp {
    /// A message, bare or with the way it went: `{"dir": "<", "msg": {…}}`.
    fn event(&mut self, line: &Value, tally: &mut Tally) {
        match (text(line, "/dir"), line.get("msg")) {
            (Some("<"), Some(message)) => self.message(message, tally),
            (Some(_), Some(_)) => {}
            _ => self.message(line, tally),
        }
    }

    fn end(&mut self, tally: &mut Tally, _exit: Exit) -> Option<End> {
        while let Some(call) = self.held.pop_front() {
            self.tell(call, tally);
        }
        tally.end.clone()
    }
}

impl Acp {
    fn message(&mut self, message: &Value, tally: &mut Tally) {
        match text(message, "/method") {
            Some("session/update") => self.update(&message["params"], tally),
            Some("session/request_permission") => self.asked(message, tally),
            Some(other) => tally.unknown(other),
            None if message.get("error").is_some() => failed(&message["error"], tally),
            None if message.get("result").is_some() => self.reply(&message["result"], tally),
            None => tally.unknown("no message"),
        }
    }

    fn update(&mut self, params: &Value, tally: &mut Tally) {
        tally.session(text(params, "/sessionId").unwrap_or_default(), None);
        let update = &params["update"];
        match text(update, "/sessionUpdate").unwrap_or("no update") {
            "agent_message_chunk" => {
                if let Some(more) = usage(update, "/_meta/usage") {
                    self.pieces = self.pieces.plus(more);
                    tally.usage(self.pieces.plus(self.replies));
                }
                self.piece(update, false, tally);
            }
            "agent_thought_chunk" => self.piece(update, true, tally),
            "tool_call" | "tool_call_update" => self.call(update, tally),
            "usage_update" => {
                tally.model(text(update, "/_meta/_claude~1model").unwrap_or_default());
                tally.context(count(update, "/used").unwrap_or(0), count(update, "/size"));
                let dollars = text(update, "/cost/currency").is_none_or(|c| c == "USD");
                if let Some(total) = money(update, "/cost/amount").filter(|_| dollars) {
                    let own = tally.session_cost(total);
                    tally.cost(own);
                }
            }
            "user_message_chunk"
            | "plan"
            | "available_commands_update"
            | "session_info_update"
            | "config_option_update"
            | "current_mode_update" => {}
            other => tally.unknown(other),
        }
    }

    fn piece(&mut self, update: &Value, thought: bool, tally: &mut Tally) {
        let said = text(update, "/content/text").unwrap_or_default();
        if said.is_empty() {
            return;
        }
        let message = text(update, "/messageId").map(|id| cut(id, LONGEST_NAME));
        if message != self.speaking {
            tally.flush();
            self.speaking = message;
        }
        tally.goes_on();
        tally.piece(said, thought);
    }

    /// A call, or more about it. Many are announced with nothing, and some not at all.
    fn call(&mut self, update: &Value, tally: &mut Tally) {
        tally.goes_on();
        let id = cut(text(update, "/toolCallId").unwrap_or_default(), LONGEST_NAME);
        let status = text(update, "/status");
        let ends = matches!(status, Some("completed" | "failed"));
        let held = self.held.iter().position(|call| call.id == id);
        match held.and_then(|at| self.held.remove(at)) {
            Some(mut call) => {
                let given = input(update, "/rawInput");
                let news = is_filled(&given);
                if news {
                    call.input = given;
                }
                if news || status.is_some_and(|s| s != "pending") {
                    self.tell(call, tally);
                } else {
                    self.held.push_back(call);
                }
            }
            None if self.told.is_new(&id) => {
                let call = Call { id: id.clone(), name: name(update), input: given(update) };
                if status == Some("pending") && self.held.len() < MOST_HELD {
                    self.held.push_back(call);
                } else {
                    self.tell(call, tally);
                }
            }
            None => {}
        }
        if ends && self.ended.is_new(&id) {
            tally.tool_result(&id, status == Some("completed"), &output(update));
        }
    }

    fn tell(&mut self, call: Call, tally: &mut Tally) {
        tally.tool(&call.id, &call.name, call.input, None);
    }

    fn asked(&mut self, message: &Value, tally: &mut Tally) {
        let call = &message["params"]["toolCall"];
        let id = cut(text(call, "/toolCallId").unwrap_or_default(), LONGEST_NAME);
        let held = self.held.iter().position(|held| held.id == id).and_then(|at| self.held.remove(at));
        let name = held.as_ref().map_or_else(|| name(call), |held| held.name.clone());
        if let Some(held) = held {
            self.tell(held, tally);
        }
        let request = &message["id"];
        let request = request.as_str().map_or_else(|| request.to_string(), str::to_owned);
        tally.asked(&request, &name, given(call));
    }

    /// A reply to something that was asked: to make a session, or to take a turn.
    fn reply(&mut self, result: &Value, tally: &mut Tally) {
        if let Some(id) = text(result, "/sessionId") {
            let option = list(result, "/configOptions").iter().find(|o| text(o, "/id") == Some("model"));
            let model = text(result, "/models/currentModelId");
            let model = model.or_else(|| option.and_then(|o| text(o, "/currentValue")));
            tally.session(id, model.filter(|name| !["default", "auto"].contains(name)));
        }
        let Some(reason) = text(result, "/stopReason") else { return };
        if let Some(model) = text(result, "/_meta/quota/model_usage/0/model") {
            tally.model(model);
        }
        let used = usage(result, "/usage").or_else(|| {
            let quota = result.pointer("/_meta/quota/token_count")?;
            Some(without_cached(
                count(quota, "/input_tokens")?,
                0,
                0,
                count(quota, "/output_tokens").unwrap_or(0),
                0,
            ))
        });
        if let Some(used) = used {
            self.replies = self.replies.plus(used);
            // Whoever counts in its reply has counted the pieces there.
            self.pieces = Tokens::default();
            tally.usage(self.replies);
        }
        tally.flush();
        let end = match reason {
            "end_turn" => End::done(),
            "max_tokens" => End::failed(Trouble::TokenLimit, "the model's tokens are used up"),
            "max_turn_requests" => End::failed(Trouble::Turns, "it asked the model as often as it may"),
            "cancelled" => End::of(Class::Interrupted, "its turn was cancelled"),
            "refusal" => End::failed(Trouble::Other, "the model refused to go on"),
            other => End::failed(Trouble::Other, &format!("its turn ended with {other}")),
        };
        let answer = tally.answer.clone();
        tally.finished(end, answer.as_deref());
    }
}

fn failed(error: &Value, tally: &mut Tally) {
    let said = text(error, "/message").unwrap_or("it answers with an error");
    let more = error.get("data").map(words).unwrap_or_default();
    // The protocol's own number for a login that is missing.
    let needs_login = error.get("code").and_then(Value::as_i64) == Some(-32000);
    let all = if more.is_empty() { said.to_owned() } else { format!("{said}: {more}") };
    let trouble = if needs_login { Trouble::Auth } else { judge(None, &all) };
    tally.fail(trouble, &all);
    tally.finished(End::failed(trouble, &all), None);
}

fn is_filled(given: &Value) -> bool {
    given.as_object().map_or(!given.is_null(), |fields| !fields.is_empty())
}

/// What a call is given; its title where that is not said.
fn given(call: &Value) -> Value {
    let given = input(call, "/rawInput");
    match text(call, "/title") {
        Some(title) if !is_filled(&given) => serde_json::json!({ "title": cut(title, LONGEST_NAME) }),
        _ => given,
    }
}

/// A tool's name, or what kind of tool it is; titles are sentences.
fn name(call: &Value) -> String {
    let names = ["/name", "/_meta/toolName", "/_meta/claudeCode/toolName", "/kind", "/title"];
    cut(names.iter().find_map(|path| text(call, path)).unwrap_or("a tool"), LONGEST_NAME)
}

/// What a tool says: texts, else its raw output, else the files that it changed.
fn output(update: &Value) -> String {
    let content = list(update, "/content");
    let texts: Vec<Value> = content.iter().filter(|c| text(c, "/type") == Some("content")).cloned().collect();
    let texts = words(&Value::Array(texts));
    if !texts.is_empty() {
        return texts;
    }
    if let Some(printed) = text(update, "/_meta/terminal_output_delta/data") {
        return cut(printed, super::json::LONGEST_OUTPUT);
    }
    let paths: Vec<&str> = content.iter().filter_map(|c| text(c, "/path")).collect();
    match update.get("rawOutput") {
        Some(Value::String(said)) => cut(said, super::json::LONGEST_OUTPUT),
        _ if !paths.is_empty() => paths.join("\n"),
        Some(raw) => words(raw),
        None => String::new(),
    }
}

/// Tokens in the protocol's words. Whether what was sent holds what was cached, and what was generated what was thought,
/// differs from agent to agent; the total tells.
fn usage(value: &Value, path: &str) -> Option<Tokens> {
    let usage = value.pointer(path).filter(|u| u.is_object())?;
    let get = |name: &str| u128::from(count(usage, name).unwrap_or(0));
    let (sent, said, thought) = (get("/inputTokens"), get("/outputTokens"), get("/thoughtTokens"));
    let (read, written) = (get("/cachedReadTokens"), get("/cachedWriteTokens"));
    let total = get("/totalTokens");
    let apart = sent + said + read + written;
    let (cached_within, thought_apart) = if total == apart {
        (false, false)
    } else if total == sent + said {
        (true, false)
    } else if total == sent + said + thought {
        (true, true)
    } else {
        (false, total == apart + thought)
    };
    let sent = if cached_within { sent.saturating_sub(read).saturating_sub(written) } else { sent };
    let said = if thought_apart { said + thought } else { said };
    let whole = |n: u128| u64::try_from(n).unwrap_or(u64::MAX);
    Some(Tokens {
        input: whole(sent),
        cached_input: whole(read),
        cache_write: whole(written),
        output: whole(said),
        reasoning: whole(thought),
    })
}
