//! Limits that end a run or keep it going: signs of life, a runaway model, repeated stop requests; and
//! activity shown during a run.

use std::process::Stdio;
use std::time::{Duration, Instant};

use proq_test_kit::Sandbox;
use proq_test_kit::claude::sandbox_with_claude;
use proq_test_kit::waiting::{KilledOnDrop, wait_until};

/// Returns the path of a recorded stream of an agent.
fn stream_path(path: &str) -> String {
    format!("{}/tests/fixtures/streams/{path}", env!("CARGO_MANIFEST_DIR"))
}

/// Returns how long a run lasted that ran this command once and then was silent.
fn run_time_after(sign: &str) -> Duration {
    // The agent prints until the supervisor is known to read its output.
    let script = format!(
        "begin; until grep -q s-1 \"$ROOT/repo/.git/proq/lanes/x/runs/1.toml\"; do begin; done; {sign}; exec sleep 600"
    );
    let sandbox = sandbox_with_claude(&script);
    sandbox.git(&["config", "proq.agent.stall", "3s"]);
    let start = Instant::now();
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "x", "--wait"]).fails(4);
    assert_eq!(sandbox.row("x")["state"], "stalled");
    start.elapsed()
}

/// Promise: concurrency/stall-timeout
#[test]
fn commit_or_status_note_resets_stall_timeout() {
    std::thread::scope(|scope| {
        for sign in ["git commit -q --allow-empty -m sign", "echo far > STATUS.md"] {
            scope.spawn(move || {
                let run_time = run_time_after(sign);
                assert!(run_time >= Duration::from_secs(6), "{sign}: {run_time:?}");
            });
        }
    });
}

#[test]
fn repeatedly_truncated_stream_ends_run() {
    let sandbox = Sandbox::new();
    let cut = stream_path("opencode/stream-cut-loops.jsonl");
    sandbox.program("opencode", &format!("cat '{cut}' '{cut}'; exec sleep 600"));
    sandbox.git(&["config", "proq.agent.stall", "40s"]);
    let _ = sandbox.proq(&["spawn", "opencode", "do it", "-n", "x", "--wait"]).fails(4);
    assert_eq!(sandbox.last_run("x")["class"], "runaway");
}

/// Promise: concurrency/stall-timeout
#[test]
fn second_stop_kills_unresponsive_agent() {
    let sandbox = Sandbox::new();
    sandbox.pipe("up");
    sandbox.pipe("asked");
    sandbox.git(&["config", "proq.agent.stopGrace", "90"]);
    sandbox
        .start_lane("x", "trap 'echo > $ROOT/asked' TERM; echo > $ROOT/up; while :; do sleep 600 || :; done");
    let _ = sandbox.read_pipe("up");
    let _ = sandbox.started_row("x");
    let stop = || {
        KilledOnDrop(
            sandbox.proq_command(&sandbox.repo, &["stop", "x"]).stdout(Stdio::null()).spawn().unwrap(),
        )
    };
    let mut first = stop();
    let _ = sandbox.read_pipe("asked");
    let mut second = stop();
    assert_eq!((second.exit_code(), first.exit_code()), (Some(0), Some(0)));
    assert_eq!(sandbox.row("x")["state"], "stopped");
}

#[test]
fn reads_copilot_usage_from_its_file() {
    let sandbox = Sandbox::new();
    let (output, used) = (stream_path("copilot/ok.jsonl"), stream_path("copilot/usage-output-file.json"));
    sandbox.program(
        "copilot",
        &format!(
            "while [ $# -gt 0 ]; do test \"$1\" != --usage-output-file || cp '{used}' \"$2\"; shift; done; echo 1 > one; cat '{output}'"
        ),
    );
    let _ = sandbox.proq(&["spawn", "copilot", "do it", "-n", "x", "--wait"]).ok();
    let tokens = &sandbox.last_run("x")["account"]["tokens"];
    assert_eq!((&tokens["input"], &tokens["cached_input"]), (&5400.into(), &1000.into()), "{tokens}");
}

#[test]
fn shows_activity_while_agent_runs() {
    let tool = r#"{"type":"assistant","message":{"id":"m1","usage":{"input_tokens":70,"output_tokens":3},"content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"cargo test"}}]}}"#;
    let sandbox =
        sandbox_with_claude(&format!("begin; echo '{tool}'; read go < \"$ROOT/go\"; echo 1 > one; well"));
    sandbox.pipe("go");
    let _ = sandbox.proq(&["spawn", "-n", "x", "claude", "do it"]).ok();
    wait_until("its tool is told", || sandbox.last_run("x")["account"]["tool_calls"] == 1);
    let run = sandbox.last_run("x");
    assert_eq!(
        (&run["ended"], &run["account"]["last_tool"]),
        (&serde_json::Value::Null, &"Bash".into()),
        "{run}"
    );
    let shown = sandbox.proq(&["show", "x"]).ok();
    assert!(shown.contains("1 tool call, last `cargo test`"), "{shown}");
    let listed = sandbox.proq(&["list", "--wide", "--json"]).json();
    assert_eq!(listed["lanes"][0]["account"]["tool_calls"], 1, "{listed}");
    sandbox.write_pipe("go");
    let _ = sandbox.proq(&["wait", "x"]).ok();
    assert!(!sandbox.repo.join(".git/proq/lanes/x/runs/1.live.json").exists());
}

#[cfg(target_os = "linux")]
#[test]
fn keeps_processes_that_profile_leaves_running() {
    let sandbox = sandbox_with_claude(
        "begin; setsid sh -c 'echo $$ > \"$ROOT/pid\"; exec sleep 600' < /dev/null > /dev/null 2>&1 & read up < \"$ROOT/pid\"
        echo $up > \"$ROOT/stays\"; echo 1 > one; well",
    );
    sandbox.pipe("pid");
    let settings = "[agents.mine]\nlike = 'claude'\nstrays = 'none'\n";
    sandbox.write_in(&sandbox.root(), "home/.config/git-proq/config.toml", settings);
    for (agent, survives) in [("mine", true), ("claude", false)] {
        let _ = sandbox.proq(&["spawn", agent, "do it", "-n", agent, "--wait"]).ok();
        let pid = std::fs::read_to_string(sandbox.root().join("stays")).unwrap();
        assert_eq!(sandbox.is_alive(pid.trim()), survives, "{agent}");
        let _ = sandbox.sh(&format!("kill -9 {} 2> /dev/null || true", pid.trim()));
    }
}

#[test]
fn silent_timeout_is_reported_as_silent() {
    let sandbox = Sandbox::new();
    sandbox.program("qwen", "exec sleep 600");
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "x", "qwen", "do it", "--max-time", "2s"]).fails(4);
    let detail = sandbox.row("x")["detail"].as_str().unwrap().to_owned();
    assert!(detail.starts_with("it reached its time limit; it had written nothing for "), "{detail}");
}

#[test]
fn retried_requests_are_reported_as_retries() {
    let sandbox = Sandbox::new();
    let script = "for n in 1 2 3; do echo \"Attempt $n failed with status 429. Retrying with backoff... _Error: {\" >&2; echo \"    at x (y.js)\" >&2; done
        exec sleep 600";
    sandbox.program("gemini", script);
    let _ = sandbox.proq(&["spawn", "-n", "x", "gemini", "do it", "--max-time", "5s"]).ok();
    let retry_events = || sandbox.events("agent.retry");
    // Reported while the run lasts.
    wait_until("the first word of it", || !retry_events().is_empty());
    let first = retry_events()[0]["message"].as_str().unwrap().to_owned();
    assert!(first.starts_with("lane 'x': gemini retries its request"), "{first}");
    let _ = sandbox.proq(&["wait", "x"]).fails(4);
    assert_eq!(
        sandbox.row("x")["detail"],
        "it reached its time limit; it was retrying its request, 3 times so far: status 429"
    );
    assert!((1..=2).contains(&retry_events().len()), "{:?}", retry_events());
}
