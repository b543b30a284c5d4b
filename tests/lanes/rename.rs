//! Tests of `git proq rename`.

use proq_test_kit::faults::{kill_at, recover};
use proq_test_kit::{RepoState, Sandbox, fixtures};

#[test]
fn rename_takes_branch_worktree_and_records_along() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("pay", "echo pay > pay");
    sandbox.write_in(&sandbox.lane_path("pay"), "draft.txt", "draft\n");
    sandbox.git(&["update-ref", "refs/remotes/origin/proq/pay", "proq/pay"]);
    let tip = sandbox.git(&["rev-parse", "proq/pay"]);
    let before = RepoState::capture(&sandbox);
    let planned = sandbox.proq(&["rename", "--dry-run", "--json", "pay", "Payments"]).json();
    assert_eq!((&planned["before"], &planned["lane"]), (&"pay".into(), &"payments".into()));
    assert_eq!((&planned["branch"], &planned["dry_run"]), (&"proq/payments".into(), &true.into()));
    RepoState::capture(&sandbox).assert_same(&before, "dry run");
    let out = sandbox.proq(&["rename", "pay", "payments"]).ok();
    insta::assert_snapshot!(out, @r"
    renamed lane pay to payments
      branch    proq/payments
      worktree  .proq-worktrees/payments
    origin/proq/pay keeps its name
    ");
    assert_eq!(sandbox.git(&["rev-parse", "proq/payments"]), tip);
    assert_eq!(sandbox.git(&["branch", "--list", "proq/pay"]), "");
    let lane = sandbox.lane_path("payments");
    assert_eq!(
        sandbox.sh_in(&lane, "git branch --show-current; git status --short"),
        "proq/payments\n?? draft.txt"
    );
    assert!(!sandbox.lane_path("pay").exists());
    assert_eq!(sandbox.git(&["worktree", "list"]).lines().count(), 2);
    let row = sandbox.row("payments");
    assert_eq!((&row["branch"], &row["title"]), (&"proq/payments".into(), &"payments".into()));
    assert_eq!(sandbox.row("pay"), serde_json::Value::Null);
    let after = RepoState::capture(&sandbox);
    assert!(sandbox.proq(&["op", "log"]).ok().contains("lane pay renamed to payments"));
    let _ = sandbox.proq(&["undo"]).ok();
    RepoState::capture(&sandbox).assert_same(&before, "undone");
    let _ = sandbox.proq(&["redo"]).ok();
    RepoState::capture(&sandbox).assert_same(&after, "redone");
    sandbox.commit_in_lane("payments", "echo more > more");
    let _ = sandbox.proq(&["merge", "payments"]).ok();
    assert_eq!(sandbox.git(&["show", "main:more"]), "more");
}

#[test]
fn conflict_and_worktree_in_another_place_are_renamed() {
    let sandbox = fixtures::conflicting_lane();
    let _ = sandbox.proq(&["merge", "clash"]).fails(3);
    sandbox.git(&["worktree", "move", ".proq-worktrees/clash", "../elsewhere"]);
    let _ = sandbox.proq(&["rename", "clash", "crash"]).ok();
    assert_eq!(
        sandbox.git(&["for-each-ref", "--format=%(refname)", "refs/proq/conflict"]),
        "refs/proq/conflict/crash"
    );
    let row = sandbox.row("crash");
    assert_eq!(row["state"], "conflict");
    assert!(row["path"].as_str().unwrap().ends_with("/elsewhere"), "{row}");
    assert!(sandbox.proq(&["show", "crash"]).ok().contains("shared.txt"));
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.row("clash")["state"], "conflict");
}

#[test]
fn rename_is_refused_where_the_name_is_in_use() {
    let sandbox = fixtures::two_lanes();
    sandbox.git(&["branch", "proq/taken"]);
    let refused = |args: &[&str], code: i32, reason: &str| {
        let before = RepoState::capture(&sandbox);
        let out = sandbox.proq(&[&["rename"], args].concat()).fails(code);
        assert!(out.contains(reason), "{out}");
        RepoState::capture(&sandbox).assert_same(&before, reason);
    };
    refused(&["one", "two"], 1, "there is a lane 'two' already");
    refused(&["one", "one"], 1, "there is a lane 'one' already");
    refused(&["one", "taken"], 1, "proq/taken");
    refused(&["one", "../x"], 2, "cannot name a lane");
    refused(&["nobody", "x"], 1, "nobody");
    sandbox.sh_in(&sandbox.lane_path("two"), "git switch -q --detach");
    refused(&["two", "x"], 1, "its worktree is not on proq/two");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    refused(&["one", "x"], 1, "it is previewed");
}

#[test]
fn rename_is_refused_while_the_agent_runs() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "-n", "busy", "--", "sleep", "600"]).ok();
    let out = sandbox.proq(&["rename", "busy", "x"]).fails(1);
    assert!(out.contains("its agent is running"), "{out}");
    let _ = sandbox.proq(&["stop", "busy"]).ok();
    let _ = sandbox.proq(&["rename", "busy", "x"]).ok();
    assert_eq!(sandbox.row("x")["branch"], "proq/x");
}

#[test]
fn undo_of_rename_is_refused_after_newer_work() {
    let sandbox = fixtures::two_lanes();
    let _ = sandbox.proq(&["rename", "one", "first"]).ok();
    sandbox.commit_in_lane("first", "echo more > more");
    let before = RepoState::capture(&sandbox);
    let out = sandbox.proq(&["undo"]).fails(1);
    assert!(out.contains("cannot undo the rename of lane 'first': it has new commits"), "{out}");
    RepoState::capture(&sandbox).assert_same(&before, "refused");
    let _ = sandbox.follow_hint(&out, "rename it back").ok();
    assert_eq!(sandbox.sh_in(&sandbox.lane_path("one"), "cat more"), "more");
}

#[test]
fn rename_and_creation_are_undone_and_redone_together() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "one"]).ok();
    let _ = sandbox.proq(&["rename", "one", "first"]).ok();
    let renamed = RepoState::capture(&sandbox).without_removed_lanes();
    let _ = sandbox.proq(&["op", "restore", "0"]).ok();
    assert_eq!(sandbox.git(&["branch", "--list", "proq/*"]), "");
    let _ = sandbox.proq(&["redo"]).ok();
    RepoState::capture(&sandbox).without_removed_lanes().assert_same(&renamed, "redone");
}

#[test]
fn commits_in_the_log_of_the_branch_survive_rename() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("pay", "echo pay > pay");
    let commit = sandbox.git(&["commit-tree", "-m", "from elsewhere", "-p", "proq/pay", "proq/pay^{tree}"]);
    let tip = sandbox.git(&["rev-parse", "proq/pay"]);
    for new in [&commit, &tip] {
        sandbox.git(&["update-ref", "refs/heads/proq/pay", new]);
    }
    let _ = sandbox.proq(&["rename", "pay", "payments"]).ok();
    sandbox.sh("git gc -q --prune=now");
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s", &commit]), "from elsewhere");
    let _ = sandbox.proq(&["undo"]).ok();
    sandbox.sh("git gc -q --prune=now");
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s", &commit]), "from elsewhere");
    sandbox.assert_healthy();
}

#[test]
fn worktree_in_the_folder_of_the_lane_refuses_rename() {
    let sandbox = fixtures::two_lanes();
    sandbox.git(&["worktree", "add", "-q", "--detach", ".proq-worktrees/one/sub"]);
    sandbox.sh("cd .proq-worktrees/one/sub; git commit -q --allow-empty -m inner");
    let inner = sandbox.git_in(&sandbox.lane_path("one").join("sub"), &["rev-parse", "HEAD"]);
    let refused = sandbox.proq(&["rename", "one", "first"]).fails(1);
    assert!(refused.contains("another worktree is in its folder"), "{refused}");
    let _ = sandbox.follow_hint(&refused, "move it elsewhere").ok();
    let _ = sandbox.proq(&["rename", "one", "first"]).ok();
    sandbox.sh("git worktree prune; git gc -q --prune=now");
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s", &inner]), "inner");
}

/// A program that still writes to the old folder makes it again.
#[test]
fn killed_rename_with_a_new_old_folder_is_reported() {
    let sandbox = fixtures::two_lanes();
    let before = RepoState::capture(&sandbox);
    let mut command = sandbox.proq_command(&sandbox.repo, &["rename", "one", "first"]);
    command.env("PROQ_TEST_DIE_AT", "rename.moved");
    assert_ne!(sandbox.output(command).code, 0);
    sandbox.sh("mkdir -p .proq-worktrees/one/logs");
    let report = sandbox.proq(&["list"]).to_text();
    assert!(report.contains("cannot be undone completely"), "{report}");
    assert!(!report.contains("everything is as it was before"), "{report}");
    sandbox.sh("rm -r .proq-worktrees/one");
    let _ = sandbox.proq(&["undo"]).ok();
    RepoState::capture(&sandbox).assert_same(&before, "undone");
}

#[test]
fn dangling_symbolic_branch_of_the_new_name_is_named() {
    let sandbox = fixtures::two_lanes();
    sandbox.git(&["symbolic-ref", "refs/heads/proq/first", "refs/heads/proq/gone"]);
    let before = RepoState::capture(&sandbox);
    let refused = sandbox.proq(&["rename", "one", "first"]).fails(1);
    assert!(refused.contains("cannot create branch 'proq/first': it exists"), "{refused}");
    RepoState::capture(&sandbox).assert_same(&before, "refused");
    let _ = sandbox.follow_hint(&refused, "remove the symbolic ref").ok();
    let _ = sandbox.proq(&["rename", "one", "first"]).ok();
}

#[test]
fn settings_of_the_branch_are_renamed_and_undone() {
    let sandbox = fixtures::two_lanes();
    sandbox.sh(
        "printf '[branch \"proq/one\"]\n\t# mine\n\tdescription = pay\n\tpushRemote = up\n' >> .git/config",
    );
    let config = || sandbox.read(".git/config");
    let (before, renamed) = (config(), config().replace("proq/one", "proq/first"));
    let _ = sandbox.proq(&["rename", "one", "first"]).ok();
    assert_eq!(config(), renamed);
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(config(), before);
    let _ = sandbox.proq(&["redo"]).ok();
    assert_eq!(config(), renamed);
    let _ = sandbox.proq(&["undo"]).ok();
    for point in ["rename.moved", "settings.locked"] {
        kill_at(&sandbox, point, &["rename", "one", "first"]);
        let _ = recover(&sandbox);
        assert_eq!(config(), before, "{point}");
        assert!(!sandbox.repo.join(".git/config.lock").exists(), "{point}");
    }
}

#[test]
fn settings_of_a_branch_are_not_mixed_or_lost() {
    let sandbox = fixtures::two_lanes();
    sandbox.git(&["config", "branch.proq/one.description", "pay"]);
    let alone = sandbox.read(".git/config");
    sandbox.write(".git/config.lock", "");
    let out = sandbox.proq(&["rename", "one", "first"]);
    let warning = "cannot move the settings branch.proq/one to branch.proq/first: ";
    assert!(out.code == 0 && out.stderr.contains(warning), "{}", out.to_text());
    sandbox.sh("rm .git/config.lock");
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.read(".git/config"), alone);

    sandbox.git(&["config", "branch.proq/first.description", "from before"]);
    let both = sandbox.read(".git/config");
    for args in [&["rename", "one", "first"][..], &["undo"]] {
        let _ = sandbox.proq(args).ok();
        assert_eq!(sandbox.read(".git/config"), both, "{args:?}");
    }
}
