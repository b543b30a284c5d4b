//! Owns the tests of the agent that settings send at conflicts.

use super::resolve::{RESOLVED, conflicting};
use super::support::Sandbox;

/// A lane that conflicts, and an agent that is refused the first time it is asked, and says which one it is.
fn with_agent() -> Sandbox {
    let sandbox = conflicting();
    sandbox.program("second", "echo second >> $ROOT/asked; [ $(wc -l < $ROOT/asked) = 1 ] || exec good");
    sandbox
}

fn asked(sandbox: &Sandbox) -> usize {
    std::fs::read_to_string(sandbox.root().join("asked")).unwrap_or_default().lines().count()
}

#[test]
fn the_settings_send_an_agent_with_as_many_tries_as_they_say() {
    let sandbox = with_agent();
    sandbox.git(&["config", "proq.merge.conflictAgent", "second"]);
    let _ = sandbox.proq(&["merge", "clash"]).fails(3);
    assert_eq!(asked(&sandbox), 1);
    let sandbox = with_agent();
    sandbox.git(&["config", "proq.merge.conflictAgent", "second"]);
    sandbox.git(&["config", "proq.merge.conflictRetries", "1"]);
    let _ = sandbox.proq(&["merge", "clash"]).ok();
    assert_eq!((asked(&sandbox), sandbox.read("long.txt")), (2, RESOLVED.to_owned()));
}

#[test]
fn flags_win_over_the_settings_and_leave_them_out() {
    let sandbox = with_agent();
    sandbox.git(&["config", "proq.merge.conflictAgent", "second"]);
    sandbox.git(&["config", "proq.merge.conflictRetries", "7"]);
    for args in
        [&["--no-conflict-agent"][..], &["--conflict-agent", ""], &["--conflict-agent="], &["--atomic"]]
    {
        let text = sandbox.proq(&[&["merge", "clash"], args].concat()).fails(3);
        assert!(text.contains("resolve it: git proq resolve clash"), "{text}");
    }
    assert_eq!(asked(&sandbox), 0);
    let _ = sandbox.proq(&["merge", "clash", "--conflict-retries", "0"]).fails(3);
    assert_eq!(asked(&sandbox), 1, "the tries are the flag's, the agent is the setting's");
    let _ = sandbox.proq(&["resolve", "clash", "--abort"]).ok();
    let _ = sandbox.proq(&["merge", "clash", "--conflict-agent", "good"]).ok();
    assert_eq!((asked(&sandbox), sandbox.read("long.txt")), (1, RESOLVED.to_owned()));
    sandbox.git(&["config", "--unset", "proq.merge.conflictAgent"]);
    let text = sandbox.proq(&["merge", "--all", "--conflict-retries", "1"]).fails(2);
    assert!(text.contains("--conflict-agent"), "{text}");
}

#[test]
fn an_agent_that_the_repository_names_runs_only_once_it_is_approved() {
    let sandbox = conflicting();
    sandbox.program("other", "echo other >> $ROOT/asked");
    let name = |agent: &str| {
        sandbox.write("proq.toml", &format!("[merge]\nconflict_agent = '{agent}'\n"));
    };
    name("good");
    let base = sandbox.git(&["rev-parse", "main"]);
    let plan = sandbox.proq(&["merge", "clash", "--dry-run"]).fails(3);
    assert!(plan.contains("good would be sent at what conflicts, once it is approved"), "{plan}");
    insta::assert_snapshot!(sandbox.proq(&["merge", "clash"]).shown(), @r"
    --- stderr
    error: [ROOT]/repo/proq.toml wants 'good' sent at conflicts, which you have not approved; nothing was moved
    hint: let it run: git proq approve
    hint: or land without: git proq merge --no-conflict-agent …
    --- code 1
    ");
    assert_eq!(sandbox.git(&["rev-parse", "main"]), base);
    let _ = sandbox.proq(&["merge", "clash", "--no-conflict-agent"]).fails(3);
    insta::assert_snapshot!(sandbox.proq(&["approve", "--yes"]).shown(), @r"
    e2e14504  conflict-agent  good  ([ROOT]/repo/proq.toml; not approved)
    approved 1 command
    --- code 0
    ");
    // What counts is the agent that was approved, and what for.
    name("other");
    let _ = sandbox.proq(&["merge", "clash"]).fails(1);
    sandbox.write("proq.toml", "[verify]\ncommands = ['good']\n");
    let _ = sandbox.proq(&["merge", "clash"]).fails(1);
    assert_eq!(asked(&sandbox), 0);
    name("good");
    let _ = sandbox.proq(&["merge", "clash"]).ok();
    assert_eq!(sandbox.read("long.txt"), RESOLVED);
}

#[test]
fn one_s_own_agent_needs_no_approval_and_wins() {
    let sandbox = conflicting();
    sandbox.write("proq.toml", "[merge]\nconflict_agent = 'rm'\n");
    sandbox.git(&["config", "proq.merge.conflictAgent", "good"]);
    let _ = sandbox.proq(&["merge", "clash"]).ok();
    assert_eq!(sandbox.read("long.txt"), RESOLVED);
}

#[test]
fn an_agent_of_the_settings_that_is_not_installed_holds_no_landing_up() {
    let sandbox = conflicting();
    sandbox.lane_of("fine", "echo fine > fine.txt");
    sandbox.git(&["config", "proq.merge.conflictAgent", "not-there"]);
    let text = sandbox.proq(&["merge", "clash", "fine"]).fails(3);
    assert!(text.contains("not-there") && text.contains("conflicts are left to you"), "{text}");
    assert!(sandbox.repo.join("fine.txt").exists());
}

#[test]
fn what_an_agent_has_resolved_is_pushed_with_the_rest() {
    let sandbox = conflicting();
    sandbox.sh("git init -q --bare -b main ../origin.git; git remote add origin ../origin.git; git push -q -u origin main");
    let out = sandbox.proq(&["merge", "clash", "--conflict-agent", "good", "--push", "--json"]);
    assert_eq!((out.code, &out.json()["lanes"][0]["result"]), (0, &"resolved".into()));
    assert_eq!(out.json()["pushed"].as_array().unwrap().len(), 1);
    assert!(sandbox.git(&["ls-remote", "origin"]).contains(&sandbox.git(&["rev-parse", "main"])));
}
