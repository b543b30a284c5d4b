//! Owns the tests of checkouts whose index is gone or locked by a git that ended long ago: both are named, with what helps.

use super::doctor::finds;
use super::support::{Output, Sandbox};

fn with_lane() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.lane_of("one", "echo one > one.txt");
    sandbox
}

/// The command that a hint ends with, run.
#[track_caller]
fn paste(sandbox: &Sandbox, out: &Output, hint: &str) {
    let found = out.stderr.lines().find_map(|line| line.strip_prefix("hint: ")?.strip_prefix(hint));
    let command = found.unwrap_or_else(|| panic!("no such hint: {}", out.shown()));
    sandbox.sh(&command.replace("[ROOT]", sandbox.root().to_str().unwrap()));
}

#[test]
fn a_checkout_without_an_index_refuses_landing_and_preview_and_is_made_whole() {
    for spoil in ["rm .git/index", ": > .git/index"] {
        for args in [&["merge", "one", "--dry-run"][..], &["merge", "one"], &["preview", "one"]] {
            let sandbox = with_lane();
            sandbox.sh(&format!("{spoil}; echo mine > a.txt"));
            let refs = sandbox.git(&["for-each-ref"]);
            let out = sandbox.proq(args);
            let why = "cannot use [ROOT]/repo: it has no index that git can read, so every file there counts as deleted; nothing was changed";
            assert_eq!(out.code, 1, "{args:?}: {}", out.shown());
            assert!(out.shown().contains(why), "{args:?}: {}", out.shown());
            assert_eq!((refs, sandbox.read("a.txt")), (sandbox.git(&["for-each-ref"]), "mine\n".to_owned()));
            let found = finds(&sandbox, "checkout", "error");
            assert!(found["message"].as_str().unwrap().contains("no index that git can read"), "{found}");
            paste(&sandbox, &out, "make one, and leave every file as it is: ");
            assert_eq!(sandbox.git(&["status", "--short"]), " M a.txt", "{spoil}");
            let _ = sandbox.proq(args).ok();
        }
    }
}

#[test]
fn a_lock_that_an_agent_left_in_its_lane_is_named_with_what_helps() {
    let sandbox = Sandbox::new();
    sandbox.lane_with(
        "one",
        "echo one > one.txt; git add .; git commit -qm one; echo more > more.txt; : > $(git rev-parse --git-dir)/index.lock",
    );
    let lock = "[ROOT]/repo/.git/worktrees/one/index.lock";
    let running =
        format!("another git command is running in [ROOT]/repo/.proq-worktrees/one ({lock} exists)");
    let shown = sandbox.proq(&["show", "one"]).ok();
    assert!(shown.contains(&running) && !shown.contains("git add --all"), "{shown}");
    let found = finds(&sandbox, "git-lock", "error");
    assert!(found["message"].as_str().unwrap().contains("left by the last run of lane 'one'"), "{found}");
    sandbox.git(&["config", "proq.merge.uncommitted", "commit"]);
    for args in [&["merge", "one", "--dry-run"][..], &["merge", "one"]] {
        let out = sandbox.proq(args);
        assert_eq!(out.code, 1, "{}", out.shown());
        assert!(out.shown().contains(&running) && !out.shown().contains("git add --all"), "{}", out.shown());
    }
    sandbox.git(&["config", "--unset", "proq.merge.uncommitted"]);
    let out = sandbox.proq(&["merge", "one"]);
    assert!(out.shown().contains("it has uncommitted work: more.txt"), "{}", out.shown());
    paste(&sandbox, &out, "if no git runs there any more: ");
    sandbox.assert_healthy();
    sandbox.git(&["config", "proq.merge.uncommitted", "commit"]);
    let _ = sandbox.proq(&["merge", "one"]).ok();
    assert_eq!(sandbox.read("more.txt"), "more\n");
}
