//! Owns made-up plans and troubles: what a case is made of, and chance that can be repeated.

use proptest::prelude::*;

use crate::swarm::schedule::{MergePolicy, Mode, Options, Phase, Spread, Task, TaskPolicy, Work};

/// A small generator: the same numbers for the same seed, everywhere.
#[derive(Debug, Clone)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Dice {
        Dice(mixed(seed) | 1)
    }

    pub(super) fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 16) % n.max(1) as u64).unwrap()
    }

    /// Whether something happens that happens so many times in a hundred.
    pub(super) fn hits(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

fn mixed(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// A number below 100 that is the same whenever it is asked for.
pub(super) fn fixed(seed: u64, what: u64, task: usize, time: u32) -> u64 {
    mixed(mixed(seed ^ what) ^ mixed(task as u64) ^ mixed(u64::from(time) << 32)) % 100
}

/// How much goes wrong, in times of a hundred.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trouble {
    pub(super) runs: u64,
    pub(super) landings: u64,
    pub(super) set_up: u64,
    /// How often people, other batches and money get in between.
    pub(super) people: usize,
    /// How often the process is killed.
    pub(super) kills: usize,
}

/// One made-up batch. All of it follows from these values.
#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) seed: u64,
    pub(super) tasks: usize,
    pub(super) edges: usize,
    pub(super) groups: usize,
    pub(super) phases: usize,
    /// Whether some tasks were done, or have failed, before.
    pub(super) past: bool,
    pub(super) options: Options,
    pub(super) trouble: Trouble,
}

impl Case {
    /// The plan.
    pub(super) fn work(&self) -> Work {
        let mut dice = Dice::new(self.seed);
        // Numbers say nothing about the order.
        let mut names: Vec<usize> = (0..self.tasks).collect();
        for at in 1..self.tasks {
            names.swap(at, dice.below(at + 1));
        }
        let mut tasks = vec![Task::default(); self.tasks];
        for (at, name) in names.iter().enumerate() {
            for _ in 0..dice.below(self.edges + 1).min(at) {
                // Mostly to what is near, so that there are long ways too.
                let near = if dice.hits(70) { at.min(6) } else { at };
                tasks[*name].after.push(names[at - 1 - dice.below(near)]);
            }
            tasks[*name].weight = u32::try_from(dice.below(9)).unwrap();
            tasks[*name].agent = Some(["claude", "codex"][dice.below(2)].to_owned());
            tasks[*name].done = self.past && dice.hits(5);
            tasks[*name].failures = if self.past && dice.hits(10) { [1, 2, 3][dice.below(3)] } else { 0 };
        }
        let mut phases: Vec<Phase> =
            (0..self.phases).map(|_| Phase { tasks: Vec::new(), parallel: dice.hits(70) }).collect();
        if self.phases > 0 {
            for (at, name) in names.iter().enumerate() {
                // Now and then against the dependencies.
                let natural = at * self.phases / self.tasks;
                let phase = if dice.hits(90) { natural } else { dice.below(self.phases) };
                phases[phase].tasks.push(*name);
            }
        }
        let group = |dice: &mut Dice| (0..2 + dice.below(4)).map(|_| dice.below(self.tasks)).collect();
        let overlaps = (0..self.groups).map(|_| group(&mut dice)).collect();
        Work::new(tasks, phases, overlaps).unwrap()
    }
}

pub(super) fn modes() -> impl Strategy<Value = Mode> {
    prop::sample::select(vec![Mode::Continuous, Mode::Waves, Mode::Phases, Mode::OneLane])
}

fn spreads() -> impl Strategy<Value = Spread> {
    prop::sample::select(vec![Spread::AffinityFirst, Spread::RoundRobin, Spread::LoadBalanced])
}

/// Options in which a failure means that what depends on it is skipped, and nothing else.
pub(super) fn plain_options() -> impl Strategy<Value = Options> {
    (modes(), spreads(), 1_usize..6, 1_u32..4, any::<bool>()).prop_map(
        |(mode, spread, max_parallel, max_attempts, resolve)| Options {
            mode,
            spread,
            max_parallel,
            max_attempts,
            resolve,
            ..Options::default()
        },
    )
}

/// Any options.
pub(super) fn options() -> impl Strategy<Value = Options> {
    let policies = vec![TaskPolicy::SkipDependents, TaskPolicy::StopWave, TaskPolicy::StopAll];
    let merges = vec![MergePolicy::Pause, MergePolicy::Abort];
    let budget = prop_oneof![3 => Just(None), 1 => (0_u64..200).prop_map(Some)];
    (plain_options(), prop::sample::select(policies), prop::sample::select(merges), budget).prop_map(
        |(options, on_failure, on_merge_failure, budget)| Options {
            on_failure,
            on_merge_failure,
            budget,
            ..options
        },
    )
}

/// Cases of up to so many tasks.
pub(super) fn cases(
    most: usize,
    options: impl Strategy<Value = Options>,
    trouble: impl Strategy<Value = Trouble>,
) -> impl Strategy<Value = Case> {
    let shape = (any::<u64>(), 1..=most, 0_usize..4, 0_usize..8, 0_usize..5, any::<bool>());
    (shape, options, trouble).prop_map(|((seed, tasks, edges, groups, phases, past), options, trouble)| {
        Case { seed, tasks, edges, groups: groups * tasks / 20, phases, past, options, trouble }
    })
}
