//! Order of a batch's tasks that the plan and the landing mode require: stages, bundles that share a lane,
//! and ranks.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::options::{BatchOptions, LandingMode, LaneAssignment};
use super::workload::Workload;

/// Order and grouping of the tasks, fixed before the first run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleOrder {
    /// By task, its stage. A stage starts when the stages before it are finished. Where tasks land together,
    /// those of one stage do.
    pub stage: Vec<usize>,
    /// Number of stages.
    pub(crate) stage_count: usize,
    /// By task, the last stage of its phase.
    pub(crate) last_stage_of_phase: Vec<usize>,
    /// By task, its bundle. The tasks of a bundle run one after the other, in one lane.
    pub(crate) bundle: Vec<usize>,
    /// By bundle, its number of tasks.
    pub(crate) bundle_sizes: Vec<usize>,
    /// By task, its family: the tasks whose files overlap with its own, directly or through other tasks.
    pub family: Vec<usize>,
    /// By task, its position in the order in which tasks start.
    pub rank: Vec<usize>,
    /// By rank, the task.
    pub(crate) tasks_by_rank: Vec<usize>,
}

impl ScheduleOrder {
    /// Computes stages, bundles, families and ranks of a plan's tasks under the given options.
    pub fn new(work: &Workload, options: &BatchOptions) -> ScheduleOrder {
        let phase = task_phases(work);
        let (stage, stage_count) = task_stages(work, options.mode, &phase);
        let mut last_by_phase: BTreeMap<usize, usize> = BTreeMap::new();
        for (phase, stage) in phase.iter().zip(&stage) {
            let last = last_by_phase.entry(*phase).or_default();
            *last = (*last).max(*stage);
        }
        let last_stage_of_phase = phase.iter().map(|phase| last_by_phase[phase]).collect();
        let (bundle, bundle_sizes) = task_bundles(work, options.mode, &stage);
        let mut family = UnionFind::new(work.tasks().len());
        for group in work.overlap_groups() {
            group.windows(2).for_each(|pair| family.union(pair[0], pair[1]));
        }
        let tasks_by_rank = tasks_in_start_order(work, options, &phase, &stage);
        let mut rank = vec![0; tasks_by_rank.len()];
        for (position, task) in tasks_by_rank.iter().enumerate() {
            rank[*task] = position;
        }
        ScheduleOrder {
            stage,
            stage_count,
            last_stage_of_phase,
            bundle,
            bundle_sizes,
            family: family.group_numbers().0,
            rank,
            tasks_by_rank,
        }
    }
}

/// Returns the phase of each task. A task is moved to a later phase where one of its dependencies is there.
fn task_phases(work: &Workload) -> Vec<usize> {
    let mut out = vec![0; work.tasks().len()];
    for (index, phase) in work.phases().iter().enumerate() {
        phase.tasks.iter().for_each(|task| out[*task] = index);
    }
    for task in work.graph().topological_order() {
        let latest = work.tasks()[*task].depends_on.iter().map(|dependency| out[*dependency]).max();
        out[*task] = out[*task].max(latest.unwrap_or(0));
    }
    out
}

/// Returns the stage of each task, and the number of stages.
fn task_stages(work: &Workload, mode: LandingMode, phase: &[usize]) -> (Vec<usize>, usize) {
    let mut level = vec![0; phase.len()];
    if mode == LandingMode::Waves {
        for task in work.graph().topological_order() {
            let dependencies = work.tasks()[*task]
                .depends_on
                .iter()
                .filter(|dependency| phase[**dependency] == phase[*task]);
            level[*task] = dependencies.map(|dependency| level[*dependency] + 1).max().unwrap_or(0);
        }
    }
    let key = |task: usize| if mode == LandingMode::OneLane { (0, 0) } else { (phase[task], level[task]) };
    let mut stage_numbers: BTreeMap<(usize, usize), usize> =
        (0..phase.len()).map(|task| (key(task), 0)).collect();
    stage_numbers.values_mut().enumerate().for_each(|(index, number)| *number = index);
    ((0..phase.len()).map(|task| stage_numbers[&key(task)]).collect(), stage_numbers.len())
}

/// Returns the bundle of each task, and the size of each bundle.
fn task_bundles(work: &Workload, mode: LandingMode, stage: &[usize]) -> (Vec<usize>, Vec<usize>) {
    let mut groups = UnionFind::new(stage.len());
    for group in work.overlap_groups() {
        for (index, task) in group.iter().enumerate() {
            for other in &group[..index] {
                // A dependent starts after its dependency has landed, so the two never conflict.
                if stage[*task] == stage[*other] && !work.graph().are_ordered(*task, *other) {
                    groups.union(*task, *other);
                }
            }
        }
    }
    for phase in work.phases().iter().filter(|phase| !phase.parallel) {
        let mut last: BTreeMap<usize, usize> = BTreeMap::new();
        for task in &phase.tasks {
            if let Some(other) = last.insert(stage[*task], *task) {
                groups.union(*task, other);
            }
        }
    }
    if mode == LandingMode::OneLane {
        (1..stage.len()).for_each(|task| groups.union(task - 1, task));
    }
    if mode == LandingMode::Phases {
        for (task, it) in work.tasks().iter().enumerate() {
            let same_stage = it.depends_on.iter().filter(|dependency| stage[**dependency] == stage[task]);
            same_stage.for_each(|dependency| groups.union(task, *dependency));
        }
    }
    groups.group_numbers()
}

/// Returns the numbers of all tasks in the order in which they start.
fn tasks_in_start_order(
    work: &Workload,
    options: &BatchOptions,
    phase: &[usize],
    stage: &[usize],
) -> Vec<usize> {
    let tasks = work.tasks();
    // By task, the weight of the heaviest path from it to the end of the plan.
    let mut path_weight = vec![0_u64; tasks.len()];
    for task in work.graph().topological_order().iter().rev() {
        let heaviest_dependent = work.graph().dependents(*task).iter().map(|next| path_weight[*next]).max();
        path_weight[*task] = u64::from(tasks[*task].weight).saturating_add(heaviest_dependent.unwrap_or(0));
    }
    let by_path_weight =
        options.lane_assignment == LaneAssignment::LoadBalanced && options.mode != LandingMode::OneLane;
    let mut keys = Vec::with_capacity(tasks.len());
    for it in work.phases() {
        for (index, task) in it.tasks.iter().enumerate() {
            let weight = if by_path_weight && it.parallel { path_weight[*task] } else { 0 };
            keys.push((stage[*task], phase[*task], Reverse(weight), index, *task));
        }
    }
    keys.sort_unstable();
    keys.into_iter().map(|key| key.4).collect()
}

/// Union-find over the numbers from 0: disjoint groups of members that are joined directly or through others.
struct UnionFind {
    /// By member, its parent in its group; the root of a group is its own parent.
    parents: Vec<usize>,
}

impl UnionFind {
    fn new(count: usize) -> UnionFind {
        UnionFind { parents: (0..count).collect() }
    }

    /// Returns the root of a member's group, and shortens the path to it.
    fn find_root(&mut self, mut member: usize) -> usize {
        while self.parents[member] != member {
            self.parents[member] = self.parents[self.parents[member]];
            member = self.parents[member];
        }
        member
    }

    /// Joins the groups of two members.
    fn union(&mut self, first: usize, second: usize) {
        let (first_root, second_root) = (self.find_root(first), self.find_root(second));
        self.parents[first_root.max(second_root)] = first_root.min(second_root);
    }

    /// Returns the group number of each member, and the size of each group.
    fn group_numbers(mut self) -> (Vec<usize>, Vec<usize>) {
        let mut sizes = Vec::new();
        let mut group_by_root = BTreeMap::new();
        let mut numbers = Vec::with_capacity(self.parents.len());
        for member in 0..self.parents.len() {
            let group = *group_by_root.entry(self.find_root(member)).or_insert(sizes.len());
            if group == sizes.len() {
                sizes.push(0);
            }
            sizes[group] += 1;
            numbers.push(group);
        }
        (numbers, sizes)
    }
}
