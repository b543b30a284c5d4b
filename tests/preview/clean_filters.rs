//! Tests of files that cannot be saved because a required clean filter fails.

use proq_test_kit::Sandbox;

/// Creates a lane `one` with a file whose required filter fails.
fn lane_with_failing_filter() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write(".gitattributes", "*.x filter=f\n");
    sandbox.commit_all("base");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "one"]).ok();
    sandbox.sh("git config filter.f.clean false; git config filter.f.required true");
    sandbox.write_in(&sandbox.lane_path("one"), "w.x", "precious\n");
    sandbox
}

/// Runs the command of the only hint, in the main checkout.
#[track_caller]
fn follow_hint(sandbox: &Sandbox, text: &str) {
    let hints: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("hint: ")).collect();
    let [hint] = hints.as_slice() else { panic!("{text}") };
    sandbox.sh(hint.split_once(": ").unwrap().1);
}

/// Promise: snapshots/failing-clean-filter
#[test]
fn keeps_lane_and_names_file_with_failing_filter() {
    let commands: [&[&str]; 3] =
        [&["discard", "--force", "one"], &["cleanup", "--force", "one"], &["undo", "--force"]];
    for args in commands {
        let sandbox = lane_with_failing_filter();
        let text = sandbox.proq(args).fails(1);
        assert!(!text.contains("update-index"), "{text}");
        assert!(text.contains("cannot save w.x in [ROOT]/repo/.proq-worktrees/one"), "{text}");
        assert!(text.contains("its clean filter 'f' fails: external filter 'false' failed"), "{text}");
        assert!(text.contains("; nothing was changed"), "{text}");
        let file = sandbox.lane_path("one").join("w.x");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious\n");
        sandbox.git(&["rev-parse", "--verify", "-q", "proq/one"]);
        follow_hint(&sandbox, &text);
        let _ = sandbox.proq(args).ok();
        assert!(!file.exists());
        let revert_args: &[&str] = if args[0] == "undo" { &["op", "redo"] } else { &["undo"] };
        let _ = sandbox.proq(revert_args).ok();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious\n");
    }
}

#[test]
fn carry_names_file_with_failing_filter() {
    let sandbox = Sandbox::new();
    sandbox.sh("echo '*.x filter=f' > .gitattributes; echo t > t.x");
    sandbox.commit_all("base");
    sandbox.sh("git config filter.f.clean false; git config filter.f.required true; echo more > t.x");
    let out = sandbox.proq(&["spawn", "--carry", "--empty", "-n", "two"]);
    insta::assert_snapshot!(out.to_text(), @r"
    --- stderr
    error: cannot save t.x in [ROOT]/repo: its clean filter 'f' fails: external filter 'false' failed 1; nothing was changed
    hint: let git keep such files unfiltered: git config filter.f.required false
    --- code 1
    ");
    let text = out.fails(1);
    assert_eq!(sandbox.row("two"), serde_json::Value::Null);
    assert_eq!(sandbox.read("t.x"), "more\n");
    follow_hint(&sandbox, &text);
    let _ = sandbox.proq(&["spawn", "--carry", "--empty", "-n", "two"]).ok();
    let carried = std::fs::read_to_string(sandbox.lane_path("two").join("t.x")).unwrap();
    assert_eq!(carried, "more\n");
}
