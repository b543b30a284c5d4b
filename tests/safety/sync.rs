//! Tests of `git proq sync`: a lane gets missing files, its own work stays, and replaced files can be
//! restored.

use proq_test_kit::faults::{kill_at, recover};
use proq_test_kit::{Sandbox, file_names};

/// Creates lane `x` with copies of a file and of a folder.
fn lane_with_copies() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write(".gitignore", ".env\ncache/\nlinked/\n");
    sandbox.write(".worktreeinclude", ".env\ncache/\n");
    sandbox.commit_all("rules");
    for (file, text) in [(".env", "one"), ("cache/a", "a"), ("cache/b", "b"), ("cache/c", "c")] {
        sandbox.write(file, text);
    }
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    sandbox
}

fn read_in_lane(sandbox: &Sandbox, path: &str) -> Option<String> {
    std::fs::read_to_string(sandbox.lane_path("x").join(path)).ok()
}

/// Makes files newer in the main checkout, newer in the lane, newer in both, missing in the lane, and new in
/// the main checkout.
fn change_both_sides(sandbox: &Sandbox) {
    sandbox.write(".env", "two!");
    sandbox.write_in(&sandbox.lane_path("x"), "cache/a", "mine");
    sandbox.write("cache/b", "theirs");
    sandbox.write_in(&sandbox.lane_path("x"), "cache/b", "mine too");
    std::fs::remove_file(sandbox.lane_path("x").join("cache/c")).unwrap();
    sandbox.write("cache/new/d", "d");
}

/// Promise: new-lane/sync
#[test]
fn sync_adds_missing_files_and_keeps_lane_changes() {
    let sandbox = lane_with_copies();
    insta::assert_snapshot!(sandbox.proq(&["sync", "x"]).to_text(), @r"
    lane 'x' is up to date
    --- code 0
    ");
    change_both_sides(&sandbox);
    insta::assert_snapshot!(sandbox.proq(&["sync", "x", "--dry-run"]).to_text(), @r"
    would be added: cache/c, cache/new
    would be renewed: .env
    --- stderr
    warning: kept the lane's own version of: cache/a, cache/b
    hint: replace them anyway: git proq sync x --force
    --- code 0
    ");
    assert_eq!(read_in_lane(&sandbox, ".env").as_deref(), Some("one"));
    insta::assert_snapshot!(sandbox.proq(&["sync", "x"]).to_text(), @r"
    added: cache/c, cache/new
    renewed: .env
    --- stderr
    warning: kept the lane's own version of: cache/a, cache/b
    hint: replace them anyway: git proq sync x --force
    --- code 0
    ");
    let assert_content =
        |path: &str, text: &str| assert_eq!(read_in_lane(&sandbox, path).as_deref(), Some(text), "{path}");
    for (path, text) in [
        (".env", "two!"),
        ("cache/a", "mine"),
        ("cache/b", "mine too"),
        ("cache/c", "c"),
        ("cache/new/d", "d"),
    ] {
        assert_content(path, text);
    }
    assert_eq!(sandbox.proq(&["sync", "x"]).stdout, "lane 'x' is up to date, apart from its own versions\n");
    // A file that `sync` added is a copy that nobody has changed, too.
    sandbox.write(".env", "three");
    sandbox.write("cache/new/d", "dd");
    let answer = sandbox.proq(&["sync", "x", "--json"]).json();
    assert_eq!((&answer["renewed"][0], &answer["renewed"][1]), (&".env".into(), &"cache/new/d".into()));
    assert_eq!(answer["kept"].as_array().unwrap().len(), 2);
    sandbox.assert_healthy();
}

/// Promise: new-lane/sync
#[test]
fn undo_restores_files_replaced_by_sync() {
    let sandbox = lane_with_copies();
    change_both_sides(&sandbox);
    let names = [".env", "cache/a", "cache/b", "cache/c", "cache/new/d"];
    let all = || names.map(|name| read_in_lane(&sandbox, name));
    let before = all();
    insta::assert_snapshot!(sandbox.proq(&["sync", "x", "--force"]).to_text(), @r"
    added: cache/c, cache/new
    renewed: .env
    replaced: cache/a, cache/b
    --- code 0
    ");
    let after = all();
    assert_eq!(after, ["two!", "a", "theirs", "c", "d"].map(|text| Some(text.to_owned())));
    assert!(sandbox.proq(&["op", "log"]).ok().contains("files given to a lane"));
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(all(), before);
    let _ = sandbox.proq(&["op", "redo"]).ok();
    assert_eq!(all(), after);
    sandbox.assert_healthy();
}

/// Promise: new-lane/sync
#[test]
fn killed_sync_is_rolled_back() {
    for at in ["step.after:2", "step.before:4", "step.after:5"] {
        let sandbox = lane_with_copies();
        change_both_sides(&sandbox);
        let all = || {
            [".env", "cache/a", "cache/b", "cache/c", "cache/new/d"].map(|name| read_in_lane(&sandbox, name))
        };
        let before = all();
        kill_at(&sandbox, at, &["sync", "x", "--force"]);
        let _ = recover(&sandbox);
        assert_eq!(all(), before, "{at}");
        let _ = sandbox.proq(&["sync", "x", "--force"]).ok();
        assert_eq!(read_in_lane(&sandbox, "cache/b").as_deref(), Some("theirs"));
        sandbox.assert_healthy();
    }
}

/// Promise: new-lane/sync
#[test]
fn sync_killed_while_copying_leaves_nothing() {
    for at in ["trash.begun", "sync.copied"] {
        let sandbox = lane_with_copies();
        change_both_sides(&sandbox);
        kill_at(&sandbox, at, &["sync", "x"]);
        let _ = recover(&sandbox);
        assert_eq!(file_names(&sandbox.repo.join(".git/proq/trash")), [""; 0], "{at}");
        assert_eq!(read_in_lane(&sandbox, ".env").as_deref(), Some("one"));
        sandbox.assert_healthy();
    }
}

/// Promise: new-lane/sync
#[test]
fn sync_creates_links_and_never_writes_through_one() {
    let sandbox = lane_with_copies();
    sandbox.write("linked/x", "x");
    sandbox.git(&["config", "proq.lane.link", "linked/"]);
    let _ = sandbox.proq(&["sync", "x"]).ok();
    assert_eq!(
        std::fs::read_link(sandbox.lane_path("x").join("linked")).unwrap(),
        sandbox.repo.join("linked")
    );
    assert!(sandbox.proq(&["sync", "x"]).ok().contains("is up to date"));
    // The lane's agent has replaced the folder by a link.
    let outside = sandbox.root().join("outside");
    std::fs::create_dir(&outside).unwrap();
    sandbox.sh_in(&sandbox.lane_path("x"), "rm -r cache; ln -s $ROOT/outside cache");
    sandbox.write("cache/new", "new");
    let _ = sandbox.proq(&["sync", "x"]).ok();
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
    let _ = sandbox.proq(&["sync", "x", "--force"]).ok();
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
    assert_eq!(read_in_lane(&sandbox, "cache/new").as_deref(), Some("new"));
    assert!(!sandbox.lane_path("x").join("cache").is_symlink());
    sandbox.assert_healthy();
}

/// Promise: new-lane/sync
#[test]
fn sync_refuses_lane_with_running_agent() {
    let sandbox = lane_with_copies();
    change_both_sides(&sandbox);
    sandbox.pipe("up");
    sandbox.pipe("go");
    sandbox.program("robot", "echo up > $ROOT/up; cat $ROOT/go");
    let _ = sandbox.proq(&["sync", "x"]).ok();
    let _ = sandbox.proq(&["run", "x", "robot", "go"]).ok();
    let _ = sandbox.read_pipe("up");
    assert!(sandbox.proq(&["sync", "x", "--force"]).fails(1).contains("is running"));
    // `undo` does not remove files under a running agent either.
    let mut undo = sandbox.proq_command(&sandbox.repo, &["undo"]);
    undo.env("PROQ_LOCK_TIMEOUT", "0");
    let out = sandbox.output(undo);
    assert_eq!(out.code, 5, "{}", out.to_text());
    assert_eq!(read_in_lane(&sandbox, ".env").as_deref(), Some("two!"));
    sandbox.write_pipe("go");
    let _ = sandbox.proq(&["wait", "x"]);
}
