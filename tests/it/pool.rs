//! Owns the tests of folders of landed lanes that new lanes are given.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::support::patience::Beside;
use super::support::{Sandbox, names};

/// A repository in which `target/` is a cache.
pub fn with_cache() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write(".gitignore", "target/\n*.log\n.env\nout/\n");
    sandbox.write("src/main.c", "int main;\n");
    sandbox.write("src/deep/one.c", "one\n");
    sandbox.sh("printf '#!/bin/sh\n' > run; chmod +x run; ln -s run link");
    sandbox.commit_all("files");
    sandbox.git(&["config", "proq.pool.keep", "target/"]);
    sandbox
}

/// A lane with some work, and what it left lying about; it has landed.
pub fn landed(sandbox: &Sandbox, name: &str, script: &str) {
    sandbox.lane_of(name, &format!("echo {name} >> src/main.c"));
    let _ = sandbox.sh_in(&sandbox.lane(name), script);
    let _ = sandbox.proq(&["merge", name]).ok();
    assert!(!sandbox.lane(name).exists());
}

/// Makes a lane, and says whose folder it got.
#[track_caller]
pub fn spawn(sandbox: &Sandbox, name: &str) -> Option<String> {
    let out = sandbox.proq(&["-v", "spawn", "--empty", "-n", name]);
    assert_eq!(out.code, 0, "{}", out.shown());
    let whose = out.stderr.split("files kept from the folder of lane '").nth(1)?;
    Some(whose.split('\'').next().unwrap().to_owned())
}

/// The trash entry of a lane.
#[track_caller]
pub fn entry(sandbox: &Sandbox, lane: &str) -> PathBuf {
    let trash = sandbox.repo.join(".git/proq/trash");
    let all = names(&trash);
    let name = all.iter().find(|name| name.starts_with(&format!("{lane}-2"))).unwrap();
    trash.join(name)
}

/// Everything in a folder, with kinds, rights and contents, and what git says of it.
fn image(sandbox: &Sandbox, dir: &Path) -> String {
    sandbox.sh_in(
        dir,
        "find . -path ./.git -prune -o -printf '%p %y %m %l\\n' | sort
        find . -path ./.git -prune -o -type f -print0 | sort -z | xargs -0 sha1sum
        git ls-files -s -t -v; git status --porcelain=v2 --ignored; git rev-parse HEAD:",
    )
}

/// Whether a lane is as `git worktree add` would have made it.
#[track_caller]
fn assert_as_git(sandbox: &Sandbox, lane: &str) {
    sandbox.git(&["worktree", "add", "-q", "--detach", "../git", &format!("proq/{lane}")]);
    let theirs = image(sandbox, &sandbox.root().join("git"));
    assert_eq!(image(sandbox, &sandbox.lane(lane)), theirs);
    sandbox.git(&["worktree", "remove", "--force", "../git"]);
}

#[test]
fn the_next_lane_gets_the_folder_and_nothing_of_what_lay_in_it() {
    let sandbox = with_cache();
    sandbox.git(&["config", "--unset", "proq.pool.keep"]);
    landed(
        &sandbox,
        "a",
        "mkdir -p target/debug out/deep empty/folder; echo o > target/debug/o; echo l > src/deep/x.log
        echo SECRET > .env; echo o > out/deep/o; mkfifo out/pipe; git init -q out/nested
        chmod 600 out/deep/o; mkdir out/shut; chmod 500 out/shut
        echo w > \"src/$(printf 'a\\nb\\302\\233').log\"; echo U > src/X.log; ln -s /etc out/far; echo k > Target.log",
    );
    sandbox.write("src/new.c", "new\n");
    sandbox.sh("rm src/deep/one.c; rm link; echo file > link; chmod -x run");
    sandbox.commit_all("the base goes on");
    assert_eq!(spawn(&sandbox, "b").as_deref(), Some("a"));
    assert_as_git(&sandbox, "b");
    sandbox.git(&["fsck", "--no-dangling", "--no-progress"]);
    sandbox.assert_healthy();
    // One folder goes to one lane.
    assert_eq!(spawn(&sandbox, "c"), None);
    assert_as_git(&sandbox, "c");
    let aside = entry(&sandbox, "a").join("aside");
    assert_eq!(std::fs::read_to_string(aside.join(".env")).unwrap(), "SECRET\n");
    assert!(
        aside.join("out/nested/.git/HEAD").exists()
            && aside.join("empty/folder").is_dir()
            && aside.join("out/shut").is_dir()
    );
}

#[test]
fn what_pool_keep_names_stays_where_git_ignores_it() {
    let sandbox = with_cache();
    sandbox.git(&["config", "proq.pool.keep", "target/\n!target/tmp/\n/out/cache/\nloose/\nfree/"]);
    let leave = "mkdir -p target/debug target/tmp out/cache out/other free src/deep/target
        for file in target/debug/o target/tmp/t out/cache/c out/other/x src/deep/target/y; do echo o > $file; done";
    landed(&sandbox, "a", leave);
    // What is there is found by a rule of the folder that is to be, not of the one that was.
    assert_eq!(spawn(&sandbox, "b").as_deref(), Some("a"));
    let lane = sandbox.lane("b");
    let left = sandbox.git_in(&lane, &["ls-files", "--others"]);
    assert_eq!(left, "out/cache/c\nsrc/deep/target/y\ntarget/debug/o");
    assert_eq!(sandbox.git_in(&lane, &["status", "--porcelain"]), "");
    assert!(
        !lane.join("free").exists() && !lane.join("target/tmp").exists() && !lane.join("out/other").exists()
    );
    let aside = entry(&sandbox, "a").join("aside");
    assert!(aside.join("target/tmp/t").exists() && aside.join("out/other/x").exists());
    assert!(aside.join("free").exists());
}

#[test]
fn a_cache_that_git_does_not_ignore_any_more_goes() {
    for deed in [
        "echo '*.log' > .gitignore",
        "rm -f target; echo tracked > target",
        "mkdir target; echo x > target/x",
    ] {
        let sandbox = with_cache();
        landed(&sandbox, "a", "mkdir target; echo o > target/o");
        sandbox.sh(&format!(
            "{deed}; git add -Af; git commit -qm deed; rm -rf .gitignore target; git reset -q --hard"
        ));
        assert_eq!(spawn(&sandbox, "b").as_deref(), Some("a"), "{deed}");
        assert_as_git(&sandbox, "b");
        assert!(entry(&sandbox, "a").join("aside/target/o").exists(), "{deed}");
    }
}

#[test]
fn a_lane_whose_folder_was_given_away_comes_back_all_the_same() {
    let sandbox = with_cache();
    landed(
        &sandbox,
        "a",
        "mkdir -p target empty src/in; echo o > target/o; echo S > .env; echo l > src/in/x.log",
    );
    assert_eq!(spawn(&sandbox, "b").as_deref(), Some("a"));
    let lane = sandbox.lane("b");
    sandbox.sh_in(&lane, "echo B > src/main.c; echo B > target/o");
    let refused = sandbox.proq(&["undo"]);
    assert_eq!(refused.code, 1, "{}", refused.shown());
    let _ = sandbox.proq(&["undo", "--force"]).ok();
    assert!(!lane.exists());
    let out = sandbox.proq(&["undo"]);
    assert_eq!(out.code, 0, "{}", out.shown());
    assert!(out.stderr.contains("the folder of 'a' was given to 'b' and is made anew"), "{}", out.stderr);
    assert!(out.stderr.contains("what pool.keep names is not in it any more: target"), "{}", out.stderr);
    let lane = sandbox.lane("a");
    assert_eq!(sandbox.git_in(&lane, &["ls-files", "--others"]), ".env\nsrc/in/x.log");
    assert!(lane.join("empty").is_dir() && !lane.join("target").exists());
    assert_eq!(sandbox.git_in(&lane, &["status", "--porcelain"]), "");
    assert_eq!(std::fs::read_to_string(lane.join("src/main.c")).unwrap(), "int main;\na\n");
    assert_eq!(sandbox.git_in(&lane, &["branch", "--show-current"]), "proq/a");
    sandbox.assert_healthy();
    // And it goes again, whole; its folder is as good as any.
    let _ = sandbox.proq(&["op", "redo"]).ok();
    assert!(entry(&sandbox, "a").join("worktree/.env").exists());
    sandbox.assert_healthy();
    assert_eq!(spawn(&sandbox, "c").as_deref(), Some("a"));
    assert_as_git(&sandbox, "c");
}

#[test]
fn a_folder_that_somebody_wrote_to_since_is_looked_at_anew() {
    // What changed is not lost, and nobody else gets it.
    for deed in [
        "echo more >> src/main.c",
        "touch -r run ref; printf '#!/bin/sH\\n' > run; touch -r ref run; rm ref",
        "rm src/deep/one.c",
        "rm run; mkdir run",
        "rm -r src/deep; ln -s /etc src/deep",
        "chmod -x run",
        "chmod 700 src",
        "rm .git; git init -q .",
        "ln -sf elsewhere link",
    ] {
        let sandbox = with_cache();
        landed(&sandbox, "a", "");
        let folder = entry(&sandbox, "a").join("worktree");
        sandbox.sh_in(&folder, deed);
        let before = sandbox.sh_in(&folder, "find . -printf '%p %y %m %l %i\n' | sort");
        assert_eq!(spawn(&sandbox, "b"), None, "{deed}");
        assert_eq!(sandbox.sh_in(&folder, "find . -printf '%p %y %m %l %i\n' | sort"), before, "{deed}");
        assert_as_git(&sandbox, "b");
    }
    // What is new is set aside.
    let sandbox = with_cache();
    landed(&sandbox, "a", "");
    sandbox.sh_in(
        &entry(&sandbox, "a").join("worktree"),
        "echo new > src/note; chmod 600 a.txt; ln a.txt ../second",
    );
    assert_eq!(spawn(&sandbox, "b").as_deref(), Some("a"));
    assert_as_git(&sandbox, "b");
    assert_eq!(std::fs::read_to_string(entry(&sandbox, "a").join("aside/src/note")).unwrap(), "new\n");
    sandbox.sh_in(&sandbox.lane("b"), "echo mine > a.txt");
    assert_eq!(std::fs::read_to_string(entry(&sandbox, "a").join("second")).unwrap(), "a\n");
}

#[test]
fn only_lanes_that_landed_and_went_by_themselves_give_their_folders() {
    let sandbox = with_cache();
    sandbox.lane_of("a", "echo a >> src/main.c");
    let _ = sandbox.proq(&["discard", "--force", "a"]).ok();
    assert_eq!(spawn(&sandbox, "b"), None);
    sandbox.commit_in_lane("b", "echo b >> src/main.c");
    sandbox.write_in(&sandbox.lane("b"), "left", "left\n");
    let _ = sandbox.proq(&["merge", "b"]);
    assert!(sandbox.lane("b").exists(), "it has something left");
    assert_eq!(spawn(&sandbox, "c"), None);
    let _ = sandbox.proq(&["cleanup", "--force", "b"]);
    let _ = sandbox.proq(&["discard", "--force", "c"]).ok();
    assert_eq!(spawn(&sandbox, "d"), None);
    sandbox.commit_in_lane("d", "echo d >> src/deep/one.c");
    let _ = sandbox.proq(&["merge", "d"]).ok();
    sandbox.git(&["config", "proq.pool.size", "0"]);
    assert_eq!(spawn(&sandbox, "e"), None, "it is turned off");
    sandbox.git(&["config", "proq.pool.size", "1"]);
    assert_eq!(spawn(&sandbox, "f").as_deref(), Some("d"));
}

#[test]
fn a_folder_that_a_process_is_in_is_left_alone() {
    let sandbox = with_cache();
    landed(&sandbox, "a", "");
    let folder = entry(&sandbox, "a").join("worktree");
    let mut command = sandbox.command("cat", &folder);
    let mut inside = Beside(command.stdin(Stdio::piped()).spawn().unwrap());
    assert_eq!(spawn(&sandbox, "b"), None);
    drop(inside.0.stdin.take());
    assert_eq!(inside.code(), Some(0));
    // As one that its agent left running elsewhere.
    let alive =
        std::fs::File::options().create(true).append(true).open(sandbox.lock("a", "alive.lock")).unwrap();
    alive.lock().unwrap();
    assert_eq!(spawn(&sandbox, "c"), None);
    drop(alive);
    assert_eq!(spawn(&sandbox, "d").as_deref(), Some("a"));
}

#[test]
fn worktrees_with_ways_of_their_own_are_left_alone() {
    for deed in [
        "git sparse-checkout set src",
        "git config extensions.worktreeConfig true; git config --worktree core.abbrev 9",
        "git update-index --assume-unchanged a.txt",
    ] {
        let sandbox = with_cache();
        landed(&sandbox, "a", deed);
        sandbox.sh("git config --unset extensions.worktreeConfig || true");
        assert_eq!(spawn(&sandbox, "b"), None, "{deed}");
        assert_as_git(&sandbox, "b");
    }
}

/// Three lanes that were there at the same time, and have landed.
pub fn three_landed(sandbox: &Sandbox) {
    for name in ["a", "b", "c"] {
        sandbox.lane_of(name, &format!("echo {name} > {name}.c; mkdir target; echo {name} > target/whose"));
    }
    let _ = sandbox.proq(&["merge", "--all"]).ok();
    sandbox.git(&["config", "proq.pool.size", "3"]);
}

#[test]
fn lanes_that_are_made_at_once_never_share_a_folder() {
    let sandbox = with_cache();
    three_landed(&sandbox);
    let begin = |name: &str| {
        let mut command = sandbox.proq_command(&sandbox.repo, &["spawn", "--empty", "-n", name]);
        Beside(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    };
    let mut all: Vec<Beside> = ["v", "w", "x", "y", "z"].into_iter().map(begin).collect();
    assert!(all.iter_mut().all(|one| one.code() == Some(0)));
    let whose = |name: &str| std::fs::read_to_string(sandbox.lane(name).join("target/whose")).ok();
    let mut got: Vec<String> = ["v", "w", "x", "y", "z"].into_iter().filter_map(whose).collect();
    got.sort();
    assert_eq!(got, ["a\n", "b\n", "c\n"]);
    for name in ["v", "w", "x", "y", "z"] {
        assert_eq!(sandbox.git_in(&sandbox.lane(name), &["status", "--porcelain"]), "");
    }
    sandbox.assert_healthy();
}

#[test]
fn a_folder_that_is_being_given_away_is_nobody_elses() {
    let sandbox = with_cache();
    landed(&sandbox, "a", "mkdir target; echo a > target/whose");
    sandbox.git(&["config", "proq.lock.timeout", "1"]);
    let mut command = sandbox.proq_command(&sandbox.repo, &["spawn", "--empty", "-n", "x"]);
    command.env("PROQ_TEST_STAND_AT", "pool.claimed").stdout(Stdio::null()).stderr(Stdio::null());
    let mut gets = Beside(command.spawn().unwrap());
    let standing = sandbox.standing(gets.0.id());
    assert_eq!(spawn(&sandbox, "y"), None);
    drop(standing);
    assert_eq!(gets.code(), Some(0));
    assert_eq!(std::fs::read_to_string(sandbox.lane("x").join("target/whose")).unwrap(), "a\n");
    assert!(!sandbox.lane("y").join("target").exists());
    assert_as_git(&sandbox, "y");
    assert_eq!(sandbox.git_in(&sandbox.lane("x"), &["status", "--porcelain"]), "");
    sandbox.assert_healthy();
}

#[test]
fn gc_says_which_folders_wait_and_what_they_take() {
    let sandbox = with_cache();
    three_landed(&sandbox);
    sandbox.git(&["config", "proq.pool.size", "2"]);
    let out = sandbox.proq(&["gc"]);
    let said = |out: &str| out.lines().find(|line| line.starts_with("in the trash")).map(ToOwned::to_owned);
    let line = said(&out.stderr).unwrap();
    assert!(line.starts_with("in the trash for now: 3 removed lanes, "), "{line}");
    assert!(line.ends_with("B; the folders of 'c', 'b' wait for new lanes"), "{line}");
    assert!(out.stderr.contains("hint: free that too, for good: PROQ_TRASH_KEEP=0 git proq gc\n"));
    assert_eq!(spawn(&sandbox, "x").as_deref(), Some("c"));
    let held = sandbox.proq(&["gc", "--json"]).json()["trash"].clone();
    assert_eq!((&held["count"], &held["waiting"]), (&3.into(), &serde_json::json!(["b", "a"])));
    // What would go is not told of twice, and what went is not there any more.
    let now = |args: &[&str]| {
        let mut command = sandbox.proq_command(&sandbox.repo, args);
        command.env("PROQ_TRASH_KEEP", "0").env("PROQ_TEST_NOW", "2026-01-02T03:09:05Z");
        sandbox.output(command)
    };
    let planned = now(&["gc", "--dry-run"]);
    assert!(planned.stdout.contains("would free 3 removed lanes from the trash"), "{}", planned.shown());
    assert_eq!(said(&planned.stderr), None);
    assert_eq!(said(&now(&["gc"]).stderr), None);
    assert!(names(&sandbox.repo.join(".git/proq/trash")).is_empty());
    sandbox.assert_healthy();
}

#[test]
fn of_several_attempts_each_may_get_one() {
    let sandbox = with_cache();
    three_landed(&sandbox);
    let out = sandbox.proq(&["-v", "spawn", "--empty", "-n", "x", "--count", "4"]);
    assert_eq!(out.stderr.matches("files kept from the folder of lane").count(), 3, "{}", out.shown());
    for name in ["x-1", "x-2", "x-3", "x-4"] {
        assert_eq!(sandbox.git_in(&sandbox.lane(name), &["status", "--porcelain"]), "", "{name}");
    }
    let _ = sandbox.proq(&["undo"]).ok();
    assert!(!sandbox.lane("x-1").exists());
    sandbox.assert_healthy();
}

#[test]
fn a_full_disk_while_a_folder_changes_hands_takes_nothing_with_it() {
    let sandbox = with_cache();
    landed(&sandbox, "a", "mkdir target; echo o > target/o; echo SECRET > .env; echo l > src/deep/x.log");
    sandbox.write("long", &"line\n".repeat(100_000));
    sandbox.sh("rm src/deep/one.c");
    sandbox.commit_all("the base goes on");
    let program = sandbox.proq_command(&sandbox.repo, &[]).get_program().to_owned();
    let mut limited = sandbox.command("sh", &sandbox.repo);
    // A limit on the size of files stands in for a full disk: the one file that is new cannot be written.
    limited.args(["-c", "trap '' XFSZ; ulimit -f 128; exec \"$@\"", "sh"]).arg(program);
    limited.args(["-v", "spawn", "--empty", "-n", "b"]);
    let out = sandbox.output(limited);
    assert!(out.code == 1 && out.stderr.contains("unable to write file long"), "{}", out.shown());
    // Nothing of the new lane is left, and what was the landed lane's own is where it comes back from.
    assert!(!sandbox.lane("b").exists() && sandbox.git(&["branch", "--list", "proq/b"]).is_empty());
    assert_eq!(std::fs::read_to_string(entry(&sandbox, "a").join("aside/.env")).unwrap(), "SECRET\n");
    sandbox.assert_healthy();
    assert_eq!(spawn(&sandbox, "c"), None);
    assert_as_git(&sandbox, "c");
    let _ = sandbox.proq(&["undo"]).ok();
    sandbox.git(&["reset", "-q", "--hard", "HEAD^"]);
    let _ = sandbox.proq(&["undo"]).ok();
    let lane = sandbox.lane("a");
    assert_eq!(sandbox.git_in(&lane, &["ls-files", "--others"]), ".env\nsrc/deep/x.log");
    assert_eq!(sandbox.git_in(&lane, &["status", "--porcelain"]), "");
    assert_eq!(std::fs::read_to_string(lane.join("src/main.c")).unwrap(), "int main;\na\n");
    sandbox.assert_healthy();
}

#[test]
fn what_a_new_lane_is_given_comes_on_top_of_what_was_kept() {
    let sandbox = with_cache();
    sandbox.git(&["config", "proq.pool.keep", "target/\n.env\n*.log"]);
    sandbox.git(&["config", "proq.lane.copy", "target/\nout/"]);
    sandbox.git(&["config", "proq.lane.link", "x.log"]);
    sandbox.git(&["config", "proq.lane.env", ".env"]);
    for (file, text) in [("target/main", "main"), ("out/o", "out"), ("x.log", "log")] {
        sandbox.write(file, text);
    }
    landed(&sandbox, "a", "echo lane > target/lane; rm target/main; rm x.log; echo own > x.log");
    let out = sandbox.proq(&["spawn", "--empty", "-n", "b"]);
    assert_eq!(out.code, 0, "{}", out.shown());
    assert!(!out.stderr.contains("not copied") && !out.stderr.contains("not linked"), "{}", out.stderr);
    let lane = sandbox.lane("b");
    let read = |name: &str| std::fs::read_to_string(lane.join(name)).unwrap();
    assert_eq!(names(&lane.join("target")), ["lane"]);
    assert_eq!((read("x.log").as_str(), read("out/o").as_str()), ("own\n", "out"));
    assert!(read(".env").starts_with("PROQ_LANE=b\n"), "{}", read(".env"));
    assert!(entry(&sandbox, "a").join("aside/.env").exists());
}

#[test]
fn what_is_left_of_an_entry_expires_as_before() {
    let sandbox = with_cache();
    landed(&sandbox, "a", "mkdir target; echo S > .env");
    assert_eq!(spawn(&sandbox, "b").as_deref(), Some("a"));
    sandbox.assert_healthy();
    sandbox.git(&["config", "proq.trash.keep", "0"]);
    sandbox.sh_in(&sandbox.lane("b"), "echo b >> a.txt; git commit -qam b");
    let mut later = sandbox.proq_command(&sandbox.repo, &["gc"]);
    later.env("PROQ_TEST_NOW", "2026-01-03T03:04:05Z");
    let out = sandbox.output(later);
    assert_eq!(out.code, 0, "{}", out.shown());
    assert_eq!(names(&sandbox.repo.join(".git/proq/trash")), [""; 0]);
    assert_eq!(sandbox.git_in(&sandbox.lane("b"), &["status", "--porcelain"]), "");
    // Without the entry there is nothing to bring back, as for any other.
    let _ = sandbox.proq(&["undo", "--force"]).ok();
    let out = sandbox.proq(&["undo"]);
    assert_eq!(out.code, 1, "{}", out.shown());
}

#[test]
fn names_that_are_no_text_come_back() {
    let sandbox = with_cache();
    sandbox.lane_of("a", "echo a >> src/main.c");
    let odd = sandbox.lane("a").join(std::ffi::OsStr::from_bytes(b"odd\xff\n.log"));
    std::fs::write(&odd, "odd").unwrap();
    let _ = sandbox.proq(&["merge", "a"]).ok();
    assert_eq!(spawn(&sandbox, "b").as_deref(), Some("a"));
    assert_as_git(&sandbox, "b");
    let _ = sandbox.proq(&["undo"]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(std::fs::read_to_string(odd).unwrap(), "odd");
}
