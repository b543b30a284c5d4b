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
