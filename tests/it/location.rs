//! Owns the tests of lanes that lie elsewhere than in the main checkout.

use std::path::{Path, PathBuf};

use super::recovery::kit::{dies, recovers};
use super::support::{Image, Sandbox, names};

fn lies(sandbox: &Sandbox, location: &str) {
    sandbox.git(&["config", "proq.lane.location", location]);
}

/// Makes a lane; where it lies.
#[track_caller]
fn spawn(sandbox: &Sandbox, name: &str) -> PathBuf {
    let made = sandbox.proq(&["spawn", "--json", "--empty", "-n", name]).json();
    PathBuf::from(made["path"].as_str().unwrap().replace("[ROOT]", sandbox.root().to_str().unwrap()))
}

#[test]
fn a_lane_beside_the_main_checkout_is_a_lane_like_any_other() {
    let sandbox = Sandbox::new();
    lies(&sandbox, "../{repo}.{lane}");
    let lane = spawn(&sandbox, "pay");
    assert_eq!(lane, sandbox.root().join("repo.pay"));
    assert!(!sandbox.repo.join(".proq-worktrees").exists());
    sandbox.write_in(&lane, "pay.txt", "pay\n");
    sandbox.commit_all_in(&lane, "pay");
    let _ = sandbox.proq(&["preview", "pay"]).ok();
    assert_eq!(sandbox.read("pay.txt"), "pay\n");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.assert_healthy();
    let _ = sandbox.proq(&["merge", "pay"]).ok();
    assert!(!lane.exists());
    assert_eq!(sandbox.read("pay.txt"), "pay\n");
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.read("../repo.pay/pay.txt"), "pay\n");
    assert_eq!(sandbox.row("pay")["state"], "idle");
    sandbox.write_in(&lane, "more.txt", "more\n");
    let before = Image::of(&sandbox, &lane);
    let _ = sandbox.proq(&["discard", "pay"]).fails(1);
    let _ = sandbox.proq(&["discard", "--force", "pay"]).ok();
    assert_eq!(names(&sandbox.root()), ["home", "repo"]);
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(before, Image::of(&sandbox, &lane));
    assert_eq!(sandbox.git(&["status", "--short"]), "");
    sandbox.assert_healthy();
}

#[test]
fn what_the_setting_says_now_is_for_new_lanes_only() {
    let sandbox = Sandbox::new();
    let old = spawn(&sandbox, "old");
    lies(&sandbox, "~/lanes/{repo}/{lane}-tree");
    let new = spawn(&sandbox, "new");
    assert_eq!(new, sandbox.root().join("home/lanes/repo/new-tree"));
    sandbox.git(&["config", "--unset", "proq.lane.location"]);
    for (name, lane) in [("old", &old), ("new", &new)] {
        sandbox.write_in(lane, name, "x\n");
        sandbox.commit_all_in(lane, name);
        // Whoever stands in one may not take another away.
        let other = if name == "old" { "new" } else { "old" };
        let out = sandbox.proq_in(lane, &["discard", "--force", other]);
        assert_eq!(out.code, 1, "{}", out.shown());
    }
    sandbox.assert_healthy();
    let _ = sandbox.proq(&["merge", "--all"]).ok();
    assert!(!old.exists() && !new.exists());
    assert_eq!((sandbox.read("old"), sandbox.read("new")), ("x\n".into(), "x\n".into()));
}

#[test]
fn a_place_where_lanes_would_be_in_somebodys_way_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.git(&["worktree", "add", "-q", "-b", "mine", "../mine"]);
    sandbox.sh("git init -q ../other; ln -s mine ../link");
    for (location, told) in [
        ("lanes/{lane}", "is in the checkout [ROOT]/repo;"),
        ("{lane}", "is in the checkout [ROOT]/repo;"),
        (".proq-worktrees/x-{lane}", "is in the checkout [ROOT]/repo;"),
        ("../mine/sub/{lane}", "is in the checkout [ROOT]/mine;"),
        ("../link/{lane}", "is in the checkout [ROOT]/mine;"),
        ("../other/new/er/{lane}", "is in the checkout [ROOT]/other;"),
        (".git/proq/{lane}", "is in a git directory"),
        ("../other/.git/{lane}", "is in a git directory"),
    ] {
        lies(&sandbox, location);
        for more in [&[][..], &["--dry-run"]] {
            let said = sandbox.proq(&[&["spawn", "--empty", "-n", "x"], more].concat()).fails(1);
            assert!(said.contains(told) && said.contains("nothing was made"), "{location}: {said}");
        }
    }
    for location in ["lanes", "../{lane}/tree", "../{branch}"] {
        lies(&sandbox, location);
        let said = sandbox.proq(&["spawn", "--empty", "-n", "x"]).fails(1);
        assert!(said.contains("a path with {lane} once, in its last part"), "{location}: {said}");
    }
    sandbox.git(&["config", "--unset", "proq.lane.location"]);
    sandbox.write("proq.toml", "lane.location = '/tmp/{lane}'\n");
    let said = sandbox.proq(&["spawn", "--empty", "-n", "x"]).fails(1);
    assert!(said.contains("may not set lane.location"), "{said}");
    sandbox.sh("rm proq.toml; git worktree remove ../mine; git branch -D mine");
    assert_eq!(sandbox.traces(), [""; 0]);
}

#[test]
fn what_stands_in_a_lanes_place_stays_there() {
    let sandbox = Sandbox::new();
    lies(&sandbox, "../{repo}.{lane}");
    sandbox.sh("mkdir ../repo.lane-1; ln -s nowhere ../repo.lane-2; echo mine > ../repo.x");
    let said = sandbox.proq(&["spawn", "--empty", "-n", "x"]).fails(1);
    assert!(said.contains("repo.x exists already and belongs to no lane"), "{said}");
    assert_eq!(spawn(&sandbox, "y"), sandbox.root().join("repo.y"));
    assert_eq!(sandbox.proq(&["spawn", "--json", "--empty"]).json()["lane"], "lane-3");
    assert_eq!(sandbox.read("../repo.x"), "mine\n");
}

#[test]
fn worktrees_of_the_users_own_among_the_lanes_are_nobodys() {
    let sandbox = Sandbox::new();
    lies(&sandbox, "../{repo}-{lane}");
    sandbox.sh("git worktree add -q -b mine ../repo-mine; git worktree add -q -b gone ../repo-gone; rm -r ../repo-gone");
    let lost = spawn(&sandbox, "lost");
    let _ = sandbox.proq(&["cleanup"]).ok();
    sandbox.assert_healthy();
    assert!(sandbox.repo.join("../repo-mine/a.txt").exists());
    // Its record is gone, as after a kill whose journal is gone too.
    sandbox.sh("rm -r .git/proq/lanes/lost");
    let said = sandbox.proq(&["doctor"]).shown();
    assert!(said.contains("repo-lost is a worktree that no lane has on record"), "{said}");
    let said = sandbox.proq(&["cleanup"]).shown();
    assert!(said.contains("repo-lost, which no lane has on record"), "{said}");
    assert!(!lost.exists() && sandbox.repo.join("../repo-mine/a.txt").exists());
    assert_eq!(sandbox.git(&["worktree", "list"]).lines().count(), 3);
}

#[test]
fn lanes_of_a_bare_repository_lie_from_the_repository_on() {
    let sandbox = Sandbox::new();
    sandbox.sh("git clone -q --bare . ../shop.git");
    let bare = sandbox.root().join("shop.git");
    sandbox.git_in(&bare, &["config", "proq.lane.location", "../{repo}-lanes/{lane}"]);
    let out = sandbox.proq_in(&bare, &["spawn", "--json", "--empty", "-n", "x"]).json();
    assert_eq!(out["path"], "[ROOT]/shop-lanes/x");
    let _ = sandbox.proq_in(&bare, &["discard", "x"]).ok();
}

/// A sandbox whose lanes lie on another disk than the repository.
fn apart() -> (Sandbox, tempfile::TempDir) {
    let sandbox = Sandbox::new();
    let other = sandbox.other_disk();
    lies(&sandbox, &format!("{}/deep/{{repo}}.{{lane}}", other.path().display()));
    sandbox.write(".gitignore", "*.log\n");
    sandbox.commit_all("ignore");
    (sandbox, other)
}

fn left(other: &Path) -> Vec<String> {
    names(&other.join("deep"))
}

#[test]
#[ignore = "needs a second file system"]
fn a_lane_on_another_disk_lies_in_a_trash_there_and_comes_back() {
    let (sandbox, other) = apart();
    let lane = spawn(&sandbox, "x");
    assert!(lane.starts_with(other.path().canonicalize().unwrap()));
    sandbox.sh_in(
        &lane,
        "echo x > x; git add x; git commit -qm x; echo log > x.log; echo new > new; echo y >> a.txt",
    );
    let before = Image::of(&sandbox, &lane);
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
    let trash = left(other.path());
    assert!(matches!(&trash[..], [one] if one.starts_with(".trash-repo.x-")), "{trash:?}");
    sandbox.assert_healthy();
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(before, Image::of(&sandbox, &lane));
    assert_eq!(left(other.path()), ["repo.x"]);
    let _ = sandbox.proq(&["merge", "x", "--uncommitted", "commit"]);
    let _ = sandbox.proq(&["discard", "--force", "x"]);
    sandbox.sh("git config proq.trash.keep 0");
    let _ = sandbox.proq(&["gc"]).ok();
    assert_eq!(left(other.path()), [""; 0]);
}

#[test]
#[ignore = "needs a second file system"]
fn a_spawn_on_another_disk_that_is_killed_anywhere_leaves_nothing() {
    for at in [
        "journal.planned",
        "step.before:2",
        "folder.beside",
        "worktree.added",
        "worktree.filled",
        "step.after:2",
        "record.written",
    ] {
        let (sandbox, other) = apart();
        dies(&sandbox, at, &["spawn", "--empty", "-n", "new"]);
        let said = recovers(&sandbox);
        assert!(said.contains("everything is as it was before"), "{at}: {said}");
        let there = if other.path().join("deep").exists() { left(other.path()) } else { Vec::new() };
        assert_eq!(there, [""; 0], "{at}");
        assert_eq!(sandbox.traces(), [""; 0], "{at}");
        let _ = spawn(&sandbox, "new");
        sandbox.assert_healthy();
    }
}

#[test]
#[ignore = "needs a second file system"]
fn a_discard_on_another_disk_that_is_killed_is_taken_back() {
    let (sandbox, other) = apart();
    let lane = spawn(&sandbox, "x");
    sandbox.write_in(&lane, "x.log", "log\n");
    let before = Image::of(&sandbox, &lane);
    for at in ["trash.moved", "step.after:2"] {
        dies(&sandbox, at, &["discard", "--force", "x"]);
        let _ = recovers(&sandbox);
        assert_eq!(before, Image::of(&sandbox, &lane), "{at}");
        assert_eq!(left(other.path()), ["repo.x"], "{at}");
    }
}
