//! Owns the tests of the ways to resolve: by hand, in a tool, from a landing, by what git knows, and of other kinds of
//! conflict.

use super::recovery::kit::with_git;
use super::resolve::{GOOD, RESOLVED, conflicting, desk};
use super::support::Sandbox;

#[test]
fn a_shell_is_opened_where_the_conflict_is_laid_out() {
    let sandbox = conflicting();
    sandbox.program(
        "my-shell",
        &format!("{GOOD}; git checkout -q --ours a.txt; sed -i '/main and/s/.*/lane 5/' long.txt; exit 7"),
    );
    let mut command = sandbox.proq_command(&sandbox.repo, &["resolve", "clash", "--shell"]);
    command.env("SHELL", sandbox.root().join("bin/my-shell"));
    let _ = sandbox.output(command).ok();
    let text = sandbox.git(&["show", "proq/clash:long.txt"]);
    assert!(text.contains("lane 5") && text.contains("main 8"), "a person may drop a side: {text}");
    assert!(sandbox.git(&["log", "-1", "--format=%B", "proq/clash"]).contains("Proq-Resolved-By: hand"));
}

#[test]
fn a_shell_that_leaves_work_is_gone_on_with_by_the_next() {
    let sandbox = conflicting();
    let shell = |script: &str| {
        sandbox.program("my-shell", script);
        let mut command = sandbox.proq_command(&sandbox.repo, &["resolve", "clash", "--shell"]);
        command.env("SHELL", sandbox.root().join("bin/my-shell"));
        sandbox.output(command)
    };
    let said = shell("sed -i '/^<<<<<<</d' long.txt").fails(1);
    assert!(said.contains("a conflict marker is left"), "{said}");
    let other = sandbox.proq(&["resolve", "clash", "--agent", "good"]).fails(1);
    assert!(other.contains("is being resolved by hand in"), "{other}");
    let _ = shell("sed -i -e '/^=======/d' -e '/^>>>>>>>/d' long.txt").ok();
    assert!(sandbox.git(&["show", "proq/clash:long.txt"]).contains("lane 5\nmain 5"));
}

#[test]
fn a_merge_tool_resolves_it() {
    let sandbox = conflicting();
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
fn a_conflict_that_is_not_of_lines_is_a_persons() {
    let sandbox = Sandbox::new();
    sandbox.sh("echo old > gone.txt; printf 'a\\0b' > pixels; seq 9 > long.txt");
    sandbox.commit_all("base");
    sandbox.lane_of("clash", "echo new > gone.txt; printf 'a\\0lane' > pixels");
    sandbox.sh("git rm -q gone.txt; printf 'a\\0main' > pixels; git commit -qam 'main goes on'");
    let _ = sandbox.proq(&["merge", "clash"]).fails(3);
    sandbox.program("bold", "git rm -q gone.txt; git checkout -q --theirs pixels; git add pixels");
    let said = sandbox.proq(&["resolve", "clash", "--agent", "bold"]).fails(1);
    assert!(
        said.contains(
            "gone.txt was changed by the lane and deleted on the other side (--allow gone.txt lets"
        ),
        "{said}"
    );
    assert!(said.contains("pixels is binary"), "{said}");
    assert!(!desk(&sandbox).exists(), "it was not even begun");
    sandbox.assert_healthy();
    sandbox.program("my-shell", "git checkout -q --ours pixels");
    let mut command = sandbox.proq_command(&sandbox.repo, &["resolve", "clash", "--shell"]);
    command.env("SHELL", sandbox.root().join("bin/my-shell"));
    let said = sandbox.output(command).fails(1);
    assert!(
        said.contains("gone.txt was changed by the lane and deleted on the other side, and is not decided"),
        "{said}"
    );
    sandbox.sh_in(&desk(&sandbox), "git add gone.txt pixels");
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
fn files_that_both_sides_made_are_resolved_like_others() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("clash", "printf 'lane one\\n' > made.txt");
    sandbox.sh("printf 'main one\\n' > made.txt; git add .; git commit -qm made");
    let _ = sandbox.proq(&["merge", "clash"]).fails(3);
    sandbox.program("half", "printf 'lane one\\n' > made.txt");
    let said = sandbox.proq(&["resolve", "clash", "--agent", "half"]).fails(3);
    assert!(said.contains("made.txt:1: nothing is left of what main did there"), "{said}");
    sandbox.program("both", "printf 'lane one\\nmain one\\n' > made.txt");
    let _ = sandbox.proq(&["resolve", "clash", "--agent", "both"]).ok();
    assert_eq!(sandbox.git(&["show", "proq/clash:made.txt"]), "lane one\nmain one");
}

#[test]
fn a_landing_sends_an_agent_at_what_conflicts_and_lands_it() {
    let sandbox = conflicting();
    sandbox.lane_of("other", "echo other > other.txt");
    let out = sandbox.proq(&["merge", "--all", "--conflict-agent", "good"]);
    let ids = sandbox.git(&["log", "-2", "--first-parent", "--format=%H"]);
    // An id of digits alone is shown longer.
    let short =
        |text: String, id: &str| (8..=12).rev().fold(text, |text, n| text.replace(&id[..n], "[COMMIT]"));
    let text = ids.lines().fold(out.shown(), short);
    insta::assert_snapshot!(text, @r"
    landed other on main ([COMMIT])
    landed clash on main ([COMMIT]); its conflict in 1 file was resolved
    --- stderr
    good resolves the conflict of clash with main in 1 file; follow it: git proq logs -f clash
    --- code 0
    ");
    assert_eq!(sandbox.read("long.txt"), RESOLVED);
    assert_eq!(sandbox.git(&["status", "--short"]), "");
    assert_eq!(sandbox.row("clash"), serde_json::Value::Null);
    sandbox.assert_healthy();
}

#[test]
fn a_landing_says_in_json_what_was_resolved_and_leaves_what_was_not() {
    let sandbox = conflicting();
    let args = ["merge", "clash", "--json", "--conflict-agent"];
    sandbox.program("bad", "true");
    let out = sandbox.proq(&[&args[..], &["bad", "--conflict-retries", "1"]].concat());
    assert_eq!(out.code, 3);
    let line = &out.json()["lanes"][0];
    assert_eq!(line["result"], "conflict");
    assert!(
        line["message"]
            .as_str()
            .unwrap()
            .starts_with("bad could not resolve the conflict of lane 'clash' in 2 tries")
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
fn what_was_resolved_before_is_known_to_rerere() {
    let sandbox = conflicting();
    sandbox.git(&["config", "rerere.enabled", "true"]);
    let _ = sandbox.proq(&["resolve", "clash", "--agent", "good"]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    let _ = sandbox.proq(&["resolve", "clash", "--abort"]).ok();
    sandbox.program("never", "exit 9");
    let out = sandbox.proq(&["resolve", "clash", "--agent", "never"]).ok();
    assert!(out.starts_with("resolved by what git knew from before"), "{out}");
    assert_eq!(sandbox.git(&["show", "proq/clash:long.txt"]), RESOLVED.trim_end());
}

#[test]
fn a_conflict_that_is_over_needs_no_agent() {
    let sandbox = conflicting();
    sandbox.sh("git revert --no-edit HEAD > /dev/null");
    let out = sandbox.proq(&["resolve", "clash", "--agent", "good"]);
    insta::assert_snapshot!(out.shown(), @r"
    lane 'clash' does not conflict with main any more
    --- stderr
    hint: look at it: git proq diff clash   land it: git proq merge clash
    --- code 0
    ");
    assert_eq!(sandbox.proq(&["show", "clash", "--json"]).json()["runs"].as_array().unwrap().len(), 1);
    let _ = sandbox.proq(&["merge", "--all"]).ok();
    sandbox.assert_healthy();
}

#[test]
fn without_a_flag_it_says_what_can_be_done() {
    let sandbox = conflicting();
    insta::assert_snapshot!(sandbox.proq(&["resolve", "clash"]).shown(), @r"
    lane 'clash' conflicts with main in 1 file
      CONFLICT (content): Merge conflict in long.txt

      git proq resolve clash --agent claude        send an agent at it
      git proq resolve clash --shell               resolve it in a shell
      git proq resolve clash --tool                resolve it in your merge tool
    --- code 0
    ");
    let plan = sandbox.proq(&["resolve", "clash", "--agent", "good", "--retries", "2", "--dry-run"]).ok();
    assert!(plan.contains("send good at it in up to 3 runs"), "{plan}");
    assert!(!desk(&sandbox).exists());
    let json = sandbox.proq(&["resolve", "clash", "--json"]).json();
    assert_eq!((&json["result"], &json["files"][0]), (&"conflict".into(), &"long.txt".into()));
    let _ = sandbox.proq(&["resolve", "clash", "--agent", "not-there"]).fails(1);
    assert!(!desk(&sandbox).exists());
    sandbox.lane_of("fine", "echo f > f.txt");
    let said = sandbox.proq(&["resolve", "fine", "--shell"]).fails(1);
    assert!(said.contains("lane 'fine' has no conflict on record"), "{said}");
}

#[test]
fn a_branch_that_is_gone_is_named_as_what_it_was() {
    let sandbox = conflicting();
    sandbox.sh("git -C .proq-worktrees/clash switch -q --detach; git branch -q -D proq/clash");
    let said = sandbox.proq(&["resolve", "clash", "--agent", "good"]).fails(1);
    assert!(
        said.contains("cannot take a resolution: its branch proq/clash is gone; nothing was changed"),
        "{said}"
    );
    sandbox.sh("git branch -q proq/clash $(git -C .proq-worktrees/clash rev-parse HEAD); git switch -qc other; git branch -q -D main");
    let said = sandbox.proq(&["resolve", "clash", "--agent", "good"]).fails(1);
    assert!(said.contains("there is no branch 'main' to land on; nothing was changed"), "{said}");
}

/// Lays the conflict out by hand, has this script make something of it, and says so.
fn by_hand(script: &str) -> Sandbox {
    let sandbox = conflicting();
    let mut command = sandbox.proq_command(&sandbox.repo, &["resolve", "clash", "--shell"]);
    command.env("SHELL", "true");
    let _ = sandbox.output(command).fails(1);
    sandbox.sh_in(&desk(&sandbox), script);
    sandbox
}

#[test]
fn a_conflicted_file_that_neither_side_deleted_is_deleted_by_leave_only() {
    let sandbox = by_hand("git rm -qf long.txt");
    let said = sandbox.proq(&["resolve", "clash", "--continue"]).fails(1);
    let why = "long.txt was deleted, and neither side did that; --allow long.txt gives leave";
    assert!(said.contains(why), "{said}");
    let _ = sandbox.proq(&["resolve", "clash", "--continue", "--allow", "long.txt"]).ok();
    assert!(!sandbox.git(&["ls-tree", "--name-only", "proq/clash"]).contains("long.txt"));
}

#[test]
fn what_looks_like_a_marker_and_is_text_is_taken_by_leave() {
    for line in ["=======", "<<<<<<< text", ">>>>>>> text", "||||||| text"] {
        let sandbox = by_hand(&format!("{GOOD} > ../said; sed -i '5i{line}' long.txt"));
        let said = sandbox.proq(&["resolve", "clash", "--continue"]).fails(1);
        let why = format!("a conflict marker is left: '{line}'; if it is text, --allow long.txt gives leave");
        assert!(said.contains(&why), "{said}");
        let _ = sandbox.proq(&["resolve", "clash", "--continue", "--allow", "long.txt"]).ok();
        assert!(sandbox.git(&["show", "proq/clash:long.txt"]).contains(line));
    }
}

#[test]
fn a_whole_conflict_is_never_text_from_an_agent() {
    let sandbox = conflicting();
    let both = "sed -i '1i<<<<<<< a\\n=======\\n>>>>>>> b' long.txt";
    sandbox.program("bad", &format!("{GOOD}; {both}"));
    let said = sandbox.proq(&["resolve", "clash", "--agent", "bad", "--allow", "long.txt"]).fails(3);
    assert!(said.contains("a conflict marker is left: '<<<<<<< a'"), "{said}");
    assert!(!said.contains("if it is text"), "{said}");
}

#[test]
fn a_lane_without_a_conflict_is_not_landed_by_what_is_proposed() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("fine", "echo fine > fine.txt");
    let said = sandbox.proq(&["resolve", "fine"]).fails(1);
    assert!(said.contains("hint: see whether it conflicts: git proq merge fine --dry-run\n"), "{said}");
    for flag in ["--continue", "--abort"] {
        assert_eq!(sandbox.proq(&["resolve", "fine", flag]).fails(1), said);
        assert_eq!(sandbox.proq(&["resolve", "fine", flag, "--dry-run"]).fails(1), said);
    }
}

#[test]
fn a_conflict_that_is_not_laid_out_is_laid_out_by_the_command_of_the_hint() {
    let sandbox = conflicting();
    sandbox.program("sh-here", "git rev-parse --show-toplevel > $ROOT/where; exit 0");
    let said = sandbox.proq(&["resolve", "clash", "--continue"]).fails(1);
    assert!(said.contains("hint: lay it out: git proq resolve clash --shell\n"), "{said}");
    let mut shell = sandbox.proq_command(&sandbox.repo, &["resolve", "clash", "--shell"]);
    shell.env("SHELL", sandbox.root().join("bin/sh-here"));
    let _ = sandbox.output(shell);
    assert!(sandbox.root().join("where").exists());
}

#[test]
fn a_base_that_moves_while_the_conflict_is_laid_out_is_not_merged_in_place_of_the_one_of_the_conflict() {
    // Once with what conflicts too, and once with nothing that the lane lacks: git says that it is up to date.
    for to in ["main", "proq/clash"] {
        let sandbox = conflicting();
        let old = sandbox.git(&["rev-parse", "main"]);
        let new = sandbox.git(&["commit-tree", &format!("{to}^{{tree}}"), "-p", to, "-m", "moved"]);
        let to = if to == "main" { new } else { sandbox.git(&["rev-parse", to]) };
        let act = format!("\"$REAL\" update-ref refs/heads/main {to}");
        let out = sandbox.output(with_git(
            &sandbox,
            "--no-squash -- main",
            &act,
            &["resolve", "clash", "--agent", "good"],
        ));
        assert_eq!(out.code, 0, "{}", out.shown());
        assert_eq!(sandbox.git(&["rev-parse", "main"]), to);
        assert_eq!(sandbox.git(&["rev-parse", "proq/clash^2"]), old);
        assert_eq!(std::fs::read_to_string(sandbox.lane("clash").join("long.txt")).unwrap(), RESOLVED);
    }
}
