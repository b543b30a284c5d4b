//! Owns the stream of Gemini CLI, `gemini -o stream-json`, and its exit codes.

use serde_json::Value;

use super::json::{count, flag, input, text, words};
use super::parser::{Parser, kind_of, without_cached};
use super::summary::End;
use super::tally::Tally;
use super::trouble::judge;
use super::{Exit, Trouble};

/// Gemini's lines. What it says comes in pieces.
#[derive(Default)]
pub(super) struct Gemini;

impl Parser for Gemini {
    fn event(&mut self, line: &Value, tally: &mut Tally) {
        match kind_of(line) {
            "init" => tally.session(text(line, "/session_id").unwrap_or_default(), text(line, "/model")),
            "message" => message(line, tally),
            "tool_use" => tally.tool(
                text(line, "/tool_id").unwrap_or_default(),
                text(line, "/tool_name").unwrap_or("a tool"),
                input(line, "/parameters"),
                None,
            ),
            "tool_result" => tool_result(line, tally),
            "error" => {
                let said = text(line, "/message").unwrap_or_default();
                if text(line, "/severity") == Some("warning") {
                    tally.warn(said);
                } else {
                    tally.fail(judge(None, said), said);
                }
            }
            "result" => result(line, tally),
            kind => tally.unknown(kind),
        }
    }

    fn error_line(&mut self, line: &str, tally: &mut Tally) {
        if let Some((attempt, delay, why)) = retry_in(line) {
            tally.retry(Some(attempt), None, delay, why);
        }
    }

    /// An exit code says more where the words say little, or where there are none.
    fn end(&mut self, tally: &mut Tally, exit: Exit) -> Option<End> {
        let said = tally.end.clone();
        let vague = said.as_ref().map_or(tally.error.is_none(), |end| end.trouble == Some(Trouble::Other));
        let Some((trouble, words)) = exit.code.and_then(by_exit_code).filter(|_| vague) else { return said };
        let words = said.and_then(|end| end.text).unwrap_or(words);
        Some(End::failed(trouble, &words))
    }
}

/// What a line says of a request that is sent again: which try failed, how long it waits in milliseconds, and why. They are
/// `Attempt 1 failed with status 429. Retrying with backoff...` and `Attempt 4 failed: WHY Retrying after 32691ms...`.
fn retry_in(line: &str) -> Option<(u64, Option<u64>, &str)> {
    let (attempt, rest) = line.trim().strip_prefix("Attempt ")?.split_once(" failed")?;
    let (why, then) = rest.split_once(" Retrying ")?;
    let delay = then
        .strip_prefix("after ")
        .and_then(|then| then.split_once("ms"))
        .and_then(|(ms, _)| ms.parse().ok());
    let why = why.trim_start_matches([':', ' ']).trim_start_matches("with ").trim_end_matches(['.', ' ']);
    Some((attempt.parse().ok()?, delay, why))
}

/// What its exit codes mean: a few of its own, else the last eight bits of a status.
pub(super) fn by_exit_code(code: i32) -> Option<(Trouble, String)> {
    let own = |trouble, words: &str| Some((trouble, words.to_owned()));
    match code {
        41 => own(Trouble::Auth, "it is not logged in (exit code 41)"),
        42 => {
            own(Trouble::Other, "it does not take this prompt, or does not know the session (exit code 42)")
        }
        53 => own(Trouble::Turns, "it took as many turns as it may (exit code 53)"),
        55 => own(Trouble::Other, "it does not trust the folder (exit code 55)"),
        144..=255 => {
            let status = u64::try_from(code).ok()? + 256;
            Some((judge(Some(status), ""), format!("the provider answered with status {status}")))
        }
        _ => None,
    }
}

fn message(line: &Value, tally: &mut Tally) {
    let said = text(line, "/content").unwrap_or_default();
    match (text(line, "/role"), flag(line, "/delta")) {
        (Some("assistant"), Some(true)) => tally.piece(said, false),
        (Some("assistant"), _) => tally.text(said, None),
        _ => {}
    }
}

fn tool_result(line: &Value, tally: &mut Tally) {
    let id = text(line, "/tool_id").unwrap_or_default();
    let ok = text(line, "/status") == Some("success");
    let output =
        ["/output", "/error"].iter().find_map(|path| line.pointer(path)).map(words).unwrap_or_default();
    if text(line, "/error/type") == Some("policy_violation") || !ok && output.contains("denied by policy") {
        // A call's name begins with its tool's.
        let tool = id.split("__").next().filter(|t| !t.is_empty()).unwrap_or("a tool");
        tally.refuse(Some(id), tool, &output);
    }
    tally.tool_result(id, ok, &output);
}

/// The counters are those of this run. What is neither sent nor said in the total was thought.
fn result(line: &Value, tally: &mut Tally) {
    let get = |name: &str| count(line, &format!("/stats/{name}")).unwrap_or(0);
    let (sent, said) = (get("input_tokens"), get("output_tokens"));
    let thought = get("total_tokens").saturating_sub(sent).saturating_sub(said);
    tally.usage(without_cached(sent, get("cached"), 0, said.saturating_add(thought), thought));
    tally.flush();
    if text(line, "/status") == Some("success") {
        let answer = tally.answer.clone();
        return tally.finished(End::done(), answer.as_deref());
    }
    let end = match (text(line, "/error/message"), tally.error.take()) {
        (None, Some((trouble, message))) => End::failed(trouble, &message),
        (message, _) => {
            let message = message.unwrap_or("it ended with an error that it does not name");
            End::failed(judge(None, message), message)
        }
    };
    tally.finished(end, None);
}
