//! Owns the tests of clocks that show a wrong time: nothing that was put aside meanwhile goes by its age.

use super::support::{Output, Sandbox};

fn at(sandbox: &Sandbox, time: &str, args: &[&str]) -> Output {
    let mut command = sandbox.proq_command(&sandbox.repo, args);
    command.env("PROQ_TEST_NOW", time);
    sandbox.output(command)
}

/// What gc frees at a time.
fn freed(sandbox: &Sandbox, time: &str) -> Vec<String> {
    kinds(&at(sandbox, time, &["gc", "--json"]))
}

/// Whether gc frees the trash once the program was used on each day of a month.
fn freed_in_the_end(sandbox: &Sandbox) -> bool {
    kinds(&sandbox.proq_at("2026-02-20T00:00:00Z", &["gc", "--json"])).contains(&"trash".to_owned())
}

fn kinds(answer: &Output) -> Vec<String> {
    let answer = answer.json();
    let kinds = answer["freed"].as_array().unwrap().iter();
    kinds.map(|group| group["kind"].as_str().unwrap().to_owned()).collect()
}

/// A repository that ignores `.env`.
fn ignoring() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write(".gitignore", ".env\n");
    sandbox.commit_all("ignore");
    sandbox
}

/// A lane with an ignored file is discarded by a clock that shows `time`.
fn discard(sandbox: &Sandbox, time: &str) {
    sandbox.sh_in(&sandbox.lane("x"), "echo secret > .env; echo work > work.txt");
    let _ = at(sandbox, time, &["discard", "--force", "x"]).ok();
}

/// After gc and cleanup it is there still, and comes back.
#[track_caller]
fn stays(sandbox: &Sandbox, time: &str, number: &str) {
    assert_eq!(freed(sandbox, time), [""; 0]);
    let _ = at(sandbox, time, &["cleanup"]).ok();
    let _ = at(sandbox, time, &["undo", number]).ok();
    assert_eq!(sandbox.sh("cat .proq-worktrees/x/.env .proq-worktrees/x/work.txt"), "secret\nwork");
    let _ = at(sandbox, time, &["op", "redo"]).ok();
}

#[test]
fn what_was_put_aside_by_a_clock_that_fell_back_is_as_young_as_what_came_before() {
    let sandbox = ignoring();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    discard(&sandbox, "1970-01-01T00:05:00Z");
    stays(&sandbox, "2026-01-02T03:10:00Z", "2");
    stays(&sandbox, "2026-01-08T03:04:00Z", "2");
    assert!(freed_in_the_end(&sandbox));
}

#[test]
fn what_was_put_aside_by_a_clock_that_was_wrong_from_the_beginning_is_kept_from_when_it_is_right() {
    let sandbox = ignoring();
    let _ = at(&sandbox, "1970-01-01T00:00:10Z", &["spawn", "--empty", "-n", "x"]).ok();
    discard(&sandbox, "1970-01-01T00:05:00Z");
    stays(&sandbox, "2026-01-02T03:10:00Z", "2");
    stays(&sandbox, "2026-01-08T03:04:00Z", "2");
    assert!(freed_in_the_end(&sandbox));
}

#[test]
fn what_was_put_aside_by_a_clock_that_was_months_behind_is_kept_from_when_it_is_right() {
    for (wrong, begun) in
        [("2025-10-03T00:00:00Z", "2025-10-01T00:00:00Z"), ("2025-12-20T00:00:00Z", "2025-12-20T00:00:00Z")]
    {
        let sandbox = ignoring();
        let _ = at(&sandbox, begun, &["spawn", "--empty", "-n", "x"]).ok();
        discard(&sandbox, wrong);
        for day in 2..8 {
            assert_eq!(freed(&sandbox, &format!("2026-01-0{day}T03:00:00Z")), [""; 0], "{wrong}, {day}");
        }
        stays(&sandbox, "2026-01-07T03:10:00Z", "2");
        assert!(freed_in_the_end(&sandbox));
    }
}

#[test]
fn a_landing_collects_nothing_that_was_put_aside_by_a_clock_that_was_wrong() {
    let sandbox = ignoring();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    discard(&sandbox, "1970-01-01T00:05:00Z");
    sandbox.lane_of("y", "echo y > y");
    let _ = at(&sandbox, "2026-01-02T03:10:00Z", &["merge", "y"]).ok();
    assert_eq!(sandbox.sh("cat .git/proq/trash/x-*/worktree/.env"), "secret");
    assert!(freed_in_the_end(&sandbox));
}

#[test]
fn a_repository_that_is_used_once_a_week_is_tidied_in_the_end() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    let _ = sandbox.proq(&["discard", "x"]).ok();
    let weeks = ["01-09", "01-16", "01-23", "01-30", "02-06", "02-13"];
    for day in weeks {
        assert_eq!(freed(&sandbox, &format!("2026-{day}T03:04:05Z")), [""; 0], "{day}");
    }
    assert_eq!(freed(&sandbox, "2026-02-20T03:04:05Z"), ["trash"]);
}

#[test]
fn a_clock_that_was_far_ahead_for_a_while_frees_nothing() {
    let sandbox = ignoring();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    discard(&sandbox, "2026-01-02T03:05:00Z");
    stays(&sandbox, "2031-01-01T00:00:00Z", "2");
    stays(&sandbox, "2026-01-03T00:00:00Z", "2");
    // It is right again, and goes on from there.
    let _ = at(&sandbox, "2026-01-03T00:00:00Z", &["spawn", "--empty", "-n", "y"]).ok();
    let row = at(&sandbox, "2026-01-03T00:00:00Z", &["list", "--json"]).json();
    assert!(row["lanes"][0]["created"].as_str().unwrap().starts_with("2026-01-03"), "{row:#}");
}
