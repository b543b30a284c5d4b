//! Owns a plan: phases of groups of tasks, whatever it was read from.

use std::fmt;

use serde::Serialize;

use super::Place;
use super::shape::LINE;

/// What several agents are to do, and in which order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// What it is about, in a line; empty when nobody said.
    pub(crate) summary: String,
    /// What the user is to know before it is run.
    pub(crate) warnings: Vec<String>,
    /// What has to be true once all of it is done.
    pub(crate) criteria: Vec<String>,
    /// The agent of tasks whose own group and entry name none.
    pub(crate) agent: Option<String>,
    /// The same for the model.
    pub(crate) model: Option<String>,
    /// One after the other.
    pub(crate) phases: Vec<Phase>,
    /// What was odd in the source and does not stand in the way.
    pub(crate) remarks: Vec<Remark>,
}

/// Something odd in a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Remark {
    /// Where.
    pub(crate) place: Place,
    /// What.
    pub(crate) text: String,
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.text)
    }
}

/// Tasks that begin when all of the phase before are over.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Phase {
    /// What it is called; empty when it has no name.
    pub(crate) title: String,
    /// How its tasks go.
    pub(crate) order: Order,
    /// Its tasks.
    pub(crate) groups: Vec<Group>,
}

/// How the tasks of a phase go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Order {
    /// At the same time, as far as they do not need each other.
    #[default]
    Parallel,
    /// One after the other, as they stand there.
    Serial,
}

/// Tasks that have a theme in common.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Group {
    /// What they have in common; empty when nobody said.
    pub(crate) theme: String,
    /// Why they are a group.
    pub(crate) rationale: String,
    /// The agent of those that name none.
    pub(crate) agent: Option<String>,
    /// The model of those that name none.
    pub(crate) model: Option<String>,
    /// What each of their agents is told besides its task.
    pub(crate) prompt: String,
    /// The tasks.
    pub(crate) tasks: Vec<Task>,
}

/// What one agent is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Task {
    /// Its name within its area.
    pub(crate) id: String,
    /// Where it belongs.
    pub(crate) area: Option<String>,
    /// What it is about, in a line.
    pub(crate) title: String,
    /// What the agent is told.
    pub(crate) prompt: String,
    /// The tasks that have to be done before, as they were named.
    pub(crate) needs: Vec<Need>,
    /// Globs of the files that it is about.
    pub(crate) scope: Vec<String>,
    /// How much work it is.
    pub(crate) size: Size,
    /// Who is to do it, if not the group's agent.
    pub(crate) agent: Option<String>,
    /// With which model, if not the group's.
    pub(crate) model: Option<String>,
    /// Commands that succeed when it is done.
    pub(crate) checks: Vec<String>,
    /// Whether it was done before.
    pub(crate) done: bool,
    /// How closely it is to be looked at, 0 to 3.
    pub(crate) review: Option<u8>,
    /// How far somebody has come with it.
    pub(crate) progress: Option<Progress>,
    /// Where it was read.
    pub(crate) from: Place,
}

/// The first line of a text, no longer than a line may be in a plan in TOML.
pub(super) fn line(text: &str) -> String {
    let first = text.trim().split(['\n', '\r']).next().unwrap_or_default();
    first.trim_end().chars().take(LINE).collect()
}

/// A task that another one needs, as it was named: `ID` or `area/ID`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Need {
    /// The name.
    pub(crate) name: String,
    /// Where it stands.
    pub(crate) place: Place,
}

/// How many boxes of a task are ticked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Progress {
    /// Those that are.
    pub(crate) done: usize,
    /// All of them.
    pub(crate) of: usize,
}

/// How much work a task is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) enum Size {
    /// Little.
    S,
    /// What most are.
    #[default]
    M,
    /// Much.
    L,
}

impl Size {
    /// The words for it.
    pub(super) const WORDS: &'static [&'static str] = &["S", "M", "L"];

    /// What a word means.
    pub(super) fn of(word: &str) -> Option<Size> {
        match word.to_ascii_uppercase().as_str() {
            "S" => Some(Size::S),
            "M" => Some(Size::M),
            "L" => Some(Size::L),
            _ => None,
        }
    }

    /// How many times as long as a small task it may take.
    pub(crate) fn weight(self) -> usize {
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
    /// A task of which nothing more is known.
    pub(super) fn new(id: String, title: String, from: Place) -> Task {
        Task {
            id,
            area: None,
            title: line(&title),
            prompt: title,
            needs: Vec::new(),
            scope: Vec::new(),
            size: Size::default(),
            agent: None,
            model: None,
            checks: Vec::new(),
            done: false,
            review: None,
            progress: None,
            from,
        }
    }

    /// Its name among all tasks: `area/ID`, or the ID of one without an area.
    pub(crate) fn name(&self) -> String {
        match &self.area {
            Some(area) => format!("{area}/{}", self.id),
            None => self.id.clone(),
        }
    }
}

impl Plan {
    /// A plan of one phase.
    pub(super) fn of_groups(groups: Vec<Group>) -> Plan {
        Plan { phases: vec![Phase { groups, ..Phase::default() }], ..Plan::default() }
    }
}

/// A task and where it stands in its plan.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spot<'p> {
    /// The number of its phase, from 0.
    pub(crate) phase: usize,
    /// Its phase's order.
    pub(crate) order: Order,
    /// Its group.
    pub(crate) group: &'p Group,
    /// The task.
    pub(crate) task: &'p Task,
}

impl Plan {
    /// Every task, in the plan's order. Elsewhere a task is named by its place in this.
    pub(crate) fn spots(&self) -> impl Iterator<Item = Spot<'_>> {
        self.phases.iter().enumerate().flat_map(|(phase, p)| {
            let tasks = p.groups.iter().flat_map(|group| group.tasks.iter().map(move |task| (group, task)));
            tasks.map(move |(group, task)| Spot { phase, order: p.order, group, task })
        })
    }

    /// The same tasks, to be changed.
    pub(super) fn tasks_mut(&mut self) -> impl Iterator<Item = &mut Task> {
        self.phases.iter_mut().flat_map(|phase| &mut phase.groups).flat_map(|group| &mut group.tasks)
    }

    /// Who is to do a task, if anybody said so: its own entry counts most, then its group's, then the plan's.
    pub(crate) fn agent_of<'p>(&'p self, spot: Spot<'p>) -> Option<&'p str> {
        let Spot { group, task, .. } = spot;
        task.agent.as_ref().or(group.agent.as_ref()).or(self.agent.as_ref()).map(String::as_str)
    }

    /// The same for the model.
    pub(crate) fn model_of<'p>(&'p self, spot: Spot<'p>) -> Option<&'p str> {
        let Spot { group, task, .. } = spot;
        task.model.as_ref().or(group.model.as_ref()).or(self.model.as_ref()).map(String::as_str)
    }
}
