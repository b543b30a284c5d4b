//! Tests of clocks that show a wrong time: trash from that time does not expire by its apparent age.

use proq_test_kit::{Output, Sandbox};

fn run_at(sandbox: &Sandbox, time: &str, args: &[&str]) -> Output {
    let mut command = sandbox.proq_command(&sandbox.repo, args);
    command.env("PROQ_TEST_NOW", time);
    sandbox.output(command)
}

/// Returns the kinds of data that gc frees at `time`.
fn gc_freed_kinds(sandbox: &Sandbox, time: &str) -> Vec<String> {
    freed_kinds(&run_at(sandbox, time, &["gc", "--json"]))
}

/// Returns whether gc frees the trash after the clock has been right for a month.
fn gc_eventually_frees_trash(sandbox: &Sandbox) -> bool {
    freed_kinds(&sandbox.proq_at("2026-02-20T00:00:00Z", &["gc", "--json"])).contains(&"trash".to_owned())
}

fn freed_kinds(answer: &Output) -> Vec<String> {
    let answer = answer.json();
    let kinds = answer["freed"].as_array().unwrap().iter();
    kinds.map(|group| group["kind"].as_str().unwrap().to_owned()).collect()
}

/// Creates a repository that ignores `.env`.
fn repo_ignoring_env() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write(".gitignore", ".env\n");
    sandbox.commit_all("ignore");
    sandbox
}

/// Discards a lane with an ignored file while the clock shows `time`.
fn discard_at(sandbox: &Sandbox, time: &str) {
    sandbox.sh_in(&sandbox.lane_path("x"), "echo secret > .env; echo work > work.txt");
    let _ = run_at(sandbox, time, &["discard", "--force", "x"]).ok();
}

/// Asserts that the trash survives gc and cleanup at `time` and that an undo restores it.
#[track_caller]
fn assert_kept_and_restorable(sandbox: &Sandbox, time: &str, number: &str) {
    assert_eq!(gc_freed_kinds(sandbox, time), [""; 0]);
    let _ = run_at(sandbox, time, &["cleanup"]).ok();
    let _ = run_at(sandbox, time, &["undo", number]).ok();
    assert_eq!(sandbox.sh("cat .proq-worktrees/x/.env .proq-worktrees/x/work.txt"), "secret\nwork");
    let _ = run_at(sandbox, time, &["op", "redo"]).ok();
}

/// Promise: snapshots/wrong-clock
#[test]
fn clock_set_back_does_not_age_trash() {
    let sandbox = repo_ignoring_env();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    discard_at(&sandbox, "1970-01-01T00:05:00Z");
    assert_kept_and_restorable(&sandbox, "2026-01-02T03:10:00Z", "2");
    assert_kept_and_restorable(&sandbox, "2026-01-08T03:04:00Z", "2");
    assert!(gc_eventually_frees_trash(&sandbox));
}

/// Promise: snapshots/wrong-clock
#[test]
fn clock_wrong_from_start_does_not_age_trash() {
    let sandbox = repo_ignoring_env();
    let _ = run_at(&sandbox, "1970-01-01T00:00:10Z", &["spawn", "--empty", "-n", "x"]).ok();
    discard_at(&sandbox, "1970-01-01T00:05:00Z");
    assert_kept_and_restorable(&sandbox, "2026-01-02T03:10:00Z", "2");
    assert_kept_and_restorable(&sandbox, "2026-01-08T03:04:00Z", "2");
    assert!(gc_eventually_frees_trash(&sandbox));
}

/// Promise: snapshots/wrong-clock
#[test]
fn clock_months_behind_does_not_age_trash() {
    for (wrong, start_time) in
        [("2025-10-03T00:00:00Z", "2025-10-01T00:00:00Z"), ("2025-12-20T00:00:00Z", "2025-12-20T00:00:00Z")]
    {
        let sandbox = repo_ignoring_env();
        let _ = run_at(&sandbox, start_time, &["spawn", "--empty", "-n", "x"]).ok();
        discard_at(&sandbox, wrong);
        for day in 2..8 {
            assert_eq!(
                gc_freed_kinds(&sandbox, &format!("2026-01-0{day}T03:00:00Z")),
                [""; 0],
                "{wrong}, {day}"
            );
        }
        assert_kept_and_restorable(&sandbox, "2026-01-07T03:10:00Z", "2");
        assert!(gc_eventually_frees_trash(&sandbox));
    }
}

/// Promise: snapshots/wrong-clock
#[test]
fn landing_keeps_trash_of_a_wrong_clock() {
    let sandbox = repo_ignoring_env();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    discard_at(&sandbox, "1970-01-01T00:05:00Z");
    sandbox.lane_with_commit("y", "echo y > y");
    let _ = run_at(&sandbox, "2026-01-02T03:10:00Z", &["merge", "y"]).ok();
    assert_eq!(sandbox.sh("cat .git/proq/trash/x-*/worktree/.env"), "secret");
    assert!(gc_eventually_frees_trash(&sandbox));
}

/// Promise: snapshots/wrong-clock
#[test]
fn weekly_use_frees_trash_eventually() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    let _ = sandbox.proq(&["discard", "x"]).ok();
    let weeks = ["01-09", "01-16", "01-23", "01-30", "02-06", "02-13"];
    for day in weeks {
        assert_eq!(gc_freed_kinds(&sandbox, &format!("2026-{day}T03:04:05Z")), [""; 0], "{day}");
    }
    assert_eq!(gc_freed_kinds(&sandbox, "2026-02-20T03:04:05Z"), ["trash"]);
}

/// Promise: snapshots/wrong-clock
#[test]
fn clock_far_ahead_frees_nothing() {
    let sandbox = repo_ignoring_env();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    discard_at(&sandbox, "2026-01-02T03:05:00Z");
    assert_kept_and_restorable(&sandbox, "2031-01-01T00:00:00Z", "2");
    assert_kept_and_restorable(&sandbox, "2026-01-03T00:00:00Z", "2");
    // Once the clock is right again, new records have its time.
    let _ = run_at(&sandbox, "2026-01-03T00:00:00Z", &["spawn", "--empty", "-n", "y"]).ok();
    let row = run_at(&sandbox, "2026-01-03T00:00:00Z", &["list", "--json"]).json();
    assert!(row["lanes"][0]["created"].as_str().unwrap().starts_with("2026-01-03"), "{row:#}");
}
