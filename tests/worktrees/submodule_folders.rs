//! Tests that keep git from removing a submodule's folder with the work in it.

use proq_test_kit::snapshots::assert_same_image;
use proq_test_kit::{Sandbox, WorktreeState};

/// Creates a checkout with a repository at `sm` that is recorded as a submodule and holds unpushed work, and
/// a lane `one` with a file in its place.
fn submodule_with_unpushed_work(add: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh("git init -q -b main ../sub; cd ../sub; echo s >s; git add s; git commit -qm sub");
    sandbox.write("x", "x\n");
    sandbox.sh(add);
    sandbox.commit_all("base");
    sandbox.lane_with_commit("one", "rm -rf sm; echo plain >sm");
    sandbox.sh("cd sm; git checkout -qb work; git commit -q --allow-empty -m precious; git checkout -q -");
    sandbox.sh("echo '*.env' >>sm/$(cd sm; git rev-parse --git-path info/exclude | sed 's,^/.*/repo/,../,'); echo secret >sm/k.env");
    sandbox
}

/// Promise: worktree/submodule-folder-kept
#[test]
fn refuses_lane_with_file_in_place_of_submodule() {
    for add in ["git clone -q ../sub sm", "git -c protocol.file.allow=always submodule add -q ../sub sm"] {
        let sandbox = submodule_with_unpushed_work(add);
        let before = WorktreeState::capture(&sandbox, &sandbox.repo);
        for args in [&["merge", "one", "--dry-run"][..], &["merge", "one"], &["preview", "one"]] {
            let refused = sandbox.proq(args).fails(1);
            assert!(refused.contains("in the way: sm;"), "{refused}");
            assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
            assert_eq!(sandbox.read("sm/k.env"), "secret\n");
            assert_eq!(sandbox.git(&["-C", "sm", "log", "-1", "--format=%s", "work"]), "precious");
        }
        // The hint names this step.
        sandbox.sh("mv sm ../kept");
        let _ = sandbox.proq(&["merge", "one"]).ok();
        assert_eq!(sandbox.read("sm"), "plain\n");
        let _ = sandbox.proq(&["undo"]).ok();
        assert_eq!(std::fs::read_dir(sandbox.repo.join("sm")).map(Iterator::count).unwrap(), 0);
    }
}

/// Promise: worktree/submodule-folder-kept
#[test]
fn undo_refuses_to_remove_repository_in_submodule_path() {
    let sandbox = Sandbox::new();
    sandbox.sh("git init -q -b main ../sub; cd ../sub; echo s >s; git add s; git commit -qm sub");
    sandbox.write("a", "a\n");
    sandbox.commit_all("base");
    sandbox.lane_with_commit("one", "rm a; git clone -q ../../../sub a");
    let _ = sandbox.proq(&["merge", "one"]).ok();
    sandbox.sh("rmdir a; git clone -q ../sub a; cd a; git checkout -qb work; git commit -q --allow-empty -m precious; git checkout -q main");
    let _ = sandbox.proq(&["undo"]).fails(1);
    assert_eq!(sandbox.git(&["-C", "a", "log", "-1", "--format=%s", "work"]), "precious");
}
