//! Owns what is scheduled: tasks by number, what they depend on, what they are in each other's way with, and their phases.

use serde::{Deserialize, Serialize};

use super::graph::Graph;

/// One task of a plan.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Task {
    /// The tasks that it builds on.
    pub(crate) after: Vec<usize>,
    /// How much work it is, next to others.
    pub(crate) weight: u32,
    /// Which agent is to do it.
    pub(crate) agent: Option<String>,
    /// How often it has failed, over all batches before, since a person last asked for it.
    pub(crate) failures: u32,
    /// It was done before the batch.
    pub(crate) done: bool,
}

/// Tasks of a plan that belong together. What is in a later phase starts when the earlier ones are through.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Phase {
    /// The tasks, in order.
    pub(crate) tasks: Vec<usize>,
    /// Whether several may run at once.
    pub(crate) parallel: bool,
}

/// A plan, as far as scheduling goes by it. Its dependencies have no cycle, and each task is in one phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Work {
    tasks: Vec<Task>,
    phases: Vec<Phase>,
    overlaps: Vec<Vec<usize>>,
    graph: Graph,
}

/// Why something is no plan that could be scheduled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Flaw {
    /// A number that is no task's.
    #[error("there is no task number {0}")]
    NoSuchTask(usize),
    /// Each of these depends on the one before it, and the first on the last.
    #[error("tasks depend on each other in a circle: {0:?}")]
    Circle(Vec<usize>),
    /// A task that is in no phase, or in several.
    #[error("task number {0} is not in exactly one phase")]
    NotInOnePhase(usize),
}

impl Work {
    /// Checks and takes the tasks. Without phases they are all in one, where any may run beside each other: so too for a plan
    /// whose phases are only headings. Tasks of one group of `overlaps` change the same files.
    pub(crate) fn new(
        mut tasks: Vec<Task>,
        mut phases: Vec<Phase>,
        overlaps: Vec<Vec<usize>>,
    ) -> Result<Work, Flaw> {
        let count = tasks.len();
        for task in &mut tasks {
            task.after.sort_unstable();
            task.after.dedup();
        }
        let numbers = tasks.iter().flat_map(|t| &t.after);
        let mut numbers =
            numbers.chain(phases.iter().flat_map(|p| &p.tasks)).chain(overlaps.iter().flatten());
        if let Some(wrong) = numbers.find(|n| **n >= count) {
            return Err(Flaw::NoSuchTask(*wrong));
        }
        if phases.is_empty() {
            phases.push(Phase { tasks: (0..count).collect(), parallel: true });
        }
        let mut seen = vec![0_u32; count];
        for task in phases.iter().flat_map(|p| &p.tasks) {
            seen[*task] += 1;
        }
        if let Some(task) = seen.iter().position(|times| *times != 1) {
            return Err(Flaw::NotInOnePhase(task));
        }
        let graph = Graph::new(&tasks).map_err(Flaw::Circle)?;
        Ok(Work { tasks, phases, overlaps, graph })
    }

    /// The tasks.
    pub(crate) fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// The phases, in order.
    pub(super) fn phases(&self) -> &[Phase] {
        &self.phases
    }

    /// Groups of tasks that change the same files.
    pub(super) fn overlaps(&self) -> &[Vec<usize>] {
        &self.overlaps
    }

    /// Who depends on whom.
    pub(super) fn graph(&self) -> &Graph {
        &self.graph
    }
}
