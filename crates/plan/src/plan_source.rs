//! Plan sources: detects the format of a source and reads it within size limits.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use proq_base::terminal_text;

use super::dependency_graph::DependencyGraph;
use super::plan::{MAX_TASKS, Plan};
use super::plan_error::PlanError;
use super::plan_format::PlanFormat;
use super::roadmap::MilestoneSelector;
use super::{roadmap, source_file, stories, task_folders, toml_plan};
use crate::task_folders::layout::{ALL_AREAS, PROMPT_FILE, TaskLayout};

/// The sources, the format and the milestone of a plan, as the user named them.
#[derive(Debug)]
pub struct PlanRequest<'a> {
    /// The folder from which relative paths are resolved.
    pub base_dir: &'a Path,
    /// Files, folders and names of areas.
    pub sources: &'a [String],
    /// The requested format. None to detect it.
    pub format: Option<PlanFormat>,
    /// The requested milestone of a roadmap.
    pub milestone: Option<&'a str>,
    /// Layout of the repository's task folders.
    pub layout: TaskLayout<'a>,
}

/// A plan that was read, with its dependency graph.
#[derive(Debug, Clone)]
pub struct LoadedPlan {
    /// Format of the source that the plan was read from.
    pub format: PlanFormat,
    /// Phases, groups and tasks of the plan.
    pub plan: Plan,
    /// Dependencies between the plan's tasks.
    pub graph: DependencyGraph,
    /// Dependencies that are not in the source: an agent proposed them, and the user approved.
    pub approved_needs: Vec<ProposedEdge>,
}

/// A proposed dependency that is in use in a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposedEdge {
    /// Index of the task that waits.
    pub task: usize,
    /// Index of the task that it waits for.
    pub needed: usize,
    /// Agent that proposed the dependency.
    pub agent: String,
    /// Reason for the dependency, in one line.
    pub reason: String,
}

/// Reads the plan that a request names.
///
/// # Errors
/// Fails if there is no such source, or if the plan is invalid.
pub fn read_plan(request: &PlanRequest<'_>) -> Result<LoadedPlan, PlanError> {
    let format = match request.format {
        Some(format) => format,
        None => detect_format(request)?,
    };
    if request.milestone.is_some() && format != PlanFormat::Roadmap {
        return Err(PlanError::MilestonesUnsupported { format });
    }
    let read_single_file = || {
        let file = SinglePlanFile::from_request(request, format)?;
        Ok::<_, PlanError>((file.read()?, file.display_name))
    };
    let selector = request.milestone.map_or(MilestoneSelector::FirstOpen, MilestoneSelector::Matching);
    let plan = match format {
        PlanFormat::Folders => task_folders::read_plan(request.base_dir, request.sources, &request.layout)?,
        PlanFormat::Roadmap => {
            read_single_file().and_then(|(text, name)| roadmap::read(&name, &text, selector))?
        }
        PlanFormat::Stories => read_single_file().and_then(|(text, name)| stories::read(&name, &text))?,
        PlanFormat::Toml | PlanFormat::Draft => {
            read_single_file().and_then(|(text, name)| toml_plan::read(&name, &text))?
        }
    };
    LoadedPlan::from_plan(format, plan, || request.sources.join(" "))
}

impl LoadedPlan {
    /// Builds the dependency graph of a plan. `source_name` names the source in errors.
    ///
    /// # Errors
    /// Fails if the plan has no tasks or too many, or if a dependency is invalid.
    pub fn from_plan(
        format: PlanFormat,
        plan: Plan,
        source_name: impl Fn() -> String,
    ) -> Result<LoadedPlan, PlanError> {
        match plan.tasks().count() {
            0 => Err(PlanError::NoTasks { source_name: source_name() }),
            n if n > MAX_TASKS => Err(PlanError::TooManyTasks { max_tasks: MAX_TASKS }),
            _ => Ok(LoadedPlan {
                format,
                graph: DependencyGraph::from_plan(&plan)?,
                plan,
                approved_needs: Vec::new(),
            }),
        }
    }
}

/// Detects the format of a request's sources by name.
fn detect_format(request: &PlanRequest<'_>) -> Result<PlanFormat, PlanError> {
    let Some(name) = request.sources.first() else {
        return Err(PlanError::SourceNotFound { source_name: String::new(), hint: String::new() });
    };
    let path = request.base_dir.join(name);
    let is_folder = path.is_dir() || path.file_name().is_some_and(|name| name == PROMPT_FILE);
    if name == ALL_AREAS || is_folder || request.layout.has_area(name) {
        return Ok(PlanFormat::Folders);
    }
    let extension = path.extension().map(std::ffi::OsStr::to_ascii_lowercase);
    match extension.as_ref().and_then(|e| e.to_str()) {
        _ if !path.exists() => Err(task_folders::source_not_found(name, &request.layout)),
        Some("toml") => Ok(PlanFormat::Toml),
        Some("md" | "markdown") => Ok(PlanFormat::Roadmap),
        Some("yaml" | "yml") => Ok(PlanFormat::Stories),
        _ => Err(PlanError::UnknownFormat { source_name: name.clone() }),
    }
}

/// The file of a plan that consists of one file.
struct SinglePlanFile {
    path: PathBuf,
    /// The name as it is shown.
    display_name: Arc<str>,
}

impl SinglePlanFile {
    /// Returns the file that a request names. Fails unless it names exactly one.
    fn from_request(request: &PlanRequest<'_>, format: PlanFormat) -> Result<SinglePlanFile, PlanError> {
        match request.sources {
            [name] => Ok(SinglePlanFile {
                path: request.base_dir.join(name),
                display_name: Arc::from(terminal_text::escape_line(name)),
            }),
            sources => Err(PlanError::TooManySources { format, count: sources.len() }),
        }
    }

    fn read(&self) -> Result<String, PlanError> {
        source_file::read_text(&self.path)
    }
}
