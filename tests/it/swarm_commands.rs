//! Owns the tests of commands that come with a plan: those of a plan in a repository run only once a person has agreed.

use super::support::Sandbox;
use super::swarm::{planned, ran};

const CHECKED: &str = "format = 1\nagent = \"worker\"\n[[task]]\nid = \"x\"\ntitle = \"x\"\nchecks = [\"touch $ROOT/checked\"]\n\
                       [[task]]\nid = \"y\"\ntitle = \"y\"\nchecks = [\"touch $ROOT/checked\", \"true\"]\n\
                       [[task]]\nid = \"z\"\ntitle = \"z\"\ndone = true\nchecks = [\"no one asks\"]\n";

/// What is on record as approved.
fn approved(sandbox: &Sandbox) -> Vec<String> {
    let answer = sandbox.proq(&["approve", "--list", "--json"]).json();
    let rows = answer["approved"].as_array().unwrap();
    rows.iter()
        .map(|row| format!("{} {}", row["kind"].as_str().unwrap(), row["command"].as_str().unwrap()))
        .collect()
}

#[test]
fn commands_of_a_plan_in_a_repository_run_once_they_are_approved() {
    let sandbox = planned(CHECKED);
    let said = sandbox.proq(&["swarm", "plan.toml", "--yes"]).fails(1);
    let wanted = "repo/plan.toml asks for commands that you have not approved: touch $ROOT/checked; true; nothing was begun";
    assert!(said.contains(wanted), "{said}");
    assert!(said.contains("git proq approve --plan plan.toml"), "{said}");
    assert!(!sandbox.repo.join(".git/proq/batches").exists() && ran(&sandbox).is_empty());
    let said = sandbox.proq(&["approve", "--plan", "plan.toml", "--yes"]).ok();
    assert!(said.contains("approved 2 commands"), "{said}");
    assert_eq!(approved(&sandbox), ["plan-check touch $ROOT/checked", "plan-check true"]);
    let listed = sandbox.proq(&["approve", "--list"]).ok();
    assert!(listed.contains("plan-check  touch $ROOT/checked  ("), "{listed}");
    let out = sandbox.proq(&["swarm", "plan.toml", "-q"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    assert!(sandbox.root().join("checked").exists());
    // Another text asks again, and so does one that was taken back.
    sandbox.write("plan.toml", &CHECKED.replace("\"true\"", "\"true \""));
    let said = sandbox.proq(&["swarm", "plan.toml", "--new", "--yes"]).fails(1);
    assert!(said.contains("you have not approved: true ; nothing was begun"), "{said}");
    sandbox.write("plan.toml", CHECKED);
    let _ = sandbox.proq(&["approve", "--revoke"]).ok();
    let _ = sandbox.proq(&["swarm", "plan.toml", "--new", "--yes"]).fails(1);
}

#[test]
fn a_plan_of_nobodys_repository_is_the_users_own() {
    let sandbox = planned(CHECKED);
    sandbox.sh("mv plan.toml ../plan.toml");
    let shown = sandbox.proq(&["approve", "--plan", "../plan.toml", "--dry-run"]).ok();
    assert!(shown.contains("plan-check  true  (your own settings; needs no approval)"), "{shown}");
    let out = sandbox.proq(&["swarm", "../plan.toml", "-q"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    // Wherever its name stands that leads there.
    sandbox.sh("mv ../plan.toml plan.toml; ln -s repo/plan.toml ../plan.toml");
    let _ = sandbox.proq(&["swarm", "../plan.toml", "--new", "-q"]).fails(1);
}
