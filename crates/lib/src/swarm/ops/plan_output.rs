//! JSON output of a plan, as `git proq plan --json` prints it.

use std::time::Duration;

use proq_plan::plan::{BoxProgress, PhaseOrder, Size};
use serde::{Serialize, Serializer};

use super::plan_view::PlanView;

/// Everything about a plan, in the form and order of the JSON output.
#[derive(Serialize)]
struct PlanOutput {
    source: Source,
    summary: String,
    warnings: Vec<String>,
    criteria: Vec<String>,
    /// Remarks of the plan's reader about its source.
    #[serde(rename = "remarks")]
    source_notes: Vec<String>,
    phases: Vec<Phase>,
    tasks: Vec<Task>,
    /// Names of the open tasks of each wave.
    waves: Vec<Vec<String>>,
    /// Dependencies of tasks that an agent found missing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    proposed: Vec<ProposedNeed>,
    shared_lanes: Vec<SharedLane>,
    max_parallel: usize,
    /// Maximum number of lanes that are active at the same time.
    #[serde(rename = "lanes")]
    max_active_lanes: usize,
    /// Maximum number of active lanes if `max_parallel` did not cap it.
    #[serde(rename = "could_be_lanes")]
    max_lanes_without_limit: usize,
    #[serde(rename = "longest")]
    critical_path: CriticalPath,
    time: TimeEstimate,
}

/// Estimated time of the plan.
#[derive(Serialize)]
struct TimeEstimate {
    /// Length of the plan as a number of small tasks, done one after the other.
    weight: usize,
    /// Length at the pace of earlier runs; none after too few runs.
    #[serde(rename = "seconds", with = "proq_base::time_form::seconds::option")]
    #[serde(skip_serializing_if = "Option::is_none")]
    duration: Option<Duration>,
    /// Number of runs that the pace is computed from.
    from_runs: usize,
}

/// Dependency that an agent found missing: `task` needs `needs`.
#[derive(Serialize)]
struct ProposedNeed {
    task: String,
    needs: String,
    #[serde(rename = "because")]
    reason: String,
    agent: String,
}

#[derive(Serialize)]
struct Source {
    format: String,
    names: Vec<String>,
}

#[derive(Serialize)]
struct Phase {
    title: String,
    order: PhaseOrder,
    groups: Vec<Group>,
}

#[derive(Serialize)]
struct Group {
    theme: String,
    rationale: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    prompt: String,
    tasks: Vec<String>,
}

#[derive(Serialize)]
struct Task {
    name: String,
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    area: Option<String>,
    title: String,
    prompt: String,
    needs: Vec<String>,
    scope: Vec<String>,
    size: Size,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    checks: Vec<String>,
    done: bool,
    /// Review level of the task, from 0 to 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    review: Option<u8>,
    /// Ticked boxes of a task folder, and the number of all boxes.
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<BoxProgress>,
    /// Phase of the task, counted from 1.
    phase: usize,
    /// Wave of the task, counted from 1; none for a task that is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    wave: Option<usize>,
    /// Lane of the task in the simulation, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    lane: Option<usize>,
    from: TaskSource,
}

#[derive(Serialize)]
struct TaskSource {
    file: String,
    line: usize,
}

#[derive(Serialize)]
struct SharedLane {
    tasks: Vec<String>,
    #[serde(rename = "because")]
    overlaps: Vec<FileOverlap>,
}

/// Two tasks with overlapping scopes, and the glob of each that overlaps.
#[derive(Serialize)]
struct FileOverlap {
    tasks: [String; 2],
    globs: [String; 2],
}

#[derive(Serialize)]
struct CriticalPath {
    tasks: Vec<String>,
    /// Summed weight of the tasks on the path.
    weight: usize,
    /// Summed weight of all open tasks.
    #[serde(rename = "of")]
    total_weight: usize,
}

impl Serialize for PlanView {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        PlanOutput::from_view(self).serialize(serializer)
    }
}

impl PlanOutput {
    /// Converts a plan to its output.
    fn from_view(view: &PlanView) -> PlanOutput {
        let plan = view.plan();
        let overlaps_of = |lane: &[usize]| {
            let file_overlap = |overlap: &proq_plan::lane_sharing::FileOverlap| FileOverlap {
                tasks: overlap.tasks.map(|task| view.names[task].clone()),
                globs: overlap.globs.clone(),
            };
            view.overlaps_of_lane(lane).map(file_overlap).collect()
        };
        let shared = view.sharing.shared_lanes();
        PlanOutput {
            source: Source { format: view.loaded.format.name().to_owned(), names: view.sources.clone() },
            summary: plan.summary.clone(),
            warnings: plan.warnings.clone(),
            criteria: plan.criteria.clone(),
            source_notes: plan.source_notes.iter().map(ToString::to_string).collect(),
            phases: plan.phases.iter().map(phase_output).collect(),
            tasks: task_outputs(view),
            waves: view.waves.iter().map(|wave| view.task_names(wave)).collect(),
            proposed: view
                .loaded
                .approved_needs
                .iter()
                .map(|edge| ProposedNeed {
                    task: view.names[edge.task].clone(),
                    needs: view.names[edge.needed].clone(),
                    reason: edge.reason.clone(),
                    agent: edge.agent.clone(),
                })
                .collect(),
            shared_lanes: shared
                .iter()
                .map(|lane| SharedLane { tasks: view.task_names(lane), overlaps: overlaps_of(lane) })
                .collect(),
            max_parallel: view.max_parallel,
            max_active_lanes: view.max_active_lanes(),
            max_lanes_without_limit: view.sharing.max_concurrent_lanes(&view.waves),
            critical_path: CriticalPath {
                tasks: view.task_names(&view.critical_path.tasks),
                weight: view.critical_path.weight,
                total_weight: view.weight_of_open_tasks(),
            },
            time: time_estimate(view),
        }
    }
}

fn time_estimate(view: &PlanView) -> TimeEstimate {
    let weight = view.simulation.as_ref().map_or(0, |simulated| simulated.makespan);
    TimeEstimate {
        weight,
        duration: view.pace.map(|pace| pace.small_tasks_duration(weight)),
        from_runs: view.pace.map_or(0, |pace| pace.sample_count),
    }
}

fn phase_output(phase: &proq_plan::plan::Phase) -> Phase {
    let group_output = |group: &proq_plan::plan::Group| Group {
        theme: group.theme.clone(),
        rationale: group.rationale.clone(),
        agent: group.agent.clone(),
        model: group.model.clone(),
        prompt: group.prompt.clone(),
        tasks: group.tasks.iter().map(proq_plan::plan::Task::full_name).collect(),
    };
    Phase {
        title: phase.title.clone(),
        order: phase.order,
        groups: phase.groups.iter().map(group_output).collect(),
    }
}

fn task_outputs(view: &PlanView) -> Vec<Task> {
    let waves = view.waves_by_task();
    let task_output = |(position, entry): (usize, proq_plan::plan::PlanTask<'_>)| {
        let task = entry.task;
        Task {
            name: task.full_name(),
            id: task.id.clone(),
            area: task.area.clone(),
            title: task.title.clone(),
            prompt: task.prompt.clone(),
            needs: view.task_names(view.graph().needs(position)),
            scope: task.scope.clone(),
            size: task.size,
            agent: view.plan().task_agent(entry).map(ToOwned::to_owned),
            model: view.plan().task_model(entry).map(ToOwned::to_owned),
            checks: task.checks.clone(),
            done: task.done,
            review: task.review_level,
            steps: task.progress,
            phase: entry.phase + 1,
            wave: waves[position],
            lane: view.simulated_lane(position),
            from: TaskSource { file: task.location.file.to_string(), line: task.location.line },
        }
    };
    view.loaded.plan.tasks().enumerate().map(task_output).collect()
}
