//! Owns the tests of uncommitted changes when a lane is made: the warning, and `--carry`.

use std::process::Stdio;

use super::support::Sandbox;
use super::support::patience::{Beside, Lines};

#[test]
fn changes_that_the_lane_will_not_have_are_named() {
    let sandbox = Sandbox::new();
    sandbox.write("b.txt", "b\n");
    sandbox.commit_all("second");
    sandbox.write("untracked", "");
    assert_eq!(sandbox.proq(&["spawn", "-q", "--empty", "-n", "w"]).stderr, "");
    sandbox.write("a.txt", "mine\n");
    insta::assert_snapshot!(sandbox.proq(&["spawn", "--empty", "-n", "x"]).shown(), @r"
    lane 'x' on branch proq/x, from main
      [ROOT]/repo/.proq-worktrees/x
    --- stderr
    warning: the lane starts without your uncommitted changes (a.txt); --carry takes them along
    hint: cd [ROOT]/repo/.proq-worktrees/x
    --- code 0
    ");
    sandbox.write("b.txt", "mine\n");
    sandbox.git(&["add", "b.txt"]);
    insta::assert_snapshot!(sandbox.proq(&["spawn", "-q", "--empty", "-n", "y"]).stderr, @r"
    warning: the lane starts without your uncommitted changes (a.txt and 1 more); --carry takes them along
    ");
    assert_eq!(std::fs::read_to_string(sandbox.lane("y").join("a.txt")).unwrap(), "a\n");
}

#[test]
fn the_warning_is_given_too_where_a_lane_gets_the_folder_of_a_landed_one() {
    let sandbox = Sandbox::new();
    for (name, change, warns) in [("clean", "true", false), ("dirty", "echo mine >> a.txt", true)] {
        sandbox.lane_of("old", "echo old >> b.txt");
        let _ = sandbox.proq(&["merge", "old"]).ok();
        sandbox.sh(change);
        let out = sandbox.proq(&["-v", "spawn", "--empty", "-n", name]);
        assert!(out.stderr.contains("kept from the folder of lane 'old'"), "{}", out.shown());
        assert_eq!(out.stderr.contains("without your uncommitted changes (a.txt)"), warns, "{}", out.shown());
    }
}

#[test]
fn the_lane_is_there_and_said_before_the_files_here_are_looked_at() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("old", "echo old >> b.txt");
    let _ = sandbox.proq(&["merge", "old"]).ok();
    sandbox.pipe("asked");
    sandbox.pipe("go");
    // Waits when git asks for the first time what a changed file is like.
    let filter = "[ -e $ROOT/once ] || { echo > $ROOT/once; echo > $ROOT/asked; read go < $ROOT/go; }; cat";
    sandbox.git(&["config", "filter.slow.clean", filter]);
    sandbox.write(".git/info/attributes", "a.txt filter=slow\n");
    sandbox.write("a.txt", "b\n");
    let mut command = sandbox.proq_command(&sandbox.repo, &["spawn", "--empty", "-n", "x"]);
    let mut spawn = Beside(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    let said = Lines::of(spawn.0.stdout.take().unwrap());
    assert_eq!(said.next(), "lane 'x' on branch proq/x, from main");
    sandbox.hear("asked");
    assert!(sandbox.lane("x").join("b.txt").exists());
    sandbox.tell("go");
    let warned = Lines::of(spawn.0.stderr.take().unwrap());
    assert!(warned.next().contains("without your uncommitted changes (a.txt)"));
    assert_eq!(spawn.code(), Some(0));
}

#[test]
fn carried_changes_are_the_lanes_first_commit_and_stay_where_they_are() {
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
    insta::assert_snapshot!(out.shown(), @r"
    lane 'x' on branch proq/x, from main
      [ROOT]/repo/.proq-worktrees/x
    --- stderr
    hint: cd [ROOT]/repo/.proq-worktrees/x
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
    assert_eq!(sandbox.git_in(&sandbox.lane("x"), &["status", "--short"]), "");
    assert_eq!(sandbox.row("x")["ahead"], 1);
}

#[test]
fn edits_that_git_status_does_not_show_are_not_carried_and_stay_where_they_are() {
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
    // What is staged of such a file is shown.
    sandbox.sh("git update-index --no-skip-worktree conf; echo staged > conf; git add conf");
    sandbox.sh("git update-index --skip-worktree conf; echo key=SECRET > conf");
    let _ = sandbox.proq(&["spawn", "-q", "--empty", "--carry", "-n", "y"]).ok();
    assert_eq!(sandbox.git(&["diff", "--name-only", "main", "proq/y"]), "conf\nf");
    assert_eq!(sandbox.git(&["show", "proq/y:conf"]), "staged");
}

#[test]
fn files_that_a_sparse_checkout_shows_against_its_patterns_are_carried() {
    let sandbox = Sandbox::new();
    sandbox.sh("mkdir in out; echo in > in/f; echo out > out/f; git add .; git commit -qm folders");
    sandbox.sh("git sparse-checkout set in; mkdir out; echo edited > out/f; echo edited > in/f");
    assert_eq!(sandbox.git(&["status", "--short"]), " M in/f\n M out/f");
    let _ = sandbox.proq(&["spawn", "-q", "--empty", "--carry", "-n", "x"]).ok();
    assert_eq!(sandbox.git(&["diff", "--name-only", "main", "proq/x"]), "in/f\nout/f");
}

#[test]
fn carrying_nothing_makes_no_commit() {
    let sandbox = Sandbox::new();
    sandbox.write("untracked.txt", "mine\n");
    let _ = sandbox.proq(&["spawn", "--empty", "--carry", "-n", "x"]).ok();
    assert_eq!(sandbox.row("x")["ahead"], 0);
}

#[test]
fn only_the_changes_are_carried_to_another_base() {
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
fn changes_that_do_not_fit_the_base_are_refused_by_name() {
    let sandbox = Sandbox::new();
    sandbox.git(&["switch", "-q", "-c", "dev"]);
    sandbox.write("a.txt", "dev\n");
    sandbox.commit_all("on dev");
    sandbox.git(&["switch", "-q", "main"]);
    sandbox.write("a.txt", "mine\n");
    let out = sandbox.proq(&["spawn", "--empty", "--carry", "-n", "x", "--base", "dev"]);
    insta::assert_snapshot!(out.shown(), @r"
    --- stderr
    error: your uncommitted changes do not fit onto 'dev': a.txt; nothing was made
    hint: leave --carry out, or start from the branch that they were made on
    --- code 1
    ");
    assert_eq!(sandbox.traces(), [""; 0]);
    assert_eq!(sandbox.read("a.txt"), "mine\n");
}

#[test]
fn from_inside_a_lane_only_that_lanes_uncommitted_changes_are_carried() {
    let sandbox = Sandbox::new();
    sandbox.lane_with("one", "echo 1 > one.txt");
    sandbox.write_in(&sandbox.lane("one"), "a.txt", "changed in one\n");
    let _ = sandbox.proq_in(&sandbox.lane("one"), &["spawn", "--empty", "--carry", "-n", "two"]).ok();
    assert_eq!(sandbox.git(&["diff", "--name-status", "main", "proq/two"]), "M\ta.txt");
}
