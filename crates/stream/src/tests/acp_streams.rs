//! Tests of streams of the Agent Client Protocol that were not recorded.

use serde_json::json;

use super::{exit, parse_lines, signal};
use crate::base::event::StreamEvent;
use crate::base::run_end::ExitClass;
use crate::reader::Dialect;

#[test]
fn classifies_acp_turns_by_stop_reason() {
    let request = r#"{"proq":"asks","id":3,"method":"session/prompt"}"#;
    let run = |result: &str| parse_lines(Dialect::Acp, &[request, result], signal(15)).1.class;
    let class_of_stop_reason =
        |why: &str| run(&json!({"jsonrpc":"2.0","id":3,"result":{"stopReason":why}}).to_string());
    let reasons = ["end_turn", "max_tokens", "max_turn_requests", "cancelled", "refusal"];
    let classes = [
        ExitClass::Done,
        ExitClass::TokenLimit,
        ExitClass::MaxTurns,
        ExitClass::Interrupted,
        ExitClass::Failed,
    ];
    assert_eq!(reasons.map(class_of_stop_reason), classes);
    let error = |code: i64, words: &str| {
        run(&json!({"jsonrpc":"2.0","id":3,"error":{"code":code,"message":words,"data":{"details":"x"}}})
            .to_string())
    };
    assert_eq!(error(-32000, "Authentication required"), ExitClass::Auth);
    assert_eq!(error(-32603, "Internal error: 429 Too Many Requests"), ExitClass::RateLimited);
    assert_eq!(error(-32603, "Internal error"), ExitClass::Failed);
    assert_eq!(run("{}"), ExitClass::Interrupted);
}

/// Returns a `session/update` notification of the Agent Client Protocol.
fn session_update(update: &serde_json::Value) -> String {
    json!({"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":update}}).to_string()
}

/// Returns an update with one chunk of a message of `who`, the user or the agent.
fn message_chunk(who: &str, text: &str) -> String {
    session_update(
        &json!({"sessionUpdate": format!("{who}_message_chunk"), "content": {"type":"text","text":text}}),
    )
}

/// Returns the log line of a request that git-proq's client sends.
fn client_request(id: u32, method: &str) -> String {
    format!(r#"{{"proq":"asks","id":{id},"method":"{method}","session":"s"}}"#)
}

/// Returns the response that ends the turn requested with `id`.
fn end_turn_response(id: u32) -> String {
    json!({"jsonrpc":"2.0","id":id,"result":{"stopReason":"end_turn"}}).to_string()
}

/// Returns the sections of a stream with a loaded session: the load and prompt requests, the replayed
/// history, an update that ends the history, and the new turn.
fn loaded_session_sections() -> [Vec<String>; 4] {
    let call = |kind: &str, id: &str, status: &str| {
        session_update(
            &json!({"sessionUpdate":kind,"toolCallId":id,"status":status,"kind":"edit","rawInput":{"a":1}}),
        )
    };
    let loaded = json!({"jsonrpc":"2.0","id":2,"result":{}}).to_string();
    let past = vec![
        message_chunk("user", "First task"),
        message_chunk("agent", "Old words. "),
        call("tool_call", "old-1", "completed"),
        call("tool_call", "old-2", "failed"),
        message_chunk("user", "[Function Response: x]"),
        message_chunk("agent", "Old end."),
    ];
    let available =
        session_update(&json!({"sessionUpdate":"available_commands_update","availableCommands":[]}));
    let now = vec![
        message_chunk("agent", "New words."),
        call("tool_call_update", "new", "completed"),
        message_chunk("agent", "New end."),
        end_turn_response(3),
    ];
    [
        vec![client_request(2, "session/load"), loaded, client_request(3, "session/prompt")],
        past,
        vec![available],
        now,
    ]
}

#[test]
fn ignores_replayed_history_of_loaded_session() {
    let [load_and_prompt, past, available, now] = loaded_session_sections();
    let run = |parts: &[&[String]]| {
        let all = parts.concat();
        parse_lines(Dialect::Acp, &all.iter().map(String::as_str).collect::<Vec<_>>(), exit(0))
    };
    // The history may also arrive before the turn: while the client requests a mode, or before the agent
    // responds to that.
    let mode = vec![client_request(7, "session/set_mode")];
    let mode_is_set = vec![json!({"jsonrpc":"2.0","id":7,"result":{}}).to_string()];
    let [load, prompt] = [&load_and_prompt[..2], &load_and_prompt[2..]];
    for parts in [
        [load, &past, &mode, &mode_is_set, prompt, &now],
        [load, &mode, &past, &mode_is_set, prompt, &now],
        [load, &past[..3], &mode, &past[3..], &mode_is_set, &[prompt, &now].concat()],
    ] {
        let (events, summary) = run(&parts);
        let events_text = format!("{events:?}");
        assert_eq!((summary.tool_calls, summary.answer.as_deref()), (1, Some("New end.")), "{events_text}");
        assert!(!events_text.contains("Old") && events_text.contains("New words."), "{events_text}");
    }
    // No history, a history followed by an update that ends it, and a history without such an update.
    for (parts, first) in [
        (&[&load_and_prompt[..], &now][..], "New words."),
        (&[&load_and_prompt[..], &past, &available, &now][..], "New words."),
        (&[&load_and_prompt[..], &past, &now][..], "Old end.New words."),
    ] {
        let (events, summary) = run(parts);
        assert_eq!(
            (summary.class, summary.tool_calls, summary.answer.as_deref()),
            (ExitClass::Done, 1, Some("New end."))
        );
        let text = |event: &StreamEvent| {
            if let StreamEvent::Text { text, .. } = event { Some(text.clone()) } else { None }
        };
        assert_eq!(events.iter().filter_map(text).collect::<Vec<_>>(), [first, "New end."]);
    }
    // An agent that only sends text, in its second turn as well.
    let more = [client_request(4, "session/prompt"), message_chunk("agent", "More."), end_turn_response(4)];
    let (_, summary) = run(&[&load_and_prompt, &past[..1], &available, &now[2..], &more]);
    assert_eq!((summary.tool_calls, summary.answer.as_deref()), (0, Some("More.")));
    // Without a loaded session, nothing is treated as history.
    let (_, summary) = run(&[&load_and_prompt[2..], &past, &available, &now]);
    assert_eq!(summary.tool_calls, 3);
}

#[test]
fn acp_turn_ending_with_refusal_is_refused() {
    let request = r#"{"proq":"asks","id":3,"method":"session/prompt"}"#;
    let refusal = r#"{"proq":"refuses","call":"c","tool":"execute","why":"not allowed"}"#;
    let response = r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}"#;
    let failed =
        session_update(&json!({"sessionUpdate":"tool_call_update","toolCallId":"c","status":"failed"}));
    let run = |more: &str| parse_lines(Dialect::Acp, &[request, refusal, more, response], exit(0)).1;
    for more in [failed, message_chunk("agent", ""), refusal.to_owned()] {
        let summary = run(&more);
        assert_eq!(
            (summary.class, summary.detail.as_deref()),
            (ExitClass::Refused, Some("execute: not allowed"))
        );
    }
    // The agent continued after the refusal.
    let other = session_update(
        &json!({"sessionUpdate":"tool_call","toolCallId":"d","status":"pending","kind":"edit"}),
    );
    for more in [message_chunk("agent", "I leave it."), other] {
        assert_eq!(run(&more).class, ExitClass::Done);
    }
}
