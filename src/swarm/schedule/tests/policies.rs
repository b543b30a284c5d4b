//! Owns scenes by hand: what failures mean for others, and when something is tried again.

use super::play::{Play, tasks};
use crate::store::records::RunClass;
use crate::swarm::schedule::{End, Event, Fate, MergePolicy, Mode, Options, TaskPolicy, Why};

fn on_failure(on_failure: TaskPolicy) -> Options {
    Options { on_failure, max_attempts: 1, ..Options::default() }
}

#[test]
fn a_failure_is_tried_again_until_it_is_set_aside() {
    let mut play = Play::new(&[&[], &[0]], &[], Options::default()).with_lanes(1);
    assert_eq!(play.crash(0), "take 0 off L0 to @0; start 0.2 in L0 @0");
    assert_eq!(play.crash(0), "take 0 off L0 to @0; start 0.3 in L0 @0");
    assert_eq!(play.crash(0), "set 0 aside; release 0; skip 1 for 0; keep L0; over: Partly");
    assert_eq!(play.state.failures(0), 3);
    // A person begins the count anew.
    assert_eq!(play.on(&Event::Retry { task: 0 }), "0 waits; 1 waits; make L1 for 0 @0; set up L1");
    play.set_up(1);
    assert_eq!(play.done(0), "land [0]");
}

#[test]
fn failures_of_other_batches_count() {
    let mut all = tasks(&[&[], &[], &[1]]);
    (all[0].failures, all[1].failures) = (2, 3);
    let mut play = Play::of(all, Vec::new(), &[], &Options::default());
    assert_eq!(play.begin(), "set 1 aside; skip 2 for 1; make L0 for 0 @0; set up L0");
    play.set_up(0);
    assert_eq!(play.crash(0), "set 0 aside; release 0; keep L0; over: Partly");
}

#[test]
fn what_would_go_wrong_again_is_not_tried_again() {
    for class in [RunClass::Auth, RunClass::Budget, RunClass::TokenLimit, RunClass::Stopped] {
        let mut play = Play::new(&[&[]], &[], Options::default()).with_lanes(1);
        play.end(0, End::Failed(class));
        assert_eq!(play.state.fate(0), Some(Fate::Failed(Why::Run(class))));
        assert_eq!(play.state.failures(0), u32::from(class != RunClass::Stopped));
    }
}

#[test]
fn skipped_is_what_depends_on_it_and_nothing_else() {
    let after: &[&[usize]] = &[&[], &[0], &[1], &[], &[3], &[2, 4], &[]];
    let mut play = Play::new(after, &[], on_failure(TaskPolicy::SkipDependents)).with_lanes(3);
    let lines = play.crash(0);
    for (task, skipped) in [(1, true), (2, true), (3, false), (4, false), (5, true), (6, false)] {
        assert_eq!(lines.contains(&format!("skip {task} for 0")), skipped, "{task}: {lines}");
    }
}

#[test]
fn who_depends_on_what_brought_nothing_is_skipped_and_on_what_was_there_is_not() {
    let mut play = Play::new(&[&[], &[0], &[], &[2]], &[], Options::default()).with_lanes(2);
    assert_eq!(play.end(0, End::NoChange), "release 0; skip 1 for 0; discard L0");
    assert_eq!(play.end(2, End::Already), "release 2; make L2 for 3 @0; set up L2; discard L1");
}

#[test]
fn a_stopped_wave_ends_and_lands_and_nothing_more_starts() {
    let options = Options { mode: Mode::Waves, max_parallel: 2, ..on_failure(TaskPolicy::StopWave) };
    let mut play = Play::new(&[&[], &[], &[], &[0]], &[], options).with_lanes(2);
    assert_eq!(play.crash(1), "set 1 aside; release 1; keep L1");
    assert_eq!(play.done(0), "land [0]");
    assert_eq!(play.landed(&[0]), "release 0; discard L0; over: Stopped");
    assert_eq!(play.on(&Event::Resume), "make L2 for 2 @1; set up L2");
}

#[test]
fn stopping_all_stops_what_runs() {
    let mut play = Play::new(&[&[], &[], &[]], &[], on_failure(TaskPolicy::StopAll)).with_lanes(2);
    assert_eq!(play.crash(0), "set 0 aside; release 0; stop 1.1 hard; keep L0");
    // Its lane was being made; what it was for is not begun.
    assert_eq!(play.set_up(2), "");
    assert_eq!(
        play.end(1, End::Failed(RunClass::Stopped)),
        "release 1; release 2; keep L1; discard L2; over: Stopped"
    );
}

#[test]
fn what_cannot_land_pauses_and_then_blocks_its_dependents_only() {
    let mut play = Play::new(&[&[], &[0], &[]], &[], Options { max_parallel: 1, ..Options::default() });
    play.begin();
    play.set_up(0);
    play.done(0);
    play.on(&Event::ConflictCaptured { task: 0 });
    assert_eq!(
        play.on(&Event::ConflictGivenUp { task: 0 }),
        "0 failed: Conflict; release 0; skip 1 for 0; keep L0"
    );
    assert_eq!(play.set_up(1), "paused: Merge(0)");
    let mut other = Play { state: play.state.clone() };
    assert_eq!(play.on(&Event::Resume), "start 2.1 in L1 @0");
    // Or somebody resolves it meanwhile.
    assert_eq!(other.on(&Event::ConflictResolved { task: 0 }), "0 waits; 1 waits; land [0]");
    assert_eq!(other.landed(&[0]), "discard L0");
    assert_eq!(other.on(&Event::Resume), "make L2 for 1 @1; set up L2; queue 2");
}

#[test]
fn what_cannot_land_can_end_the_batch() {
    let options = Options { on_merge_failure: MergePolicy::Abort, ..Options::default() };
    let mut play = Play::new(&[&[], &[]], &[], options).with_lanes(2);
    play.done(0);
    assert_eq!(play.on(&Event::CheckFailed { task: 0 }), "0 failed: Check; release 0; stop 1.1; keep L0");
}

#[test]
fn checks_that_run_again_and_fail_again_do_not_pause_the_batch_again() {
    let mut play = Play::new(&[&[], &[]], &[], Options::default()).with_lanes(2);
    let is_to_pause = |play: &Play| play.state.word().starts_with("paus");
    play.done(0);
    play.on(&Event::CheckFailed { task: 0 });
    assert!(is_to_pause(&play));
    assert_eq!(play.on(&Event::CheckAgain { task: 0 }), "0 waits; land [0]");
    play.on(&Event::Resume);
    assert!(play.on(&Event::CheckFailed { task: 0 }).contains("0 failed: Check"));
    assert_eq!(play.state.word(), "running");
    // With other work it is.
    assert!(play.on(&Event::ConflictResolved { task: 0 }).contains("land [0]"));
    play.on(&Event::CheckFailed { task: 0 });
    assert!(is_to_pause(&play));
}

#[test]
fn without_anybody_to_resolve_it_a_conflict_is_given_up() {
    let mut play = Play::new(&[&[]], &[], Options { resolve: false, ..Options::default() }).with_lanes(1);
    play.done(0);
    assert_eq!(
        play.on(&Event::ConflictCaptured { task: 0 }),
        "0 failed: Conflict; release 0; keep L0; paused: Merge(0)"
    );
    assert_eq!(play.on(&Event::Resume), "over: Partly");
}

#[test]
fn what_is_spent_starts_nothing_and_raising_the_budget_goes_on() {
    let options = Options { budget: Some(100), max_parallel: 1, ..Options::default() };
    let mut play = Play::new(&[&[], &[]], &[], options).with_lanes(1);
    assert_eq!(play.on(&Event::Spent { total: 100 }), "");
    assert_eq!(play.done(0), "land [0]");
    // Nor is anybody sent to its conflict.
    assert_eq!(play.on(&Event::ConflictCaptured { task: 0 }), "paused: Budget");
    assert_eq!(play.on(&Event::Resume), "paused: Budget");
    assert_eq!(play.on(&Event::BudgetSet { most: Some(200) }), "");
    assert_eq!(play.on(&Event::Resume), "resolve 0; make L1 for 1 @0; set up L1");
}
