//! Dependencies between the tasks of a plan: those in the plan, those of serial phases, and those that an agent
//! found missing.

use proq_plan::plan::{PhaseOrder, PlanTask};
use proq_plan::plan_source::{LoadedPlan, ProposedEdge};
use serde::{Serialize, Serializer};

/// Reason why a task waits for another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EdgeKind {
    /// The task names the dependency.
    Needs,
    /// The phase is serial, so each task waits for the one before it.
    Order,
    /// An agent found the dependency missing.
    Agent,
}

/// A task among its dependencies, in the form of the JSON output.
#[derive(Debug, Clone, Serialize)]
pub struct TaskRow {
    /// Full name of the task.
    pub name: String,
    /// Title of the task.
    pub title: String,
    /// Phase of the task, counted from 1.
    pub phase: usize,
    /// Whether the task was done before.
    pub done: bool,
}

/// The dependencies between the tasks of a plan. They serialize to the JSON output of `git proq deps`.
pub struct Dependencies {
    /// The plan, with the dependencies that an agent found missing.
    pub loaded: LoadedPlan,
    /// Whether the user approved the dependencies that an agent found missing.
    pub are_proposals_approved: bool,
    /// The tasks, in the plan's order.
    pub tasks: Vec<TaskRow>,
    /// The tasks that each task waits for.
    pub needs: Vec<Vec<(usize, EdgeKind)>>,
    /// The tasks that wait for each task.
    pub dependents: Vec<Vec<usize>>,
}

impl Dependencies {
    /// Collects the dependencies of a plan.
    pub fn new(loaded: LoadedPlan, are_proposals_approved: bool) -> Dependencies {
        let tasks: Vec<_> = loaded.plan.tasks().collect();
        let mut all_needs: Vec<Vec<(usize, EdgeKind)>> = Vec::new();
        let mut dependents = vec![Vec::new(); tasks.len()];
        for (index, task) in tasks.iter().enumerate() {
            let by_agent = |need: usize| {
                loaded.approved_needs.iter().any(|edge| (edge.task, edge.needed) == (index, need))
            };
            let kind_of = |need: usize| if by_agent(need) { EdgeKind::Agent } else { EdgeKind::Needs };
            let mut needs: Vec<(usize, EdgeKind)> =
                loaded.graph.needs(index).iter().map(|need| (*need, kind_of(*need))).collect();
            let previous = index
                .checked_sub(1)
                .filter(|before| task.order == PhaseOrder::Serial && tasks[*before].phase == task.phase);
            let previous = previous.filter(|before| !loaded.graph.needs(index).contains(before));
            needs.extend(previous.map(|before| (before, EdgeKind::Order)));
            for (need, _) in &needs {
                dependents[*need].push(index);
            }
            all_needs.push(needs);
        }
        let row = |entry: &PlanTask<'_>| TaskRow {
            name: entry.task.full_name(),
            title: entry.task.title.clone(),
            phase: entry.phase + 1,
            done: entry.task.done,
        };
        let tasks = tasks.iter().map(row).collect();
        Dependencies { loaded, are_proposals_approved, tasks, needs: all_needs, dependents }
    }

    /// Returns the dependency between two tasks that an agent found missing, if any.
    pub fn proposed_edge(&self, task: usize, need: usize) -> Option<&ProposedEdge> {
        self.loaded.approved_needs.iter().find(|edge| (edge.task, edge.needed) == (task, need))
    }

    /// Returns each dependency: the task that waits, the task that it waits for, and why.
    pub fn edges(&self) -> impl Iterator<Item = (usize, usize, EdgeKind)> {
        let edges_of = |(index, needs): (usize, &Vec<(usize, EdgeKind)>)| -> Vec<_> {
            needs.iter().map(|(need, kind)| (index, *need, *kind)).collect()
        };
        self.needs.iter().enumerate().flat_map(edges_of)
    }
}

#[derive(Serialize)]
struct DependenciesOutput<'a> {
    tasks: &'a [TaskRow],
    edges: Vec<Edge<'a>>,
}

/// A dependency: `task` waits for `needs`.
#[derive(Serialize)]
struct Edge<'a> {
    task: &'a str,
    needs: &'a str,
    #[serde(rename = "why")]
    kind: EdgeKind,
    /// The agent that found the dependency missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "because")]
    reason: Option<&'a str>,
    /// Whether the user has approved the dependency.
    #[serde(skip_serializing_if = "Option::is_none")]
    approved: Option<bool>,
}

impl Serialize for Dependencies {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let edges = self.edges().map(|(task, need, kind)| {
            let proposed = self.proposed_edge(task, need);
            Edge {
                task: &self.tasks[task].name,
                needs: &self.tasks[need].name,
                kind,
                agent: proposed.map(|edge| edge.agent.as_str()),
                reason: proposed.map(|edge| edge.reason.as_str()).filter(|reason| !reason.is_empty()),
                approved: proposed.map(|_| self.are_proposals_approved),
            }
        });
        DependenciesOutput { tasks: &self.tasks, edges: edges.collect() }.serialize(serializer)
    }
}
