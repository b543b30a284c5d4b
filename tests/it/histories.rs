//! Owns a short run of random histories against their model, and the tests of what long runs have found.
//!
//! Every run is the same; `PROQ_TEST_SEED=random cargo test histories` looks further, `cargo xtask histories` looks far.

use std::path::Path;

use super::support::{self, Sandbox};

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

/// How many histories one test plays.
const COUNT: usize = 20;
/// How many steps each has.
const LENGTH: usize = 12;

fn histories(part: usize) {
    let seed = support::seed();
    println!("PROQ_TEST_SEED={seed}");
    let dir = tempfile::Builder::new().prefix("proq-test-").tempdir().unwrap();
    let path = std::env::var("PROQ_TEST_PATH").map_or(String::new(), |first| format!("{first}:"))
        + &std::env::var("PATH").unwrap();
    let proq = Path::new(env!("CARGO_BIN_EXE_git-proq"));
    let mut bench = history::Bench::new(&dir.path().join("bench"), proq, &path).unwrap();
    for number in part * COUNT..(part + 1) * COUNT {
        let steps = history::choose(seed, number, LENGTH);
        let Some(fault) = history::play(&mut bench, &steps).unwrap() else { continue };
        let (steps, fault) = history::shrink(&mut bench, &steps, fault).unwrap();
        let told: Vec<String> = steps.iter().map(|step| format!("  {step}\n")).collect();
        panic!(
            "history {number} differs:\n{}  => {}\nagain: cargo xtask histories --seed {seed} --only {number}",
            told.concat(),
            fault.text
        );
    }
}

#[test]
fn random_histories_are_as_the_model_says_1() {
    histories(0);
}

#[test]
fn random_histories_are_as_the_model_says_2() {
    histories(1);
}

#[test]
fn a_landing_is_not_done_again_over_new_work_in_its_lane() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("one", "echo one > one.txt");
    let _ = sandbox.proq(&["merge", "one"]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    sandbox.write_in(&sandbox.lane("one"), "new.txt", "not committed\n");
    let tip = sandbox.git(&["rev-parse", "main"]);
    let said = sandbox.proq(&["op", "redo"]).fails(1);
    assert!(said.contains("lane 'one' has uncommitted work: new.txt"), "{said}");
    assert_eq!(sandbox.git(&["rev-parse", "main"]), tip);
    assert_eq!(std::fs::read_to_string(sandbox.lane("one").join("new.txt")).unwrap(), "not committed\n");
}

#[test]
fn a_forced_discard_is_done_again_over_the_work_that_it_kept() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("one", "echo one > one.txt");
    let lane = sandbox.lane("one");
    sandbox.sh_in(&lane, "echo staged > s.txt; git add s.txt; echo later > one.txt; echo u > u.txt");
    let _ = sandbox.proq(&["discard", "--force", "one"]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    let _ = sandbox.proq(&["op", "redo"]).ok();
    assert!(!lane.exists());
    let _ = sandbox.proq(&["undo"]).ok();
    sandbox.write_in(&lane, "u.txt", "changed since\n");
    let said = sandbox.proq(&["op", "redo"]).fails(1);
    assert!(said.contains("lane 'one' has uncommitted work"), "{said}");
}

#[test]
fn a_preview_is_undone_and_done_again_any_number_of_times() {
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
fn a_lane_whose_preview_was_left_by_hand_is_kept_for_the_commits_made_in_it() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "one"]).ok();
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.write("new.txt", "new\n");
    sandbox.commit_all("in the preview");
    sandbox.git(&["switch", "-q", "main"]);
    let said = sandbox.proq(&["discard", "one"]).fails(1);
    assert!(said.contains("commits made in its preview"), "{said}");
    assert!(!said.contains("are in lane 'one' now"), "{said}");
}
