//! Tests of streams that were not recorded: written in the words of the formats, or recorded streams with a
//! change.

use std::time::Duration;

use proq_base::usage::{SessionTotals, Tokens};

use super::{exit, parse_lines, parse_stream, recorded_stream, replay, signal};
use crate::base::event::StreamEvent;
use crate::base::failure_kind::FailureKind;
use crate::base::run_end::ExitClass;
use crate::reader::{Dialect, OutputReader};

fn without_lines_containing(bytes: &[u8], pattern: &str) -> Vec<u8> {
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    text.lines().filter(|l| !l.contains(pattern)).flat_map(|l| [l, "\n"]).collect::<String>().into_bytes()
}

#[test]
fn claude_without_result_is_interrupted() {
    let without_result = without_lines_containing(&recorded_stream("claude", "ok"), "\"type\": \"result\"");
    let none = SessionTotals::default();
    let (_, summary) = parse_stream(Dialect::Claude, &none, &without_result, exit(0));
    assert_eq!(summary.class, ExitClass::Interrupted);
    assert_eq!(summary.detail.unwrap(), "it ended without a result");
    // The sent tokens are known of each message, the generated ones only as of the message's start.
    assert_eq!(summary.tokens, Tokens { input: 6000, cached_input: 1000, output: 5, ..Tokens::default() });
    assert_eq!(summary.cost, None);
    for exit_status in [exit(143), signal(15), signal(9), exit(129)] {
        assert_eq!(
            parse_stream(Dialect::Claude, &none, &without_result, exit_status).1.class,
            ExitClass::Interrupted
        );
    }
    for exit_status in [exit(1), signal(11)] {
        assert_eq!(
            parse_stream(Dialect::Claude, &none, &without_result, exit_status).1.class,
            ExitClass::Crashed
        );
    }
}

#[test]
fn result_outweighs_process_exit() {
    let none = SessionTotals::default();
    let (_, summary) = parse_stream(Dialect::Claude, &none, &recorded_stream("claude", "ok"), signal(15));
    assert_eq!(summary.class, ExitClass::Done);
    assert_eq!(summary.detail.unwrap(), "ended by signal 15 after its result");
}

#[test]
fn subtracts_earlier_session_totals_of_claude() {
    let text = String::from_utf8(recorded_stream("claude", "resume"))
        .unwrap()
        .replace("_since_last_result", "_elsewhere");
    let before = replay("claude", "ok").1.session_totals;
    let (_, summary) = parse_stream(Dialect::Claude, &before, text.as_bytes(), exit(0));
    assert_eq!((summary.tokens.input, summary.cost.unwrap().amount.nanos()), (2100, 10_480_000));
    // Without the earlier totals, `modelUsage` would count the entire session. The usage since the last
    // result is still exact.
    let (_, known) = parse_stream(
        Dialect::Claude,
        &SessionTotals::default(),
        &recorded_stream("claude", "resume"),
        exit(0),
    );
    assert_eq!((known.tokens.input, known.cost.unwrap().amount.nanos()), (2100, 10_480_000));
}

#[test]
fn ignores_totals_of_other_or_restarted_session() {
    let other = SessionTotals {
        session: Some("another".to_owned()),
        tokens: Tokens { input: 5, ..Tokens::default() },
        ..SessionTotals::default()
    };
    let (_, summary) = parse_stream(Dialect::Codex, &other, &recorded_stream("codex", "ok"), exit(0));
    assert_eq!(summary.tokens.input, 6000);
    let higher_totals = SessionTotals {
        session: summary.session,
        tokens: Tokens { input: 1_000_000, ..Tokens::default() },
        ..SessionTotals::default()
    };
    let (_, summary) = parse_stream(Dialect::Codex, &higher_totals, &recorded_stream("codex", "ok"), exit(0));
    assert_eq!(summary.tokens.input, 6000);
}

#[test]
fn links_subagent_text_to_parent_tool_call() {
    let text = String::from_utf8(recorded_stream("claude", "ok")).unwrap();
    let last = text.lines().find(|l| l.contains("\"All done\"")).unwrap();
    let subagent_line = last
        .replace("\"parent_tool_use_id\": null", "\"parent_tool_use_id\": \"toolu_1\"")
        .replace("All done", "deep inside")
        .replace("msg_stub000005", "msg_sub");
    let (events, summary) =
        parse_lines(Dialect::Claude, &[text.lines().nth(2).unwrap(), last, &subagent_line], exit(0));
    assert!(events.contains(&StreamEvent::Text {
        text: "deep inside".to_owned(),
        parent_call: Some("toolu_1".to_owned())
    }));
    assert_eq!(summary.answer.unwrap(), "All done");
    assert_eq!(summary.tokens.input, 2800);
    // A subagent that continues after the result does not revoke the result.
    let result = text.lines().last().unwrap();
    assert_eq!(
        parse_lines(Dialect::Claude, &[last, result, &subagent_line], exit(0)).1.class,
        ExitClass::Done
    );
}

#[test]
fn two_turns_in_one_process_are_added_up() {
    let text = String::from_utf8(recorded_stream("claude", "denied")).unwrap();
    let all = format!("{text}{text}");
    let mut reader = OutputReader::new(Dialect::Claude, &SessionTotals::default());
    let mut events = Vec::new();
    reader.feed_stdout(text.as_bytes(), &mut events);
    assert!(reader.has_reported_end());
    reader.feed_stdout(all.lines().nth(1).unwrap().as_bytes(), &mut events);
    reader.feed_stdout(b"\n", &mut events);
    assert!(!reader.has_reported_end());
    let (_, summary) = parse_stream(Dialect::Claude, &SessionTotals::default(), all.as_bytes(), exit(0));
    assert_eq!((summary.tokens.input, summary.cost.unwrap().amount.nanos()), (4200, 20_960_000));
}

#[test]
fn reads_claude_permission_requests_and_retries() {
    let (events, _) = parse_lines(
        Dialect::Claude,
        &[
            r#"{"type":"control_request","request_id":"r1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"}}}"#,
            r#"{"type":"system","subtype":"api_retry","attempt":2,"max_retries":10,"retry_delay_ms":1000,"error_status":529,"error":"overloaded"}"#,
        ],
        exit(0),
    );
    let input = serde_json::json!({"command": "ls"});
    let retry = StreamEvent::Retry {
        attempt: Some(2),
        max_attempts: Some(10),
        delay: Some(Duration::from_secs(1)),
        reason: "overloaded (529)".to_owned(),
    };
    assert_eq!(
        events,
        [StreamEvent::PermissionRequested { id: "r1".to_owned(), tool: "Bash".to_owned(), input }, retry]
    );
}

#[test]
fn reads_cursor_tool_calls_without_tokens() {
    let (events, summary) = parse_lines(
        Dialect::Claude,
        &[
            r#"{"type":"system","subtype":"init","session_id":"c1","model":"auto","cwd":"/LANE"}"#,
            r#"{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"hi"}]},"session_id":"c1"}"#,
            r#"{"type":"tool_call","subtype":"started","call_id":"t1","tool_call":{"readToolCall":{"args":{"path":"a"}}}}"#,
            r#"{"type":"tool_call","subtype":"completed","call_id":"t1","tool_call":{"readToolCall":{"args":{"path":"a"},"result":{"success":{"content":"x"}}}}}"#,
            r#"{"type":"tool_call","subtype":"started","call_id":"t2","tool_call":{"shellToolCall":{"args":{"command":"rm"}}}}"#,
            r#"{"type":"tool_call","subtype":"completed","call_id":"t2","tool_call":{"shellToolCall":{"args":{},"result":{"rejected":{"reason":"no"}}}}}"#,
            r#"{"type":"result","subtype":"success","is_error":false,"result":"hi","session_id":"c1","duration_ms":5}"#,
        ],
        exit(0),
    );
    assert!(events.contains(&StreamEvent::ToolUse {
        id: "t1".to_owned(),
        name: "read".to_owned(),
        input: serde_json::json!({"path": "a"}),
        parent_call: None
    }));
    assert_eq!((summary.class, summary.tool_calls, summary.refusals.len()), (ExitClass::Done, 2, 1));
    assert_eq!((summary.tokens, summary.cost), (Tokens::default(), None));
}

#[test]
fn detects_opencode_retrying_without_end() {
    let cut = recorded_stream("opencode", "stream-cut-loops");
    let mut reader = OutputReader::new(Dialect::OpenCode, &SessionTotals::default());
    let mut events = Vec::new();
    reader.feed_stdout(&cut, &mut events);
    assert_eq!(reader.runaway_reason(), None);
    reader.feed_stdout(&cut, &mut events);
    assert_eq!(reader.runaway_reason().unwrap(), "the model's answer broke off 4 times in a row");
    let summary = reader.finish(signal(15), &mut events);
    assert_eq!((summary.class, summary.failure), (ExitClass::Unavailable, Some(FailureKind::Provider)));
    // One complete step in between, and the run is not a runaway.
    let mut reader = OutputReader::new(Dialect::OpenCode, &SessionTotals::default());
    reader.feed_stdout(&[cut.clone(), recorded_stream("opencode", "ok"), cut].concat(), &mut events);
    assert_eq!(reader.runaway_reason(), None);
}

#[test]
fn opencode_with_error_exit_is_not_done() {
    let ok = recorded_stream("opencode", "ok");
    let none = SessionTotals::default();
    assert_eq!(parse_stream(Dialect::OpenCode, &none, &ok, exit(1)).1.class, ExitClass::Crashed);
    assert_eq!(parse_stream(Dialect::OpenCode, &none, &ok, exit(143)).1.class, ExitClass::Done);
    let (_, summary) = parse_stream(
        Dialect::OpenCode,
        &none,
        &without_lines_containing(&ok, "\"reason\": \"stop\""),
        exit(0),
    );
    assert_eq!(summary.class, ExitClass::Interrupted);
}

#[test]
fn uses_non_event_lines_as_failure_detail() {
    let (events, summary) = parse_lines(
        Dialect::Codex,
        &[
            "\u{1b}[31mError: not logged in, please log in again\u{1b}[0m",
            "[1, 2]",
            "{\"type\":\"news\"}",
            "{broken",
        ],
        exit(1),
    );
    let kinds: Vec<&str> = events
        .iter()
        .map(|e| match e {
            StreamEvent::Unknown { kind } => kind.as_str(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(kinds, ["no event", "no event", "news", "no event"]);
    assert_eq!(summary.class, ExitClass::Auth);
    assert_eq!(summary.detail.unwrap(), "Error: not logged in, please log in again");
}
