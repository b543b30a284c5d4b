//! Dependencies that an agent proposed: which of them fit a plan, the record that saves them by a hash of the
//! tasks, and their use in a plan.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use proq_base::explain::Explain;
use proq_base::terminal_text;
use proq_git::Repo;
use proq_plan::dependency_graph::DependencyGraph;
use proq_plan::plan::{Need, Plan};
use proq_plan::plan_error::SourceLocation;
use proq_plan::plan_source::{LoadedPlan, ProposedEdge};
use proq_store::base::record::Record;
use proq_store::records::draft::{ProposalsRecord, ProposedNeed};

use super::answer_json::RawNeed;
use super::draft_error::DraftError;
use crate::lane::Project;

/// Maximum number of proposals that are read from one answer.
const MAX_PROPOSALS: usize = 500;

/// Returns a hash of the content of a plan's tasks; none if git cannot compute it. The tasks' progress is not
/// part of it.
pub(crate) fn plan_hash(repo: &Repo, plan: &Plan) -> Option<String> {
    let mut text = String::new();
    for plan_task in plan.tasks() {
        let task = plan_task.task;
        let needs: Vec<&str> = task.needs.iter().map(|need| need.name.as_str()).collect();
        let entry = serde_json::json!([
            plan_task.phase,
            plan_task.order,
            task.area,
            task.id,
            task.title,
            task.prompt,
            needs,
            task.scope,
            task.size,
            task.checks,
            plan_task.group.theme,
            plan_task.group.prompt,
        ]);
        text.push_str(&format!("{entry}\n"));
    }
    repo.blob_id(text.as_bytes()).map(|id| id.to_string())
}

/// Returns the file that records the proposals for a plan's tasks; none if git cannot hash the tasks.
pub(crate) fn proposals_path(project: &Project, plan: &Plan) -> Option<PathBuf> {
    plan_hash(&project.repo, plan).map(|hash| project.store.layout().dependency_proposals(&hash))
}

/// Adds to a plan the proposed dependencies that the user approved for exactly the plan's tasks.
///
/// # Errors
/// Fails when the record of the proposals cannot be read.
pub fn add_approved_needs(project: &Project, found: LoadedPlan) -> Result<LoadedPlan, DraftError> {
    let Some(path) = proposals_path(project, &found.plan) else { return Ok(found) };
    match ProposalsRecord::load_if_exists(&path)? {
        Some(record) if record.is_approved => Ok(with_proposals(found, &record).0),
        _ => Ok(found),
    }
}

/// Adds the dependencies of a proposals record to a plan. The second value describes those that do not fit.
pub fn with_proposals(found: LoadedPlan, record: &ProposalsRecord) -> (LoadedPlan, Vec<String>) {
    let raw_needs = record.needs.iter().map(|need| RawNeed {
        waiting_task: need.task.clone(),
        needed_task: need.needs.clone(),
        reason: need.reason.clone(),
    });
    add_proposals(found, &record.agent, raw_needs.collect())
}

/// Returns the dependencies proposed by an agent that fit a plan, and a description of the problem with each
/// of the others.
pub(crate) fn select_valid_needs(
    found: LoadedPlan,
    agent: &str,
    raw_needs: Vec<RawNeed>,
) -> (Vec<ProposedNeed>, Vec<String>) {
    let (found, rejected) = add_proposals(found, agent, raw_needs);
    let names: Vec<String> = found.plan.tasks().map(|spot| spot.task.full_name()).collect();
    let to_need = |edge: &ProposedEdge| ProposedNeed {
        task: names[edge.task].clone(),
        needs: names[edge.needed].clone(),
        reason: edge.reason.clone(),
    };
    (found.approved_needs.iter().map(to_need).collect(), rejected)
}

/// Adds proposed dependencies to a plan, all at once or, if they do not fit together, one by one. The second
/// value describes those that do not fit.
fn add_proposals(found: LoadedPlan, agent: &str, raw_needs: Vec<RawNeed>) -> (LoadedPlan, Vec<String>) {
    let LoadedPlan { format, mut plan, mut graph, approved_needs: mut proposed } = found;
    let (mut rejected, mut edges) = (Vec::new(), Vec::new());
    let names = TaskNames::new(&plan);
    if raw_needs.len() > MAX_PROPOSALS {
        rejected.push(format!("{} of them are too many: the first {MAX_PROPOSALS} count", raw_needs.len()));
    }
    for raw in raw_needs.into_iter().take(MAX_PROPOSALS) {
        match names.resolve_edge(&plan, &graph, &raw) {
            Ok((task, need)) => {
                let is_duplicate =
                    edges.iter().any(|edge: &ProposedEdge| (edge.task, edge.needed) == (task, need));
                if !is_duplicate {
                    edges.push(ProposedEdge {
                        task,
                        needed: need,
                        agent: agent.to_owned(),
                        reason: raw.reason,
                    });
                }
            }
            Err(reason) => rejected.push(reason),
        }
    }
    // Usually all of them fit together.
    if let Ok((extended, extended_graph)) = with_needs(&plan, &edges) {
        proposed.append(&mut edges);
        return (
            LoadedPlan { format, plan: extended, graph: extended_graph, approved_needs: proposed },
            rejected,
        );
    }
    for edge in edges {
        match with_needs(&plan, std::slice::from_ref(&edge)) {
            Ok((next_plan, next_graph)) => {
                (plan, graph) = (next_plan, next_graph);
                proposed.push(edge);
            }
            Err(reason) => rejected.push(reason),
        }
    }
    (LoadedPlan { format, plan, graph, approved_needs: proposed }, rejected)
}

/// Returns a copy of the plan with additional dependencies, and its graph.
fn with_needs(plan: &Plan, edges: &[ProposedEdge]) -> Result<(Plan, DependencyGraph), String> {
    let mut out = plan.clone();
    let names: Vec<String> = plan.tasks().map(|spot| spot.task.full_name()).collect();
    let tasks = out.phases.iter_mut().flat_map(|phase| &mut phase.groups).flat_map(|group| &mut group.tasks);
    let mut edges_by_task: BTreeMap<usize, Vec<&ProposedEdge>> = BTreeMap::new();
    for edge in edges {
        edges_by_task.entry(edge.task).or_default().push(edge);
    }
    for (index, task) in tasks.enumerate() {
        for edge in edges_by_task.get(&index).into_iter().flatten() {
            let location =
                SourceLocation { file: Arc::from(format!("by {}", edge.agent)), line: 0, column: 0 };
            task.needs.push(Need { name: names[edge.needed].clone(), location });
        }
    }
    let graph = DependencyGraph::from_plan(&out).map_err(|e| {
        let hint = e.hints().first().map(|hint| format!(" ({hint})")).unwrap_or_default();
        terminal_text::escape_line(&format!("{e}{hint}"))
    })?;
    match edges.iter().find(|edge| !graph.needs(edge.task).contains(&edge.needed)) {
        // Another task in its own area has the same ID.
        Some(edge) => Err(format!("'{}' cannot be named by '{}'", names[edge.needed], names[edge.task])),
        None => Ok((out, graph)),
    }
}

/// Index of a plan's tasks by name and by ID, in lower case, for names as an agent writes them.
struct TaskNames {
    by_full_name: BTreeMap<String, usize>,
    by_id: BTreeMap<String, Vec<usize>>,
}

impl TaskNames {
    fn new(plan: &Plan) -> TaskNames {
        let mut names = TaskNames { by_full_name: BTreeMap::new(), by_id: BTreeMap::new() };
        for (index, plan_task) in plan.tasks().enumerate() {
            names.by_full_name.insert(plan_task.task.full_name().to_lowercase(), index);
            names.by_id.entry(plan_task.task.id.to_lowercase()).or_default().push(index);
        }
        names
    }

    /// Returns the index of the task with this name. The error describes why no single task has it.
    fn resolve(&self, name: &str) -> Result<usize, String> {
        let key = name.trim().to_lowercase();
        if let Some(index) = self.by_full_name.get(&key) {
            return Ok(*index);
        }
        let display_name = terminal_text::escape_line(&name.chars().take(80).collect::<String>());
        match self.by_id.get(&key).map(Vec::as_slice) {
            Some([index]) => Ok(*index),
            Some(_) => Err(format!("there are several tasks '{display_name}'")),
            None => Err(format!("there is no task '{display_name}'")),
        }
    }

    /// Returns the indexes of the waiting and of the needed task of a proposal. Fails for a proposal that
    /// cannot apply, or that the plan has already.
    fn resolve_edge(
        &self,
        plan: &Plan,
        graph: &DependencyGraph,
        raw: &RawNeed,
    ) -> Result<(usize, usize), String> {
        let (task, need) = (self.resolve(&raw.waiting_task)?, self.resolve(&raw.needed_task)?);
        let ends: Vec<_> = [task, need].iter().filter_map(|index| plan.tasks().nth(*index)).collect();
        let [waiting, required] = ends.as_slice() else { return Err("there is no such task".to_owned()) };
        let (name, other) = (waiting.task.full_name(), required.task.full_name());
        if task == need {
            return Err(format!("'{name}' cannot wait for itself"));
        }
        if waiting.task.done {
            return Err(format!("'{name}' is done and waits for nothing"));
        }
        if graph.needs(task).contains(&need) {
            return Err(format!("'{name}' already says that it needs '{other}'"));
        }
        Ok((task, need))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proq_plan::plan_format::PlanFormat;
    use proq_plan::toml_plan;

    fn found(tasks: &[(&str, &[&str])]) -> LoadedPlan {
        let to_toml = |(id, needs): &(&str, &[&str])| {
            let (area, id) = id.split_once('/').unwrap_or(("", id));
            let area = if area.is_empty() { String::new() } else { format!("area = '{area}'\n") };
            format!("[[task]]\n{area}id = '{id}'\ntitle = 'T'\nneeds = {needs:?}\n")
        };
        let text: String = tasks.iter().map(to_toml).collect();
        let plan = toml_plan::read(&Arc::from("p"), &format!("format = 1\n{text}")).unwrap();
        LoadedPlan::from_plan(PlanFormat::Toml, plan, String::new).unwrap()
    }

    fn raw_needs(edges: &[(&str, &str)]) -> Vec<RawNeed> {
        let to_need = |(task, needs): &(&str, &str)| RawNeed {
            waiting_task: (*task).to_owned(),
            needed_task: (*needs).to_owned(),
            reason: String::new(),
        };
        edges.iter().map(to_need).collect()
    }

    #[test]
    fn rejects_and_describes_invalid_proposals() {
        let plan = || found(&[("a", &[]), ("b", &["a"]), ("c", &[]), ("x/d", &[]), ("y/d", &[])]);
        let edges = [
            ("c", "B"),
            ("c", "b"),
            ("a", "c"),
            ("nowhere\u{1b}", "a"),
            ("a", "d"),
            ("b", "a"),
            ("c", "c"),
            ("x/d", "c"),
        ];
        let (accepted, rejected) = select_valid_needs(plan(), "claude", raw_needs(&edges));
        let pairs: Vec<(&str, &str)> = accepted.iter().map(|n| (n.task.as_str(), n.needs.as_str())).collect();
        assert_eq!(pairs, [("c", "b"), ("x/d", "c")]);
        assert_eq!(
            rejected,
            [
                r"there is no task 'nowhere\u{1b}'",
                "there are several tasks 'd'",
                "'b' already says that it needs 'a'",
                "'c' cannot wait for itself",
                "by claude: these tasks depend on each other: a -> c -> b -> a (one of them has to come first: for example, let 'b' not need 'a')",
            ]
        );
    }

    #[test]
    fn rejects_needs_of_done_tasks_and_ambiguous_names() {
        let mut plan = found(&[("d", &[]), ("x/d", &[]), ("x/e", &[])]);
        plan.plan.phases[0].groups[0].tasks[0].done = true;
        let (accepted, rejected) =
            select_valid_needs(plan, "claude", raw_needs(&[("d", "x/d"), ("x/e", "d")]));
        assert!(accepted.is_empty(), "{accepted:?}");
        assert_eq!(rejected, ["'d' is done and waits for nothing", "'d' cannot be named by 'x/e'"]);
    }

    #[test]
    fn reads_at_most_max_proposals() {
        let names: Vec<String> = (0..700).map(|n| format!("t{n}")).collect();
        let tasks: Vec<(&str, &[&str])> = names.iter().map(|name| (name.as_str(), &[][..])).collect();
        let edges: Vec<(&str, &str)> =
            names.windows(2).map(|two| (two[1].as_str(), two[0].as_str())).collect();
        let (accepted, rejected) = select_valid_needs(found(&tasks), "claude", raw_needs(&edges));
        assert_eq!((accepted.len(), rejected.len()), (MAX_PROPOSALS, 1));
    }
}
