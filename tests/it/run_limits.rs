//! Owns the tests of what ends a run or keeps it going: signs of life, a runaway model, second wishes; and what is told meanwhile.

use std::process::Stdio;
use std::time::{Duration, Instant};

use super::runs::with_claude;
use super::support::Sandbox;
use super::support::patience::{Beside, wait_until};

/// A recorded stream of an agent.
fn stream(path: &str) -> String {
    format!("{}/tests/fixtures/streams/{path}", env!("CARGO_MANIFEST_DIR"))
}

/// How long a run lasted that did this once, and said nothing any more.
fn silent_after(sign: &str) -> Duration {
    // It talks until somebody is known to listen.
    let script = format!(
        "begin; until grep -q s-1 \"$ROOT/repo/.git/proq/lanes/x/runs/1.toml\"; do begin; done; {sign}; exec sleep 600"
    );
    let sandbox = with_claude(&script);
    sandbox.git(&["config", "proq.agent.stall", "3s"]);
    let start = Instant::now();
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "x", "--wait"]).fails(4);
    assert_eq!(sandbox.row("x")["state"], "stalled");
    start.elapsed()
}

#[test]
fn a_commit_or_a_note_gives_a_silent_run_its_time_anew() {
    std::thread::scope(|scope| {
        for sign in ["git commit -q --allow-empty -m sign", "echo far > STATUS.md"] {
            scope.spawn(move || {
                let lasted = silent_after(sign);
                assert!(lasted >= Duration::from_secs(6), "{sign}: {lasted:?}");
            });
        }
    });
}

#[test]
fn a_model_that_breaks_off_over_and_over_is_ended() {
    let sandbox = Sandbox::new();
    let cut = stream("opencode/stream-cut-loops.jsonl");
    sandbox.program("opencode", &format!("cat '{cut}' '{cut}'; exec sleep 600"));
    sandbox.git(&["config", "proq.agent.stall", "40s"]);
    let _ = sandbox.proq(&["spawn", "opencode", "do it", "-n", "x", "--wait"]).fails(4);
    assert_eq!(sandbox.last_run("x")["class"], "runaway");
}

#[test]
fn whoever_asks_twice_does_not_wait_for_an_agent_that_will_not_go() {
    let sandbox = Sandbox::new();
    sandbox.pipe("up");
    sandbox.pipe("asked");
    sandbox.git(&["config", "proq.agent.stopGrace", "90"]);
    sandbox
        .start_lane("x", "trap 'echo > $ROOT/asked' TERM; echo > $ROOT/up; while :; do sleep 600 || :; done");
    let _ = sandbox.hear("up");
    let _ = sandbox.started_row("x");
    let stop =
        || Beside(sandbox.proq_command(&sandbox.repo, &["stop", "x"]).stdout(Stdio::null()).spawn().unwrap());
    let mut first = stop();
    let _ = sandbox.hear("asked");
    let mut second = stop();
    assert_eq!((second.code(), first.code()), (Some(0), Some(0)));
    assert_eq!(sandbox.row("x")["state"], "stopped");
}

#[test]
fn what_copilot_has_used_is_in_its_file() {
    let sandbox = Sandbox::new();
    let (said, used) = (stream("copilot/ok.jsonl"), stream("copilot/usage-output-file.json"));
    sandbox.program(
        "copilot",
        &format!(
            "while [ $# -gt 0 ]; do test \"$1\" != --usage-output-file || cp '{used}' \"$2\"; shift; done; echo 1 > one; cat '{said}'"
        ),
    );
    let _ = sandbox.proq(&["spawn", "copilot", "do it", "-n", "x", "--wait"]).ok();
    let tokens = &sandbox.last_run("x")["account"]["tokens"];
    assert_eq!((&tokens["input"], &tokens["cached_input"]), (&5400.into(), &1000.into()), "{tokens}");
}

#[test]
fn what_an_agent_does_is_told_while_it_is_at_it() {
    let tool = r#"{"type":"assistant","message":{"id":"m1","usage":{"input_tokens":70,"output_tokens":3},"content":[{"type":"tool_use","id":"t1","name":"Bash","input":{}}]}}"#;
    let sandbox = with_claude(&format!("begin; echo '{tool}'; read go < \"$ROOT/go\"; echo 1 > one; well"));
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
    assert!(shown.contains("1 tool call, last Bash"), "{shown}");
    let listed = sandbox.proq(&["list", "--wide", "--json"]).json();
    assert_eq!(listed["lanes"][0]["account"]["tool_calls"], 1, "{listed}");
    sandbox.tell("go");
    let _ = sandbox.proq(&["wait", "x"]).ok();
    assert!(!sandbox.repo.join(".git/proq/lanes/x/runs/1.live.json").exists());
}

#[cfg(target_os = "linux")]
#[test]
fn what_a_profile_leaves_running_on_purpose_is_left_alone() {
    let sandbox = with_claude(
        "begin; setsid sh -c 'echo $$ > \"$ROOT/pid\"; exec sleep 600' < /dev/null > /dev/null 2>&1 & read up < \"$ROOT/pid\"
        echo $up > \"$ROOT/stays\"; echo 1 > one; well",
    );
    sandbox.pipe("pid");
    let settings = "[agents.mine]\nlike = 'claude'\nstrays = 'none'\n";
    sandbox.write_in(&sandbox.root(), "home/.config/git-proq/config.toml", settings);
    for (agent, stays) in [("mine", true), ("claude", false)] {
        let _ = sandbox.proq(&["spawn", agent, "do it", "-n", agent, "--wait"]).ok();
        let pid = std::fs::read_to_string(sandbox.root().join("stays")).unwrap();
        assert_eq!(sandbox.lives(pid.trim()), stays, "{agent}");
        let _ = sandbox.sh(&format!("kill -9 {} 2> /dev/null || true", pid.trim()));
    }
}

#[test]
fn an_agent_that_runs_out_of_time_without_a_word_is_told_as_silent() {
    let sandbox = Sandbox::new();
    sandbox.program("qwen", "exec sleep 600");
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "x", "qwen", "do it", "--max-time", "2s"]).fails(4);
    let detail = sandbox.row("x")["detail"].as_str().unwrap().to_owned();
    assert!(detail.starts_with("it took longer than it may; it had written nothing for "), "{detail}");
}

#[test]
fn an_agent_that_sends_its_request_again_and_again_is_told_as_that() {
    let sandbox = Sandbox::new();
    let script = "for n in 1 2 3; do echo \"Attempt $n failed with status 429. Retrying with backoff... _Error: {\" >&2; echo \"    at x (y.js)\" >&2; done
        exec sleep 600";
    sandbox.program("gemini", script);
    let _ = sandbox.proq(&["spawn", "-n", "x", "gemini", "do it", "--max-time", "5s"]).ok();
    let told = || sandbox.events("agent.retry");
    // While it lasts.
    wait_until("the first word of it", || !told().is_empty());
    let first = told()[0]["message"].as_str().unwrap().to_owned();
    assert!(first.starts_with("lane 'x': gemini sends its request again"), "{first}");
    let _ = sandbox.proq(&["wait", "x"]).fails(4);
    assert_eq!(
        sandbox.row("x")["detail"],
        "it took longer than it may; it was sending its request again, 3 times so far: status 429"
    );
    assert!((1..=2).contains(&told().len()), "{:?}", told());
}
