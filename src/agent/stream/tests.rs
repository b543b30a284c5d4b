//! Owns holding the parsers to what agents really printed.

mod figures;
mod lift;
mod midway;
mod more_unusual;
mod prices;
mod properties;
mod recorded;
mod troubles;
mod unusual;

use std::path::PathBuf;

use super::{Dialect, Event, Exit, Reader, SessionTotals, Summary};

/// The recorded streams by folder.
const RECORDED: &[(&str, Dialect)] = &[
    ("claude", Dialect::Claude),
    ("codex", Dialect::Codex),
    ("opencode", Dialect::OpenCode),
    ("gemini", Dialect::Gemini),
    ("qwen", Dialect::Qwen),
    ("copilot", Dialect::Copilot),
    ("pi-0.73", Dialect::Pi),
    ("pi-0.87", Dialect::Pi),
    ("aider", Dialect::Aider),
    ("acp", Dialect::Acp),
];

fn folder(agent: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/streams").join(agent)
}

/// How an agent's runs ended, by scenario. Of one the stream was not recorded.
fn endings(agent: &str) -> Vec<(String, i32)> {
    let text = std::fs::read_to_string(folder(agent).join("exit-codes.jsonl")).unwrap();
    let read = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let code = i32::try_from(line["exit_code"].as_i64().unwrap()).unwrap();
        (line["scenario"].as_str().unwrap().to_owned(), code)
    };
    let recorded = |(scenario, _): &(String, i32)| (agent, scenario.as_str()) != ("pi-0.73", "blocked");
    text.lines().map(read).filter(recorded).collect()
}

fn exit(code: i32) -> Exit {
    Exit { code: Some(code), signal: None }
}

fn signal(signal: i32) -> Exit {
    Exit { code: None, signal: Some(signal) }
}

/// A recorded stream as the agent printed it.
fn stream(agent: &str, scenario: &str) -> Vec<u8> {
    ["jsonl", "txt"]
        .iter()
        .find_map(|ending| std::fs::read(folder(agent).join(format!("{scenario}.{ending}"))).ok())
        .unwrap()
}

/// Reads a whole stream at once.
fn read(dialect: Dialect, before: &SessionTotals, bytes: &[u8], how: Exit) -> (Vec<Event>, Summary) {
    let mut reader = Reader::new(dialect, before);
    let mut events = Vec::new();
    reader.feed(bytes, &mut events);
    let summary = reader.finish(how, &mut events);
    (events, summary)
}

/// Reads a recorded stream; a resumed run follows the one that went well.
fn replay(agent: &str, scenario: &str) -> (Vec<Event>, Summary) {
    let dialect = RECORDED.iter().find(|(name, _)| *name == agent).unwrap().1;
    let (_, code) = endings(agent).into_iter().find(|(name, _)| name == scenario).unwrap();
    let before = if scenario == "resume" { replay(agent, "ok").1.totals } else { SessionTotals::default() };
    read(dialect, &before, &stream(agent, scenario), exit(code))
}

/// Reads some lines that end like this.
fn lines(dialect: Dialect, lines: &[&str], how: Exit) -> (Vec<Event>, Summary) {
    read(dialect, &SessionTotals::default(), lines.join("\n").as_bytes(), how)
}
