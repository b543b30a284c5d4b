//! Tests of the lane pool: new lanes reuse the folders of landed lanes.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use proq_test_kit::waiting::KilledOnDrop;
use proq_test_kit::{Sandbox, file_names};

/// Creates a repository in which the pool keeps `target/`.
pub fn sandbox_with_cache() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write(".gitignore", "target/\n*.log\n.env\nout/\n");
    sandbox.write("src/main.c", "int main;\n");
    sandbox.write("src/deep/one.c", "one\n");
    sandbox.sh("printf '#!/bin/sh\n' > run; chmod +x run; ln -s run link");
    sandbox.commit_all("files");
    sandbox.git(&["config", "proq.pool.keep", "target/"]);
    sandbox
}

/// Creates a lane with a commit, runs `script` in its folder, and lands it.
pub fn land_lane(sandbox: &Sandbox, name: &str, script: &str) {
    sandbox.lane_with_commit(name, &format!("echo {name} >> src/main.c"));
    let _ = sandbox.sh_in(&sandbox.lane_path(name), script);
    let _ = sandbox.proq(&["merge", name]).ok();
    assert!(!sandbox.lane_path(name).exists());
}

/// Creates a lane and returns the name of the lane whose folder it reused.
#[track_caller]
pub fn spawn_and_find_reused_lane(sandbox: &Sandbox, name: &str) -> Option<String> {
    let out = sandbox.proq(&["-v", "spawn", "--empty", "-n", name]);
    assert_eq!(out.code, 0, "{}", out.to_text());
    let rest = out.stderr.split("files kept from the folder of lane '").nth(1)?;
    Some(rest.split('\'').next().unwrap().to_owned())
}

/// Returns the trash entry of a lane.
#[track_caller]
pub fn trash_entry(sandbox: &Sandbox, lane: &str) -> PathBuf {
    let trash = sandbox.repo.join(".git/proq/trash");
    let entries = file_names(&trash);
    let name = entries.iter().find(|name| name.starts_with(&format!("{lane}-2"))).unwrap();
    trash.join(name)
}

/// Returns all paths in a folder with kind, mode and content, and git's view of it.
fn folder_state(sandbox: &Sandbox, dir: &Path) -> String {
    sandbox.sh_in(
        dir,
        "find . -path ./.git -prune -o -printf '%p %y %m %l\\n' | sort
        find . -path ./.git -prune -o -type f -print0 | sort -z | xargs -0 sha1sum
        git ls-files -s -t -v; git status --porcelain=v2 --ignored; git rev-parse HEAD:",
    )
}

/// Asserts that a lane's folder equals one created by `git worktree add`.
#[track_caller]
fn assert_same_as_git_worktree(sandbox: &Sandbox, lane: &str) {
    sandbox.git(&["worktree", "add", "-q", "--detach", "../git", &format!("proq/{lane}")]);
    let expected = folder_state(sandbox, &sandbox.root().join("git"));
    assert_eq!(folder_state(sandbox, &sandbox.lane_path(lane)), expected);
    sandbox.git(&["worktree", "remove", "--force", "../git"]);
}

/// Promise: pool/same-as-git
#[test]
fn reuses_folder_without_its_untracked_files() {
    let sandbox = sandbox_with_cache();
    sandbox.git(&["config", "--unset", "proq.pool.keep"]);
    land_lane(
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
    assert_eq!(spawn_and_find_reused_lane(&sandbox, "b").as_deref(), Some("a"));
    assert_same_as_git_worktree(&sandbox, "b");
    sandbox.git(&["fsck", "--no-dangling", "--no-progress"]);
    sandbox.assert_healthy();
    // Each folder is reused by one lane only.
    assert_eq!(spawn_and_find_reused_lane(&sandbox, "c"), None);
    assert_same_as_git_worktree(&sandbox, "c");
    let parked = trash_entry(&sandbox, "a").join("aside");
    assert_eq!(std::fs::read_to_string(parked.join(".env")).unwrap(), "SECRET\n");
    assert!(
        parked.join("out/nested/.git/HEAD").exists()
            && parked.join("empty/folder").is_dir()
            && parked.join("out/shut").is_dir()
    );
}

/// Promise: pool/keep-patterns
#[test]
fn pool_keep_patterns_apply_where_git_ignores() {
    let sandbox = sandbox_with_cache();
    sandbox.git(&["config", "proq.pool.keep", "target/\n!target/tmp/\n/out/cache/\nloose/\nfree/"]);
    let script = "mkdir -p target/debug target/tmp out/cache out/other free src/deep/target
        for file in target/debug/o target/tmp/t out/cache/c out/other/x src/deep/target/y; do echo o > $file; done";
    land_lane(&sandbox, "a", script);
    // The rules of the new lane's commit decide which files are ignored, not those of the landed one.
    assert_eq!(spawn_and_find_reused_lane(&sandbox, "b").as_deref(), Some("a"));
    let lane = sandbox.lane_path("b");
    let untracked = sandbox.git_in(&lane, &["ls-files", "--others"]);
    assert_eq!(untracked, "out/cache/c\nsrc/deep/target/y\ntarget/debug/o");
    assert_eq!(sandbox.git_in(&lane, &["status", "--porcelain"]), "");
    assert!(
        !lane.join("free").exists() && !lane.join("target/tmp").exists() && !lane.join("out/other").exists()
    );
    let parked = trash_entry(&sandbox, "a").join("aside");
    assert!(parked.join("target/tmp/t").exists() && parked.join("out/other/x").exists());
    assert!(parked.join("free").exists());
}

/// Promise: pool/keep-patterns
#[test]
fn parks_a_cache_that_git_no_longer_ignores() {
    for change in [
        "echo '*.log' > .gitignore",
        "rm -f target; echo tracked > target",
        "mkdir target; echo x > target/x",
    ] {
        let sandbox = sandbox_with_cache();
        land_lane(&sandbox, "a", "mkdir target; echo o > target/o");
        sandbox.sh(&format!(
            "{change}; git add -Af; git commit -qm deed; rm -rf .gitignore target; git reset -q --hard"
        ));
        assert_eq!(spawn_and_find_reused_lane(&sandbox, "b").as_deref(), Some("a"), "{change}");
        assert_same_as_git_worktree(&sandbox, "b");
        assert!(trash_entry(&sandbox, "a").join("aside/target/o").exists(), "{change}");
    }
}

/// Promise: pool/undo
#[test]
fn undo_recreates_a_folder_that_was_reused() {
    let sandbox = sandbox_with_cache();
    land_lane(
        &sandbox,
        "a",
        "mkdir -p target empty src/in; echo o > target/o; echo S > .env; echo l > src/in/x.log",
    );
    assert_eq!(spawn_and_find_reused_lane(&sandbox, "b").as_deref(), Some("a"));
    let lane = sandbox.lane_path("b");
    sandbox.sh_in(&lane, "echo B > src/main.c; echo B > target/o");
    let refusal = sandbox.proq(&["undo"]);
    assert_eq!(refusal.code, 1, "{}", refusal.to_text());
    let _ = sandbox.proq(&["undo", "--force"]).ok();
    assert!(!lane.exists());
    let out = sandbox.proq(&["undo"]);
    assert_eq!(out.code, 0, "{}", out.to_text());
    assert!(out.stderr.contains("the folder of 'a' is used by 'b' and is created again"), "{}", out.stderr);
    assert!(out.stderr.contains("files of pool.keep are missing from it: target"), "{}", out.stderr);
    let lane = sandbox.lane_path("a");
    assert_eq!(sandbox.git_in(&lane, &["ls-files", "--others"]), ".env\nsrc/in/x.log");
    assert!(lane.join("empty").is_dir() && !lane.join("target").exists());
    assert_eq!(sandbox.git_in(&lane, &["status", "--porcelain"]), "");
    assert_eq!(std::fs::read_to_string(lane.join("src/main.c")).unwrap(), "int main;\na\n");
    assert_eq!(sandbox.git_in(&lane, &["branch", "--show-current"]), "proq/a");
    sandbox.assert_healthy();
    // A redo trashes the complete lane again, and its folder can be reused.
    let _ = sandbox.proq(&["op", "redo"]).ok();
    assert!(trash_entry(&sandbox, "a").join("worktree/.env").exists());
    sandbox.assert_healthy();
    assert_eq!(spawn_and_find_reused_lane(&sandbox, "c").as_deref(), Some("a"));
    assert_same_as_git_worktree(&sandbox, "c");
}

/// Promise: pool/changed-folder
#[test]
fn folder_changed_since_landing_is_checked_again() {
    // Such changes stay in the trash, and no other lane gets them.
    for change in [
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
        let sandbox = sandbox_with_cache();
        land_lane(&sandbox, "a", "");
        let folder = trash_entry(&sandbox, "a").join("worktree");
        sandbox.sh_in(&folder, change);
        let before = sandbox.sh_in(&folder, "find . -printf '%p %y %m %l %i\n' | sort");
        assert_eq!(spawn_and_find_reused_lane(&sandbox, "b"), None, "{change}");
        assert_eq!(sandbox.sh_in(&folder, "find . -printf '%p %y %m %l %i\n' | sort"), before, "{change}");
        assert_same_as_git_worktree(&sandbox, "b");
    }
    // New files are parked, and the folder is reused.
    let sandbox = sandbox_with_cache();
    land_lane(&sandbox, "a", "");
    sandbox.sh_in(
        &trash_entry(&sandbox, "a").join("worktree"),
        "echo new > src/note; chmod 600 a.txt; ln a.txt ../second",
    );
    assert_eq!(spawn_and_find_reused_lane(&sandbox, "b").as_deref(), Some("a"));
    assert_same_as_git_worktree(&sandbox, "b");
    assert_eq!(std::fs::read_to_string(trash_entry(&sandbox, "a").join("aside/src/note")).unwrap(), "new\n");
    sandbox.sh_in(&sandbox.lane_path("b"), "echo mine > a.txt");
    assert_eq!(std::fs::read_to_string(trash_entry(&sandbox, "a").join("second")).unwrap(), "a\n");
}

/// Promise: pool/not-reused
#[test]
fn reuses_only_folders_of_lanes_removed_after_landing() {
    let sandbox = sandbox_with_cache();
    sandbox.lane_with_commit("a", "echo a >> src/main.c");
    let _ = sandbox.proq(&["discard", "--force", "a"]).ok();
    assert_eq!(spawn_and_find_reused_lane(&sandbox, "b"), None);
    sandbox.commit_in_lane("b", "echo b >> src/main.c");
    sandbox.write_in(&sandbox.lane_path("b"), "left", "left\n");
    let _ = sandbox.proq(&["merge", "b"]);
    assert!(sandbox.lane_path("b").exists(), "it has something left");
    assert_eq!(spawn_and_find_reused_lane(&sandbox, "c"), None);
    let _ = sandbox.proq(&["cleanup", "--force", "b"]);
    let _ = sandbox.proq(&["discard", "--force", "c"]).ok();
    assert_eq!(spawn_and_find_reused_lane(&sandbox, "d"), None);
    sandbox.commit_in_lane("d", "echo d >> src/deep/one.c");
    let _ = sandbox.proq(&["merge", "d"]).ok();
    sandbox.git(&["config", "proq.pool.size", "0"]);
    assert_eq!(spawn_and_find_reused_lane(&sandbox, "e"), None, "it is turned off");
    sandbox.git(&["config", "proq.pool.size", "1"]);
    assert_eq!(spawn_and_find_reused_lane(&sandbox, "f").as_deref(), Some("d"));
}

/// Promise: pool/changed-folder
#[test]
fn skips_folder_that_a_process_uses() {
    let sandbox = sandbox_with_cache();
    land_lane(&sandbox, "a", "");
    let folder = trash_entry(&sandbox, "a").join("worktree");
    let mut command = sandbox.command("cat", &folder);
    let mut process = KilledOnDrop(command.stdin(Stdio::piped()).spawn().unwrap());
    assert_eq!(spawn_and_find_reused_lane(&sandbox, "b"), None);
    drop(process.0.stdin.take());
    assert_eq!(process.exit_code(), Some(0));
    // The lock of a process that the lane's agent left running outside of the folder.
    let alive = std::fs::File::options()
        .create(true)
        .append(true)
        .open(sandbox.lane_lock("a", "alive.lock"))
        .unwrap();
    alive.lock().unwrap();
    assert_eq!(spawn_and_find_reused_lane(&sandbox, "c"), None);
    drop(alive);
    assert_eq!(spawn_and_find_reused_lane(&sandbox, "d").as_deref(), Some("a"));
}

/// Promise: pool/not-reused
#[test]
fn skips_worktrees_with_special_git_settings() {
    for setting in [
        "git sparse-checkout set src",
        "git config extensions.worktreeConfig true; git config --worktree core.abbrev 9",
        "git update-index --assume-unchanged a.txt",
    ] {
        let sandbox = sandbox_with_cache();
        land_lane(&sandbox, "a", setting);
        sandbox.sh("git config --unset extensions.worktreeConfig || true");
        assert_eq!(spawn_and_find_reused_lane(&sandbox, "b"), None, "{setting}");
        assert_same_as_git_worktree(&sandbox, "b");
    }
}

/// Creates three lanes that exist at the same time, and lands them.
pub fn land_three_lanes(sandbox: &Sandbox) {
    for name in ["a", "b", "c"] {
        sandbox.lane_with_commit(
            name,
            &format!("echo {name} > {name}.c; mkdir target; echo {name} > target/whose"),
        );
    }
    let _ = sandbox.proq(&["merge", "--all"]).ok();
    sandbox.git(&["config", "proq.pool.size", "3"]);
}

/// Promise: pool/one-lane
#[test]
fn concurrent_spawns_never_share_a_folder() {
    let sandbox = sandbox_with_cache();
    land_three_lanes(&sandbox);
    let spawn_process = |name: &str| {
        let mut command = sandbox.proq_command(&sandbox.repo, &["spawn", "--empty", "-n", name]);
        KilledOnDrop(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    };
    let mut processes: Vec<KilledOnDrop> = ["v", "w", "x", "y", "z"].into_iter().map(spawn_process).collect();
    assert!(processes.iter_mut().all(|process| process.exit_code() == Some(0)));
    let cache_owner = |name: &str| std::fs::read_to_string(sandbox.lane_path(name).join("target/whose")).ok();
    let mut owners: Vec<String> = ["v", "w", "x", "y", "z"].into_iter().filter_map(cache_owner).collect();
    owners.sort();
    assert_eq!(owners, ["a\n", "b\n", "c\n"]);
    for name in ["v", "w", "x", "y", "z"] {
        assert_eq!(sandbox.git_in(&sandbox.lane_path(name), &["status", "--porcelain"]), "");
    }
    sandbox.assert_healthy();
}

#[test]
fn folder_being_reused_is_not_taken_twice() {
    let sandbox = sandbox_with_cache();
    land_lane(&sandbox, "a", "mkdir target; echo a > target/whose");
    sandbox.git(&["config", "proq.lock.timeout", "1"]);
    let mut command = sandbox.proq_command(&sandbox.repo, &["spawn", "--empty", "-n", "x"]);
    command.env("PROQ_TEST_STAND_AT", "pool.claimed").stdout(Stdio::null()).stderr(Stdio::null());
    let mut first_spawn = KilledOnDrop(command.spawn().unwrap());
    let stopped = sandbox.wait_until_stopped(first_spawn.0.id());
    assert_eq!(spawn_and_find_reused_lane(&sandbox, "y"), None);
    drop(stopped);
    assert_eq!(first_spawn.exit_code(), Some(0));
    assert_eq!(std::fs::read_to_string(sandbox.lane_path("x").join("target/whose")).unwrap(), "a\n");
    assert!(!sandbox.lane_path("y").join("target").exists());
    assert_same_as_git_worktree(&sandbox, "y");
    assert_eq!(sandbox.git_in(&sandbox.lane_path("x"), &["status", "--porcelain"]), "");
    sandbox.assert_healthy();
}

#[test]
fn gc_reports_available_folders_and_their_size() {
    let sandbox = sandbox_with_cache();
    land_three_lanes(&sandbox);
    sandbox.git(&["config", "proq.pool.size", "2"]);
    let out = sandbox.proq(&["gc"]);
    let trash_line =
        |out: &str| out.lines().find(|line| line.starts_with("in the trash")).map(ToOwned::to_owned);
    let line = trash_line(&out.stderr).unwrap();
    assert!(line.starts_with("in the trash: 3 removed lanes, "), "{line}");
    assert!(line.ends_with("B; the folders of 'c', 'b' are kept for new lanes"), "{line}");
    assert!(out.stderr.contains("hint: empty the trash for good: PROQ_TRASH_KEEP=0 git proq gc\n"));
    assert_eq!(spawn_and_find_reused_lane(&sandbox, "x").as_deref(), Some("c"));
    let trash = sandbox.proq(&["gc", "--json"]).json()["trash"].clone();
    assert_eq!((&trash["count"], &trash["waiting"]), (&3.into(), &serde_json::json!(["b", "a"])));
    // Lanes that would be freed are not listed again, and freed ones are gone.
    let run_later = |args: &[&str]| {
        let mut command = sandbox.proq_command(&sandbox.repo, args);
        command.env("PROQ_TRASH_KEEP", "0").env("PROQ_TEST_NOW", "2026-01-02T03:09:05Z");
        sandbox.output(command)
    };
    let planned = run_later(&["gc", "--dry-run"]);
    assert!(planned.stdout.contains("would free 3 removed lanes from the trash"), "{}", planned.to_text());
    assert_eq!(trash_line(&planned.stderr), None);
    assert_eq!(trash_line(&run_later(&["gc"]).stderr), None);
    assert!(file_names(&sandbox.repo.join(".git/proq/trash")).is_empty());
    sandbox.assert_healthy();
}

/// Promise: pool/one-lane
#[test]
fn attempts_of_one_spawn_reuse_separate_folders() {
    let sandbox = sandbox_with_cache();
    land_three_lanes(&sandbox);
    let out = sandbox.proq(&["-v", "spawn", "--empty", "-n", "x", "--count", "4"]);
    assert_eq!(out.stderr.matches("files kept from the folder of lane").count(), 3, "{}", out.to_text());
    for name in ["x-1", "x-2", "x-3", "x-4"] {
        assert_eq!(sandbox.git_in(&sandbox.lane_path(name), &["status", "--porcelain"]), "", "{name}");
    }
    let _ = sandbox.proq(&["undo"]).ok();
    assert!(!sandbox.lane_path("x-1").exists());
    sandbox.assert_healthy();
}

/// Promise: pool/kill
#[test]
fn full_disk_during_reuse_loses_nothing() {
    let sandbox = sandbox_with_cache();
    land_lane(&sandbox, "a", "mkdir target; echo o > target/o; echo SECRET > .env; echo l > src/deep/x.log");
    sandbox.write("long", &"line\n".repeat(100_000));
    sandbox.sh("rm src/deep/one.c");
    sandbox.commit_all("the base goes on");
    let program = sandbox.proq_command(&sandbox.repo, &[]).get_program().to_owned();
    let mut limited = sandbox.command("sh", &sandbox.repo);
    // A limit on the size of files stands in for a full disk: the only new file cannot be written.
    limited.args(["-c", "trap '' XFSZ; ulimit -f 128; exec \"$@\"", "sh"]).arg(program);
    limited.args(["-v", "spawn", "--empty", "-n", "b"]);
    let out = sandbox.output(limited);
    assert!(out.code == 1 && out.stderr.contains("unable to write file long"), "{}", out.to_text());
    // Nothing of the new lane is left, and the parked files of the landed lane are still in its trash entry.
    assert!(!sandbox.lane_path("b").exists() && sandbox.git(&["branch", "--list", "proq/b"]).is_empty());
    assert_eq!(std::fs::read_to_string(trash_entry(&sandbox, "a").join("aside/.env")).unwrap(), "SECRET\n");
    sandbox.assert_healthy();
    assert_eq!(spawn_and_find_reused_lane(&sandbox, "c"), None);
    assert_same_as_git_worktree(&sandbox, "c");
    let _ = sandbox.proq(&["undo"]).ok();
    sandbox.git(&["reset", "-q", "--hard", "HEAD^"]);
    let _ = sandbox.proq(&["undo"]).ok();
    let lane = sandbox.lane_path("a");
    assert_eq!(sandbox.git_in(&lane, &["ls-files", "--others"]), ".env\nsrc/deep/x.log");
    assert_eq!(sandbox.git_in(&lane, &["status", "--porcelain"]), "");
    assert_eq!(std::fs::read_to_string(lane.join("src/main.c")).unwrap(), "int main;\na\n");
    sandbox.assert_healthy();
}

/// Promise: pool/keep-patterns
#[test]
fn lane_setup_keeps_reused_files_and_adds_the_rest() {
    let sandbox = sandbox_with_cache();
    sandbox.git(&["config", "proq.pool.keep", "target/\n.env\n*.log"]);
    sandbox.git(&["config", "proq.lane.copy", "target/\nout/"]);
    sandbox.git(&["config", "proq.lane.link", "x.log"]);
    sandbox.git(&["config", "proq.lane.env", ".env"]);
    for (file, text) in [("target/main", "main"), ("out/o", "out"), ("x.log", "log")] {
        sandbox.write(file, text);
    }
    land_lane(&sandbox, "a", "echo lane > target/lane; rm target/main; rm x.log; echo own > x.log");
    let out = sandbox.proq(&["spawn", "--empty", "-n", "b"]);
    assert_eq!(out.code, 0, "{}", out.to_text());
    assert!(!out.stderr.contains("not copied") && !out.stderr.contains("not linked"), "{}", out.stderr);
    let lane = sandbox.lane_path("b");
    let read = |name: &str| std::fs::read_to_string(lane.join(name)).unwrap();
    assert_eq!(file_names(&lane.join("target")), ["lane"]);
    assert_eq!((read("x.log").as_str(), read("out/o").as_str()), ("own\n", "out"));
    assert!(read(".env").starts_with("PROQ_LANE=b\n"), "{}", read(".env"));
    assert!(trash_entry(&sandbox, "a").join("aside/.env").exists());
}

#[test]
fn trash_entry_of_a_reused_folder_expires() {
    let sandbox = sandbox_with_cache();
    land_lane(&sandbox, "a", "mkdir target; echo S > .env");
    assert_eq!(spawn_and_find_reused_lane(&sandbox, "b").as_deref(), Some("a"));
    sandbox.assert_healthy();
    sandbox.git(&["config", "proq.trash.keep", "0"]);
    sandbox.sh_in(&sandbox.lane_path("b"), "echo b >> a.txt; git commit -qam b");
    let mut later = sandbox.proq_command(&sandbox.repo, &["gc"]);
    later.env("PROQ_TEST_NOW", "2026-01-03T03:04:05Z");
    let out = sandbox.output(later);
    assert_eq!(out.code, 0, "{}", out.to_text());
    assert_eq!(file_names(&sandbox.repo.join(".git/proq/trash")), [""; 0]);
    assert_eq!(sandbox.git_in(&sandbox.lane_path("b"), &["status", "--porcelain"]), "");
    // As with any lane, an expired entry cannot be restored.
    let _ = sandbox.proq(&["undo", "--force"]).ok();
    let out = sandbox.proq(&["undo"]);
    assert_eq!(out.code, 1, "{}", out.to_text());
}

/// Promise: pool/undo
#[test]
fn undo_restores_file_names_that_are_not_utf8() {
    let sandbox = sandbox_with_cache();
    sandbox.lane_with_commit("a", "echo a >> src/main.c");
    let odd_path = sandbox.lane_path("a").join(std::ffi::OsStr::from_bytes(b"odd\xff\n.log"));
    std::fs::write(&odd_path, "odd").unwrap();
    let _ = sandbox.proq(&["merge", "a"]).ok();
    assert_eq!(spawn_and_find_reused_lane(&sandbox, "b").as_deref(), Some("a"));
    assert_same_as_git_worktree(&sandbox, "b");
    let _ = sandbox.proq(&["undo"]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(std::fs::read_to_string(odd_path).unwrap(), "odd");
}
