//! Removal of read-only lanes: after their answer, while their agent runs, and after their supervisor was
//! killed.

use proq_test_kit::claude::with_claude;
use proq_test_kit::runs::kill_supervisor;
use proq_test_kit::waiting::wait_until;
use serde_json::Value;

use super::read_only_runs::{run_query, sandbox_with_waiting_query};

#[test]
fn discarded_read_only_lane_is_readable_and_restored() {
    let sandbox = with_claude("say 'in tax.rs'");
    let _ = run_query(&sandbox).ok();
    insta::assert_snapshot!(sandbox.proq(&["discard", "x"]).to_text(), @r"
    discarded x
    --- stderr
    its answer stays for a while: git proq show x@1
    --- code 0
    ");
    assert_eq!(sandbox.row("x"), Value::Null);
    assert_eq!(sandbox.proq(&["show", "x@1", "--json"]).json()["answer"], "in tax.rs\n");
    assert!(sandbox.proq(&["list", "--all"]).ok().contains("x@1"));
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.proq(&["show", "x", "--json"]).json()["answer"], "in tax.rs\n");
    let _ = sandbox.proq(&["edit", "x", "--title", "The tax"]).ok();
    assert_eq!(sandbox.row("x")["title"], "The tax");
    let _ = sandbox.proq(&["cleanup", "x"]).ok();
    assert_eq!(sandbox.row("x"), Value::Null);
    sandbox.assert_healthy();
}

#[test]
fn running_lane_must_be_stopped_before_discard() {
    let sandbox = sandbox_with_waiting_query("");
    assert_eq!(sandbox.started_row("x")["state"], "running");
    let out = sandbox.proq(&["discard", "x"]);
    insta::assert_snapshot!(out.to_text(), @r"
    --- stderr
    error: cannot remove lane 'x': its agent is running
    hint: stop the agent: git proq stop x
    hint: remove it anyway; everything is saved first: git proq discard --force x
    --- code 1
    ");
    assert_eq!(sandbox.proq(&["cleanup", "--all"]).code, 0);
    let _ = sandbox.proq(&["run", "x", "claude"]).fails(1);
    let _ = sandbox.proq(&["redispatch", "x"]).fails(1);
    let _ = sandbox.proq(&["stop", "x"]).ok();
    assert_eq!(sandbox.row("x")["state"], "stopped");
    let sandbox = sandbox_with_waiting_query("");
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
    assert_eq!(sandbox.row("x"), Value::Null);
    assert_eq!(sandbox.proq(&["show", "x@1", "--json"]).json()["state"], "discarded");
}

#[test]
fn lane_of_killed_supervisor_can_be_removed() {
    for command in ["discard", "cleanup"] {
        let sandbox = sandbox_with_waiting_query("");
        kill_supervisor(&sandbox, "x");
        sandbox.write_pipe("go");
        wait_until("its agent has ended", || sandbox.row("x")["state"] == "failed");
        let _ = sandbox.proq(&[command, "x"]).ok();
        assert_eq!(sandbox.row("x"), Value::Null);
        // The supervisor may have been killed while it wrote a record; its temporary file stays for a day.
        let report = sandbox.proq(&["doctor", "--json"]).json();
        let findings = report["findings"].as_array().unwrap().iter();
        let known = |finding: &&Value| finding["check"] == "half-written" || finding["check"] == "disk-space";
        let others: Vec<&Value> =
            findings.filter(|finding| finding["severity"] != "info" && !known(finding)).collect();
        assert!(others.is_empty(), "{others:#?}");
    }
}
