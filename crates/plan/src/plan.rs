//! The plan, in one form for all source formats: phases of groups of tasks.

use std::fmt;

use serde::Serialize;

use super::plan_error::SourceLocation;

/// Maximum number of tasks of a plan.
pub(crate) const MAX_TASKS: usize = 5_000;
/// Maximum length, in characters, of a text that is shown on one line.
pub const MAX_LINE_CHARS: usize = 300;
/// Maximum length of the name of a task or an area.
pub const MAX_NAME_LEN: usize = 64;

/// Tasks for coding agents and the order in which they run. It is serialized as in a plan in TOML.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// One-line summary of the plan; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// Warnings that the user should read before the plan runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Acceptance criteria that have to be met once all tasks are done.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<String>,
    /// Default agent, for tasks whose own entry and group name none.
    pub agent: Option<String>,
    /// Default model, for tasks whose own entry and group name none.
    pub model: Option<String>,
    /// The phases, which run one after the other.
    #[serde(rename = "phase")]
    pub phases: Vec<Phase>,
    /// Oddities of the source that do not prevent the plan from running.
    #[serde(skip)]
    pub source_notes: Vec<SourceNote>,
}

/// An oddity in the source of a plan, with its location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceNote {
    /// Location of the oddity in the source of the plan.
    pub location: SourceLocation,
    /// Description of the oddity, in one line.
    pub text: String,
}

impl fmt::Display for SourceNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.location, self.text)
    }
}

/// Tasks that start once all tasks of the previous phase have finished.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Phase {
    /// Title of the phase; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// Whether the tasks of the phase run in parallel or one after the other.
    pub order: PhaseOrder,
    /// The groups of tasks in this phase.
    #[serde(rename = "group")]
    pub groups: Vec<Group>,
}

/// Order in which the tasks of a phase run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PhaseOrder {
    /// At the same time, except for tasks that need each other.
    #[default]
    Parallel,
    /// One after the other, in the order of the source.
    Serial,
}

/// Tasks with a common theme.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Group {
    /// Common theme of the tasks; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub theme: String,
    /// Reason why the tasks form a group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub rationale: String,
    /// Agent of the group's tasks that name none.
    pub agent: Option<String>,
    /// Model of the group's tasks that name none.
    pub model: Option<String>,
    /// Text that is added to the prompt of each task of the group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub prompt: String,
    /// Tasks of the group, in the order of the source.
    #[serde(rename = "task")]
    pub tasks: Vec<Task>,
}

/// A unit of work for one agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Task {
    /// ID of the task, unique within its area.
    pub id: String,
    /// Area of the repository that the task belongs to.
    pub area: Option<String>,
    /// One-line title of the task.
    pub title: String,
    /// Prompt for the agent.
    pub prompt: String,
    /// Tasks that have to be done before this one, as the source names them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<Need>,
    /// Globs of the files that the task is expected to change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scope: Vec<String>,
    /// Estimated amount of work that the task takes.
    pub size: Size,
    /// Agent of the task; none for the group's agent.
    pub agent: Option<String>,
    /// Model of the task; none for the group's model.
    pub model: Option<String>,
    /// Commands that succeed once the task is done.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<String>,
    /// Whether the source marks the task as done.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub done: bool,
    /// Review level of the task, from 0 to 3; none if the source names none.
    #[serde(skip)]
    pub review_level: Option<u8>,
    /// Ticked and total checkboxes of the task; none if it has no boxes.
    #[serde(skip)]
    pub progress: Option<BoxProgress>,
    /// Location of the task in the source of the plan.
    #[serde(skip)]
    pub location: SourceLocation,
}

/// Returns whether a text is a valid name of a task or an area.
pub fn is_task_or_area_name(text: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    text.len() <= MAX_NAME_LEN
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(is_allowed)
}

/// Returns the first line of a text, cut to the maximum length of a line in a TOML plan.
pub fn first_line(text: &str) -> String {
    let first = text.trim().split(['\n', '\r']).next().unwrap_or_default();
    first.trim_end().chars().take(MAX_LINE_CHARS).collect()
}

/// A dependency of a task, as the source names it: `ID` or `area/ID`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Need {
    /// Name of the task that has to be done first: an ID of the same area, or `area/ID`.
    pub name: String,
    /// Location of the name in the source.
    #[serde(skip)]
    pub location: SourceLocation,
}

/// Number of ticked checkboxes of a task, and of all its checkboxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct BoxProgress {
    /// Number of ticked boxes.
    pub done: usize,
    /// Number of all boxes.
    #[serde(rename = "of")]
    pub total: usize,
}

/// Amount of work that a task takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub enum Size {
    /// Small.
    S,
    /// Medium, the usual size.
    #[default]
    M,
    /// Large.
    L,
}

impl Size {
    /// Names of the sizes, as written in a plan.
    pub const NAMES: &'static [&'static str] = &["S", "M", "L"];

    /// Parses the name of a size, in upper or lower case.
    pub fn parse(name: &str) -> Option<Size> {
        match name.to_ascii_uppercase().as_str() {
            "S" => Some(Size::S),
            "M" => Some(Size::M),
            "L" => Some(Size::L),
            _ => None,
        }
    }

    /// Returns how many times as long as a small task a task of this size may take.
    pub fn weight(self) -> usize {
        match self {
            Size::S => 1,
            Size::M => 2,
            Size::L => 4,
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl Task {
    /// Creates a task with nothing but an ID, a title and a location. The title is also its prompt.
    pub fn new(id: String, title: String, location: SourceLocation) -> Task {
        Task {
            id,
            area: None,
            title: first_line(&title),
            prompt: title,
            needs: Vec::new(),
            scope: Vec::new(),
            size: Size::default(),
            agent: None,
            model: None,
            checks: Vec::new(),
            done: false,
            review_level: None,
            progress: None,
            location,
        }
    }

    /// Returns the task's name, unique in the plan: `area/ID`, or the ID of a task without an area.
    pub fn full_name(&self) -> String {
        match &self.area {
            Some(area) => format!("{area}/{}", self.id),
            None => self.id.clone(),
        }
    }
}

impl Plan {
    /// Creates a plan of one phase from its groups.
    pub(crate) fn from_groups(groups: Vec<Group>) -> Plan {
        Plan { phases: vec![Phase { groups, ..Phase::default() }], ..Plan::default() }
    }
}

/// A task together with its group and phase in the plan.
#[derive(Debug, Clone, Copy)]
pub struct PlanTask<'p> {
    /// Index of the phase, from 0.
    pub phase: usize,
    /// Order in which the tasks of the phase run.
    pub order: PhaseOrder,
    /// Group of the plan that contains the task.
    pub group: &'p Group,
    /// Task at this position of the plan.
    pub task: &'p Task,
}

impl Plan {
    /// Returns all tasks, in the plan's order. A task's position in this sequence is the index that
    /// identifies it in graphs and batches.
    pub fn tasks(&self) -> impl Iterator<Item = PlanTask<'_>> {
        self.phases.iter().enumerate().flat_map(|(phase, p)| {
            let tasks = p.groups.iter().flat_map(|group| group.tasks.iter().map(move |task| (group, task)));
            tasks.map(move |(group, task)| PlanTask { phase, order: p.order, group, task })
        })
    }

    /// Returns all tasks, in the plan's order, for changing them.
    pub(crate) fn tasks_mut(&mut self) -> impl Iterator<Item = &mut Task> {
        self.phases.iter_mut().flat_map(|phase| &mut phase.groups).flat_map(|group| &mut group.tasks)
    }

    /// Returns the agent that the plan names for a task: its own entry counts first, then its group's, then
    /// the plan's.
    pub fn task_agent<'p>(&'p self, plan_task: PlanTask<'p>) -> Option<&'p str> {
        let PlanTask { group, task, .. } = plan_task;
        task.agent.as_ref().or(group.agent.as_ref()).or(self.agent.as_ref()).map(String::as_str)
    }

    /// Returns the model that the plan names for a task: its own entry counts first, then its group's, then
    /// the plan's.
    pub fn task_model<'p>(&'p self, plan_task: PlanTask<'p>) -> Option<&'p str> {
        let PlanTask { group, task, .. } = plan_task;
        task.model.as_ref().or(group.model.as_ref()).or(self.model.as_ref()).map(String::as_str)
    }
}
