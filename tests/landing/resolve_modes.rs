//! Modes of resolving: by hand, in a tool, from a landing and by rerere, and kinds of conflict.

use proq_test_kit::Sandbox;
use proq_test_kit::conflict::{
    GOOD_SCRIPT, RESOLVED, hint_commands, resolve_worktree, sandbox_with_conflict,
};
use proq_test_kit::faults::with_git_wrapper;

#[test]
fn shell_resolves_in_the_resolve_worktree() {
    let sandbox = sandbox_with_conflict();
    sandbox.program(
        "my-shell",
        &format!(
            "{GOOD_SCRIPT}; git checkout -q --ours a.txt; sed -i '/main and/s/.*/lane 5/' long.txt; exit 7"
        ),
    );
    let mut command = sandbox.proq_command(&sandbox.repo, &["resolve", "clash", "--shell"]);
    command.env("SHELL", sandbox.root().join("bin/my-shell"));
    let _ = sandbox.output(command).ok();
    let text = sandbox.git(&["show", "proq/clash:long.txt"]);
    assert!(text.contains("lane 5") && text.contains("main 8"), "a person may drop a side: {text}");
    assert!(sandbox.git(&["log", "-1", "--format=%B", "proq/clash"]).contains("Proq-Resolved-By: hand"));
}

#[test]
fn next_shell_continues_unfinished_resolution() {
    let sandbox = sandbox_with_conflict();
    let shell = |script: &str| {
        sandbox.program("my-shell", script);
        let mut command = sandbox.proq_command(&sandbox.repo, &["resolve", "clash", "--shell"]);
        command.env("SHELL", sandbox.root().join("bin/my-shell"));
        sandbox.output(command)
    };
    let error = shell("sed -i '/^<<<<<<</d' long.txt").fails(1);
    assert!(error.contains("a conflict marker is left"), "{error}");
    let agent_error = sandbox.proq(&["resolve", "clash", "--agent", "good"]).fails(1);
    assert!(agent_error.contains("you are resolving its conflict by hand in"), "{agent_error}");
    let _ = shell("sed -i -e '/^=======/d' -e '/^>>>>>>>/d' long.txt").ok();
    assert!(sandbox.git(&["show", "proq/clash:long.txt"]).contains("lane 5\nmain 5"));
}

#[test]
fn merge_tool_resolves_conflict() {
    let sandbox = sandbox_with_conflict();
    sandbox.git(&[
        "config",
        "mergetool.mine.cmd",
        "printf '1 x\\nlane 2\\n3 x\\n4 x\\ntool 5\\n6 x\\n7 x\\nmain 8\\n9 x\\n' > \"$MERGED\"",
    ]);
    sandbox.git(&["config", "mergetool.mine.trustExitCode", "true"]);
    let _ = sandbox.proq(&["resolve", "clash", "--tool=mine"]).ok();
    assert!(sandbox.git(&["show", "proq/clash:long.txt"]).contains("tool 5"));
    sandbox.assert_healthy();
}

#[test]
fn interrupted_merge_tool_leaves_no_files() {
    let sandbox = sandbox_with_conflict();
    sandbox.git(&["config", "mergetool.mine.cmd", "kill -9 $$"]);
    assert_ne!(sandbox.proq(&["resolve", "clash", "--tool=mine"]).code, 0);
    let worktree = resolve_worktree(&sandbox);
    assert_eq!(sandbox.git_in(&worktree, &["ls-files", "--others"]), "");
    sandbox.program("my-shell", "sed -i '/^[<=>]\\{7\\}/d' long.txt");
    let mut command = sandbox.proq_command(&sandbox.repo, &["resolve", "clash", "--shell"]);
    command.env("SHELL", sandbox.root().join("bin/my-shell"));
    let _ = sandbox.output(command).ok();
    sandbox.assert_healthy();
}

/// Promise: resolution/undecided
#[test]
fn refuses_agent_for_non_line_conflicts() {
    let sandbox = Sandbox::new();
    sandbox.sh("echo old > gone.txt; printf 'a\\0b' > pixels; seq 9 > long.txt");
    sandbox.commit_all("base");
    sandbox.lane_with_commit("clash", "echo new > gone.txt; printf 'a\\0lane' > pixels");
    sandbox.sh("git rm -q gone.txt; printf 'a\\0main' > pixels; git commit -qam 'main goes on'");
    let _ = sandbox.proq(&["merge", "clash"]).fails(3);
    sandbox.program("bold", "git rm -q gone.txt; git checkout -q --theirs pixels; git add pixels");
    let agent_error = sandbox.proq(&["resolve", "clash", "--agent", "bold"]).fails(1);
    assert!(
        agent_error.contains(
            "gone.txt was changed by the lane and deleted on the other side (--allow gone.txt lets"
        ),
        "{agent_error}"
    );
    assert!(agent_error.contains("pixels is binary"), "{agent_error}");
    assert!(!resolve_worktree(&sandbox).exists(), "it was not even begun");
    sandbox.assert_healthy();
    sandbox.program("my-shell", "git checkout -q --ours pixels");
    let mut command = sandbox.proq_command(&sandbox.repo, &["resolve", "clash", "--shell"]);
    command.env("SHELL", sandbox.root().join("bin/my-shell"));
    let shell_error = sandbox.output(command).fails(1);
    assert!(
        shell_error
            .contains("gone.txt was changed by the lane and deleted on the other side, and is not decided"),
        "{shell_error}"
    );
    sandbox.sh_in(&resolve_worktree(&sandbox), "git add gone.txt pixels");
    let _ = sandbox.proq(&["resolve", "clash", "--continue"]).ok();
    assert_eq!(sandbox.git(&["show", "proq/clash:gone.txt"]), "new");
    let _ = sandbox.proq(&["undo"]).ok();
    let _ = sandbox.proq(&["resolve", "clash", "--abort"]).ok();
    let _ = sandbox
        .proq(&["resolve", "clash", "--agent", "bold", "--allow", "gone.txt", "--allow", "pixels"])
        .ok();
    assert_eq!(sandbox.git(&["ls-tree", "--name-only", "proq/clash"]), "a.txt\nlong.txt\npixels");
    sandbox.assert_healthy();
}

#[test]
fn resolves_file_added_by_both_sides() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("clash", "printf 'lane one\\n' > made.txt");
    sandbox.sh("printf 'main one\\n' > made.txt; git add .; git commit -qm made");
    let _ = sandbox.proq(&["merge", "clash"]).fails(3);
    sandbox.program("half", "printf 'lane one\\n' > made.txt");
    let error = sandbox.proq(&["resolve", "clash", "--agent", "half"]).fails(3);
    assert!(error.contains("made.txt:1: the changes of main are missing"), "{error}");
    sandbox.program("both", "printf 'lane one\\nmain one\\n' > made.txt");
    let _ = sandbox.proq(&["resolve", "clash", "--agent", "both"]).ok();
    assert_eq!(sandbox.git(&["show", "proq/clash:made.txt"]), "lane one\nmain one");
}

#[test]
fn merge_with_conflict_agent_resolves_and_lands() {
    let sandbox = sandbox_with_conflict();
    sandbox.lane_with_commit("other", "echo other > other.txt");
    let out = sandbox.proq(&["merge", "--all", "--conflict-agent", "good"]);
    let ids = sandbox.git(&["log", "-2", "--first-parent", "--format=%H"]);
    // An id of digits alone is shown longer.
    let short =
        |text: String, id: &str| (8..=12).rev().fold(text, |text, n| text.replace(&id[..n], "[COMMIT]"));
    let text = ids.lines().fold(out.to_text(), short);
    insta::assert_snapshot!(text, @r"
    landed other on main ([COMMIT])
    landed clash on main ([COMMIT]); its conflict in 1 file was resolved
    --- stderr
    good resolves the conflict of clash with main in 1 file; follow it: git proq logs -f clash
    hint: undo it: git proq undo
    --- code 0
    ");
    assert_eq!(sandbox.read("long.txt"), RESOLVED);
    assert_eq!(sandbox.git(&["status", "--short"]), "");
    assert_eq!(sandbox.row("clash"), serde_json::Value::Null);
    sandbox.assert_healthy();
}

#[test]
fn merge_json_reports_resolved_and_unresolved() {
    let sandbox = sandbox_with_conflict();
    let args = ["merge", "clash", "--json", "--conflict-agent"];
    sandbox.program("bad", "true");
    let out = sandbox.proq(&[&args[..], &["bad", "--conflict-retries", "1"]].concat());
    assert_eq!(out.code, 3);
    let result = &out.json()["lanes"][0];
    assert_eq!(result["result"], "conflict");
    assert!(
        result["message"]
            .as_str()
            .unwrap()
            .starts_with("bad could not resolve the conflict of lane 'clash' in 2 attempts")
    );
    let main = sandbox.git(&["rev-parse", "main"]);
    let _ = sandbox.proq(&["merge", "clash", "--conflict-agent", "not-there"]).fails(1);
    assert_eq!(sandbox.git(&["rev-parse", "main"]), main);
    let out = sandbox.proq(&[&args[..], &["good"]].concat());
    assert_eq!(out.code, 0);
    assert_eq!(out.json()["lanes"][0]["result"], "resolved");
    assert_eq!(out.json()["lanes"][0]["files"][0], "long.txt");
}

#[test]
fn rerere_reuses_earlier_resolution() {
    let sandbox = sandbox_with_conflict();
    sandbox.git(&["config", "rerere.enabled", "true"]);
    let _ = sandbox.proq(&["resolve", "clash", "--agent", "good"]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    let _ = sandbox.proq(&["resolve", "clash", "--abort"]).ok();
    sandbox.program("never", "exit 9");
    let out = sandbox.proq(&["resolve", "clash", "--agent", "never"]).ok();
    assert!(out.starts_with("resolved from git's recorded resolutions"), "{out}");
    assert_eq!(sandbox.git(&["show", "proq/clash:long.txt"]), RESOLVED.trim_end());
}

#[test]
fn obsolete_conflict_needs_no_agent() {
    let sandbox = sandbox_with_conflict();
    sandbox.sh("git revert --no-edit HEAD > /dev/null");
    let out = sandbox.proq(&["resolve", "clash", "--agent", "good"]);
    insta::assert_snapshot!(out.to_text(), @r"
    lane 'clash' does not conflict with main any more
    --- stderr
    hint: show it: git proq diff clash
    hint: merge it: git proq merge clash
    --- code 0
    ");
    assert_eq!(sandbox.proq(&["show", "clash", "--json"]).json()["runs"].as_array().unwrap().len(), 1);
    let _ = sandbox.proq(&["merge", "--all"]).ok();
    sandbox.assert_healthy();
}

#[test]
fn without_mode_lists_ways_to_resolve() {
    let sandbox = sandbox_with_conflict();
    insta::assert_snapshot!(sandbox.proq(&["resolve", "clash"]).to_text(), @r"
    lane 'clash' conflicts with main in 1 file
      CONFLICT (content): Merge conflict in long.txt

      let an agent resolve it: git proq resolve clash --agent claude
      resolve it in a shell: git proq resolve clash --shell
      resolve it in your merge tool: git proq resolve clash --tool
    --- code 0
    ");
    let plan = sandbox.proq(&["resolve", "clash", "--agent", "good", "--retries", "2", "--dry-run"]).ok();
    assert!(plan.contains("let good resolve it in up to 3 runs"), "{plan}");
    assert!(!resolve_worktree(&sandbox).exists());
    let json = sandbox.proq(&["resolve", "clash", "--json"]).json();
    assert_eq!((&json["result"], &json["files"][0]), (&"conflict".into(), &"long.txt".into()));
    let _ = sandbox.proq(&["resolve", "clash", "--agent", "not-there"]).fails(1);
    assert!(!resolve_worktree(&sandbox).exists());
    sandbox.lane_with_commit("fine", "echo f > f.txt");
    let error = sandbox.proq(&["resolve", "fine", "--shell"]).fails(1);
    assert!(error.contains("cannot resolve lane 'fine': it does not conflict with main"), "{error}");
}

#[test]
fn names_missing_lane_or_base_branch() {
    let sandbox = sandbox_with_conflict();
    sandbox.sh("git -C .proq-worktrees/clash switch -q --detach; git branch -q -D proq/clash");
    let error = sandbox.proq(&["resolve", "clash", "--agent", "good"]).fails(1);
    assert!(error.contains("cannot resolve lane 'clash': its branch proq/clash is missing"), "{error}");
    sandbox.sh("git branch -q proq/clash $(git -C .proq-worktrees/clash rev-parse HEAD); git switch -qc other; git branch -q -D main");
    let error = sandbox.proq(&["resolve", "clash", "--agent", "good"]).fails(1);
    assert!(error.contains("cannot merge into 'main': there is no such branch"), "{error}");
}

/// Returns a sandbox whose conflict was checked out in a shell and then changed by this script.
fn sandbox_resolved_by_hand(script: &str) -> Sandbox {
    let sandbox = sandbox_with_conflict();
    let mut command = sandbox.proq_command(&sandbox.repo, &["resolve", "clash", "--shell"]);
    command.env("SHELL", "true");
    let _ = sandbox.output(command).fails(1);
    sandbox.sh_in(&resolve_worktree(&sandbox), script);
    sandbox
}

#[test]
fn deleting_conflicted_file_needs_allow() {
    let sandbox = sandbox_resolved_by_hand("git rm -qf long.txt");
    let error = sandbox.proq(&["resolve", "clash", "--continue"]).fails(1);
    let reason = "long.txt was deleted, although neither side deleted it";
    assert!(error.contains(reason), "{error}");
    let _ = sandbox.proq(&["resolve", "clash", "--continue", "--allow", "long.txt"]).ok();
    assert!(!sandbox.git(&["ls-tree", "--name-only", "proq/clash"]).contains("long.txt"));
}

#[test]
fn marker_like_text_needs_allow() {
    for line in ["=======", "<<<<<<< text", ">>>>>>> text", "||||||| text"] {
        let sandbox =
            sandbox_resolved_by_hand(&format!("{GOOD_SCRIPT} > ../said; sed -i '5i{line}' long.txt"));
        let error = sandbox.proq(&["resolve", "clash", "--continue"]).fails(1);
        let reason = format!("a conflict marker is left: '{line}'");
        assert!(error.contains(&reason), "{error}");
        let _ = sandbox.proq(&["resolve", "clash", "--continue", "--allow", "long.txt"]).ok();
        assert!(sandbox.git(&["show", "proq/clash:long.txt"]).contains(line));
    }
}

#[test]
fn hint_accepts_all_refused_files() {
    let script = format!("{GOOD_SCRIPT}; echo 1 > 'a b.txt'; echo 2 > b.txt");
    let sandbox = sandbox_resolved_by_hand(&script);
    let error = sandbox.proq(&["resolve", "clash", "--continue"]).fails(1);
    let message = "error: cannot accept the resolution of lane 'clash':\n  a b.txt is new and is not in conflict\n  b.txt is new and is not in conflict\n";
    assert!(error.contains(message), "{error}");
    sandbox.sh(&hint_commands(&sandbox, &error)[1]);
    assert_eq!(sandbox.git(&["show", "proq/clash:a b.txt", "proq/clash:b.txt"]), "1\n2");
}

#[test]
fn agent_may_not_leave_complete_conflict_as_text() {
    let sandbox = sandbox_with_conflict();
    let both = "sed -i '1i<<<<<<< a\\n=======\\n>>>>>>> b' long.txt";
    sandbox.program("bad", &format!("{GOOD_SCRIPT}; {both}"));
    let error = sandbox.proq(&["resolve", "clash", "--agent", "bad", "--allow", "long.txt"]).fails(3);
    assert!(error.contains("a conflict marker is left: '<<<<<<< a'"), "{error}");
    assert!(!error.contains("accept it as it is"), "{error}");
}

#[test]
fn lane_without_conflict_hints_at_dry_run() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("fine", "echo fine > fine.txt");
    let error = sandbox.proq(&["resolve", "fine"]).fails(1);
    assert!(error.contains("hint: see what would land: git proq merge fine --dry-run\n"), "{error}");
    for flag in ["--continue", "--abort"] {
        assert_eq!(sandbox.proq(&["resolve", "fine", flag]).fails(1), error);
        assert_eq!(sandbox.proq(&["resolve", "fine", flag, "--dry-run"]).fails(1), error);
    }
}

#[test]
fn hinted_command_checks_the_conflict_out() {
    let sandbox = sandbox_with_conflict();
    sandbox.program("sh-here", "git rev-parse --show-toplevel > $ROOT/where; exit 0");
    let error = sandbox.proq(&["resolve", "clash", "--continue"]).fails(1);
    assert!(error.contains("hint: start one: git proq resolve clash --shell\n"), "{error}");
    let mut shell = sandbox.proq_command(&sandbox.repo, &["resolve", "clash", "--shell"]);
    shell.env("SHELL", sandbox.root().join("bin/sh-here"));
    let _ = sandbox.output(shell);
    assert!(sandbox.root().join("where").exists());
}

#[test]
fn merges_recorded_base_when_base_moves() {
    // Once with a commit that conflicts too, and once with a commit that the lane contains: git reports it as
    // up to date.
    for to in ["main", "proq/clash"] {
        let sandbox = sandbox_with_conflict();
        let old = sandbox.git(&["rev-parse", "main"]);
        let new = sandbox.git(&["commit-tree", &format!("{to}^{{tree}}"), "-p", to, "-m", "moved"]);
        let to = if to == "main" { new } else { sandbox.git(&["rev-parse", to]) };
        let script = format!("\"$REAL\" update-ref refs/heads/main {to}");
        let out = sandbox.output(with_git_wrapper(
            &sandbox,
            "--no-squash -- main",
            &script,
            &["resolve", "clash", "--agent", "good"],
        ));
        assert_eq!(out.code, 0, "{}", out.to_text());
        assert_eq!(sandbox.git(&["rev-parse", "main"]), to);
        assert_eq!(sandbox.git(&["rev-parse", "proq/clash^2"]), old);
        assert_eq!(std::fs::read_to_string(sandbox.lane_path("clash").join("long.txt")).unwrap(), RESOLVED);
    }
}

#[test]
fn hint_of_a_dry_run_resolves_a_conflict_not_on_record() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("clash", "echo lane > a.txt");
    sandbox.write("a.txt", "main\n");
    sandbox.commit_all("main");
    let refs = || sandbox.git(&["for-each-ref"]);
    let before = refs();
    let planned = sandbox.proq(&["merge", "clash", "--dry-run"]).fails(3);
    let hint = "git proq resolve clash";
    assert_eq!(hint_commands(&sandbox, &planned), [hint]);
    let shown = sandbox.proq(&["resolve", "clash"]).ok();
    assert!(shown.starts_with("lane 'clash' conflicts with main in 1 file\n"), "{shown}");
    let _ = sandbox.proq(&["resolve", "clash", "--shell", "--dry-run"]).ok();
    assert_eq!((refs(), sandbox.row("clash")["state"].clone()), (before.clone(), "idle".into()));
    sandbox.program("my-shell", "echo both > a.txt");
    let mut command = sandbox.proq_command(&sandbox.repo, &["resolve", "clash", "--shell"]);
    command.env("SHELL", sandbox.root().join("bin/my-shell"));
    let _ = sandbox.output(command).ok();
    let _ = sandbox.proq(&["merge", "clash"]).ok();
    assert_eq!(sandbox.read("a.txt"), "both\n");
    sandbox.assert_healthy();
    // Undone and aborted, the conflict is as it was before.
    let sandbox = sandbox_with_conflict();
    let _ = sandbox.proq(&["undo"]).ok();
    let mut command = sandbox.proq_command(&sandbox.repo, &["resolve", "clash", "--shell"]);
    command.env("SHELL", "true");
    let _ = sandbox.output(command).fails(1);
    assert_eq!(sandbox.row("clash")["state"], "conflict");
    let _ = sandbox.proq(&["resolve", "clash", "--abort"]).ok();
    assert_eq!(sandbox.row("clash")["state"], "conflict");
    sandbox.assert_healthy();
}
