//! Random plans and failure rates for scheduler tests.

use fastrand::Rng;
use proptest::prelude::*;
use proq_base::money::NanoDollars;

use crate::schedule::options::{
    BatchOptions, LandingFailurePolicy, LandingMode, LaneAssignment, TaskFailurePolicy,
};
use crate::schedule::workload::{Phase, ScheduledTask, Workload};

/// Returns whether an event of this probability, in percent, happens.
pub(crate) fn percent_chance(rng: &mut Rng, percent: usize) -> bool {
    rng.usize(..100) < percent
}

/// Returns a number below 100 that depends only on the arguments.
pub(crate) fn fixed_percent(seed: u64, stream: u64, task: usize, occurrence: u32) -> u64 {
    let mix = |seed: u64, part: u64| Rng::with_seed(seed ^ part).u64(..);
    [stream, task as u64, u64::from(occurrence)].into_iter().fold(seed, mix) % 100
}

/// Failure rates of a simulated batch, in percent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FailureRates {
    pub run: u64,
    pub landing: u64,
    pub set_up: u64,
    /// Rate of events from users, other batches and the budget.
    pub(crate) intervention: usize,
    /// Rate at which the scheduler process is killed.
    pub kill: usize,
}

/// Parameters of one random batch. The batch follows from these values alone.
#[derive(Debug, Clone)]
pub(crate) struct BatchCase {
    pub seed: u64,
    pub(crate) task_count: usize,
    pub(crate) max_dependencies: usize,
    pub(crate) overlap_count: usize,
    pub(crate) phase_count: usize,
    /// Whether some tasks were done, or have failed, before the batch.
    pub(crate) has_history: bool,
    pub options: BatchOptions,
    pub(crate) failure_rates: FailureRates,
}

impl BatchCase {
    /// Generates the plan of the batch.
    pub(crate) fn build_workload(&self) -> Workload {
        let mut rng = Rng::with_seed(self.seed);
        // Task numbers are shuffled, so that they give no hint of the order.
        let mut shuffled: Vec<usize> = (0..self.task_count).collect();
        rng.shuffle(&mut shuffled);
        let mut tasks = vec![ScheduledTask::default(); self.task_count];
        for (index, task) in shuffled.iter().enumerate() {
            for _ in 0..rng.usize(..=self.max_dependencies).min(index) {
                // Most dependencies are on nearby tasks, so that there are long chains too.
                let window = if percent_chance(&mut rng, 70) { index.min(6) } else { index };
                tasks[*task].depends_on.push(shuffled[index - 1 - rng.usize(..window)]);
            }
            tasks[*task].weight = u32::try_from(rng.usize(..9)).unwrap();
            tasks[*task].agent = Some(["claude", "codex"][rng.usize(..2)].to_owned());
            tasks[*task].done = self.has_history && percent_chance(&mut rng, 5);
            tasks[*task].failures =
                if self.has_history && percent_chance(&mut rng, 10) { [1, 2, 3][rng.usize(..3)] } else { 0 };
        }
        let mut phases: Vec<Phase> = (0..self.phase_count)
            .map(|_| Phase { tasks: Vec::new(), parallel: percent_chance(&mut rng, 70) })
            .collect();
        if self.phase_count > 0 {
            for (index, task) in shuffled.iter().enumerate() {
                // One task in ten gets a random phase, which may contradict the dependencies.
                let natural_phase = index * self.phase_count / self.task_count;
                let phase =
                    if percent_chance(&mut rng, 90) { natural_phase } else { rng.usize(..self.phase_count) };
                phases[phase].tasks.push(*task);
            }
        }
        let random_overlap =
            |rng: &mut Rng| (0..2 + rng.usize(..4)).map(|_| rng.usize(..self.task_count)).collect();
        let overlaps = (0..self.overlap_count).map(|_| random_overlap(&mut rng)).collect();
        Workload::new(tasks, phases, overlaps).unwrap()
    }
}

pub(crate) fn landing_modes() -> impl Strategy<Value = LandingMode> {
    prop::sample::select(vec![
        LandingMode::Continuous,
        LandingMode::Waves,
        LandingMode::Phases,
        LandingMode::OneLane,
    ])
}

fn lane_assignments() -> impl Strategy<Value = LaneAssignment> {
    prop::sample::select(vec![
        LaneAssignment::AffinityFirst,
        LaneAssignment::RoundRobin,
        LaneAssignment::LoadBalanced,
    ])
}

/// Returns a strategy for options in which a failure skips the dependents and has no other effect.
pub(crate) fn skip_only_options() -> impl Strategy<Value = BatchOptions> {
    (landing_modes(), lane_assignments(), 1_usize..6, 1_u32..4, any::<bool>()).prop_map(
        |(mode, lane_assignment, max_parallel, max_attempts, resolve_conflicts)| BatchOptions {
            mode,
            lane_assignment,
            max_parallel,
            max_attempts,
            resolve_conflicts,
            ..BatchOptions::default()
        },
    )
}

/// Returns a strategy for any options.
pub(crate) fn any_options() -> impl Strategy<Value = BatchOptions> {
    let task_policies =
        vec![TaskFailurePolicy::SkipDependents, TaskFailurePolicy::StopWave, TaskFailurePolicy::StopAll];
    let landing_policies = vec![LandingFailurePolicy::Pause, LandingFailurePolicy::Abort];
    let budget =
        prop_oneof![3 => Just(None), 1 => (0_u64..200).prop_map(|nanos| Some(NanoDollars::new(nanos)))];
    (skip_only_options(), prop::sample::select(task_policies), prop::sample::select(landing_policies), budget)
        .prop_map(|(options, on_failure, on_merge_failure, budget)| BatchOptions {
            on_failure,
            on_merge_failure,
            budget,
            ..options
        })
}

/// Returns a strategy for batches of up to `max_tasks` tasks.
pub(crate) fn batch_cases(
    max_tasks: usize,
    options: impl Strategy<Value = BatchOptions>,
    failure_rates: impl Strategy<Value = FailureRates>,
) -> impl Strategy<Value = BatchCase> {
    let dimensions = (any::<u64>(), 1..=max_tasks, 0_usize..4, 0_usize..8, 0_usize..5, any::<bool>());
    (dimensions, options, failure_rates).prop_map(
        |((seed, task_count, max_dependencies, groups, phase_count, has_history), options, failure_rates)| {
            BatchCase {
                seed,
                task_count,
                max_dependencies,
                overlap_count: groups * task_count / 20,
                phase_count,
                has_history,
                options,
                failure_rates,
            }
        },
    )
}
