//! Races: what a process does when others act between two of its steps.

use std::process::Stdio;

use proq_test_kit::Sandbox;
use proq_test_kit::claude::sandbox_with_claude;
use proq_test_kit::faults::{kill_at, recover};
use proq_test_kit::runs::sandbox_with_running_landing;
use proq_test_kit::waiting::{KilledOnDrop, OutputLines, wait_until, wait_until_unlocked};

/// Starts the program so that it stops at these points, and returns it with the lines of its output.
fn start_paused(sandbox: &Sandbox, at: &str, args: &[&str]) -> (KilledOnDrop, OutputLines) {
    let mut command = sandbox.proq_command(&sandbox.repo, args);
    command.env("PROQ_TEST_STAND_AT", at).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let lines = OutputLines::read_from(child.stdout.take().unwrap());
    (KilledOnDrop(child), lines)
}

/// Returns a sandbox whose agent waits for the pipe `go` in each of its runs.
fn with_waiting_claude() -> Sandbox {
    let sandbox =
        sandbox_with_claude(r#"begin; echo > "$ROOT/up"; read go < "$ROOT/go"; echo $n >> work; well"#);
    sandbox.pipe("up");
    sandbox.pipe("go");
    sandbox
}

/// Promise: new-lane/native-creation
#[test]
fn branch_or_folder_created_during_spawn_is_kept() {
    let theirs = "git branch proq/x $(git commit-tree -p HEAD -m theirs HEAD^{tree})";
    let folder = "mkdir -p .proq-worktrees/x; echo theirs > .proq-worktrees/x/file";
    for (at, act, code) in [
        ("step.before", theirs, 1),
        // By then the process holds the lock of the branch.
        ("branch.locked", &*format!("! {theirs} 2>/dev/null"), 0),
        ("step.before:2", folder, 1),
        ("worktree.headless", "! git worktree add -q .proq-worktrees/x proq/x 2>/dev/null", 0),
    ] {
        let sandbox = Sandbox::new();
        let (mut spawns, _) = start_paused(&sandbox, at, &["spawn", "--empty", "-n", "x"]);
        let paused = sandbox.wait_until_stopped(spawns.0.id());
        let _ = sandbox.sh(act);
        drop(paused);
        assert_eq!(spawns.exit_code(), Some(code), "{at}");
        match act {
            _ if act == theirs => {
                assert_eq!(sandbox.git(&["log", "-1", "--format=%s", "proq/x"]), "theirs");
                assert!(!sandbox.lane_path("x").exists());
            }
            _ if act == folder => {
                assert_eq!(std::fs::read_to_string(sandbox.lane_path("x").join("file")).unwrap(), "theirs\n");
                assert_eq!(sandbox.git(&["branch", "--list", "proq/*"]), "");
            }
            _ => {
                assert_eq!(sandbox.git(&["-C", ".proq-worktrees/x", "status", "-sb"]), "## proq/x");
                sandbox.assert_healthy();
            }
        }
    }
}

/// Promise: concurrency/finished-run
#[test]
fn run_started_during_state_check_is_not_a_crash() {
    let sandbox = with_waiting_claude();
    let _ = sandbox.proq(&["spawn", "-n", "x", "claude", "do it"]).ok();
    sandbox.read_pipe("up");
    // It has read the record of an active run, and then seen that the lock is free.
    let (mut waits, lines) = start_paused(&sandbox, "state.claimed,state.free", &["wait", "x"]);
    let paused = sandbox.wait_until_stopped(waits.0.id());
    sandbox.write_pipe("go");
    wait_until_unlocked(&sandbox.lane_lock("x", "run.lock"));
    drop(paused);
    let paused = sandbox.wait_until_stopped(waits.0.id());
    let (mut sends, _) = start_paused(&sandbox, "launch.prepared", &["send", "x", "more"]);
    let begins = sandbox.wait_until_stopped(sends.0.id());
    drop(paused);
    drop(begins);
    sandbox.read_pipe("up");
    assert_eq!((sends.exit_code(), waits.0.try_wait().unwrap()), (Some(0), None));
    sandbox.write_pipe("go");
    let line = lines.next();
    assert!(line.starts_with("x: done"), "{line}");
    assert_eq!((waits.exit_code(), sandbox.last_run("x")["attempt"].as_u64()), (Some(0), Some(2)));
}

#[test]
fn run_that_failed_to_start_is_not_a_crash() {
    let sandbox = sandbox_with_claude("begin; echo $n >> work; well");
    let _ = sandbox.proq(&["spawn", "-n", "x", "--wait", "claude", "do it"]).ok();
    sandbox.sh(r#"echo '#!/nowhere/sh' > "$ROOT/bin/claude""#);
    // It knows that no agent runs, and has not recorded that.
    let (mut sends, _) = start_paused(&sandbox, "launch.heard", &["send", "x", "more"]);
    let paused = sandbox.wait_until_stopped(sends.0.id());
    assert_eq!(sandbox.row("x")["state"], "starting");
    drop(paused);
    assert_eq!(sends.exit_code(), Some(4));
    assert_eq!(sandbox.row("x")["state"], "done");
}

#[test]
fn user_commit_before_retry_is_kept() {
    let sandbox = sandbox_with_claude("begin; echo half > half; busy; exit 1");
    sandbox.git(&["config", "proq.agent.backoff", "1"]);
    let mut command = sandbox.proq_command(&sandbox.repo, &["spawn", "claude", "do it", "-n", "x"]);
    command.env("PROQ_TEST_STAND_AT", "again.told");
    let _ = sandbox.output(command).ok();
    sandbox.wait_for_events("agent.retry", "x", 1);
    let paused = sandbox.wait_until_stopped(sandbox.lock_holder("x", "run"));
    let lane = sandbox.lane_path("x");
    sandbox.git_in(&lane, &["commit", "-q", "--allow-empty", "-m", "mine"]);
    assert_eq!(sandbox.row("x")["state"], "running");
    drop(paused);
    let _ = sandbox.proq(&["wait", "x"]).fails(4);
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s", "proq/x"]), "mine");
    assert_eq!(std::fs::read_to_string(lane.join("half")).unwrap(), "half\n");
    let row = sandbox.row("x");
    assert!(row["detail"].as_str().unwrap().contains("the lane was changed meanwhile"), "{row}");
    assert_eq!(sandbox.last_run("x")["attempt"], 1);
}

/// Promise: concurrency/finished-run
#[test]
fn lane_landing_during_state_check_has_not_failed() {
    let sandbox = with_waiting_claude();
    let _ = sandbox.proq(&["spawn", "-n", "x", "--auto-merge", "claude", "do it"]).ok();
    sandbox.read_pipe("up");
    let (mut waits, lines) = start_paused(&sandbox, "state.claimed", &["wait", "x"]);
    let paused = sandbox.wait_until_stopped(waits.0.id());
    sandbox.write_pipe("go");
    sandbox.wait_for_events("merge.landed", "x", 1);
    wait_until_unlocked(&sandbox.lane_lock("x", "landing.lock"));
    assert_eq!(sandbox.row("x"), serde_json::Value::Null);
    drop(paused);
    assert_eq!(lines.next(), "x: landed");
    assert_eq!(waits.exit_code(), Some(0));
}

/// Promise: concurrency/auto-merge-wait
#[test]
fn wait_includes_follow_up_landing() {
    let sandbox = sandbox_with_running_landing();
    // The first landing is over; the second one has neither started nor is it known to the waiting process.
    let at = "landing.free,landing.looked";
    let (mut waits, lines) = start_paused(&sandbox, at, &["send", "x", "more", "--wait"]);
    sandbox.wait_for_events("run.ended", "x", 2);
    let supervisor = sandbox.lock_holder("x", "run");
    sandbox.write_pipe("end");
    let supervises = sandbox.wait_until_stopped(supervisor);
    let paused = sandbox.wait_until_stopped(waits.0.id());
    drop(paused);
    drop(supervises);
    let line = lines.next();
    assert!(line.starts_with("x: done"), "{line}");
    assert!(lines.next().starts_with("landed x on main ("));
    assert_eq!(waits.exit_code(), Some(0));
    assert_eq!(sandbox.read("work"), "1\n2\n");
}

/// The record of a lane whose agent is being started is enough.
#[test]
fn lane_whose_run_starts_during_its_landing_is_refused() {
    let sandbox = sandbox_with_claude("begin; echo $n >> work; well");
    for pipe in ["up", "go"] {
        sandbox.pipe(pipe);
    }
    let _ = sandbox.proq(&["spawn", "-n", "x", "--wait", "claude", "do it"]).ok();
    let base = sandbox.git(&["rev-parse", "main"]);
    let check = r#"echo > "$ROOT/up"; read go < "$ROOT/go""#;
    let (mut merges, lines) = start_paused(&sandbox, "nowhere", &["merge", "x", "--verify", check]);
    sandbox.read_pipe("up");
    let (mut sends, _) = start_paused(&sandbox, "launch.prepared", &["send", "x", "more"]);
    let begins = sandbox.wait_until_stopped(sends.0.id());
    assert_eq!(sandbox.row("x")["state"], "starting");
    sandbox.write_pipe("go");
    assert_eq!(lines.next(), "refused x: its agent is running");
    assert_eq!(merges.exit_code(), Some(1));
    drop(begins);
    assert_eq!(sends.exit_code(), Some(0));
    let _ = sandbox.proq(&["wait", "x"]).ok();
    assert_eq!(sandbox.git(&["rev-parse", "main"]), base);
    sandbox.assert_healthy();
}

#[test]
fn next_landing_reports_commit_made_during_landing() {
    let sandbox = Sandbox::new();
    sandbox.write("a.txt", "mine\n");
    let script = "echo lane > a.txt";
    let args = ["spawn", "--auto-merge", "--wait", "-n", "x", "--", "sh", "-ec", script];
    let mut command = sandbox.proq_command(&sandbox.repo, &args);
    command.env("PROQ_TEST_STAND_AT", "landing.over");
    assert_eq!(sandbox.output(command).code, 1, "an edit is in its way");
    let landing = sandbox.lock_holder("x", "landing");
    let paused = sandbox.wait_until_stopped(&landing);
    sandbox.commit_in_lane("x", "echo half > half");
    drop(paused);
    let ps_script = format!("ps -o stat= -p {landing} | grep -v Z || true");
    wait_until("the end of the landing", || sandbox.sh(&ps_script).is_empty());
    sandbox.lane_with_commit("y", "echo 1 > y");
    let out = sandbox.proq(&["merge", "y"]);
    assert!(
        out.stderr.contains("lane 'x' was not merged automatically: its branch has moved"),
        "{}",
        out.to_text()
    );
}

/// Promise: concurrency/independent-process
#[test]
fn post_commit_work_is_not_an_agent_process() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "other"]).ok();
    let script = "echo 1 > one; git add one; PROQ_TEST_STAND_AT=moved.taken git commit -qm one";
    let args = ["spawn", "--auto-merge", "--wait", "-n", "x", "--", "sh", "-ec", script];
    let out = sandbox.proq(&args);
    let paused = sandbox.wait_until_stopped(sandbox.lock_holder("x", "moved"));
    assert!(out.clone().ok().contains("landed x on main"), "{}", out.to_text());
    drop(paused);
}

/// Promise: worktree/appearing-files
#[test]
fn file_rewritten_while_parking_is_saved() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    sandbox.write("a.txt", "mine\n");
    let (mut shows, _) = start_paused(&sandbox, "clear.moved", &["preview", "x"]);
    let paused = sandbox.wait_until_stopped(shows.0.id());
    // An editor saves the file.
    sandbox.write("a.txt", "newer\n");
    drop(paused);
    assert_eq!(shows.exit_code(), Some(1));
    assert_eq!(sandbox.read("a.txt"), "mine\n");
    let kept = "git cat-file -p $(git for-each-ref --format='%(refname)' refs/proq/saved/):a.txt";
    assert_eq!(sandbox.sh(kept).trim(), "newer");
    sandbox.assert_healthy();
}

/// Promise: worktree/appearing-files
#[test]
fn file_written_during_restore_is_kept() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    sandbox.write("a.txt", "mine\n");
    let _ = sandbox.proq(&["preview", "x"]).ok();
    let (mut goes_back, _) = start_paused(&sandbox, "restore.taken", &["preview", "--back"]);
    let paused = sandbox.wait_until_stopped(goes_back.0.id());
    sandbox.write("a.txt", "newer\n");
    drop(paused);
    assert_eq!(goes_back.exit_code(), Some(1));
    assert_eq!(sandbox.read("a.txt"), "newer\n");
    // The file moves elsewhere, and the parked changes are restored.
    sandbox.sh("mv a.txt ../newer");
    sandbox.git(&["checkout", "-q", "--", "a.txt"]);
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(sandbox.read("a.txt"), "mine\n");
}

#[test]
fn file_modified_while_copied_is_rewritten() {
    for lines in [1_000, 100_000] {
        let sandbox = Sandbox::new();
        let text = "line\n".repeat(lines);
        // The only file, so it is the first that is copied.
        sandbox.sh("git rm -q a.txt");
        sandbox.write("file", &text);
        sandbox
            .sh("git add file; git commit -qm file; touch -d 2020-01-01 file; git update-index -q --refresh");
        // It has opened the file, and is about to copy it.
        let (mut spawns, _) = start_paused(&sandbox, "fill.copies", &["-v", "spawn", "--empty", "-n", "x"]);
        let paused = sandbox.wait_until_stopped(spawns.0.id());
        sandbox.sh("printf mine | dd of=file conv=notrunc status=none");
        drop(paused);
        assert_eq!(spawns.exit_code(), Some(0));
        assert!(std::fs::read_to_string(sandbox.lane_path("x").join("file")).unwrap() == text);
        assert_eq!(sandbox.git(&["-C", ".proq-worktrees/x", "status", "--porcelain"]), "");
    }
}

/// `git pack-refs` removes the file of each ref that is at the commit that it packed, also if the ref was deleted and
/// created again since.
/// Promise: concurrency/recreated-branch
#[test]
fn branch_created_again_outlives_a_running_pack_refs() {
    let cases: [(&str, &[&[&str]]); 5] = [
        ("renamed back", &[&["rename", "x", "y"], &["undo"]]),
        ("lane restored", &[&["discard", "x"], &["undo"]]),
        ("undone and redone", &[&["undo"], &["redo"]]),
        ("lane restarted", &[&["redispatch", "x"]]),
        ("lane of the same name", &[&["discard", "x"], &["spawn", "--empty", "-n", "x"]]),
    ];
    for (name, commands) in cases {
        let sandbox = sandbox_with_claude("begin; well");
        let _ = sandbox.proq(&["spawn", "-n", "x", "--wait", "claude", "nothing to do"]).ok();
        sandbox.git(&["pack-refs", "--all", "--no-prune"]);
        let tip = sandbox.git(&["rev-parse", "proq/x"]);
        for args in commands {
            let _ = sandbox.proq(args).ok();
        }
        let _ = sandbox.proq(&["wait", "x"]);
        // What is left to do for the git that packed the refs.
        sandbox.sh("rm .git/refs/heads/proq/x");
        assert_eq!(sandbox.git(&["rev-parse", "proq/x"]), tip, "{name}");
        assert_eq!(sandbox.git(&["-C", ".proq-worktrees/x", "rev-parse", "HEAD"]), tip, "{name}");
        sandbox.git(&["fsck"]);
    }
}

/// Creates a sandbox with lane `x`, whose branch a git has packed without removing its file yet.
fn sandbox_with_half_packed_lane() -> Sandbox {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    sandbox.git(&["pack-refs", "--all", "--no-prune"]);
    sandbox
}

/// Promise: concurrency/recreated-branch
#[test]
fn reverted_rename_keeps_its_branch_while_refs_are_packed() {
    // With the first setting, only git itself may create refs.
    for sharing in ["umask", "false"] {
        let sandbox = sandbox_with_half_packed_lane();
        sandbox.git(&["config", "core.sharedRepository", sharing]);
        let tip = sandbox.git(&["rev-parse", "proq/x"]);
        // The old branch is gone, and the rename is not complete.
        kill_at(&sandbox, "step.after:3", &["rename", "x", "y"]);
        assert_eq!(sandbox.git(&["for-each-ref", "refs/heads/proq/x"]), "", "{sharing}");
        recover(&sandbox);
        sandbox.sh("rm .git/refs/heads/proq/x");
        assert_eq!(sandbox.git(&["rev-parse", "proq/x"]), tip, "{sharing}");
    }
}

/// A kill leaves the lock of the packed refs, which the next command removes.
#[test]
fn killed_creation_of_a_branch_that_existed_is_recovered() {
    let sandbox = sandbox_with_half_packed_lane();
    let tip = sandbox.git(&["rev-parse", "proq/x"]);
    let _ = sandbox.proq(&["rename", "x", "y"]).ok();
    kill_at(&sandbox, "ref.recreated", &["undo"]);
    assert!(sandbox.repo.join(".git/packed-refs.lock").exists());
    recover(&sandbox);
    assert!(!sandbox.repo.join(".git/packed-refs.lock").exists());
    assert_eq!(sandbox.git(&["for-each-ref", "--format=%(refname)", "refs/heads/proq"]), "refs/heads/proq/y");
    let _ = sandbox.proq(&["undo"]).ok();
    sandbox.sh("rm .git/refs/heads/proq/x");
    assert_eq!(sandbox.git(&["rev-parse", "proq/x"]), tip);
    sandbox.assert_healthy();
}
