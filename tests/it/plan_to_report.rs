//! Owns the test of the whole way: a goal becomes a plan by an agent, is changed, approved, run, landed and reported on.

use super::plan_ai::{PLAN, planner, says};
use super::swarm::worker;

/// The plan after it was changed: only what is in it may be run.
const CHANGED: &str = r#"{"summary": "Payments", "criteria": ["all green"], "task": [
    {"id": "a", "title": "A table", "prompt": "Make the table.", "checks": ["test -e a.txt"]},
    {"id": "mail", "title": "Mail", "needs": ["a"], "prompt": "Send it."}]}"#;

#[test]
fn a_goal_becomes_what_is_on_main_and_a_report() {
    let sandbox = planner(PLAN);
    sandbox.program("codex", "exit 1");
    worker(&sandbox, "printf '%s' \"$1\" > $ROOT/told-$name");
    let before = sandbox.git(&["for-each-ref"]);
    let made = sandbox.proq(&["plan", "--ai", "take money", "--agent", "claude", "--json"]).json();
    let name = made["draft"]["name"].as_str().unwrap().to_owned();
    // Nobody has said yes to it.
    let said = sandbox.proq(&["swarm", &name, "--agent", "worker"]).fails(1);
    assert!(said.contains("approve"), "{said}");
    let _ = sandbox.proq(&["plan", "--approve", "--yes"]).ok();
    // Nor to what has become of it since.
    says(&sandbox, "say", CHANGED);
    let changed = sandbox.proq(&["plan", "--feedback", "mail, no form", "--json"]).json();
    assert_eq!(changed["waves"], serde_json::json!([["a"], ["mail"]]), "{changed:#}");
    let said = sandbox.proq(&["swarm", &name, "--agent", "worker"]).fails(1);
    assert!(said.contains("approve"), "{said}");
    assert_eq!(sandbox.git(&["for-each-ref"]), before, "nothing was begun");
    let _ = sandbox.proq(&["plan", "--approve", "--yes"]).ok();
    let out = sandbox.proq(&["swarm", &name, "--agent", "worker"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    let told = std::fs::read_to_string(sandbox.root().join("told-mail")).unwrap();
    assert!(told.starts_with("Send it."), "{told}");
    let landed = sandbox.proq(&["merge", "--batch", "20260102-030405"]);
    assert_eq!(landed.code, 0, "{}{}", landed.stdout, landed.stderr);
    assert_eq!(sandbox.read("mail.txt"), "work of mail\n");
    let report = sandbox.proq(&["report", "--json"]).json();
    assert_eq!(report["waves"], serde_json::json!([["a"], ["mail"]]));
    assert_eq!((&report["counts"]["landed"], &report["state"]), (&2.into(), &"over".into()), "{report:#}");
    assert_eq!(report["landings"][0]["checks"], serde_json::json!(["test -e a.txt"]));
    assert!(sandbox.proq(&["report"]).ok().contains("2 of 2 tasks"));
    assert_eq!(sandbox.git(&["status", "--porcelain"]), "");
    sandbox.assert_healthy();
}
