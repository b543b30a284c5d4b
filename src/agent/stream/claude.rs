//! Owns the stream of Claude Code, and of those that speak like it: Amp, and Cursor with tool lines of its own.

use serde::Deserialize;
use serde_json::Value;

use super::json::{count, flag, input, list, money, text, words};
use super::parser::{Parser, kind_of};
use super::said::Said;
use super::summary::End;
use super::tally::{Recent, Tally};
use super::trouble::judge;
use super::{Class, Exit, Tokens, Trouble, lift};

/// Claude's lines. One content block a line, several lines with the same message id: what a later one says more counts.
#[derive(Default)]
pub(super) struct Claude {
    messages: Recent,
    /// What results have said that they are about, in this run.
    told: Told,
    /// How often the model was asked in the turns before this one.
    turns: u64,
    /// How the last turn ended, as long as nothing has come of what the agent was told after it.
    before: Option<End>,
}

#[derive(Default)]
struct Told {
    tokens: Tokens,
    cost: u64,
}

impl Parser for Claude {
    fn event(&mut self, line: &Value, tally: &mut Tally) {
        if matches!(kind_of(line), "assistant" | "user" | "result") {
            self.before = None;
        }
        match kind_of(line) {
            "system" => system(line, tally),
            "assistant" => self.assistant(line, tally),
            "user" => results(line, tally),
            "result" => self.result(line, tally),
            "tool_call" => cursor_tool(line, tally),
            "control_request" => asks(line, tally),
            "rate_limit_event" => rate_limit(line, tally),
            "thinking" | "stream_event" | "control_response" | "control_cancel_request" | "keep_alive" => {}
            kind => tally.unknown(kind),
        }
    }

    /// What the agent was told more. One that ends without having taken it has ended as it had said before.
    fn client(&mut self, line: &Value, tally: &mut Tally) {
        match Said::deserialize(line) {
            Ok(Said::Asks { more: Some(more), .. }) => {
                self.before = tally.end.clone().or(self.before.take());
                tally.goes_on();
                tally.told(&more);
            }
            _ => self.event(line, tally),
        }
    }

    fn end(&mut self, tally: &mut Tally, _exit: Exit) -> Option<End> {
        tally.end.clone().or(self.before.take())
    }
}

pub(super) fn system(line: &Value, tally: &mut Tally) {
    match text(line, "/subtype").unwrap_or_default() {
        "init" => tally.session(text(line, "/session_id").unwrap_or_default(), text(line, "/model")),
        "permission_denied" => tally.refuse(
            text(line, "/tool_use_id"),
            text(line, "/tool_name").unwrap_or("a tool"),
            text(line, "/message").unwrap_or_default(),
        ),
        "api_retry" => {
            let why = text(line, "/error").unwrap_or("the request failed");
            let status = count(line, "/error_status").map(|s| format!(" ({s})")).unwrap_or_default();
            tally.retry(
                count(line, "/attempt"),
                count(line, "/max_retries"),
                count(line, "/retry_delay_ms"),
                &format!("{why}{status}"),
            );
        }
        "notification" => tally.warn(text(line, "/text").unwrap_or_default()),
        "hook_started" | "hook_progress" | "hook_response" | "status" => {}
        other => tally.unknown(&format!("system/{other}")),
    }
}

/// What a message says, blocks in order. Subagents' words are told with the call that they work for, and are nobody's answer.
pub(super) fn blocks(line: &Value, tally: &mut Tally) {
    let parent = text(line, "/parent_tool_use_id");
    for block in list(line, "/message/content") {
        match kind_of(block) {
            "text" => tally.text(text(block, "/text").unwrap_or_default(), parent),
            "thinking" => tally.thinking(text(block, "/thinking").unwrap_or_default(), parent),
            "tool_use" | "server_tool_use" | "mcp_tool_use" => tally.tool(
                text(block, "/id").unwrap_or_default(),
                text(block, "/name").unwrap_or("a tool"),
                input(block, "/input"),
                parent,
            ),
            "redacted_thinking" => {}
            other => tally.unknown(&format!("assistant/{other}")),
        }
    }
}

/// What tools have answered.
pub(super) fn results(line: &Value, tally: &mut Tally) {
    if text(line, "/parent_tool_use_id").is_none() {
        tally.goes_on();
    }
    for block in list(line, "/message/content").iter().filter(|b| kind_of(b) == "tool_result") {
        tally.tool_result(
            text(block, "/tool_use_id").unwrap_or_default(),
            flag(block, "/is_error") != Some(true),
            &block.get("content").map(words).unwrap_or_default(),
        );
    }
}

/// Anthropic's usage: what was sent is without what was cached; thoughts are in what was generated.
fn usage(value: &Value, path: &str) -> Option<Tokens> {
    let usage = value.pointer(path)?;
    Some(Tokens {
        input: count(usage, "/input_tokens").unwrap_or(0),
        cached_input: count(usage, "/cache_read_input_tokens").unwrap_or(0),
        cache_write: count(usage, "/cache_creation_input_tokens").unwrap_or(0),
        output: count(usage, "/output_tokens").unwrap_or(0),
        reasoning: count(usage, "/output_tokens_details/thinking_tokens").unwrap_or(0),
    })
}

/// Usage and dollars by model, summed; none if it is not there.
fn by_model(value: &Value, path: &str) -> Option<(Tokens, u64)> {
    let models = value.pointer(path)?.as_object()?;
    Some(models.values().fold((Tokens::default(), 0), |(tokens, cost), model| {
        let get = |path| count(model, path).unwrap_or(0);
        let more = Tokens {
            input: get("/inputTokens"),
            cached_input: get("/cacheReadInputTokens"),
            cache_write: get("/cacheCreationInputTokens"),
            output: get("/outputTokens"),
            reasoning: get("/thinkingTokens"),
        };
        (tokens.plus(more), u64::saturating_add(cost, money(model, "/costUSD").unwrap_or(0)))
    }))
}

impl Claude {
    fn assistant(&mut self, line: &Value, tally: &mut Tally) {
        let own = text(line, "/parent_tool_use_id").is_none();
        if own {
            tally.goes_on();
        }
        if flag(line, "/is_api_error_message") == Some(true) || text(line, "/error").is_some() {
            let said = words(line.pointer("/message/content").unwrap_or(&Value::Null));
            let kind = text(line, "/api_error_type").or(text(line, "/error")).unwrap_or_default();
            let trouble = judge(count(line, "/api_error_status"), &format!("{kind} {said}"));
            tally.fail(trouble, &said);
            return;
        }
        if let Some(id) = text(line, "/session_id") {
            tally.session(id, None);
        }
        blocks(line, tally);
        let Some(spent) = usage(line, "/message/usage") else { return };
        let id = text(line, "/message/id").unwrap_or_default();
        let Some(more) = self.messages.more(id, spent) else { return };
        tally.used_by(text(line, "/message/model"), more);
        if own {
            tally.context(Tokens { output: 0, ..spent }.total(), None);
        }
    }

    /// `usage` and `num_turns` are of this turn, `modelUsage` and `total_cost_usd` of all runs of the session. What has come
    /// since the last result is told by model too, which holds subagents and is right even if earlier runs are not known.
    fn result(&mut self, line: &Value, tally: &mut Tally) {
        if flag(line, "/is_error") != Some(true) || tally.progress().session.is_some() {
            tally.session(text(line, "/session_id").unwrap_or_default(), None);
        }
        for denial in list(line, "/permission_denials") {
            let tool = text(denial, "/tool_name").unwrap_or("a tool");
            tally.refuse(text(denial, "/tool_use_id"), tool, "it was not allowed");
        }
        if let Some(turns) = count(line, "/num_turns") {
            self.turns = self.turns.saturating_add(turns);
            tally.turns(self.turns);
        }
        self.money(line, tally);
        let size = line.pointer("/modelUsage").and_then(Value::as_object).and_then(|models| {
            let asked = tally.progress().model.as_ref().and_then(|name| models.get(name));
            asked.or_else(|| models.values().next()).and_then(|model| count(model, "/contextWindow"))
        });
        if let Some(used) = tally.progress().context_used.filter(|_| size.is_some()) {
            tally.context(used, size);
        }
        tally.finished(end(line), text(line, "/result"));
    }

    fn money(&mut self, line: &Value, tally: &mut Tally) {
        let session = by_model(line, "/modelUsage");
        let of_session = session.map(|(tokens, _)| tally.session_used(tokens));
        let dollars = money(line, "/total_cost_usd").and_then(|total| tally.session_cost(total));
        let (tokens, cost) = if let Some((tokens, cost)) = by_model(line, "/model_usage_since_last_result") {
            self.told.tokens = self.told.tokens.plus(tokens);
            self.told.cost = self.told.cost.saturating_add(cost);
            (Some(self.told.tokens), Some(self.told.cost))
        } else {
            (of_session.or(usage(line, "/usage")), dollars)
        };
        if let Some(tokens) = tokens {
            tally.usage(tokens);
        }
        if let Some(cost) = cost.filter(|_| dollars.is_some()) {
            tally.cost(cost);
        }
    }
}

/// How a result says that it went. `subtype` is `success` for errors of the provider too.
fn end(line: &Value) -> End {
    let subtype = text(line, "/subtype").unwrap_or_default();
    if !flag(line, "/is_error").unwrap_or(subtype != "success") {
        return End::done();
    }
    let said = ["/result", "/errors", "/error"].iter().find_map(|path| {
        let said = line.pointer(path).map(words).unwrap_or_default();
        Some(said).filter(|s| !s.is_empty())
    });
    let said = said.unwrap_or_default();
    match (subtype, text(line, "/terminal_reason").unwrap_or_default()) {
        ("error_max_turns", _) | (_, "max_turns") => End::failed(Trouble::Turns, &said),
        ("error_max_budget_usd", _) | (_, "budget_exhausted") => End::failed(Trouble::Money, &said),
        (_, "prompt_too_long") => End::failed(Trouble::TokenLimit, &said),
        (_, why) if why.starts_with("aborted") => End::of(Class::Interrupted, &said),
        _ => {
            let kind = text(line, "/api_error_type").unwrap_or_default();
            End::failed(judge(count(line, "/api_error_status"), &format!("{kind} {said}")), &said)
        }
    }
}

fn asks(line: &Value, tally: &mut Tally) {
    if text(line, "/request/subtype") == Some("can_use_tool") {
        tally.asked(
            text(line, "/request_id").unwrap_or_default(),
            text(line, "/request/tool_name").unwrap_or("a tool"),
            input(line, "/request/input"),
        );
    }
}

fn rate_limit(line: &Value, tally: &mut Tally) {
    let kind = text(line, "/rate_limit_info/rateLimitType").unwrap_or("rate");
    match text(line, "/rate_limit_info/status").unwrap_or_default() {
        "rejected" => {
            tally.lift = count(line, "/rate_limit_info/resetsAt").and_then(lift::at);
            tally.fail(Trouble::RateLimit, &format!("the {kind} limit is reached"));
        }
        "allowed_warning" => tally.warn(&format!("the {kind} limit is near")),
        _ => {}
    }
}

/// Cursor's tool calls: the tool is the name of the only field, as in `readToolCall`.
fn cursor_tool(line: &Value, tally: &mut Tally) {
    let id = text(line, "/call_id").unwrap_or_default();
    let Some((name, call)) = line.get("tool_call").and_then(Value::as_object).and_then(|c| c.iter().next())
    else {
        return tally.unknown("tool_call");
    };
    let name = name.strip_suffix("ToolCall").unwrap_or(name);
    match text(line, "/subtype").unwrap_or_default() {
        "started" => tally.tool(id, name, input(call, "/args"), None),
        "completed" => {
            let output = call.get("result").map(words).unwrap_or_default();
            if call.pointer("/result/rejected").is_some()
                || call.pointer("/result/permissionDenied").is_some()
            {
                tally.refuse(Some(id), name, &output);
            }
            tally.tool_result(id, call.pointer("/result/success").is_some(), &output);
        }
        other => tally.unknown(&format!("tool_call/{other}")),
    }
}
