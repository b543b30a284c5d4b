//! Scheduler tests for failures: their effect on other tasks, and when a task is retried.

use proq_base::money::NanoDollars;
use proq_base::run_class::RunClass;

use super::batch_driver::{BatchDriver, build_tasks};
use crate::schedule::event::{ScheduleEvent, TaskRunEnd};
use crate::schedule::options::{BatchOptions, LandingFailurePolicy, LandingMode, TaskFailurePolicy};
use crate::schedule::task_phase::{FailureReason, TaskOutcome};

fn options_with_policy(policy: TaskFailurePolicy) -> BatchOptions {
    BatchOptions { on_failure: policy, max_attempts: 1, ..BatchOptions::default() }
}

#[test]
fn retries_failure_until_task_is_set_aside() {
    let mut batch = BatchDriver::new(&[&[], &[0]], &[], BatchOptions::default()).start_with_lanes(1);
    assert_eq!(batch.crash_run(0), "take 0 off L0 to @0; start 0.2 in L0 @0");
    assert_eq!(batch.crash_run(0), "take 0 off L0 to @0; start 0.3 in L0 @0");
    assert_eq!(batch.crash_run(0), "set 0 aside; release 0; skip 1 for 0; keep L0; over: Partial");
    assert_eq!(batch.state.failures(0), 3);
    // A retry by the user resets the failure count.
    assert_eq!(
        batch.handle(&ScheduleEvent::Retry { task: 0 }),
        "0 waits; 1 waits; make L1 for 0 @0; set up L1"
    );
    batch.set_up_lane(1);
    assert_eq!(batch.complete_run(0), "land [0]");
}

#[test]
fn counts_failures_of_earlier_batches() {
    let mut plan_tasks = build_tasks(&[&[], &[], &[1]]);
    (plan_tasks[0].failures, plan_tasks[1].failures) = (2, 3);
    let mut batch = BatchDriver::from_parts(plan_tasks, Vec::new(), &[], &BatchOptions::default());
    assert_eq!(batch.start(), "set 1 aside; skip 2 for 1; make L0 for 0 @0; set up L0");
    batch.set_up_lane(0);
    assert_eq!(batch.crash_run(0), "set 0 aside; release 0; keep L0; over: Partial");
}

#[test]
fn does_not_retry_permanent_failures() {
    for class in [RunClass::Auth, RunClass::Budget, RunClass::TokenLimit, RunClass::Stopped] {
        let mut batch = BatchDriver::new(&[&[]], &[], BatchOptions::default()).start_with_lanes(1);
        batch.end_run(0, TaskRunEnd::Failed(class));
        assert_eq!(batch.state.task_outcome(0), Some(TaskOutcome::Failed(FailureReason::RunFailed(class))));
        assert_eq!(batch.state.failures(0), u32::from(class != RunClass::Stopped));
    }
}

#[test]
fn skips_exactly_the_dependents_of_failed_task() {
    let dependencies: &[&[usize]] = &[&[], &[0], &[1], &[], &[3], &[2, 4], &[]];
    let mut batch =
        BatchDriver::new(dependencies, &[], options_with_policy(TaskFailurePolicy::SkipDependents))
            .start_with_lanes(3);
    let actions = batch.crash_run(0);
    for (task, skipped) in [(1, true), (2, true), (3, false), (4, false), (5, true), (6, false)] {
        assert_eq!(actions.contains(&format!("skip {task} for 0")), skipped, "{task}: {actions}");
    }
}

#[test]
fn skips_dependents_of_no_change_but_not_of_already_done() {
    let mut batch =
        BatchDriver::new(&[&[], &[0], &[], &[2]], &[], BatchOptions::default()).start_with_lanes(2);
    assert_eq!(batch.end_run(0, TaskRunEnd::NoChange), "release 0; skip 1 for 0; discard L0");
    assert_eq!(
        batch.end_run(2, TaskRunEnd::AlreadyDone),
        "release 2; make L2 for 3 @0; set up L2; discard L1"
    );
}

#[test]
fn stop_wave_lands_running_tasks_and_starts_no_more() {
    let options = BatchOptions {
        mode: LandingMode::Waves,
        max_parallel: 2,
        ..options_with_policy(TaskFailurePolicy::StopWave)
    };
    let mut batch = BatchDriver::new(&[&[], &[], &[], &[0]], &[], options).start_with_lanes(2);
    assert_eq!(batch.crash_run(1), "set 1 aside; release 1; keep L1");
    assert_eq!(batch.complete_run(0), "land [0]");
    assert_eq!(batch.land_tasks(&[0]), "release 0; discard L0; over: Stopped");
    assert_eq!(batch.handle(&ScheduleEvent::Resume), "make L2 for 2 @1; set up L2");
}

#[test]
fn stop_all_stops_running_agents() {
    let mut batch = BatchDriver::new(&[&[], &[], &[]], &[], options_with_policy(TaskFailurePolicy::StopAll))
        .start_with_lanes(2);
    assert_eq!(batch.crash_run(0), "set 0 aside; release 0; stop 1.1 hard; keep L0");
    // The lane of task 2 was being created; its task does not start.
    assert_eq!(batch.set_up_lane(2), "");
    assert_eq!(
        batch.end_run(1, TaskRunEnd::Failed(RunClass::Stopped)),
        "release 1; release 2; keep L1; discard L2; over: Stopped"
    );
}

#[test]
fn unlandable_task_pauses_then_blocks_only_dependents() {
    let mut batch =
        BatchDriver::new(&[&[], &[0], &[]], &[], BatchOptions { max_parallel: 1, ..BatchOptions::default() });
    batch.start();
    batch.set_up_lane(0);
    batch.complete_run(0);
    batch.handle(&ScheduleEvent::ConflictCaptured { task: 0 });
    assert_eq!(
        batch.handle(&ScheduleEvent::ConflictGivenUp { task: 0 }),
        "0 failed: ConflictUnresolved; release 0; skip 1 for 0; keep L0"
    );
    assert_eq!(batch.set_up_lane(1), "paused: LandingFailed(0)");
    let mut resolved_batch = BatchDriver { state: batch.state.clone() };
    assert_eq!(batch.handle(&ScheduleEvent::Resume), "start 2.1 in L1 @0");
    // Alternatively, the user resolves the conflict before the batch is resumed.
    assert_eq!(
        resolved_batch.handle(&ScheduleEvent::ConflictResolved { task: 0 }),
        "0 waits; 1 waits; land [0]"
    );
    assert_eq!(resolved_batch.land_tasks(&[0]), "discard L0");
    assert_eq!(resolved_batch.handle(&ScheduleEvent::Resume), "make L2 for 1 @1; set up L2; queue 2");
}

#[test]
fn unlandable_task_can_abort_batch() {
    let options = BatchOptions { on_merge_failure: LandingFailurePolicy::Abort, ..BatchOptions::default() };
    let mut batch = BatchDriver::new(&[&[], &[]], &[], options).start_with_lanes(2);
    batch.complete_run(0);
    assert_eq!(
        batch.handle(&ScheduleEvent::CheckFailed { task: 0 }),
        "0 failed: CheckFailed; release 0; stop 1.1; keep L0"
    );
}

#[test]
fn failed_recheck_does_not_pause_again() {
    let mut batch = BatchDriver::new(&[&[], &[]], &[], BatchOptions::default()).start_with_lanes(2);
    let is_pausing = |batch: &BatchDriver| batch.state.status_word().starts_with("paus");
    batch.complete_run(0);
    batch.handle(&ScheduleEvent::CheckFailed { task: 0 });
    assert!(is_pausing(&batch));
    assert_eq!(batch.handle(&ScheduleEvent::RecheckRequested { task: 0 }), "0 waits; land [0]");
    batch.handle(&ScheduleEvent::Resume);
    assert!(batch.handle(&ScheduleEvent::CheckFailed { task: 0 }).contains("0 failed: CheckFailed"));
    assert_eq!(batch.state.status_word(), "running");
    // After the work changes, failed checks pause the batch again.
    assert!(batch.handle(&ScheduleEvent::ConflictResolved { task: 0 }).contains("land [0]"));
    batch.handle(&ScheduleEvent::CheckFailed { task: 0 });
    assert!(is_pausing(&batch));
}

#[test]
fn gives_up_conflict_without_resolver() {
    let mut batch =
        BatchDriver::new(&[&[]], &[], BatchOptions { resolve_conflicts: false, ..BatchOptions::default() })
            .start_with_lanes(1);
    batch.complete_run(0);
    assert_eq!(
        batch.handle(&ScheduleEvent::ConflictCaptured { task: 0 }),
        "0 failed: ConflictUnresolved; release 0; keep L0; paused: LandingFailed(0)"
    );
    assert_eq!(batch.handle(&ScheduleEvent::Resume), "over: Partial");
}

#[test]
fn spent_budget_blocks_starts_until_raised() {
    let options =
        BatchOptions { budget: Some(NanoDollars::new(100)), max_parallel: 1, ..BatchOptions::default() };
    let mut batch = BatchDriver::new(&[&[], &[]], &[], options).start_with_lanes(1);
    assert_eq!(batch.handle(&ScheduleEvent::CostReported { total: NanoDollars::new(100) }), "");
    assert_eq!(batch.complete_run(0), "land [0]");
    // The conflict gets no resolver either.
    assert_eq!(batch.handle(&ScheduleEvent::ConflictCaptured { task: 0 }), "paused: BudgetSpent");
    assert_eq!(batch.handle(&ScheduleEvent::Resume), "paused: BudgetSpent");
    assert_eq!(batch.handle(&ScheduleEvent::BudgetSet { limit: Some(NanoDollars::new(200)) }), "");
    assert_eq!(batch.handle(&ScheduleEvent::Resume), "resolve 0; make L1 for 1 @0; set up L1");
}
