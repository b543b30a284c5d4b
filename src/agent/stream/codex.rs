//! Owns the stream of Codex, `codex exec --json`.

use serde_json::Value;

use super::json::{count, input, list, text, words};
use super::parser::{Parser, kind_of, without_cached};
use super::summary::End;
use super::tally::{Recent, Tally};
use super::trouble::judge;

/// Codex' lines. It names neither its model nor a price.
#[derive(Default)]
pub(super) struct Codex {
    begun: Recent,
}

impl Parser for Codex {
    fn event(&mut self, line: &Value, tally: &mut Tally) {
        match kind_of(line) {
            "thread.started" => tally.session(text(line, "/thread_id").unwrap_or_default(), None),
            "turn.started" => tally.goes_on(),
            "item.started" => self.begin(&line["item"], tally),
            "item.completed" => self.complete(&line["item"], tally),
            "item.updated" => {}
            "turn.completed" => completed(line, tally),
            "turn.failed" => {
                let said = text(line, "/error/message").unwrap_or("the turn failed");
                tally.finished(End::failed(judge(None, said), said), None);
            }
            "error" => error(text(line, "/message").unwrap_or_default(), tally),
            kind => tally.unknown(kind),
        }
    }
}

/// The counters are those of the whole thread. What was sent holds what was found in a cache.
fn completed(line: &Value, tally: &mut Tally) {
    let get = |name: &str| count(line, &format!("/usage/{name}")).unwrap_or(0);
    if line.get("usage").is_some_and(Value::is_object) {
        let total = without_cached(
            get("input_tokens"),
            get("cached_input_tokens"),
            get("cache_write_input_tokens"),
            get("output_tokens"),
            get("reasoning_output_tokens"),
        );
        let own = tally.session_used(total);
        tally.usage(own);
    }
    let answer = tally.answer.clone();
    tally.finished(End::done(), answer.as_deref());
}

/// An error, or the word that it tries again: `Reconnecting... 1/5 (why)`.
fn error(said: &str, tally: &mut Tally) {
    let Some(tries) = said.strip_prefix("Reconnecting") else {
        return tally.fail(judge(None, said), said);
    };
    let tries = tries.trim_start_matches(['.', '…', ' ']);
    let (numbers, why) = tries.split_once(' ').unwrap_or((tries, ""));
    let mut numbers = numbers.split('/').map(|n| n.parse().ok());
    let (attempt, of) = (numbers.next().flatten(), numbers.next().flatten());
    tally.retry(attempt, of, None, why.trim_start_matches('(').trim_end_matches(')'));
}

impl Codex {
    /// A tool begins. Some are told only when they have ended.
    fn begin(&mut self, item: &Value, tally: &mut Tally) {
        let Some((name, given)) = tool(item) else { return };
        let id = text(item, "/id").unwrap_or_default();
        if self.begun.is_new(id) {
            tally.tool(id, &name, given, None);
        }
    }

    fn complete(&mut self, item: &Value, tally: &mut Tally) {
        match kind_of(item) {
            "agent_message" => tally.text(text(item, "/text").unwrap_or_default(), None),
            "reasoning" => tally.thinking(text(item, "/text").unwrap_or_default(), None),
            "error" => tally.warn(text(item, "/message").unwrap_or_default()),
            "todo_list" => {}
            _ if tool(item).is_some() => {
                self.begin(item, tally);
                ended(item, tally);
            }
            kind => tally.unknown(&format!("item/{kind}")),
        }
    }
}

/// A tool's name and what it was given.
fn tool(item: &Value) -> Option<(String, Value)> {
    let kind = kind_of(item);
    Some(match kind {
        "command_execution" => (kind.to_owned(), input(item, "/command")),
        "file_change" => (kind.to_owned(), input(item, "/changes")),
        "web_search" => (kind.to_owned(), input(item, "/query")),
        "mcp_tool_call" => {
            let (server, tool) = (text(item, "/server").unwrap_or("?"), text(item, "/tool").unwrap_or("?"));
            (format!("{server}.{tool}"), input(item, "/arguments"))
        }
        _ => return None,
    })
}

fn ended(item: &Value, tally: &mut Tally) {
    let id = text(item, "/id").unwrap_or_default();
    let status = text(item, "/status").unwrap_or("completed");
    let failed = text(item, "/error/message");
    let code = count(item, "/exit_code").unwrap_or(0);
    let output = match failed {
        Some(message) => message.to_owned(),
        None if kind_of(item) == "file_change" => changed(item),
        None => text(item, "/aggregated_output").map_or_else(|| words(&item["result"]), str::to_owned),
    };
    let refused = failed.is_some_and(|m| m.contains("requires approval")) || status == "declined";
    if refused {
        let name = tool(item).map(|(name, _)| name).unwrap_or_default();
        tally.refuse(Some(id), &name, failed.unwrap_or("it was declined"));
    }
    tally.tool_result(id, status == "completed" && failed.is_none() && code == 0, &output);
}

/// The paths that a change of files was about.
fn changed(item: &Value) -> String {
    let paths = list(item, "/changes").iter().filter_map(|change| {
        let path = text(change, "/path")?;
        Some(format!("{} {path}", text(change, "/kind").unwrap_or("change")))
    });
    paths.collect::<Vec<_>>().join("\n")
}
