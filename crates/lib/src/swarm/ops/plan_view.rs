//! A plan with everything that is computed from it.

use proq_base::config::settings::SwarmSettings;
use proq_git::history::tree_diff;
use proq_git::{Repo, RepoPath};
use proq_plan::dependency_graph::{CriticalPath, DependencyGraph};
use proq_plan::lane_sharing::{FileOverlap, LaneSharing};
use proq_plan::plan::{Plan, PlanTask};
use proq_plan::plan_source::LoadedPlan;
use proq_plan::schedule::options::{BatchOptions, LandingMode, LaneAssignment};

use crate::lane::Project;
use crate::swarm::Error;
use crate::swarm::status::simulation::{Pace, Simulation};

/// A plan with everything that is computed from it: waves, shared lanes, critical path and simulation. It
/// serializes to the JSON output of `git proq plan`.
pub struct PlanView {
    /// The plan and its dependencies.
    pub loaded: LoadedPlan,
    /// Full names of the tasks, in the plan's order.
    pub names: Vec<String>,
    /// Indexes of the open tasks of each wave.
    pub waves: Vec<Vec<usize>>,
    /// Tasks whose scopes overlap, and the lanes that they share.
    pub sharing: LaneSharing,
    /// The path through the open tasks that takes longest.
    pub critical_path: CriticalPath,
    /// Maximum number of lanes that may be active at the same time.
    pub max_parallel: usize,
    /// The plan's simulated execution; none where it cannot be simulated.
    pub simulation: Option<Simulation>,
    /// Time per small task in earlier runs; none after too few runs.
    pub pace: Option<Pace>,
    /// Sources of the plan, as they were named.
    pub sources: Vec<String>,
}

/// Returns the options with which a plan that is only shown is simulated.
pub fn simulated_options(settings: &SwarmSettings, max_parallel: usize) -> BatchOptions {
    BatchOptions {
        mode: LandingMode::from_setting(&settings.mode),
        lane_assignment: LaneAssignment::from_setting(&settings.strategy),
        max_parallel,
        ..BatchOptions::default()
    }
}

/// Returns the files of HEAD; none before the first commit.
fn head_files(repo: &Repo) -> Result<Vec<RepoPath>, proq_git::Error> {
    let worktree = repo.current_worktree().unwrap_or(repo.command_dir());
    let head = repo.head_commit(worktree)?;
    head.map_or_else(|| Ok(Vec::new()), |head| tree_diff::tree_paths(repo, head))
}

impl PlanView {
    /// Computes the view of a plan. Scopes that are patterns are compared by the files of HEAD.
    ///
    /// # Errors
    /// Fails when the files of HEAD cannot be read.
    pub fn compute(
        project: &Project,
        loaded: LoadedPlan,
        sources: Vec<String>,
        options: &BatchOptions,
    ) -> Result<PlanView, Error> {
        let sharing = LaneSharing::from_plan(&loaded.plan, || head_files(&project.repo))?;
        Ok(PlanView {
            names: loaded.plan.tasks().map(|entry| entry.task.full_name()).collect(),
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

    /// Returns the tasks of the plan, in its order.
    pub fn tasks(&self) -> Vec<PlanTask<'_>> {
        self.loaded.plan.tasks().collect()
    }

    /// Returns the plan.
    pub fn plan(&self) -> &Plan {
        &self.loaded.plan
    }

    /// Returns the dependencies between the tasks.
    pub fn graph(&self) -> &DependencyGraph {
        &self.loaded.graph
    }

    /// Returns the full names of the tasks with these indexes.
    pub fn task_names(&self, tasks: &[usize]) -> Vec<String> {
        tasks.iter().map(|task| self.names[*task].clone()).collect()
    }

    /// Returns the wave of each task, counted from 1; none for a task that is done.
    pub fn waves_by_task(&self) -> Vec<Option<usize>> {
        let mut out = vec![None; self.names.len()];
        for (n, wave) in self.waves.iter().enumerate() {
            for task in wave {
                out[*task] = Some(n + 1);
            }
        }
        out
    }

    /// Returns the lane of a task in the simulation, counted from 1; none if the task is done or the plan
    /// cannot be simulated.
    pub fn simulated_lane(&self, task: usize) -> Option<usize> {
        self.simulation.as_ref().and_then(|simulated| simulated.lane_of_task[task])
    }

    /// Returns the maximum number of lanes that are active at the same time.
    pub fn max_active_lanes(&self) -> usize {
        self.sharing.max_concurrent_lanes(&self.waves).min(self.max_parallel)
    }

    /// Returns the overlaps for which the tasks of `lane` share it.
    pub fn overlaps_of_lane(&self, lane: &[usize]) -> impl Iterator<Item = &FileOverlap> {
        let (sharing, first) = (&self.sharing, lane.first().copied());
        let is_of_lane =
            move |overlap: &&FileOverlap| Some(sharing.first_task_of_lane(overlap.tasks[0])) == first;
        sharing.overlaps.iter().filter(is_of_lane)
    }

    /// Returns the summed weight of the tasks that are not done.
    pub fn weight_of_open_tasks(&self) -> usize {
        let open_tasks = self.loaded.plan.tasks().filter(|entry| !entry.task.done);
        open_tasks.map(|entry| entry.task.size.weight()).sum()
    }
}
