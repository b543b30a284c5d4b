//! Owns the tests of what git would remove a submodule's folder for, with all that is in it.

use super::preview_identity::same;
use super::support::{Image, Sandbox};

/// A checkout with a repository at `sm` that is on record as a submodule, in which there is work that nobody else has, and a lane
/// `one` with a file in its place.
fn with_own_work(add: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh("git init -q -b main ../sub; cd ../sub; echo s >s; git add s; git commit -qm sub");
    sandbox.write("x", "x\n");
    sandbox.sh(add);
    sandbox.commit_all("base");
    sandbox.lane_of("one", "rm -rf sm; echo plain >sm");
    sandbox.sh("cd sm; git checkout -qb work; git commit -q --allow-empty -m precious; git checkout -q -");
    sandbox.sh("echo '*.env' >>sm/$(cd sm; git rev-parse --git-path info/exclude | sed 's,^/.*/repo/,../,'); echo secret >sm/k.env");
    sandbox
}

#[test]
fn a_submodule_that_a_lane_has_a_file_in_place_of_keeps_its_work() {
    for add in ["git clone -q ../sub sm", "git -c protocol.file.allow=always submodule add -q ../sub sm"] {
        let sandbox = with_own_work(add);
        let before = Image::of(&sandbox, &sandbox.repo);
        for args in [&["merge", "one", "--dry-run"][..], &["merge", "one"], &["preview", "one"]] {
            let refused = sandbox.proq(args).fails(1);
            assert!(refused.contains("in the way: sm;"), "{refused}");
            same(&before, &Image::of(&sandbox, &sandbox.repo));
            assert_eq!(sandbox.read("sm/k.env"), "secret\n");
            assert_eq!(sandbox.git(&["-C", "sm", "log", "-1", "--format=%s", "work"]), "precious");
        }
        // As the hint says.
        sandbox.sh("mv sm ../kept");
        let _ = sandbox.proq(&["merge", "one"]).ok();
        assert_eq!(sandbox.read("sm"), "plain\n");
        let _ = sandbox.proq(&["undo"]).ok();
        assert_eq!(std::fs::read_dir(sandbox.repo.join("sm")).map(Iterator::count).unwrap(), 0);
    }
}

#[test]
fn a_repository_that_was_made_in_a_submodules_place_keeps_an_undo_from_removing_it() {
    let sandbox = Sandbox::new();
    sandbox.sh("git init -q -b main ../sub; cd ../sub; echo s >s; git add s; git commit -qm sub");
    sandbox.write("a", "a\n");
    sandbox.commit_all("base");
    sandbox.lane_of("one", "rm a; git clone -q ../../../sub a");
    let _ = sandbox.proq(&["merge", "one"]).ok();
    sandbox.sh("rmdir a; git clone -q ../sub a; cd a; git checkout -qb work; git commit -q --allow-empty -m precious; git checkout -q main");
    let _ = sandbox.proq(&["undo"]).fails(1);
    assert_eq!(sandbox.git(&["-C", "a", "log", "-1", "--format=%s", "work"]), "precious");
}
