//! Owns the tests of what a run may cost: who ends it and when, what counts of one that has ended, and what is said of agents that
//! nobody can end in time.

use super::profiles::configure;
use super::runs::with_claude;
use super::support::Sandbox;

/// What the fake agent says while it works, which costs a dollar by the prices that `priced` makes.
const A_DOLLAR: &str = r#"echo '{"type":"assistant","message":{"id":"m","model":"claude-x","content":[],"usage":{"input_tokens":1000000,"output_tokens":0}}}'"#;

/// What it says when its service is busy after this was spent.
fn busy(dollars: &str) -> String {
    format!(
        r#"echo '{{"type":"result","subtype":"success","is_error":true,"api_error_status":529,"result":"API Error: 529 Overloaded","session_id":"s-1","num_turns":1,"total_cost_usd":{dollars}}}'; exit 1"#
    )
}

fn priced(sandbox: &Sandbox) {
    configure(sandbox, "[prices]\n'claude-x' = 'input=1, output=1'\n");
}

/// The budget that the fake agent was given in its N-th run.
fn given(sandbox: &Sandbox, n: u32) -> Option<String> {
    let args = sandbox.note(&format!("args.{n}"));
    let mut words = args.lines().skip_while(|word| *word != "--max-budget-usd");
    words.nth(1).map(ToOwned::to_owned)
}

#[test]
fn an_agent_with_a_limit_of_its_own_is_given_what_is_left() {
    let script = format!(
        "begin; if [ $n = 1 ]; then {}; fi; if [ $n = 2 ]; then {}; fi; echo $n > new; well",
        busy("0.2"),
        busy("0.15")
    );
    let sandbox = with_claude(&script);
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "x", "--wait", "--budget", "0.5"]).ok();
    let all: Vec<_> = (1..=3).map(|n| given(&sandbox, n).unwrap()).collect();
    assert_eq!(all, ["0.5", "0.3", "0.15"]);
    // What somebody asks of it then has all of it again, and nobody else has any.
    let _ = sandbox.proq(&["send", "x", "more", "--wait"]).ok();
    assert_eq!(given(&sandbox, 4).unwrap(), "0.5");
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "y", "--wait"]).ok();
    assert_eq!(given(&sandbox, 5), None);
}

#[test]
fn nothing_is_tried_again_when_nothing_is_left() {
    let sandbox = with_claude(&format!("begin; {}", busy("0.5")));
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "x", "--wait", "--budget", "0.4"]).fails(4);
    let run = sandbox.last_run("x");
    assert_eq!((&run["class"], run["attempt"].as_u64()), (&"rate-limited".into(), Some(1)));
    let why = run["detail"].as_str().unwrap();
    assert!(why.ends_with("it has cost all that it may, so it does not go on by itself"), "{why}");
}

#[test]
fn a_run_is_ended_as_soon_as_its_tokens_have_cost_too_much() {
    // Whoever does not end it meets another limit.
    let sandbox = with_claude(&format!("begin; echo new > n; {A_DOLLAR}; exec sleep 600"));
    priced(&sandbox);
    let spawn = |name: &str, budget: &str| {
        let all = ["spawn", "claude", "do it", "-n", name, "--wait", "--budget", budget, "--max-time", "60s"];
        let _ = sandbox.proq(&all).fails(4);
        sandbox.last_run(name)
    };
    let run = spawn("x", "0.999999999");
    assert_eq!((&run["class"], &run["detail"]), (&"budget".into(), &"it cost more than it may".into()));
    assert_eq!(run["account"]["cost"]["nanos"], 1_000_000_000);
    // Its work is there.
    assert_eq!(sandbox.git_in(&sandbox.lane("x"), &["status", "--short"]), "?? n");
}

#[test]
fn a_result_counts_whatever_the_run_has_cost() {
    let sandbox = with_claude("begin; echo new > n; well");
    let out = sandbox.proq(&["spawn", "claude", "do it", "-n", "x", "--wait", "--budget", "0.0124"]).ok();
    assert!(
        out.starts_with("x: done (") && out.contains("it cost $0.0125, more than the $0.0124 that it might"),
        "{out}"
    );
    let run = sandbox.last_run("x");
    assert_eq!((&run["class"], &run["outcome"]), (&"done".into(), &"done".into()));
    let out = sandbox.proq(&["send", "x", "more", "--dry-run"]);
    let warned = "its last run has cost $0.0125 of $0.0124; another may cost $0.0124 again";
    assert!(out.stderr.contains(warned), "{}", out.shown());
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "y", "--wait", "--budget", "0.0126"]).ok();
    assert!(!sandbox.proq(&["send", "y", "more", "--dry-run"]).stderr.contains("cost"));
}

#[test]
fn a_result_that_was_on_its_way_counts_too() {
    // It is asked to end because of its tokens, and says only then that it is done.
    let script = format!("begin; echo new > n; trap 'well; exit 0' TERM; {A_DOLLAR}; sleep 600 & wait");
    let sandbox = with_claude(&script);
    priced(&sandbox);
    let spawn = ["spawn", "claude", "do it", "-n", "x", "--wait", "--budget", "0.5", "--max-time", "60s"];
    let _ = sandbox.proq(&spawn).ok();
    let run = sandbox.last_run("x");
    assert_eq!((&run["class"], &run["outcome"]), (&"done".into(), &"done".into()));
    assert_eq!(sandbox.git(&["show", "proq/x:n"]), "new");
}

#[test]
fn what_was_sent_meanwhile_waits_when_all_is_spent() {
    let script =
        r#"begin; if [ $n = 1 ]; then echo > "$ROOT/up"; read go < "$ROOT/go"; fi; echo $n > new; well"#;
    let sandbox = with_claude(script);
    for pipe in ["up", "go"] {
        sandbox.pipe(pipe);
    }
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "x", "--budget", "0.0125"]).ok();
    sandbox.hear("up");
    let _ = sandbox.proq(&["send", "x", "one thing more"]).ok();
    sandbox.tell("go");
    let out = sandbox.proq(&["wait", "x"]).ok();
    assert!(out.contains("it has cost all that it may, so it does not go on by itself"), "{out}");
    assert_eq!(sandbox.last_run("x")["attempt"], 1);
    assert_eq!(sandbox.row("x")["waiting"], 1);
    let out = sandbox.proq(&["send", "x", "--wait"]);
    assert!(out.stderr.contains("its last run has cost $0.0125 of $0.0125"), "{}", out.shown());
    assert!(sandbox.note("prompt.2").contains("one thing more"));
}

#[test]
fn what_a_budget_cannot_do_is_said_before() {
    let sandbox = Sandbox::new();
    for agent in ["claude", "codex", "gemini", "qwen", "pi", "opencode", "cursor-agent"] {
        sandbox.agent(agent, "true");
    }
    let spawn = |args: &[&str]| {
        let all = [&["spawn", "-n", "x", "--dry-run", "--budget", "1"], args, &["do it"]].concat();
        let out = sandbox.proq(&all);
        let said: Vec<_> = out.stderr.lines().filter(|line| line.contains("budget")).collect();
        assert!(out.code == 0 && said.len() < 2, "{}", out.shown());
        said.first().map(|line| line.trim_start_matches("warning: ").to_owned()).unwrap_or_default()
    };
    let unpriced =
        "codex does not say what it costs without a price for its model in [prices]: its budget cannot hold";
    assert_eq!(spawn(&["codex"]), unpriced);
    assert_eq!(
        spawn(&["codex", "--model", "gpt-5"]),
        "codex does not say what it costs without a price for gpt-5 in [prices]: its budget cannot hold"
    );
    assert_eq!(spawn(&["cursor"]), "cursor does not say what it costs: its budget cannot hold");
    for agent in ["claude", "pi", "opencode"] {
        assert_eq!(spawn(&[agent]), "");
    }
    configure(&sandbox, "[prices]\n'gpt-5*' = 'input=1, output=1'\n'qwen*' = 'input=1, output=1'\n");
    assert_eq!(
        spawn(&["codex"]),
        "codex does not say what it costs, nor which model it uses, without --model: its budget cannot hold"
    );
    let late =
        "says what it used only at its end: its budget cannot end a run, only keep another from following";
    assert_eq!(spawn(&["codex", "--model", "gpt-5"]), format!("codex {late}"));
    assert_eq!(spawn(&["gemini"]), format!("gemini {late}"));
    assert_eq!(spawn(&["qwen"]), "");
    assert_eq!(
        spawn(&["qwen", "--model", "other"]),
        "qwen does not say what it costs without a price for other in [prices]: its budget cannot hold"
    );
    // One that is like Claude Code, and has no limit of its own.
    configure(&sandbox, "[agents.mine]\nlike = 'claude'\noptions.budget = []\n");
    assert_eq!(spawn(&["mine"]), format!("mine {late}"));
}
