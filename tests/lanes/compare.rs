//! Tests of `git proq compare`: table, JSON, diffs and checks, none of which change anything.

use proq_test_kit::Sandbox;

/// Creates three attempts: a small one, one without changes, and one that conflicts with the first.
fn with_three_attempts() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh("seq 1 9 > long.txt");
    sandbox.commit_all("long");
    let _ = sandbox.proq(&["spawn", "--empty", "--count", "3", "-n", "pay"]).ok();
    sandbox.commit_in_lane("pay-1", "sed -i s/^5$/five/ long.txt; echo 1 > one.txt");
    sandbox.commit_in_lane(
        "pay-3",
        "sed -i s/^5$/V/ long.txt; mkdir d; seq 1 70 > d/big.txt; printf '\\0\\1' > bin",
    );
    sandbox
}

#[test]
fn shows_attempts_side_by_side() {
    let sandbox = with_three_attempts();
    insta::assert_snapshot!(sandbox.proq(&["compare", "pay"]).to_text(), @r"
                 pay-1             pay-2             pay-3
    state        idle              idle              idle
    commits      1                 0                 1
    files        2                 0                 3
    lines        +2 -1             -                 +71 -1
    only here    1 file            -                 2 files
    merges       cleanly           -                 cleanly
    with others  conflicts with 1  -                 conflicts with 1

    only pay-1: one.txt
    only pay-3: bin, d/big.txt
    pay-1 x pay-3: long.txt:5
    --- code 0
    ");
    // Uncommitted work is shown, and a single attempt has no line about others.
    sandbox.write_in(&sandbox.lane_path("pay-2"), "left.txt", "");
    insta::assert_snapshot!(sandbox.proq(&["compare", "pay-2"]).to_text(), @r"
                 pay-2
    state        idle
    commits      0
    changes      1 file uncommitted
    files        0
    lines        -
    merges       -

    --- code 0
    ");
}

#[test]
fn json_lists_files_checks_and_pairs() {
    let sandbox = with_three_attempts();
    sandbox.run_lane("other", "echo o > 'with space\tand tab.txt'");
    let answer = sandbox.proq(&["compare", "--json", "pay", "other", "pay-1"]).json();
    let attempts = answer["attempts"].as_array().unwrap();
    let names: Vec<&str> = attempts.iter().map(|one| one["lane"].as_str().unwrap()).collect();
    assert_eq!(names, ["pay-1", "pay-2", "pay-3", "other"]);
    let third = &attempts[2];
    assert_eq!(
        (&third["group"], &third["commits"], &third["uncommitted"]),
        (&"pay".into(), &1.into(), &0.into())
    );
    let files = serde_json::json!([
        { "path": "bin", "added": null, "removed": null },
        { "path": "d/big.txt", "added": 70, "removed": 0 },
        { "path": "long.txt", "added": 1, "removed": 1 },
    ]);
    assert_eq!(third["files"], files);
    assert_eq!(third["only"], serde_json::json!(["bin", "d/big.txt"]));
    assert_eq!(third["checks"], serde_json::json!({ "result": "none" }));
    let other = &attempts[3];
    assert_eq!(other["only"], serde_json::json!([r"with space\tand tab.txt"]));
    assert_eq!(
        (&other["runs"], &other["seconds"], &other["agent"]),
        (&1.into(), &0.into(), &"command".into())
    );
    let pairs = answer["pairs"].as_array().unwrap();
    let clash = pairs.iter().find(|pair| pair["result"] == "conflict").unwrap();
    assert_eq!((&clash["ours"], &clash["theirs"]), (&"pay-1".into(), &"pay-3".into()));
    let _ = sandbox.proq(&["compare", "nobody"]).fails(1);
    let _ = sandbox.proq(&["compare"]).fails(2);
}

#[test]
fn shows_bases_of_attempts_when_they_differ() {
    let sandbox = with_three_attempts();
    sandbox.git(&["branch", "dev", "HEAD~1"]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "elsewhere", "--base", "dev"]).ok();
    sandbox.commit_in_lane("elsewhere", "echo e > e.txt");
    insta::assert_snapshot!(sandbox.proq(&["compare", "pay-1", "elsewhere"]).to_text(), @r"
                 pay-1          elsewhere
    state        idle           idle
    from         3f557132 main  7f85e07d dev
    commits      1              1
    files        2              1
    lines        +2 -1          +1
    only here    2 files        1 file
    merges       cleanly        cleanly
    with others  -              -

    only pay-1: long.txt, one.txt
    only elsewhere: e.txt
    --- code 0
    ");
}

#[test]
fn many_long_names_fit_terminal_width() {
    let sandbox = Sandbox::new();
    let name = "an-attempt-with-a-name-that-is-as-long-as-a-name-may-be-or-so";
    let _ = sandbox.proq(&["spawn", "--empty", "--count", "7", "-n", name]).ok();
    let out = sandbox.proq(&["compare", name]).ok();
    assert_eq!(out.lines().find(|line| line.chars().count() > 80), None, "{out}");
    for n in 1..=7 {
        assert!(out.contains(&format!("be-or-so-{n}")), "{out}");
    }
    let _ = sandbox.proq(&["discard", &format!("{name}-1")]).ok();
    let three: Vec<String> = (2..5).map(|n| format!("{name}-{n}")).collect();
    let out = sandbox.proq(&["compare", &three[0], &three[1], &three[2]]).ok();
    assert_eq!(out.lines().filter(|line| line.starts_with("state ")).count(), 1, "{out}");
    assert_eq!(out.lines().find(|line| line.chars().count() > 80), None, "{out}");
}

#[test]
fn diff_prints_lanes_one_after_another() {
    let sandbox = with_three_attempts();
    let out = sandbox.proq(&["compare", "--diff", "pay"]).ok();
    let heads: Vec<&str> =
        out.lines().filter(|line| line.starts_with("lane ") || line.starts_with("diff ")).collect();
    assert_eq!(
        heads,
        [
            "lane pay-1",
            "diff --git a/long.txt b/long.txt",
            "diff --git a/one.txt b/one.txt",
            "lane pay-2",
            "lane pay-3",
            "diff --git a/bin b/bin",
            "diff --git a/d/big.txt b/d/big.txt",
            "diff --git a/long.txt b/long.txt"
        ]
    );
}

/// Returns all state that a landing would change.
fn landing_state(sandbox: &Sandbox) -> String {
    sandbox.sh("git for-each-ref; git proq op log --json; git status --short; cat .git/proq/lanes/*/lane.toml; ls .git/proq/work")
}

/// Promise: concurrency/compare
#[test]
fn check_verifies_landing_result_without_landing() {
    let sandbox = with_three_attempts();
    // The base has a file that no lane has yet.
    sandbox.write("moved.txt", "");
    sandbox.commit_all("moved");
    sandbox.git(&["config", "proq.verify.commands", "test -e moved.txt"]);
    let before = landing_state(&sandbox);
    let checks = |args: &[&str]| {
        let answer = sandbox.proq(&[&["compare", "--json", "pay"], args].concat()).json();
        let all = answer["attempts"].as_array().unwrap().iter().map(|one| one["checks"]["result"].clone());
        serde_json::Value::from(all.collect::<Vec<_>>()).to_string()
    };
    assert_eq!(checks(&[]), r#"["unknown","unknown","unknown"]"#);
    // The attempt without a commit would land nothing.
    assert_eq!(checks(&["--check"]), r#"["passed","unknown","passed"]"#);
    assert_eq!(checks(&[]), r#"["passed","unknown","passed"]"#);
    assert_eq!(
        checks(&["--check", "--verify", "echo why; test ! -e d/big.txt"]),
        r#"["passed","unknown","failed"]"#
    );
    let out =
        sandbox.proq(&["compare", "--check", "--verify", "echo why; test ! -e d/big.txt", "pay-3"]).ok();
    assert!(out.contains("checks       failed\n"), "{out}");
    assert!(out.contains("pay-3: `echo why; test ! -e d/big.txt` failed (exit code 1)\n"), "{out}");
    assert!(out.contains("    why\n"), "{out}");
    assert_eq!(landing_state(&sandbox), before);
    // The landing reuses the passed check instead of running its commands again.
    let answer = sandbox.proq(&["merge", "--json", "pay-1"]).json();
    assert_eq!((&answer["checks"]["runs"], &answer["checks"]["reused"]), (&0.into(), &1.into()));
    sandbox.assert_healthy();
}

#[test]
fn check_results_are_remembered_by_tree() {
    let sandbox = Sandbox::new();
    let check = "test -e done.txt";
    let _ = sandbox.proq(&["spawn", "--empty", "--count", "2", "-n", "pay", "--check", check]).ok();
    sandbox.commit_in_lane("pay-1", "echo 1 > other.txt");
    let _ = sandbox.proq(&["merge", "pay-1"]).fails(4);
    let out = sandbox.proq(&["compare", "pay"]);
    assert!(out.stdout.contains("pay-1: `test -e done.txt` failed (exit code 1)\n"), "{}", out.stdout);
    assert!(out.stderr.contains("git proq logs pay-1 --checks"), "{}", out.stderr);
    // The lane has a new tree, so no result is known.
    sandbox.commit_in_lane("pay-1", "echo 1 > done.txt");
    let result = |args: &[&str]| {
        sandbox.proq(&[&["compare", "--json", "pay-1"], args].concat()).json()["attempts"][0]["checks"]["result"].clone()
    };
    assert_eq!(result(&[]), "unknown");
    assert_eq!(result(&["--check"]), "passed");
    assert_eq!(result(&[]), "passed");
}

#[test]
fn refuses_unapproved_check_commands() {
    let sandbox = with_three_attempts();
    sandbox.write("proq.toml", "[verify]\ncommands = [\"touch ran\"]\n");
    sandbox.commit_all("settings");
    let out = sandbox.proq(&["compare", "--check", "pay"]).fails(1);
    assert!(out.contains("git proq approve"), "{out}");
    let _ = sandbox.proq(&["compare", "pay"]).ok();
}
