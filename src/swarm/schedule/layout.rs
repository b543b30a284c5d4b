//! Owns the order that a plan and a mode ask for: stages, who shares a lane with whom, and who goes first.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::options::{Mode, Options, Spread};
use super::work::Work;

/// What is settled before the first run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layout {
    /// By task: which stage it is in. A stage starts when those before it are through, and where things land together, it is
    /// a stage that does.
    pub(super) stage: Vec<usize>,
    /// How many stages there are.
    pub(super) stages: usize,
    /// By task: the last stage of its phase.
    pub(super) last_stage: Vec<usize>,
    /// By task: which bundle it is in. The tasks of a bundle are done one after the other, in one lane.
    pub(super) bundle: Vec<usize>,
    /// By bundle: how many tasks it has.
    pub(super) sizes: Vec<usize>,
    /// By task: which family it is in, that is, with whom its files overlap, over others too.
    pub(super) family: Vec<usize>,
    /// By task: when its turn is.
    pub(super) rank: Vec<usize>,
    /// By rank: the task.
    pub(super) by_rank: Vec<usize>,
}

impl Layout {
    /// What the plan and the options make of it.
    pub(super) fn new(work: &Work, options: &Options) -> Layout {
        let phase = phases(work);
        let (stage, stages) = stages(work, options.mode, &phase);
        let mut last: BTreeMap<usize, usize> = BTreeMap::new();
        for (phase, stage) in phase.iter().zip(&stage) {
            let last = last.entry(*phase).or_default();
            *last = (*last).max(*stage);
        }
        let last_stage = phase.iter().map(|phase| last[phase]).collect();
        let (bundle, sizes) = bundles(work, options.mode, &stage);
        let mut family = Groups::new(work.tasks().len());
        for group in work.overlaps() {
            group.windows(2).for_each(|pair| family.join(pair[0], pair[1]));
        }
        let by_rank = ranks(work, options, &phase, &stage);
        let mut rank = vec![0; by_rank.len()];
        for (at, task) in by_rank.iter().enumerate() {
            rank[*task] = at;
        }
        Layout { stage, stages, last_stage, bundle, sizes, family: family.numbers().0, rank, by_rank }
    }
}

/// By task, its phase; a later one if it depends on something there.
fn phases(work: &Work) -> Vec<usize> {
    let mut out = vec![0; work.tasks().len()];
    for (at, phase) in work.phases().iter().enumerate() {
        phase.tasks.iter().for_each(|task| out[*task] = at);
    }
    for task in work.graph().order() {
        let latest = work.tasks()[*task].after.iter().map(|before| out[*before]).max();
        out[*task] = out[*task].max(latest.unwrap_or(0));
    }
    out
}

/// By task, its stage, and how many there are.
fn stages(work: &Work, mode: Mode, phase: &[usize]) -> (Vec<usize>, usize) {
    let mut level = vec![0; phase.len()];
    if mode == Mode::Waves {
        for task in work.graph().order() {
            let before = work.tasks()[*task].after.iter().filter(|before| phase[**before] == phase[*task]);
            level[*task] = before.map(|before| level[*before] + 1).max().unwrap_or(0);
        }
    }
    let key = |task: usize| if mode == Mode::OneLane { (0, 0) } else { (phase[task], level[task]) };
    let mut numbers: BTreeMap<(usize, usize), usize> = (0..phase.len()).map(|task| (key(task), 0)).collect();
    numbers.values_mut().enumerate().for_each(|(at, number)| *number = at);
    ((0..phase.len()).map(|task| numbers[&key(task)]).collect(), numbers.len())
}

/// By task, its bundle; by bundle, its size.
fn bundles(work: &Work, mode: Mode, stage: &[usize]) -> (Vec<usize>, Vec<usize>) {
    let mut groups = Groups::new(stage.len());
    for group in work.overlaps() {
        for (at, one) in group.iter().enumerate() {
            for other in &group[..at] {
                // Who depends on the other starts when that has landed: they are never in each other's way.
                if stage[*one] == stage[*other] && !work.graph().are_ordered(*one, *other) {
                    groups.join(*one, *other);
                }
            }
        }
    }
    for phase in work.phases().iter().filter(|phase| !phase.parallel) {
        let mut last: BTreeMap<usize, usize> = BTreeMap::new();
        for task in &phase.tasks {
            if let Some(other) = last.insert(stage[*task], *task) {
                groups.join(*task, other);
            }
        }
    }
    if mode == Mode::OneLane {
        (1..stage.len()).for_each(|task| groups.join(task - 1, task));
    }
    if mode == Mode::Phases {
        for (task, it) in work.tasks().iter().enumerate() {
            let same = it.after.iter().filter(|before| stage[**before] == stage[task]);
            same.for_each(|before| groups.join(task, *before));
        }
    }
    groups.numbers()
}

/// All tasks, those first whose turn comes first.
fn ranks(work: &Work, options: &Options, phase: &[usize], stage: &[usize]) -> Vec<usize> {
    let tasks = work.tasks();
    // How much there is to do until the plan's end, by way of a task.
    let mut way = vec![0_u64; tasks.len()];
    for task in work.graph().order().iter().rev() {
        let behind = work.graph().dependents(*task).iter().map(|next| way[*next]).max();
        way[*task] = u64::from(tasks[*task].weight).saturating_add(behind.unwrap_or(0));
    }
    let by_way = options.spread == Spread::LoadBalanced && options.mode != Mode::OneLane;
    let mut keys = Vec::with_capacity(tasks.len());
    for it in work.phases() {
        for (at, task) in it.tasks.iter().enumerate() {
            let way = if by_way && it.parallel { way[*task] } else { 0 };
            keys.push((stage[*task], phase[*task], Reverse(way), at, *task));
        }
    }
    keys.sort_unstable();
    keys.into_iter().map(|key| key.4).collect()
}

/// Numbers that belong together, over others too.
struct Groups {
    above: Vec<usize>,
}

impl Groups {
    fn new(count: usize) -> Groups {
        Groups { above: (0..count).collect() }
    }

    fn top(&mut self, mut at: usize) -> usize {
        while self.above[at] != at {
            self.above[at] = self.above[self.above[at]];
            at = self.above[at];
        }
        at
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.top(one), self.top(other));
        self.above[one.max(other)] = one.min(other);
    }

    /// By member the number of its group, and by group how many it has.
    fn numbers(mut self) -> (Vec<usize>, Vec<usize>) {
        let mut sizes = Vec::new();
        let mut of_top = BTreeMap::new();
        let mut numbers = Vec::with_capacity(self.above.len());
        for at in 0..self.above.len() {
            let group = *of_top.entry(self.top(at)).or_insert(sizes.len());
            if group == sizes.len() {
                sizes.push(0);
            }
            sizes[group] += 1;
            numbers.push(group);
        }
        (numbers, sizes)
    }
}
