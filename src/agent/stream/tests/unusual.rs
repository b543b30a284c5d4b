//! Owns streams that were not recorded: made of the formats' own words, or of recorded ones with something changed.

use super::{exit, lines, read, replay, signal, stream};
use crate::agent::stream::{Class, Dialect, Event, Reader, SessionTotals, Tokens, Trouble};

fn without(bytes: &[u8], part: &str) -> Vec<u8> {
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    text.lines().filter(|l| !l.contains(part)).flat_map(|l| [l, "\n"]).collect::<String>().into_bytes()
}

#[test]
fn claude_that_is_interrupted_exits_with_nothing_and_is_not_done() {
    let cut = without(&stream("claude", "ok"), "\"type\": \"result\"");
    let none = SessionTotals::default();
    let (_, summary) = read(Dialect::Claude, &none, &cut, exit(0));
    assert_eq!(summary.class, Class::Interrupted);
    assert_eq!(summary.detail.unwrap(), "it ended without a result");
    // What was sent is known of each message, what was generated only as it began.
    assert_eq!(summary.tokens, Tokens { input: 6000, cached_input: 1000, output: 5, ..Tokens::default() });
    assert_eq!(summary.cost, None);
    for how in [exit(143), signal(15), signal(9), exit(129)] {
        assert_eq!(read(Dialect::Claude, &none, &cut, how).1.class, Class::Interrupted);
    }
    for how in [exit(1), signal(11)] {
        assert_eq!(read(Dialect::Claude, &none, &cut, how).1.class, Class::Crashed);
    }
}

#[test]
fn a_result_counts_more_than_the_end_of_the_process() {
    let none = SessionTotals::default();
    let (_, summary) = read(Dialect::Claude, &none, &stream("claude", "ok"), signal(15));
    assert_eq!(summary.class, Class::Done);
    assert_eq!(summary.detail.unwrap(), "ended by signal 15 after its result");
}

#[test]
fn claude_is_differenced_where_it_only_says_what_the_session_has_used() {
    let text =
        String::from_utf8(stream("claude", "resume")).unwrap().replace("_since_last_result", "_elsewhere");
    let before = replay("claude", "ok").1.totals;
    let (_, summary) = read(Dialect::Claude, &before, text.as_bytes(), exit(0));
    assert_eq!((summary.tokens.input, summary.cost.unwrap().nanos), (2100, 10_480_000));
    // Without knowing the session, `modelUsage` would be all of it; what came since the last result still is not.
    let (_, known) = read(Dialect::Claude, &SessionTotals::default(), &stream("claude", "resume"), exit(0));
    assert_eq!((known.tokens.input, known.cost.unwrap().nanos), (2100, 10_480_000));
}

#[test]
fn another_session_and_counters_that_begin_anew_are_not_differenced() {
    let other = SessionTotals {
        session: Some("another".to_owned()),
        tokens: Tokens { input: 5, ..Tokens::default() },
        ..SessionTotals::default()
    };
    let (_, summary) = read(Dialect::Codex, &other, &stream("codex", "ok"), exit(0));
    assert_eq!(summary.tokens.input, 6000);
    let more = SessionTotals {
        session: summary.session,
        tokens: Tokens { input: 1_000_000, ..Tokens::default() },
        ..SessionTotals::default()
    };
    let (_, summary) = read(Dialect::Codex, &more, &stream("codex", "ok"), exit(0));
    assert_eq!(summary.tokens.input, 6000);
}

#[test]
fn subagents_are_told_with_the_call_that_they_work_for() {
    let text = String::from_utf8(stream("claude", "ok")).unwrap();
    let last = text.lines().find(|l| l.contains("\"All done\"")).unwrap();
    let sub = last
        .replace("\"parent_tool_use_id\": null", "\"parent_tool_use_id\": \"toolu_1\"")
        .replace("All done", "deep inside")
        .replace("msg_stub000005", "msg_sub");
    let (events, summary) = lines(Dialect::Claude, &[text.lines().nth(2).unwrap(), last, &sub], exit(0));
    assert!(
        events.contains(&Event::Text { text: "deep inside".to_owned(), parent: Some("toolu_1".to_owned()) })
    );
    assert_eq!(summary.answer.unwrap(), "All done");
    assert_eq!(summary.tokens.input, 2800);
    // A subagent that goes on after the result does not take the result back.
    let result = text.lines().last().unwrap();
    assert_eq!(lines(Dialect::Claude, &[last, result, &sub], exit(0)).1.class, Class::Done);
}

#[test]
fn two_turns_in_one_process_are_added_up() {
    let text = String::from_utf8(stream("claude", "denied")).unwrap();
    let all = format!("{text}{text}");
    let mut reader = Reader::new(Dialect::Claude, &SessionTotals::default());
    let mut events = Vec::new();
    reader.feed(text.as_bytes(), &mut events);
    assert!(reader.is_over());
    reader.feed(all.lines().nth(1).unwrap().as_bytes(), &mut events);
    reader.feed(b"\n", &mut events);
    assert!(!reader.is_over());
    let (_, summary) = read(Dialect::Claude, &SessionTotals::default(), all.as_bytes(), exit(0));
    assert_eq!((summary.tokens.input, summary.cost.unwrap().nanos), (4200, 20_960_000));
}

#[test]
fn claude_asks_for_permission_and_says_when_it_tries_again() {
    let (events, _) = lines(
        Dialect::Claude,
        &[
            r#"{"type":"control_request","request_id":"r1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"}}}"#,
            r#"{"type":"system","subtype":"api_retry","attempt":2,"max_retries":10,"retry_delay_ms":1000,"error_status":529,"error":"overloaded"}"#,
        ],
        exit(0),
    );
    let input = serde_json::json!({"command": "ls"});
    let retry = Event::Retry {
        attempt: Some(2),
        of: Some(10),
        delay_ms: Some(1000),
        why: "overloaded (529)".to_owned(),
    };
    assert_eq!(
        events,
        [Event::PermissionAsked { id: "r1".to_owned(), tool: "Bash".to_owned(), input }, retry]
    );
}

#[test]
fn cursor_says_what_its_tools_did_and_no_tokens() {
    let (events, summary) = lines(
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
    assert!(events.contains(&Event::ToolUse {
        id: "t1".to_owned(),
        name: "read".to_owned(),
        input: serde_json::json!({"path": "a"}),
        parent: None
    }));
    assert_eq!((summary.class, summary.tool_calls, summary.refused.len()), (Class::Done, 2, 1));
    assert_eq!((summary.tokens, summary.cost), (Tokens::default(), None));
}

#[test]
fn opencode_that_asks_without_end_is_noticed() {
    let cut = stream("opencode", "stream-cut-loops");
    let mut reader = Reader::new(Dialect::OpenCode, &SessionTotals::default());
    let mut events = Vec::new();
    reader.feed(&cut, &mut events);
    assert_eq!(reader.runaway(), None);
    reader.feed(&cut, &mut events);
    assert_eq!(reader.runaway().unwrap(), "the model's answer broke off 4 times in a row");
    let summary = reader.finish(signal(15), &mut events);
    assert_eq!((summary.class, summary.trouble), (Class::Unavailable, Some(Trouble::Provider)));
    // One real step, and it is none.
    let mut reader = Reader::new(Dialect::OpenCode, &SessionTotals::default());
    reader.feed(&[cut.clone(), stream("opencode", "ok"), cut].concat(), &mut events);
    assert_eq!(reader.runaway(), None);
}

#[test]
fn opencode_is_done_only_if_it_exits_well() {
    let ok = stream("opencode", "ok");
    let none = SessionTotals::default();
    assert_eq!(read(Dialect::OpenCode, &none, &ok, exit(1)).1.class, Class::Crashed);
    assert_eq!(read(Dialect::OpenCode, &none, &ok, exit(143)).1.class, Class::Done);
    let (_, summary) = read(Dialect::OpenCode, &none, &without(&ok, "\"reason\": \"stop\""), exit(0));
    assert_eq!(summary.class, Class::Interrupted);
}

#[test]
fn what_is_no_event_is_told_as_such_and_helps_where_nothing_else_does() {
    let (events, summary) = lines(
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
            Event::Unknown { kind } => kind.as_str(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(kinds, ["no event", "no event", "news", "no event"]);
    assert_eq!(summary.class, Class::Auth);
    assert_eq!(summary.detail.unwrap(), "Error: not logged in, please log in again");
}
