//! Counters over all tasks of a batch, so that no event has to visit each task.

use std::collections::{BTreeMap, BTreeSet};

use super::task_phase::TaskPhase;

/// Counts and sets of tasks by phase.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Counters {
    /// Number of tasks that count as concurrent runs.
    pub active: usize,
    /// Number of tasks that are landing.
    pub landing: usize,
    /// Number of tasks that are not settled.
    pub(crate) unsettled: usize,
    /// Number of tasks that have landed or were done before the batch.
    pub on_branch: usize,
    /// Tasks with a conflict whose resolution was requested.
    pub resolving: BTreeSet<usize>,
    /// Tasks with a conflict whose resolution was not requested yet.
    pub(crate) open_conflicts: BTreeSet<usize>,
    /// Tasks whose work is to land, by stage.
    pub(crate) ready_to_land: BTreeMap<usize, BTreeSet<usize>>,
    /// Number of waiting and active tasks, by stage.
    pub(crate) stage_loads: Vec<StageLoad>,
    /// Number of tasks that block the next stage, by stage. Finished stages have no entry.
    pub(crate) open_stages: BTreeMap<usize, usize>,
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
    pub task: usize,
    pub stage: usize,
    pub family: usize,
    pub(crate) bundle: usize,
}

impl Counters {
    /// Adds a task in this phase to the counters.
    pub(crate) fn add_task(&mut self, membership: TaskMembership, phase: TaskPhase) {
        let stage_load = &mut self.stage_loads[membership.stage];
        stage_load.waiting += usize::from(phase == TaskPhase::Waiting);
        stage_load.active += usize::from(phase.is_active());
        self.active += usize::from(phase.is_active());
        self.landing += usize::from(matches!(phase, TaskPhase::Landing(_)));
        self.on_branch += usize::from(phase.is_on_branch());
        if !phase.is_settled() {
            self.unsettled += 1;
            self.unsettled_by_family[membership.family] += 1;
            self.unsettled_by_bundle[membership.bundle] += 1;
        }
        if !phase.allows_next_stage() {
            *self.open_stages.entry(membership.stage).or_default() += 1;
        }
        match phase {
            TaskPhase::ReadyToLand => {
                self.ready_to_land.entry(membership.stage).or_default().insert(membership.task);
            }
            TaskPhase::Conflict { is_resolving: true } => {
                self.resolving.insert(membership.task);
            }
            TaskPhase::Conflict { is_resolving: false } => {
                self.open_conflicts.insert(membership.task);
            }
            _ => {}
        }
    }

    /// Removes a task in this phase from the counters.
    pub(crate) fn remove_task(&mut self, membership: TaskMembership, phase: TaskPhase) {
        let stage_load = &mut self.stage_loads[membership.stage];
        stage_load.waiting -= usize::from(phase == TaskPhase::Waiting);
        stage_load.active -= usize::from(phase.is_active());
        self.active -= usize::from(phase.is_active());
        self.landing -= usize::from(matches!(phase, TaskPhase::Landing(_)));
        self.on_branch -= usize::from(phase.is_on_branch());
        if !phase.is_settled() {
            self.unsettled -= 1;
            self.unsettled_by_family[membership.family] -= 1;
            self.unsettled_by_bundle[membership.bundle] -= 1;
        }
        if !phase.allows_next_stage()
            && let Some(open_count) = self.open_stages.get_mut(&membership.stage)
        {
            *open_count -= 1;
            if *open_count == 0 {
                self.open_stages.remove(&membership.stage);
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
                self.open_conflicts.remove(&membership.task);
            }
            _ => {}
        }
    }

    /// Returns the first unfinished stage.
    pub(crate) fn first_open_stage(&self) -> Option<usize> {
        self.open_stages.keys().next().copied()
    }

    /// Returns whether no run, landing or resolution is under way that will end on its own and report an
    /// event.
    pub fn is_idle(&self) -> bool {
        self.active == 0 && self.landing == 0 && self.resolving.is_empty()
    }
}
