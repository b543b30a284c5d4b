//! Tests of `git proq edit`.

use proq_test_kit::Sandbox;

#[test]
fn title_is_one_line_and_can_be_undone() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "pay"]).ok();
    let title = |text: &str| sandbox.proq(&["edit", "pay", "--title", text]);
    assert_eq!(title("Payments by card").ok(), "called pay: Payments by card\n");
    assert_eq!(sandbox.row("pay")["title"], "Payments by card");
    assert_eq!(title(" a\n\n  b\x1b[31m ").ok(), "called pay: a b[31m\n");
    assert_eq!(title("-x").ok(), "called pay: -x\n");
    let _ = title(&"x".repeat(500)).ok();
    assert_eq!(sandbox.row("pay")["title"], "x".repeat(120));
    for blank in ["", " \n ", "\x1b"] {
        let out = title(blank).fails(2);
        assert!(out.contains("the title says nothing"), "{out}");
    }
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.row("pay")["title"], "-x");
    let out = sandbox.proq(&["edit", "--dry-run", "--json", "pay", "--title", "other"]).json();
    assert_eq!((&out["title"], &out["before"]), (&"other".into(), &"-x".into()));
    assert_eq!(sandbox.row("pay")["title"], "-x");
    let _ = sandbox.proq(&["edit", "pay"]).fails(2);
    let _ = sandbox.proq(&["edit", "nobody", "--title", "x"]).fails(1);
}

#[test]
fn title_edited_during_a_run_is_kept() {
    let sandbox = Sandbox::new();
    sandbox.pipe("go");
    sandbox.start_lane("x", "read line < \"$ROOT/go\"; echo 1 > one");
    let _ = sandbox.started_row("x");
    let _ = sandbox.proq(&["edit", "x", "--title", "one file"]).ok();
    sandbox.write_pipe("go");
    let _ = sandbox.proq(&["wait", "x"]).ok();
    assert_eq!(
        (&sandbox.row("x")["title"], &sandbox.row("x")["state"]),
        (&"one file".into(), &"done".into())
    );
}
