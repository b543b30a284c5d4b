//! Simulation of a plan in memory: the lane in which each task would run, and the total time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use proq_plan::dependency_graph::DependencyGraph;
use proq_plan::plan::Plan;
use proq_plan::schedule::action::Action;
use proq_plan::schedule::event::{ScheduleEvent, TaskRunEnd};
use proq_plan::schedule::options::BatchOptions;
use proq_plan::schedule::state::State;
use proq_plan::schedule::workload::{ScheduledTask, Workload};

use super::batch_history::attempts_from_log;
use crate::lane::Project;
use crate::swarm::batch::create::list_batches;
use crate::swarm::batch::plan_tasks::scheduler_phases;
use crate::swarm::batch::record::Batch;

/// Number of most recent batches from which the pace is computed.
const MAX_PACE_BATCHES: usize = 20;

/// Minimum number of successful runs from which a pace is computed.
const MIN_PACE_RUNS: usize = 3;

/// Outcome of a plan if each run succeeded and took as long as its task's size suggests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Simulation {
    /// Lane number of each task, from 1; none for a task that is done.
    pub lane_of_task: Vec<Option<usize>>,
    /// Total time of the plan, in units of one small task.
    pub makespan: usize,
}

/// Duration of past runs in this repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Duration of a small task: the median over all runs, each divided by the weight of its task.
    pub(crate) median_small_task: Duration,
    /// Number of runs behind the median.
    pub sample_count: usize,
}

impl Simulation {
    /// Simulates a plan with the decisions of the real scheduler. `overlaps` are groups of tasks that change
    /// the same files. Returns none for a plan that cannot be scheduled.
    pub fn run(
        plan: &Plan,
        graph: &DependencyGraph,
        overlaps: Vec<Vec<usize>>,
        options: &BatchOptions,
    ) -> Option<Simulation> {
        let tasks = plan.tasks().enumerate().map(|(index, plan_task)| ScheduledTask {
            depends_on: graph.needs(index).to_vec(),
            weight: u32::try_from(plan_task.task.size.weight()).unwrap_or(u32::MAX),
            agent: plan.task_agent(plan_task).map(ToOwned::to_owned),
            failures: 0,
            done: plan_task.task.done,
        });
        let work = Workload::new(tasks.collect(), scheduler_phases(plan), overlaps).ok()?;
        Some(simulate(&work, options))
    }
}

/// Simulates a workload in which every run succeeds and lands.
fn simulate(work: &Workload, options: &BatchOptions) -> Simulation {
    let mut state = State::new(work, options);
    let mut lanes = vec![None; work.tasks().len()];
    let mut pending = VecDeque::from([ScheduleEvent::BatchStarted]);
    // Running tasks, ordered by the time at which they finish.
    let mut running: BinaryHeap<Reverse<(usize, usize, u32)>> = BinaryHeap::new();
    let mut clock = 0;
    loop {
        while let Some(event) = pending.pop_front() {
            for action in state.handle(&event) {
                match action {
                    Action::SetUpLane { lane } => pending.push_back(ScheduleEvent::LaneSetUp { lane }),
                    Action::StartRun { task, lane, attempt, .. } => {
                        lanes[task] = Some(lane + 1);
                        let weight = usize::try_from(work.tasks()[task].weight).unwrap_or(1);
                        running.push(Reverse((clock + weight, task, attempt)));
                        pending.push_back(ScheduleEvent::RunStarted { task, attempt });
                    }
                    Action::Land { tasks, .. } => pending.push_back(ScheduleEvent::Landed { tasks }),
                    _ => {}
                }
            }
        }
        let Some(Reverse((end, task, attempt))) = running.pop() else {
            return Simulation { lane_of_task: lanes, makespan: clock };
        };
        clock = end;
        pending.push_back(ScheduleEvent::RunEnded { task, attempt, end: TaskRunEnd::Done });
    }
}

impl Pace {
    /// Computes the pace of the repository's most recent batches; none where there were too few runs.
    pub fn from_history(project: &Project) -> Option<Pace> {
        let mut durations = Vec::new();
        for record in list_batches(project, true).into_iter().rev().take(MAX_PACE_BATCHES) {
            let Ok(batch) = Batch::load(&project.store, &record.id) else { continue };
            let Ok(lines) = batch.read_log_lines(&project.store) else { continue };
            for run in attempts_from_log(&batch, &lines) {
                let has_succeeded = run.end.as_ref().is_some_and(|end| end.has_succeeded);
                let task = batch.tasks.iter().position(|task| task.name == run.task);
                let weight = task.map(|task| batch.workload.tasks()[task].weight.max(1));
                if let (true, Some(ended), Some(weight)) = (has_succeeded, run.ended, weight) {
                    durations.push(ended.duration_since(run.began) / weight);
                }
            }
        }
        durations.sort_unstable();
        (durations.len() >= MIN_PACE_RUNS).then(|| Pace {
            median_small_task: durations[durations.len() / 2],
            sample_count: durations.len(),
        })
    }

    /// Returns how long `count` small tasks take, one after the other.
    pub fn small_tasks_duration(&self, count: usize) -> Duration {
        self.median_small_task.saturating_mul(u32::try_from(count).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proq_plan::schedule::options::{LandingMode, LaneAssignment};

    fn build_work(tasks: &[(&[usize], u32)], overlaps: Vec<Vec<usize>>) -> Workload {
        let task = |(after, weight): &(&[usize], u32)| ScheduledTask {
            depends_on: after.to_vec(),
            weight: *weight,
            ..ScheduledTask::default()
        };
        Workload::new(tasks.iter().map(task).collect(), Vec::new(), overlaps).unwrap()
    }

    #[test]
    fn makespan_depends_on_lane_count() {
        // Two paths of length 1 + 4, and one task of length 2.
        let diamond = build_work(&[(&[], 1), (&[0], 4), (&[0], 4), (&[], 2)], Vec::new());
        let makespan_with = |max_parallel| {
            simulate(&diamond, &BatchOptions { max_parallel, ..BatchOptions::default() }).makespan
        };
        assert_eq!((makespan_with(1), makespan_with(2), makespan_with(3)), (11, 6, 5));
    }

    #[test]
    fn overlapping_tasks_share_a_lane() {
        let plan = build_work(&[(&[], 2), (&[], 2), (&[], 2)], vec![vec![0, 2]]);
        let simulated = simulate(&plan, &BatchOptions { max_parallel: 3, ..BatchOptions::default() });
        assert_eq!(simulated.makespan, 4);
        assert_eq!(simulated.lane_of_task[0], simulated.lane_of_task[2]);
        assert_ne!(simulated.lane_of_task[0], simulated.lane_of_task[1]);
    }

    #[test]
    fn every_mode_finishes() {
        let plan = build_work(&[(&[], 1), (&[0], 2), (&[0], 4), (&[1, 2], 1)], Vec::new());
        for mode in [LandingMode::Continuous, LandingMode::Waves, LandingMode::Phases, LandingMode::OneLane] {
            for spread in
                [LaneAssignment::AffinityFirst, LaneAssignment::RoundRobin, LaneAssignment::LoadBalanced]
            {
                let simulated = simulate(
                    &plan,
                    &BatchOptions {
                        mode,
                        lane_assignment: spread,
                        max_parallel: 2,
                        ..BatchOptions::default()
                    },
                );
                assert!(
                    simulated.lane_of_task.iter().all(Option::is_some),
                    "{mode:?} {spread:?}: {simulated:?}"
                );
                // The longest path, or all tasks one after the other.
                let expected = if matches!(mode, LandingMode::OneLane) { 8..=8 } else { 6..=8 };
                assert!(expected.contains(&simulated.makespan), "{mode:?} {spread:?}: {simulated:?}");
            }
        }
    }

    #[test]
    fn done_tasks_take_no_time_and_no_lane() {
        let tasks = [(true, vec![]), (false, vec![0])];
        let tasks = tasks.map(|(done, after)| ScheduledTask {
            done,
            depends_on: after,
            weight: 4,
            ..ScheduledTask::default()
        });
        let plan = Workload::new(tasks.to_vec(), Vec::new(), Vec::new()).unwrap();
        let simulated = simulate(&plan, &BatchOptions { max_parallel: 1, ..BatchOptions::default() });
        assert_eq!(simulated, Simulation { lane_of_task: vec![None, Some(1)], makespan: 4 });
    }
}
