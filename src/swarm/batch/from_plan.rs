//! Owns making the tasks of a batch of a plan: with what they inherit, and who is to do each.

use std::path::{Path, PathBuf};

use super::{BatchError, BatchTask, Ledger};
use crate::swarm::schedule::Phase;
use crate::swarm::{Error, Format, Found, Order, Plan, Spot};

/// The file of a task that is a folder.
const PROMPT: &str = "PROMPT.md";

/// What a plan leaves open.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Defaults<'a> {
    /// Who does tasks that name nobody.
    pub(crate) agent: Option<&'a str>,
    /// With which model.
    pub(crate) model: Option<&'a str>,
    /// The folder that the source was named in.
    pub(crate) dir: &'a Path,
    /// The top of the worktree.
    pub(crate) top: &'a Path,
    /// How often tasks have failed before.
    pub(crate) ledger: &'a Ledger,
}

/// The tasks of a plan, in its order.
///
/// # Errors
/// [`BatchError::NoAgent`].
pub(crate) fn tasks_of(found: &Found, defaults: &Defaults<'_>) -> Result<Vec<BatchTask>, Error> {
    let plan = &found.plan;
    plan.spots().enumerate().map(|(at, spot)| task_of(found, plan, (at, spot), defaults)).collect()
}

fn task_of(
    found: &Found,
    plan: &Plan,
    (at, spot): (usize, Spot<'_>),
    defaults: &Defaults<'_>,
) -> Result<BatchTask, Error> {
    let task = spot.task;
    let agent = plan.agent_of(spot).or(defaults.agent).map(ToOwned::to_owned);
    if agent.is_none() && !task.done {
        return Err(BatchError::NoAgent { task: task.name() }.into());
    }
    let file = file_of(found.format, Path::new(&*task.from.file), defaults.dir, defaults.top);
    let milestone = if found.format == Format::Roadmap { plan.summary.clone() } else { String::new() };
    let mut made = BatchTask {
        name: task.name(),
        id: task.id.clone(),
        area: task.area.clone(),
        title: task.title.clone(),
        prompt: task.prompt.clone(),
        more: spot.group.prompt.clone(),
        scope: task.scope.clone(),
        checks: task.checks.clone(),
        agent,
        model: plan.model_of(spot).or(defaults.model).map(ToOwned::to_owned),
        review: task.review,
        line: if found.format == Format::Folders { 0 } else { task.from.line },
        folder: folder(found.format, &file, defaults.top),
        needs: found.graph.needs(at).to_vec(),
        weight: u32::try_from(task.size.weight()).unwrap_or(1),
        failures: 0,
        done: task.done,
        file,
        milestone,
    };
    made.failures = defaults.ledger.failures(&made.key());
    Ok(made)
}

/// The file of a task from the root of the file system. Task folders are named below the top of the worktree, files as they were
/// typed.
pub(crate) fn file_of(format: Format, file: &Path, dir: &Path, top: &Path) -> PathBuf {
    let path = match format {
        Format::Folders => top.join(file),
        Format::Toml | Format::Roadmap | Format::Stories | Format::Draft => dir.join(file),
    };
    path.canonicalize().unwrap_or(path)
}

/// The folder that is a task, below the top of the worktree.
fn folder(format: Format, file: &Path, top: &Path) -> Option<PathBuf> {
    let is_one = format == Format::Folders && file.file_name().is_some_and(|name| name == PROMPT);
    let below = file.parent()?.strip_prefix(top).ok()?;
    (is_one && !below.as_os_str().is_empty()).then(|| below.to_owned())
}

/// The phases of a plan as the scheduler takes them; none where it is all one, in which any task may run beside any other.
pub(crate) fn phases_of(plan: &Plan) -> Vec<Phase> {
    let is_one = matches!(plan.phases.as_slice(), [one] if one.order == Order::Parallel);
    if is_one {
        return Vec::new();
    }
    let mut out: Vec<Phase> = plan
        .phases
        .iter()
        .map(|phase| Phase { tasks: Vec::new(), parallel: phase.order == Order::Parallel })
        .collect();
    for (at, spot) in plan.spots().enumerate() {
        if let Some(phase) = out.get_mut(spot.phase) {
            phase.tasks.push(at);
        }
    }
    out
}
