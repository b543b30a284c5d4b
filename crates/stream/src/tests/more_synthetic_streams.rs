//! Tests of streams that were not recorded, mostly of agents other than Claude, Codex and opencode.

use std::time::Duration;

use proq_base::usage::{SessionTotals, Tokens};
use serde_json::json;

use super::{exit, parse_lines, parse_stream, recorded_stream, replay, signal};
use crate::base::event::StreamEvent;
use crate::base::failure_kind::FailureKind;
use crate::base::run_end::{Exit, ExitClass};
use crate::reader::{Dialect, OutputReader};

fn refused_tools(dialect: Dialect, output_lines: &[&str]) -> Vec<String> {
    parse_lines(dialect, output_lines, exit(0)).1.refusals.into_iter().map(|r| r.tool).collect()
}

#[test]
fn adds_copilot_usage_file_to_tokens() {
    let usage = std::fs::read(super::fixture_dir("copilot").join("usage-output-file.json")).unwrap();
    let run = |before: &SessionTotals, file: &[u8]| {
        let mut reader = OutputReader::new(Dialect::Copilot, before);
        let mut events = Vec::new();
        reader.feed_stdout(&recorded_stream("copilot", "ok"), &mut events);
        reader.read_usage_file(file, &mut events);
        (reader.finish(exit(0), &mut events), events)
    };
    let (summary, events) = run(&SessionTotals::default(), &usage);
    // Five requests: three steps, and two more that a stop gate caused.
    let tokens = Tokens { input: 5400, cached_input: 1000, cache_write: 0, output: 250, reasoning: 50 };
    assert_eq!((summary.tokens, summary.model.as_deref()), (tokens, Some("stub-model")));
    assert!(events.contains(&StreamEvent::Usage(tokens)));
    let before =
        SessionTotals { tokens: Tokens { input: 5000, ..Tokens::default() }, ..summary.session_totals };
    assert_eq!(run(&before, &usage).0.tokens.input, 400);
    for broken in [&b"not json"[..], b"{}", b"[]", b"{\"modelMetrics\":7}", b""] {
        assert_eq!(run(&SessionTotals::default(), broken).0.tokens, Tokens::default());
    }
}

#[test]
fn reports_context_percent_when_size_is_known() {
    let context_percent_at_end = |agent: &str, scenario: &str, dialect| {
        let mut reader = OutputReader::new(dialect, &SessionTotals::default());
        reader.feed_stdout(&recorded_stream(agent, scenario), &mut Vec::new());
        reader.progress().context_percent()
    };
    assert_eq!(context_percent_at_end("copilot", "mcp", Dialect::Copilot), Some(10));
    assert_eq!(context_percent_at_end("acp", "copilot", Dialect::Acp), Some(6));
    assert_eq!(context_percent_at_end("pi-0.87", "ok", Dialect::Pi), None);
    // Claude reports the size only at the end. The next run of the session knows it from the start.
    let totals = replay("claude", "ok").1.session_totals;
    assert_eq!(totals.context_size, Some(1_000_000));
    let small_context = SessionTotals { context_size: Some(12_000), ..totals };
    let mut reader = OutputReader::new(Dialect::Claude, &small_context);
    let text = String::from_utf8(recorded_stream("claude", "resume")).unwrap();
    for line in text.lines().take(2) {
        reader.feed_stdout(format!("{line}\n").as_bytes(), &mut Vec::new());
    }
    assert_eq!(reader.progress().context_percent(), Some(10));
}

#[test]
fn joins_gemini_text_deltas() {
    let delta =
        |text: &str| json!({"type":"message","role":"assistant","content":text,"delta":true}).to_string();
    let (a, b) = (delta("one "), delta("two"));
    let mut reader = OutputReader::new(Dialect::Gemini, &SessionTotals::default());
    let mut events = Vec::new();
    reader.feed_stdout(format!("{a}\n{b}\n").as_bytes(), &mut events);
    assert_eq!(events, []);
    assert_eq!(reader.progress().last_text.as_deref(), Some("one two"));
    let summary = reader.finish(exit(0), &mut events);
    assert_eq!(events, [StreamEvent::Text { text: "one two".to_owned(), parent_call: None }]);
    assert_eq!((summary.class, summary.answer.as_deref()), (ExitClass::Interrupted, Some("one two")));
}

#[test]
fn classifies_gemini_by_exit_code_when_output_is_vague() {
    let class = |code| parse_lines(Dialect::Gemini, &[], exit(code)).1.class;
    let found = [41, 42, 53, 55, 145, 173, 1].map(class);
    let wanted = [
        ExitClass::Auth,
        ExitClass::Failed,
        ExitClass::MaxTurns,
        ExitClass::Failed,
        ExitClass::Auth,
        ExitClass::RateLimited,
        ExitClass::Failed,
    ];
    assert_eq!(found, wanted);
    let vague = r#"{"type":"result","status":"error","error":{"type":"unknown","message":"it went wrong"},"stats":{}}"#;
    let (_, summary) = parse_lines(Dialect::Gemini, &[vague], exit(173));
    assert_eq!((summary.class, summary.detail.as_deref()), (ExitClass::RateLimited, Some("it went wrong")));
    assert_eq!(parse_lines(Dialect::Gemini, &[vague], exit(0)).1.class, ExitClass::Failed);
    let done = r#"{"type":"result","status":"success","stats":{}}"#;
    assert_eq!(parse_lines(Dialect::Gemini, &[done], exit(173)).1.class, ExitClass::Done);
    let thought = r#"{"type":"result","status":"success","stats":{"total_tokens":1700,"input_tokens":1000,"output_tokens":500,"cached":100}}"#;
    let tokens = Tokens { input: 900, cached_input: 100, cache_write: 0, output: 700, reasoning: 200 };
    assert_eq!(parse_lines(Dialect::Gemini, &[thought], exit(0)).1.tokens, tokens);
}

#[test]
fn classifies_qwen_runs_without_result() {
    assert_eq!(parse_lines(Dialect::Qwen, &[], exit(55)).1.class, ExitClass::Budget);
    assert_eq!(parse_lines(Dialect::Qwen, &[], exit(1)).1.class, ExitClass::Failed);
    let full_stream = String::from_utf8(recorded_stream("qwen", "ok")).unwrap();
    let without_result: Vec<&str> = full_stream.lines().filter(|l| !l.contains("\"result\"")).collect();
    let (_, summary) = parse_lines(Dialect::Qwen, &without_result, signal(9));
    assert_eq!((summary.class, summary.tokens.input), (ExitClass::Interrupted, 3300));
}

#[test]
fn classifies_pi_by_stop_reason() {
    let run = |stop: &str, error: &str, end: &str| {
        let message = json!({"type":"message_end","message":{"role":"assistant","content":[],"stopReason":stop,"errorMessage":error}});
        let (_, summary) = parse_lines(
            Dialect::Pi,
            &["{\"type\":\"session\",\"id\":\"s\"}", &message.to_string(), end],
            exit(0),
        );
        summary.class
    };
    let end = "{\"type\":\"agent_end\",\"messages\":[]}";
    assert_eq!(run("stop", "", end), ExitClass::Done);
    assert_eq!(run("length", "", end), ExitClass::TokenLimit);
    assert_eq!(run("aborted", "", end), ExitClass::Interrupted);
    assert_eq!(run("toolUse", "", end), ExitClass::Interrupted);
    assert_eq!(run("error", "429 slow down", end), ExitClass::RateLimited);
    assert_eq!(run("stop", "", ""), ExitClass::Interrupted);
    // Pi announces another attempt and is killed before it.
    let retrying = "{\"type\":\"agent_end\",\"willRetry\":true}";
    assert_eq!(run("error", "429 slow down", retrying), ExitClass::RateLimited);
    let retry =
        r#"{"type":"auto_retry_start","attempt":1,"maxAttempts":3,"delayMs":2000,"errorMessage":"429"}"#;
    let (events, _) = parse_lines(Dialect::Pi, &[retry, r#"{"type":"message_update","usage":{}}"#], exit(0));
    let (attempt, of, delay) = (Some(1), Some(3), Some(Duration::from_secs(2)));
    assert_eq!(events, [StreamEvent::Retry { attempt, max_attempts: of, delay, reason: "429".to_owned() }]);
}

#[test]
fn parses_aider_usage_and_cost_text() {
    let (_, summary) = parse_lines(
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
    assert_eq!((summary.class, summary.tokens), (ExitClass::Done, tokens));
    assert_eq!(summary.cost.unwrap().amount.nanos(), 32_200_000);
    assert_eq!((summary.answer.as_deref(), summary.model.as_deref()), (Some("second"), Some("openai/gpt-5")));
    // An error after an answer ends the run. An error before an answer does not.
    let (error, tokens) = ("litellm.RateLimitError: too fast", "Tokens: 5 sent, 5 received.");
    assert_eq!(parse_lines(Dialect::Aider, &[tokens, error], exit(0)).1.class, ExitClass::RateLimited);
    assert_eq!(parse_lines(Dialect::Aider, &[error, "", tokens], exit(0)).1.class, ExitClass::Done);
    assert_eq!(
        parse_lines(Dialect::Aider, &["Model gpt-5 has hit a token limit!"], exit(0)).1.class,
        ExitClass::TokenLimit
    );
    assert_eq!(parse_lines(Dialect::Aider, &[tokens], signal(15)).1.class, ExitClass::Interrupted);
}

#[test]
fn aider_fails_only_on_its_own_exception() {
    let tokens = "Tokens: 5 sent, 5 received.";
    let traceback = |file: &str| {
        let frame = format!("  File \"/x/{file}\", line 1486, in send_message");
        let exception = "httpx.ConnectError: [Errno 111] Connection refused";
        [
            "Traceback (most recent call last):",
            &frame,
            "    yield from self.send(messages)",
            exception,
            "[Errno 111]",
        ]
        .map(str::to_owned)
    };
    let classify = |before: &[&str], file: &str, after: &[&str]| {
        let traceback_lines = traceback(file);
        let all: Vec<&str> = before
            .iter()
            .copied()
            .chain(traceback_lines.iter().map(String::as_str))
            .chain(after.iter().copied())
            .collect();
        let summary = parse_lines(Dialect::Aider, &all, exit(0)).1;
        (summary.class, summary.detail.unwrap_or_default())
    };
    let aider_file = "aider/coders/base_coder.py";
    let failed = (ExitClass::Unavailable, "httpx.ConnectError: [Errno 111] Connection refused".to_owned());
    assert_eq!(classify(&["Aider v0.86.2"], aider_file, &[]), failed);
    assert_eq!(classify(&[tokens], aider_file, &[]), failed);
    assert_eq!(classify(&[], aider_file, &["answer", tokens]).0, ExitClass::Done);
    assert_eq!(classify(&[tokens], "repo/tests/test_it.py", &[]).0, ExitClass::Done);
    // The traceback as Aider wraps it at 80 columns.
    let broken = [
        "Traceback (most recent call last):",
        "  File ",
        "\"/home/ann/.local/share/uv/tools/aider-chat/lib/python3.12/site-packages/aider/c",
        "oders/base_coder.py\", line 1486, in send_message",
        "    yield from self.send(messages, functions=self.functions)",
        "RecursionError: maximum recursion depth exceeded",
    ];
    let summary = parse_lines(Dialect::Aider, &broken, exit(0)).1;
    assert_eq!(summary.detail.as_deref(), Some("RecursionError: maximum recursion depth exceeded"));
}

#[test]
fn classifies_any_program_by_exit_code() {
    let run = |exit_status: Exit| {
        parse_lines(
            Dialect::Text,
            &["one", "", "{\"type\":\"result\"}", "\u{1b}[1mtwo\u{1b}[0m"],
            exit_status,
        )
    };
    let (events, summary) = run(exit(0));
    assert_eq!((summary.class, summary.detail), (ExitClass::Done, None));
    assert_eq!(summary.answer.as_deref(), Some("one\n\n{\"type\":\"result\"}\ntwo"));
    assert_eq!(events.len(), 3);
    let (_, failed) = run(exit(3));
    assert_eq!((failed.class, failed.detail.as_deref()), (ExitClass::Failed, Some("two")));
    assert_eq!(run(signal(15)).1.class, ExitClass::Interrupted);
    assert_eq!(run(exit(139)).1.class, ExitClass::Crashed);
    let (_, limited) = parse_lines(Dialect::Text, &["HTTP 429"], exit(1));
    assert_eq!((limited.class, limited.failure), (ExitClass::RateLimited, Some(FailureKind::RateLimit)));
    let long: Vec<String> = (0..20_000).map(|n| format!("line {n} ü")).collect();
    let long: Vec<&str> = long.iter().map(String::as_str).collect();
    let answer = parse_lines(Dialect::Text, &long, exit(0)).1.answer.unwrap();
    assert!(answer.ends_with("line 19999 ü") && answer.len() <= 64 * 1024, "{}", answer.len());
}

#[test]
fn reads_gemini_retries_from_stderr() {
    let mut reader = OutputReader::new(Dialect::Gemini, &SessionTotals::default());
    let mut events = Vec::new();
    let stderr = "Warning: no colors\nAttempt 1 failed with status 429. Retrying with backoff... _ApiError: {\n    at x (y.js:1:2)\n\
                Attempt 4 failed: Rate limit reached\u{2026} Retrying after 32691ms...\nAttempt x failed. Retrying\nAttempt 9 failed for good\n";
    for chunk in stderr.as_bytes().chunks(7) {
        reader.feed_stderr(chunk, &mut events);
    }
    let retry = |attempt, delay, why: &str| StreamEvent::Retry {
        attempt: Some(attempt),
        max_attempts: None,
        delay,
        reason: why.to_owned(),
    };
    assert_eq!(
        events,
        [
            retry(1, None, "status 429"),
            retry(4, Some(Duration::from_millis(32691)), "Rate limit reached\u{2026}")
        ]
    );
    assert_eq!(reader.progress().retries, 2);
}

#[test]
fn reads_refused_tools_of_each_dialect() {
    let acp = r#"{"jsonrpc":"2.0","id":"p1","method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"c","title":"rm","kind":"execute","rawInput":{"command":"rm"}},"options":[]}}"#;
    let (events, _) = parse_lines(Dialect::Acp, &[acp], exit(0));
    let input = json!({"command": "rm"});
    assert_eq!(
        events,
        [StreamEvent::PermissionRequested { id: "p1".to_owned(), tool: "execute".to_owned(), input }]
    );
    let codex = r#"{"type":"item.completed","item":{"id":"i","type":"command_execution","command":"rm","aggregated_output":"","exit_code":null,"status":"declined"}}"#;
    assert_eq!(refused_tools(Dialect::Codex, &[codex]), ["command_execution"]);
    let gemini = r#"{"type":"tool_result","tool_id":"write_file__1","status":"error","error":{"type":"policy_violation","message":"Tool execution denied by policy."}}"#;
    assert_eq!(refused_tools(Dialect::Gemini, &[gemini]), ["write_file"]);
    let qwen = r#"{"type":"result","subtype":"success","is_error":false,"session_id":"s","permission_denials":[{"tool_name":"edit","tool_use_id":"1"}]}"#;
    assert_eq!(refused_tools(Dialect::Qwen, &[qwen]), ["edit"]);
    assert_eq!(replay("copilot", "denied").1.refusals[0].tool, "create");
}

#[test]
fn reads_copilot_retries_from_ephemeral_lines() {
    let (events, _) = replay("copilot", "error-401");
    let retries = events.iter().filter(|e| matches!(e, StreamEvent::Retry { .. })).count();
    assert_eq!(retries, 2);
    let none = SessionTotals::default();
    assert_eq!(parse_stream(Dialect::Copilot, &none, b"{\"ephemeral\":true,\"type\":\"x\"}", exit(0)).0, []);
}

#[test]
fn accepts_only_plain_session_ids() {
    let run = |id: &str| {
        let line = json!({"type": "result", "subtype": "success", "is_error": false, "session_id": id});
        parse_lines(Dialect::Claude, &[&line.to_string()], exit(0)).1.session
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
fn escapes_terminal_control_characters() {
    let text = [
        json!({"type": "assistant", "message": {"id": "m", "content": [{"type": "tool_use", "id": "t", "name": "x\u{1b}[2J", "input": {}}]}}),
        json!({"type": "result", "subtype": "success", "is_error": true, "result": "boom\nother: done\u{1b}]0;evil\u{7}", "session_id": "s"}),
    ];
    let text = text.map(|line| line.to_string());
    let (_, summary) = parse_lines(Dialect::Claude, &[&text[0], &text[1]], exit(1));
    assert_eq!(summary.detail.as_deref(), Some("boom other: done\\u{1b}]0;evil\\u{7}"));
    assert_eq!(summary.last_tool.as_deref(), Some("x\\u{1b}[2J"));
}

#[test]
fn opencode_recovered_from_error_is_done() {
    let error = r#"{"type":"error","sessionID":"s","error":{"name":"ContextOverflowError","data":{"message":"too long"}}}"#;
    let step = |reason: &str| {
        let used = json!({"input": 10, "output": 1, "cache": {"read": 0, "write": 0}});
        json!({"type":"step_finish","sessionID":"s","part":{"reason":reason,"tokens":used,"cost":0}})
            .to_string()
    };
    let (tool_step, stop) = (step("tool-calls"), step("stop"));
    let run = |output_lines: &[&str], exit_status: Exit| {
        parse_lines(Dialect::OpenCode, output_lines, exit_status).1
    };
    let recovered = run(&[&tool_step, error, &stop], exit(1));
    assert_eq!(
        (recovered.class, recovered.detail.as_deref()),
        (ExitClass::Done, Some("exit code 1 after its result"))
    );
    assert_eq!(run(&[&tool_step, &stop, error], exit(1)).class, ExitClass::TokenLimit);
    // No error explains the exit code.
    assert_eq!(run(&[&tool_step, &stop], exit(1)).class, ExitClass::Crashed);
    assert_eq!(run(&[&tool_step, error, &stop], exit(139)).class, ExitClass::Done, "as without an error");
}

#[test]
fn pi_with_truncated_last_answer_is_not_done() {
    let message = |content: serde_json::Value, input: u64| {
        let usage = json!({"input": input, "output": input});
        let message = json!({"role":"assistant","content":content,"stopReason":"stop","usage":usage});
        json!({"type":"message_end","message":message}).to_string()
    };
    let text_content = || json!([{"type":"text","text":"half a"}]);
    let run = |text: &[&str]| {
        let all: Vec<&str> =
            [&["{\"type\":\"session\",\"id\":\"s\"}"], text, &["{\"type\":\"agent_end\"}"]].concat();
        parse_lines(Dialect::Pi, &all, exit(0)).1.class
    };
    assert_eq!(run(&[&message(text_content(), 10), &message(text_content(), 0)]), ExitClass::Unavailable);
    assert_eq!(run(&[&message(json!([]), 0)]), ExitClass::Unavailable);
    assert_eq!(run(&[&message(text_content(), 0), &message(text_content(), 10)]), ExitClass::Done);
    // Some servers never count tokens.
    assert_eq!(run(&[&message(text_content(), 0)]), ExitClass::Done);
}

#[test]
fn excludes_window_usage_from_next_run() {
    let stale_totals =
        SessionTotals { session: Some("s".to_owned()), is_outdated: true, ..SessionTotals::default() };
    let usage = |input: u64| json!({"input_tokens": input, "output_tokens": 0});
    let init = r#"{"type":"system","subtype":"init","session_id":"s"}"#;
    let message =
        json!({"type":"assistant","message":{"id":"m","content":[],"usage":usage(1000)}}).to_string();
    let end =
        json!({"type":"result","subtype":"success","is_error":false,"session_id":"s","usage":usage(3100)})
            .to_string();
    let run = |before: &SessionTotals| {
        let text = [init, &message, &end].join("\n");
        parse_stream(Dialect::Qwen, before, text.as_bytes(), exit(0)).1
    };
    let first = run(&stale_totals);
    assert_eq!((first.class, first.tokens.input), (ExitClass::Done, 1000));
    assert_eq!(
        (first.session_totals.tokens.input, first.session_totals.is_outdated),
        (3100, false),
        "the next run knows it"
    );
    assert_eq!(run(&SessionTotals::default()).tokens.input, 3100);
    // Copilot reports the usage of its session only at its end.
    let mut reader = OutputReader::new(Dialect::Copilot, &stale_totals);
    reader.feed_stdout(br#"{"type":"session.start","data":{"sessionId":"s"}}"#, &mut Vec::new());
    reader.feed_stdout(b"\n", &mut Vec::new());
    let usage_file = br#"{"modelMetrics":{"m":{"usage":{"inputTokens":4200,"outputTokens":1}}}}"#;
    reader.read_usage_file(usage_file, &mut Vec::new());
    assert!(reader.progress().tokens.is_zero());
}

#[test]
fn codex_commands_come_without_their_shell() {
    let input = |command: &str| {
        let item = json!({"id": "i", "type": "command_execution", "command": command});
        let line = json!({"type": "item.started", "item": item}).to_string();
        let (events, _) = parse_lines(Dialect::Codex, &[&line], exit(0));
        let StreamEvent::ToolUse { input, .. } = &events[0] else { panic!("{events:?}") };
        input["command"].as_str().unwrap().to_owned()
    };
    for (line, command) in [
        ("/bin/bash -lc 'cargo test -p printer'", "cargo test -p printer"),
        ("bash -lc true", "true"),
        (r#"/bin/bash -lc "printf '%s\\n' \"\$HOME\"""#, r#"printf '%s\n' "$HOME""#),
        (r#"zsh -c 'echo '"it's"#, r#"zsh -c 'echo '"it's"#),
        ("/bin/bash -lc 'a' b", "/bin/bash -lc 'a' b"),
        ("bash run.sh", "bash run.sh"),
        ("cargo -c 'x'", "cargo -c 'x'"),
    ] {
        assert_eq!(input(line), command);
    }
}
