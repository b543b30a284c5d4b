//! Conversion of a plan into the tasks of a batch, with inherited settings and the agent of each task.

use std::path::{Path, PathBuf};

use proq_plan::plan::{PhaseOrder, Plan, PlanTask};
use proq_plan::plan_format::PlanFormat;
use proq_plan::plan_source::LoadedPlan;
use proq_plan::schedule::workload::Phase;
use proq_plan::task_folders::layout::PROMPT_FILE;

use super::error::BatchError;
use super::ledger::Ledger;
use super::task::BatchTask;
use crate::swarm::Error;

/// Default agent and model for tasks that name none, with the folders and the ledger that a batch's tasks are
/// built with.
#[derive(Debug, Clone, Copy)]
pub struct TaskDefaults<'a> {
    /// The agent of tasks that name none.
    pub agent: Option<&'a str>,
    /// The model of tasks that name none.
    pub model: Option<&'a str>,
    /// The folder that relative paths of plan files start from.
    pub plan_dir: &'a Path,
    /// The top folder of the worktree.
    pub worktree_top: &'a Path,
    /// The ledger that counts earlier failures of each task.
    pub ledger: &'a Ledger,
}

/// Converts the tasks of a plan to the tasks of a batch, in the plan's order.
///
/// # Errors
/// [`BatchError::NoAgent`] when a task that is not done has no agent.
pub fn build_batch_tasks(loaded: &LoadedPlan, defaults: &TaskDefaults<'_>) -> Result<Vec<BatchTask>, Error> {
    let plan = &loaded.plan;
    plan.tasks()
        .enumerate()
        .map(|(index, position)| build_batch_task(loaded, plan, (index, position), defaults))
        .collect()
}

/// Converts the plan's task at `index`, with the values that it inherits from its group and the plan.
fn build_batch_task(
    loaded: &LoadedPlan,
    plan: &Plan,
    (index, position): (usize, PlanTask<'_>),
    defaults: &TaskDefaults<'_>,
) -> Result<BatchTask, Error> {
    let task = position.task;
    let agent = plan.task_agent(position).or(defaults.agent).map(ToOwned::to_owned);
    if agent.is_none() && !task.done {
        return Err(BatchError::NoAgent { task: task.full_name() }.into());
    }
    let file = task_file_path(
        loaded.format,
        Path::new(&*task.location.file),
        defaults.plan_dir,
        defaults.worktree_top,
    );
    let milestone = if loaded.format == PlanFormat::Roadmap { plan.summary.clone() } else { String::new() };
    let mut batch_task = BatchTask {
        name: task.full_name(),
        id: task.id.clone(),
        area: task.area.clone(),
        title: task.title.clone(),
        prompt: task.prompt.clone(),
        group_prompt: position.group.prompt.clone(),
        scope: task.scope.clone(),
        checks: task.checks.clone(),
        agent,
        model: plan.task_model(position).or(defaults.model).map(ToOwned::to_owned),
        review: task.review_level,
        line: if loaded.format == PlanFormat::Folders { 0 } else { task.location.line },
        folder: task_folder(loaded.format, &file, defaults.worktree_top),
        needs: loaded.graph.needs(index).to_vec(),
        weight: u32::try_from(task.size.weight()).unwrap_or(1),
        failures: 0,
        done: task.done,
        file,
        milestone,
    };
    batch_task.failures = defaults.ledger.failures(&batch_task.key());
    Ok(batch_task)
}

/// Returns the absolute path of a task's file. `file` is relative to the worktree's top for task folders, and
/// to `dir` for other formats.
pub(crate) fn task_file_path(format: PlanFormat, file: &Path, dir: &Path, top: &Path) -> PathBuf {
    let path = match format {
        PlanFormat::Folders => top.join(file),
        PlanFormat::Toml | PlanFormat::Roadmap | PlanFormat::Stories | PlanFormat::Draft => dir.join(file),
    };
    path.canonicalize().unwrap_or(path)
}

/// Returns the folder of a task in the folders format, relative to the worktree's top; none where the task is
/// a plain file or the top itself.
fn task_folder(format: PlanFormat, file: &Path, top: &Path) -> Option<PathBuf> {
    let is_task_folder =
        format == PlanFormat::Folders && file.file_name().is_some_and(|name| name == PROMPT_FILE);
    let relative = file.parent()?.strip_prefix(top).ok()?;
    (is_task_folder && !relative.as_os_str().is_empty()).then(|| relative.to_owned())
}

/// Returns the phases of a plan for the scheduler. The list is empty for a single parallel phase, in which
/// any tasks may run concurrently.
pub fn scheduler_phases(plan: &Plan) -> Vec<Phase> {
    let is_single_parallel =
        matches!(plan.phases.as_slice(), [only_phase] if only_phase.order == PhaseOrder::Parallel);
    if is_single_parallel {
        return Vec::new();
    }
    let mut out: Vec<Phase> = plan
        .phases
        .iter()
        .map(|phase| Phase { tasks: Vec::new(), parallel: phase.order == PhaseOrder::Parallel })
        .collect();
    for (index, position) in plan.tasks().enumerate() {
        if let Some(phase) = out.get_mut(position.phase) {
            phase.tasks.push(index);
        }
    }
    out
}
