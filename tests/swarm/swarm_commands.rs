//! Tests of commands in a plan: those of a plan in a repository run only after the user approved them.

use proq_test_kit::Sandbox;
use proq_test_kit::plans::repo_with_plan;

use super::swarm::recorded_runs;

const CHECKED: &str = "format = 1\nagent = \"worker\"\n[[task]]\nid = \"x\"\ntitle = \"x\"\nchecks = [\"touch $ROOT/checked\"]\n\
                       [[task]]\nid = \"y\"\ntitle = \"y\"\nchecks = [\"touch $ROOT/checked\", \"true\"]\n\
                       [[task]]\nid = \"z\"\ntitle = \"z\"\ndone = true\nchecks = [\"no one asks\"]\n";

/// Returns the approvals on record.
fn recorded_approvals(sandbox: &Sandbox) -> Vec<String> {
    let answer = sandbox.proq(&["approve", "--list", "--json"]).json();
    let rows = answer["approved"].as_array().unwrap();
    rows.iter()
        .map(|row| format!("{} {}", row["kind"].as_str().unwrap(), row["command"].as_str().unwrap()))
        .collect()
}

/// Promise: checks/approval
#[test]
fn plan_commands_run_only_after_approval() {
    let sandbox = repo_with_plan(CHECKED);
    let message = sandbox.proq(&["swarm", "plan.toml", "--yes"]).fails(1);
    let expected = "repo/plan.toml:\n  touch $ROOT/checked\n  true";
    assert!(message.contains(expected), "{message}");
    assert!(message.contains("git proq approve --plan plan.toml"), "{message}");
    assert!(!sandbox.repo.join(".git/proq/batches").exists() && recorded_runs(&sandbox).is_empty());
    let message = sandbox.proq(&["approve", "--plan", "plan.toml", "--yes"]).ok();
    assert!(message.contains("approved 2 commands"), "{message}");
    assert_eq!(recorded_approvals(&sandbox), ["plan-check touch $ROOT/checked", "plan-check true"]);
    let listed = sandbox.proq(&["approve", "--list"]).ok();
    assert!(listed.contains("plan-check  touch $ROOT/checked  ("), "{listed}");
    let out = sandbox.proq(&["swarm", "plan.toml", "-q"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    assert!(sandbox.root().join("checked").exists());
    // A changed command needs approval again, and so does one whose approval was revoked.
    sandbox.write("plan.toml", &CHECKED.replace("\"true\"", "\"true \""));
    let message = sandbox.proq(&["swarm", "plan.toml", "--new", "--yes"]).fails(1);
    assert!(
        message.contains("you have not approved these commands of ") && message.contains("plan.toml: true"),
        "{message}"
    );
    sandbox.write("plan.toml", CHECKED);
    let _ = sandbox.proq(&["approve", "--revoke"]).ok();
    let _ = sandbox.proq(&["swarm", "plan.toml", "--new", "--yes"]).fails(1);
}

/// Promise: checks/approval
#[test]
fn plan_outside_the_repository_needs_no_approval() {
    let sandbox = repo_with_plan(CHECKED);
    sandbox.sh("mv plan.toml ../plan.toml");
    let shown = sandbox.proq(&["approve", "--plan", "../plan.toml", "--dry-run"]).ok();
    assert!(shown.contains("plan-check  true  (your own settings; needs no approval)"), "{shown}");
    let out = sandbox.proq(&["swarm", "../plan.toml", "-q"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    // A symbolic link that leads into the repository counts as inside it.
    sandbox.sh("mv ../plan.toml plan.toml; ln -s repo/plan.toml ../plan.toml");
    let _ = sandbox.proq(&["swarm", "../plan.toml", "--new", "-q"]).fails(1);
}
