//! Owns the tests of a plan's criteria: looked at in the end by commands and by an agent, told, and insisted on.

use super::runs::with_claude;
use super::support::Sandbox;
use super::support::patience::wait_until;
use super::swarm::worker;
use super::swarm_control::is_held;

const ID: &str = "20260102-030405";

/// A repository with a plan of one task and these criteria, which are approved. `judges` is what claude does when it is asked about them.
fn with_criteria(criteria: &[&str], judges: &str) -> Sandbox {
    let sandbox = with_claude(judges);
    worker(&sandbox, "");
    let plan = format!(
        "format = 1\nsummary = \"A foot\"\nagent = \"worker\"\ncriteria = {criteria:?}\n[[task]]\nid = \"foot\"\ntitle = \"A foot\"\n"
    );
    sandbox.write("plan.toml", &plan);
    let _ = sandbox.proq(&["approve", "--yes", "--plan", "plan.toml"]).ok();
    sandbox
}

/// Has claude say this with `judged`.
fn will_say(sandbox: &Sandbox, text: &str) {
    let said = serde_json::to_string(text).unwrap();
    let well = sandbox.note("well").replace("\"All done.\"", &said);
    std::fs::write(sandbox.root().join("notes/judged"), well).unwrap();
}

/// Each criterion of `status --json`, and what was found out of it.
fn found(sandbox: &Sandbox) -> Vec<String> {
    let status = sandbox.proq(&["status", ID, "--json"]).json();
    let all = status["criteria"]["criteria"].as_array().unwrap().iter();
    all.map(|it| format!("{}: {}", it["met"].as_str().unwrap(), it["evidence"].as_str().unwrap())).collect()
}

#[test]
fn criteria_are_looked_at_by_commands_and_by_an_agent_and_told_everywhere() {
    let criteria = ["$ grep -q work foot.txt", "The foot stands.", "$ echo odd words; exit 3"];
    let sandbox = with_criteria(
        &criteria,
        "begin; ls > $ROOT/seen; if [ $n = 1 ]; then well; else cat $notes/judged; fi",
    );
    will_say(&sandbox, "```json\n[{\"n\": 1, \"met\": \"yes\", \"evidence\": \"foot.txt:1\"},]\n```");
    sandbox.git(&["config", "proq.swarm.verifyAgent", "claude"]);
    let out = sandbox.proq(&["swarm", "plan.toml"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    assert!(out.stdout.contains("2 of 3 criteria met\n"), "{}", out.stdout);
    assert_eq!(
        found(&sandbox),
        ["yes: it succeeds", "yes: claude: foot.txt:1", "no: it fails (exit code 3)"]
    );
    // It was looked at what landed, and not at what is checked out.
    assert_eq!(std::fs::read_to_string(sandbox.root().join("seen")).unwrap(), "a.txt\nfoot.txt\n");
    let asked = sandbox.note("prompt.1");
    assert!(asked.contains("1. The foot stands.\n") && !asked.contains("odd words"), "{asked}");
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
    // All of them tell the same sum, looking at the criteria included.
    let told = sandbox.proq(&["status", ID, "--json"]).json()["cost_usd"].as_f64().unwrap();
    assert_eq!(format!("{told:.9}"), format!("{:.9}", cost / 1e9));
    let events = sandbox.proq(&["events"]).ok();
    assert!(events.contains("all of it is done; 2 of 3 criteria met"), "{events}");
    assert_eq!(sandbox.proq(&["list", "--json"]).json()["lanes"].as_array().unwrap().len(), 0);
    // It is for information only.
    let _ = sandbox.proq(&["merge", "--batch", ID]).ok();
    sandbox.assert_healthy();
}

#[test]
fn what_nobody_is_named_for_is_not_verified_and_what_says_nothing_is_unknown() {
    let sandbox = with_criteria(&["The foot stands."], "begin; well");
    let _ = sandbox.proq(&["swarm", "plan.toml", "-q"]).ok();
    assert_eq!(found(&sandbox), ["not-verified: swarm.verify_agent names nobody who would look"]);
    let sandbox = with_criteria(&["The foot stands."], "begin; well");
    sandbox.git(&["config", "proq.swarm.verifyAgent", "claude"]);
    let _ = sandbox.proq(&["swarm", "plan.toml", "-q"]).ok();
    assert_eq!(found(&sandbox), ["unknown: claude: there is no JSON in it"]);
    assert!(sandbox.root().join("notes/3").exists() && !sandbox.root().join("notes/4").exists());
}

#[test]
fn a_strict_batch_lands_only_if_its_criteria_are_met() {
    let sandbox = with_criteria(&["$ test -e nowhere"], "");
    let out = sandbox.proq(&["swarm", "plan.toml", "--strict", "-q"]);
    assert_eq!(out.code, 4, "{}{}", out.stdout, out.stderr);
    let said = sandbox.proq(&["merge", "--batch", ID]).fails(1);
    assert!(said.contains("is strict, and 0 of 1 criterion met; nothing was moved"), "{said}");
    assert!(said.contains(&format!("git proq merge --batch {ID} --force")), "{said}");
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
fn whoever_dies_over_the_criteria_is_gone_on_with_and_nothing_is_told_twice() {
    let criteria = ["$ echo 1 >> $ROOT/tried", "The foot stands.", "$ echo 2 >> $ROOT/tried"];
    for point in ["criteria.command:2", "criteria.asked", "criteria.known", "criteria.written"] {
        let sandbox = with_criteria(&criteria, "begin; cat $notes/judged");
        will_say(&sandbox, "[{\"n\": 1, \"met\": \"yes\", \"evidence\": \"seen\"}]");
        sandbox.git(&["config", "proq.swarm.verifyAgent", "claude"]);
        let mut command = sandbox.proq_command(&sandbox.repo, &["swarm", "plan.toml", "--detach", "-q"]);
        command.env("PROQ_TEST_DIE_AT", point);
        let out = sandbox.output(command);
        assert_eq!(out.code, 0, "{}", out.stderr);
        let log = sandbox.repo.join(format!(".git/proq/batches/{ID}/log.jsonl"));
        wait_until("its death", || {
            let text = std::fs::read_to_string(&log).unwrap_or_default();
            !is_held(&sandbox) && text.contains("its criteria are looked at")
        });
        if point == "criteria.asked" {
            let shown = sandbox.proq(&["status"]).shown();
            assert!(shown.contains("2 of 3 criteria looked at\n"), "{shown}");
            assert!(shown.contains(&format!("have its criteria looked at: git proq resume {ID}")), "{shown}");
        }
        let _ = sandbox.proq(&["resume", ID]);
        assert_eq!(found(&sandbox), ["yes: it succeeds", "yes: claude: seen", "yes: it succeeds"], "{point}");
        let tried = std::fs::read_to_string(sandbox.root().join("tried")).unwrap();
        assert_eq!(tried, "1\n2\n", "{point}");
        assert!(!sandbox.root().join("notes/2").exists(), "{point}: asked twice");
        let told = std::fs::read_to_string(&log).unwrap().matches("3 of 3 criteria met").count();
        assert_eq!(told, usize::from(point != "criteria.written"), "{point}");
        assert_eq!(sandbox.proq(&["list", "--json"]).json()["lanes"].as_array().unwrap().len(), 0, "{point}");
    }
}
