//! Owns the tests of `git proq sync`: a lane gets what it lacks, its own work stays, and what is replaced comes back.

use super::recovery::kit::{dies, recovers};
use super::support::{Sandbox, names};

/// A lane `x` with copies of a file and of a folder.
fn lane() -> Sandbox {
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

fn in_lane(sandbox: &Sandbox, path: &str) -> Option<String> {
    std::fs::read_to_string(sandbox.lane("x").join(path)).ok()
}

/// Newer in the main checkout, newer in the lane, newer in both, gone from the lane, new in the main checkout.
fn moved_on(sandbox: &Sandbox) {
    sandbox.write(".env", "two!");
    sandbox.write_in(&sandbox.lane("x"), "cache/a", "mine");
    sandbox.write("cache/b", "theirs");
    sandbox.write_in(&sandbox.lane("x"), "cache/b", "mine too");
    std::fs::remove_file(sandbox.lane("x").join("cache/c")).unwrap();
    sandbox.write("cache/new/d", "d");
}

#[test]
fn a_lane_gets_what_it_lacks_and_keeps_its_own_work() {
    let sandbox = lane();
    insta::assert_snapshot!(sandbox.proq(&["sync", "x"]).shown(), @r"
    lane 'x' has all of it
    --- code 0
    ");
    moved_on(&sandbox);
    insta::assert_snapshot!(sandbox.proq(&["sync", "x", "--dry-run"]).shown(), @r"
    would be added: cache/c, cache/new
    would be renewed: .env
    --- stderr
    warning: left as it is, since it is the lane's own by now: cache/a, cache/b
    hint: replace them all the same: git proq sync x --force
    --- code 0
    ");
    assert_eq!(in_lane(&sandbox, ".env").as_deref(), Some("one"));
    insta::assert_snapshot!(sandbox.proq(&["sync", "x"]).shown(), @r"
    added: cache/c, cache/new
    renewed: .env
    --- stderr
    warning: left as it is, since it is the lane's own by now: cache/a, cache/b
    hint: replace them all the same: git proq sync x --force
    --- code 0
    ");
    let has = |path: &str, text: &str| assert_eq!(in_lane(&sandbox, path).as_deref(), Some(text), "{path}");
    for (path, text) in [
        (".env", "two!"),
        ("cache/a", "mine"),
        ("cache/b", "mine too"),
        ("cache/c", "c"),
        ("cache/new/d", "d"),
    ] {
        has(path, text);
    }
    assert_eq!(sandbox.proq(&["sync", "x"]).stdout, "lane 'x' has the rest of it\n");
    // What was given is a copy that nobody has changed, too.
    sandbox.write(".env", "three");
    sandbox.write("cache/new/d", "dd");
    let answer = sandbox.proq(&["sync", "x", "--json"]).json();
    assert_eq!((&answer["renewed"][0], &answer["renewed"][1]), (&".env".into(), &"cache/new/d".into()));
    assert_eq!(answer["kept"].as_array().unwrap().len(), 2);
    sandbox.assert_healthy();
}

#[test]
fn what_is_replaced_comes_back_with_an_undo() {
    let sandbox = lane();
    moved_on(&sandbox);
    let names = [".env", "cache/a", "cache/b", "cache/c", "cache/new/d"];
    let all = || names.map(|name| in_lane(&sandbox, name));
    let before = all();
    insta::assert_snapshot!(sandbox.proq(&["sync", "x", "--force"]).shown(), @r"
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

#[test]
fn killed_half_way_it_is_taken_back() {
    for at in ["step.after:2", "step.before:4", "step.after:5"] {
        let sandbox = lane();
        moved_on(&sandbox);
        let all =
            || [".env", "cache/a", "cache/b", "cache/c", "cache/new/d"].map(|name| in_lane(&sandbox, name));
        let before = all();
        dies(&sandbox, at, &["sync", "x", "--force"]);
        let _ = recovers(&sandbox);
        assert_eq!(all(), before, "{at}");
        let _ = sandbox.proq(&["sync", "x", "--force"]).ok();
        assert_eq!(in_lane(&sandbox, "cache/b").as_deref(), Some("theirs"));
        sandbox.assert_healthy();
    }
}

#[test]
fn killed_while_it_copies_nothing_is_left_of_it() {
    for at in ["trash.begun", "sync.copied"] {
        let sandbox = lane();
        moved_on(&sandbox);
        dies(&sandbox, at, &["sync", "x"]);
        let _ = recovers(&sandbox);
        assert_eq!(names(&sandbox.repo.join(".git/proq/trash")), [""; 0], "{at}");
        assert_eq!(in_lane(&sandbox, ".env").as_deref(), Some("one"));
        sandbox.assert_healthy();
    }
}

#[test]
fn links_are_made_later_and_nothing_is_written_through_one() {
    let sandbox = lane();
    sandbox.write("linked/x", "x");
    sandbox.git(&["config", "proq.lane.link", "linked/"]);
    let _ = sandbox.proq(&["sync", "x"]).ok();
    assert_eq!(std::fs::read_link(sandbox.lane("x").join("linked")).unwrap(), sandbox.repo.join("linked"));
    assert!(sandbox.proq(&["sync", "x"]).ok().contains("has all of it"));
    // The lane's agent has put a link in the place of the folder.
    let outside = sandbox.root().join("outside");
    std::fs::create_dir(&outside).unwrap();
    sandbox.sh_in(&sandbox.lane("x"), "rm -r cache; ln -s $ROOT/outside cache");
    sandbox.write("cache/new", "new");
    let _ = sandbox.proq(&["sync", "x"]).ok();
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
    let _ = sandbox.proq(&["sync", "x", "--force"]).ok();
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
    assert_eq!(in_lane(&sandbox, "cache/new").as_deref(), Some("new"));
    assert!(!sandbox.lane("x").join("cache").is_symlink());
    sandbox.assert_healthy();
}

#[test]
fn a_lane_in_which_an_agent_works_is_left_alone() {
    let sandbox = lane();
    moved_on(&sandbox);
    sandbox.pipe("up");
    sandbox.pipe("go");
    sandbox.program("robot", "echo up > $ROOT/up; cat $ROOT/go");
    let _ = sandbox.proq(&["sync", "x"]).ok();
    let _ = sandbox.proq(&["run", "x", "robot", "go"]).ok();
    let _ = sandbox.hear("up");
    assert!(sandbox.proq(&["sync", "x", "--force"]).fails(1).contains("is running"));
    // Nor are files taken from under it.
    let mut undo = sandbox.proq_command(&sandbox.repo, &["undo"]);
    undo.env("PROQ_LOCK_TIMEOUT", "0");
    let out = sandbox.output(undo);
    assert_eq!(out.code, 5, "{}", out.shown());
    assert_eq!(in_lane(&sandbox, ".env").as_deref(), Some("two!"));
    sandbox.tell("go");
    let _ = sandbox.proq(&["wait", "x"]);
}
