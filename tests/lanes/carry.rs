//! Tests of uncommitted changes when a lane is created: the warning, and `--carry`.

use std::process::Stdio;

use proq_test_kit::Sandbox;
use proq_test_kit::waiting::{KilledOnDrop, OutputLines};

#[test]
fn warns_about_changes_the_lane_starts_without() {
    let sandbox = Sandbox::new();
    sandbox.write("b.txt", "b\n");
    sandbox.commit_all("second");
    sandbox.write("untracked", "");
    assert_eq!(sandbox.proq(&["spawn", "-q", "--empty", "-n", "w"]).stderr, "");
    sandbox.write("a.txt", "mine\n");
    insta::assert_snapshot!(sandbox.proq(&["spawn", "--empty", "-n", "x"]).to_text(), @r"
    lane 'x' on branch proq/x, from main
      [ROOT]/repo/.proq-worktrees/x
    --- stderr
    warning: the lane starts without your uncommitted changes (a.txt); --carry copies them into it
    hint: enter it: cd [ROOT]/repo/.proq-worktrees/x
    --- code 0
    ");
    sandbox.write("b.txt", "mine\n");
    sandbox.git(&["add", "b.txt"]);
    insta::assert_snapshot!(sandbox.proq(&["spawn", "-q", "--empty", "-n", "y"]).stderr, @r"
    warning: the lane starts without your uncommitted changes (a.txt and 1 more); --carry copies them into it
    ");
    assert_eq!(std::fs::read_to_string(sandbox.lane_path("y").join("a.txt")).unwrap(), "a\n");
}

#[test]
fn warns_also_when_reusing_a_pooled_folder() {
    let sandbox = Sandbox::new();
    for (name, change, warns) in [("clean", "true", false), ("dirty", "echo mine >> a.txt", true)] {
        sandbox.lane_with_commit("old", "echo old >> b.txt");
        let _ = sandbox.proq(&["merge", "old"]).ok();
        sandbox.sh(change);
        let out = sandbox.proq(&["-v", "spawn", "--empty", "-n", name]);
        assert!(out.stderr.contains("kept from the folder of lane 'old'"), "{}", out.to_text());
        assert_eq!(
            out.stderr.contains("without your uncommitted changes (a.txt)"),
            warns,
            "{}",
            out.to_text()
        );
    }
}

#[test]
fn prints_lane_before_checking_for_changes() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("old", "echo old >> b.txt");
    let _ = sandbox.proq(&["merge", "old"]).ok();
    sandbox.pipe("asked");
    sandbox.pipe("go");
    // Blocks when git first converts the content of a changed file.
    let filter = "[ -e $ROOT/once ] || { echo > $ROOT/once; echo > $ROOT/asked; read go < $ROOT/go; }; cat";
    sandbox.git(&["config", "filter.slow.clean", filter]);
    sandbox.write(".git/info/attributes", "a.txt filter=slow\n");
    sandbox.write("a.txt", "b\n");
    let mut command = sandbox.proq_command(&sandbox.repo, &["spawn", "--empty", "-n", "x"]);
    let mut spawn = KilledOnDrop(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    let stdout = OutputLines::read_from(spawn.0.stdout.take().unwrap());
    assert_eq!(stdout.next(), "lane 'x' on branch proq/x, from main");
    sandbox.read_pipe("asked");
    assert!(sandbox.lane_path("x").join("b.txt").exists());
    sandbox.write_pipe("go");
    let stderr = OutputLines::read_from(spawn.0.stderr.take().unwrap());
    assert!(stderr.next().contains("without your uncommitted changes (a.txt)"));
    assert_eq!(spawn.exit_code(), Some(0));
}

#[test]
fn carry_commits_changes_and_keeps_originals() {
    let sandbox = Sandbox::new();
    sandbox.write("b.txt", "b\n");
    sandbox.write("gone.txt", "gone\n");
    sandbox.commit_all("second");
    sandbox.write("a.txt", "unstaged\n");
    sandbox.write("b.txt", "staged\n");
    sandbox.write("new.txt", "added\n");
    sandbox.git(&["add", "b.txt", "new.txt"]);
    std::fs::remove_file(sandbox.repo.join("gone.txt")).unwrap();
    sandbox.write("untracked.txt", "mine\n");
    let before = sandbox.git(&["status", "--short"]);
    let index = std::fs::read(sandbox.repo.join(".git/index")).unwrap();
    let out = sandbox.proq(&["spawn", "--empty", "--carry", "-n", "x"]);
    insta::assert_snapshot!(out.to_text(), @r"
    lane 'x' on branch proq/x, from main
      [ROOT]/repo/.proq-worktrees/x
    --- stderr
    hint: enter it: cd [ROOT]/repo/.proq-worktrees/x
    --- code 0
    ");
    assert_eq!(sandbox.git(&["status", "--short"]), before);
    assert_eq!(std::fs::read(sandbox.repo.join(".git/index")).unwrap(), index);
    insta::assert_snapshot!(sandbox.git(&["log", "--format=%s", "--name-status", "main..proq/x"]), @r"
    Carry uncommitted changes over

    M	a.txt
    M	b.txt
    D	gone.txt
    A	new.txt
    ");
    assert_eq!(sandbox.git_in(&sandbox.lane_path("x"), &["status", "--short"]), "");
    assert_eq!(sandbox.row("x")["ahead"], 1);
}

/// Promise: worktree/carry-hidden-edits
#[test]
fn carry_leaves_edits_hidden_from_git_status() {
    let sandbox = Sandbox::new();
    sandbox.sh("echo key=none > conf; echo key=none > env; echo ok > f; git add .; git commit -qm more");
    sandbox.sh("git update-index --skip-worktree conf; echo key=SECRET > conf; echo edit >> f");
    sandbox.sh("git update-index --assume-unchanged env; echo pass=SECRET > env");
    let out = sandbox.proq(&["spawn", "-q", "--empty", "--carry", "-n", "x"]);
    insta::assert_snapshot!(out.stderr, @r"
    warning: edits that git status does not show stay where they are (skip-worktree, assume-unchanged): conf, env
    ");
    assert_eq!(sandbox.git(&["diff", "--name-only", "main", "proq/x"]), "f");
    assert_eq!(
        (sandbox.read("conf").as_str(), sandbox.read("env").as_str()),
        ("key=SECRET\n", "pass=SECRET\n")
    );
    assert_eq!(sandbox.git(&["ls-files", "-v", "conf", "env"]), "S conf\nh env");
    // Staged changes of such a file are visible, so they are carried.
    sandbox.sh("git update-index --no-skip-worktree conf; echo staged > conf; git add conf");
    sandbox.sh("git update-index --skip-worktree conf; echo key=SECRET > conf");
    let _ = sandbox.proq(&["spawn", "-q", "--empty", "--carry", "-n", "y"]).ok();
    assert_eq!(sandbox.git(&["diff", "--name-only", "main", "proq/y"]), "conf\nf");
    assert_eq!(sandbox.git(&["show", "proq/y:conf"]), "staged");
}

/// Promise: worktree/carry-hidden-edits
#[test]
fn carries_files_outside_sparse_patterns() {
    let sandbox = Sandbox::new();
    sandbox.sh("mkdir in out; echo in > in/f; echo out > out/f; git add .; git commit -qm folders");
    sandbox.sh("git sparse-checkout set in; mkdir out; echo edited > out/f; echo edited > in/f");
    assert_eq!(sandbox.git(&["status", "--short"]), " M in/f\n M out/f");
    let _ = sandbox.proq(&["spawn", "-q", "--empty", "--carry", "-n", "x"]).ok();
    assert_eq!(sandbox.git(&["diff", "--name-only", "main", "proq/x"]), "in/f\nout/f");
}

#[test]
fn carry_without_changes_makes_no_commit() {
    let sandbox = Sandbox::new();
    sandbox.write("untracked.txt", "mine\n");
    let _ = sandbox.proq(&["spawn", "--empty", "--carry", "-n", "x"]).ok();
    assert_eq!(sandbox.row("x")["ahead"], 0);
}

#[test]
fn carry_to_other_base_takes_only_changes() {
    let sandbox = Sandbox::new();
    sandbox.git(&["switch", "-q", "-c", "dev"]);
    sandbox.write("dev.txt", "dev\n");
    sandbox.commit_all("on dev");
    sandbox.git(&["switch", "-q", "main"]);
    sandbox.write("main.txt", "main\n");
    sandbox.commit_all("on main");
    sandbox.write("a.txt", "mine\n");
    let _ = sandbox.proq(&["spawn", "--empty", "--carry", "-n", "x", "--base", "dev"]).ok();
    assert_eq!(sandbox.git(&["diff", "--name-status", "dev", "proq/x"]), "M\ta.txt");
    assert_eq!(sandbox.git(&["rev-parse", "proq/x~"]), sandbox.git(&["rev-parse", "dev"]));
}

#[test]
fn refuses_carry_that_conflicts_with_base() {
    let sandbox = Sandbox::new();
    sandbox.git(&["switch", "-q", "-c", "dev"]);
    sandbox.write("a.txt", "dev\n");
    sandbox.commit_all("on dev");
    sandbox.git(&["switch", "-q", "main"]);
    sandbox.write("a.txt", "mine\n");
    let out = sandbox.proq(&["spawn", "--empty", "--carry", "-n", "x", "--base", "dev"]);
    insta::assert_snapshot!(out.to_text(), @r"
    --- stderr
    error: cannot carry your uncommitted changes: they conflict with 'dev': a.txt; nothing was created
    hint: show them: git diff HEAD
    --- code 1
    ");
    assert_eq!(sandbox.lane_leftovers(), [""; 0]);
    assert_eq!(sandbox.read("a.txt"), "mine\n");
}

#[test]
fn carry_inside_a_lane_takes_its_changes() {
    let sandbox = Sandbox::new();
    sandbox.run_lane("one", "echo 1 > one.txt");
    sandbox.write_in(&sandbox.lane_path("one"), "a.txt", "changed in one\n");
    let _ = sandbox.proq_in(&sandbox.lane_path("one"), &["spawn", "--empty", "--carry", "-n", "two"]).ok();
    assert_eq!(sandbox.git(&["diff", "--name-status", "main", "proq/two"]), "M\ta.txt");
}
