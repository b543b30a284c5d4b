//! Owns the tests of runs of known agents: what is read from their output, their limits, further tries, and what they leave.

use super::support::Sandbox;

/// What the fake agent says first.
const BEGIN: &str = r#"{"type":"system","subtype":"init","session_id":"s-1","model":"claude-x","cwd":"/"}"#;

/// What it says last, when all is well.
const WELL: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":"All done.","session_id":"s-1","num_turns":2,"total_cost_usd":0.0125,"usage":{"input_tokens":100,"cache_read_input_tokens":20,"cache_creation_input_tokens":5,"output_tokens":50},"modelUsage":{"claude-x":{"inputTokens":100,"cacheReadInputTokens":20,"cacheCreationInputTokens":5,"outputTokens":50,"costUSD":0.0125}}}"#;

/// What it says when its service is busy.
const BUSY: &str = r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":529,"result":"API Error: 529 Overloaded","session_id":"s-1","num_turns":1,"total_cost_usd":0,"usage":{"input_tokens":0,"output_tokens":0}}"#;

/// A repository in which `claude` is a shell script. It keeps how it was called in files `args.N`, `prompt.N` and `env.N` above the
/// repository, N being the number of the call, and speaks by `begin`, `well`, `busy` and `tool`.
pub fn with_claude(script: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    let root = sandbox.root();
    let notes = root.join("notes");
    std::fs::create_dir(&notes).unwrap();
    for (name, text) in [("begin", BEGIN), ("well", WELL), ("busy", BUSY)] {
        std::fs::write(notes.join(name), format!("{text}\n")).unwrap();
    }
    sandbox.program(
        "claude",
        &format!(
            r#"cd_back=$PWD; notes='{0}'
            if [ "$1" = --version ]; then echo '9.9.9 (Claude Code)'; exit 0; fi
            n=1; while ! mkdir "$notes/$n" 2>/dev/null; do n=$((n + 1)); done
            for word; do printf '%s\n' "$word"; done > "$notes/args.$n"; cat > "$notes/prompt.$n"; env > "$notes/env.$n"
            begin() {{ cat "$notes/begin"; }}; well() {{ cat "$notes/well"; }}; busy() {{ cat "$notes/busy"; }}
            {script}"#,
            notes.display()
        ),
    );
    for (key, value) in [("backoff", "0"), ("linger", "0"), ("stopGrace", "1")] {
        sandbox.git(&["config", &format!("proq.agent.{key}"), value]);
    }
    sandbox
}

impl Sandbox {
    /// What the fake agent noted.
    #[track_caller]
    pub fn note(&self, name: &str) -> String {
        std::fs::read_to_string(self.root().join("notes").join(name)).unwrap()
    }

    /// The last run of a lane, as `show --json` has it.
    #[track_caller]
    pub fn last_run(&self, lane: &str) -> serde_json::Value {
        let shown = self.proq(&["show", lane, "--json"]).json();
        shown["runs"].as_array().unwrap().last().unwrap().clone()
    }
}

#[test]
fn tokens_cost_and_session_are_read_from_the_stream() {
    let sandbox = with_claude("begin; echo new > n; well");
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
    assert!(sandbox.proq(&["show", "x"]).ok().contains("$0.0125"));
}

#[test]
fn a_result_that_is_an_error_is_one_whatever_the_exit_code() {
    let refused = BUSY.replace("529 Overloaded", "401 Invalid API key").replace("529", "401");
    let sandbox = with_claude(&format!("begin; echo half > half; echo '{refused}'; exit 0"));
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "x", "--wait"]).fails(4);
    let run = sandbox.last_run("x");
    assert_eq!(
        (&run["class"], &run["outcome"], run["attempt"].as_u64()),
        (&"auth".into(), &"failed".into(), Some(1))
    );
    assert!(sandbox.proq(&["show", "x"]).ok().contains("401 Invalid API key"));
}

#[test]
fn an_agent_that_ends_without_its_last_word_has_not_done_its_task() {
    let sandbox = with_claude("begin; echo half > half; exit 0");
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "x", "--wait"]).fails(4);
    let run = sandbox.last_run("x");
    assert_eq!((&run["class"], run["attempt"].as_u64()), (&"interrupted".into(), Some(1)));
}

#[test]
fn one_that_dies_is_tried_again_and_not_for_ever() {
    let sandbox = with_claude("begin; echo half > half; kill -9 $$");
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "x", "--wait"]).fails(4);
    let run = sandbox.last_run("x");
    assert_eq!((&run["class"], run["attempt"].as_u64()), (&"crashed".into(), Some(3)));
    assert_eq!(sandbox.git_in(&sandbox.lane("x"), &["status", "--short"]), "?? half");
}

#[test]
fn a_run_that_the_service_would_not_serve_is_tried_again_from_where_it_began() {
    // The first two tries leave a commit and a file behind.
    let script = "begin; if [ $n -lt 3 ]; then echo $n > c; git add c; git commit -q -m try; echo $n > left; busy; exit 1; fi
        ls > seen; well";
    let sandbox = with_claude(script);
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "x", "--wait"]).ok();
    assert_eq!(sandbox.git(&["show", "proq/x:seen"]), "a.txt\nseen");
    let shown = sandbox.proq(&["show", "x", "--json"]).json();
    let classes: Vec<_> = shown["runs"].as_array().unwrap().iter().map(|run| run["class"].clone()).collect();
    assert_eq!(classes, ["rate-limited", "rate-limited", "done"]);
    assert_eq!(sandbox.note("prompt.1"), sandbox.note("prompt.3"));
    // What they had done is kept.
    let detail = shown["runs"][0]["detail"].as_str().unwrap();
    let kept = "its commits are kept: git log refs/proq/saved/x-";
    assert!(detail.contains(kept) && detail.contains("kept: git proq snap show "), "{detail}");
    let log = sandbox.proq(&["op", "log"]).ok();
    assert!(log.contains("proq/x ") && !log.contains("records only"), "{log}");
    let saved = "git for-each-ref --format='%(refname):c' refs/proq/saved/ | xargs -n1 git show";
    assert_eq!(sandbox.sh(saved), "1\n2");
    let snaps = sandbox.proq(&["snap", "list", "--json"]).json();
    let of_tries = snaps["snapshots"].as_array().unwrap().iter();
    assert_eq!(
        of_tries.filter(|s| s["why"].as_str().unwrap().contains("when it failed")).count(),
        2,
        "{snaps}"
    );
    sandbox.assert_healthy();
}

#[test]
fn a_service_that_is_out_of_reach_is_asked_again_from_where_the_run_began() {
    // What Claude Code printed when its service had an error of its own, and when nobody was there.
    let said = |name: &str| {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/streams/claude");
        format!("cat '{folder}/{name}.jsonl'; exit 1")
    };
    let script = format!(
        "if [ $n -lt 3 ]; then echo half > half; fi; case $n in 1) {};; 2) {};; 3) {};; esac; begin; echo $n > new; well",
        said("error-503"),
        said("refused"),
        said("error-529")
    );
    let sandbox = with_claude(&script);
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "x", "--wait"]).ok();
    let shown = sandbox.proq(&["show", "x", "--json"]).json();
    let classes: Vec<_> = shown["runs"].as_array().unwrap().iter().map(|run| run["class"].clone()).collect();
    assert_eq!(classes, ["unavailable", "unavailable", "rate-limited", "done"]);
    assert_eq!(sandbox.git(&["ls-tree", "--name-only", "proq/x"]), "a.txt\nnew");
    // And not for ever.
    let sandbox = with_claude(&said("refused"));
    sandbox.git(&["config", "proq.agent.rateLimitRetries", "2"]);
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "x", "--wait"]).fails(4);
    let run = sandbox.last_run("x");
    assert_eq!((&run["class"], run["attempt"].as_u64()), (&"unavailable".into(), Some(3)));
}

/// An agent whose plan is used up in its first run, until so many seconds after the time that it is in tests, and that notes when it
/// runs.
fn used_up(seconds: u32) -> Sandbox {
    const NOW: u32 = 1_767_323_045;
    let limit = format!("Claude AI usage limit reached|{}", NOW + seconds);
    let said = BUSY.replace("\"api_error_status\":529,", "").replace("API Error: 529 Overloaded", &limit);
    with_claude(&format!(
        "date +%s > \"$notes/at.$n\"; begin; if [ $n = 1 ]; then echo '{said}'; exit 1; fi; echo $n > new; well"
    ))
}

#[test]
fn a_plan_that_is_used_up_is_waited_for_until_its_limit_is_lifted() {
    let sandbox = used_up(2);
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "x", "--wait"]).ok();
    let at = |n: u32| sandbox.note(&format!("at.{n}")).trim().parse::<u64>().unwrap();
    assert!(at(2) >= at(1) + 2, "{} {}", at(1), at(2));
    let shown = sandbox.proq(&["show", "x", "--json"]).json();
    let detail = shown["runs"][0]["detail"].as_str().unwrap();
    assert!(
        detail.ends_with("rate-limited; it is tried again at 03:04, when its limit is lifted"),
        "{detail}"
    );
}

#[test]
fn a_limit_that_is_lifted_too_late_is_not_waited_for_and_named() {
    let sandbox = used_up(7200);
    let out = sandbox.proq(&["spawn", "claude", "do it", "-n", "x", "--wait"]).fails(4);
    assert!(out.contains("its limit is lifted at 05:04, which it does not wait for"), "{out}");
    assert_eq!(sandbox.last_run("x")["attempt"], 1);
    // Who may wait longer does.
    let sandbox = used_up(7200);
    sandbox.git(&["config", "proq.agent.resetWait", "3h"]);
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "x"]).ok();
    sandbox.until("agent.retry", "x", 1);
    assert_eq!(sandbox.row("x")["state"], "running");
    let _ = sandbox.proq(&["stop", "x"]).ok();
    assert_eq!(sandbox.row("x")["state"], "stopped");
}

#[test]
fn patience_ends() {
    let sandbox = with_claude("begin; busy; exit 1");
    sandbox.git(&["config", "proq.agent.rateLimitRetries", "2"]);
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "x", "--wait"]).fails(4);
    let run = sandbox.last_run("x");
    assert_eq!((&run["class"], run["attempt"].as_u64()), (&"rate-limited".into(), Some(3)));
}

#[test]
fn a_lane_with_work_of_the_users_is_not_put_back() {
    let sandbox = with_claude("begin; busy; exit 1");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    sandbox.write_in(&sandbox.lane("x"), "mine", "mine");
    let _ = sandbox.proq(&["run", "x", "claude", "do it", "--wait"]).fails(4);
    assert_eq!(sandbox.last_run("x")["attempt"], 1);
    assert_eq!(std::fs::read_to_string(sandbox.lane("x").join("mine")).unwrap(), "mine");
}

#[test]
fn stopping_ends_the_wait_for_another_try() {
    let sandbox = with_claude("begin; busy; exit 1");
    sandbox.git(&["config", "proq.agent.backoff", "600"]);
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "x"]).ok();
    sandbox.until("agent.retry", "x", 1);
    let _ = sandbox.proq(&["stop", "x"]).ok();
    assert_eq!(
        (&sandbox.row("x")["state"], sandbox.last_run("x")["attempt"].as_u64()),
        (&"stopped".into(), Some(1))
    );
}

#[test]
fn an_agent_that_does_not_end_after_its_last_word_is_ended_and_its_work_counts() {
    let sandbox = with_claude("begin; echo new > n; well; exec sleep 600");
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "x", "--wait"]).ok();
    assert_eq!(sandbox.row("x")["state"], "done");
}

#[test]
fn one_that_says_nothing_more_is_stalled() {
    let sandbox = with_claude("begin; exec sleep 600");
    sandbox.git(&["config", "proq.agent.stall", "1s"]);
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "x", "--wait"]).fails(4);
    assert_eq!(sandbox.row("x")["state"], "stalled");
}

#[test]
fn one_that_takes_too_long_is_ended() {
    let talk = "begin; while :; do echo '{\"type\":\"system\",\"subtype\":\"x\"}'; sleep 0.1; done";
    let sandbox = with_claude(talk);
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "x", "--wait", "--max-time", "1s"]).fails(4);
    assert_eq!(sandbox.last_run("x")["class"], "timeout");
}

#[cfg(target_os = "linux")]
#[test]
fn what_its_tools_leave_running_is_ended_wherever_it_fled() {
    let sandbox = Sandbox::new();
    let pids = sandbox.root().join("pids");
    sandbox.pipe("fled");
    let flee = |how: &str| {
        let fled = sandbox.root().join("fled");
        format!("{how} sh -c 'echo $$ > {}; exec sleep 600' </dev/null >/dev/null 2>&1 &", fled.display())
    };
    // A session of its own; one without the environment; one whose parents are gone.
    let script = format!(
        "{}\n{}\n( {} )\ntimeout 60 sh -c 'for n in 1 2 3; do read pid; echo $pid; done' <> '{}' > '{pids}' || exit 1; echo new > n",
        flee("setsid"),
        flee("env -i PATH=\"$PATH\" setsid"),
        flee("setsid"),
        sandbox.root().join("fled").display(),
        pids = pids.display()
    );
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "x", "--", "sh", "-c", &script]).ok();
    let text = std::fs::read_to_string(&pids).unwrap();
    assert_eq!(text.lines().count(), 3);
    assert!(text.lines().all(|pid| !sandbox.lives(pid)), "{text}");
    assert_eq!(sandbox.row("x")["state"], "done");
}

#[test]
fn a_lane_that_an_agent_started_outlives_the_agent() {
    let sandbox = Sandbox::new();
    let script = "git-proq spawn -n inner -- sleep 600; echo new > n";
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "outer", "--", "sh", "-c", script]).ok();
    assert_eq!(sandbox.row("inner")["state"], "running");
    let _ = sandbox.proq(&["stop", "inner"]).ok();
}

#[test]
fn very_large_files_are_not_committed_for_an_agent() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.agent.autocommitLimit", "1"]);
    sandbox.lane_with("x", "head -c 1100000 /dev/zero > big; echo small > small");
    assert_eq!((&sandbox.row("x")["ahead"], &sandbox.row("x")["uncommitted"]), (&0.into(), &2.into()));
    assert!(sandbox.proq(&["show", "x"]).ok().contains("big has 1 MiB, more than agent.autocommit_limit"));
}

#[test]
fn twenty_agents_at_once_lose_no_line_and_no_event() {
    let script = "begin; i=0; while [ $i -lt 500 ]; do i=$((i + 1))
        echo '{\"type\":\"assistant\",\"message\":{\"id\":\"m'$i'\",\"content\":[{\"type\":\"tool_use\",\"id\":\"t'$i'\",\"name\":\"Bash\",\"input\":{}}]}}'
        done; echo new > n; well";
    let sandbox = with_claude(script);
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
    for (what, times) in [("lane.created", 20), ("run.started", 20), ("run.ended", 20)] {
        assert_eq!(events.iter().filter(|event| event["event"] == what).count(), times, "{what}");
    }
}

#[test]
fn a_dry_run_shows_the_checks_that_the_agent_may_run() {
    let sandbox = with_claude("begin; well");
    sandbox.git(&["config", "proq.verify.commands", "cargo check"]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "q", "--check", "cargo test printer"]).ok();
    let ahead = sandbox.proq(&["run", "q", "--dry-run", "claude", "do it"]).ok();
    let in_place = sandbox.proq(&["spawn", "--in-place", "--dry-run", "claude", "do it"]).ok();
    let again = sandbox.proq(&["spawn", "--mode", "answer", "--dry-run", "claude", "what is it"]).ok();
    let _ = sandbox.proq(&["run", "q", "--wait", "claude", "do it"]);
    let _ = sandbox.proq(&["spawn", "--in-place", "--wait", "claude", "do it"]);
    for (ahead, n) in [(&ahead, 1), (&in_place, 2)] {
        let run = sandbox.note(&format!("args.{n}"));
        for check in ["Bash(cargo check)", "Bash(cargo test printer)"] {
            assert_eq!(ahead.contains(check), run.contains(check), "{check}: {ahead}: {run}");
        }
        assert!(ahead.contains("Bash(cargo check)"), "{ahead}");
    }
    assert!(!again.contains("cargo"), "{again}");
}
