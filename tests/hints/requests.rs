//! Hints about pull requests, by a script that prints what `gh` documents.

use proq_test_kit::Sandbox;
use proq_test_kit::forge::Forge;

/// Opens a request of a lane `x`.
fn sandbox_with_request() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("x", "echo x > x.txt");
    let _forge = Forge::github(&sandbox);
    let _ = sandbox.proq(&["merge", "--pr", "x"]).ok();
    sandbox
}

/// Runs `merge --pr` on lane `x` and returns its failure.
fn refused(sandbox: &Sandbox) -> String {
    sandbox.proq(&["merge", "--pr", "x"]).fails(1)
}

#[test]
fn hint_about_a_closed_request_reopens_it() {
    let sandbox = sandbox_with_request();
    sandbox.commit_in_lane("x", "echo y >> x.txt");
    sandbox.sh("echo CLOSED > ../forge/state");
    assert_eq!(sandbox.follow_hint(&refused(&sandbox), "reopen it").code, 0);
    let updated = sandbox.proq(&["merge", "--pr", "x"]).ok();
    assert!(updated.contains("updated pull request #7"), "{updated}");
}

#[test]
fn hint_about_a_merged_request_removes_its_lane() {
    let sandbox = sandbox_with_request();
    sandbox.sh("printf MERGED > ../forge/state; git rev-parse proq/x | tr -d '\\n' > ../forge/head");
    assert_eq!(sandbox.follow_hint(&refused(&sandbox), "remove the lane").code, 0);
    assert!(!sandbox.lane_path("x").exists());
}

#[test]
fn hint_about_a_rewritten_branch_shows_what_was_pushed() {
    let sandbox = sandbox_with_request();
    sandbox.sh_in(&sandbox.lane_path("x"), "git commit -q --amend -m amended");
    let pushed = sandbox.follow_hint(&refused(&sandbox), "see what was pushed").ok();
    assert!(pushed.starts_with("commit ") && !pushed.contains("amended"), "{pushed}");
}

#[test]
fn hint_about_unreadable_output_shows_the_version() {
    let sandbox = sandbox_with_request();
    sandbox.program("gh", "echo gh version 1");
    let version = sandbox.follow_hint(&refused(&sandbox), "see which version it is").ok();
    assert_eq!(version, "gh version 1\n");
}
