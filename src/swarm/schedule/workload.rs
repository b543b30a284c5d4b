//! Input of the scheduler: tasks by number, their dependencies, their file overlaps and their phases.

use serde::{Deserialize, Serialize};

use super::dependency_graph::DependencyGraph;

/// One task of a plan, as the scheduler needs it.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ScheduledTask {
    /// Numbers of the tasks on which this task depends directly.
    #[serde(rename = "after")]
    pub(crate) depends_on: Vec<usize>,
    /// Amount of work, relative to other tasks.
    pub(crate) weight: u32,
    /// The agent that is to run the task.
    pub(crate) agent: Option<String>,
    /// Number of failed runs in earlier batches, since the task last landed or the user last retried it.
    pub(crate) failures: u32,
    /// Whether the task was done before the batch.
    pub(crate) done: bool,
}

/// A phase of a plan. Its tasks start when all earlier phases have finished.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Phase {
    /// Numbers of the tasks, in order.
    pub(crate) tasks: Vec<usize>,
    /// Whether tasks of the phase may run concurrently.
    pub(crate) parallel: bool,
}

/// A plan as the scheduler needs it. Its dependencies have no cycle, and each task is in exactly one phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Workload {
    tasks: Vec<ScheduledTask>,
    phases: Vec<Phase>,
    overlaps: Vec<Vec<usize>>,
    graph: DependencyGraph,
}

/// Reason for which a plan cannot be scheduled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WorkloadError {
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
    pub(crate) fn new(
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
        Ok(Workload { tasks, phases, overlaps, graph })
    }

    /// Returns the tasks, by number.
    pub(crate) fn tasks(&self) -> &[ScheduledTask] {
        &self.tasks
    }

    /// Returns the phases, in order.
    pub(super) fn phases(&self) -> &[Phase] {
        &self.phases
    }

    /// Returns the groups of tasks that change the same files.
    pub(super) fn overlaps(&self) -> &[Vec<usize>] {
        &self.overlaps
    }

    /// Returns the dependency graph of the tasks.
    pub(super) fn graph(&self) -> &DependencyGraph {
        &self.graph
    }
}
