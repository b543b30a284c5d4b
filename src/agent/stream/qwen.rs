//! Owns the stream of Qwen Code, `qwen -o stream-json`: Claude's words with counters of its own.

use serde_json::Value;

use super::claude::{blocks, results, system};
use super::gemini::by_exit_code;
use super::json::{count, flag, text, words};
use super::parser::{Parser, kind_of, without_cached};
use super::summary::End;
use super::tally::Tally;
use super::trouble::judge;
use super::{Exit, Tokens, Trouble};

/// How it says that a request failed, as if the model had said it.
const FAILED: &str = "[API Error: ";

/// Qwen's lines.
#[derive(Default)]
pub(super) struct Qwen;

impl Parser for Qwen {
    fn event(&mut self, line: &Value, tally: &mut Tally) {
        match kind_of(line) {
            "system" => system(line, tally),
            "assistant" => assistant(line, tally),
            "user" => results(line, tally),
            "result" => result(line, tally),
            "stream_event" | "control_request" | "control_response" => {}
            kind => tally.unknown(kind),
        }
    }

    /// Its exit codes are Gemini's, but for the one of its limits on time and tools.
    fn end(&mut self, tally: &mut Tally, exit: Exit) -> Option<End> {
        let said = tally.end.clone();
        let vague = said.as_ref().map_or(tally.error.is_none(), |end| end.trouble == Some(Trouble::Other));
        let (trouble, words) = match exit.code.filter(|_| vague) {
            Some(55) => (
                Trouble::Money,
                "it used up the time or the tool calls it was given (exit code 55)".to_owned(),
            ),
            Some(code @ (41 | 42 | 53)) => by_exit_code(code)?,
            _ => return said,
        };
        let words = said.and_then(|end| end.text).unwrap_or(words);
        Some(End::failed(trouble, &words))
    }
}

/// What was sent holds what was found in a cache. Lines of one answer count nothing but for the last.
fn usage(value: &Value, path: &str) -> Option<Tokens> {
    let usage = value.pointer(path)?;
    let get = |path| count(usage, path).unwrap_or(0);
    Some(without_cached(
        get("/input_tokens"),
        get("/cache_read_input_tokens"),
        get("/cache_creation_input_tokens"),
        get("/output_tokens"),
        get("/output_tokens_details/reasoning_tokens"),
    ))
}

fn assistant(line: &Value, tally: &mut Tally) {
    let own = text(line, "/parent_tool_use_id").is_none();
    if own {
        tally.goes_on();
    }
    let said = line.pointer("/message/content").map(words).unwrap_or_default();
    if said.starts_with(FAILED) {
        return tally.fail(judge(None, &said), &said);
    }
    blocks(line, tally);
    if let Some(used) = usage(line, "/message/usage").filter(|u| !u.is_none()) {
        tally.used(used);
        if own {
            tally.context(Tokens { output: 0, ..used }.total(), None);
        }
    }
}

/// The counters are those of the session: a resumed run counts on.
fn result(line: &Value, tally: &mut Tally) {
    if flag(line, "/is_error") != Some(true) || tally.progress().session.is_some() {
        tally.session(text(line, "/session_id").unwrap_or_default(), None);
    }
    if let Some(turns) = count(line, "/num_turns") {
        tally.turns(turns);
    }
    for denial in line.pointer("/permission_denials").and_then(Value::as_array).into_iter().flatten() {
        let tool = text(denial, "/tool_name").unwrap_or("a tool");
        tally.refuse(text(denial, "/tool_use_id"), tool, "it was not allowed");
    }
    if let Some(total) = usage(line, "/usage") {
        let own = tally.session_used(total);
        tally.usage(own);
    }
    let subtype = text(line, "/subtype").unwrap_or_default();
    if !flag(line, "/is_error").unwrap_or(subtype != "success") {
        return tally.finished(End::done(), text(line, "/result"));
    }
    let said =
        ["/error", "/result"].iter().find_map(|path| line.pointer(path)).map(words).unwrap_or_default();
    let trouble = if subtype == "error_max_turns" { Trouble::Turns } else { judge(None, &said) };
    tally.finished(End::failed(trouble, &said), None);
}
