//! Tests of the stream parsers against output recorded from real agents.

pub mod acp_streams;
pub mod expected_summaries;
pub mod failure_kind;
pub mod limit_reset;
pub mod mid_run;
pub mod more_synthetic_streams;
pub mod prices;
pub mod properties;
pub mod recorded;
pub mod synthetic_streams;

use std::path::PathBuf;

use proq_base::usage::SessionTotals;

use super::reader::{Dialect, OutputReader};
use super::summary::Summary;
use crate::base::event::StreamEvent;
use crate::base::run_end::Exit;

/// Folders with recorded streams under `tests/fixtures/streams`, each with the dialect of its agent.
const RECORDED_AGENTS: &[(&str, Dialect)] = &[
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

fn fixture_dir(agent: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/streams").join(agent)
}

/// Returns each recorded scenario of an agent with the exit code of its run. One scenario of `pi-0.73` is
/// left out: its stream was not recorded.
fn recorded_exit_codes(agent: &str) -> Vec<(String, i32)> {
    let text = std::fs::read_to_string(fixture_dir(agent).join("exit-codes.jsonl")).unwrap();
    let parse_entry = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let code = i32::try_from(line["exit_code"].as_i64().unwrap()).unwrap();
        (line["scenario"].as_str().unwrap().to_owned(), code)
    };
    let has_recording = |(scenario, _): &(String, i32)| (agent, scenario.as_str()) != ("pi-0.73", "blocked");
    text.lines().map(parse_entry).filter(has_recording).collect()
}

fn exit(code: i32) -> Exit {
    Exit { code: Some(code), signal: None }
}

fn signal(signal: i32) -> Exit {
    Exit { code: None, signal: Some(signal) }
}

/// Returns the bytes of a recorded stream, exactly as the agent printed them.
fn recorded_stream(agent: &str, scenario: &str) -> Vec<u8> {
    ["jsonl", "txt"]
        .iter()
        .find_map(|extension| std::fs::read(fixture_dir(agent).join(format!("{scenario}.{extension}"))).ok())
        .unwrap()
}

/// Parses a complete stream in one call and returns its events and summary.
fn parse_stream(
    dialect: Dialect,
    before: &SessionTotals,
    bytes: &[u8],
    exit_status: Exit,
) -> (Vec<StreamEvent>, Summary) {
    let mut reader = OutputReader::new(dialect, before);
    let mut events = Vec::new();
    reader.feed_stdout(bytes, &mut events);
    let summary = reader.finish(exit_status, &mut events);
    (events, summary)
}

/// Parses a recorded stream. The `resume` scenario starts with the session totals of the `ok` scenario.
fn replay(agent: &str, scenario: &str) -> (Vec<StreamEvent>, Summary) {
    let dialect = RECORDED_AGENTS.iter().find(|(name, _)| *name == agent).unwrap().1;
    let (_, code) = recorded_exit_codes(agent).into_iter().find(|(name, _)| name == scenario).unwrap();
    let before =
        if scenario == "resume" { replay(agent, "ok").1.session_totals } else { SessionTotals::default() };
    parse_stream(dialect, &before, &recorded_stream(agent, scenario), exit(code))
}

/// Parses lines of output followed by a process exit.
fn parse_lines(dialect: Dialect, lines: &[&str], exit_status: Exit) -> (Vec<StreamEvent>, Summary) {
    parse_stream(dialect, &SessionTotals::default(), lines.join("\n").as_bytes(), exit_status)
}
