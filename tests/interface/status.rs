//! `git proq status`, `git proq statusline`, `git proq batch` and `git proq redo`.

use proq_test_kit::Sandbox;

#[test]
fn status_shows_the_repository_on_one_screen() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(sandbox.proq(&["status"]).to_text(), @r#"
    No lanes yet.
    --- stderr
    hint: start an agent in a lane of its own: git proq spawn claude "implement payments"
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
    assert_eq!(planned, "would redo operation 2: git proq merge one\n");
    assert_eq!(sandbox.proq(&["redo"]).ok(), "redid operation 2: git proq merge one\n");
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

#[test]
fn conflict_with_the_base_is_none_with_newer_lanes() {
    let sandbox = Sandbox::new();
    sandbox.write("both.txt", "both\n");
    sandbox.commit_all("both");
    sandbox.lane_with_commit("old", "echo old > a.txt");
    sandbox.write("a.txt", "main\n");
    sandbox.commit_all("main");
    sandbox.lane_with_commit("new", "echo new > new.txt");
    for name in ["p", "q"] {
        sandbox.lane_with_commit(name, &format!("echo {name} > both.txt"));
    }
    insta::assert_snapshot!(sandbox.proq(&["status"]).to_text(), @r"
    Needs you:
      old: it would conflict with main in a.txt
        git proq resolve old
      p: it would conflict with q
        git proq matrix p q
    Lanes: 4 idle
    --- code 0
    ");
    let _ = sandbox.proq(&["resolve", "old"]).ok();
    let _ = sandbox.proq(&["matrix", "p", "q"]).ok();
    let shown = sandbox.proq(&["show", "old"]).to_text();
    assert!(shown.contains("hint: resolve the conflict: git proq resolve old\n"), "{shown}");
    assert!(!sandbox.proq(&["show", "new"]).to_text().contains("conflict"));
    let rows = sandbox.proq(&["list", "--json"]).json()["lanes"].clone();
    let conflicts = |n: usize| (rows[n]["conflicts"]["base"].clone(), rows[n]["conflicts"]["lanes"].clone());
    assert_eq!(conflicts(0), (false.into(), serde_json::json!([])));
    assert_eq!(conflicts(1), (true.into(), serde_json::json!([])));
    assert_eq!(conflicts(2), (false.into(), serde_json::json!(["q"])));
}

#[test]
fn status_without_commits_proposes_the_first_one() {
    let sandbox = Sandbox::empty();
    let status = sandbox.proq(&["status"]).to_text();
    let hint = "hint: make a commit to start lanes from: git commit --allow-empty -m 'Start'";
    assert!(status.contains(hint), "{status}");
    sandbox.sh("git commit -q --allow-empty -m 'Start'");
    assert!(sandbox.proq(&["status"]).to_text().contains("git proq spawn claude"));
}

#[test]
fn colors_are_as_git_configures_them() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo one > one");
    let is_colored = |args: &[&str]| {
        let mut command = sandbox.proq_command(&sandbox.repo, args);
        command.env("TERM", "xterm");
        sandbox.output(command).stdout.contains("\x1b[")
    };
    let commands = [&["list"][..], &["show", "one"], &["agents"], &[]];
    for (setting, value, expected) in
        [("color.ui", "always", true), ("color.proq", "never", false), ("color.proq", "always", true)]
    {
        sandbox.git(&["config", setting, value]);
        for args in commands {
            assert_eq!(is_colored(args), expected, "{args:?} with {setting} {value}");
        }
    }
    assert!(!is_colored(&["list", "--color", "never"]));
}

#[test]
fn empty_list_names_what_landed() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo one > one");
    let _ = sandbox.proq(&["merge", "one"]).ok();
    let list = sandbox.proq(&["list"]).to_text();
    assert!(list.contains("hint: see 1 lane that landed: git proq list --all\n"), "{list}");
    assert!(sandbox.proq(&["list", "--all"]).ok().contains("one@1"));
}
