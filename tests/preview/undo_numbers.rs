//! Tests of undo and restore by the number of an operation, and of what the user has undone with git already.

use proq_test_kit::Sandbox;
use proq_test_kit::snapshots::assert_no_preview_left;

#[test]
fn undo_of_undone_operation_is_refused_without_restore() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "one"]).ok();
    let _ = sandbox.proq(&["undo", "1"]).ok();
    insta::assert_snapshot!(sandbox.proq(&["undo", "1"]).to_text(), @r"
    --- stderr
    error: cannot undo operation 1: it is already undone; nothing was changed
    hint: list operations: git proq op log
    --- code 1
    ");
    insta::assert_snapshot!(sandbox.proq(&["undo", "2"]).to_text(), @r"
    --- stderr
    error: cannot undo operation 2: it is itself an undo or a redo; nothing was changed
    hint: list operations: git proq op log
    --- code 1
    ");
}

#[test]
fn state_before_oldest_logged_operation_is_restored() {
    let sandbox = Sandbox::new();
    for name in ["one", "two", "three"] {
        let _ = sandbox.proq(&["spawn", "--empty", "-n", name]).ok();
    }
    std::fs::remove_file(sandbox.repo.join(".git/proq/ops/1.jsonl")).unwrap();
    let refused = sandbox.proq(&["undo", "2"]);
    assert!(refused.stderr.contains("operation 2: it is not the last one in effect"), "{}", refused.stderr);
    let _ = sandbox.follow_hint(&refused.stderr, "undo it and everything after it").ok();
    for (name, exists) in [("one", true), ("two", false), ("three", false)] {
        assert_eq!(sandbox.lane_path(name).exists(), exists, "{name}");
    }
    for (number, code) in [("0", 0), ("9", 1), ("18446744073709551615", 1)] {
        let out = sandbox.proq(&["op", "restore", number, "--dry-run"]);
        assert_eq!(
            (out.code, out.stderr.contains("there is no operation")),
            (1, code == 1),
            "{}",
            out.to_text()
        );
    }
}

#[test]
fn undo_of_preview_whose_branch_the_user_deleted() {
    for edit in ["true", "echo mine > a.txt"] {
        let sandbox = Sandbox::new();
        sandbox.lane_with_commit("one", "echo lane > lane.txt");
        sandbox.sh(edit);
        let before = sandbox.git(&["status", "--short"]);
        let _ = sandbox.proq(&["preview", "one"]).ok();
        sandbox.sh("git switch -q main; git branch -qD proq/one-preview");
        let _ = sandbox.proq(&["undo"]).ok();
        assert_eq!(sandbox.git(&["status", "--short"]), before);
        assert_no_preview_left(&sandbox);
        let _ = sandbox.proq(&["redo"]).ok();
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        assert_eq!(sandbox.git(&["status", "--short"]), before);
        assert_no_preview_left(&sandbox);
        sandbox.assert_healthy();
    }
}
