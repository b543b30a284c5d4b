//! `git proq show` and `git proq diff`.

use proq_test_kit::Sandbox;
use proq_test_kit::conflict::hint_commands;

#[test]
fn shows_state_run_and_task_of_lane() {
    let sandbox = Sandbox::new();
    sandbox.program(
        "robot",
        "echo one; echo 1 > one; git add one; git commit -qm 'Add one'; echo 2 > two; exit 3",
    );
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "x", "robot", "# Do one\n\nand two"]).fails(4);
    insta::assert_snapshot!(sandbox.proq(&["show", "x"]).to_text(), @r#"
    lane       x
    title      Do one
    state      failed (exit code 3)
    branch     proq/x at 7221e34b "Add one", 1 ahead, 0 behind
    base       main, from 7f85e07d
    worktree   .proq-worktrees/x
    changes    1 file uncommitted
               two
    commits    1 file changed, 1 insertion(+)
               +1  one
    run 1      robot: failed, exit code 3, 0s
    log        .git/proq/lanes/x/runs/1.log

    # Do one

    and two
    --- stderr
    hint: show its output: git proq logs x
    hint: restart its task from main: git proq redispatch x
    --- code 0
    "#);
    assert_eq!(sandbox.proq(&["show", "proq/x"]).to_text(), sandbox.proq(&["show", "x"]).to_text());
}

#[test]
fn shows_lane_without_run_or_worktree() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    insta::assert_snapshot!(sandbox.proq(&["show", "x"]).to_text(), @r#"
    lane       x
    state      idle
    branch     proq/x at 7f85e07d "first", 0 ahead, 0 behind
    base       main, from 7f85e07d
    worktree   .proq-worktrees/x
    --- code 0
    "#);
    std::fs::remove_dir_all(sandbox.lane_path("x")).unwrap();
    sandbox.git(&["worktree", "prune"]);
    sandbox.git(&["branch", "-q", "-D", "proq/x"]);
    insta::assert_snapshot!(sandbox.proq(&["show", "x"]).to_text(), @r"
    lane       x
    state      idle
    branch     proq/x (gone)
    base       main, from 7f85e07d
    worktree   .proq-worktrees/x (gone)
    --- code 0
    ");
}

#[test]
fn shows_what_lane_conflicts_with() {
    let sandbox = Sandbox::new();
    sandbox.run_lane("x", "echo lane > a.txt");
    sandbox.write("a.txt", "main\n");
    sandbox.commit_all("main");
    let _ = sandbox.proq(&["merge", "x"]).fails(3);
    insta::assert_snapshot!(sandbox.proq(&["show", "x"]).to_text(), @r#"
    lane       x
    title      sh -ec 'echo lane > a.txt'
    state      conflict (with main in a.txt)
    branch     proq/x at 14030ae6 "x: uncommitted changes", 1 ahead, 1 behind
    base       main, from 7f85e07d
    worktree   .proq-worktrees/x
    commits    1 file changed, 1 insertion(+), 1 deletion(-)
               +1 -1  a.txt
    run 1      command: done, exit code 0, 0s
    log        .git/proq/lanes/x/runs/1.log
    conflict   with main in 1 file
               CONFLICT (content): Merge conflict in a.txt
    --- stderr
    hint: resolve the conflict: git proq resolve x
    --- code 0
    "#);
    let out = sandbox.proq(&["show", "x", "--json"]).json();
    assert_eq!((&out["current_state"], &out["conflict"]["onto"]), (&"conflict".into(), &"main".into()));
}

#[test]
fn shows_removed_lane_from_its_record() {
    let sandbox = Sandbox::new();
    for _ in 0..2 {
        sandbox.run_lane("x", "echo 1 > one");
        let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
    }
    insta::assert_snapshot!(sandbox.proq(&["show", "x@2"]).to_text(), @r"
    lane       x@2
    title      sh -ec 'echo 1 > one'
    state      discarded
    branch     proq/x
    base       main, from 7f85e07d
    run 1      command: done, exit code 0, 0s
    log        .git/proq/history/x@2/runs/1.log
    --- code 0
    ");
    insta::assert_snapshot!(sandbox.proq(&["show", "x@3"]).to_text(), @r"
    --- stderr
    error: there is no lane 'x@3'
    hint: see all: git proq list
    --- code 1
    ");
    insta::assert_snapshot!(sandbox.proq(&["show", "x"]).to_text(), @r"
    --- stderr
    error: there is no lane 'x': it was removed 0s ago
    hint: see what it was: git proq show x@2
    hint: see all: git proq list
    --- code 1
    ");
}

#[test]
fn removed_lane_is_named_with_its_landing() {
    let sandbox = Sandbox::new();
    sandbox.run_lane("x", "echo 1 > one");
    let _ = sandbox.proq(&["merge", "x"]).ok();
    let commit = sandbox.git(&["rev-parse", "--short=8", "main"]);
    for command in ["show", "diff", "logs", "merge", "discard", "preview"] {
        let text = sandbox.proq(&[command, "proq/x"]).fails(1);
        let expected = format!("error: there is no lane 'proq/x': it landed on main as {commit} 0s ago\n");
        assert!(text.starts_with(&expected), "{text}");
        let hint = hint_commands(&sandbox, &text).remove(0);
        assert_eq!(hint, "git proq show x@1");
    }
    let _ = sandbox.proq(&["show", "x@1"]).ok();
    // A lane whose name only begins like that is another one.
    assert!(!sandbox.proq(&["show", "x1"]).fails(1).contains("landed"));
}

#[test]
fn suggests_similar_lane_name() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "payments"]).ok();
    insta::assert_snapshot!(sandbox.proq(&["show", "paymnets"]).to_text(), @r"
    --- stderr
    error: there is no lane 'paymnets'
    hint: did you mean 'payments'?
    hint: see all: git proq list
    --- code 1
    ");
    insta::assert_snapshot!(sandbox.proq(&["show", "--json", "../payments"]).to_text(), @r#"
    {
      "causes": [],
      "error": "there is no lane '../payments'",
      "exit": 1,
      "hints": [
        "did you mean 'payments'?",
        "see all: git proq list"
      ],
      "schema": 1
    }
    --- code 1
    "#);
}

#[test]
fn diff_starts_at_fork_point_with_uncommitted_work() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&[
        "spawn",
        "--wait",
        "-n",
        "x",
        "--",
        "sh",
        "-c",
        "echo 1 > one; git add one; git commit -qm one; echo lane >> a.txt; exit 1",
    ]);
    sandbox.write("main.txt", "");
    sandbox.commit_all("main moved");
    insta::assert_snapshot!(sandbox.proq(&["diff", "x"]).to_text(), @r"
    diff --git a/a.txt b/a.txt
    index 7898192..5ab88b2 100644
    --- a/a.txt
    +++ b/a.txt
    @@ -1 +1,2 @@
     a
    +lane
    diff --git a/one b/one
    new file mode 100644
    index 0000000..d00491f
    --- /dev/null
    +++ b/one
    @@ -0,0 +1 @@
    +1
    --- code 0
    ");
    assert_eq!(sandbox.proq(&["diff", "--json", "x"]).json()["files"], serde_json::json!(["a.txt", "one"]));
    std::fs::remove_dir_all(sandbox.lane_path("x")).unwrap();
    assert_eq!(sandbox.proq(&["diff", "--json", "x"]).json()["files"], serde_json::json!(["one"]));
}

#[test]
fn lines_that_landed_have_a_cost() {
    let script = "begin; seq 5 > n-$n; well";
    let sandbox = proq_test_kit::claude::sandbox_with_claude(script);
    for (lane, strategy) in [("x", "merge"), ("y", "squash")] {
        let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", lane, "--wait"]).ok();
        let show = |name: &str| sandbox.proq(&["show", name, "--json"]).json();
        assert_eq!(show(lane).get("cost_per_line"), None);
        let _ = sandbox.proq(&["merge", lane, "--strategy", strategy]).ok();
        let cost = serde_json::json!({ "nanos": 2_500_000, "estimated": false });
        assert_eq!(show(&format!("{lane}@1"))["cost_per_line"], cost, "{strategy}");
    }
}

#[test]
fn json_lists_what_needs_a_person() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "x", "--", "false"]).fails(4);
    sandbox.run_lane("fine", "echo 1 > fine");
    let list = sandbox.proq(&["list", "--json"]).json();
    let row =
        |name: &str| list["lanes"].as_array().unwrap().iter().find(|lane| lane["name"] == name).unwrap();
    let case = &row("x")["attention"][0];
    assert_eq!((&case["kind"], &case["command"]), (&"failed".into(), &"git proq show x".into()));
    assert_eq!(row("fine").get("attention"), None);
    let shown = sandbox.proq(&["show", "x", "--json"]).json();
    assert_eq!(shown["attention"], row("x")["attention"]);
    assert_eq!(list.get("attention"), None);
    sandbox.write("proq.toml", "[verify]\ncommands = [\"true\"]\n");
    sandbox.commit_all("checks");
    let cases = &sandbox.proq(&["list", "--json"]).json()["attention"];
    assert_eq!((&cases[0]["kind"], &cases[0]["command"]), (&"commands".into(), &"git proq approve".into()));
}

#[test]
fn json_warns_once_and_only_of_what_is_shown() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    sandbox.commit_in_lane("x", "echo 1 > x");
    sandbox.write(".git/proq/lanes/broken/lane.toml", "format = 1\nname = ");
    sandbox.write(".git/proq/batches/20260102-030405/batch.toml", "format = 1\nid = ");
    let shown = sandbox.proq(&["show", "x", "--json"]);
    assert_eq!((shown.code, shown.stderr.as_str()), (0, ""));
    let listed = sandbox.proq(&["list", "--json"]);
    for warning in ["warning: lane 'broken': ", "warning: batch 20260102-030405: "] {
        assert_eq!(listed.stderr.matches(warning).count(), 1, "{}", listed.stderr);
    }
}
