//! Tests of the agent that the settings choose for conflicts.
use proq_test_kit::Sandbox;
use proq_test_kit::conflict::{RESOLVED, sandbox_with_conflict};

/// Creates a conflicting lane and an agent `second`, whose first resolution is refused and whose runs are
/// recorded.
fn with_retrying_agent() -> Sandbox {
    let sandbox = sandbox_with_conflict();
    sandbox.program("second", "echo second >> $ROOT/asked; [ $(wc -l < $ROOT/asked) = 1 ] || exec good");
    sandbox
}

fn agent_run_count(sandbox: &Sandbox) -> usize {
    std::fs::read_to_string(sandbox.root().join("asked")).unwrap_or_default().lines().count()
}

#[test]
fn settings_select_agent_and_retries() {
    let sandbox = with_retrying_agent();
    sandbox.git(&["config", "proq.merge.conflictAgent", "second"]);
    let _ = sandbox.proq(&["merge", "clash"]).fails(3);
    assert_eq!(agent_run_count(&sandbox), 1);
    let sandbox = with_retrying_agent();
    sandbox.git(&["config", "proq.merge.conflictAgent", "second"]);
    sandbox.git(&["config", "proq.merge.conflictRetries", "1"]);
    let _ = sandbox.proq(&["merge", "clash"]).ok();
    assert_eq!((agent_run_count(&sandbox), sandbox.read("long.txt")), (2, RESOLVED.to_owned()));
}

#[test]
fn flags_override_and_disable_the_settings() {
    let sandbox = with_retrying_agent();
    sandbox.git(&["config", "proq.merge.conflictAgent", "second"]);
    sandbox.git(&["config", "proq.merge.conflictRetries", "7"]);
    for args in
        [&["--no-conflict-agent"][..], &["--conflict-agent", ""], &["--conflict-agent="], &["--atomic"]]
    {
        let text = sandbox.proq(&[&["merge", "clash"], args].concat()).fails(3);
        assert!(text.contains("git proq resolve clash"), "{text}");
    }
    assert_eq!(agent_run_count(&sandbox), 0);
    let _ = sandbox.proq(&["merge", "clash", "--conflict-retries", "0"]).fails(3);
    assert_eq!(agent_run_count(&sandbox), 1, "the tries are the flag's, the agent is the setting's");
    let _ = sandbox.proq(&["resolve", "clash", "--abort"]).ok();
    let _ = sandbox.proq(&["merge", "clash", "--conflict-agent", "good"]).ok();
    assert_eq!((agent_run_count(&sandbox), sandbox.read("long.txt")), (1, RESOLVED.to_owned()));
    sandbox.git(&["config", "--unset", "proq.merge.conflictAgent"]);
    let text = sandbox.proq(&["merge", "--all", "--conflict-retries", "1"]).fails(2);
    assert!(text.contains("--conflict-agent"), "{text}");
}

/// Promise: checks/approval
#[test]
fn repository_conflict_agent_needs_approval() {
    let sandbox = sandbox_with_conflict();
    sandbox.program("other", "echo other >> $ROOT/asked");
    let set_agent = |agent: &str| {
        sandbox.write("proq.toml", &format!("[merge]\nconflict_agent = '{agent}'\n"));
    };
    set_agent("good");
    let base = sandbox.git(&["rev-parse", "main"]);
    let plan = sandbox.proq(&["merge", "clash", "--dry-run"]).fails(3);
    assert!(plan.contains("good would resolve the conflicts, once it is approved"), "{plan}");
    insta::assert_snapshot!(sandbox.proq(&["merge", "clash"]).to_text(), @r"
    --- stderr
    error: cannot merge: you have not approved conflict agent 'good' of [ROOT]/repo/proq.toml; nothing was changed
    hint: read and approve it: git proq approve
    hint: or add --no-conflict-agent to merge without it
    --- code 1
    ");
    assert_eq!(sandbox.git(&["rev-parse", "main"]), base);
    let _ = sandbox.proq(&["merge", "clash", "--no-conflict-agent"]).fails(3);
    insta::assert_snapshot!(sandbox.proq(&["approve", "--yes"]).to_text(), @r"
    e2e14504  conflict-agent  good  ([ROOT]/repo/proq.toml; not approved)
    approved 1 command
    --- code 0
    ");
    // The approval covers this agent for this use only.
    set_agent("other");
    let _ = sandbox.proq(&["merge", "clash"]).fails(1);
    sandbox.write("proq.toml", "[verify]\ncommands = ['good']\n");
    let _ = sandbox.proq(&["merge", "clash"]).fails(1);
    assert_eq!(agent_run_count(&sandbox), 0);
    set_agent("good");
    let _ = sandbox.proq(&["merge", "clash"]).ok();
    assert_eq!(sandbox.read("long.txt"), RESOLVED);
}

#[test]
fn user_conflict_agent_needs_no_approval_and_wins() {
    let sandbox = sandbox_with_conflict();
    sandbox.write("proq.toml", "[merge]\nconflict_agent = 'rm'\n");
    sandbox.git(&["config", "proq.merge.conflictAgent", "good"]);
    let _ = sandbox.proq(&["merge", "clash"]).ok();
    assert_eq!(sandbox.read("long.txt"), RESOLVED);
}

#[test]
fn missing_conflict_agent_does_not_block_landing() {
    let sandbox = sandbox_with_conflict();
    sandbox.lane_with_commit("fine", "echo fine > fine.txt");
    sandbox.git(&["config", "proq.merge.conflictAgent", "not-there"]);
    let text = sandbox.proq(&["merge", "clash", "fine"]).fails(3);
    assert!(text.contains("not-there") && text.contains("conflicts are left to you"), "{text}");
    assert!(sandbox.repo.join("fine.txt").exists());
}

#[test]
fn push_includes_agent_resolution() {
    let sandbox = sandbox_with_conflict();
    sandbox.sh("git init -q --bare -b main ../origin.git; git remote add origin ../origin.git; git push -q -u origin main");
    let out = sandbox.proq(&["merge", "clash", "--conflict-agent", "good", "--push", "--json"]);
    assert_eq!((out.code, &out.json()["lanes"][0]["result"]), (0, &"resolved".into()));
    assert_eq!(out.json()["pushed"].as_array().unwrap().len(), 1);
    assert!(sandbox.git(&["ls-remote", "origin"]).contains(&sandbox.git(&["rev-parse", "main"])));
}
