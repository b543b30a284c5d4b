//! Owns scenes by hand: modes, lanes, limits, and what somebody asks for meanwhile.

use super::play::{Play, phase, tasks};
use crate::store::records::RunClass;
use crate::swarm::schedule::{
    End, Event, Fate, Flaw, Left, Mode, Options, Outcome, PauseReason, Spread, State, Task, Work,
};

fn mode(mode: Mode) -> Options {
    Options { mode, ..Options::default() }
}

#[test]
fn a_task_lands_at_once_and_its_dependents_start_from_there() {
    let mut play = Play::new(&[&[], &[0], &[]], &[], Options::default());
    assert_eq!(play.begin(), "make L0 for 0 @0; set up L0; make L1 for 2 @0; set up L1");
    assert_eq!(play.set_up(1), "start 2.1 in L1 @0");
    assert_eq!(play.set_up(0), "start 0.1 in L0 @0");
    assert_eq!(play.done(0), "land [0]");
    assert_eq!(play.landed(&[0]), "release 0; make L2 for 1 @1; set up L2; discard L0");
    assert_eq!(play.set_up(2), "start 1.1 in L2 @1");
    assert_eq!(play.done(2), "land [2]");
    assert_eq!(play.done(1), "land [1]");
    assert_eq!(play.landed(&[2]), "release 2; discard L1");
    assert_eq!(play.landed(&[1]), "release 1; discard L2; over: Complete");
    assert_eq!(play.state.outcome_if_over(), Some(Outcome::Complete));
}

#[test]
fn a_wave_lands_together() {
    let mut play = Play::new(&[&[], &[], &[0]], &[], mode(Mode::Waves)).with_lanes(2);
    assert_eq!(play.done(0), "");
    assert_eq!(play.done(1), "land [0, 1]");
    assert_eq!(
        play.landed(&[0, 1]),
        "release 0; release 1; make L2 for 2 @1; set up L2; discard L0; discard L1"
    );
}

#[test]
fn a_phase_lands_together_and_what_depends_on_a_task_is_done_on_top_of_it() {
    let phases = vec![phase(&[0, 1, 2], true), phase(&[3, 4], false)];
    let mut play = Play::of(tasks(&[&[], &[0], &[], &[], &[]]), phases, &[], &mode(Mode::Phases));
    assert_eq!(play.begin(), "make L0 for 0 @0; set up L0; make L1 for 2 @0; set up L1");
    play.set_up(0);
    play.set_up(1);
    assert_eq!(play.done(0), "start 1.1 in L0 on 0");
    assert_eq!(play.done(2), "");
    assert_eq!(play.done(1), "land [0, 2, 1]");
    let second = play.landed(&[0, 2, 1]);
    assert!(second.contains("make L2 for 3 @1") && !second.contains("for 4"), "{second}");
    play.set_up(2);
    assert_eq!(play.done(3), "start 4.1 in L2 on 3");
    assert_eq!(play.done(4), "land [3, 4]");
}

#[test]
fn one_lane_has_the_whole_plan_and_lands_once() {
    let mut play = Play::new(&[&[], &[2], &[0]], &[], mode(Mode::OneLane)).with_lanes(1);
    assert_eq!(play.done(0), "start 2.1 in L0 on 0");
    assert_eq!(play.done(2), "start 1.1 in L0 on 2");
    assert_eq!(play.done(1), "land [0, 2, 1]");
    assert!(play.landed(&[0, 2, 1]).ends_with("discard L0; over: Complete"));
    assert_eq!(play.state.tasks_of(0), [0, 2, 1]);
}

#[test]
fn who_overlaps_shares_a_lane_and_a_failure_is_taken_back_for_the_next() {
    let once = Options { max_attempts: 1, mode: Mode::Waves, ..Options::default() };
    let mut play = Play::new(&[&[], &[], &[], &[1]], &[&[0, 1, 2]], once);
    assert_eq!(play.begin(), "make L0 for 0 @0; set up L0");
    play.set_up(0);
    assert_eq!(play.done(0), "start 1.1 in L0 on 0");
    assert_eq!(
        play.crash(1),
        "set 1 aside; release 1; skip 3 for 1; take 1 off L0 to on 0; start 2.1 in L0 on 0"
    );
    assert_eq!(play.done(2), "land [0, 2]");
    assert_eq!(play.state.fate(3), Some(Fate::Skipped));
}

#[test]
fn a_last_task_that_touches_everything_does_not_put_the_others_in_line() {
    let mut play = Play::new(&[&[], &[], &[0, 1]], &[&[0, 2], &[1, 2]], Options::default());
    assert_eq!(play.begin(), "make L0 for 0 @0; set up L0; make L1 for 1 @0; set up L1");
    play.set_up(0);
    play.set_up(1);
    play.done(0);
    play.done(1);
    assert_eq!(play.landed(&[0]), "release 0");
    // It goes into a lane that knows its files already.
    assert_eq!(play.landed(&[1]), "release 1; start 2.1 in L0 @2");
}

#[test]
fn no_more_run_than_may_and_a_conflict_takes_no_place() {
    let one = Options { max_parallel: 1, ..Options::default() };
    let mut play = Play::new(&[&[], &[], &[0]], &[], one);
    assert_eq!(play.begin(), "make L0 for 0 @0; set up L0; queue 1");
    play.set_up(0);
    assert_eq!(play.done(0), "land [0]; make L1 for 1 @0; set up L1");
    assert_eq!(play.on(&Event::ConflictCaptured { task: 0 }), "resolve 0");
    assert_eq!(play.set_up(1), "start 1.1 in L1 @0");
    assert_eq!(play.on(&Event::ConflictResolved { task: 0 }), "land [0]");
    assert_eq!(play.landed(&[0]), "release 0; queue 2; discard L0");
}

#[test]
fn others_leave_less_room_and_then_more() {
    let mut play = Play::new(&[&[], &[], &[]], &[], Options::default());
    assert_eq!(play.on(&Event::Slots { room: Some(1) }), "");
    assert_eq!(play.begin(), "make L0 for 0 @0; set up L0; queue 1; queue 2");
    assert_eq!(play.on(&Event::Slots { room: Some(0) }), "");
    // There is no room any more: the lane is ready, the task waits.
    assert_eq!(play.set_up(0), "queue 0");
    assert_eq!(play.on(&Event::Slots { room: None }).matches("start 0.1 in L0").count(), 1);
    assert_eq!(play.state.open_runs(), [(0, 1)]);
}

#[test]
fn spreads_differ_in_who_gets_which_lane() {
    let of = |spread, weights: &[u32]| {
        let task = |weight: &u32| Task { weight: *weight, ..Task::default() };
        let options = Options { spread, max_parallel: 2, mode: Mode::Waves, ..Options::default() };
        let mut play = Play::of(weights.iter().map(task).collect(), Vec::new(), &[], &options);
        (play.begin(), play.set_up(0), play.set_up(1), play)
    };
    let (_, _, _, mut own) = of(Spread::AffinityFirst, &[1, 1, 1, 1]);
    assert_eq!(own.done(1), "make L2 for 2 @0; set up L2");
    let (_, _, _, mut turns) = of(Spread::RoundRobin, &[1, 1, 1, 1]);
    assert_eq!(turns.done(1), "start 2.1 in L1 on 1");
    assert_eq!(turns.done(0), "start 3.1 in L0 on 0");
    let (begun, first, _, mut load) = of(Spread::LoadBalanced, &[1, 9, 5, 2]);
    assert_eq!(begun, "make L0 for 1 @0; set up L0; make L1 for 2 @0; set up L1; queue 3; queue 0");
    assert_eq!(first, "start 1.1 in L0 @0");
    assert_eq!(load.done(2), "start 3.1 in L1 on 2");
    assert_eq!(load.done(3), "start 0.1 in L1 on 3");
}

/// The help of `--strategy` says so.
#[test]
fn where_each_task_lands_as_it_is_done_spreads_hardly_differ() {
    for spread in [Spread::AffinityFirst, Spread::RoundRobin, Spread::LoadBalanced] {
        let options = Options { spread, max_parallel: 2, ..Options::default() };
        let mut play = Play::new(&[&[], &[], &[], &[]], &[], options).with_lanes(2);
        for task in 0..4 {
            let next = play.done(task);
            assert_eq!(
                next.contains(&format!("make L{0} for {0} @", task + 2)),
                task < 2,
                "{spread:?}: {next}"
            );
            play.set_up(task + 2);
            play.landed(&[task]);
        }
        for lane in 0..4 {
            assert_eq!(play.state.tasks_of(lane), [lane], "{spread:?}");
        }
    }
}

#[test]
fn the_lane_that_had_less_work_is_next() {
    let mut all = tasks(&[&[], &[], &[0, 1]]);
    all[0].weight = 9;
    let options =
        Options { spread: Spread::LoadBalanced, mode: Mode::Waves, max_parallel: 2, ..Options::default() };
    let mut play = Play::of(all, Vec::new(), &[], &options).with_lanes(2);
    play.done(0);
    play.done(1);
    assert_eq!(play.landed(&[0, 1]), "release 0; release 1; start 2.1 in L1 @1");
}

#[test]
fn a_lane_that_cannot_be_set_up_fails_its_task_only() {
    let mut play = Play::new(&[&[], &[0], &[]], &[], Options::default());
    play.begin();
    assert_eq!(
        play.on(&Event::SetUpFailed { lane: 0 }),
        "discard L0; 0 failed: SetUp; release 0; skip 1 for 0"
    );
    assert_eq!(play.set_up(1), "start 2.1 in L1 @0");
}

#[test]
fn what_another_batch_has_is_waited_for() {
    let mut play = Play::new(&[&[]], &[], Options::default());
    play.on(&Event::Claimed { task: 0 });
    assert_eq!(play.begin(), "");
    assert_eq!(play.on(&Event::Unclaimed { task: 0 }), "make L0 for 0 @0; set up L0");
}

#[test]
fn a_pause_lets_what_runs_end_and_land() {
    let mut play = Play::new(&[&[], &[0]], &[], Options::default()).with_lanes(1);
    assert_eq!(play.on(&Event::Pause), "");
    assert_eq!(play.done(0), "land [0]");
    assert_eq!(play.landed(&[0]), "release 0; discard L0; paused: Asked");
    assert_eq!(play.state.pause_reason(), Some(PauseReason::Asked));
    assert_eq!(play.on(&Event::Resume), "make L1 for 1 @1; set up L1");
}

#[test]
fn after_an_abort_nothing_is_run_twice() {
    let mut play = Play::new(&[&[], &[], &[0], &[1]], &[], mode(Mode::Waves)).with_lanes(2);
    play.done(0);
    assert_eq!(play.on(&Event::Abort { hard: false }), "stop 1.1");
    assert_eq!(play.on(&Event::Abort { hard: true }), "stop 1.1 hard");
    assert_eq!(
        play.end(1, End::Failed(RunClass::Stopped)),
        "release 0; release 1; keep L0; keep L1; over: Aborted"
    );
    let left: Vec<_> = (0..4).map(|task| play.state.fate(task)).collect();
    let of = |left| Some(Fate::Left(left));
    assert_eq!(left, [of(Left::NotLanded), of(Left::CutOff), of(Left::NotStarted), of(Left::NotStarted)]);
    assert_eq!(play.on(&Event::Resume), "start 1.2 in L1 @0");
    assert_eq!(play.state.failures(1), 0);
    assert_eq!(play.done(1), "land [0, 1]");
}

#[test]
fn who_takes_a_batch_up_starts_what_was_not_and_nothing_that_was() {
    let mut play = Play::new(&[&[], &[], &[]], &[], Options::default()).with_lanes(2);
    play.on(&Event::Started { task: 1, attempt: 1 });
    assert_eq!(
        play.on(&Event::TakenUp { runs: vec![(1, 1)] }),
        "make L2 for 2 @0; set up L2; start 0.1 in L0 @0"
    );
    assert_eq!(play.on(&Event::TakenUp { runs: vec![(0, 1), (1, 1)] }), "make L2 for 2 @0; set up L2");
    // One that was at work and is gone has failed, and is tried again.
    let again = play.on(&Event::TakenUp { runs: vec![(0, 1)] });
    assert!(again.ends_with("start 1.2 in L1 @0"), "{again}");
}

#[test]
fn all_that_is_known_follows_from_the_events() {
    let work = Work::new(tasks(&[&[], &[0]]), Vec::new(), Vec::new()).unwrap();
    let options = Options::default();
    let run = End::Failed(RunClass::Crashed);
    let events = [
        Event::Begun,
        Event::SetUp { lane: 0 },
        Event::Ended { task: 0, attempt: 1, end: run },
        Event::Pause,
    ];
    let mut state = State::new(&work, &options);
    for (at, event) in events.iter().enumerate() {
        assert!(!state.on(event).is_empty() || *event == Event::Pause);
        assert!(state == State::fold(&work, &options, &events[..=at]));
    }
}

/// Nothing is held against a task for which no agent could be started, and it is not tried for ever.
#[test]
fn a_start_that_fails_is_no_attempt() {
    let mut play = Play::new(&[&[], &[0]], &[], Options::default()).with_lanes(1);
    let refused = Event::Ended { task: 0, attempt: 1, end: End::NotStarted };
    assert_eq!(play.on(&refused), "start 0.1 in L0 @0");
    assert_eq!(play.on(&refused), "start 0.1 in L0 @0");
    let given_up = play.on(&refused);
    assert!(given_up.starts_with("0 failed: Start; release 0; skip 1 for 0"), "{given_up}");
    assert_eq!((play.state.attempts(0), play.state.failures(0)), (0, 0));
}

#[test]
fn what_is_no_plan_is_refused() {
    let of = |after: &[&[usize]], phases, overlaps| Work::new(tasks(after), phases, overlaps).unwrap_err();
    assert_eq!(of(&[&[1], &[0]], Vec::new(), Vec::new()), Flaw::Circle(vec![1, 0]));
    assert_eq!(of(&[&[7]], Vec::new(), Vec::new()), Flaw::NoSuchTask(7));
    assert_eq!(of(&[&[]], Vec::new(), vec![vec![3]]), Flaw::NoSuchTask(3));
    assert_eq!(of(&[&[], &[]], vec![phase(&[0], true)], Vec::new()), Flaw::NotInOnePhase(1));
    assert_eq!(of(&[&[]], vec![phase(&[0, 0], true)], Vec::new()), Flaw::NotInOnePhase(0));
}

#[test]
fn events_keep_their_form() {
    let events = [
        (Event::Begun, r#"{"event":"begun"}"#),
        (Event::TakenUp { runs: vec![(2, 1)] }, r#"{"event":"taken-up","runs":[[2,1]]}"#),
        (
            Event::Ended { task: 1, attempt: 2, end: End::Failed(RunClass::RateLimited) },
            r#"{"event":"ended","task":1,"attempt":2,"end":{"failed":"rate-limited"}}"#,
        ),
        (Event::Slots { room: None }, r#"{"event":"slots","room":null}"#),
    ];
    for (event, text) in events {
        assert_eq!(serde_json::to_string(&event).unwrap(), text);
        assert_eq!(serde_json::from_str::<Event>(text).unwrap(), event);
    }
}

#[test]
fn nonsense_changes_nothing() {
    let mut play = Play::new(&[&[]], &[], Options::default()).with_lanes(1);
    let before = play.state.clone();
    let events = [
        Event::Begun,
        Event::SetUp { lane: 9 },
        Event::SetUpFailed { lane: 0 },
        Event::Started { task: 0, attempt: 7 },
        Event::Ended { task: 9, attempt: 1, end: End::Done },
        Event::Landed { tasks: vec![0, 9] },
        Event::ConflictCaptured { task: 0 },
        Event::ConflictResolved { task: 0 },
        Event::ConflictGivenUp { task: 9 },
        Event::CheckFailed { task: 9 },
        Event::Claimed { task: 9 },
        Event::Retry { task: 9 },
    ];
    for event in events {
        assert_eq!(play.on(&event), "", "{event:?}");
        assert!(play.state == before, "{event:?}");
    }
}
