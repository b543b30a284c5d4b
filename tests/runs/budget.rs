//! Tests of run budgets: when a run is stopped, which results still count, and warnings about agents that
//! cannot be stopped in time.

use proq_test_kit::Sandbox;
use proq_test_kit::claude::{sandbox_with_claude, write_user_config};

/// Shell command that prints an event of the fake agent, which costs one dollar by the prices of
/// `configure_prices`.
const ONE_DOLLAR_EVENT: &str = r#"echo '{"type":"assistant","message":{"id":"m","model":"claude-x","content":[],"usage":{"input_tokens":1000000,"output_tokens":0}}}'"#;

/// Shell command that reports an overloaded service after `dollars` were spent, and exits.
fn overloaded_result(dollars: &str) -> String {
    format!(
        r#"echo '{{"type":"result","subtype":"success","is_error":true,"api_error_status":529,"result":"API Error: 529 Overloaded","session_id":"s-1","num_turns":1,"total_cost_usd":{dollars}}}'; exit 1"#
    )
}

fn configure_prices(sandbox: &Sandbox) {
    write_user_config(sandbox, "[prices]\n'claude-x' = 'input=1, output=1'\n");
}

/// Returns the budget that the fake agent received in its `n`-th run.
fn budget_argument(sandbox: &Sandbox, n: u32) -> Option<String> {
    let args = sandbox.agent_record(&format!("args.{n}"));
    let mut words = args.lines().skip_while(|word| *word != "--max-budget-usd");
    words.nth(1).map(ToOwned::to_owned)
}

#[test]
fn retries_pass_remaining_budget_to_agent() {
    let script = format!(
        "begin; if [ $n = 1 ]; then {}; fi; if [ $n = 2 ]; then {}; fi; echo $n > new; well",
        overloaded_result("0.2"),
        overloaded_result("0.15")
    );
    let sandbox = sandbox_with_claude(&script);
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "x", "--wait", "--budget", "0.5"]).ok();
    let all: Vec<_> = (1..=3).map(|n| budget_argument(&sandbox, n).unwrap()).collect();
    assert_eq!(all, ["0.5", "0.3", "0.15"]);
    // A message of the user starts with the full budget again, and a run without `--budget` has none.
    let _ = sandbox.proq(&["send", "x", "more", "--wait"]).ok();
    assert_eq!(budget_argument(&sandbox, 4).unwrap(), "0.5");
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "y", "--wait"]).ok();
    assert_eq!(budget_argument(&sandbox, 5), None);
}

#[test]
fn spent_budget_prevents_retry() {
    let sandbox = sandbox_with_claude(&format!("begin; {}", overloaded_result("0.5")));
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "x", "--wait", "--budget", "0.4"]).fails(4);
    let run = sandbox.last_run("x");
    assert_eq!((&run["class"], run["attempt"].as_u64()), (&"rate-limited".into(), Some(1)));
    let reason = run["detail"].as_str().unwrap();
    assert!(reason.ends_with("it has used up its budget, so it does not continue automatically"), "{reason}");
}

#[test]
fn stops_run_when_token_cost_exceeds_budget() {
    // If the budget did not stop the run, the time limit would.
    let sandbox = sandbox_with_claude(&format!("begin; echo new > n; {ONE_DOLLAR_EVENT}; exec sleep 600"));
    configure_prices(&sandbox);
    let spawn = |name: &str, budget: &str| {
        let all = ["spawn", "claude", "do it", "-n", name, "--wait", "--budget", budget, "--max-time", "60s"];
        let _ = sandbox.proq(&all).fails(4);
        sandbox.last_run(name)
    };
    let run = spawn("x", "0.999999999");
    assert_eq!((&run["class"], &run["detail"]), (&"budget".into(), &"it reached its budget".into()));
    assert_eq!(run["account"]["cost"]["nanos"], 1_000_000_000);
    // The work of the stopped run is retained.
    assert_eq!(sandbox.git_in(&sandbox.lane_path("x"), &["status", "--short"]), "?? n");
}

#[test]
fn finished_run_over_budget_still_counts() {
    let sandbox = sandbox_with_claude("begin; echo new > n; well");
    let out = sandbox.proq(&["spawn", "claude", "do it", "-n", "x", "--wait", "--budget", "0.0124"]).ok();
    assert!(
        out.starts_with("x: done (") && out.contains("it cost $0.0125, more than the $0.0124 that it might"),
        "{out}"
    );
    let run = sandbox.last_run("x");
    assert_eq!((&run["class"], &run["outcome"]), (&"done".into(), &"done".into()));
    let out = sandbox.proq(&["send", "x", "more", "--dry-run"]);
    let warned = "its last run has cost $0.0125 of $0.0124; another may cost $0.0124 again";
    assert!(out.stderr.contains(warned), "{}", out.to_text());
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "y", "--wait", "--budget", "0.0126"]).ok();
    assert!(!sandbox.proq(&["send", "y", "more", "--dry-run"]).stderr.contains("cost"));
}

#[test]
fn result_during_budget_stop_still_counts() {
    // The agent is stopped for its token cost and reports its result only then.
    let script =
        format!("begin; echo new > n; trap 'well; exit 0' TERM; {ONE_DOLLAR_EVENT}; sleep 600 & wait");
    let sandbox = sandbox_with_claude(&script);
    configure_prices(&sandbox);
    let spawn = ["spawn", "claude", "do it", "-n", "x", "--wait", "--budget", "0.5", "--max-time", "60s"];
    let _ = sandbox.proq(&spawn).ok();
    let run = sandbox.last_run("x");
    assert_eq!((&run["class"], &run["outcome"]), (&"done".into(), &"done".into()));
    assert_eq!(sandbox.git(&["show", "proq/x:n"]), "new");
}

#[test]
fn message_waits_when_budget_is_spent() {
    let script =
        r#"begin; if [ $n = 1 ]; then echo > "$ROOT/up"; read go < "$ROOT/go"; fi; echo $n > new; well"#;
    let sandbox = sandbox_with_claude(script);
    for pipe in ["up", "go"] {
        sandbox.pipe(pipe);
    }
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "x", "--budget", "0.0125"]).ok();
    sandbox.read_pipe("up");
    let _ = sandbox.proq(&["send", "x", "one thing more"]).ok();
    sandbox.write_pipe("go");
    let out = sandbox.proq(&["wait", "x"]).ok();
    assert!(out.contains("it has used up its budget, so it does not continue automatically"), "{out}");
    assert_eq!(sandbox.last_run("x")["attempt"], 1);
    assert_eq!(sandbox.row("x")["waiting"], 1);
    let out = sandbox.proq(&["send", "x", "--wait"]);
    assert!(out.stderr.contains("its last run has cost $0.0125 of $0.0125"), "{}", out.to_text());
    assert!(sandbox.agent_record("prompt.2").contains("one thing more"));
}

#[test]
fn warns_about_agents_budget_cannot_limit() {
    let sandbox = Sandbox::new();
    for agent in ["claude", "codex", "gemini", "qwen", "pi", "opencode", "cursor-agent"] {
        sandbox.agent(agent, "true");
    }
    let spawn = |args: &[&str]| {
        let all = [&["spawn", "-n", "x", "--dry-run", "--budget", "1"], args, &["do it"]].concat();
        let out = sandbox.proq(&all);
        let warnings: Vec<_> = out.stderr.lines().filter(|line| line.contains("budget")).collect();
        assert!(out.code == 0 && warnings.len() < 2, "{}", out.to_text());
        warnings.first().map(|line| line.trim_start_matches("warning: ").to_owned()).unwrap_or_default()
    };
    let unpriced =
        "codex does not report its cost without a price for its model in [prices]: its budget has no effect";
    assert_eq!(spawn(&["codex"]), unpriced);
    assert_eq!(
        spawn(&["codex", "--model", "gpt-5"]),
        "codex does not report its cost without a price for gpt-5 in [prices]: its budget has no effect"
    );
    assert_eq!(spawn(&["cursor"]), "cursor does not report its cost: its budget has no effect");
    for agent in ["claude", "pi", "opencode"] {
        assert_eq!(spawn(&[agent]), "");
    }
    write_user_config(&sandbox, "[prices]\n'gpt-5*' = 'input=1, output=1'\n'qwen*' = 'input=1, output=1'\n");
    assert_eq!(
        spawn(&["codex"]),
        "codex does not report its cost, nor its model without --model: its budget has no effect"
    );
    let late = "reports its usage only at its end: its budget cannot stop a run, only prevent the next one";
    assert_eq!(spawn(&["codex", "--model", "gpt-5"]), format!("codex {late}"));
    assert_eq!(spawn(&["gemini"]), format!("gemini {late}"));
    assert_eq!(spawn(&["qwen"]), "");
    assert_eq!(
        spawn(&["qwen", "--model", "other"]),
        "qwen does not report its cost without a price for other in [prices]: its budget has no effect"
    );
    // A profile that is like Claude Code but has no budget option.
    write_user_config(&sandbox, "[agents.mine]\nlike = 'claude'\noptions.budget = []\n");
    assert_eq!(spawn(&["mine"]), format!("mine {late}"));
}
