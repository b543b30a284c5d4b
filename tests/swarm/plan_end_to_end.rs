//! Test of the complete path of a plan: an agent makes it from a goal, and it is changed, approved, run,
//! landed and reported.

use proq_test_kit::plans::install_worker;

use super::plan_ai::{PLAN, sandbox_with_planner, set_agent_reply};

/// Plan after a change: only its tasks may run.
const CHANGED_PLAN: &str = r#"{"summary": "Payments", "criteria": ["all green"], "task": [
    {"id": "a", "title": "A table", "prompt": "Make the table.", "checks": ["test -e a.txt"]},
    {"id": "mail", "title": "Mail", "needs": ["a"], "prompt": "Send it."}]}"#;

#[test]
fn goal_is_planned_approved_run_landed_and_reported() {
    let sandbox = sandbox_with_planner(PLAN);
    sandbox.program("codex", "exit 1");
    install_worker(&sandbox, "printf '%s' \"$1\" > $ROOT/told-$name");
    let before = sandbox.git(&["for-each-ref"]);
    let created = sandbox.proq(&["plan", "--ai", "take money", "--agent", "claude", "--json"]).json();
    let name = created["draft"]["name"].as_str().unwrap().to_owned();
    // A draft that is not approved is refused.
    let refusal = sandbox.proq(&["swarm", &name, "--agent", "worker"]).fails(1);
    assert!(refusal.contains("approve"), "{refusal}");
    let _ = sandbox.proq(&["plan", "--approve", "--yes"]).ok();
    // A draft that was changed after its approval is refused too.
    set_agent_reply(&sandbox, "say", CHANGED_PLAN);
    let changed = sandbox.proq(&["plan", "--feedback", "mail, no form", "--json"]).json();
    assert_eq!(changed["waves"], serde_json::json!([["a"], ["mail"]]), "{changed:#}");
    let second_refusal = sandbox.proq(&["swarm", &name, "--agent", "worker"]).fails(1);
    assert!(second_refusal.contains("approve"), "{second_refusal}");
    assert_eq!(sandbox.git(&["for-each-ref"]), before, "nothing was started");
    let _ = sandbox.proq(&["plan", "--approve", "--yes"]).ok();
    let out = sandbox.proq(&["swarm", &name, "--agent", "worker"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    let prompt = std::fs::read_to_string(sandbox.root().join("told-mail")).unwrap();
    assert!(prompt.starts_with("Send it."), "{prompt}");
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
