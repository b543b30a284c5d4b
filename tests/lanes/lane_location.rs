//! Lanes that lie outside the main checkout, by the setting `lane.location`.

use std::path::{Path, PathBuf};

use proq_test_kit::faults::{kill_at, recover};
use proq_test_kit::{Sandbox, WorktreeState, file_names};

fn set_location(sandbox: &Sandbox, location: &str) {
    sandbox.git(&["config", "proq.lane.location", location]);
}

/// Creates a lane, and returns its path.
#[track_caller]
fn spawn(sandbox: &Sandbox, name: &str) -> PathBuf {
    let created = sandbox.proq(&["spawn", "--json", "--empty", "-n", name]).json();
    PathBuf::from(created["path"].as_str().unwrap().replace("[ROOT]", sandbox.root().to_str().unwrap()))
}

#[test]
fn lane_beside_main_checkout_works_fully() {
    let sandbox = Sandbox::new();
    set_location(&sandbox, "../{repo}.{lane}");
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
    let before = WorktreeState::capture(&sandbox, &lane);
    let _ = sandbox.proq(&["discard", "pay"]).fails(1);
    let _ = sandbox.proq(&["discard", "--force", "pay"]).ok();
    assert_eq!(file_names(&sandbox.root()), ["home", "repo"]);
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(before, WorktreeState::capture(&sandbox, &lane));
    assert_eq!(sandbox.git(&["status", "--short"]), "");
    sandbox.assert_healthy();
}

#[test]
fn location_setting_applies_to_new_lanes_only() {
    let sandbox = Sandbox::new();
    let old = spawn(&sandbox, "old");
    set_location(&sandbox, "~/lanes/{repo}/{lane}-tree");
    let new = spawn(&sandbox, "new");
    assert_eq!(new, sandbox.root().join("home/lanes/repo/new-tree"));
    sandbox.git(&["config", "--unset", "proq.lane.location"]);
    for (name, lane) in [("old", &old), ("new", &new)] {
        sandbox.write_in(lane, name, "x\n");
        sandbox.commit_all_in(lane, name);
        // A command that runs in one lane may not remove another.
        let other = if name == "old" { "new" } else { "old" };
        let out = sandbox.proq_in(lane, &["discard", "--force", other]);
        assert_eq!(out.code, 1, "{}", out.to_text());
    }
    sandbox.assert_healthy();
    let _ = sandbox.proq(&["merge", "--all"]).ok();
    assert!(!old.exists() && !new.exists());
    assert_eq!((sandbox.read("old"), sandbox.read("new")), ("x\n".into(), "x\n".into()));
}

/// Promise: new-lane/location
#[test]
fn refuses_location_inside_checkout_or_git_dir() {
    let sandbox = Sandbox::new();
    sandbox.git(&["worktree", "add", "-q", "-b", "mine", "../mine"]);
    sandbox.sh("git init -q ../other; ln -s mine ../link");
    for (location, message) in [
        ("lanes/{lane}", "lane.location is inside the checkout [ROOT]/repo\n"),
        ("{lane}", "lane.location is inside the checkout [ROOT]/repo\n"),
        (".proq-worktrees/x-{lane}", "lane.location is inside the checkout [ROOT]/repo\n"),
        ("../mine/sub/{lane}", "lane.location is inside the checkout [ROOT]/mine\n"),
        ("../link/{lane}", "lane.location is inside the checkout [ROOT]/mine\n"),
        ("../other/new/er/{lane}", "lane.location is inside the checkout [ROOT]/other\n"),
        (".git/proq/{lane}", "is inside a git directory"),
        ("../other/.git/{lane}", "is inside a git directory"),
    ] {
        set_location(&sandbox, location);
        for more in [&[][..], &["--dry-run"]] {
            let output = sandbox.proq(&[&["spawn", "--empty", "-n", "x"], more].concat()).fails(1);
            assert!(
                output.contains(message) && output.contains("error: cannot create lanes in "),
                "{location}: {output}"
            );
        }
    }
    for location in ["lanes", "../{lane}/tree", "../{branch}"] {
        set_location(&sandbox, location);
        let output = sandbox.proq(&["spawn", "--empty", "-n", "x"]).fails(1);
        assert!(output.contains("a path with {lane} once, in its last part"), "{location}: {output}");
    }
    sandbox.git(&["config", "--unset", "proq.lane.location"]);
    sandbox.write("proq.toml", "lane.location = '/tmp/{lane}'\n");
    let output = sandbox.proq(&["spawn", "--empty", "-n", "x"]).fails(1);
    assert!(output.contains("may not set lane.location"), "{output}");
    sandbox.sh("rm proq.toml; git worktree remove ../mine; git branch -D mine");
    assert_eq!(sandbox.lane_leftovers(), [""; 0]);
}

/// Promise: new-lane/location
#[test]
fn existing_files_at_lane_paths_are_kept() {
    let sandbox = Sandbox::new();
    set_location(&sandbox, "../{repo}.{lane}");
    sandbox.sh("mkdir ../repo.lane-1; ln -s nowhere ../repo.lane-2; echo mine > ../repo.x");
    let output = sandbox.proq(&["spawn", "--empty", "-n", "x"]).fails(1);
    assert!(output.contains("repo.x: it exists and belongs to no lane"), "{output}");
    assert_eq!(spawn(&sandbox, "y"), sandbox.root().join("repo.y"));
    assert_eq!(sandbox.proq(&["spawn", "--json", "--empty"]).json()["lane"], "lane-3");
    assert_eq!(sandbox.read("../repo.x"), "mine\n");
}

/// Promise: new-lane/user-worktrees
#[test]
fn user_worktrees_among_lanes_are_left_alone() {
    let sandbox = Sandbox::new();
    set_location(&sandbox, "../{repo}-{lane}");
    sandbox.sh("git worktree add -q -b mine ../repo-mine; git worktree add -q -b gone ../repo-gone; rm -r ../repo-gone");
    let lost = spawn(&sandbox, "lost");
    let _ = sandbox.proq(&["cleanup"]).ok();
    sandbox.assert_healthy();
    assert!(sandbox.repo.join("../repo-mine/a.txt").exists());
    // Its record is missing, as after a kill whose journal is missing too.
    sandbox.sh("rm -r .git/proq/lanes/lost");
    let output = sandbox.proq(&["doctor"]).to_text();
    assert!(output.contains("repo-lost is a worktree that belongs to no lane"), "{output}");
    let output = sandbox.proq(&["cleanup"]).to_text();
    assert!(output.contains("repo-lost, which no lane record names"), "{output}");
    assert!(!lost.exists() && sandbox.repo.join("../repo-mine/a.txt").exists());
    assert_eq!(sandbox.git(&["worktree", "list"]).lines().count(), 3);
}

#[test]
fn location_is_relative_to_bare_repository() {
    let sandbox = Sandbox::new();
    sandbox.sh("git clone -q --bare . ../shop.git");
    let bare = sandbox.root().join("shop.git");
    sandbox.git_in(&bare, &["config", "proq.lane.location", "../{repo}-lanes/{lane}"]);
    let out = sandbox.proq_in(&bare, &["spawn", "--json", "--empty", "-n", "x"]).json();
    assert_eq!(out["path"], "[ROOT]/shop-lanes/x");
    let _ = sandbox.proq_in(&bare, &["discard", "x"]).ok();
}

/// Returns a sandbox whose lanes lie on another file system than the repository, with that folder.
fn sandbox_with_lanes_on_other_disk() -> (Sandbox, tempfile::TempDir) {
    let sandbox = Sandbox::new();
    let other = sandbox.dir_on_other_filesystem();
    set_location(&sandbox, &format!("{}/deep/{{repo}}.{{lane}}", other.path().display()));
    sandbox.write(".gitignore", "*.log\n");
    sandbox.commit_all("ignore");
    (sandbox, other)
}

fn entries_on_disk(other: &Path) -> Vec<String> {
    file_names(&other.join("deep"))
}

/// Promise: new-lane/other-disk
#[test]
#[ignore = "needs a second file system"]
fn lane_on_other_disk_uses_trash_there() {
    let (sandbox, other) = sandbox_with_lanes_on_other_disk();
    let lane = spawn(&sandbox, "x");
    assert!(lane.starts_with(other.path().canonicalize().unwrap()));
    sandbox.sh_in(
        &lane,
        "echo x > x; git add x; git commit -qm x; echo log > x.log; echo new > new; echo y >> a.txt",
    );
    let before = WorktreeState::capture(&sandbox, &lane);
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
    let trash = entries_on_disk(other.path());
    assert!(matches!(&trash[..], [one] if one.starts_with(".trash-repo.x-")), "{trash:?}");
    sandbox.assert_healthy();
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(before, WorktreeState::capture(&sandbox, &lane));
    assert_eq!(entries_on_disk(other.path()), ["repo.x"]);
    let _ = sandbox.proq(&["merge", "x", "--uncommitted", "commit"]);
    let _ = sandbox.proq(&["discard", "--force", "x"]);
    sandbox.sh("git config proq.trash.keep 0");
    let _ = sandbox.proq(&["gc"]).ok();
    assert_eq!(entries_on_disk(other.path()), [""; 0]);
}

/// Promise: new-lane/other-disk
#[test]
#[ignore = "needs a second file system"]
fn killed_spawn_on_other_disk_leaves_nothing() {
    for at in [
        "journal.planned",
        "step.before:2",
        "folder.beside",
        "worktree.added",
        "worktree.filled",
        "step.after:2",
        "record.written",
    ] {
        let (sandbox, other) = sandbox_with_lanes_on_other_disk();
        kill_at(&sandbox, at, &["spawn", "--empty", "-n", "new"]);
        let output = recover(&sandbox);
        assert!(output.contains("everything is as it was before"), "{at}: {output}");
        let there =
            if other.path().join("deep").exists() { entries_on_disk(other.path()) } else { Vec::new() };
        assert_eq!(there, [""; 0], "{at}");
        assert_eq!(sandbox.lane_leftovers(), [""; 0], "{at}");
        let _ = spawn(&sandbox, "new");
        sandbox.assert_healthy();
    }
}

/// Promise: new-lane/other-disk
#[test]
#[ignore = "needs a second file system"]
fn killed_discard_on_other_disk_is_undone() {
    let (sandbox, other) = sandbox_with_lanes_on_other_disk();
    let lane = spawn(&sandbox, "x");
    sandbox.write_in(&lane, "x.log", "log\n");
    let before = WorktreeState::capture(&sandbox, &lane);
    for at in ["trash.moved", "step.after:2"] {
        kill_at(&sandbox, at, &["discard", "--force", "x"]);
        let _ = recover(&sandbox);
        assert_eq!(before, WorktreeState::capture(&sandbox, &lane), "{at}");
        assert_eq!(entries_on_disk(other.path()), ["repo.x"], "{at}");
    }
}
