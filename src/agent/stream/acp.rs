//! Owns the messages that a client of the Agent Client Protocol receives, and what the client says between them. A reply counts
//! only where the client has asked; what comes before the reply to `session/load` is the session's past.

use std::collections::VecDeque;

use serde::Deserialize;
use serde_json::Value;

use super::json::{LONGEST_NAME, count, cut, input, list, money, text, words};
use super::parser::{Parser, without_cached};
use super::said::Said;
use super::summary::End;
use super::tally::{Recent, Tally};
use super::trouble::judge;
use super::{Class, Exit, Tokens, Trouble};

/// How many calls wait for what they are given.
const MOST_HELD: usize = 64;

/// How many replies are waited for at once.
const MOST_ASKED: usize = 64;

/// The protocol's messages.
#[derive(Default)]
pub(super) struct Acp {
    /// What the client has asked for and has no reply to.
    asked: VecDeque<Asked>,
    /// How the turn ended, or what came before one. It is the end of the run when nothing more is asked.
    end: Option<End>,
    /// Calls that are announced and not told yet, since what they are given comes later.
    held: VecDeque<Call>,
    told: Recent,
    ended: Recent,
    /// The message that the last piece belongs to.
    speaking: Option<String>,
    /// The beginning of the first turn in a session that was loaded, in which some agents tell its past once more.
    opening: Option<Opening>,
    /// What the client refused last, while the agent has done and said nothing since.
    refused: Option<(String, String)>,
    /// What pieces say to have used, and what replies say.
    pieces: Tokens,
    replies: Tokens,
}

/// What may be a session's past.
#[derive(Default)]
struct Opening {
    /// Whether the turn has begun.
    asked: bool,
    /// Whether words of the user's were told, which only the past has.
    past: bool,
    /// What the agent has said since, and may be new.
    held: Vec<Value>,
}

struct Asked {
    id: u64,
    method: String,
    session: Option<String>,
}

struct Call {
    id: String,
    name: String,
    input: Value,
}

impl Parser for Acp {
    fn event(&mut self, line: &Value, tally: &mut Tally) {
        match text(line, "/method") {
            // The session's past, told once more.
            Some("session/update") if self.asked.iter().any(|asked| asked.method == "session/load") => {}
            Some("session/update") => {
                tally.session(text(line, "/params/sessionId").unwrap_or_default(), None);
                let update = &line["params"]["update"];
                if !self.is_past(update, tally) {
                    self.update(update, tally);
                }
            }
            Some("session/request_permission") => {
                self.open_up(tally);
                self.wants(line, tally);
            }
            Some(other) => tally.unknown(other),
            None => self.answer(line, tally),
        }
    }

    fn client(&mut self, line: &Value, tally: &mut Tally) {
        match Said::deserialize(line) {
            Ok(Said::Asks { id, method, session, more }) => {
                if method == "session/load" {
                    self.opening = Some(Opening::default());
                }
                if method == "session/prompt" {
                    self.end = None;
                    self.refused = None;
                    tally.goes_on();
                    match &mut self.opening {
                        Some(opening) if !opening.asked => opening.asked = true,
                        _ => self.open_up(tally),
                    }
                }
                if self.asked.len() < MOST_ASKED {
                    self.asked.push_back(Asked { id, method, session });
                }
                if let Some(more) = more {
                    tally.told(&more);
                }
            }
            Ok(Said::Refuses { call, tool, why }) => {
                tally.refuse(Some(&call), &tool, &why);
                self.refused = Some((tool, why));
            }
            Ok(Said::Notes { text }) => tally.warn(&text),
            Ok(Said::Fails { text }) => {
                let trouble = judge(None, &text);
                tally.fail(trouble, &text);
                self.end = Some(End::failed(trouble, &text));
            }
            Ok(Said::Ends) => self.over(tally),
            Err(_) => tally.unknown("no word of the client's"),
        }
    }

    fn end(&mut self, tally: &mut Tally, _exit: Exit) -> Option<End> {
        self.open_up(tally);
        while let Some(call) = self.held.pop_front() {
            self.tell(call, tally);
        }
        self.over(tally);
        tally.end.clone()
    }
}

impl Acp {
    /// Nothing more comes: the end of the turn is the end of the run.
    fn over(&mut self, tally: &mut Tally) {
        if let Some(end) = self.end.take() {
            tally.flush();
            let answer = tally.answer.clone();
            tally.finished(end, answer.as_deref());
        }
    }

    /// A reply to something that the client asked.
    fn answer(&mut self, line: &Value, tally: &mut Tally) {
        let id = line.get("id").and_then(Value::as_u64);
        let at = self.asked.iter().position(|asked| Some(asked.id) == id);
        let answers = line.get("result").is_some() || line.get("error").is_some();
        let Some(asked) = at.filter(|_| answers).and_then(|at| self.asked.remove(at)) else {
            return tally.unknown("no message");
        };
        // An agent answers in order: once it has answered something after the session was loaded, the past is told.
        if let Some(opening) = self.opening.as_mut().filter(|_| asked.method != "session/load") {
            opening.past = false;
        }
        match line.get("error") {
            Some(error) if matches!(asked.method.as_str(), "session/load" | "session/set_mode") => {
                tally.warn(&format!("{} was refused: {}", asked.method, in_words(error)));
            }
            Some(error) => self.end = Some(failed(error, tally)),
            None => {
                if let Some(session) = &asked.session {
                    tally.session(session, None);
                }
                self.reply(&line["result"], tally);
            }
        }
    }

    /// Whether an update is of the session's past, or is held since it may be. Some agents tell that only once they are asked: the
    /// user's words, the agent's, and calls that are over when they are first told of.
    fn is_past(&mut self, update: &Value, tally: &mut Tally) -> bool {
        let kind = text(update, "/sessionUpdate").unwrap_or_default();
        let Some(opening) = self.opening.as_mut() else { return false };
        if !opening.asked {
            // Nothing was asked yet that this could be about.
            opening.past |= kind == "user_message_chunk";
            if matches!(kind, "tool_call" | "tool_call_update") {
                let id = cut(text(update, "/toolCallId").unwrap_or_default(), LONGEST_NAME);
                self.told.is_new(&id);
                self.ended.is_new(&id);
            }
            return matches!(
                kind,
                "user_message_chunk"
                    | "agent_message_chunk"
                    | "agent_thought_chunk"
                    | "tool_call"
                    | "tool_call_update"
            );
        }
        match (kind, opening.past) {
            ("user_message_chunk", _) => opening.past = true,
            ("tool_call", true) if matches!(text(update, "/status"), Some("completed" | "failed")) => {
                let id = cut(text(update, "/toolCallId").unwrap_or_default(), LONGEST_NAME);
                self.told.is_new(&id);
                self.ended.is_new(&id);
            }
            ("agent_message_chunk" | "agent_thought_chunk", true) if opening.held.len() < MOST_HELD => {
                opening.held.push(update.clone());
                return true;
            }
            // The past is over.
            ("available_commands_update", true) => self.opening = None,
            ("session_info_update" | "config_option_update" | "current_mode_update", _)
            | ("available_commands_update", false) => return false,
            _ => {
                self.open_up(tally);
                return false;
            }
        }
        // What was said before that is of the past, too.
        if let Some(opening) = &mut self.opening {
            opening.held.clear();
        }
        true
    }

    /// What comes from here on is new, and so is what was held.
    fn open_up(&mut self, tally: &mut Tally) {
        for update in self.opening.take().into_iter().flat_map(|opening| opening.held) {
            self.update(&update, tally);
        }
    }

    fn update(&mut self, update: &Value, tally: &mut Tally) {
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
                let total = money(update, "/cost/amount").filter(|_| dollars);
                if let Some(own) = total.and_then(|total| tally.session_cost(total)) {
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
        if !thought {
            self.refused = None;
        }
        let message = text(update, "/messageId").map(|id| cut(id, LONGEST_NAME));
        if message != self.speaking {
            tally.flush();
            self.speaking = message;
        }
        tally.piece(said, thought);
    }

    /// A call, or more about it. Many are announced with nothing, and some not at all.
    fn call(&mut self, update: &Value, tally: &mut Tally) {
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
                // Of one that was refused comes an end only.
                if !ends {
                    self.refused = None;
                }
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

    /// It wants leave to use a tool, which the client gives or does not.
    fn wants(&mut self, message: &Value, tally: &mut Tally) {
        self.refused = None;
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

    /// What came of making a session, or of a turn.
    fn reply(&mut self, result: &Value, tally: &mut Tally) {
        if let Some(id) = text(result, "/sessionId") {
            let option = list(result, "/configOptions").iter().find(|o| text(o, "/id") == Some("model"));
            let model = text(result, "/models/currentModelId");
            let model = model.or_else(|| option.and_then(|o| text(o, "/currentValue")));
            tally.session(id, model.filter(|name| !["default", "auto"].contains(name)));
        }
        let Some(reason) = text(result, "/stopReason") else { return };
        self.open_up(tally);
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
        self.end = Some(match reason {
            // Some end their turn where they are refused something, in the middle of their work.
            "end_turn" if self.refused.is_some() => {
                let (tool, why) = self.refused.take().unwrap_or_default();
                End::of(Class::Refused, &format!("{tool}: {why}"))
            }
            "end_turn" => End::done(),
            "max_tokens" => End::failed(Trouble::TokenLimit, "the model's tokens are used up"),
            "max_turn_requests" => End::failed(Trouble::Turns, "it asked the model as often as it may"),
            "cancelled" => End::of(Class::Interrupted, "its turn was cancelled"),
            "refusal" => End::failed(Trouble::Other, "the model refused to go on"),
            other => End::failed(Trouble::Other, &format!("its turn ended with {other}")),
        });
    }
}

/// What an error says.
fn in_words(error: &Value) -> String {
    let said = text(error, "/message").unwrap_or("it answers with an error");
    let more = error.get("data").map(words).unwrap_or_default();
    if more.is_empty() { said.to_owned() } else { format!("{said}: {more}") }
}

fn failed(error: &Value, tally: &mut Tally) -> End {
    let all = in_words(error);
    // The protocol's own number for a login that is missing.
    let needs_login = error.get("code").and_then(Value::as_i64) == Some(-32000);
    let trouble = if needs_login { Trouble::Auth } else { judge(None, &all) };
    tally.fail(trouble, &all);
    End::failed(trouble, &all)
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
    let mut named = names.iter().filter_map(|path| text(call, path)).filter(|name| *name != "other");
    cut(named.next().unwrap_or("a tool"), LONGEST_NAME)
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
