//! Owns scenes by hand about what comes late: resolved conflicts and tasks tried again, while others have gone on.

use super::play::{Play, phase, tasks};
use crate::store::records::RunClass;
use crate::swarm::schedule::{End, Event, Mode, Options, Spread};

/// Wave one is 0 and 2, wave two 1 and 3; 3 needs both of the first. 0 has a conflict, and lands when 1 is done already.
fn late_landing(spread: Spread, overlaps: &[&[usize]]) -> (Play, String) {
    let options = Options { mode: Mode::Waves, spread, max_parallel: 1, ..Options::default() };
    let mut play = Play::new(&[&[], &[2], &[], &[0, 2]], overlaps, options);
    play.begin();
    play.set_up(0);
    let second = play.done(0);
    if second.contains("make L1") {
        play.set_up(1);
    }
    assert_eq!(play.done(2), "land [0, 2]");
    assert_eq!(play.on(&Event::ConflictCaptured { task: 0 }), "resolve 0");
    let next = play.landed(&[2]);
    let lane = if next.contains("make L1") { 1 } else { 2 };
    assert!(next.contains(&format!("make L{lane} for 1 @1")), "{next}");
    play.set_up(lane);
    assert_eq!(play.done(1), "");
    assert_eq!(play.on(&Event::ConflictResolved { task: 0 }), "land [0]");
    let late = play.landed(&[0]);
    (play, late)
}

#[test]
fn what_landed_late_is_not_below_work_that_began_before() {
    let (_, late) = late_landing(Spread::RoundRobin, &[]);
    // The only lane holds work of the wave that 3 is to land with, and is nothing to build on. So that lands without 3.
    assert_eq!(late, "release 0; land [1]; make L2 for 3 @2; set up L2; discard L0");
}

#[test]
fn who_overlaps_stays_in_its_lane_even_so() {
    let (mut play, late) = late_landing(Spread::AffinityFirst, &[&[1, 3]]);
    assert_eq!(late, "release 0; land [1]; discard L0");
    assert_eq!(play.landed(&[1]), "release 1; start 3.1 in L2 @3");
}

#[test]
fn what_stands_on_work_that_is_done_anew_is_done_anew() {
    let options = Options { mode: Mode::OneLane, ..Options::default() };
    let mut play = Play::new(&[&[], &[0], &[]], &[], options).with_lanes(1);
    play.done(0);
    play.done(1);
    assert_eq!(play.done(2), "land [0, 1, 2]");
    assert_eq!(
        play.on(&Event::CheckFailed { task: 0 }),
        "0 failed: Check; release 0; skip 1 for 0; release 1; keep L0"
    );
    assert_eq!(play.landed(&[2]), "release 2; paused: Merge(0)");
    assert_eq!(play.on(&Event::Retry { task: 0 }), "0 waits; 1 waits");
    assert_eq!(play.on(&Event::Resume), "make L1 for 0 @1; set up L1");
    assert_eq!(play.set_up(1), "start 0.2 in L1 @1");
    assert_eq!(play.done(0), "start 1.2 in L1 on 0");
    assert_eq!(play.done(1), "land [0, 1]");
}

#[test]
fn what_was_resolved_lands_at_once() {
    let options = Options { mode: Mode::Waves, max_attempts: 1, ..Options::default() };
    let mut play = Play::new(&[&[], &[]], &[], options).with_lanes(2);
    play.crash(1);
    assert_eq!(play.done(0), "land [0]");
    play.on(&Event::ConflictCaptured { task: 0 });
    // The wave is not through any more.
    assert!(play.on(&Event::Retry { task: 1 }).contains("make L2 for 1"));
    assert_eq!(play.on(&Event::ConflictResolved { task: 0 }), "land [0]");
}

#[test]
fn a_task_of_an_earlier_wave_is_not_done_on_top_of_a_later_one() {
    let spread = Spread::RoundRobin;
    let options =
        Options { mode: Mode::Waves, spread, max_parallel: 2, max_attempts: 1, ..Options::default() };
    let mut play = Play::new(&[&[], &[], &[1], &[1]], &[], options).with_lanes(2);
    play.crash(0);
    play.done(1);
    assert_eq!(play.landed(&[1]), "release 1; take 0 off L0 to @1; start 2.1 in L0 @1; start 3.1 in L1 @1");
    assert_eq!(play.done(2), "");
    assert_eq!(play.on(&Event::Retry { task: 0 }), "0 waits");
    assert_eq!(play.done(3), "land [2, 3]; make L2 for 0 @1; set up L2");
}

#[test]
fn a_phase_waits_for_the_conflicts_of_the_one_before() {
    for mode in [Mode::Continuous, Mode::Waves, Mode::Phases] {
        let phases = vec![phase(&[0, 1], true), phase(&[2], true)];
        let options = Options { mode, ..Options::default() };
        let mut play = Play::of(tasks(&[&[], &[], &[]]), phases, &[], &options).with_lanes(2);
        play.done(0);
        play.done(1);
        assert_eq!(play.on(&Event::ConflictCaptured { task: 1 }), "resolve 1", "{mode:?}");
        let next = play.landed(&[0]);
        assert!(!next.contains('2'), "{mode:?}: {next}");
        assert_eq!(play.on(&Event::ConflictResolved { task: 1 }), "land [1]", "{mode:?}");
        let next = play.landed(&[1]);
        assert!(next.contains("make L2 for 2 @2") || next.contains("start 2.1"), "{mode:?}: {next}");
    }
}

#[test]
fn what_needs_a_task_waits_for_it_again_when_its_landing_was_taken_back() {
    let aborted = || {
        let mut play = Play::new(&[&[], &[0], &[1]], &[], Options::default()).with_lanes(1);
        play.done(0);
        assert_eq!(play.landed(&[0]), "release 0; make L1 for 1 @1; set up L1; discard L0");
        play.set_up(1);
        play.on(&Event::Abort { hard: true });
        play.end(1, End::Failed(RunClass::Stopped));
        play
    };
    let mut play = aborted();
    assert_eq!(play.on(&Event::TakenBack { task: 0, kept: true }), "0 waits");
    assert_eq!(play.on(&Event::Resume), "land [0]");
    assert_eq!(play.landed(&[0]), "start 1.2 in L1 @1; discard L0");
    let mut play = aborted();
    assert_eq!(play.on(&Event::TakenBack { task: 0, kept: false }), "0 waits");
    assert_eq!(play.on(&Event::Resume), "make L2 for 0 @2; set up L2");
    // Of what never landed, nothing can be taken back.
    assert_eq!(play.on(&Event::TakenBack { task: 1, kept: true }), "");
}

#[test]
fn work_on_top_of_what_is_done_anew_is_done_anew_too() {
    let options = Options { mode: Mode::Waves, max_parallel: 2, ..Options::default() };
    let mut play = Play::new(&[&[], &[0], &[0]], &[], options).with_lanes(1);
    play.done(0);
    play.landed(&[0]);
    play.set_up(1);
    play.set_up(2);
    play.done(1);
    play.on(&Event::Pause);
    assert!(play.done(2).starts_with("land [1, 2]"));
    play.landed(&[1]);
    play.on(&Event::ConflictCaptured { task: 2 });
    play.on(&Event::ConflictResolved { task: 2 });
    play.on(&Event::TakenBack { task: 0, kept: false });
    play.on(&Event::TakenBack { task: 1, kept: false });
    assert_eq!(play.state.attempts(0), 1);
    let next = play.on(&Event::Resume);
    assert!(next.contains(" for 0 @") && !next.contains(" for 1 "), "{next}");
}
