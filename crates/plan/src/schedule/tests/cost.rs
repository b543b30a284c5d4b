//! Cost of scheduling a plan of 1,000 tasks, from its first event to its last. `benches/schedule.sh` prints
//! it.

use std::collections::VecDeque;
use std::io::Write;
use std::time::Duration;

use fastrand::Rng;

use super::batch_case::{BatchCase, FailureRates};
use crate::schedule::action::Action;
use crate::schedule::event::{ScheduleEvent, TaskRunEnd};
use crate::schedule::options::{BatchOptions, LandingMode, LaneAssignment};
use crate::schedule::state::State;
use crate::schedule::workload::{Phase, ScheduledTask, Workload};

const TASK_COUNT: usize = 1_000;

/// Limit of the median processor time. The limit of an optimized build is the one that counts; that of a
/// debug build only detects runaway growth.
const MAX_MEDIAN_TIME: Duration = Duration::from_millis(if cfg!(debug_assertions) { 1_500 } else { 50 });

/// Returns the processor time that this thread has used.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}

/// Appends a line to the benchmark's report, if `PROQ_BENCH_REPORT` names a file.
fn append_report_line(line: &str) {
    if let Some(path) = std::env::var_os("PROQ_BENCH_REPORT") {
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        writeln!(file, "{line}").unwrap();
    }
}

/// Simulates a batch without failures, where actions finish in the order of their requests. Returns the
/// number of events.
fn simulate_batch(
    tasks: Vec<ScheduledTask>,
    phases: Vec<Phase>,
    overlaps: Vec<Vec<usize>>,
    options: &BatchOptions,
) -> usize {
    let workload = Workload::new(tasks, phases, overlaps).unwrap();
    let mut state = State::new(&workload, options);
    let mut pending = VecDeque::from([ScheduleEvent::BatchStarted]);
    let mut events = 0;
    while let Some(event) = pending.pop_front() {
        events += 1;
        for action in state.handle(&event) {
            match action {
                Action::SetUpLane { lane } => pending.push_back(ScheduleEvent::LaneSetUp { lane }),
                Action::StartRun { task, attempt, .. } => {
                    pending.push_back(ScheduleEvent::RunStarted { task, attempt });
                    pending.push_back(ScheduleEvent::RunEnded { task, attempt, end: TaskRunEnd::Done });
                }
                Action::Land { tasks, .. } => pending.push_back(ScheduleEvent::Landed { tasks }),
                _ => {}
            }
        }
    }
    assert!(state.final_outcome().is_some());
    events
}

fn measure_median(
    name: &str,
    workload: &Workload,
    overlaps: &[Vec<usize>],
    options: &BatchOptions,
) -> Duration {
    let rounds = if cfg!(debug_assertions) { 1 } else { 31 };
    let mut events = 0;
    let mut times: Vec<Duration> = (0..rounds)
        .map(|_| {
            let input = (workload.tasks().to_vec(), workload.phases().to_vec(), overlaps.to_vec());
            let started = processor_time();
            events = simulate_batch(input.0, input.1, input.2, options);
            processor_time().saturating_sub(started)
        })
        .collect();
    times.sort_unstable();
    let to_ms = |time: Duration| time.as_secs_f64() * 1e3;
    let (low, median, high) = (times[0], times[rounds / 2], times[rounds - 1]);
    append_report_line(&format!(
        "{name:<50} {events:>5} events {:>8.1} ms ({:.1}-{:.1}), {rounds} rounds",
        to_ms(median),
        to_ms(low),
        to_ms(high)
    ));
    median
}

/// Covers plans without overlaps, with small groups of overlapping tasks, and with overlaps between all
/// tasks, which then run one after the other.
#[test]
fn a_thousand_tasks_cost_little() {
    let mut rng = Rng::with_seed(7);
    let small_overlaps: Vec<Vec<usize>> =
        (0..200).map(|_| (0..4).map(|_| rng.usize(..TASK_COUNT)).collect()).collect();
    let full_overlap = vec![(0..TASK_COUNT).collect::<Vec<usize>>()];
    append_report_line(&format!(
        "{TASK_COUNT} tasks, from the first event to the last: median (min-max) of processor time"
    ));
    for mode in [LandingMode::Continuous, LandingMode::Waves, LandingMode::Phases, LandingMode::OneLane] {
        for spread in [LaneAssignment::AffinityFirst, LaneAssignment::LoadBalanced] {
            for (kind, edges, overlaps) in [
                ("apart", 3, &Vec::new()),
                ("in groups", 3, &small_overlaps),
                ("all overlap, no edges", 0, &full_overlap),
            ] {
                let options = BatchOptions {
                    mode,
                    lane_assignment: spread,
                    max_parallel: 8,
                    ..BatchOptions::default()
                };
                let no_failures = FailureRates { run: 0, landing: 0, set_up: 0, intervention: 0, kill: 0 };
                let case = BatchCase {
                    seed: 1,
                    task_count: TASK_COUNT,
                    max_dependencies: edges,
                    overlap_count: 0,
                    phase_count: 5,
                    has_history: false,
                    options,
                    failure_rates: no_failures,
                };
                let name = format!("{mode:?}, {spread:?}, {kind}");
                let median = measure_median(&name, &case.build_workload(), overlaps, &options);
                assert!(median <= MAX_MEDIAN_TIME, "{name}: {median:?}");
            }
        }
    }
}
