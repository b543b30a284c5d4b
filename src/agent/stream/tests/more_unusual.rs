//! Owns streams that were not recorded, of the agents behind the first three.

use serde_json::json;

use super::{exit, lines, read, replay, signal, stream};
use crate::agent::stream::{Class, Dialect, Event, Exit, Reader, SessionTotals, Tokens, Trouble};

fn refused(dialect: Dialect, text: &[&str]) -> Vec<String> {
    lines(dialect, text, exit(0)).1.refused.into_iter().map(|r| r.tool).collect()
}

#[test]
fn copilot_says_what_it_used_in_a_file() {
    let usage = std::fs::read(super::folder("copilot").join("usage-output-file.json")).unwrap();
    let run = |before: &SessionTotals, file: &[u8]| {
        let mut reader = Reader::new(Dialect::Copilot, before);
        let mut events = Vec::new();
        reader.feed(&stream("copilot", "ok"), &mut events);
        reader.read_usage_file(file, &mut events);
        (reader.finish(exit(0), &mut events), events)
    };
    let (summary, events) = run(&SessionTotals::default(), &usage);
    // Five requests: three steps, and two more that a gate at the end has asked for.
    let tokens = Tokens { input: 5400, cached_input: 1000, cache_write: 0, output: 250, reasoning: 50 };
    assert_eq!((summary.tokens, summary.model.as_deref()), (tokens, Some("stub-model")));
    assert!(events.contains(&Event::Usage(tokens)));
    let before = SessionTotals { tokens: Tokens { input: 5000, ..Tokens::default() }, ..summary.totals };
    assert_eq!(run(&before, &usage).0.tokens.input, 400);
    for broken in [&b"not json"[..], b"{}", b"[]", b"{\"modelMetrics\":7}", b""] {
        assert_eq!(run(&SessionTotals::default(), broken).0.tokens, Tokens::default());
    }
}

#[test]
fn context_is_told_in_percent_where_its_size_is_known() {
    let at_end = |agent: &str, scenario: &str, dialect| {
        let mut reader = Reader::new(dialect, &SessionTotals::default());
        reader.feed(&stream(agent, scenario), &mut Vec::new());
        reader.progress().context_percent()
    };
    assert_eq!(at_end("copilot", "mcp", Dialect::Copilot), Some(10));
    assert_eq!(at_end("acp", "copilot", Dialect::Acp), Some(6));
    assert_eq!(at_end("pi-0.87", "ok", Dialect::Pi), None);
    // Claude gives the size at the end only; the next run of the session knows it from the start.
    let totals = replay("claude", "ok").1.totals;
    assert_eq!(totals.context_size, Some(1_000_000));
    let small = SessionTotals { context_size: Some(12_000), ..totals };
    let mut reader = Reader::new(Dialect::Claude, &small);
    let text = String::from_utf8(stream("claude", "resume")).unwrap();
    for line in text.lines().take(2) {
        reader.feed(format!("{line}\n").as_bytes(), &mut Vec::new());
    }
    assert_eq!(reader.progress().context_percent(), Some(10));
}

#[test]
fn what_gemini_says_in_pieces_is_one_text() {
    let piece =
        |text: &str| json!({"type":"message","role":"assistant","content":text,"delta":true}).to_string();
    let (a, b) = (piece("one "), piece("two"));
    let mut reader = Reader::new(Dialect::Gemini, &SessionTotals::default());
    let mut events = Vec::new();
    reader.feed(format!("{a}\n{b}\n").as_bytes(), &mut events);
    assert_eq!(events, []);
    assert_eq!(reader.progress().last_text.as_deref(), Some("one two"));
    let summary = reader.finish(exit(0), &mut events);
    assert_eq!(events, [Event::Text { text: "one two".to_owned(), parent: None }]);
    assert_eq!((summary.class, summary.answer.as_deref()), (Class::Interrupted, Some("one two")));
}

#[test]
fn gemini_says_by_its_exit_code_what_its_words_do_not() {
    let class = |code| lines(Dialect::Gemini, &[], exit(code)).1.class;
    let found = [41, 42, 53, 55, 145, 173, 1].map(class);
    let wanted = [
        Class::Auth,
        Class::Failed,
        Class::MaxTurns,
        Class::Failed,
        Class::Auth,
        Class::RateLimited,
        Class::Failed,
    ];
    assert_eq!(found, wanted);
    let vague = r#"{"type":"result","status":"error","error":{"type":"unknown","message":"it went wrong"},"stats":{}}"#;
    let (_, summary) = lines(Dialect::Gemini, &[vague], exit(173));
    assert_eq!((summary.class, summary.detail.as_deref()), (Class::RateLimited, Some("it went wrong")));
    assert_eq!(lines(Dialect::Gemini, &[vague], exit(0)).1.class, Class::Failed);
    let done = r#"{"type":"result","status":"success","stats":{}}"#;
    assert_eq!(lines(Dialect::Gemini, &[done], exit(173)).1.class, Class::Done);
    let thought = r#"{"type":"result","status":"success","stats":{"total_tokens":1700,"input_tokens":1000,"output_tokens":500,"cached":100}}"#;
    let tokens = Tokens { input: 900, cached_input: 100, cache_write: 0, output: 700, reasoning: 200 };
    assert_eq!(lines(Dialect::Gemini, &[thought], exit(0)).1.tokens, tokens);
}

#[test]
fn qwen_has_limits_of_its_own() {
    assert_eq!(lines(Dialect::Qwen, &[], exit(55)).1.class, Class::Budget);
    assert_eq!(lines(Dialect::Qwen, &[], exit(1)).1.class, Class::Failed);
    let cut = String::from_utf8(stream("qwen", "ok")).unwrap();
    let cut: Vec<&str> = cut.lines().filter(|l| !l.contains("\"result\"")).collect();
    let (_, summary) = lines(Dialect::Qwen, &cut, signal(9));
    assert_eq!((summary.class, summary.tokens.input), (Class::Interrupted, 3300));
}

#[test]
fn pi_stops_for_different_reasons_and_always_exits_well() {
    let run = |stop: &str, error: &str, end: &str| {
        let message = json!({"type":"message_end","message":{"role":"assistant","content":[],"stopReason":stop,"errorMessage":error}});
        let (_, summary) =
            lines(Dialect::Pi, &["{\"type\":\"session\",\"id\":\"s\"}", &message.to_string(), end], exit(0));
        summary.class
    };
    let end = "{\"type\":\"agent_end\",\"messages\":[]}";
    assert_eq!(run("stop", "", end), Class::Done);
    assert_eq!(run("length", "", end), Class::TokenLimit);
    assert_eq!(run("aborted", "", end), Class::Interrupted);
    assert_eq!(run("toolUse", "", end), Class::Interrupted);
    assert_eq!(run("error", "429 slow down", end), Class::RateLimited);
    assert_eq!(run("stop", "", ""), Class::Interrupted);
    // It says that it tries again, and is killed meanwhile.
    let will = "{\"type\":\"agent_end\",\"willRetry\":true}";
    assert_eq!(run("error", "429 slow down", will), Class::RateLimited);
    let retry =
        r#"{"type":"auto_retry_start","attempt":1,"maxAttempts":3,"delayMs":2000,"errorMessage":"429"}"#;
    let (events, _) = lines(Dialect::Pi, &[retry, r#"{"type":"message_update","usage":{}}"#], exit(0));
    let (attempt, of, delay_ms) = (Some(1), Some(3), Some(2000));
    assert_eq!(events, [Event::Retry { attempt, of, delay_ms, why: "429".to_owned() }]);
}

#[test]
fn aider_says_what_it_used_and_cost_in_words() {
    let (_, summary) = lines(
        Dialect::Aider,
        &[
            "Model: openai/gpt-5 with diff edit format",
            "first",
            "Tokens: 12k sent, 3.5k cache write, 2.5k cache hit, 1.2k received. Cost: $0.0312 message, $0.0312 session.",
            "second",
            "Tokens: 1.0k sent, 50 received. Cost: $0.0010 message, $0.0322 session.",
            "Applied edit to a.txt",
        ],
        exit(0),
    );
    let tokens = Tokens { input: 7000, cached_input: 2500, cache_write: 3500, output: 1250, reasoning: 0 };
    assert_eq!((summary.class, summary.tokens), (Class::Done, tokens));
    assert_eq!(summary.cost.unwrap().nanos, 32_200_000);
    assert_eq!((summary.answer.as_deref(), summary.model.as_deref()), (Some("second"), Some("openai/gpt-5")));
    // An error after an answer is the end; one before it is not.
    let (error, tokens) = ("litellm.RateLimitError: too fast", "Tokens: 5 sent, 5 received.");
    assert_eq!(lines(Dialect::Aider, &[tokens, error], exit(0)).1.class, Class::RateLimited);
    assert_eq!(lines(Dialect::Aider, &[error, "", tokens], exit(0)).1.class, Class::Done);
    assert_eq!(
        lines(Dialect::Aider, &["Model gpt-5 has hit a token limit!"], exit(0)).1.class,
        Class::TokenLimit
    );
    assert_eq!(lines(Dialect::Aider, &[tokens], signal(15)).1.class, Class::Interrupted);
}

#[test]
fn aider_fails_by_an_exception_of_its_own_and_by_none_of_its_checks() {
    let tokens = "Tokens: 5 sent, 5 received.";
    let trace = |file: &str| {
        let frame = format!("  File \"/x/{file}\", line 1486, in send_message");
        let what = "httpx.ConnectError: [Errno 111] Connection refused";
        [
            "Traceback (most recent call last):",
            &frame,
            "    yield from self.send(messages)",
            what,
            "[Errno 111]",
        ]
        .map(str::to_owned)
    };
    let ends = |before: &[&str], file: &str, after: &[&str]| {
        let trace = trace(file);
        let all: Vec<&str> = before
            .iter()
            .copied()
            .chain(trace.iter().map(String::as_str))
            .chain(after.iter().copied())
            .collect();
        let summary = lines(Dialect::Aider, &all, exit(0)).1;
        (summary.class, summary.detail.unwrap_or_default())
    };
    let own = "aider/coders/base_coder.py";
    let failed = (Class::Unavailable, "httpx.ConnectError: [Errno 111] Connection refused".to_owned());
    assert_eq!(ends(&["Aider v0.86.2"], own, &[]), failed);
    assert_eq!(ends(&[tokens], own, &[]), failed);
    assert_eq!(ends(&[], own, &["answer", tokens]).0, Class::Done);
    assert_eq!(ends(&[tokens], "repo/tests/test_it.py", &[]).0, Class::Done);
    // As it is broken at 80 columns.
    let broken = [
        "Traceback (most recent call last):",
        "  File ",
        "\"/home/ann/.local/share/uv/tools/aider-chat/lib/python3.12/site-packages/aider/c",
        "oders/base_coder.py\", line 1486, in send_message",
        "    yield from self.send(messages, functions=self.functions)",
        "RecursionError: maximum recursion depth exceeded",
    ];
    let summary = lines(Dialect::Aider, &broken, exit(0)).1;
    assert_eq!(summary.detail.as_deref(), Some("RecursionError: maximum recursion depth exceeded"));
}

#[test]
fn any_program_is_judged_by_its_exit_code() {
    let run =
        |how: Exit| lines(Dialect::Text, &["one", "", "{\"type\":\"result\"}", "\u{1b}[1mtwo\u{1b}[0m"], how);
    let (events, summary) = run(exit(0));
    assert_eq!((summary.class, summary.detail), (Class::Done, None));
    assert_eq!(summary.answer.as_deref(), Some("one\n\n{\"type\":\"result\"}\ntwo"));
    assert_eq!(events.len(), 3);
    let (_, failed) = run(exit(3));
    assert_eq!((failed.class, failed.detail.as_deref()), (Class::Failed, Some("two")));
    assert_eq!(run(signal(15)).1.class, Class::Interrupted);
    assert_eq!(run(exit(139)).1.class, Class::Crashed);
    let (_, limited) = lines(Dialect::Text, &["HTTP 429"], exit(1));
    assert_eq!((limited.class, limited.trouble), (Class::RateLimited, Some(Trouble::RateLimit)));
    let long: Vec<String> = (0..20_000).map(|n| format!("line {n} ü")).collect();
    let long: Vec<&str> = long.iter().map(String::as_str).collect();
    let answer = lines(Dialect::Text, &long, exit(0)).1.answer.unwrap();
    assert!(answer.ends_with("line 19999 ü") && answer.len() <= 64 * 1024, "{}", answer.len());
}

#[test]
fn a_turn_of_the_protocol_ends_for_different_reasons() {
    let asks = r#"{"proq":"asks","id":3,"method":"session/prompt"}"#;
    let run = |result: &str| lines(Dialect::Acp, &[asks, result], signal(15)).1.class;
    let stopped = |why: &str| run(&json!({"jsonrpc":"2.0","id":3,"result":{"stopReason":why}}).to_string());
    let reasons = ["end_turn", "max_tokens", "max_turn_requests", "cancelled", "refusal"];
    let classes = [Class::Done, Class::TokenLimit, Class::MaxTurns, Class::Interrupted, Class::Failed];
    assert_eq!(reasons.map(stopped), classes);
    let error = |code: i64, words: &str| {
        run(&json!({"jsonrpc":"2.0","id":3,"error":{"code":code,"message":words,"data":{"details":"x"}}})
            .to_string())
    };
    assert_eq!(error(-32000, "Authentication required"), Class::Auth);
    assert_eq!(error(-32603, "Internal error: 429 Too Many Requests"), Class::RateLimited);
    assert_eq!(error(-32603, "Internal error"), Class::Failed);
    assert_eq!(run("{}"), Class::Interrupted);
}

/// An update of the protocol.
fn update(update: &serde_json::Value) -> String {
    json!({"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":update}}).to_string()
}

/// What somebody says in a piece.
fn piece(who: &str, said: &str) -> String {
    update(&json!({"sessionUpdate": format!("{who}_message_chunk"), "content": {"type":"text","text":said}}))
}

/// What the client asks.
fn asks(id: u32, method: &str) -> String {
    format!(r#"{{"proq":"asks","id":{id},"method":"{method}","session":"s"}}"#)
}

/// The end of the turn that was asked for so.
fn turn_ends(id: u32) -> String {
    json!({"jsonrpc":"2.0","id":id,"result":{"stopReason":"end_turn"}}).to_string()
}

/// A session that is loaded, a past that comes after that, its end, and what is new.
fn gone_on_with() -> [Vec<String>; 4] {
    let call = |kind: &str, id: &str, status: &str| {
        update(
            &json!({"sessionUpdate":kind,"toolCallId":id,"status":status,"kind":"edit","rawInput":{"a":1}}),
        )
    };
    let loaded = json!({"jsonrpc":"2.0","id":2,"result":{}}).to_string();
    let past = vec![
        piece("user", "First task"),
        piece("agent", "Old words. "),
        call("tool_call", "old-1", "completed"),
        call("tool_call", "old-2", "failed"),
        piece("user", "[Function Response: x]"),
        piece("agent", "Old end."),
    ];
    let available = update(&json!({"sessionUpdate":"available_commands_update","availableCommands":[]}));
    let now = vec![
        piece("agent", "New words."),
        call("tool_call_update", "new", "completed"),
        piece("agent", "New end."),
        turn_ends(3),
    ];
    [vec![asks(2, "session/load"), loaded, asks(3, "session/prompt")], past, vec![available], now]
}

#[test]
fn the_past_that_an_agent_tells_once_it_is_asked_is_none_of_the_turn() {
    let [begun, past, available, now] = gone_on_with();
    let run = |parts: &[&[String]]| {
        let all = parts.concat();
        lines(Dialect::Acp, &all.iter().map(String::as_str).collect::<Vec<_>>(), exit(0))
    };
    // It may come before the turn, too: while the client asks for a mode, or before that is answered.
    let mode = vec![asks(7, "session/set_mode")];
    let mode_is_set = vec![json!({"jsonrpc":"2.0","id":7,"result":{}}).to_string()];
    let [load, prompt] = [&begun[..2], &begun[2..]];
    for parts in [
        [load, &past, &mode, &mode_is_set, prompt, &now],
        [load, &mode, &past, &mode_is_set, prompt, &now],
        [load, &past[..3], &mode, &past[3..], &mode_is_set, &[prompt, &now].concat()],
    ] {
        let (events, summary) = run(&parts);
        let told = format!("{events:?}");
        assert_eq!((summary.tool_calls, summary.answer.as_deref()), (1, Some("New end.")), "{told}");
        assert!(!told.contains("Old") && told.contains("New words."), "{told}");
    }
    // Nothing of a past, one that ends with a word of its own, and one that does not.
    for (parts, first) in [
        (&[&begun[..], &now][..], "New words."),
        (&[&begun[..], &past, &available, &now][..], "New words."),
        (&[&begun[..], &past, &now][..], "Old end.New words."),
    ] {
        let (events, summary) = run(parts);
        assert_eq!(
            (summary.class, summary.tool_calls, summary.answer.as_deref()),
            (Class::Done, 1, Some("New end."))
        );
        let text =
            |event: &Event| if let Event::Text { text, .. } = event { Some(text.clone()) } else { None };
        assert_eq!(events.iter().filter_map(text).collect::<Vec<_>>(), [first, "New end."]);
    }
    // One that only speaks, in its second turn as well.
    let more = [asks(4, "session/prompt"), piece("agent", "More."), turn_ends(4)];
    let (_, summary) = run(&[&begun, &past[..1], &available, &now[2..], &more]);
    assert_eq!((summary.tool_calls, summary.answer.as_deref()), (0, Some("More.")));
    // Without a session that was loaded nothing is taken for a past.
    let (_, summary) = run(&[&begun[2..], &past, &available, &now]);
    assert_eq!(summary.tool_calls, 3);
}

#[test]
fn a_turn_that_ends_with_a_refusal_is_not_done() {
    let asks = r#"{"proq":"asks","id":3,"method":"session/prompt"}"#;
    let refuses = r#"{"proq":"refuses","call":"c","tool":"execute","why":"not allowed"}"#;
    let ends = r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}"#;
    let failed = update(&json!({"sessionUpdate":"tool_call_update","toolCallId":"c","status":"failed"}));
    let run = |more: &str| lines(Dialect::Acp, &[asks, refuses, more, ends], exit(0)).1;
    for more in [failed, piece("agent", ""), refuses.to_owned()] {
        let summary = run(&more);
        assert_eq!(
            (summary.class, summary.detail.as_deref()),
            (Class::Refused, Some("execute: not allowed"))
        );
    }
    // It has gone on.
    let other =
        update(&json!({"sessionUpdate":"tool_call","toolCallId":"d","status":"pending","kind":"edit"}));
    for more in [piece("agent", "I leave it."), other] {
        assert_eq!(run(&more).class, Class::Done);
    }
}

#[test]
fn gemini_says_among_its_errors_that_it_sends_a_request_again() {
    let mut reader = Reader::new(Dialect::Gemini, &SessionTotals::default());
    let mut events = Vec::new();
    let said = "Warning: no colors\nAttempt 1 failed with status 429. Retrying with backoff... _ApiError: {\n    at x (y.js:1:2)\n\
                Attempt 4 failed: Rate limit reached\u{2026} Retrying after 32691ms...\nAttempt x failed. Retrying\nAttempt 9 failed for good\n";
    for part in said.as_bytes().chunks(7) {
        reader.feed_errors(part, &mut events);
    }
    let retry = |attempt, delay_ms, why: &str| Event::Retry {
        attempt: Some(attempt),
        of: None,
        delay_ms,
        why: why.to_owned(),
    };
    assert_eq!(events, [retry(1, None, "status 429"), retry(4, Some(32691), "Rate limit reached\u{2026}")]);
    assert_eq!(reader.progress().retries, 2);
}

#[test]
fn a_refused_tool_is_known_in_every_dialect_that_says_so() {
    let acp = r#"{"jsonrpc":"2.0","id":"p1","method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"c","title":"rm","kind":"execute","rawInput":{"command":"rm"}},"options":[]}}"#;
    let (events, _) = lines(Dialect::Acp, &[acp], exit(0));
    let input = json!({"command": "rm"});
    assert_eq!(events, [Event::PermissionAsked { id: "p1".to_owned(), tool: "execute".to_owned(), input }]);
    let codex = r#"{"type":"item.completed","item":{"id":"i","type":"command_execution","command":"rm","aggregated_output":"","exit_code":null,"status":"declined"}}"#;
    assert_eq!(refused(Dialect::Codex, &[codex]), ["command_execution"]);
    let gemini = r#"{"type":"tool_result","tool_id":"write_file__1","status":"error","error":{"type":"policy_violation","message":"Tool execution denied by policy."}}"#;
    assert_eq!(refused(Dialect::Gemini, &[gemini]), ["write_file"]);
    let qwen = r#"{"type":"result","subtype":"success","is_error":false,"session_id":"s","permission_denials":[{"tool_name":"edit","tool_use_id":"1"}]}"#;
    assert_eq!(refused(Dialect::Qwen, &[qwen]), ["edit"]);
    assert_eq!(replay("copilot", "denied").1.refused[0].tool, "create");
}

#[test]
fn copilot_says_that_it_tries_again_in_lines_that_do_not_last() {
    let (events, _) = replay("copilot", "error-401");
    let retries = events.iter().filter(|e| matches!(e, Event::Retry { .. })).count();
    assert_eq!(retries, 2);
    let none = SessionTotals::default();
    assert_eq!(read(Dialect::Copilot, &none, b"{\"ephemeral\":true,\"type\":\"x\"}", exit(0)).0, []);
}

#[test]
fn a_session_is_a_plain_word_or_none() {
    let run = |id: &str| {
        let line = json!({"type": "result", "subtype": "success", "is_error": false, "session_id": id});
        lines(Dialect::Claude, &[&line.to_string()], exit(0)).1.session
    };
    assert_eq!(run("ses_e0-4.7:x/y").as_deref(), Some("ses_e0-4.7:x/y"));
    for bad in [
        "--dangerously-skip-permissions",
        "-x",
        "a b",
        "a\nb",
        "a;b",
        "$(id)",
        "\u{1b}[2J",
        "",
        &"x".repeat(300),
    ] {
        assert_eq!(run(bad), None, "{bad:?}");
    }
}

#[test]
fn what_a_terminal_would_obey_is_in_no_name_and_no_detail() {
    let text = [
        json!({"type": "assistant", "message": {"id": "m", "content": [{"type": "tool_use", "id": "t", "name": "x\u{1b}[2J", "input": {}}]}}),
        json!({"type": "result", "subtype": "success", "is_error": true, "result": "boom\nother: done\u{1b}]0;evil\u{7}", "session_id": "s"}),
    ];
    let text = text.map(|line| line.to_string());
    let (_, summary) = lines(Dialect::Claude, &[&text[0], &text[1]], exit(1));
    assert_eq!(summary.detail.as_deref(), Some("boom other: done\\u{1b}]0;evil\\u{7}"));
    assert_eq!(summary.last_tool.as_deref(), Some("x\\u{1b}[2J"));
}

#[test]
fn opencode_that_got_over_an_error_is_done_whatever_its_exit_code() {
    let error = r#"{"type":"error","sessionID":"s","error":{"name":"ContextOverflowError","data":{"message":"too long"}}}"#;
    let step = |reason: &str| {
        let used = json!({"input": 10, "output": 1, "cache": {"read": 0, "write": 0}});
        json!({"type":"step_finish","sessionID":"s","part":{"reason":reason,"tokens":used,"cost":0}})
            .to_string()
    };
    let (went_on, stop) = (step("tool-calls"), step("stop"));
    let run = |text: &[&str], how: Exit| lines(Dialect::OpenCode, text, how).1;
    let over = run(&[&went_on, error, &stop], exit(1));
    assert_eq!((over.class, over.detail.as_deref()), (Class::Done, Some("exit code 1 after its result")));
    assert_eq!(run(&[&went_on, &stop, error], exit(1)).class, Class::TokenLimit);
    // Nothing explains it.
    assert_eq!(run(&[&went_on, &stop], exit(1)).class, Class::Crashed);
    assert_eq!(run(&[&went_on, error, &stop], exit(139)).class, Class::Done, "as without an error");
}

#[test]
fn pi_whose_last_answer_was_cut_is_not_done() {
    let message = |content: serde_json::Value, input: u64| {
        let usage = json!({"input": input, "output": input});
        let message = json!({"role":"assistant","content":content,"stopReason":"stop","usage":usage});
        json!({"type":"message_end","message":message}).to_string()
    };
    let words = || json!([{"type":"text","text":"half a"}]);
    let run = |text: &[&str]| {
        let all: Vec<&str> =
            [&["{\"type\":\"session\",\"id\":\"s\"}"], text, &["{\"type\":\"agent_end\"}"]].concat();
        lines(Dialect::Pi, &all, exit(0)).1.class
    };
    assert_eq!(run(&[&message(words(), 10), &message(words(), 0)]), Class::Unavailable);
    assert_eq!(run(&[&message(json!([]), 0)]), Class::Unavailable);
    assert_eq!(run(&[&message(words(), 0), &message(words(), 10)]), Class::Done);
    // Some servers never count.
    assert_eq!(run(&[&message(words(), 0)]), Class::Done);
}

#[test]
fn what_a_session_used_in_a_window_is_not_the_next_runs() {
    let behind = SessionTotals { session: Some("s".to_owned()), is_behind: true, ..SessionTotals::default() };
    let usage = |input: u64| json!({"input_tokens": input, "output_tokens": 0});
    let init = r#"{"type":"system","subtype":"init","session_id":"s"}"#;
    let said = json!({"type":"assistant","message":{"id":"m","content":[],"usage":usage(1000)}}).to_string();
    let end =
        json!({"type":"result","subtype":"success","is_error":false,"session_id":"s","usage":usage(3100)})
            .to_string();
    let run = |before: &SessionTotals| {
        let text = [init, &said, &end].join("\n");
        read(Dialect::Qwen, before, text.as_bytes(), exit(0)).1
    };
    let first = run(&behind);
    assert_eq!((first.class, first.tokens.input), (Class::Done, 1000));
    assert_eq!((first.totals.tokens.input, first.totals.is_behind), (3100, false), "the next run knows it");
    assert_eq!(run(&SessionTotals::default()).tokens.input, 3100);
    // Copilot only tells at its end what the session has used.
    let mut reader = Reader::new(Dialect::Copilot, &behind);
    reader.feed(br#"{"type":"session.start","data":{"sessionId":"s"}}"#, &mut Vec::new());
    reader.feed(b"\n", &mut Vec::new());
    let file = br#"{"modelMetrics":{"m":{"usage":{"inputTokens":4200,"outputTokens":1}}}}"#;
    reader.read_usage_file(file, &mut Vec::new());
    assert!(reader.progress().tokens.is_none());
}
