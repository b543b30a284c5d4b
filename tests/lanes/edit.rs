//! Tests of `git proq edit`.

use proq_test_kit::Sandbox;

#[test]
fn title_is_one_line_and_can_be_undone() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "pay"]).ok();
    let title = |text: &str| sandbox.proq(&["edit", "pay", "--title", text]);
    assert_eq!(title("Payments by card").ok(), "set the title of pay to Payments by card\n");
    assert_eq!(sandbox.row("pay")["title"], "Payments by card");
    assert_eq!(title(" a b\x1b[31m \n").ok(), "set the title of pay to a b[31m\n");
    assert!(title("a\nb").fails(2).starts_with("error: the title has more than one line\n"));
    assert_eq!(title("-x").ok(), "set the title of pay to -x\n");
    let _ = title(&"x".repeat(120)).ok();
    assert!(title(&"y".repeat(121)).fails(2).starts_with("error: the title has more than 120 characters\n"));
    assert_eq!(sandbox.row("pay")["title"], "x".repeat(120));
    for blank in ["", " \n ", "\x1b"] {
        let out = title(blank).fails(2);
        assert!(out.contains("the title is empty"), "{out}");
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
fn scope_checks_and_base_are_edited_and_undone() {
    let sandbox = Sandbox::new();
    sandbox.git(&["branch", "develop"]);
    sandbox.lane_with_commit("pay", "echo pay > pay");
    let out =
        sandbox.proq(&["edit", "pay", "--scope", "src/**", "--check", "true", "--check", "test -f pay"]);
    assert_eq!(out.ok(), "set the scope of pay to src/**\nset the checks of pay to true, test -f pay\n");
    let _ = sandbox.proq(&["edit", "pay", "--check", ""]).ok();
    let record = || std::fs::read_to_string(sandbox.repo.join(".git/proq/lanes/pay/lane.toml")).unwrap();
    assert!(!record().contains("checks") && record().contains("src/**"), "{}", record());
    let _ = sandbox.proq(&["undo"]).ok();
    assert!(record().contains("test -f pay"), "{}", record());
    let planned = sandbox.proq(&["edit", "pay", "--base", "develop", "--dry-run", "--json"]).json();
    assert_eq!((&planned["base"], &planned["dry_run"]), (&"develop".into(), &true.into()));
    for bad in ["nope", "proq/pay"] {
        let _ = sandbox.proq(&["edit", "pay", "--base", bad]).fails(1);
    }
    assert_eq!(sandbox.row("pay")["base"], "main");
    let _ = sandbox.proq(&["edit", "pay", "--base", "develop"]).ok();
    let _ = sandbox.proq(&["merge", "pay"]).ok();
    assert_eq!(sandbox.git(&["show", "develop:pay"]), "pay");
    assert_eq!(sandbox.git(&["ls-tree", "--name-only", "main", "pay"]), "");
}

#[test]
fn agent_may_not_edit_what_its_own_work_must_pass() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "pay", "--check", "false"]).ok();
    for flags in [["--check", "true"], ["--base", "main"]] {
        let mut command =
            sandbox.proq_command(&sandbox.lane_path("pay"), &["edit", "pay", flags[0], flags[1]]);
        command.env("PROQ_LANE", "pay").env("PROQ_ATTEMPT", "1");
        let _ = sandbox.output(command).fails(1);
    }
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

#[test]
fn edit_without_a_change_records_nothing() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "pay"]).ok();
    let _ = sandbox.proq(&["edit", "pay", "--title", "Cards"]).ok();
    for args in
        [&["--title", "Cards"][..], &["--base", "main"], &["--check", ""], &["--title", "Cards", "--dry-run"]]
    {
        let out = sandbox.proq(&[&["edit", "pay"], args].concat()).ok();
        assert_eq!(out, "pay already has these values; nothing was changed or recorded\n");
    }
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.row("pay")["title"], "pay");
    let refused = sandbox.proq(&["edit", "pay", "--scope", "/src"]).fails(2);
    assert!(refused.contains("'/src': it is not relative to the top of the repository"), "{refused}");
}

/// The check edits the lane that it checks, once.
#[test]
fn edit_during_a_landing_counts_for_it() {
    let sandbox = Sandbox::new();
    sandbox.git(&["branch", "develop"]);
    sandbox.lane_with_commit("pay", "echo pay > pay");
    for (edit, code, message) in [
        ("--check false", 4, "its own check `false` failed"),
        ("--base develop", 1, "its base was changed to develop while it was being merged"),
    ] {
        let _ = sandbox.proq(&["edit", "pay", "--title", edit, "--check", ""]).ok();
        let once = "test -e \"$ROOT/once\" || { touch \"$ROOT/once\"; git-proq -C \"$ROOT/repo\" edit pay ";
        let check = format!("{once}{edit}; }}");
        let out = sandbox.proq(&["merge", "pay", "--check", &check]).fails(code);
        assert!(out.contains(message), "{out}");
        assert_eq!(sandbox.git(&["ls-tree", "--name-only", "main", "develop", "pay"]), "");
        std::fs::remove_file(sandbox.root().join("once")).unwrap();
    }
}

#[test]
fn title_of_a_command_lane_can_be_run_again() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "x", "--", "sh", "-c", "echo 'a b' > x; true"]).ok();
    assert_eq!(sandbox.row("x")["title"], r"sh -c 'echo '\''a b'\'' > x; true'");
}
