//! `git proq status`, `git proq statusline`, `git proq batch` and `git proq redo`.

use proq_test_kit::Sandbox;

#[test]
fn status_shows_the_repository_on_one_screen() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(sandbox.proq(&["status"]).to_text(), @r#"
    No lanes yet.
    --- stderr
    hint: start an agent in a lane: git proq spawn claude "implement payments"
    --- code 0
    "#);
    sandbox.lane_with_commit("one", "echo one > a.txt");
    sandbox.lane_with_commit("two", "echo two > a.txt");
    sandbox.lane_with_commit("three", "echo three > c.txt");
    let _ = sandbox.proq(&["merge", "one"]).ok();
    let _ = sandbox.proq(&["merge", "two"]).fails(3);
    let _ = sandbox.proq(&["preview", "three"]).ok();
    insta::assert_snapshot!(sandbox.proq(&["status"]).to_text(), @r"
    Preview of 'three', from main
      return: git proq preview --back
    Needs you:
      two: conflict with main in a.txt
        git proq resolve two
    Lanes: 1 conflict, 1 idle
    Landed in the last 24 hours:
      one  on main as eeddba8d, 0s ago
    --- code 0
    ");
    let json = sandbox.proq(&["status", "--json"]).json();
    assert_eq!(json["batches"], serde_json::json!([]));
    let repository = &json["repository"];
    assert_eq!(
        (&repository["preview"]["lane"], &repository["landed"][0]["lane"]),
        (&"three".into(), &"one".into())
    );
    assert_eq!(
        (&repository["lanes"]["conflict"], &repository["attention"][0]["lane"]),
        (&1.into(), &"two".into())
    );
}

#[test]
fn statusline_is_one_line_and_never_an_error() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.proq(&["statusline"]).to_text(), "--- code 0\n");
    sandbox.lane_with_commit("one", "echo one > one");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    assert_eq!(sandbox.proq(&["statusline"]).ok(), "preview one | 1 idle\n");
    assert_eq!(
        sandbox.proq_in(&sandbox.lane_path("one"), &["statusline"]).ok(),
        "one idle | preview one | 1 idle\n"
    );
    assert_eq!(sandbox.proq_in(&sandbox.root(), &["statusline"]).to_text(), "--- code 0\n");
}

#[test]
fn redo_goes_forward_as_op_redo_does() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo one > one");
    let _ = sandbox.proq(&["merge", "one"]).ok();
    let landed = sandbox.git(&["rev-parse", "main"]);
    let _ = sandbox.proq(&["undo"]).ok();
    let planned = sandbox.proq(&["redo", "--dry-run"]).ok();
    assert!(planned.starts_with("would revert the undo"), "{planned}");
    let _ = sandbox.proq(&["redo"]).ok();
    assert_eq!(sandbox.git(&["rev-parse", "main"]), landed);
}

#[test]
fn batch_without_a_command_lists_batches() {
    let sandbox = Sandbox::new();
    let list = sandbox.proq(&["batch", "--json"]).json();
    assert_eq!(list["batches"], serde_json::json!([]));
    assert_eq!(
        sandbox.proq(&["batch", "status", "--json"]).json(),
        sandbox.proq(&["status", "--all", "--json"]).json()
    );
    for command in ["report", "pause", "resume", "abort"] {
        let (new, old) = (sandbox.proq(&["batch", command]), sandbox.proq(&[command]));
        assert_eq!((new.code, &new.stderr), (old.code, &old.stderr), "{command}");
        assert!(!new.stderr.contains("unrecognized"), "{}", new.stderr);
    }
    let (new, old) = (sandbox.proq(&["batch", "land", "x"]), sandbox.proq(&["merge", "--batch", "x"]));
    assert_eq!((new.code, new.stderr), (old.code, old.stderr));
}
