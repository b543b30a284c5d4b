//! A plan with everything that is computed from it.

use proq_git as git;
use proq_git::history::tree_diff;
use proq_git::{Repo, RepoPath};
use proq_lib::lane::Project;
use proq_lib::swarm;
use proq_lib::swarm::status::simulation::{Pace, Simulation};
use proq_plan::dependency_graph;
use proq_plan::dependency_graph::DependencyGraph;
use proq_plan::lane_sharing::LaneSharing;
use proq_plan::plan::{Plan, PlanTask};
use proq_plan::plan_source::LoadedPlan;
use proq_plan::schedule::options::BatchOptions;

/// A plan with everything that is computed from it: waves, shared lanes, critical path and simulation.
pub(crate) struct PlanView<'p> {
    pub(crate) loaded: &'p LoadedPlan,
    pub(crate) tasks: Vec<PlanTask<'p>>,
    /// Indexes of the open tasks of each wave.
    pub(crate) waves: Vec<Vec<usize>>,
    pub(crate) sharing: LaneSharing,
    pub(crate) critical_path: dependency_graph::CriticalPath,
    pub(crate) max_parallel: usize,
    pub(crate) simulation: Option<Simulation>,
    /// Time per small task in earlier runs; `None` after too few runs.
    pub(crate) pace: Option<Pace>,
    pub(crate) sources: &'p [String],
}

/// Computes the view of a plan.
pub(crate) fn compute_view<'p>(
    project: &Project,
    loaded: &'p LoadedPlan,
    sources: &'p [String],
    options: &BatchOptions,
) -> Result<PlanView<'p>, swarm::Error> {
    let sharing = LaneSharing::from_plan(&loaded.plan, || head_files(&project.repo))?;
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
fn head_files(repo: &Repo) -> Result<Vec<RepoPath>, git::Error> {
    let worktree = repo.current_worktree().unwrap_or(repo.command_dir());
    let head = repo.head_commit(worktree)?;
    head.map_or_else(|| Ok(Vec::new()), |head| tree_diff::tree_paths(repo, head))
}

impl PlanView<'_> {
    /// Returns the tasks of each lane that more than one task shares.
    pub(crate) fn shared_lanes(&self) -> Vec<Vec<usize>> {
        self.sharing.shared_lanes()
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.loaded.plan
    }

    pub(crate) fn graph(&self) -> &DependencyGraph {
        &self.loaded.graph
    }

    pub(crate) fn task_name(&self, task: usize) -> String {
        self.tasks[task].task.full_name()
    }

    pub(crate) fn task_names(&self, tasks: &[usize]) -> Vec<String> {
        tasks.iter().map(|task| self.task_name(*task)).collect()
    }

    /// Returns the wave of each task, counted from 1; none for a task that is done.
    pub(crate) fn waves_by_task(&self) -> Vec<Option<usize>> {
        let mut out = vec![None; self.tasks.len()];
        for (n, wave) in self.waves.iter().enumerate() {
            for task in wave {
                out[*task] = Some(n + 1);
            }
        }
        out
    }

    /// Returns the lane of a task in the simulation, counted from 1; `None` if the task is done or the plan
    /// cannot be simulated.
    pub(crate) fn simulated_lane(&self, task: usize) -> Option<usize> {
        self.simulation.as_ref().and_then(|simulated| simulated.lane_of_task[task])
    }

    /// Returns the maximum number of lanes that are active at the same time.
    pub(crate) fn max_active_lanes(&self) -> usize {
        self.sharing.max_concurrent_lanes(&self.waves).min(self.max_parallel)
    }

    /// Returns the summed weight of the tasks that are not done.
    pub(crate) fn weight_of_open_tasks(&self) -> usize {
        let open_tasks = self.tasks.iter().filter(|entry| !entry.task.done);
        open_tasks.map(|entry| entry.task.size.weight()).sum()
    }
}
