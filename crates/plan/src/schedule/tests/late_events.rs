//! Scheduler tests for late events: conflicts resolved and tasks retried after other tasks have continued.

use proq_base::run_class::RunClass;

use super::batch_driver::{BatchDriver, build_phase, build_tasks};
use crate::schedule::event::{ScheduleEvent, TaskRunEnd};
use crate::schedule::options::{BatchOptions, LandingMode, LaneAssignment};

/// Runs two waves, tasks 0 and 2, then 1 and 3, where 3 depends on 0 and 2. Task 0 has a conflict and lands
/// when 1 is already done. Returns the batch and the actions of that landing.
fn land_after_conflict(lane_assignment: LaneAssignment, overlaps: &[&[usize]]) -> (BatchDriver, String) {
    let options = BatchOptions {
        mode: LandingMode::Waves,
        lane_assignment,
        max_parallel: 1,
        ..BatchOptions::default()
    };
    let mut batch = BatchDriver::new(&[&[], &[2], &[], &[0, 2]], overlaps, options);
    batch.start();
    batch.set_up_lane(0);
    let first_actions = batch.complete_run(0);
    if first_actions.contains("make L1") {
        batch.set_up_lane(1);
    }
    assert_eq!(batch.complete_run(2), "land [0, 2]");
    assert_eq!(batch.handle(&ScheduleEvent::ConflictCaptured { task: 0 }), "resolve 0");
    let landed_actions = batch.land_tasks(&[2]);
    let lane = if landed_actions.contains("make L1") { 1 } else { 2 };
    assert!(landed_actions.contains(&format!("make L{lane} for 1 @1")), "{landed_actions}");
    batch.set_up_lane(lane);
    assert_eq!(batch.complete_run(1), "");
    assert_eq!(batch.handle(&ScheduleEvent::ConflictResolved { task: 0 }), "land [0]");
    let actions = batch.land_tasks(&[0]);
    (batch, actions)
}

#[test]
fn late_landing_is_not_base_of_earlier_work() {
    let (_, actions) = land_after_conflict(LaneAssignment::RoundRobin, &[]);
    // The only lane contains work of the wave with which task 3 is to land, and has no base for task 3. So
    // that wave lands without 3.
    assert_eq!(actions, "release 0; land [1]; make L2 for 3 @2; set up L2; discard L0");
}

#[test]
fn overlapping_task_waits_for_its_lane() {
    let (mut batch, actions) = land_after_conflict(LaneAssignment::AffinityFirst, &[&[1, 3]]);
    assert_eq!(actions, "release 0; land [1]; discard L0");
    assert_eq!(batch.land_tasks(&[1]), "release 1; start 3.1 in L2 @3");
}

#[test]
fn retry_reruns_tasks_stacked_on_failed_work() {
    let options = BatchOptions { mode: LandingMode::OneLane, ..BatchOptions::default() };
    let mut batch = BatchDriver::new(&[&[], &[0], &[]], &[], options).start_with_lanes(1);
    batch.complete_run(0);
    batch.complete_run(1);
    assert_eq!(batch.complete_run(2), "land [0, 1, 2]");
    assert_eq!(
        batch.handle(&ScheduleEvent::CheckFailed { task: 0 }),
        "0 failed: CheckFailed; release 0; skip 1 for 0; release 1; keep L0"
    );
    assert_eq!(batch.land_tasks(&[2]), "release 2; paused: LandingFailed(0)");
    assert_eq!(batch.handle(&ScheduleEvent::Retry { task: 0 }), "0 waits; 1 waits");
    assert_eq!(batch.handle(&ScheduleEvent::Resume), "make L1 for 0 @1; set up L1");
    assert_eq!(batch.set_up_lane(1), "start 0.2 in L1 @1");
    assert_eq!(batch.complete_run(0), "start 1.2 in L1 on 0");
    assert_eq!(batch.complete_run(1), "land [0, 1]");
}

#[test]
fn resolved_task_lands_immediately() {
    let options = BatchOptions { mode: LandingMode::Waves, max_attempts: 1, ..BatchOptions::default() };
    let mut batch = BatchDriver::new(&[&[], &[]], &[], options).start_with_lanes(2);
    batch.crash_run(1);
    assert_eq!(batch.complete_run(0), "land [0]");
    batch.handle(&ScheduleEvent::ConflictCaptured { task: 0 });
    // The wave is unfinished again.
    assert!(batch.handle(&ScheduleEvent::Retry { task: 1 }).contains("make L2 for 1"));
    assert_eq!(batch.handle(&ScheduleEvent::ConflictResolved { task: 0 }), "land [0]");
}

#[test]
fn earlier_wave_does_not_build_on_later_wave() {
    let spread = LaneAssignment::RoundRobin;
    let options = BatchOptions {
        mode: LandingMode::Waves,
        lane_assignment: spread,
        max_parallel: 2,
        max_attempts: 1,
        ..BatchOptions::default()
    };
    let mut batch = BatchDriver::new(&[&[], &[], &[1], &[1]], &[], options).start_with_lanes(2);
    batch.crash_run(0);
    batch.complete_run(1);
    assert_eq!(
        batch.land_tasks(&[1]),
        "release 1; take 0 off L0 to @1; start 2.1 in L0 @1; start 3.1 in L1 @1"
    );
    assert_eq!(batch.complete_run(2), "");
    assert_eq!(batch.handle(&ScheduleEvent::Retry { task: 0 }), "0 waits");
    assert_eq!(batch.complete_run(3), "land [2, 3]; make L2 for 0 @1; set up L2");
}

#[test]
fn phase_waits_for_conflicts_of_earlier_phase() {
    for mode in [LandingMode::Continuous, LandingMode::Waves, LandingMode::Phases] {
        let phases = vec![build_phase(&[0, 1], true), build_phase(&[2], true)];
        let options = BatchOptions { mode, ..BatchOptions::default() };
        let mut batch =
            BatchDriver::from_parts(build_tasks(&[&[], &[], &[]]), phases, &[], &options).start_with_lanes(2);
        batch.complete_run(0);
        batch.complete_run(1);
        assert_eq!(batch.handle(&ScheduleEvent::ConflictCaptured { task: 1 }), "resolve 1", "{mode:?}");
        let actions = batch.land_tasks(&[0]);
        assert!(!actions.contains('2'), "{mode:?}: {actions}");
        assert_eq!(batch.handle(&ScheduleEvent::ConflictResolved { task: 1 }), "land [1]", "{mode:?}");
        let actions = batch.land_tasks(&[1]);
        assert!(actions.contains("make L2 for 2 @2") || actions.contains("start 2.1"), "{mode:?}: {actions}");
    }
}

#[test]
fn undone_landing_blocks_dependents_again() {
    let aborted_batch = || {
        let mut batch =
            BatchDriver::new(&[&[], &[0], &[1]], &[], BatchOptions::default()).start_with_lanes(1);
        batch.complete_run(0);
        assert_eq!(batch.land_tasks(&[0]), "release 0; make L1 for 1 @1; set up L1; discard L0");
        batch.set_up_lane(1);
        batch.handle(&ScheduleEvent::Abort { hard: true });
        batch.end_run(1, TaskRunEnd::Failed(RunClass::Stopped));
        batch
    };
    let mut batch = aborted_batch();
    assert_eq!(batch.handle(&ScheduleEvent::LandingUndone { task: 0, work_kept: true }), "0 waits");
    assert_eq!(batch.handle(&ScheduleEvent::Resume), "land [0]");
    assert_eq!(batch.land_tasks(&[0]), "start 1.2 in L1 @1; discard L0");
    let mut batch = aborted_batch();
    assert_eq!(batch.handle(&ScheduleEvent::LandingUndone { task: 0, work_kept: false }), "0 waits");
    assert_eq!(batch.handle(&ScheduleEvent::Resume), "make L2 for 0 @2; set up L2");
    // A landing can be undone only for a task that landed.
    assert_eq!(batch.handle(&ScheduleEvent::LandingUndone { task: 1, work_kept: true }), "");
}

#[test]
fn undone_landing_reruns_dependent_work() {
    let options = BatchOptions { mode: LandingMode::Waves, max_parallel: 2, ..BatchOptions::default() };
    let mut batch = BatchDriver::new(&[&[], &[0], &[0]], &[], options).start_with_lanes(1);
    batch.complete_run(0);
    batch.land_tasks(&[0]);
    batch.set_up_lane(1);
    batch.set_up_lane(2);
    batch.complete_run(1);
    batch.handle(&ScheduleEvent::Pause);
    assert!(batch.complete_run(2).starts_with("land [1, 2]"));
    batch.land_tasks(&[1]);
    batch.handle(&ScheduleEvent::ConflictCaptured { task: 2 });
    batch.handle(&ScheduleEvent::ConflictResolved { task: 2 });
    batch.handle(&ScheduleEvent::LandingUndone { task: 0, work_kept: false });
    batch.handle(&ScheduleEvent::LandingUndone { task: 1, work_kept: false });
    assert_eq!(batch.state.attempts(0), 1);
    let actions = batch.handle(&ScheduleEvent::Resume);
    assert!(actions.contains(" for 0 @") && !actions.contains(" for 1 "), "{actions}");
}
