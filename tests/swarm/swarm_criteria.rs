//! Tests of a plan's criteria: checked at the end by commands and by an agent, reported, and enforced with
//! `--strict`.

use proq_test_kit::Sandbox;
use proq_test_kit::claude::sandbox_with_claude;
use proq_test_kit::plans::install_worker;
use proq_test_kit::waiting::wait_until;

use super::swarm_control::scheduler_is_running;

const ID: &str = "20260102-030405";

/// Creates a repository with a plan of one task and these criteria, which are approved. `judge_script` is the
/// script that claude runs for them.
fn with_criteria(criteria: &[&str], judge_script: &str) -> Sandbox {
    let sandbox = sandbox_with_claude(judge_script);
    install_worker(&sandbox, "");
    let plan = format!(
        "format = 1\nsummary = \"A foot\"\nagent = \"worker\"\ncriteria = {criteria:?}\n[[task]]\nid = \"foot\"\ntitle = \"A foot\"\n"
    );
    sandbox.write("plan.toml", &plan);
    let _ = sandbox.proq(&["approve", "--yes", "--plan", "plan.toml"]).ok();
    sandbox
}

/// Sets the text that claude answers with through `judged`.
fn set_judge_answer(sandbox: &Sandbox, text: &str) {
    let quoted = serde_json::to_string(text).unwrap();
    let stream = sandbox.agent_record("well").replace("\"All done.\"", &quoted);
    std::fs::write(sandbox.root().join("notes/judged"), stream).unwrap();
}

/// Returns each criterion of `status --json`, with its result.
fn criteria_results(sandbox: &Sandbox) -> Vec<String> {
    let status = sandbox.proq(&["status", ID, "--json"]).json();
    let all = status["criteria"]["criteria"].as_array().unwrap().iter();
    all.map(|criterion| {
        format!("{}: {}", criterion["met"].as_str().unwrap(), criterion["evidence"].as_str().unwrap())
    })
    .collect()
}

#[test]
fn criteria_are_checked_by_commands_and_agent() {
    let criteria = ["$ grep -q work foot.txt", "The foot stands.", "$ echo odd words; exit 3"];
    let sandbox = with_criteria(
        &criteria,
        "begin; ls > $ROOT/seen; if [ $n = 1 ]; then well; else cat $notes/judged; fi",
    );
    set_judge_answer(&sandbox, "```json\n[{\"n\": 1, \"met\": \"yes\", \"evidence\": \"foot.txt:1\"},]\n```");
    sandbox.git(&["config", "proq.swarm.verifyAgent", "claude"]);
    let out = sandbox.proq(&["swarm", "plan.toml"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    assert!(out.stdout.contains("2 of 3 criteria met\n"), "{}", out.stdout);
    assert_eq!(
        criteria_results(&sandbox),
        ["yes: it succeeds", "yes: claude: foot.txt:1", "no: it fails (exit code 3)"]
    );
    // The agent checked the tree that landed, and not the one that is checked out.
    assert_eq!(std::fs::read_to_string(sandbox.root().join("seen")).unwrap(), "a.txt\nfoot.txt\n");
    let prompt = sandbox.agent_record("prompt.1");
    assert!(prompt.contains("1. The foot stands.\n") && !prompt.contains("odd words"), "{prompt}");
    let log = sandbox.sh("cat .git/proq/batches/*/criteria/3.log");
    assert!(log.contains("odd words"), "{log}");
    let report = sandbox.proq(&["report"]).ok();
    for text in [
        "criteria\n",
        "  2 of 3 criteria met",
        "not met       $ echo odd words; exit 3: it fails (exit code 3); it wrote ",
    ] {
        assert!(report.contains(text), "{text}: {report}");
    }
    let page = sandbox.proq(&["report", "--html"]).ok();
    assert!(
        page.contains("<h2>Criteria</h2>") && page.contains("The foot stands.: claude: foot.txt:1"),
        "{page}"
    );
    let cost = sandbox.proq(&["report", "--json"]).json()["cost"]["nanos"].as_f64().unwrap();
    assert!(cost > 0.0);
    // All of them report the same cost, which includes checking the criteria.
    let status_cost = sandbox.proq(&["status", ID, "--json"]).json()["cost_usd"].as_f64().unwrap();
    assert_eq!(format!("{status_cost:.9}"), format!("{:.9}", cost / 1e9));
    let report = sandbox.proq(&["report", "--json"]).json();
    let id_of = |key: &str| report[key].as_str().unwrap().to_owned();
    let counts = sandbox.git(&["diff", "--numstat", &id_of("start"), &id_of("tip")]);
    let lines = counts.lines().flat_map(|line| line.split('\t').take(2)).map(|n| n.parse::<f64>().unwrap());
    let per_line = (cost / lines.sum::<f64>()).round();
    assert_eq!(report["cost_per_line"]["nanos"].as_f64(), Some(per_line));
    let events = sandbox.proq(&["events"]).ok();
    assert!(events.contains("all of it is done; 2 of 3 criteria met"), "{events}");
    assert_eq!(sandbox.proq(&["list", "--json"]).json()["lanes"].as_array().unwrap().len(), 0);
    // Unmet criteria do not stop the landing without `--strict`.
    let _ = sandbox.proq(&["merge", "--batch", ID]).ok();
    sandbox.assert_healthy();
}

#[test]
fn unanswered_criteria_are_not_verified_or_unknown() {
    let sandbox = with_criteria(&["The foot stands."], "begin; well");
    let _ = sandbox.proq(&["swarm", "plan.toml", "-q"]).ok();
    assert_eq!(criteria_results(&sandbox), ["not-verified: swarm.verify_agent is not set"]);
    let sandbox = with_criteria(&["The foot stands."], "begin; well");
    sandbox.git(&["config", "proq.swarm.verifyAgent", "claude"]);
    let _ = sandbox.proq(&["swarm", "plan.toml", "-q"]).ok();
    assert_eq!(criteria_results(&sandbox), ["unknown: claude: it has no JSON"]);
    assert!(sandbox.root().join("notes/3").exists() && !sandbox.root().join("notes/4").exists());
}

#[test]
fn strict_batch_lands_only_with_criteria_met() {
    let sandbox = with_criteria(&["$ test -e nowhere"], "");
    let out = sandbox.proq(&["swarm", "plan.toml", "--strict", "-q"]);
    assert_eq!(out.code, 4, "{}{}", out.stdout, out.stderr);
    let message = sandbox.proq(&["merge", "--batch", ID]).fails(1);
    assert!(message.contains("which is strict: 0 of 1 criterion met; nothing was changed"), "{message}");
    assert!(message.contains(&format!("git proq merge --batch {ID} --force")), "{message}");
    assert_eq!(sandbox.git(&["log", "--oneline", "main"]).lines().count(), 1);
    let _ = sandbox.proq(&["merge", "--batch", ID, "--force"]).ok();
    assert!(sandbox.repo.join("foot.txt").exists());
    let sandbox = with_criteria(&["$ test -e foot.txt"], "");
    sandbox.git(&["config", "proq.swarm.strict", "true"]);
    let _ = sandbox.proq(&["swarm", "plan.toml", "-q"]).ok();
    let _ = sandbox.proq(&["merge", "--batch", ID]).ok();
    assert!(sandbox.repo.join("foot.txt").exists());
}

#[cfg(debug_assertions)]
#[test]
fn resumes_criteria_checks_after_kill() {
    let criteria = ["$ echo 1 >> $ROOT/tried", "The foot stands.", "$ echo 2 >> $ROOT/tried"];
    for point in ["criteria.command:2", "criteria.asked", "criteria.known", "criteria.written"] {
        let sandbox = with_criteria(&criteria, "begin; cat $notes/judged");
        set_judge_answer(&sandbox, "[{\"n\": 1, \"met\": \"yes\", \"evidence\": \"seen\"}]");
        sandbox.git(&["config", "proq.swarm.verifyAgent", "claude"]);
        let mut command = sandbox.proq_command(&sandbox.repo, &["swarm", "plan.toml", "--detach", "-q"]);
        command.env("PROQ_TEST_DIE_AT", point);
        let out = sandbox.output(command);
        assert_eq!(out.code, 0, "{}", out.stderr);
        let log = sandbox.repo.join(format!(".git/proq/batches/{ID}/log.jsonl"));
        wait_until("its death", || {
            let text = std::fs::read_to_string(&log).unwrap_or_default();
            !scheduler_is_running(&sandbox) && text.contains("its criteria are being checked")
        });
        if point == "criteria.asked" {
            let shown = sandbox.proq(&["batch", "status"]).to_text();
            assert!(shown.contains("2 of 3 criteria checked\n"), "{shown}");
            assert!(shown.contains(&format!("check its criteria: git proq batch resume {ID}")), "{shown}");
        }
        let _ = sandbox.proq(&["resume", ID]);
        assert_eq!(
            criteria_results(&sandbox),
            ["yes: it succeeds", "yes: claude: seen", "yes: it succeeds"],
            "{point}"
        );
        let tried = std::fs::read_to_string(sandbox.root().join("tried")).unwrap();
        assert_eq!(tried, "1\n2\n", "{point}");
        assert!(!sandbox.root().join("notes/2").exists(), "{point}: asked twice");
        let reports = std::fs::read_to_string(&log).unwrap().matches("3 of 3 criteria met").count();
        assert_eq!(reports, usize::from(point != "criteria.written"), "{point}");
        assert_eq!(sandbox.proq(&["list", "--json"]).json()["lanes"].as_array().unwrap().len(), 0, "{point}");
    }
}
