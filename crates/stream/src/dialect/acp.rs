//! Parser for the log of an Agent Client Protocol session: the messages that the client receives, and the
//! client's own lines between them. A reply counts only where the client has sent a request. Updates before
//! the reply to `session/load` are a replay of the session's past.

mod fields;

use std::collections::VecDeque;

use proq_base::usage::Tokens;
use serde::Deserialize;
use serde_json::Value;

use crate::base::client_line::ClientLine;
use crate::base::collector::{EventCollector, RecentIds};
use crate::base::failure_kind::{FailureKind, classify_failure};
use crate::base::json::{
    MAX_NAME_BYTES, content_text, count_at, dollars_at, list_at, text_at, tool_input_at, truncate,
};
use crate::base::parser::{Parser, tokens_from_total_input};
use crate::base::run_end::{Exit, ExitClass, RunEnd};
use fields::{call_input, has_content, tool_name, tool_output, usage_at};

/// Maximum number of tool calls that wait for their input. Also the maximum number of updates held back
/// because they may be a replay.
const MAX_HELD: usize = 64;

/// Maximum number of requests that wait for a reply at once.
const MAX_PENDING_REQUESTS: usize = 64;

/// Parser for the protocol's messages.
#[derive(Default)]
pub(crate) struct AcpParser {
    /// Requests of the client that have no reply yet.
    pending_requests: VecDeque<PendingRequest>,
    /// How the last turn ended, or what prevented one. It becomes the end of the run when the client sends no
    /// further prompt.
    last_turn_end: Option<RunEnd>,
    /// Announced tool calls that are not emitted yet, since their input arrives later.
    announced_calls: VecDeque<AnnouncedCall>,
    /// Ids of tool calls that were emitted, or that a replay contained.
    emitted_call_ids: RecentIds,
    /// Ids of tool calls whose results were emitted, or that a replay contained.
    finished_call_ids: RecentIds,
    /// Id of the message that the last chunk belongs to.
    current_message_id: Option<String>,
    /// State of the first turn in a loaded session, in which some agents replay the session's past.
    replay: Option<SessionReplay>,
    /// Tool and message of the last permission that the client refused. `None` once the agent has produced
    /// output after the refusal.
    last_refusal: Option<(String, String)>,
    /// Sum of the usage in message chunks, since the last reply that reported usage.
    chunk_usage: Tokens,
    /// Sum of the usage in replies.
    reply_usage: Tokens,
}

/// State of detecting which updates replay a loaded session's past.
#[derive(Default)]
struct SessionReplay {
    /// Whether the client has sent the prompt of the first turn.
    turn_started: bool,
    /// Whether a replay is in progress: a message of the user arrived, which only a replay contains.
    is_replaying: bool,
    /// Messages and reasoning of the agent since the last update that is known to be a replay. They may be
    /// new output.
    held_updates: Vec<Value>,
}

/// Request of the client that has no reply yet.
struct PendingRequest {
    id: u64,
    method: String,
    /// Session that the request resumes.
    session: Option<String>,
}

/// Tool call that was announced and is not emitted yet.
struct AnnouncedCall {
    id: String,
    name: String,
    input: Value,
}

impl Parser for AcpParser {
    fn parse_event(&mut self, line: &Value, collector: &mut EventCollector) {
        match text_at(line, "/method") {
            // Updates during `session/load` replay the session's past.
            Some("session/update")
                if self.pending_requests.iter().any(|request| request.method == "session/load") => {}
            Some("session/update") => {
                collector.set_session(text_at(line, "/params/sessionId").unwrap_or_default(), None);
                let update = &line["params"]["update"];
                if !self.take_replayed_update(update, collector) {
                    self.handle_update(update, collector);
                }
            }
            Some("session/request_permission") => {
                self.end_replay(collector);
                self.handle_permission_request(line, collector);
            }
            Some(other) => collector.add_unknown_line(other),
            None => self.handle_reply(line, collector),
        }
    }

    fn parse_client_line(&mut self, line: &Value, collector: &mut EventCollector) {
        match ClientLine::deserialize(line) {
            Ok(ClientLine::Request { id, method, session, message }) => {
                if method == "session/load" {
                    self.replay = Some(SessionReplay::default());
                }
                if method == "session/prompt" {
                    self.last_turn_end = None;
                    self.last_refusal = None;
                    collector.clear_end();
                    match &mut self.replay {
                        Some(replay) if !replay.turn_started => replay.turn_started = true,
                        _ => self.end_replay(collector),
                    }
                }
                if self.pending_requests.len() < MAX_PENDING_REQUESTS {
                    self.pending_requests.push_back(PendingRequest { id, method, session });
                }
                if let Some(message) = message {
                    collector.add_sent_message(&message);
                }
            }
            Ok(ClientLine::ToolRefused { call_id: call, tool, reason }) => {
                collector.add_refusal(Some(&call), &tool, &reason);
                self.last_refusal = Some((tool, reason));
            }
            Ok(ClientLine::Note { text }) => collector.add_warning(&text),
            Ok(ClientLine::Failure { text }) => {
                let failure = classify_failure(None, &text);
                collector.set_error(failure, &text);
                self.last_turn_end = Some(RunEnd::failed(failure, &text));
            }
            Ok(ClientLine::NoMoreRequests) => self.emit_end(collector),
            Err(_) => collector.add_unknown_line("no word of the client's"),
        }
    }

    fn finish(&mut self, collector: &mut EventCollector, _exit: Exit) -> Option<RunEnd> {
        self.end_replay(collector);
        while let Some(call) = self.announced_calls.pop_front() {
            self.emit_call(call, collector);
        }
        self.emit_end(collector);
        collector.end.clone()
    }
}

impl AcpParser {
    /// Emits the end of the last turn as the end of the run, since nothing more follows.
    fn emit_end(&mut self, collector: &mut EventCollector) {
        if let Some(end) = self.last_turn_end.take() {
            collector.flush_chunks();
            let answer = collector.answer.clone();
            collector.set_end(end, answer.as_deref());
        }
    }

    /// Handles a reply to a request of the client.
    fn handle_reply(&mut self, line: &Value, collector: &mut EventCollector) {
        let id = line.get("id").and_then(Value::as_u64);
        let index = self.pending_requests.iter().position(|request| Some(request.id) == id);
        let is_reply = line.get("result").is_some() || line.get("error").is_some();
        let Some(request) = index.filter(|_| is_reply).and_then(|at| self.pending_requests.remove(at)) else {
            return collector.add_unknown_line("no message");
        };
        // An agent replies in order: once it has answered a request after the session was loaded, the replay
        // is complete.
        if let Some(replay) = self.replay.as_mut().filter(|_| request.method != "session/load") {
            replay.is_replaying = false;
        }
        match line.get("error") {
            Some(error) if matches!(request.method.as_str(), "session/load" | "session/set_mode") => {
                collector.add_warning(&format!("{} was refused: {}", request.method, describe_error(error)));
            }
            Some(error) => self.last_turn_end = Some(record_error(error, collector)),
            None => {
                if let Some(session) = &request.session {
                    collector.set_session(session, None);
                }
                self.handle_result(&line["result"], collector);
            }
        }
    }

    /// Takes an update that replays the session's past, or holds it back because it may; false for new
    /// output. Some agents start their replay only after the first prompt: the user's messages, the agent's
    /// messages, and tool calls that are already finished when announced.
    fn take_replayed_update(&mut self, update: &Value, collector: &mut EventCollector) -> bool {
        let kind = text_at(update, "/sessionUpdate").unwrap_or_default();
        let Some(replay) = self.replay.as_mut() else { return false };
        if !replay.turn_started {
            // No prompt was sent yet that the update could belong to.
            replay.is_replaying |= kind == "user_message_chunk";
            if matches!(kind, "tool_call" | "tool_call_update") {
                let id = truncate(text_at(update, "/toolCallId").unwrap_or_default(), MAX_NAME_BYTES);
                self.emitted_call_ids.insert(&id);
                self.finished_call_ids.insert(&id);
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
        match (kind, replay.is_replaying) {
            ("user_message_chunk", _) => replay.is_replaying = true,
            ("tool_call", true) if matches!(text_at(update, "/status"), Some("completed" | "failed")) => {
                let id = truncate(text_at(update, "/toolCallId").unwrap_or_default(), MAX_NAME_BYTES);
                self.emitted_call_ids.insert(&id);
                self.finished_call_ids.insert(&id);
            }
            ("agent_message_chunk" | "agent_thought_chunk", true) if replay.held_updates.len() < MAX_HELD => {
                replay.held_updates.push(update.clone());
                return true;
            }
            // This update marks the end of the replay.
            ("available_commands_update", true) => self.replay = None,
            ("session_info_update" | "config_option_update" | "current_mode_update", _)
            | ("available_commands_update", false) => return false,
            _ => {
                self.end_replay(collector);
                return false;
            }
        }
        // Messages that were held back before this update are part of the replay, too.
        if let Some(replay) = &mut self.replay {
            replay.held_updates.clear();
        }
        true
    }

    /// Ends the replay: handles the updates that were held back, and all later ones, as new output.
    fn end_replay(&mut self, collector: &mut EventCollector) {
        for update in self.replay.take().into_iter().flat_map(|replay| replay.held_updates) {
            self.handle_update(&update, collector);
        }
    }

    /// Handles an update that is new output.
    fn handle_update(&mut self, update: &Value, collector: &mut EventCollector) {
        match text_at(update, "/sessionUpdate").unwrap_or("no update") {
            "agent_message_chunk" => {
                if let Some(added_usage) = usage_at(update, "/_meta/usage") {
                    self.chunk_usage = self.chunk_usage.plus(added_usage);
                    collector.set_usage(self.chunk_usage.plus(self.reply_usage));
                }
                self.handle_chunk(update, false, collector);
            }
            "agent_thought_chunk" => self.handle_chunk(update, true, collector),
            "tool_call" | "tool_call_update" => self.handle_tool_call(update, collector),
            "usage_update" => {
                collector.set_model(text_at(update, "/_meta/_claude~1model").unwrap_or_default());
                collector.set_context(count_at(update, "/used").unwrap_or(0), count_at(update, "/size"));
                let is_usd = text_at(update, "/cost/currency").is_none_or(|c| c == "USD");
                let total = dollars_at(update, "/cost/amount").filter(|_| is_usd);
                if let Some(run_cost) = total.and_then(|total| collector.run_cost_from_session(total)) {
                    collector.set_cost(run_cost);
                }
            }
            "user_message_chunk"
            | "plan"
            | "available_commands_update"
            | "session_info_update"
            | "config_option_update"
            | "current_mode_update" => {}
            other => collector.add_unknown_line(other),
        }
    }

    /// Adds a chunk of the agent's text, or of its reasoning with `is_thought`.
    fn handle_chunk(&mut self, update: &Value, is_thought: bool, collector: &mut EventCollector) {
        let chunk_text = text_at(update, "/content/text").unwrap_or_default();
        if chunk_text.is_empty() {
            return;
        }
        if !is_thought {
            self.last_refusal = None;
        }
        let message_id = text_at(update, "/messageId").map(|id| truncate(id, MAX_NAME_BYTES));
        if message_id != self.current_message_id {
            collector.flush_chunks();
            self.current_message_id = message_id;
        }
        collector.add_chunk(chunk_text, is_thought);
    }

    /// Handles the announcement of a tool call, or an update to one. Agents announce many calls without
    /// input, and some not before their result.
    fn handle_tool_call(&mut self, update: &Value, collector: &mut EventCollector) {
        let id = truncate(text_at(update, "/toolCallId").unwrap_or_default(), MAX_NAME_BYTES);
        let status = text_at(update, "/status");
        let is_finished = matches!(status, Some("completed" | "failed"));
        let index = self.announced_calls.iter().position(|call| call.id == id);
        match index.and_then(|at| self.announced_calls.remove(at)) {
            Some(mut call) => {
                let new_input = tool_input_at(update, "/rawInput");
                let has_new_input = has_content(&new_input);
                if has_new_input {
                    call.input = new_input;
                }
                if has_new_input || status.is_some_and(|s| s != "pending") {
                    self.emit_call(call, collector);
                } else {
                    self.announced_calls.push_back(call);
                }
            }
            None if self.emitted_call_ids.insert(&id) => {
                // A refused call is only announced by its result.
                if !is_finished {
                    self.last_refusal = None;
                }
                let call =
                    AnnouncedCall { id: id.clone(), name: tool_name(update), input: call_input(update) };
                if status == Some("pending") && self.announced_calls.len() < MAX_HELD {
                    self.announced_calls.push_back(call);
                } else {
                    self.emit_call(call, collector);
                }
            }
            None => {}
        }
        if is_finished && self.finished_call_ids.insert(&id) {
            collector.add_tool_result(&id, status == Some("completed"), &tool_output(update));
        }
    }

    fn emit_call(&mut self, call: AnnouncedCall, collector: &mut EventCollector) {
        collector.add_tool_call(&call.id, &call.name, call.input, None);
    }

    /// Handles the agent's request for permission to use a tool, which the client grants or refuses.
    fn handle_permission_request(&mut self, message: &Value, collector: &mut EventCollector) {
        self.last_refusal = None;
        let call = &message["params"]["toolCall"];
        let id = truncate(text_at(call, "/toolCallId").unwrap_or_default(), MAX_NAME_BYTES);
        let announced = self
            .announced_calls
            .iter()
            .position(|candidate| candidate.id == id)
            .and_then(|at| self.announced_calls.remove(at));
        let name = announced.as_ref().map_or_else(|| tool_name(call), |held| held.name.clone());
        if let Some(announced_call) = announced {
            self.emit_call(announced_call, collector);
        }
        let request = &message["id"];
        let request = request.as_str().map_or_else(|| request.to_string(), str::to_owned);
        collector.add_permission_request(&request, &name, call_input(call));
    }

    /// Handles the result of creating a session, or of a turn.
    fn handle_result(&mut self, result: &Value, collector: &mut EventCollector) {
        if let Some(id) = text_at(result, "/sessionId") {
            let model_option =
                list_at(result, "/configOptions").iter().find(|o| text_at(o, "/id") == Some("model"));
            let model = text_at(result, "/models/currentModelId");
            let model = model.or_else(|| model_option.and_then(|o| text_at(o, "/currentValue")));
            collector.set_session(id, model.filter(|name| !["default", "auto"].contains(name)));
        }
        let Some(stop_reason) = text_at(result, "/stopReason") else { return };
        self.end_replay(collector);
        if let Some(model) = text_at(result, "/_meta/quota/model_usage/0/model") {
            collector.set_model(model);
        }
        let turn_usage = usage_at(result, "/usage").or_else(|| {
            let quota = result.pointer("/_meta/quota/token_count")?;
            Some(tokens_from_total_input(
                count_at(quota, "/input_tokens")?,
                0,
                0,
                count_at(quota, "/output_tokens").unwrap_or(0),
                0,
            ))
        });
        if let Some(turn_usage) = turn_usage {
            self.reply_usage = self.reply_usage.plus(turn_usage);
            // An agent that reports usage in its reply has included the chunks there.
            self.chunk_usage = Tokens::default();
            collector.set_usage(self.reply_usage);
        }
        collector.flush_chunks();
        self.last_turn_end = Some(match stop_reason {
            // Some agents end their turn in the middle of their work when a permission is refused.
            "end_turn" if self.last_refusal.is_some() => {
                let (tool, refusal_message) = self.last_refusal.take().unwrap_or_default();
                RunEnd::with_class(ExitClass::Refused, &format!("{tool}: {refusal_message}"))
            }
            "end_turn" => RunEnd::done(),
            "max_tokens" => RunEnd::failed(FailureKind::TokenLimit, "the model's tokens are used up"),
            "max_turn_requests" => {
                RunEnd::failed(FailureKind::Turns, "it reached its limit of model requests")
            }
            "cancelled" => RunEnd::with_class(ExitClass::Interrupted, "its turn was cancelled"),
            "refusal" => RunEnd::failed(FailureKind::Other, "the model refused to continue"),
            other => RunEnd::failed(FailureKind::Other, &format!("its turn ended with {other}")),
        });
    }
}

/// Returns the message of an error reply, with its data.
fn describe_error(error: &Value) -> String {
    let message = text_at(error, "/message").unwrap_or("it answers with an error");
    let details = error.get("data").map(content_text).unwrap_or_default();
    if details.is_empty() { message.to_owned() } else { format!("{message}: {details}") }
}

/// Records the error in a reply, and returns the end of the run that it means.
fn record_error(error: &Value, collector: &mut EventCollector) -> RunEnd {
    let error_text = describe_error(error);
    // The protocol's own error code for a missing login.
    let needs_login = error.get("code").and_then(Value::as_i64) == Some(-32000);
    let failure = if needs_login { FailureKind::Auth } else { classify_failure(None, &error_text) };
    collector.set_error(failure, &error_text);
    RunEnd::failed(failure, &error_text)
}
