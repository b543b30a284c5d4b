//! Owns the tests of uncommitted work that must not be committed where it is, or as it is: every hint brings it closer to landing.

use super::support::Sandbox;

/// The first hint of what a command refuses of a lane, as a command.
fn hint(sandbox: &Sandbox, args: &[&str]) -> String {
    let json = sandbox.proq(&[args, &["--json"]].concat()).json();
    let hint = json["lanes"][0]["hints"][0].as_str().unwrap_or_else(|| panic!("no hint: {json:#}"));
    hint.split_once(": ").unwrap().1.replace("[ROOT]", sandbox.root().to_str().unwrap())
}

/// Lane `y`, with a commit and an edit, whose agent has pointed the worktree's HEAD at the base.
fn on_base() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.lane_of("y", "echo y > y.txt");
    sandbox.sh_in(&sandbox.lane("y"), "git symbolic-ref HEAD refs/heads/main; echo w > a.txt");
    sandbox
}

#[test]
fn work_in_a_lane_that_is_on_its_base_is_not_to_be_committed_there() {
    let sandbox = on_base();
    let main = sandbox.git(&["rev-parse", "main"]);
    insta::assert_snapshot!(sandbox.proq(&["merge", "y"]).shown(), @r"
    refused y: it has uncommitted work: a.txt, y.txt; its worktree is on main, not on proq/y
    --- stderr
    hint: bring it back to its branch first: git -C '[ROOT]/repo/.proq-worktrees/y' switch proq/y
    --- code 1
    ");
    sandbox.git(&["config", "proq.merge.uncommitted", "commit"]);
    let refused = sandbox.proq(&["merge", "y"]).fails(1);
    assert!(refused.contains("its worktree is on main, not on proq/y"), "{refused}");
    sandbox.sh(&hint(&sandbox, &["merge", "y"]));
    assert_eq!(sandbox.git(&["rev-parse", "main"]), main);
    let _ = sandbox.proq(&["merge", "y"]).ok();
    assert_eq!((sandbox.read("y.txt"), sandbox.read("a.txt")), ("y\n".into(), "w\n".into()));
    sandbox.assert_healthy();
}

#[test]
fn a_lane_on_the_base_that_is_in_the_way_of_another_goes_back_to_its_branch() {
    for how in [&["merge", "z"][..], &["merge", "z", "--dry-run"], &["merge", "z", "--atomic"]] {
        let sandbox = on_base();
        sandbox.lane_of("z", "echo z > a.txt");
        let main = sandbox.git(&["rev-parse", "main"]);
        let out = sandbox.proq(how);
        let said = format!("{}{}", out.stdout, out.stderr);
        let y = "[ROOT]/repo/.proq-worktrees/y";
        let why = format!("lane 'y' has 'main' checked out: local changes in {y} stand in the way: a.txt");
        assert!(out.code == 1 && said.contains(&why), "{}", out.shown());
        let start = "hint: bring it back to its branch first: ";
        let command = said.lines().find_map(|line| line.strip_prefix(start)).unwrap();
        assert_eq!(command, format!("git -C '{y}' switch proq/y"));
        sandbox.sh(&command.replace("[ROOT]", sandbox.root().to_str().unwrap()));
        assert_eq!(sandbox.git(&["rev-parse", "main"]), main);
        let _ = sandbox.proq(&["merge", "z"]).ok();
        assert_eq!(sandbox.read("a.txt"), "z\n");
        assert_eq!(sandbox.sh_in(&sandbox.lane("y"), "cat a.txt"), "w");
    }
}

#[test]
fn lanes_that_do_not_touch_the_edits_of_a_lane_on_the_base_land() {
    let sandbox = on_base();
    sandbox.lane_of("z", "echo z > a.txt");
    sandbox.lane_of("w", "echo w > new.txt");
    let out = sandbox.proq(&["merge", "--all"]);
    let said = format!("{}{}", out.stdout, out.stderr);
    assert!(out.code == 1 && said.contains("landed w on main"), "{}", out.shown());
    assert!(said.contains("refused z: lane 'y' has 'main' checked out: local changes in"), "{}", out.shown());
    assert_eq!(sandbox.git(&["diff", "--name-only", "main~", "main"]), "new.txt");
    assert_eq!(sandbox.sh_in(&sandbox.lane("y"), "cat a.txt"), "w");
}

#[test]
fn an_edit_that_a_switch_would_overwrite_comes_along_through_the_stash() {
    let sandbox = Sandbox::new();
    sandbox.sh("seq 9 > long");
    sandbox.commit_all("long");
    sandbox.lane_of("y", "sed -i '1s/.*/y/' long");
    let lane = sandbox.lane("y");
    sandbox.sh_in(&lane, "git checkout -q --ignore-other-worktrees main; sed -i '9s/.*/w/' long; echo n > n");
    let command = hint(&sandbox, &["merge", "y"]);
    assert!(command.contains("stash push --include-untracked"), "{command}");
    let doctor = sandbox.proq(&["doctor"]);
    let shown = sandbox.plain(command.as_bytes());
    assert!(format!("{}{}", doctor.stdout, doctor.stderr).contains(&shown), "{}", doctor.shown());
    sandbox.sh(&command);
    assert_eq!(sandbox.git_in(&lane, &["symbolic-ref", "HEAD"]), "refs/heads/proq/y");
    assert_eq!(sandbox.sh_in(&lane, "sed -n '1p;9p' long; cat n"), "y\nw\nn");
    assert_eq!(sandbox.git(&["stash", "list"]), "");
}

#[test]
fn a_branch_that_another_worktree_is_on_is_freed_for_its_lane() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("y", "echo y > y.txt");
    let lane = sandbox.lane("y");
    sandbox.sh(&format!(
        "git -C {0} checkout -q --detach; git checkout -q proq/y; echo w > {0}/a.txt",
        lane.display()
    ));
    let command = hint(&sandbox, &["merge", "y"]);
    sandbox.sh(&command);
    assert_eq!(sandbox.git_in(&lane, &["symbolic-ref", "HEAD"]), "refs/heads/proq/y", "{command}");
    assert_eq!(sandbox.sh_in(&lane, "cat a.txt"), "w");
}

#[test]
fn what_is_uncommitted_on_a_detached_head_lands_with_its_lane() {
    let detached = || {
        let sandbox = Sandbox::new();
        sandbox.lane_of("y", "echo y > y.txt");
        sandbox.sh_in(&sandbox.lane("y"), "git checkout -q --detach; echo w > a.txt");
        sandbox
    };
    let sandbox = detached();
    let command = hint(&sandbox, &["merge", "y"]);
    assert!(command.ends_with(" switch proq/y"), "{command}");
    sandbox.sh(&command);
    assert!(hint(&sandbox, &["merge", "y"]).ends_with(" commit"));

    let sandbox = detached();
    sandbox.git(&["config", "proq.merge.uncommitted", "commit"]);
    let dry = sandbox.proq(&["merge", "y", "--dry-run"]).ok();
    assert!(dry.contains("would land y on main; what is uncommitted in it would be committed"), "{dry}");
    let _ = sandbox.proq(&["merge", "y"]).ok();
    assert_eq!((sandbox.read("y.txt"), sandbox.read("a.txt")), ("y\n".into(), "w\n".into()));
    assert!(!sandbox.lane("y").exists());
}

#[test]
fn an_embedded_repository_is_moved_out_and_never_committed_as_a_link() {
    let embedded = "git init -q sub; cd sub; echo s > s; git add s; git commit -qm s";
    for (make, how) in [(embedded, "mv"), ("git worktree add -q sub -b side", "git worktree move")] {
        for setting in ["refuse", "commit"] {
            let sandbox = Sandbox::new();
            sandbox.git(&["config", "proq.merge.uncommitted", setting]);
            sandbox.lane_of("one", "echo one > one.txt");
            sandbox.sh_in(&sandbox.lane("one"), make);
            sandbox.sh("echo taken > ../one-sub");
            let refused = sandbox.proq(&["merge", "one"]).fails(1);
            let why = "refused one: it has uncommitted work: sub; sub is a repository of its own\n";
            assert!(refused.contains(why), "{refused}");
            let from = "[ROOT]/repo/.proq-worktrees/one/sub";
            let command = format!("{how} '{from}' '[ROOT]/one-sub-2'");
            assert!(
                refused.contains(&format!("hint: move it out of the lane first: {command}\n")),
                "{refused}"
            );
            sandbox.sh(&hint(&sandbox, &["merge", "one"]));
            let _ = sandbox.proq(&["merge", "one"]).ok();
            assert_eq!(sandbox.git(&["ls-tree", "--name-only", "main"]), "a.txt\none.txt");
            let there = sandbox.root().join("one-sub-2");
            assert_eq!(sandbox.git_in(&there, &["status", "--short"]), "");
        }
    }
}

/// Makes a branch a symbolic ref as no hook notices it.
const LEAD: &str = "lead() { echo \"ref: refs/heads/$2\" > \"$ROOT/repo/.git/refs/heads/$1\"; }";

#[test]
fn nothing_is_committed_or_landed_through_a_branch_that_is_a_symbolic_ref() {
    let sandbox = Sandbox::new();
    let main = sandbox.git(&["rev-parse", "main"]);
    let script = format!("{LEAD}; git commit -q --allow-empty -m mine; lead proq/x main; echo e > e.txt");
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "x", "--", "sh", "-ec", &script]);
    let detail = sandbox.row("x")["detail"].to_string();
    assert!(detail.contains("its branch proq/x is a symbolic ref to refs/heads/main; make it a"), "{detail}");
    sandbox.git(&["config", "proq.merge.uncommitted", "commit"]);
    for args in [&["merge", "x"][..], &["discard", "--force", "x"], &["discard", "x"]] {
        let out = sandbox.proq(args);
        let said = format!("{}{}", out.stdout, out.stderr);
        assert!(out.code == 1 && said.contains("its branch proq/x is a symbolic ref to"), "{}", out.shown());
        assert!(said.contains("git update-ref --no-deref refs/heads/proq/x "), "{}", out.shown());
    }
    let _ = sandbox.proq(&["cleanup"]);
    let doctor = sandbox.proq(&["doctor"]).shown();
    assert!(doctor.contains("its branch proq/x is a symbolic ref to refs/heads/main"), "{doctor}");
    assert_eq!(sandbox.git(&["rev-parse", "main"]), main);
    assert_eq!(sandbox.git(&["symbolic-ref", "refs/heads/proq/x"]), "refs/heads/main");
    sandbox.sh(&hint(&sandbox, &["merge", "--force", "x"]));
    assert_eq!(sandbox.git(&["rev-parse", "main"]), main);
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s", "proq/x"]), "mine");
    let _ = sandbox.proq(&["merge", "--force", "x"]).ok();
    assert_eq!(sandbox.read("e.txt"), "e\n");
    sandbox.assert_healthy();
}

#[test]
fn work_in_a_lane_that_is_on_another_name_of_its_base_is_not_committed() {
    let sandbox = Sandbox::new();
    let main = sandbox.git(&["rev-parse", "main"]);
    let script = format!("{LEAD}; lead other main; git switch -q other; echo w > w.txt");
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "x", "--", "sh", "-ec", &script]);
    let detail = sandbox.row("x")["detail"].to_string();
    assert!(detail.contains("HEAD is on other, not on proq/x"), "{detail}");
    assert_eq!(sandbox.git(&["rev-parse", "main"]), main);
    assert_eq!(sandbox.sh_in(&sandbox.lane("x"), "cat w.txt"), "w");
}
