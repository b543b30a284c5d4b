//! Scheduler tests for landing modes, lanes, limits and user requests, as scenarios written by hand.

use proq_base::run_class::RunClass;

use super::batch_driver::{BatchDriver, build_phase, build_tasks};
use crate::schedule::action::{BatchOutcome, PauseReason};
use crate::schedule::event::{ScheduleEvent, TaskRunEnd};
use crate::schedule::options::{BatchOptions, LandingMode, LaneAssignment};
use crate::schedule::state::State;
use crate::schedule::task_phase::{TaskOutcome, UnfinishedPhase};
use crate::schedule::workload::{ScheduledTask, Workload, WorkloadError};

fn options_with_mode(mode: LandingMode) -> BatchOptions {
    BatchOptions { mode, ..BatchOptions::default() }
}

#[test]
fn task_lands_immediately_and_dependents_build_on_it() {
    let mut batch = BatchDriver::new(&[&[], &[0], &[]], &[], BatchOptions::default());
    assert_eq!(batch.start(), "make L0 for 0 @0; set up L0; make L1 for 2 @0; set up L1");
    assert_eq!(batch.set_up_lane(1), "start 2.1 in L1 @0");
    assert_eq!(batch.set_up_lane(0), "start 0.1 in L0 @0");
    assert_eq!(batch.complete_run(0), "land [0]");
    assert_eq!(batch.land_tasks(&[0]), "release 0; make L2 for 1 @1; set up L2; discard L0");
    assert_eq!(batch.set_up_lane(2), "start 1.1 in L2 @1");
    assert_eq!(batch.complete_run(2), "land [2]");
    assert_eq!(batch.complete_run(1), "land [1]");
    assert_eq!(batch.land_tasks(&[2]), "release 2; discard L1");
    assert_eq!(batch.land_tasks(&[1]), "release 1; discard L2; over: Complete");
    assert_eq!(batch.state.final_outcome(), Some(BatchOutcome::Complete));
}

#[test]
fn wave_lands_together() {
    let mut batch =
        BatchDriver::new(&[&[], &[], &[0]], &[], options_with_mode(LandingMode::Waves)).start_with_lanes(2);
    assert_eq!(batch.complete_run(0), "");
    assert_eq!(batch.complete_run(1), "land [0, 1]");
    assert_eq!(
        batch.land_tasks(&[0, 1]),
        "release 0; release 1; make L2 for 2 @1; set up L2; discard L0; discard L1"
    );
}

#[test]
fn phase_stacks_dependents_and_lands_together() {
    let phases = vec![build_phase(&[0, 1, 2], true), build_phase(&[3, 4], false)];
    let mut batch = BatchDriver::from_parts(
        build_tasks(&[&[], &[0], &[], &[], &[]]),
        phases,
        &[],
        &options_with_mode(LandingMode::Phases),
    );
    assert_eq!(batch.start(), "make L0 for 0 @0; set up L0; make L1 for 2 @0; set up L1");
    batch.set_up_lane(0);
    batch.set_up_lane(1);
    assert_eq!(batch.complete_run(0), "start 1.1 in L0 on 0");
    assert_eq!(batch.complete_run(2), "");
    assert_eq!(batch.complete_run(1), "land [0, 2, 1]");
    let actions = batch.land_tasks(&[0, 2, 1]);
    assert!(actions.contains("make L2 for 3 @1") && !actions.contains("for 4"), "{actions}");
    batch.set_up_lane(2);
    assert_eq!(batch.complete_run(3), "start 4.1 in L2 on 3");
    assert_eq!(batch.complete_run(4), "land [3, 4]");
}

#[test]
fn one_lane_mode_lands_plan_once() {
    let mut batch = BatchDriver::new(&[&[], &[2], &[0]], &[], options_with_mode(LandingMode::OneLane))
        .start_with_lanes(1);
    assert_eq!(batch.complete_run(0), "start 2.1 in L0 on 0");
    assert_eq!(batch.complete_run(2), "start 1.1 in L0 on 2");
    assert_eq!(batch.complete_run(1), "land [0, 2, 1]");
    assert!(batch.land_tasks(&[0, 2, 1]).ends_with("discard L0; over: Complete"));
    assert_eq!(batch.state.lane_tasks(0), [0, 2, 1]);
}

#[test]
fn overlapping_tasks_share_lane_and_failed_work_is_reset() {
    let options = BatchOptions { max_attempts: 1, mode: LandingMode::Waves, ..BatchOptions::default() };
    let mut batch = BatchDriver::new(&[&[], &[], &[], &[1]], &[&[0, 1, 2]], options);
    assert_eq!(batch.start(), "make L0 for 0 @0; set up L0");
    batch.set_up_lane(0);
    assert_eq!(batch.complete_run(0), "start 1.1 in L0 on 0");
    assert_eq!(
        batch.crash_run(1),
        "set 1 aside; release 1; skip 3 for 1; take 1 off L0 to on 0; start 2.1 in L0 on 0"
    );
    assert_eq!(batch.complete_run(2), "land [0, 2]");
    assert_eq!(batch.state.task_outcome(3), Some(TaskOutcome::Skipped));
}

#[test]
fn final_overlapping_task_does_not_serialize_others() {
    let mut batch = BatchDriver::new(&[&[], &[], &[0, 1]], &[&[0, 2], &[1, 2]], BatchOptions::default());
    assert_eq!(batch.start(), "make L0 for 0 @0; set up L0; make L1 for 1 @0; set up L1");
    batch.set_up_lane(0);
    batch.set_up_lane(1);
    batch.complete_run(0);
    batch.complete_run(1);
    assert_eq!(batch.land_tasks(&[0]), "release 0");
    // Task 2 runs in a lane that already contains its files' changes.
    assert_eq!(batch.land_tasks(&[1]), "release 1; start 2.1 in L0 @2");
}

#[test]
fn limits_runs_and_conflict_uses_no_capacity() {
    let options = BatchOptions { max_parallel: 1, ..BatchOptions::default() };
    let mut batch = BatchDriver::new(&[&[], &[], &[0]], &[], options);
    assert_eq!(batch.start(), "make L0 for 0 @0; set up L0; queue 1");
    batch.set_up_lane(0);
    assert_eq!(batch.complete_run(0), "land [0]; make L1 for 1 @0; set up L1");
    assert_eq!(batch.handle(&ScheduleEvent::ConflictCaptured { task: 0 }), "resolve 0");
    assert_eq!(batch.set_up_lane(1), "start 1.1 in L1 @0");
    assert_eq!(batch.handle(&ScheduleEvent::ConflictResolved { task: 0 }), "land [0]");
    assert_eq!(batch.land_tasks(&[0]), "release 0; queue 2; discard L0");
}

#[test]
fn follows_changes_of_capacity() {
    let mut batch = BatchDriver::new(&[&[], &[], &[]], &[], BatchOptions::default());
    assert_eq!(batch.handle(&ScheduleEvent::CapacityChanged { capacity: Some(1) }), "");
    assert_eq!(batch.start(), "make L0 for 0 @0; set up L0; queue 1; queue 2");
    assert_eq!(batch.handle(&ScheduleEvent::CapacityChanged { capacity: Some(0) }), "");
    // There is no capacity any more: the lane is ready, and the task waits.
    assert_eq!(batch.set_up_lane(0), "queue 0");
    assert_eq!(
        batch.handle(&ScheduleEvent::CapacityChanged { capacity: None }).matches("start 0.1 in L0").count(),
        1
    );
    assert_eq!(batch.state.open_runs(), [(0, 1)]);
}

#[test]
fn lane_assignments_choose_different_lanes() {
    let start_with = |spread, weights: &[u32]| {
        let task = |weight: &u32| ScheduledTask { weight: *weight, ..ScheduledTask::default() };
        let options = BatchOptions {
            lane_assignment: spread,
            max_parallel: 2,
            mode: LandingMode::Waves,
            ..BatchOptions::default()
        };
        let mut batch =
            BatchDriver::from_parts(weights.iter().map(task).collect(), Vec::new(), &[], &options);
        (batch.start(), batch.set_up_lane(0), batch.set_up_lane(1), batch)
    };
    let (_, _, _, mut affinity) = start_with(LaneAssignment::AffinityFirst, &[1, 1, 1, 1]);
    assert_eq!(affinity.complete_run(1), "make L2 for 2 @0; set up L2");
    let (_, _, _, mut round_robin) = start_with(LaneAssignment::RoundRobin, &[1, 1, 1, 1]);
    assert_eq!(round_robin.complete_run(1), "start 2.1 in L1 on 1");
    assert_eq!(round_robin.complete_run(0), "start 3.1 in L0 on 0");
    let (first_actions, lane_0_actions, _, mut balanced) =
        start_with(LaneAssignment::LoadBalanced, &[1, 9, 5, 2]);
    assert_eq!(first_actions, "make L0 for 1 @0; set up L0; make L1 for 2 @0; set up L1; queue 3; queue 0");
    assert_eq!(lane_0_actions, "start 1.1 in L0 @0");
    assert_eq!(balanced.complete_run(2), "start 3.1 in L1 on 2");
    assert_eq!(balanced.complete_run(3), "start 0.1 in L1 on 3");
}

/// The help of `--strategy` makes this claim.
#[test]
fn lane_assignments_are_equal_in_continuous_mode() {
    for spread in [LaneAssignment::AffinityFirst, LaneAssignment::RoundRobin, LaneAssignment::LoadBalanced] {
        let options = BatchOptions { lane_assignment: spread, max_parallel: 2, ..BatchOptions::default() };
        let mut batch = BatchDriver::new(&[&[], &[], &[], &[]], &[], options).start_with_lanes(2);
        for task in 0..4 {
            let actions = batch.complete_run(task);
            assert_eq!(
                actions.contains(&format!("make L{0} for {0} @", task + 2)),
                task < 2,
                "{spread:?}: {actions}"
            );
            batch.set_up_lane(task + 2);
            batch.land_tasks(&[task]);
        }
        for lane in 0..4 {
            assert_eq!(batch.state.lane_tasks(lane), [lane], "{spread:?}");
        }
    }
}

#[test]
fn load_balancing_picks_lane_with_less_work() {
    let mut plan_tasks = build_tasks(&[&[], &[], &[0, 1]]);
    plan_tasks[0].weight = 9;
    let options = BatchOptions {
        lane_assignment: LaneAssignment::LoadBalanced,
        mode: LandingMode::Waves,
        max_parallel: 2,
        ..BatchOptions::default()
    };
    let mut batch = BatchDriver::from_parts(plan_tasks, Vec::new(), &[], &options).start_with_lanes(2);
    batch.complete_run(0);
    batch.complete_run(1);
    assert_eq!(batch.land_tasks(&[0, 1]), "release 0; release 1; start 2.1 in L1 @1");
}

#[test]
fn failed_lane_set_up_fails_only_its_task() {
    let mut batch = BatchDriver::new(&[&[], &[0], &[]], &[], BatchOptions::default());
    batch.start();
    assert_eq!(
        batch.handle(&ScheduleEvent::LaneSetUpFailed { lane: 0 }),
        "discard L0; 0 failed: SetUpFailed; release 0; skip 1 for 0"
    );
    assert_eq!(batch.set_up_lane(1), "start 2.1 in L1 @0");
}

#[test]
fn waits_for_task_claimed_by_another_batch() {
    let mut batch = BatchDriver::new(&[&[]], &[], BatchOptions::default());
    batch.handle(&ScheduleEvent::ClaimedElsewhere { task: 0 });
    assert_eq!(batch.start(), "");
    assert_eq!(batch.handle(&ScheduleEvent::ClaimEnded { task: 0 }), "make L0 for 0 @0; set up L0");
}

#[test]
fn pause_lets_running_tasks_finish_and_land() {
    let mut batch = BatchDriver::new(&[&[], &[0]], &[], BatchOptions::default()).start_with_lanes(1);
    assert_eq!(batch.handle(&ScheduleEvent::Pause), "");
    assert_eq!(batch.complete_run(0), "land [0]");
    assert_eq!(batch.land_tasks(&[0]), "release 0; discard L0; paused: Requested");
    assert_eq!(batch.state.pause_reason(), Some(PauseReason::Requested));
    assert_eq!(batch.handle(&ScheduleEvent::Resume), "make L1 for 1 @1; set up L1");
}

#[test]
fn resume_after_abort_runs_nothing_twice() {
    let mut batch = BatchDriver::new(&[&[], &[], &[0], &[1]], &[], options_with_mode(LandingMode::Waves))
        .start_with_lanes(2);
    batch.complete_run(0);
    assert_eq!(batch.handle(&ScheduleEvent::Abort { hard: false }), "stop 1.1");
    assert_eq!(batch.handle(&ScheduleEvent::Abort { hard: true }), "stop 1.1 hard");
    assert_eq!(
        batch.end_run(1, TaskRunEnd::Failed(RunClass::Stopped)),
        "release 0; release 1; keep L0; keep L1; over: Aborted"
    );
    let outcomes: Vec<_> = (0..4).map(|task| batch.state.task_outcome(task)).collect();
    let unfinished = |phase| Some(TaskOutcome::Unfinished(phase));
    assert_eq!(
        outcomes,
        [
            unfinished(UnfinishedPhase::NotLanded),
            unfinished(UnfinishedPhase::Interrupted),
            unfinished(UnfinishedPhase::NotStarted),
            unfinished(UnfinishedPhase::NotStarted)
        ]
    );
    assert_eq!(batch.handle(&ScheduleEvent::Resume), "start 1.2 in L1 @0");
    assert_eq!(batch.state.failures(1), 0);
    assert_eq!(batch.complete_run(1), "land [0, 1]");
}

#[test]
fn takeover_starts_only_runs_that_did_not_start() {
    let mut batch = BatchDriver::new(&[&[], &[], &[]], &[], BatchOptions::default()).start_with_lanes(2);
    batch.handle(&ScheduleEvent::RunStarted { task: 1, attempt: 1 });
    assert_eq!(
        batch.handle(&ScheduleEvent::BatchTakenOver { runs: vec![(1, 1)] }),
        "make L2 for 2 @0; set up L2; start 0.1 in L0 @0"
    );
    assert_eq!(
        batch.handle(&ScheduleEvent::BatchTakenOver { runs: vec![(0, 1), (1, 1)] }),
        "make L2 for 2 @0; set up L2"
    );
    // A run that was running and is not found any more has failed, and is retried.
    let actions = batch.handle(&ScheduleEvent::BatchTakenOver { runs: vec![(0, 1)] });
    assert!(actions.ends_with("start 1.2 in L1 @0"), "{actions}");
}

#[test]
fn state_is_a_fold_of_events() {
    let workload = Workload::new(build_tasks(&[&[], &[0]]), Vec::new(), Vec::new()).unwrap();
    let options = BatchOptions::default();
    let crashed = TaskRunEnd::Failed(RunClass::Crashed);
    let events = [
        ScheduleEvent::BatchStarted,
        ScheduleEvent::LaneSetUp { lane: 0 },
        ScheduleEvent::RunEnded { task: 0, attempt: 1, end: crashed },
        ScheduleEvent::Pause,
    ];
    let mut state = State::new(&workload, &options);
    for (index, event) in events.iter().enumerate() {
        assert!(!state.handle(event).is_empty() || *event == ScheduleEvent::Pause);
        assert!(state == State::replay_events(&workload, &options, &events[..=index]));
    }
}

/// A failed start does not count against the task, and the number of starts is limited.
#[test]
fn failed_start_counts_as_no_attempt() {
    let mut batch = BatchDriver::new(&[&[], &[0]], &[], BatchOptions::default()).start_with_lanes(1);
    let not_started = ScheduleEvent::RunEnded { task: 0, attempt: 1, end: TaskRunEnd::NotStarted };
    assert_eq!(batch.handle(&not_started), "start 0.1 in L0 @0");
    assert_eq!(batch.handle(&not_started), "start 0.1 in L0 @0");
    let actions = batch.handle(&not_started);
    assert!(actions.starts_with("0 failed: NotStarted; release 0; skip 1 for 0"), "{actions}");
    assert_eq!((batch.state.attempts(0), batch.state.failures(0)), (0, 0));
}

#[test]
fn refuses_invalid_workload() {
    let workload_error = |dependencies: &[&[usize]], phases, overlaps| {
        Workload::new(build_tasks(dependencies), phases, overlaps).unwrap_err()
    };
    assert_eq!(workload_error(&[&[1], &[0]], Vec::new(), Vec::new()), WorkloadError::Cycle(vec![1, 0]));
    assert_eq!(workload_error(&[&[7]], Vec::new(), Vec::new()), WorkloadError::UnknownTask(7));
    assert_eq!(workload_error(&[&[]], Vec::new(), vec![vec![3]]), WorkloadError::UnknownTask(3));
    assert_eq!(
        workload_error(&[&[], &[]], vec![build_phase(&[0], true)], Vec::new()),
        WorkloadError::NotInOnePhase(1)
    );
    assert_eq!(
        workload_error(&[&[]], vec![build_phase(&[0, 0], true)], Vec::new()),
        WorkloadError::NotInOnePhase(0)
    );
}

#[test]
fn serialized_events_are_stable() {
    let events = [
        (ScheduleEvent::BatchStarted, r#"{"event":"begun"}"#),
        (ScheduleEvent::BatchTakenOver { runs: vec![(2, 1)] }, r#"{"event":"taken-up","runs":[[2,1]]}"#),
        (
            ScheduleEvent::RunEnded { task: 1, attempt: 2, end: TaskRunEnd::Failed(RunClass::RateLimited) },
            r#"{"event":"ended","task":1,"attempt":2,"end":{"failed":"rate-limited"}}"#,
        ),
        (ScheduleEvent::CapacityChanged { capacity: None }, r#"{"event":"slots","room":null}"#),
    ];
    for (event, text) in events {
        assert_eq!(serde_json::to_string(&event).unwrap(), text);
        assert_eq!(serde_json::from_str::<ScheduleEvent>(text).unwrap(), event);
    }
}

#[test]
fn impossible_events_change_nothing() {
    let mut batch = BatchDriver::new(&[&[]], &[], BatchOptions::default()).start_with_lanes(1);
    let before = batch.state.clone();
    let events = [
        ScheduleEvent::BatchStarted,
        ScheduleEvent::LaneSetUp { lane: 9 },
        ScheduleEvent::LaneSetUpFailed { lane: 0 },
        ScheduleEvent::RunStarted { task: 0, attempt: 7 },
        ScheduleEvent::RunEnded { task: 9, attempt: 1, end: TaskRunEnd::Done },
        ScheduleEvent::Landed { tasks: vec![0, 9] },
        ScheduleEvent::ConflictCaptured { task: 0 },
        ScheduleEvent::ConflictResolved { task: 0 },
        ScheduleEvent::ConflictGivenUp { task: 9 },
        ScheduleEvent::CheckFailed { task: 9 },
        ScheduleEvent::ClaimedElsewhere { task: 9 },
        ScheduleEvent::Retry { task: 9 },
    ];
    for event in events {
        assert_eq!(batch.handle(&event), "", "{event:?}");
        assert!(batch.state == before, "{event:?}");
    }
}
