//! Ways in which work was once lost, each reproduced at one exact moment by a `git` on `PATH` that acts right
//! before a certain call of the real one.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use proq_test_kit::faults::{run_with_race, with_git_wrapper};
use proq_test_kit::snapshots::assert_same_image;
use proq_test_kit::{Sandbox, WorktreeState};

fn commit_in_lane(sandbox: &Sandbox, name: &str, script: &str) {
    sandbox.run_lane(name, &format!("{script}\ngit add -A; git commit -qm {name}"));
}

/// Promise: worktree/late-writes-restored
#[test]
fn writes_to_open_parked_file_are_restored() {
    for tracked in [false, true] {
        let sandbox = Sandbox::new();
        sandbox.write("b.txt", "b\n");
        sandbox.commit_all("b");
        commit_in_lane(&sandbox, "one", "echo lane >> a.txt");
        let name = if tracked { "b.txt" } else { "notes.txt" };
        let mut open =
            std::fs::File::options().append(true).create(true).open(sandbox.repo.join(name)).unwrap();
        open.write_all(b"before\n").unwrap();
        let _ = sandbox.proq(&["preview", "one"]).ok();
        open.write_all(b"during\n").unwrap();
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        open.write_all(b"after\n").unwrap();
        assert!(sandbox.read(name).ends_with("before\nduring\nafter\n"), "{}", sandbox.read(name));
    }
}

/// Promise: worktree/appearing-files
#[test]
fn file_appearing_at_lane_path_is_kept() {
    let sandbox = Sandbox::new();
    commit_in_lane(&sandbox, "one", "echo lane > n; echo more >> a.txt");
    let out = run_with_race(&sandbox, "read-tree -m -u", "echo mine > n", &["preview", "one"]);
    let _ = out.fails(1);
    assert_eq!(sandbox.read("n"), "mine\n");
    assert_eq!(sandbox.read("a.txt"), "a\n");
    assert_eq!(sandbox.git(&["branch", "--show-current"]), "main");
    assert_eq!(sandbox.git(&["status", "--short"]), "?? n");
}

/// Promise: worktree/replaced-index
#[test]
fn deleted_index_lock_leaves_no_partial_state() {
    let sandbox = Sandbox::new();
    commit_in_lane(&sandbox, "one", "echo lane > n; echo more >> a.txt");
    sandbox.write("mine.txt", "mine\n");
    let before = sandbox.git(&["rev-parse", "main"]);
    // The lock disappears during the checkout: the command is refused, and all of it undone.
    let out = run_with_race(&sandbox, "read-tree -m -u", "rm -f .git/index.lock", &["preview", "one"]);
    let _ = out.fails(1);
    assert_eq!(sandbox.git(&["branch", "--show-current"]), "main");
    assert_eq!(sandbox.git(&["status", "--short"]), "?? mine.txt");
    let out = run_with_race(&sandbox, "read-tree -m -u", "rm -f .git/index.lock", &["merge", "one"]);
    let _ = out.fails(1);
    assert_eq!(sandbox.git(&["rev-parse", "main"]), before);
    assert_eq!(sandbox.git(&["status", "--short"]), "?? mine.txt");
}

/// Promise: worktree/ref-failure
#[test]
fn deleted_head_lock_undoes_everything() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo lane > a.txt; echo lane > lane.txt");
    sandbox.sh("echo u > untracked");
    let state = |sandbox: &Sandbox| {
        let refs = sandbox.git(&["for-each-ref", "refs/heads"]);
        (WorktreeState::capture(sandbox, &sandbox.repo), refs)
    };
    let before = state(&sandbox);
    let out = run_with_race(&sandbox, "read-tree -m -u", "rm .git/HEAD.lock", &["preview", "one"]);
    assert_eq!(out.code, 1, "{}", out.to_text());
    assert_eq!(before, state(&sandbox));
    assert!(!sandbox.repo.join(".git/index.lock").exists());
    let _ = sandbox.proq(&["preview", "one"]).ok();
}

/// Promise: removal/trash-during-undo
#[test]
fn gc_during_undo_keeps_restored_lane() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("x", "echo x > x.txt");
    sandbox.write_in(&sandbox.lane_path("x"), "new.txt", "new\n");
    let before = WorktreeState::capture(&sandbox, &sandbox.lane_path("x"));
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
    let proq = env!("CARGO_BIN_EXE_git-proq");
    let gc =
        format!("PROQ_TRASH_KEEP=1 PROQ_TEST_NOW=2026-01-04T00:00:00Z '{proq}' gc && : > \"$ROOT/emptied\"");
    let _ = run_with_race(&sandbox, "refs/heads/proq/x", &gc, &["undo"]).ok();
    assert!(sandbox.root().join("emptied").exists());
    assert_eq!(before, WorktreeState::capture(&sandbox, &sandbox.lane_path("x")));
    sandbox.assert_healthy();
}

#[test]
fn staged_changes_are_not_replaced_by_saved_index() {
    let sandbox = Sandbox::new();
    commit_in_lane(&sandbox, "one", "echo lane > n");
    sandbox.write("a.txt", "dirty\n");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.git(&["switch", "-q", "main"]);
    sandbox.write("x", "v1\n");
    sandbox.git(&["add", "x"]);
    sandbox.write("x", "v2\n");
    let text = sandbox.proq(&["preview", "--back"]).fails(1);
    assert!(text.contains("these files are in the way: x"), "{text}");
    assert_eq!(sandbox.git(&["show", ":x"]), "v1");
    sandbox.git(&["commit", "-qam", "x"]);
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!((sandbox.read("a.txt"), sandbox.read("x")), ("dirty\n".into(), "v2\n".into()));
}

#[test]
fn unreadable_snapshot_does_not_count_as_restored() {
    let sandbox = Sandbox::new();
    commit_in_lane(&sandbox, "one", "echo lane > n");
    sandbox.write("a.txt", "dirty\n");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let snaps = sandbox.repo.join(".git/proq/snaps");
    let record = std::fs::read_dir(snaps).unwrap().next().unwrap().unwrap().path().join("snap.toml");
    let text = std::fs::read_to_string(&record).unwrap();
    std::fs::write(&record, text.replace("format = 1", "format = 9")).unwrap();
    let output = sandbox.proq(&["preview", "--back"]).fails(1);
    assert!(output.contains("has format 9"), "{output}");
    std::fs::write(&record, text).unwrap();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(sandbox.read("a.txt"), "dirty\n");
}

/// Promise: worktree/no-commit-slips-in
#[test]
fn commit_during_preview_start_is_kept() {
    let sandbox = Sandbox::new();
    commit_in_lane(&sandbox, "one", "echo lane > n");
    sandbox.write("a.txt", "dirty\n");
    let act = "echo o > other; git add other; git commit -qm racing";
    let _ = run_with_race(&sandbox, "refs/heads/proq/one-preview", act, &["preview", "one"]).fails(1);
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s", "main"]), "racing");
    assert_eq!(sandbox.git(&["status", "--short"]), " M a.txt");
    assert_eq!((sandbox.read("a.txt"), sandbox.read("other")), ("dirty\n".into(), "o\n".into()));
}

/// Promise: worktree/base-worktrees-follow
#[test]
fn merge_skips_checkout_that_left_the_base() {
    let sandbox = Sandbox::new();
    sandbox.git(&["branch", "dev"]);
    commit_in_lane(&sandbox, "one", "echo lane > n; echo more >> a.txt");
    // Where objects are replaced, git computes what would land, before anything is locked.
    sandbox.sh("git replace $(echo 1 | git hash-object -w --stdin) $(echo 2 | git hash-object -w --stdin)");
    let out = run_with_race(&sandbox, "rev-list --objects", "git switch -q dev", &["merge", "one"]);
    let _ = out.ok();
    assert_eq!(sandbox.git(&["status", "--short", "--branch"]), "## dev");
    assert_eq!(sandbox.git(&["show", "main:n"]), "lane");
}

/// Promise: worktree/base-worktrees-follow
#[test]
fn every_worktree_on_base_follows_merge() {
    let sandbox = Sandbox::new();
    commit_in_lane(&sandbox, "one", "echo lane > n; echo more >> a.txt");
    sandbox.git(&["switch", "-qc", "dev"]);
    let (x, y) = (sandbox.root().join("x"), sandbox.root().join("y"));
    sandbox.git(&["worktree", "add", "-q", x.to_str().unwrap(), "main"]);
    sandbox.git(&["worktree", "add", "-qf", y.to_str().unwrap(), "main"]);
    sandbox.write_in(&y, "own.txt", "own\n");
    let _ = sandbox.proq(&["merge", "one"]).ok();
    assert_eq!(sandbox.git_in(&x, &["status", "--short"]), "");
    assert_eq!(sandbox.git_in(&y, &["status", "--short"]), "?? own.txt");
    assert_eq!(std::fs::read_to_string(y.join("n")).unwrap(), "lane\n");
}

#[test]
fn preview_restores_folder_modes() {
    let sandbox = Sandbox::new();
    commit_in_lane(&sandbox, "one", "echo lane > n");
    sandbox.write("secret/key", "k\n");
    let dir = sandbox.repo.join("secret");
    std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o700)).unwrap();
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(std::fs::metadata(&dir).unwrap().permissions().mode() & 0o777, 0o700);
}

/// Promise: worktree/lane-in-lanes-folder
#[test]
fn lane_writing_to_lanes_folder_is_not_previewed() {
    let sandbox = Sandbox::new();
    let script = "mkdir -p .proq-worktrees/two; echo evil > .proq-worktrees/two/evil; git add -f .proq-worktrees; git commit -qm evil";
    sandbox.run_lane("one", script);
    let text = sandbox.proq(&["preview", "one"]).fails(1);
    assert!(text.contains(".proq-worktrees/two/evil"), "{text}");
    assert!(!sandbox.lane_path("two").exists());
}

#[test]
fn rollback_keeps_what_others_created() {
    let sandbox = Sandbox::new();
    let act = "git branch proq/x $(git commit-tree -p HEAD -m theirs HEAD^{tree})";
    // Between the check and the creation: the branch is theirs, with a commit that only it has.
    let text = run_with_race(&sandbox, "update-ref", act, &["spawn", "--empty", "-n", "x"]).fails(1);
    assert!(text.contains("cannot create branch 'proq/x': it exists"), "{text}");
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s", "proq/x"]), "theirs");
    let act = "mkdir -p .proq-worktrees/y; echo theirs > .proq-worktrees/y/file";
    let _ = run_with_race(&sandbox, "update-ref", act, &["spawn", "--empty", "-n", "y"]).fails(1);
    assert_eq!(std::fs::read_to_string(sandbox.lane_path("y").join("file")).unwrap(), "theirs\n");
    assert_eq!(sandbox.git(&["branch", "--list", "proq/y"]), "");
}

/// Promise: removal/unregistered-folder
#[test]
fn lane_without_git_file_is_not_main_checkout() {
    let sandbox = Sandbox::new();
    sandbox.write("a.txt", "my own edit\n");
    for (name, script) in [("gone", "echo w > w; rm .git"), ("other", "echo w > w; rm .git; git init -q")] {
        let spawn = ["spawn", "--wait", "-n", name, "--", "sh", "-ec", script];
        let text = sandbox.proq(&spawn).fails(4);
        assert!(text.contains("failed (its folder is no longer a worktree)"), "{text}");
        let text = sandbox.proq(&["merge", "--force", name]).fails(1);
        assert!(text.contains("is no longer a worktree"), "{text}");
        let text = sandbox.proq(&["discard", name]).fails(1);
        assert!(text.contains("is no longer a worktree"), "{text}");
        let _ = sandbox.proq(&["discard", "--force", name]).ok();
        assert_eq!(sandbox.git(&["worktree", "list"]).lines().count(), 1);
    }
    assert_eq!(sandbox.git(&["status", "--short"]), " M a.txt");
    assert_eq!(sandbox.git(&["rev-list", "--count", "--all"]), "1");
}

/// Promise: concurrency/detached-process
#[test]
fn stray_process_in_own_session_keeps_lane() {
    let sandbox = Sandbox::new();
    for name in ["fifo", "up", "go"] {
        sandbox.pipe(name);
    }
    // It reads from a FIFO that has no writer; its working folder is elsewhere. Its supervisor is killed
    // before the agent ends, so no process searches for it.
    let script = "echo w > w; git add w; git commit -qm w
        setsid sh -c 'cd /; echo > \"$ROOT/up\"; cat \"$ROOT/fifo\"' >/dev/null 2>&1 & read go < \"$ROOT/go\"";
    let mut spawn = sandbox.proq_command(&sandbox.repo, &["spawn", "-n", "x", "--", "sh", "-ec", script]);
    spawn.env("ROOT", sandbox.root());
    let _ = sandbox.output(spawn).ok();
    sandbox.read_pipe("up");
    proq_test_kit::runs::kill_supervisor(&sandbox, "x");
    sandbox.write_pipe("go");
    let text = sandbox.proq(&["merge", "x"]).fails(1);
    assert!(text.contains("its agent is running without a supervisor"), "{text}");
    assert!(sandbox.lane_path("x").exists());
    let _ = sandbox.proq(&["stop", "x"]).ok();
    let _ = sandbox.proq(&["merge", "x", "--force"]).ok();
}

#[test]
fn mismatched_git_dir_and_work_tree_are_refused() {
    let (one, two) = (Sandbox::new(), Sandbox::new());
    let mut command = one.proq_command(&one.repo, &["spawn", "--empty", "-n", "x"]);
    command.env("GIT_DIR", one.repo.join(".git")).env("GIT_WORK_TREE", &two.repo);
    let text = one.output(command).fails(1);
    assert!(text.contains("is not a worktree of"), "{text}");
    for sandbox in [&one, &two] {
        assert_eq!(sandbox.git(&["branch", "--list", "proq/*"]), "");
        assert_eq!(sandbox.git(&["worktree", "list"]).lines().count(), 1);
    }
}

/// Promise: new-lane/submodule-work, removal/submodule-commits
#[test]
fn unpushed_submodule_commits_keep_lane() {
    let sandbox = Sandbox::new();
    let library = sandbox.root().join("library");
    std::fs::create_dir(&library).unwrap();
    sandbox.git_in(&library, &["init", "-q", "-b", "main"]);
    sandbox.commit_all_in(&library, "library");
    let local = ["-c", "protocol.file.allow=always"];
    let git = |dir: &std::path::Path, args: &[&str]| sandbox.git_in(dir, &[&local[..], args].concat());
    git(&sandbox.repo, &["submodule", "--quiet", "add", library.to_str().unwrap(), "sub"]);
    sandbox.commit_all("sub");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "one"]).ok();
    let lane = sandbox.lane_path("one");
    git(&lane, &["submodule", "--quiet", "update", "--init"]);
    sandbox.write_in(&lane, "sub/f", "f\n");
    sandbox.commit_all_in(&lane.join("sub"), "only here");
    sandbox.commit_all_in(&lane, "bump");
    let text = sandbox.proq(&["merge", "one"]).fails(1);
    assert!(text.contains("its submodule sub has commits that are on no remote; push them"), "{text}");
    let text = sandbox.proq(&["merge", "one", "--force"]).ok();
    assert!(text.contains("commits in its submodule sub that are on no remote"), "{text}");
    assert_eq!(sandbox.git_in(&lane.join("sub"), &["log", "-1", "--format=%s"]), "only here");
}

#[test]
fn preview_during_merge_does_not_claim_landed_changes() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("shown", "echo shown > shown.txt");
    sandbox.lane_with_commit("lands", "echo lands > lands.txt");
    sandbox.sh("echo mine >> a.txt; echo new > new.txt");
    let before = sandbox.git(&["status", "--short"]);
    let _ = sandbox.proq(&["preview", "shown"]).ok();
    let proq = env!("CARGO_BIN_EXE_git-proq");
    let act = format!(
        "export PROQ_LOCK_TIMEOUT=0; {proq} preview --back; \"$REAL\" \"$@\"; rc=$?; {proq} preview shown; \
         : > \"$ROOT/met\"; exit $rc"
    );
    let command = with_git_wrapper(&sandbox, "-m git-proq merge", &act, &["merge", "lands"]);
    let _ = sandbox.output(command).ok();
    assert!(sandbox.root().join("met").exists());
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(sandbox.git(&["status", "--short"]), before);
    assert_eq!(sandbox.read("lands.txt"), "lands\n");
}

/// An agent that deletes its own branch leaves commits that only the reflog of its HEAD reaches.
/// Promise: concurrency/deleted-branch
#[test]
fn lane_with_deleted_branch_fails_and_can_recover() {
    let sandbox = Sandbox::new();
    let script = "echo own > own.txt; git add -A; git commit -qm own; git rev-parse HEAD > $ROOT/own
        git update-ref -d HEAD; echo left > left.txt";
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "d", "--", "sh", "-ec", script]).fails(4);
    let own = std::fs::read_to_string(sandbox.root().join("own")).unwrap().trim().to_owned();
    let detail = sandbox.row("d")["detail"].as_str().unwrap().to_owned();
    assert!(detail.starts_with("branch proq/d is missing; its last commit "), "{detail}");
    // Nothing was created from it, and nothing is lost.
    assert_eq!(sandbox.git(&["branch", "--list", "proq/d"]), "");
    assert_eq!(std::fs::read_to_string(sandbox.lane_path("d").join("left.txt")).unwrap(), "left\n");
    let saved = sandbox.git(&["for-each-ref", "--contains", &own, "--format=%(refname)", "refs/proq/saved"]);
    assert!(saved.starts_with("refs/proq/saved/d-"), "{saved}");
    for more in [&["--dry-run"][..], &[]] {
        let output = sandbox.proq(&[&["merge", "d", "--force"], more].concat()).fails(1);
        assert!(output.contains("refused d: its branch proq/d is missing\n"), "{output}");
    }
    let answer = sandbox.proq(&["doctor", "--json"]).json();
    let findings = answer["findings"].as_array().unwrap();
    let found = findings.iter().find(|found| found["check"] == "lane-branch").unwrap();
    let help = found["help"].as_str().unwrap();
    assert!(help.starts_with("git branch proq/d "), "{help}");
    let stderr = sandbox.proq(&["list"]).stderr;
    assert!(stderr.contains(&format!("warning: lane 'd' no longer has a branch: {help}\n")), "{stderr}");
    sandbox.sh(help);
    assert_eq!(sandbox.git(&["rev-parse", "proq/d"]), own);
    assert_eq!(sandbox.git_in(&sandbox.lane_path("d"), &["status", "--short"]), "?? left.txt");
    sandbox.commit_all_in(&sandbox.lane_path("d"), "left");
    let _ = sandbox.proq(&["merge", "d", "--force"]).ok();
    assert_eq!((sandbox.read("own.txt"), sandbox.read("left.txt")), ("own\n".into(), "left\n".into()));
    sandbox.assert_healthy();
}

#[test]
fn unrelated_history_is_refused_with_hint() {
    let sandbox = Sandbox::new();
    sandbox.run_lane("e", "echo one > one.txt; git add -A; git commit -q --amend -m own");
    let before = sandbox.git(&["for-each-ref"]);
    for more in [&["--dry-run"][..], &[], &["--strategy", "rebase"], &["--strategy", "squash"]] {
        let out = sandbox.proq(&[&["merge", "e"], more].concat());
        assert_eq!(
            out.to_text(),
            "refused e: it has no common history with main
--- stderr
hint: rebase its commits onto main: git -C '[ROOT]/repo/.proq-worktrees/e' rebase --root --onto main
--- code 1
"
        );
    }
    assert_eq!(sandbox.git(&["for-each-ref"]), before);
    sandbox.sh("git -C '.proq-worktrees/e' rebase -q --root --onto main");
    let _ = sandbox.proq(&["merge", "e"]).ok();
    assert_eq!(sandbox.read("one.txt"), "one\n");
    sandbox.assert_healthy();
}

#[test]
fn failed_checkout_leaves_existing_files() {
    for args in [&["merge", "one"][..], &["preview", "one"]] {
        let sandbox = Sandbox::new();
        sandbox.sh("echo a >a; echo b >b; echo 'b filter=f' >.gitattributes; git config filter.f.clean cat");
        sandbox.sh("git config filter.f.smudge cat; git config filter.f.required true");
        sandbox.commit_all("files");
        // The new content begins as the existing one: it must not pass for a part of that.
        sandbox.lane_with_commit("one", "echo more >>a; echo more >>b");
        let before = WorktreeState::capture(&sandbox, &sandbox.repo);
        sandbox.git(&["config", "filter.f.smudge", "false"]);
        assert_ne!(sandbox.proq(args).code, 0);
        assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
    }
}

#[test]
fn restored_changes_return_again_after_undo() {
    // An ignored file that no object has, and a file that is written after it was parked.
    let ignored = "echo '*.o' >>.git/info/exclude; rm in/a; mkdir in/a; echo mine >in/a/z.o";
    for (dirty, file, moves) in [
        (ignored, "in/a/z.o", false),
        (ignored, "in/a/z.o", true),
        ("echo mine >u", "u", false),
        ("echo mine >u", "u", true),
    ] {
        let sandbox = Sandbox::new();
        sandbox.sh("mkdir in; echo a >in/a; echo b >in/b");
        sandbox.commit_all("files");
        sandbox.lane_with_commit("one", "echo one >one");
        sandbox.lane_with_commit("two", "echo same >>in/b");
        sandbox.sh(&format!("{dirty}; echo same >>in/b"));
        let mut open = std::fs::File::options().append(true).open(sandbox.repo.join("u"));
        let _ = sandbox.proq(&["preview", "one"]).ok();
        let late = open.as_mut().map_or("", |open| open.write_all(b"late\n").map(|()| "\nlate").unwrap());
        drop(open);
        if moves {
            let _ = sandbox.proq(&["merge", "two"]).ok();
        }
        for again in [&["preview", "--back"][..], &["op", "redo"], &["preview", "--back"]] {
            let _ = sandbox.proq(again).ok();
            assert_eq!(sandbox.sh(&format!("cat {file}")), format!("mine{late}"), "{dirty} {moves}");
            let _ = sandbox.proq(&["undo"]).ok();
        }
        if moves {
            // Without the landing that had the same edit, the edit is the user's again.
            let _ = sandbox.proq(&["undo"]).ok();
        }
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        assert_eq!(sandbox.sh(&format!("tail -1 in/b; cat {file}")), format!("same\nmine{late}"));
    }
}
