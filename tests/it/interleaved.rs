//! Owns the tests of what a process makes of what others do between two of its steps.

use std::process::Stdio;

use super::letters::with_a_landing_under_way;
use super::runs::with_claude;
use super::support::Sandbox;
use super::support::patience::{Beside, Lines, wait_until, wait_until_free};

/// The program at work, which stands still at these points, and what it says.
fn beside(sandbox: &Sandbox, at: &str, args: &[&str]) -> (Beside, Lines) {
    let mut command = sandbox.proq_command(&sandbox.repo, args);
    command.env("PROQ_TEST_STAND_AT", at).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let said = Lines::of(child.stdout.take().unwrap());
    (Beside(child), said)
}

/// An agent that waits for a word in each of its runs.
fn with_patience() -> Sandbox {
    let sandbox = with_claude(r#"begin; echo > "$ROOT/up"; read go < "$ROOT/go"; echo $n >> work; well"#);
    sandbox.pipe("up");
    sandbox.pipe("go");
    sandbox
}

#[test]
fn what_somebody_makes_before_a_new_lane_gets_it_stays_theirs() {
    let theirs = "git branch proq/x $(git commit-tree -p HEAD -m theirs HEAD^{tree})";
    let folder = "mkdir -p .proq-worktrees/x; echo theirs > .proq-worktrees/x/file";
    for (at, act, code) in [
        ("step.before", theirs, 1),
        // It has the lock of the branch by then.
        ("branch.locked", &*format!("! {theirs} 2>/dev/null"), 0),
        ("step.before:2", folder, 1),
        ("worktree.headless", "! git worktree add -q .proq-worktrees/x proq/x 2>/dev/null", 0),
    ] {
        let sandbox = Sandbox::new();
        let (mut spawns, _) = beside(&sandbox, at, &["spawn", "--empty", "-n", "x"]);
        let standing = sandbox.standing(spawns.0.id());
        let _ = sandbox.sh(act);
        drop(standing);
        assert_eq!(spawns.code(), Some(code), "{at}");
        match act {
            _ if act == theirs => {
                assert_eq!(sandbox.git(&["log", "-1", "--format=%s", "proq/x"]), "theirs");
                assert!(!sandbox.lane("x").exists());
            }
            _ if act == folder => {
                assert_eq!(std::fs::read_to_string(sandbox.lane("x").join("file")).unwrap(), "theirs\n");
                assert_eq!(sandbox.git(&["branch", "--list", "proq/*"]), "");
            }
            _ => {
                assert_eq!(sandbox.git(&["-C", ".proq-worktrees/x", "status", "-sb"]), "## proq/x");
                sandbox.assert_healthy();
            }
        }
    }
}

#[test]
fn a_run_that_begins_while_the_end_of_the_last_one_is_looked_at_is_no_death() {
    let sandbox = with_patience();
    let _ = sandbox.proq(&["spawn", "-n", "x", "claude", "do it"]).ok();
    sandbox.hear("up");
    // It has read the record of a run that lasts; then it has seen that nobody holds the lock any more.
    let (mut waits, said) = beside(&sandbox, "state.claimed,state.free", &["wait", "x"]);
    let standing = sandbox.standing(waits.0.id());
    sandbox.tell("go");
    wait_until_free(&sandbox.lock("x", "run.lock"));
    drop(standing);
    let standing = sandbox.standing(waits.0.id());
    let (mut sends, _) = beside(&sandbox, "launch.prepared", &["send", "x", "more"]);
    let begins = sandbox.standing(sends.0.id());
    drop(standing);
    drop(begins);
    sandbox.hear("up");
    assert_eq!((sends.code(), waits.0.try_wait().unwrap()), (Some(0), None));
    sandbox.tell("go");
    let line = said.next();
    assert!(line.starts_with("x: done"), "{line}");
    assert_eq!((waits.code(), sandbox.last_run("x")["attempt"].as_u64()), (Some(0), Some(2)));
}

#[test]
fn a_run_that_could_not_be_started_is_no_death_meanwhile() {
    let sandbox = with_claude("begin; echo $n >> work; well");
    let _ = sandbox.proq(&["spawn", "-n", "x", "--wait", "claude", "do it"]).ok();
    sandbox.sh(r#"echo '#!/nowhere/sh' > "$ROOT/bin/claude""#);
    // It has heard that nothing runs, and has not written that down.
    let (mut sends, _) = beside(&sandbox, "launch.heard", &["send", "x", "more"]);
    let standing = sandbox.standing(sends.0.id());
    assert_eq!(sandbox.row("x")["state"], "starting");
    drop(standing);
    assert_eq!(sends.code(), Some(4));
    assert_eq!(sandbox.row("x")["state"], "done");
}

#[test]
fn what_somebody_does_as_soon_as_another_try_is_told_stays() {
    let sandbox = with_claude("begin; echo half > half; busy; exit 1");
    sandbox.git(&["config", "proq.agent.backoff", "1"]);
    let mut command = sandbox.proq_command(&sandbox.repo, &["spawn", "claude", "do it", "-n", "x"]);
    command.env("PROQ_TEST_STAND_AT", "again.told");
    let _ = sandbox.output(command).ok();
    sandbox.until("agent.retry", "x", 1);
    let standing = sandbox.standing(sandbox.holder("x", "run"));
    let lane = sandbox.lane("x");
    sandbox.git_in(&lane, &["commit", "-q", "--allow-empty", "-m", "mine"]);
    assert_eq!(sandbox.row("x")["state"], "running");
    drop(standing);
    let _ = sandbox.proq(&["wait", "x"]).fails(4);
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s", "proq/x"]), "mine");
    assert_eq!(std::fs::read_to_string(lane.join("half")).unwrap(), "half\n");
    let row = sandbox.row("x");
    assert!(row["detail"].as_str().unwrap().contains("somebody worked in the lane meanwhile"), "{row}");
    assert_eq!(sandbox.last_run("x")["attempt"], 1);
}

#[test]
fn a_lane_that_lands_while_its_run_is_looked_at_has_not_failed() {
    let sandbox = with_patience();
    let _ = sandbox.proq(&["spawn", "-n", "x", "--auto-merge", "claude", "do it"]).ok();
    sandbox.hear("up");
    let (mut waits, said) = beside(&sandbox, "state.claimed", &["wait", "x"]);
    let standing = sandbox.standing(waits.0.id());
    sandbox.tell("go");
    sandbox.until("merge.landed", "x", 1);
    wait_until_free(&sandbox.lock("x", "landing.lock"));
    assert_eq!(sandbox.row("x"), serde_json::Value::Null);
    drop(standing);
    assert_eq!(said.next(), "x: landed");
    assert_eq!(waits.code(), Some(0));
}

#[test]
fn who_waits_for_a_landing_waits_for_the_one_that_follows_it() {
    let sandbox = with_a_landing_under_way();
    // The first landing is over, and neither has the second one begun nor is it known to whoever waits.
    let at = "landing.free,landing.looked";
    let (mut waits, said) = beside(&sandbox, at, &["send", "x", "more", "--wait"]);
    sandbox.until("run.ended", "x", 2);
    let supervisor = sandbox.holder("x", "run");
    sandbox.tell("end");
    let supervises = sandbox.standing(supervisor);
    let standing = sandbox.standing(waits.0.id());
    drop(standing);
    drop(supervises);
    let line = said.next();
    assert!(line.starts_with("x: done"), "{line}");
    assert!(said.next().starts_with("landed x on main ("));
    assert_eq!(waits.code(), Some(0));
    assert_eq!(sandbox.read("work"), "1\n2\n");
}

#[test]
fn what_is_committed_in_a_lane_while_its_landing_ends_is_told_by_the_next_landing() {
    let sandbox = Sandbox::new();
    sandbox.write("a.txt", "mine\n");
    let script = "echo lane > a.txt";
    let args = ["spawn", "--auto-merge", "--wait", "-n", "x", "--", "sh", "-ec", script];
    let mut command = sandbox.proq_command(&sandbox.repo, &args);
    command.env("PROQ_TEST_STAND_AT", "landing.over");
    assert_eq!(sandbox.output(command).code, 1, "an edit is in its way");
    let landing = sandbox.holder("x", "landing");
    let standing = sandbox.standing(&landing);
    sandbox.commit_in_lane("x", "echo half > half");
    drop(standing);
    let looks = format!("ps -o stat= -p {landing} | grep -v Z || true");
    wait_until("the end of the landing", || sandbox.sh(&looks).is_empty());
    sandbox.lane_of("y", "echo 1 > y");
    let out = sandbox.proq(&["merge", "y"]);
    assert!(out.stderr.contains("lane 'x' did not land by itself: its branch has moved"), "{}", out.shown());
}

#[test]
fn what_follows_an_agents_commit_is_no_process_of_the_agents() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "other"]).ok();
    let script = "echo 1 > one; git add one; PROQ_TEST_STAND_AT=moved.taken git commit -qm one";
    let args = ["spawn", "--auto-merge", "--wait", "-n", "x", "--", "sh", "-ec", script];
    let out = sandbox.proq(&args);
    let looks = sandbox.standing(sandbox.holder("x", "moved"));
    assert!(out.clone().ok().contains("landed x on main"), "{}", out.shown());
    drop(looks);
}

#[test]
fn a_file_that_is_written_anew_while_others_are_set_aside_is_kept() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    sandbox.write("a.txt", "mine\n");
    let (mut shows, _) = beside(&sandbox, "clear.moved", &["preview", "x"]);
    let standing = sandbox.standing(shows.0.id());
    // An editor saves.
    sandbox.write("a.txt", "newer\n");
    drop(standing);
    assert_eq!(shows.code(), Some(1));
    assert_eq!(sandbox.read("a.txt"), "mine\n");
    let kept = "git cat-file -p $(git for-each-ref --format='%(refname)' refs/proq/saved/):a.txt";
    assert_eq!(sandbox.sh(kept).trim(), "newer");
    sandbox.assert_healthy();
}

#[test]
fn a_file_that_is_written_where_changes_come_back_to_stays() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    sandbox.write("a.txt", "mine\n");
    let _ = sandbox.proq(&["preview", "x"]).ok();
    let (mut goes_back, _) = beside(&sandbox, "restore.taken", &["preview", "--back"]);
    let standing = sandbox.standing(goes_back.0.id());
    sandbox.write("a.txt", "newer\n");
    drop(standing);
    assert_eq!(goes_back.code(), Some(1));
    assert_eq!(sandbox.read("a.txt"), "newer\n");
    // It goes elsewhere, and what was set aside comes.
    sandbox.sh("mv a.txt ../newer");
    sandbox.git(&["checkout", "-q", "--", "a.txt"]);
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(sandbox.read("a.txt"), "mine\n");
}

#[test]
fn a_file_that_is_written_to_while_it_is_copied_is_made_anew() {
    for lines in [1_000, 100_000] {
        let sandbox = Sandbox::new();
        let text = "line\n".repeat(lines);
        // The only one: whatever is copied first is it.
        sandbox.sh("git rm -q a.txt");
        sandbox.write("file", &text);
        sandbox
            .sh("git add file; git commit -qm file; touch -d 2020-01-01 file; git update-index -q --refresh");
        // It has opened the file, and is about to copy it.
        let (mut spawns, _) = beside(&sandbox, "fill.copies", &["-v", "spawn", "--empty", "-n", "x"]);
        let standing = sandbox.standing(spawns.0.id());
        sandbox.sh("printf mine | dd of=file conv=notrunc status=none");
        drop(standing);
        assert_eq!(spawns.code(), Some(0));
        assert!(std::fs::read_to_string(sandbox.lane("x").join("file")).unwrap() == text);
        assert_eq!(sandbox.git(&["-C", ".proq-worktrees/x", "status", "--porcelain"]), "");
    }
}
