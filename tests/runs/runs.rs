//! Runs of known agents: output that is parsed, limits, retries, and processes left behind.

use proq_test_kit::Sandbox;
use proq_test_kit::claude::{OVERLOADED_RESULT, sandbox_with_claude};

#[test]
fn reads_tokens_cost_and_session_from_stream() {
    let sandbox = sandbox_with_claude("begin; echo new > n; well");
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "x", "--wait"]).ok();
    let run = sandbox.last_run("x");
    let account = &run["account"];
    assert_eq!(account["session"], "s-1", "{run}");
    assert_eq!(account["model"], "claude-x");
    assert_eq!(account["cost"]["nanos"], 12_500_000);
    let tokens = &account["tokens"];
    assert_eq!((tokens["input"].as_u64(), tokens["cached_input"].as_u64()), (Some(100), Some(20)));
    assert_eq!((tokens["cache_write"].as_u64(), tokens["output"].as_u64()), (Some(5), Some(50)));
    assert_eq!((&run["class"], &run["outcome"]), (&"done".into(), &"done".into()));
    assert!(sandbox.proq(&["show", "x"]).ok().contains("$0.01"));
}

#[test]
fn error_result_fails_run_despite_exit_code() {
    let refused = OVERLOADED_RESULT.replace("529 Overloaded", "401 Invalid API key").replace("529", "401");
    let sandbox = sandbox_with_claude(&format!("begin; echo half > half; echo '{refused}'; exit 0"));
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "x", "--wait"]).fails(4);
    let run = sandbox.last_run("x");
    assert_eq!(
        (&run["class"], &run["outcome"], run["attempt"].as_u64()),
        (&"auth".into(), &"failed".into(), Some(1))
    );
    assert!(sandbox.proq(&["show", "x"]).ok().contains("401 Invalid API key"));
}

#[test]
fn run_without_result_is_interrupted() {
    let sandbox = sandbox_with_claude("begin; echo half > half; exit 0");
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "x", "--wait"]).fails(4);
    let run = sandbox.last_run("x");
    assert_eq!((&run["class"], run["attempt"].as_u64()), (&"interrupted".into(), Some(1)));
}

#[test]
fn crashed_agent_is_retried_up_to_limit() {
    let sandbox = sandbox_with_claude("begin; echo half > half; kill -9 $$");
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "x", "--wait"]).fails(4);
    let run = sandbox.last_run("x");
    assert_eq!((&run["class"], run["attempt"].as_u64()), (&"crashed".into(), Some(3)));
    assert_eq!(sandbox.git_in(&sandbox.lane_path("x"), &["status", "--short"]), "?? half");
}

#[test]
fn rate_limited_run_is_retried_from_its_start() {
    // The first two tries leave a commit and a file behind.
    let script = "begin; if [ $n -lt 3 ]; then echo $n > c; git add c; git commit -q -m try; echo $n > left; busy; exit 1; fi
        ls > seen; well";
    let sandbox = sandbox_with_claude(script);
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "x", "--wait"]).ok();
    assert_eq!(sandbox.git(&["show", "proq/x:seen"]), "a.txt\nseen");
    let shown = sandbox.proq(&["show", "x", "--json"]).json();
    let classes: Vec<_> = shown["runs"].as_array().unwrap().iter().map(|run| run["class"].clone()).collect();
    assert_eq!(classes, ["rate-limited", "rate-limited", "done"]);
    assert_eq!(sandbox.agent_record("prompt.1"), sandbox.agent_record("prompt.3"));
    // The work of the failed tries is kept.
    let detail = shown["runs"][0]["detail"].as_str().unwrap();
    let saved_text = "its commits are saved: git log refs/proq/saved/x-";
    assert!(detail.contains(saved_text) && detail.contains("saved: git proq snap show "), "{detail}");
    let log = sandbox.proq(&["op", "log"]).ok();
    assert!(log.contains("proq/x ") && !log.contains("records only"), "{log}");
    let log = sandbox.proq(&["op", "log", "--json"]).ok();
    assert!(log.contains("\"via\": \"supervisor\"") && log.contains("\"via\": \"terminal\""), "{log}");
    let saved = "git for-each-ref --format='%(refname):c' refs/proq/saved/ | xargs -n1 git show";
    assert_eq!(sandbox.sh(saved), "1\n2");
    let snaps = sandbox.proq(&["snap", "list", "--json"]).json();
    let snapshots = snaps["snapshots"].as_array().unwrap().iter();
    assert_eq!(
        snapshots.filter(|s| s["why"].as_str().unwrap().contains("when it failed")).count(),
        2,
        "{snaps}"
    );
    sandbox.assert_healthy();
}

#[test]
fn unavailable_service_is_retried_from_run_start() {
    // Recorded output of Claude Code when its service had an internal error, and when it was unreachable.
    let recorded_stream = |name: &str| {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/streams/claude");
        format!("cat '{folder}/{name}.jsonl'; exit 1")
    };
    let script = format!(
        "if [ $n -lt 3 ]; then echo half > half; fi; case $n in 1) {};; 2) {};; 3) {};; esac; begin; echo $n > new; well",
        recorded_stream("error-503"),
        recorded_stream("refused"),
        recorded_stream("error-529")
    );
    let sandbox = sandbox_with_claude(&script);
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "x", "--wait"]).ok();
    let shown = sandbox.proq(&["show", "x", "--json"]).json();
    let classes: Vec<_> = shown["runs"].as_array().unwrap().iter().map(|run| run["class"].clone()).collect();
    assert_eq!(classes, ["unavailable", "unavailable", "rate-limited", "done"]);
    assert_eq!(sandbox.git(&["ls-tree", "--name-only", "proq/x"]), "a.txt\nnew");
    // Retries are bounded.
    let sandbox = sandbox_with_claude(&recorded_stream("refused"));
    sandbox.git(&["config", "proq.agent.rateLimitRetries", "2"]);
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "x", "--wait"]).fails(4);
    let run = sandbox.last_run("x");
    assert_eq!((&run["class"], run["attempt"].as_u64()), (&"unavailable".into(), Some(3)));
}

/// Returns a sandbox whose agent has used up its plan in its first run, until `seconds` after the fixed time
/// of the tests, and records when it runs.
fn sandbox_with_used_up_plan(seconds: u32) -> Sandbox {
    const NOW: u32 = 1_767_323_045;
    let limit = format!("Claude AI usage limit reached|{}", NOW + seconds);
    let result = OVERLOADED_RESULT
        .replace("\"api_error_status\":529,", "")
        .replace("API Error: 529 Overloaded", &limit);
    sandbox_with_claude(&format!(
        "date +%s > \"$notes/at.$n\"; begin; if [ $n = 1 ]; then echo '{result}'; exit 1; fi; echo $n > new; well"
    ))
}

#[test]
fn waits_until_usage_limit_is_lifted() {
    let sandbox = sandbox_with_used_up_plan(2);
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "x", "--wait"]).ok();
    let start_time = |n: u32| sandbox.agent_record(&format!("at.{n}")).trim().parse::<u64>().unwrap();
    assert!(start_time(2) >= start_time(1) + 2, "{} {}", start_time(1), start_time(2));
    let shown = sandbox.proq(&["show", "x", "--json"]).json();
    let detail = shown["runs"][0]["detail"].as_str().unwrap();
    assert!(
        detail.ends_with("rate-limited; it is tried again at 03:04, when its limit is lifted"),
        "{detail}"
    );
}

#[test]
fn does_not_wait_for_distant_limit_reset() {
    let sandbox = sandbox_with_used_up_plan(7200);
    let out = sandbox.proq(&["spawn", "claude", "do it", "-n", "x", "--wait"]).fails(4);
    assert!(out.contains("its limit is lifted at 05:04, which it does not wait for"), "{out}");
    assert_eq!(sandbox.last_run("x")["attempt"], 1);
    // With a longer limit on the wait, the run waits.
    let sandbox = sandbox_with_used_up_plan(7200);
    sandbox.git(&["config", "proq.agent.resetWait", "3h"]);
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "x"]).ok();
    sandbox.wait_for_events("agent.retry", "x", 1);
    assert_eq!(sandbox.row("x")["state"], "running");
    let list = sandbox.proq(&["list"]).ok();
    assert!(list.contains(" running, waits (rate-limited)  "), "{list}");
    let _ = sandbox.proq(&["stop", "x"]).ok();
    assert_eq!(sandbox.row("x")["state"], "stopped");
}

#[test]
fn rate_limit_retries_are_bounded() {
    let sandbox = sandbox_with_claude("begin; busy; exit 1");
    sandbox.git(&["config", "proq.agent.rateLimitRetries", "2"]);
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "x", "--wait"]).fails(4);
    let run = sandbox.last_run("x");
    assert_eq!((&run["class"], run["attempt"].as_u64()), (&"rate-limited".into(), Some(3)));
}

#[test]
fn lane_with_user_work_is_not_reset() {
    let sandbox = sandbox_with_claude("begin; busy; exit 1");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    sandbox.write_in(&sandbox.lane_path("x"), "mine", "mine");
    let _ = sandbox.proq(&["run", "x", "claude", "do it", "--wait"]).fails(4);
    assert_eq!(sandbox.last_run("x")["attempt"], 1);
    assert_eq!(std::fs::read_to_string(sandbox.lane_path("x").join("mine")).unwrap(), "mine");
}

#[test]
fn stop_ends_wait_for_retry() {
    let sandbox = sandbox_with_claude("begin; busy; exit 1");
    sandbox.git(&["config", "proq.agent.backoff", "600"]);
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "x"]).ok();
    sandbox.wait_for_events("agent.retry", "x", 1);
    let _ = sandbox.proq(&["stop", "x"]).ok();
    assert_eq!(
        (&sandbox.row("x")["state"], sandbox.last_run("x")["attempt"].as_u64()),
        (&"stopped".into(), Some(1))
    );
    let shown = sandbox.proq(&["show", "x"]).ok();
    assert!(shown.contains("stopped before it was tried again"), "{shown}");
    assert!(!shown.contains("it is tried again"), "{shown}");
}

#[test]
fn reason_of_a_failed_run_is_shown_once() {
    let sandbox = sandbox_with_claude("begin; busy; exit 1");
    sandbox.git(&["config", "proq.agent.rateLimitRetries", "0"]);
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "x", "--wait"]).fails(4);
    let shown = sandbox.proq(&["show", "x"]).to_text();
    assert_eq!(shown.matches("529").count(), 1, "{shown}");
    assert!(shown.contains("hint: continue it: git proq send x continue\n"), "{shown}");
}

#[test]
fn agent_that_hangs_after_result_is_done() {
    let sandbox = sandbox_with_claude("begin; echo new > n; well; exec sleep 600");
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "x", "--wait"]).ok();
    assert_eq!(sandbox.row("x")["state"], "done");
}

#[test]
fn silent_agent_is_stalled() {
    let sandbox = sandbox_with_claude("begin; exec sleep 600");
    sandbox.git(&["config", "proq.agent.stall", "1s"]);
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "x", "--wait"]).fails(4);
    assert_eq!(sandbox.row("x")["state"], "stalled");
}

#[test]
fn max_time_ends_run() {
    let script = "begin; while :; do echo '{\"type\":\"system\",\"subtype\":\"x\"}'; sleep 0.1; done";
    let sandbox = sandbox_with_claude(script);
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "x", "--wait", "--max-time", "1s"]).fails(4);
    assert_eq!(sandbox.last_run("x")["class"], "timeout");
}

#[cfg(target_os = "linux")]
#[test]
fn ends_processes_that_escaped_the_agent() {
    let sandbox = Sandbox::new();
    let pids = sandbox.root().join("pids");
    sandbox.pipe("fled");
    let escape_command = |how: &str| {
        let pipe = sandbox.root().join("fled");
        format!("{how} sh -c 'echo $$ > {}; exec sleep 600' </dev/null >/dev/null 2>&1 &", pipe.display())
    };
    // A process with a session of its own, one without the environment, and one whose parents are gone.
    let script = format!(
        "{}\n{}\n( {} )\ntimeout 60 sh -c 'for n in 1 2 3; do read pid; echo $pid; done' <> '{}' > '{pids}' || exit 1; echo new > n",
        escape_command("setsid"),
        escape_command("env -i PATH=\"$PATH\" setsid"),
        escape_command("setsid"),
        sandbox.root().join("fled").display(),
        pids = pids.display()
    );
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "x", "--", "sh", "-c", &script]).ok();
    let text = std::fs::read_to_string(&pids).unwrap();
    assert_eq!(text.lines().count(), 3);
    assert!(text.lines().all(|pid| !sandbox.is_alive(pid)), "{text}");
    assert_eq!(sandbox.row("x")["state"], "done");
}

#[test]
fn lane_started_by_agent_outlives_it() {
    let sandbox = Sandbox::new();
    let script = "git-proq spawn -n inner -- sleep 600; echo new > n";
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "outer", "--", "sh", "-c", script]).ok();
    assert_eq!(sandbox.row("inner")["state"], "running");
    let _ = sandbox.proq(&["stop", "inner"]).ok();
}

#[test]
fn large_files_are_not_auto_committed() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.agent.autocommitLimit", "1"]);
    sandbox.run_lane("x", "head -c 1100000 /dev/zero > big; echo small > small");
    assert_eq!((&sandbox.row("x")["ahead"], &sandbox.row("x")["uncommitted"]), (&0.into(), &2.into()));
    assert!(sandbox.proq(&["show", "x"]).ok().contains("big has 1 MiB, more than agent.autocommit_limit"));
}

#[test]
fn concurrent_agents_lose_no_line_or_event() {
    let script = "begin; i=0; while [ $i -lt 500 ]; do i=$((i + 1))
        echo '{\"type\":\"assistant\",\"message\":{\"id\":\"m'$i'\",\"content\":[{\"type\":\"tool_use\",\"id\":\"t'$i'\",\"name\":\"Bash\",\"input\":{}}]}}'
        done; echo new > n; well";
    let sandbox = sandbox_with_claude(script);
    let names: Vec<String> = (1..=20).map(|n| format!("x{n}")).collect();
    std::thread::scope(|scope| {
        for name in &names {
            let sandbox = &sandbox;
            scope.spawn(move || sandbox.proq(&["spawn", "claude", "do it", "-n", name, "--wait"]).ok());
        }
    });
    for name in &names {
        let log = sandbox.proq(&["logs", name, "--raw"]).ok();
        assert_eq!(log.lines().filter(|line| line.contains("tool_use")).count(), 500, "{name}");
        assert_eq!(sandbox.last_run(name)["account"]["tool_calls"], 500, "{name}");
        assert_eq!(sandbox.row(name)["state"], "done");
    }
    let events = sandbox.proq(&["events", "--json"]).json();
    let events = events["events"].as_array().unwrap();
    for (at, event) in events.iter().enumerate() {
        assert_eq!(event["n"], at + 1, "no number is missing, none is there twice");
    }
    for (kind, count) in [("lane.created", 20), ("run.started", 20), ("run.ended", 20)] {
        assert_eq!(events.iter().filter(|event| event["event"] == kind).count(), count, "{kind}");
    }
}

#[test]
fn dry_run_shows_allowed_checks() {
    let sandbox = sandbox_with_claude("begin; well");
    sandbox.git(&["config", "proq.verify.commands", "cargo check"]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "q", "--check", "cargo test printer"]).ok();
    let run_plan = sandbox.proq(&["run", "q", "--dry-run", "claude", "do it"]).ok();
    let in_place_plan = sandbox.proq(&["spawn", "--in-place", "--dry-run", "claude", "do it"]).ok();
    let answer_plan = sandbox.proq(&["spawn", "--mode", "answer", "--dry-run", "claude", "what is it"]).ok();
    let _ = sandbox.proq(&["run", "q", "--wait", "claude", "do it"]);
    let _ = sandbox.proq(&["spawn", "--in-place", "--wait", "claude", "do it"]);
    for (plan, n) in [(&run_plan, 1), (&in_place_plan, 2)] {
        let run = sandbox.agent_record(&format!("args.{n}"));
        for check in ["Bash(cargo check)", "Bash(cargo test printer)"] {
            assert_eq!(plan.contains(check), run.contains(check), "{check}: {plan}: {run}");
        }
        assert!(plan.contains("Bash(cargo check)"), "{plan}");
    }
    assert!(!answer_plan.contains("cargo"), "{answer_plan}");
}
