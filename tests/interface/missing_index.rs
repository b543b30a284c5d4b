//! Tests of checkouts whose index is missing, or locked by a git process that no longer runs: git-proq names
//! the problem and a command that solves it.

use proq_test_kit::{Output, Sandbox};

use super::doctor::assert_finding;

fn sandbox_with_lane() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo one > one.txt");
    sandbox
}

/// Runs the command of the hint that starts with `prefix`.
#[track_caller]
fn run_hint(sandbox: &Sandbox, out: &Output, prefix: &str) {
    let matching_hint = out.stderr.lines().find_map(|line| line.strip_prefix("hint: ")?.strip_prefix(prefix));
    let command = matching_hint.unwrap_or_else(|| panic!("no such hint: {}", out.to_text()));
    sandbox.sh(&command.replace("[ROOT]", sandbox.root().to_str().unwrap()));
}

/// Promise: worktree/missing-index
#[test]
fn refuses_checkout_without_index_and_hint_rebuilds_it() {
    for damage in ["rm .git/index", ": > .git/index"] {
        for args in [&["merge", "one", "--dry-run"][..], &["merge", "one"], &["preview", "one"]] {
            let sandbox = sandbox_with_lane();
            sandbox.sh(&format!("{damage}; echo mine > a.txt"));
            let refs = sandbox.git(&["for-each-ref"]);
            let out = sandbox.proq(args);
            let reason = "cannot use [ROOT]/repo: it has no index that git can read, so every file there counts as deleted; nothing was changed";
            assert_eq!(out.code, 1, "{args:?}: {}", out.to_text());
            assert!(out.to_text().contains(reason), "{args:?}: {}", out.to_text());
            assert_eq!((refs, sandbox.read("a.txt")), (sandbox.git(&["for-each-ref"]), "mine\n".to_owned()));
            let finding = assert_finding(&sandbox, "checkout", "error");
            assert!(finding["message"].as_str().unwrap().contains("no index that git can read"), "{finding}");
            run_hint(&sandbox, &out, "create one without changing files: ");
            assert_eq!(sandbox.git(&["status", "--short"]), " M a.txt", "{damage}");
            let _ = sandbox.proq(args).ok();
        }
    }
}

/// Promise: concurrency/index-lock-named
#[test]
fn names_index_lock_left_by_an_agent() {
    let sandbox = Sandbox::new();
    sandbox.run_lane(
        "one",
        "echo one > one.txt; git add .; git commit -qm one; echo more > more.txt; : > $(git rev-parse --git-dir)/index.lock",
    );
    let lock = "[ROOT]/repo/.git/worktrees/one/index.lock";
    let running =
        format!("another git command is running in [ROOT]/repo/.proq-worktrees/one ({lock} exists)");
    let shown = sandbox.proq(&["show", "one"]).ok();
    assert!(shown.contains(&running) && !shown.contains("git add --all"), "{shown}");
    let finding = assert_finding(&sandbox, "git-lock", "error");
    assert!(finding["message"].as_str().unwrap().contains("left by the last run of lane 'one'"), "{finding}");
    sandbox.git(&["config", "proq.merge.uncommitted", "commit"]);
    for args in [&["merge", "one", "--dry-run"][..], &["merge", "one"]] {
        let out = sandbox.proq(args);
        assert_eq!(out.code, 1, "{}", out.to_text());
        assert!(
            out.to_text().contains(&running) && !out.to_text().contains("git add --all"),
            "{}",
            out.to_text()
        );
    }
    sandbox.git(&["config", "--unset", "proq.merge.uncommitted"]);
    let out = sandbox.proq(&["merge", "one"]);
    assert!(out.to_text().contains("it has uncommitted work: more.txt"), "{}", out.to_text());
    run_hint(&sandbox, &out, "if no git command is running there: ");
    sandbox.assert_healthy();
    sandbox.git(&["config", "proq.merge.uncommitted", "commit"]);
    let _ = sandbox.proq(&["merge", "one"]).ok();
    assert_eq!(sandbox.read("more.txt"), "more\n");
}
