//! Owns the tests of files, folders and records that this user may not read: each is named, and nothing takes it for absent.

use std::path::Path;

use super::support::{Output, Sandbox};

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    assert_ne!(sandbox.sh("id -u"), "0", "this test needs an account whose permissions count");
    sandbox
}

/// Everything that a command wrote.
fn text(out: &Output) -> String {
    format!("{}{}", out.stdout, out.stderr)
}

/// What emptying the trash of everything that is older than a moment says.
fn emptied(sandbox: &Sandbox) -> String {
    let mut command = sandbox.proq_command(&sandbox.repo, &["gc"]);
    command.env("PROQ_TRASH_KEEP", "0").env("PROQ_TEST_NOW", "2026-01-02T03:09:05Z");
    sandbox.output(command).fails(0)
}

/// Runs a command with uncommitted work committed by the landing.
fn committing(sandbox: &Sandbox, args: &[&str]) -> Output {
    let mut command = sandbox.proq_command(&sandbox.repo, args);
    command.env("PROQ_MERGE_UNCOMMITTED", "commit");
    sandbox.output(command)
}

#[test]
#[ignore = "needs an account other than root"]
fn what_could_not_be_read_of_a_discarded_lane_stays_in_the_trash() {
    for script in [
        "echo keep >secret; chmod 000 secret",
        "echo keep >secret; chmod 000 secret; echo r >readable",
        "mkdir secret; echo keep >secret/in; chmod 000 secret",
        "mkdir -p t/secret; echo keep >t/secret/in; chmod 000 t/secret; echo r >t/readable",
    ] {
        let sandbox = sandbox();
        let _ = sandbox.proq(&["spawn", "--empty", "-n", "one"]).ok();
        sandbox.sh_in(&sandbox.lane("one"), script);
        for args in [&["discard", "one", "--dry-run"][..], &["discard", "one"]] {
            let refused = sandbox.proq(args).fails(1);
            assert!(refused.contains("secret") || refused.contains("uncommitted"), "{script}: {refused}");
        }
        let said = text(&sandbox.proq(&["discard", "--force", "one"]));
        assert!(said.contains("discarded one"), "{script}: {said}");
        assert!(said.contains("secret could not be read, and is in no snapshot"), "{script}: {said}");
        assert!(!said.contains("left as it is") && !said.contains("days"), "{script}: {said}");
        let mut kept = String::new();
        for _ in 0..2 {
            kept = emptied(&sandbox);
            assert!(kept.contains("secret could not be read"), "{script}: {kept}");
            assert_eq!(sandbox.sh("ls .git/proq/trash | wc -l").trim(), "1", "{script}: {kept}");
        }
        // The hint: the entry is moved out of the trash.
        let entry = sandbox.repo.join(".git/proq/trash").read_dir().unwrap().next().unwrap().unwrap();
        assert!(kept.contains("; mv '") && kept.contains(" '[ROOT]'"), "{kept}");
        sandbox.sh(&format!("mv '{}' '{}'", entry.path().display(), sandbox.root().display()));
        let away = sandbox.root().join(entry.file_name());
        sandbox.sh_in(&away, "chmod -R u+rwX worktree; grep -rq keep worktree");
        assert!(!emptied(&sandbox).contains("secret"), "{script}");
    }
}

#[test]
#[ignore = "needs an account other than root"]
fn a_discarded_lane_goes_once_nothing_unreadable_is_in_it() {
    let sandbox = sandbox();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "one"]).ok();
    sandbox.sh_in(&sandbox.lane("one"), "echo keep >secret; chmod 000 secret; echo r >readable");
    let _ = sandbox.proq(&["discard", "--force", "one"]).ok();
    let snaps = sandbox.proq(&["snap", "list", "--json"]).json();
    assert_eq!(snaps["snapshots"][0]["files"], 1, "{snaps:#}");
    sandbox.sh("rm -f .git/proq/trash/*/worktree/secret");
    let said = emptied(&sandbox);
    assert!(said.contains("freed 1 removed lane"), "{said}");
}

#[test]
#[ignore = "needs an account other than root"]
fn an_undo_brings_an_unreadable_file_back() {
    let sandbox = sandbox();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "one"]).ok();
    sandbox.sh_in(&sandbox.lane("one"), "echo keep >secret; chmod 000 secret");
    let _ = sandbox.proq(&["discard", "--force", "one"]).ok();
    let _ = emptied(&sandbox);
    let _ = sandbox.proq(&["undo"]).ok();
    sandbox.sh_in(&sandbox.lane("one"), "chmod 600 secret");
    assert_eq!(std::fs::read_to_string(sandbox.lane("one").join("secret")).unwrap(), "keep\n");
}

#[test]
#[ignore = "needs an account other than root"]
fn a_landing_names_what_it_cannot_commit() {
    let sandbox = sandbox();
    sandbox.lane_of("one", "echo one >one");
    sandbox.sh_in(&sandbox.lane("one"), "echo keep >secret; chmod 000 secret");
    let refused = sandbox.proq(&["merge", "one"]);
    let said = text(&refused);
    let path = "[ROOT]/repo/.proq-worktrees/one/secret";
    assert!(refused.code == 1 && said.contains(&format!("chmod u+r '{path}'")), "{said}");
    assert!(!said.contains("add -A"), "{said}");
    for args in [&["merge", "one", "--dry-run"][..], &["merge", "one"]] {
        let refused = committing(&sandbox, args);
        let said = text(&refused);
        assert!(refused.code == 1 && said.contains("secret is not readable"), "{said}");
        assert!(!said.contains("Permission denied") && !said.contains("git add"), "{said}");
    }
    sandbox.sh_in(&sandbox.lane("one"), "chmod u+r secret");
    let _ = committing(&sandbox, &["merge", "one"]).ok();
    assert_eq!(sandbox.read("secret"), "keep\n");
}

#[test]
#[ignore = "needs an account other than root"]
fn a_run_in_the_main_checkout_names_what_no_snapshot_has() {
    for (more, both) in [("", false), ("echo r >readable", true)] {
        let sandbox = sandbox();
        sandbox.sh(&format!("echo keep >secret; chmod 000 secret; {more}"));
        let args = ["spawn", "--in-place", "-n", "i", "--wait", "--", "sh", "-c", "rm -f secret readable"];
        let said = text(&sandbox.proq(&args));
        assert!(said.contains("warning: secret is not readable: it is in no snapshot"), "{said}");
        assert!(said.contains("no copy of secret, which was not readable"), "{said}");
        assert_eq!(said.contains("as they were: git proq snap show"), both, "{said}");
    }
}

/// A lane with a commit, while one thing of its repository may not be opened.
fn closed(path: &str, mode: &str, see: impl Fn(&Sandbox)) {
    let sandbox = sandbox();
    sandbox.lane_of("one", "echo one >one");
    let was = sandbox.sh(&format!("stat -c %a {path}"));
    sandbox.sh(&format!("chmod {mode} {path}"));
    see(&sandbox);
    sandbox.sh(&format!("chmod {was} {path}"));
    let _ = sandbox.proq(&["merge", "one", "--dry-run"]).ok();
    sandbox.assert_healthy();
}

/// Says that nothing in these texts takes a lane for absent.
fn takes_none_for_absent(said: &str) {
    for wrong in [
        "belongs to no lane",
        "no lane has on record",
        "never finished",
        "git proq cleanup",
        "git branch -m",
        "no lanes yet",
    ] {
        assert!(!said.contains(wrong), "{wrong}: {said}");
    }
}

#[test]
#[ignore = "needs an account other than root"]
fn records_that_cannot_be_read_are_not_taken_for_absent() {
    for (path, mode) in [
        (".git/proq/lanes", "000"),
        (".git/proq/lanes", "111"),
        (".git/proq/lanes/one", "000"),
        (".git/proq/lanes/one/lane.toml", "000"),
    ] {
        closed(path, mode, |sandbox| {
            for args in [&["list"][..], &["doctor"], &["cleanup", "--dry-run"], &["cleanup"]] {
                let said = text(&sandbox.proq(args));
                takes_none_for_absent(&said);
                let place = format!("[ROOT]/repo/{path}");
                assert!(said.contains(&place) && said.contains("read"), "{path} {args:?}: {said}");
            }
            let doctor = sandbox.proq(&["doctor"]);
            assert!(doctor.code == 1 && text(&doctor).contains("ermission denied"), "{}", text(&doctor));
            assert!(sandbox.lane("one").join("one").exists());
            assert_ne!(sandbox.git(&["for-each-ref", "refs/heads/proq/one"]), "");
        });
    }
}

#[test]
#[ignore = "needs an account other than root"]
fn a_lane_whose_folder_cannot_be_read_is_not_taken_for_one_without() {
    for (path, mode) in [
        (".proq-worktrees/one", "000"),
        (".proq-worktrees/one", "111"),
        (".proq-worktrees/one", "444"),
        (".proq-worktrees", "000"),
    ] {
        closed(path, mode, |sandbox| {
            let hint = format!("chmod u+rwX '[ROOT]/repo/{path}'");
            for args in [
                &["list"][..],
                &["doctor"],
                &["merge", "one", "--dry-run"],
                &["merge", "one"],
                &["merge", "--all"],
                &["discard", "one"],
                &["discard", "--force", "one"],
            ] {
                let out = sandbox.proq(args);
                let said = text(&out);
                assert!(said.contains("cannot be read") && said.contains(&hint), "{path} {args:?}: {said}");
                assert!(
                    !said.contains("git worktree") && !said.contains("is gone"),
                    "{path} {args:?}: {said}"
                );
                assert_eq!(out.code, i32::from(args != ["list"]), "{path} {args:?}: {said}");
            }
            assert!(Path::new(&sandbox.repo.join(".git/proq/lanes/one/lane.toml")).exists());
            sandbox.sh(&hint.replace("[ROOT]", sandbox.root().to_str().unwrap()));
            let _ = sandbox.proq(&["merge", "one", "--dry-run"]).ok();
        });
    }
}
