//! Counters over all tasks of a batch, so that no event has to visit each task.

use std::collections::{BTreeMap, BTreeSet};

use super::task_phase::TaskPhase;

/// Counts and sets of tasks by phase.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Counters {
    /// Number of tasks that count as concurrent runs.
    pub active_count: usize,
    /// Number of tasks that are landing.
    pub landing_count: usize,
    /// Number of the batch's tasks that are not settled.
    pub(crate) unsettled_count: usize,
    /// Number of tasks that have landed or were done before the batch.
    pub on_branch_count: usize,
    /// Tasks with a conflict whose resolution was requested.
    pub resolving: BTreeSet<usize>,
    /// Tasks with a conflict whose resolution was not requested yet.
    pub(crate) conflicts_without_agent: BTreeSet<usize>,
    /// Tasks whose work is to land, by stage.
    pub(crate) ready_to_land: BTreeMap<usize, BTreeSet<usize>>,
    /// Number of waiting and active tasks, by stage.
    pub(crate) stage_loads: Vec<StageLoad>,
    /// Number of tasks that block the next stage, by stage. Finished stages have no entry.
    pub(crate) blocking_count_by_stage: BTreeMap<usize, usize>,
    /// Number of tasks that are not settled, by family.
    pub(crate) unsettled_by_family: Vec<usize>,
    /// Number of tasks that are not settled, by bundle.
    pub(crate) unsettled_by_bundle: Vec<usize>,
}

/// Number of tasks of a stage that are to run or running.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StageLoad {
    /// Number of tasks that are to run.
    pub waiting: usize,
    /// Number of tasks that count as concurrent runs.
    pub active: usize,
}

/// A task with the groups in which it is counted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TaskMembership {
    /// Number of the task.
    pub task: usize,
    /// Stage of the task.
    pub stage: usize,
    /// Family of the task.
    pub family: usize,
    /// Bundle of the task.
    pub(crate) bundle: usize,
}

impl Counters {
    /// Adds a task in this phase to the counters.
    pub(crate) fn add_task(&mut self, membership: TaskMembership, phase: TaskPhase) {
        let stage_load = &mut self.stage_loads[membership.stage];
        stage_load.waiting += usize::from(phase == TaskPhase::Waiting);
        stage_load.active += usize::from(phase.counts_as_run());
        self.active_count += usize::from(phase.counts_as_run());
        self.landing_count += usize::from(matches!(phase, TaskPhase::Landing(_)));
        self.on_branch_count += usize::from(phase.is_on_branch());
        if !phase.is_settled() {
            self.unsettled_count += 1;
            self.unsettled_by_family[membership.family] += 1;
            self.unsettled_by_bundle[membership.bundle] += 1;
        }
        if !phase.allows_next_stage() {
            *self.blocking_count_by_stage.entry(membership.stage).or_default() += 1;
        }
        match phase {
            TaskPhase::ReadyToLand => {
                self.ready_to_land.entry(membership.stage).or_default().insert(membership.task);
            }
            TaskPhase::Conflict { is_resolving: true } => {
                self.resolving.insert(membership.task);
            }
            TaskPhase::Conflict { is_resolving: false } => {
                self.conflicts_without_agent.insert(membership.task);
            }
            _ => {}
        }
    }

    /// Removes a task in this phase from the counters.
    pub(crate) fn remove_task(&mut self, membership: TaskMembership, phase: TaskPhase) {
        let stage_load = &mut self.stage_loads[membership.stage];
        stage_load.waiting -= usize::from(phase == TaskPhase::Waiting);
        stage_load.active -= usize::from(phase.counts_as_run());
        self.active_count -= usize::from(phase.counts_as_run());
        self.landing_count -= usize::from(matches!(phase, TaskPhase::Landing(_)));
        self.on_branch_count -= usize::from(phase.is_on_branch());
        if !phase.is_settled() {
            self.unsettled_count -= 1;
            self.unsettled_by_family[membership.family] -= 1;
            self.unsettled_by_bundle[membership.bundle] -= 1;
        }
        if !phase.allows_next_stage()
            && let Some(open_count) = self.blocking_count_by_stage.get_mut(&membership.stage)
        {
            *open_count -= 1;
            if *open_count == 0 {
                self.blocking_count_by_stage.remove(&membership.stage);
            }
        }
        match phase {
            TaskPhase::ReadyToLand => {
                if let Some(stage_tasks) = self.ready_to_land.get_mut(&membership.stage) {
                    stage_tasks.remove(&membership.task);
                    if stage_tasks.is_empty() {
                        self.ready_to_land.remove(&membership.stage);
                    }
                }
            }
            TaskPhase::Conflict { .. } => {
                self.resolving.remove(&membership.task);
                self.conflicts_without_agent.remove(&membership.task);
            }
            _ => {}
        }
    }

    /// Returns the first unfinished stage.
    pub(crate) fn first_open_stage(&self) -> Option<usize> {
        self.blocking_count_by_stage.keys().next().copied()
    }

    /// Returns whether no run, landing or resolution is under way that will end on its own and report an
    /// event.
    pub fn is_idle(&self) -> bool {
        self.active_count == 0 && self.landing_count == 0 && self.resolving.is_empty()
    }
}
