//! Owns the tests of a folder that is given from one lane to another when the program is killed.

use std::path::PathBuf;

use super::kit::{dies, recovers};
use crate::support::{Sandbox, names};

/// A lane that landed, with a cache and what is nobody's but its own.
fn landed() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write(".gitignore", "target/\n*.log\n");
    sandbox.write("src/one", "one\n");
    sandbox.commit_all("files");
    sandbox.git(&["config", "proq.pool.keep", "target/"]);
    sandbox.lane_of(
        "a",
        "echo a >> src/one; mkdir target src/in; echo o > target/o; echo l > src/in/x.log; echo l > y.log",
    );
    let _ = sandbox.proq(&["merge", "a"]).ok();
    sandbox.write("src/two", "two\n");
    sandbox.sh("rm a.txt");
    sandbox.commit_all("the base goes on");
    sandbox
}

fn entry(sandbox: &Sandbox) -> PathBuf {
    let trash = sandbox.repo.join(".git/proq/trash");
    let name = names(&trash).into_iter().find(|name| name.starts_with("a-2")).unwrap();
    trash.join(name)
}

/// The landed lane comes back with all that is its own.
#[track_caller]
fn comes_back(sandbox: &Sandbox, with_cache: bool) {
    sandbox.assert_healthy();
    sandbox.sh("git reset -q --hard HEAD^");
    let out = sandbox.proq(&["undo", "--force"]);
    assert_eq!(out.code, 0, "{}", out.shown());
    let lane = sandbox.lane("a");
    assert_eq!(sandbox.git_in(&lane, &["status", "--porcelain"]), "");
    let others = sandbox.git_in(&lane, &["ls-files", "--others"]);
    let wanted = if with_cache { "src/in/x.log\ntarget/o\ny.log" } else { "src/in/x.log\ny.log" };
    assert_eq!(others, wanted);
    assert_eq!(std::fs::read_to_string(lane.join("src/one")).unwrap(), "one\na\n");
    assert_eq!(std::fs::read_to_string(lane.join("a.txt")).unwrap(), "a\n");
}

#[test]
fn until_the_folder_has_changed_hands_everything_goes_back() {
    for at in ["pool.claimed", "pool.aside", "pool.aside:2", "pool.unlinked", "pool.linked", "pool.emptied"] {
        let sandbox = landed();
        dies(&sandbox, at, &["spawn", "--empty", "-n", "b"]);
        let said = recovers(&sandbox);
        assert!(said.contains("everything is as it was before"), "{at}: {said}");
        assert!(!sandbox.lane("b").exists(), "{at}");
        assert_eq!(names(&entry(&sandbox)), ["admin", "trash.toml", "worktree"], "{at}");
        // It is as good as before.
        let out = sandbox.proq(&["-v", "spawn", "--empty", "-n", "b"]);
        assert!(out.stderr.contains("files kept from the folder of lane 'a'"), "{at}: {}", out.shown());
        let _ = sandbox.proq(&["undo"]).ok();
        comes_back(&sandbox, false);
    }
    let sandbox = landed();
    dies(&sandbox, "pool.emptied", &["spawn", "--empty", "-n", "b"]);
    let _ = recovers(&sandbox);
    comes_back(&sandbox, true);
}

#[test]
fn once_it_has_nothing_of_either_lane_is_lost() {
    for at in ["pool.moved", "pool.cleared", "pool.filled", "set-up.copied", "record.written"] {
        let sandbox = landed();
        dies(&sandbox, at, &["spawn", "--empty", "-n", "b"]);
        let said = recovers(&sandbox);
        assert!(said.contains("everything is as it was before"), "{at}: {said}");
        assert!(!sandbox.lane("b").exists(), "{at}");
        comes_back(&sandbox, false);
    }
}

#[test]
fn a_kill_on_the_way_back_is_put_right() {
    for at in ["regrow.built", "regrow.moved", "regrow.merged"] {
        let sandbox = landed();
        let _ = sandbox.proq(&["spawn", "--empty", "-n", "b"]).ok();
        let _ = sandbox.proq(&["undo"]).ok();
        sandbox.sh("git reset -q --hard HEAD^");
        dies(&sandbox, at, &["undo"]);
        let _ = recovers(&sandbox);
        assert!(!sandbox.lane("a").exists(), "{at}");
        sandbox.assert_healthy();
        let out = sandbox.proq(&["undo"]);
        assert_eq!(out.code, 0, "{at}: {}", out.shown());
        let lane = sandbox.lane("a");
        assert_eq!(sandbox.git_in(&lane, &["ls-files", "--others"]), "src/in/x.log\ny.log", "{at}");
        assert_eq!(sandbox.git_in(&lane, &["status", "--porcelain"]), "", "{at}");
    }
}
