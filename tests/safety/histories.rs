//! A short run of random histories against their model, and regression tests for what long runs have found.
//!
//! Every run is the same; `PROQ_TEST_SEED=random cargo test histories` tries other histories, `cargo xtask
//! histories` runs many.

use std::path::Path;

use proq_test_kit::{Sandbox, random_seed};

#[path = "../../xtask/src/copy.rs"]
mod copy;
#[path = "../../xtask/src/dice.rs"]
#[allow(dead_code, reason = "the sweep takes samples, a history does not")]
pub(super) mod dice;
#[path = "../../xtask/src/history/mod.rs"]
#[allow(dead_code, unused_imports, reason = "what a long run counts, a short one does not ask for")]
mod history;
#[path = "../../xtask/src/states/mod.rs"]
#[allow(dead_code, unused_imports, reason = "what the states' own command asks for, tests do not")]
pub(super) mod states;

/// How many histories one test runs.
const COUNT: usize = 20;
/// How many steps each history has.
const LENGTH: usize = 12;

fn check_histories(part: usize) {
    let seed = random_seed();
    println!("PROQ_TEST_SEED={seed}");
    let dir = tempfile::Builder::new().prefix("proq-test-").tempdir().unwrap();
    let path = std::env::var("PROQ_TEST_PATH").map_or(String::new(), |first| format!("{first}:"))
        + &std::env::var("PATH").unwrap();
    let proq = Path::new(env!("CARGO_BIN_EXE_git-proq"));
    let mut bench = history::TestBench::new(&dir.path().join("bench"), proq, &path).unwrap();
    for number in part * COUNT..(part + 1) * COUNT {
        let steps = history::generate_history(seed, number, LENGTH);
        let Some(fault) = history::run_history(&mut bench, &steps).unwrap() else { continue };
        let (steps, fault) = history::shrink(&mut bench, &steps, fault).unwrap();
        let steps_text: Vec<String> = steps.iter().map(|step| format!("  {step}\n")).collect();
        panic!(
            "history {number} differs:\n{}  => {}\nagain: cargo xtask histories --seed {seed} --only {number}",
            steps_text.concat(),
            fault.text
        );
    }
}

/// Promise: operations/random-histories
#[test]
fn random_histories_match_model_1() {
    check_histories(0);
}

#[test]
fn random_histories_match_model_2() {
    check_histories(1);
}

#[test]
fn redo_of_merge_refuses_new_work_in_lane() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo one > one.txt");
    let _ = sandbox.proq(&["merge", "one"]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    sandbox.write_in(&sandbox.lane_path("one"), "new.txt", "not committed\n");
    let tip = sandbox.git(&["rev-parse", "main"]);
    let output = sandbox.proq(&["op", "redo"]).fails(1);
    assert!(output.contains("lane 'one' has uncommitted work: new.txt"), "{output}");
    assert_eq!(sandbox.git(&["rev-parse", "main"]), tip);
    assert_eq!(std::fs::read_to_string(sandbox.lane_path("one").join("new.txt")).unwrap(), "not committed\n");
}

#[test]
fn redo_of_forced_discard_accepts_only_saved_work() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo one > one.txt");
    let lane = sandbox.lane_path("one");
    sandbox.sh_in(&lane, "echo staged > s.txt; git add s.txt; echo later > one.txt; echo u > u.txt");
    let _ = sandbox.proq(&["discard", "--force", "one"]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    let _ = sandbox.proq(&["op", "redo"]).ok();
    assert!(!lane.exists());
    let _ = sandbox.proq(&["undo"]).ok();
    sandbox.write_in(&lane, "u.txt", "changed since\n");
    let output = sandbox.proq(&["op", "redo"]).fails(1);
    assert!(output.contains("lane 'one' has uncommitted work"), "{output}");
}

#[test]
fn preview_can_be_undone_and_redone_repeatedly() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "one"]).ok();
    sandbox.write("a.txt", "mine\n");
    sandbox.write("deep/er/new.txt", "mine too\n");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    for _ in 0..4 {
        let _ = sandbox.proq(&["undo"]).ok();
        assert_eq!(sandbox.read("a.txt"), "mine\n");
        assert_eq!(sandbox.read("deep/er/new.txt"), "mine too\n");
        let _ = sandbox.proq(&["op", "redo"]).ok();
        assert_eq!(sandbox.read("a.txt"), "a\n");
    }
}

#[test]
fn discard_refuses_lane_with_commits_made_in_preview() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "one"]).ok();
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.write("new.txt", "new\n");
    sandbox.commit_all("in the preview");
    sandbox.git(&["switch", "-q", "main"]);
    let output = sandbox.proq(&["discard", "one"]).fails(1);
    assert!(output.contains("commits made in its preview"), "{output}");
    assert!(!output.contains("moved the commits made in the preview to lane 'one'"), "{output}");
}
