//! Tests of uncommitted work that must not be committed where it is, or as it is: every hint leads closer to
//! landing.

use proq_test_kit::Sandbox;

/// Returns the first hint of a command that refuses a lane, as a shell command.
fn first_hint_command(sandbox: &Sandbox, args: &[&str]) -> String {
    let json = sandbox.proq(&[args, &["--json"]].concat()).json();
    let hint = json["lanes"][0]["hints"][0].as_str().unwrap_or_else(|| panic!("no hint: {json:#}"));
    hint.split_once(": ").unwrap().1.replace("[ROOT]", sandbox.root().to_str().unwrap())
}

/// Creates lane `y` with a commit and an edit, whose agent has pointed the worktree's HEAD at the base.
fn lane_on_its_base() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("y", "echo y > y.txt");
    sandbox.sh_in(&sandbox.lane_path("y"), "git symbolic-ref HEAD refs/heads/main; echo w > a.txt");
    sandbox
}

#[test]
fn refuses_to_commit_work_of_lane_on_its_base() {
    let sandbox = lane_on_its_base();
    let main = sandbox.git(&["rev-parse", "main"]);
    insta::assert_snapshot!(sandbox.proq(&["merge", "y"]).to_text(), @r"
    refused y: it has uncommitted work: a.txt, y.txt; its worktree is on main, not on proq/y
    --- stderr
    hint: switch the lane back to its branch: git -C '[ROOT]/repo/.proq-worktrees/y' switch proq/y
    --- code 1
    ");
    sandbox.git(&["config", "proq.merge.uncommitted", "commit"]);
    let refused = sandbox.proq(&["merge", "y"]).fails(1);
    assert!(refused.contains("its worktree is on main, not on proq/y"), "{refused}");
    sandbox.sh(&first_hint_command(&sandbox, &["merge", "y"]));
    assert_eq!(sandbox.git(&["rev-parse", "main"]), main);
    let _ = sandbox.proq(&["merge", "y"]).ok();
    assert_eq!((sandbox.read("y.txt"), sandbox.read("a.txt")), ("y\n".into(), "w\n".into()));
    sandbox.assert_healthy();
}

#[test]
fn hint_returns_blocking_lane_to_its_branch() {
    for args in [&["merge", "z"][..], &["merge", "z", "--dry-run"], &["merge", "z", "--atomic"]] {
        let sandbox = lane_on_its_base();
        sandbox.lane_with_commit("z", "echo z > a.txt");
        let main = sandbox.git(&["rev-parse", "main"]);
        let out = sandbox.proq(args);
        let message = format!("{}{}", out.stdout, out.stderr);
        let y = "[ROOT]/repo/.proq-worktrees/y";
        let reason = format!(
            "cannot merge into 'main': lane 'y' has it checked out: local changes in {y} are in the way: a.txt"
        );
        assert!(out.code == 1 && message.contains(&reason), "{}", out.to_text());
        let prefix = "hint: switch the lane back to its branch: ";
        let command = message.lines().find_map(|line| line.strip_prefix(prefix)).unwrap();
        assert_eq!(command, format!("git -C '{y}' switch proq/y"));
        sandbox.sh(&command.replace("[ROOT]", sandbox.root().to_str().unwrap()));
        assert_eq!(sandbox.git(&["rev-parse", "main"]), main);
        let _ = sandbox.proq(&["merge", "z"]).ok();
        assert_eq!(sandbox.read("a.txt"), "z\n");
        assert_eq!(sandbox.sh_in(&sandbox.lane_path("y"), "cat a.txt"), "w");
    }
}

#[test]
fn lanes_without_overlap_land_beside_lane_on_base() {
    let sandbox = lane_on_its_base();
    sandbox.lane_with_commit("z", "echo z > a.txt");
    sandbox.lane_with_commit("w", "echo w > new.txt");
    let out = sandbox.proq(&["merge", "--all"]);
    let message = format!("{}{}", out.stdout, out.stderr);
    assert!(out.code == 1 && message.contains("landed w on main"), "{}", out.to_text());
    assert!(
        message
            .contains("refused z: cannot merge into 'main': lane 'y' has it checked out: local changes in"),
        "{}",
        out.to_text()
    );
    assert_eq!(sandbox.git(&["diff", "--name-only", "main~", "main"]), "new.txt");
    assert_eq!(sandbox.sh_in(&sandbox.lane_path("y"), "cat a.txt"), "w");
}

#[test]
fn hint_moves_conflicting_edit_through_the_stash() {
    let sandbox = Sandbox::new();
    sandbox.sh("seq 9 > long");
    sandbox.commit_all("long");
    sandbox.lane_with_commit("y", "sed -i '1s/.*/y/' long");
    let lane = sandbox.lane_path("y");
    sandbox.sh_in(&lane, "git checkout -q --ignore-other-worktrees main; sed -i '9s/.*/w/' long; echo n > n");
    let command = first_hint_command(&sandbox, &["merge", "y"]);
    assert!(command.contains("stash push --include-untracked"), "{command}");
    let doctor = sandbox.proq(&["doctor"]);
    let shown = sandbox.normalize(command.as_bytes());
    assert!(format!("{}{}", doctor.stdout, doctor.stderr).contains(&shown), "{}", doctor.to_text());
    sandbox.sh(&command);
    assert_eq!(sandbox.git_in(&lane, &["symbolic-ref", "HEAD"]), "refs/heads/proq/y");
    assert_eq!(sandbox.sh_in(&lane, "sed -n '1p;9p' long; cat n"), "y\nw\nn");
    assert_eq!(sandbox.git(&["stash", "list"]), "");
}

#[test]
fn hint_frees_lane_branch_from_other_worktree() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("y", "echo y > y.txt");
    let lane = sandbox.lane_path("y");
    sandbox.sh(&format!(
        "git -C {0} checkout -q --detach; git checkout -q proq/y; echo w > {0}/a.txt",
        lane.display()
    ));
    let command = first_hint_command(&sandbox, &["merge", "y"]);
    sandbox.sh(&command);
    assert_eq!(sandbox.git_in(&lane, &["symbolic-ref", "HEAD"]), "refs/heads/proq/y", "{command}");
    assert_eq!(sandbox.sh_in(&lane, "cat a.txt"), "w");
}

#[test]
fn uncommitted_work_on_detached_head_lands_with_lane() {
    let detached = || {
        let sandbox = Sandbox::new();
        sandbox.lane_with_commit("y", "echo y > y.txt");
        sandbox.sh_in(&sandbox.lane_path("y"), "git checkout -q --detach; echo w > a.txt");
        sandbox
    };
    let sandbox = detached();
    let command = first_hint_command(&sandbox, &["merge", "y"]);
    assert!(command.ends_with(" switch proq/y"), "{command}");
    sandbox.sh(&command);
    assert!(first_hint_command(&sandbox, &["merge", "y"]).ends_with(" commit"));

    let sandbox = detached();
    sandbox.git(&["config", "proq.merge.uncommitted", "commit"]);
    let dry_run = sandbox.proq(&["merge", "y", "--dry-run"]).ok();
    assert!(
        dry_run.contains("would land y on main; its uncommitted changes would be committed"),
        "{dry_run}"
    );
    let _ = sandbox.proq(&["merge", "y"]).ok();
    assert_eq!((sandbox.read("y.txt"), sandbox.read("a.txt")), ("y\n".into(), "w\n".into()));
    assert!(!sandbox.lane_path("y").exists());
}

#[test]
fn embedded_repository_is_moved_out_before_landing() {
    let embedded = "git init -q sub; cd sub; echo s > s; git add s; git commit -qm s";
    for (create, move_command) in [(embedded, "mv"), ("git worktree add -q sub -b side", "git worktree move")]
    {
        for setting in ["refuse", "commit"] {
            let sandbox = Sandbox::new();
            sandbox.git(&["config", "proq.merge.uncommitted", setting]);
            sandbox.lane_with_commit("one", "echo one > one.txt");
            sandbox.sh_in(&sandbox.lane_path("one"), create);
            sandbox.sh("echo taken > ../one-sub");
            let refused = sandbox.proq(&["merge", "one"]).fails(1);
            let reason = "refused one: it has uncommitted work: sub; sub is a repository of its own\n";
            assert!(refused.contains(reason), "{refused}");
            let from = "[ROOT]/repo/.proq-worktrees/one/sub";
            let command = format!("{move_command} '{from}' '[ROOT]/one-sub-2'");
            assert!(refused.contains(&format!("hint: move it out of the lane: {command}\n")), "{refused}");
            sandbox.sh(&first_hint_command(&sandbox, &["merge", "one"]));
            let _ = sandbox.proq(&["merge", "one"]).ok();
            assert_eq!(sandbox.git(&["ls-tree", "--name-only", "main"]), "a.txt\none.txt");
            let moved = sandbox.root().join("one-sub-2");
            assert_eq!(sandbox.git_in(&moved, &["status", "--short"]), "");
        }
    }
}

/// Shell function that makes a branch a symbolic ref without triggering any hook.
const LEAD_FUNCTION: &str = "lead() { echo \"ref: refs/heads/$2\" > \"$ROOT/repo/.git/refs/heads/$1\"; }";

/// Promise: agent-git/symbolic-lane-branch
#[test]
fn refuses_lane_branch_that_is_a_symbolic_ref() {
    let sandbox = Sandbox::new();
    let main = sandbox.git(&["rev-parse", "main"]);
    let script =
        format!("{LEAD_FUNCTION}; git commit -q --allow-empty -m mine; lead proq/x main; echo e > e.txt");
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "x", "--", "sh", "-ec", &script]);
    let detail = sandbox.row("x")["detail"].to_string();
    assert!(detail.contains("its branch proq/x is a symbolic ref to refs/heads/main; make it a"), "{detail}");
    sandbox.git(&["config", "proq.merge.uncommitted", "commit"]);
    for args in [&["merge", "x"][..], &["discard", "--force", "x"], &["discard", "x"]] {
        let out = sandbox.proq(args);
        let message = format!("{}{}", out.stdout, out.stderr);
        assert!(
            out.code == 1 && message.contains("its branch proq/x is a symbolic ref to"),
            "{}",
            out.to_text()
        );
        assert!(message.contains("git update-ref --no-deref refs/heads/proq/x "), "{}", out.to_text());
    }
    let _ = sandbox.proq(&["cleanup"]);
    let doctor = sandbox.proq(&["doctor"]).to_text();
    assert!(doctor.contains("its branch proq/x is a symbolic ref to refs/heads/main"), "{doctor}");
    assert_eq!(sandbox.git(&["rev-parse", "main"]), main);
    assert_eq!(sandbox.git(&["symbolic-ref", "refs/heads/proq/x"]), "refs/heads/main");
    sandbox.sh(&first_hint_command(&sandbox, &["merge", "--force", "x"]));
    assert_eq!(sandbox.git(&["rev-parse", "main"]), main);
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s", "proq/x"]), "mine");
    let _ = sandbox.proq(&["merge", "--force", "x"]).ok();
    assert_eq!(sandbox.read("e.txt"), "e\n");
    sandbox.assert_healthy();
}

/// Promise: agent-git/symbolic-lane-branch
#[test]
fn refuses_to_commit_on_alias_of_the_base() {
    let sandbox = Sandbox::new();
    let main = sandbox.git(&["rev-parse", "main"]);
    let script = format!("{LEAD_FUNCTION}; lead other main; git switch -q other; echo w > w.txt");
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "x", "--", "sh", "-ec", &script]);
    let detail = sandbox.row("x")["detail"].to_string();
    assert!(detail.contains("HEAD is on other, not on proq/x"), "{detail}");
    assert_eq!(sandbox.git(&["rev-parse", "main"]), main);
    assert_eq!(sandbox.sh_in(&sandbox.lane_path("x"), "cat w.txt"), "w");
}

/// Promise: agent-git/symbolic-lane-branch
#[test]
fn symbolic_lane_branch_is_repaired_with_its_own_commits() {
    let commit = |name: &str| format!("echo {name} > {name}; git add {name}; git commit -qm {name}");
    let renamed =
        "git branch -m proq/x new; git symbolic-ref refs/heads/proq/x refs/heads/new; git switch -q proq/x";
    let foreign = "git symbolic-ref refs/heads/proq/x refs/heads/others; git reset -q --hard";
    let amend = "git commit -q --amend -m amended";
    for (script, kept) in [
        (format!("{renamed}; {}; {amend}", commit("more")), "amended"),
        (format!("{foreign}; {}", commit("more")), "first"),
    ] {
        let sandbox = Sandbox::new();
        sandbox.sh(&format!("git switch -qc others; {}; git switch -q main", commit("other")));
        let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
        sandbox.sh_in(&sandbox.lane_path("x"), &format!("{}; {script}", commit("first")));
        let target = sandbox.git(&["rev-parse", "proq/x"]);
        let branch = sandbox.git(&["symbolic-ref", "refs/heads/proq/x"]);
        sandbox.sh(&first_hint_command(&sandbox, &["merge", "x"]));
        assert_eq!(sandbox.git(&["log", "-1", "--format=%s", "proq/x"]), kept);
        assert_eq!(sandbox.git(&["rev-parse", &branch]), target);
        assert_eq!(sandbox.sh("git symbolic-ref -q refs/heads/proq/x || echo direct").trim(), "direct");
    }
}
