//! Input of the scheduler: tasks by number, their dependency graph, their file overlaps and their phases.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// One task of a plan, as the scheduler needs it.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduledTask {
    /// Numbers of the tasks on which this task depends directly.
    #[serde(rename = "after")]
    pub depends_on: Vec<usize>,
    /// Amount of work, relative to other tasks.
    pub weight: u32,
    /// The agent that is to run the task.
    pub agent: Option<String>,
    /// Number of failed runs in earlier batches, since the task last landed or the user last retried it.
    pub failures: u32,
    /// Whether the task was done before the batch.
    pub done: bool,
}

/// A phase of a plan. Its tasks start when all earlier phases have finished.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phase {
    /// Numbers of the tasks, in order.
    pub tasks: Vec<usize>,
    /// Whether tasks of the phase may run concurrently.
    pub parallel: bool,
}

/// A plan as the scheduler needs it. Its dependencies have no cycle, and each task is in exactly one phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workload {
    tasks: Vec<ScheduledTask>,
    phases: Vec<Phase>,
    /// Groups of tasks that change the same files.
    overlap_groups: Vec<Vec<usize>>,
    graph: DependencyGraph,
}

/// Reason for which a plan cannot be scheduled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkloadError {
    /// A number that is no task's.
    #[error("there is no task number {0}")]
    UnknownTask(usize),
    /// A dependency cycle: each task depends on the one before it, and the first on the last.
    #[error("tasks depend on each other in a circle: {0:?}")]
    Cycle(Vec<usize>),
    /// A task that is in no phase, or in more than one.
    #[error("task number {0} is not in exactly one phase")]
    NotInOnePhase(usize),
}

impl Workload {
    /// Validates the tasks and creates the workload. If `phases` is empty, all tasks are in one phase in
    /// which any may run concurrently. Tasks of one group of `overlaps` change the same files.
    pub fn new(
        mut tasks: Vec<ScheduledTask>,
        mut phases: Vec<Phase>,
        overlaps: Vec<Vec<usize>>,
    ) -> Result<Workload, WorkloadError> {
        let count = tasks.len();
        for task in &mut tasks {
            task.depends_on.sort_unstable();
            task.depends_on.dedup();
        }
        let numbers = tasks.iter().flat_map(|t| &t.depends_on);
        let mut numbers =
            numbers.chain(phases.iter().flat_map(|p| &p.tasks)).chain(overlaps.iter().flatten());
        if let Some(unknown) = numbers.find(|n| **n >= count) {
            return Err(WorkloadError::UnknownTask(*unknown));
        }
        if phases.is_empty() {
            phases.push(Phase { tasks: (0..count).collect(), parallel: true });
        }
        let mut phase_counts = vec![0_u32; count];
        for task in phases.iter().flat_map(|p| &p.tasks) {
            phase_counts[*task] += 1;
        }
        if let Some(task) = phase_counts.iter().position(|occurrences| *occurrences != 1) {
            return Err(WorkloadError::NotInOnePhase(task));
        }
        let graph = DependencyGraph::new(&tasks).map_err(WorkloadError::Cycle)?;
        Ok(Workload { tasks, phases, overlap_groups: overlaps, graph })
    }

    /// Returns the tasks, by number.
    pub fn tasks(&self) -> &[ScheduledTask] {
        &self.tasks
    }

    /// Returns the phases, in order.
    pub fn phases(&self) -> &[Phase] {
        &self.phases
    }

    /// Returns the groups of tasks that change the same files.
    pub fn overlap_groups(&self) -> &[Vec<usize>] {
        &self.overlap_groups
    }

    /// Returns the dependency graph of the tasks.
    pub fn graph(&self) -> &DependencyGraph {
        &self.graph
    }
}

/// Acyclic dependencies between tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DependencyGraph {
    /// By task, the tasks that depend on it directly.
    dependents: Vec<Vec<usize>>,
    /// All tasks, each after its dependencies.
    topological_order: Vec<usize>,
    /// By task, a bit set of the tasks that it has to wait for: its dependencies, direct or through tasks
    /// that are not done yet.
    ancestor_bits: Vec<Vec<u64>>,
}

impl DependencyGraph {
    /// Builds the graph from the tasks' dependencies. The error is a cycle: each of its tasks depends on the
    /// one before it.
    pub fn new(tasks: &[ScheduledTask]) -> Result<DependencyGraph, Vec<usize>> {
        let mut dependents = vec![Vec::new(); tasks.len()];
        for (task, it) in tasks.iter().enumerate() {
            for dependency in &it.depends_on {
                dependents[*dependency].push(task);
            }
        }
        let mut unresolved: Vec<usize> = tasks.iter().map(|t| t.depends_on.len()).collect();
        let mut ready: BTreeSet<usize> = (0..tasks.len()).filter(|t| unresolved[*t] == 0).collect();
        let mut topological_order = Vec::with_capacity(tasks.len());
        while let Some(task) = ready.pop_first() {
            topological_order.push(task);
            for dependent in &dependents[task] {
                unresolved[*dependent] -= 1;
                if unresolved[*dependent] == 0 {
                    ready.insert(*dependent);
                }
            }
        }
        if let Some(cycle_member) = unresolved.iter().position(|m| *m > 0) {
            return Err(find_cycle(tasks, &unresolved, cycle_member));
        }
        let word_count = tasks.len().div_ceil(64);
        let mut ancestor_bits: Vec<Vec<u64>> = vec![vec![0; word_count]; tasks.len()];
        for task in &topological_order {
            let mut bits = vec![0; word_count];
            for dependency in &tasks[*task].depends_on {
                if !tasks[*dependency].done {
                    bits.iter_mut()
                        .zip(&ancestor_bits[*dependency])
                        .for_each(|(bits_word, ancestor_word)| *bits_word |= ancestor_word);
                }
                bits[dependency / 64] |= 1 << (dependency % 64);
            }
            ancestor_bits[*task] = bits;
        }
        Ok(DependencyGraph { dependents, topological_order, ancestor_bits })
    }

    /// Returns the tasks that depend directly on `task`.
    pub fn dependents(&self, task: usize) -> &[usize] {
        &self.dependents[task]
    }

    /// Returns all tasks, each after its dependencies.
    pub(crate) fn topological_order(&self) -> &[usize] {
        &self.topological_order
    }

    /// Returns whether `task` has to wait for `other`, directly or through others. No task waits for the
    /// dependencies of a task that was done before the batch.
    pub fn waits_for(&self, task: usize, other: usize) -> bool {
        self.ancestor_bits[task][other / 64] >> (other % 64) & 1 == 1
    }

    /// Returns whether one of the two tasks has to wait for the other.
    pub(crate) fn are_ordered(&self, first: usize, second: usize) -> bool {
        self.waits_for(first, second) || self.waits_for(second, first)
    }
}

/// Finds a cycle: walks backwards from an unresolved task over unresolved dependencies, until a task comes a
/// second time.
fn find_cycle(tasks: &[ScheduledTask], unresolved: &[usize], start: usize) -> Vec<usize> {
    let mut path = vec![start];
    let mut current = start;
    while let Some(dependency) = tasks[current].depends_on.iter().copied().find(|b| unresolved[*b] > 0) {
        if let Some(first) = path.iter().position(|t| *t == dependency) {
            path.drain(..first);
            break;
        }
        path.push(dependency);
        current = dependency;
    }
    path.reverse();
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tasks(after: &[&[usize]]) -> Vec<ScheduledTask> {
        after.iter().map(|a| ScheduledTask { depends_on: a.to_vec(), ..ScheduledTask::default() }).collect()
    }

    #[test]
    fn orders_tasks_after_dependencies() {
        let graph = DependencyGraph::new(&tasks(&[&[2], &[0], &[], &[0, 1]])).unwrap();
        assert_eq!(graph.topological_order(), [2, 0, 1, 3]);
        assert_eq!(graph.dependents(0), [1, 3]);
        assert!(graph.waits_for(3, 2) && !graph.waits_for(2, 3) && graph.are_ordered(2, 3));
        assert!(!graph.waits_for(1, 1));
    }

    #[test]
    fn ignores_dependencies_of_done_tasks() {
        let mut tasks = tasks(&[&[], &[0], &[1], &[2]]);
        tasks[1].done = true;
        let graph = DependencyGraph::new(&tasks).unwrap();
        assert!(graph.waits_for(2, 1) && graph.waits_for(3, 1) && graph.waits_for(3, 2));
        assert!(!graph.waits_for(2, 0) && !graph.are_ordered(0, 3));
    }

    #[test]
    fn reports_cycle_without_its_dependents() {
        assert_eq!(DependencyGraph::new(&tasks(&[&[1], &[3], &[], &[4], &[1]])), Err(vec![4, 3, 1]));
        assert_eq!(DependencyGraph::new(&tasks(&[&[0]])), Err(vec![0]));
    }
}
