//! A plan with everything that is computed from it.

use crate::git::{self, RepoPath};
use crate::lane::Project;
use crate::swarm::{
    self, BatchOptions, DependencyGraph, LaneSharing, LoadedPlan, Pace, Plan, PlanTask, Simulation,
};

/// A plan with everything that is computed from it: waves, shared lanes, critical path and simulation.
pub(super) struct PlanView<'p> {
    pub(super) loaded: &'p LoadedPlan,
    pub(super) tasks: Vec<PlanTask<'p>>,
    pub(super) waves: Vec<Vec<usize>>,
    pub(super) sharing: LaneSharing,
    pub(super) critical_path: swarm::CriticalPath,
    pub(super) max_parallel: usize,
    pub(super) simulation: Option<Simulation>,
    pub(super) pace: Option<Pace>,
    pub(super) sources: &'p [String],
}

/// Computes the view of a plan.
pub(super) fn compute_view<'p>(
    project: &Project,
    loaded: &'p LoadedPlan,
    sources: &'p [String],
    options: &BatchOptions,
) -> Result<PlanView<'p>, swarm::Error> {
    let sharing = LaneSharing::from_plan(&loaded.plan, || head_files(project))?;
    Ok(PlanView {
        tasks: loaded.plan.tasks().collect(),
        simulation: Simulation::run(&loaded.plan, &loaded.graph, sharing.shared_lanes(), options),
        pace: Pace::from_history(project),
        sharing,
        critical_path: loaded.graph.critical_path(&loaded.plan),
        max_parallel: options.max_parallel,
        sources,
        waves: loaded.graph.waves(),
        loaded,
    })
}

/// Returns the files of HEAD; none before the first commit.
fn head_files(project: &Project) -> Result<Vec<RepoPath>, git::Error> {
    let worktree = project.repo.current_worktree().unwrap_or(project.repo.command_dir());
    let head = project.repo.head_commit(worktree)?;
    head.map_or_else(|| Ok(Vec::new()), |head| git::tree_paths(&project.repo, head))
}

impl PlanView<'_> {
    /// Returns the tasks of each lane that more than one task shares.
    pub(super) fn shared_lanes(&self) -> Vec<Vec<usize>> {
        self.sharing.shared_lanes()
    }

    pub(super) fn plan(&self) -> &Plan {
        &self.loaded.plan
    }

    pub(super) fn graph(&self) -> &DependencyGraph {
        &self.loaded.graph
    }

    pub(super) fn task_name(&self, task: usize) -> String {
        self.tasks[task].task.name()
    }

    pub(super) fn task_names(&self, tasks: &[usize]) -> Vec<String> {
        tasks.iter().map(|task| self.task_name(*task)).collect()
    }

    /// Returns the wave of each task, counted from 1; none for a task that is done.
    pub(super) fn waves_by_task(&self) -> Vec<Option<usize>> {
        let mut out = vec![None; self.tasks.len()];
        for (n, wave) in self.waves.iter().enumerate() {
            for task in wave {
                out[*task] = Some(n + 1);
            }
        }
        out
    }

    /// Returns the lane of a task in the simulation, counted from 1.
    pub(super) fn simulated_lane(&self, task: usize) -> Option<usize> {
        self.simulation.as_ref().and_then(|simulated| simulated.lanes[task])
    }

    /// Returns the maximum number of lanes that are active at the same time.
    pub(super) fn max_active_lanes(&self) -> usize {
        self.sharing.max_concurrent_lanes(&self.waves).min(self.max_parallel)
    }

    /// Returns the summed weight of the tasks that are not done.
    pub(super) fn open_weight(&self) -> usize {
        let open_tasks = self.tasks.iter().filter(|entry| !entry.task.done);
        open_tasks.map(|entry| entry.task.size.weight()).sum()
    }
}
