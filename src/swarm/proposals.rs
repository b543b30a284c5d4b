//! Owns dependencies that an agent found missing: which of them fit a plan, keeping them by what the tasks say, and using them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::plan::Need;
use super::planner::Said;
use super::source::Found;
use super::{DraftError, Graph, Place, Plan};
use crate::explain::Explain;
use crate::harmless;
use crate::lane::Project;
use crate::store::Record;
use crate::store::records::{ProposalsRecord, ProposedNeed};

/// More than these are not looked at.
const MOST: usize = 500;

/// One of them, as a plan that is used has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Proposed {
    /// The task that waits.
    pub(crate) task: usize,
    /// The one that it waits for.
    pub(crate) need: usize,
    /// Who found it missing.
    pub(crate) agent: String,
    /// Why.
    pub(crate) because: String,
}

/// The hash of what a plan's tasks say. How far they are is no part of it.
pub(super) fn hash(project: &Project, plan: &Plan) -> Option<String> {
    let mut text = String::new();
    for spot in plan.spots() {
        let task = spot.task;
        let needs: Vec<&str> = task.needs.iter().map(|need| need.name.as_str()).collect();
        let one = serde_json::json!([
            spot.phase,
            spot.order,
            task.area,
            task.id,
            task.title,
            task.prompt,
            needs,
            task.scope,
            task.size,
            task.checks,
            spot.group.theme,
            spot.group.prompt,
        ]);
        text.push_str(&format!("{one}\n"));
    }
    project.repo.blob_id(text.as_bytes()).map(|id| id.to_string())
}

/// Where what is known of a plan's tasks lies.
pub(super) fn file(project: &Project, plan: &Plan) -> Option<PathBuf> {
    hash(project, plan).map(|hash| project.store.layout().proposals(&hash))
}

/// Puts what was approved for exactly these tasks into a plan that was read.
///
/// # Errors
/// When what is kept cannot be read.
pub(crate) fn apply(project: &Project, found: Found) -> Result<Found, DraftError> {
    let Some(file) = file(project, &found.plan) else { return Ok(found) };
    match ProposalsRecord::find(&file)? {
        Some(record) if record.approved => Ok(with(found, &record).0),
        _ => Ok(found),
    }
}

/// A plan with these dependencies, and why some of them do not fit.
pub(crate) fn with(found: Found, record: &ProposalsRecord) -> (Found, Vec<String>) {
    let said = record.needs.iter().map(|need| Said {
        task: need.task.clone(),
        needs: need.needs.clone(),
        because: need.because.clone(),
    });
    put(found, &record.agent, said.collect())
}

/// Which of the dependencies that an agent named fit a plan, and what is the matter with each of the others.
pub(crate) fn sift(found: Found, agent: &str, said: Vec<Said>) -> (Vec<ProposedNeed>, Vec<String>) {
    let (found, dropped) = put(found, agent, said);
    let names: Vec<String> = found.plan.spots().map(|spot| spot.task.name()).collect();
    let need = |edge: &Proposed| ProposedNeed {
        task: names[edge.task].clone(),
        needs: names[edge.need].clone(),
        because: edge.because.clone(),
    };
    (found.proposed.iter().map(need).collect(), dropped)
}

fn put(found: Found, agent: &str, said: Vec<Said>) -> (Found, Vec<String>) {
    let Found { format, mut plan, mut graph, mut proposed } = found;
    let (mut dropped, mut edges) = (Vec::new(), Vec::new());
    let names = Names::of(&plan);
    if said.len() > MOST {
        dropped.push(format!("{} of them are too many: the first {MOST} count", said.len()));
    }
    for said in said.into_iter().take(MOST) {
        match names.edge(&plan, &graph, &said) {
            Ok((task, need)) => {
                let is_known = edges.iter().any(|edge: &Proposed| (edge.task, edge.need) == (task, need));
                if !is_known {
                    edges.push(Proposed { task, need, agent: agent.to_owned(), because: said.because });
                }
            }
            Err(why) => dropped.push(why),
        }
    }
    // Most often they fit all together.
    if let Ok((with_all, its_graph)) = with_edges(&plan, &edges) {
        proposed.append(&mut edges);
        return (Found { format, plan: with_all, graph: its_graph, proposed }, dropped);
    }
    for edge in edges {
        match with_edges(&plan, std::slice::from_ref(&edge)) {
            Ok((next, its_graph)) => {
                (plan, graph) = (next, its_graph);
                proposed.push(edge);
            }
            Err(why) => dropped.push(why),
        }
    }
    (Found { format, plan, graph, proposed }, dropped)
}

/// A plan in which tasks need more.
fn with_edges(plan: &Plan, edges: &[Proposed]) -> Result<(Plan, Graph), String> {
    let mut out = plan.clone();
    let names: Vec<String> = plan.spots().map(|spot| spot.task.name()).collect();
    let tasks = out.phases.iter_mut().flat_map(|phase| &mut phase.groups).flat_map(|group| &mut group.tasks);
    let mut more: BTreeMap<usize, Vec<&Proposed>> = BTreeMap::new();
    for edge in edges {
        more.entry(edge.task).or_default().push(edge);
    }
    for (at, task) in tasks.enumerate() {
        for edge in more.get(&at).into_iter().flatten() {
            let place = Place { file: Arc::from(format!("by {}", edge.agent)), line: 0, column: 0 };
            task.needs.push(Need { name: names[edge.need].clone(), place });
        }
    }
    let graph = Graph::of(&out).map_err(|e| {
        let hint = e.hints().first().map(|hint| format!(" ({hint})")).unwrap_or_default();
        harmless::line(&format!("{e}{hint}"))
    })?;
    match edges.iter().find(|edge| !graph.needs(edge.task).contains(&edge.need)) {
        // A task of its own area has the same ID.
        Some(edge) => Err(format!("'{}' cannot be named by '{}'", names[edge.need], names[edge.task])),
        None => Ok((out, graph)),
    }
}

/// The tasks by their names, as an agent may write them.
struct Names {
    full: BTreeMap<String, usize>,
    short: BTreeMap<String, Vec<usize>>,
}

impl Names {
    fn of(plan: &Plan) -> Names {
        let mut names = Names { full: BTreeMap::new(), short: BTreeMap::new() };
        for (at, spot) in plan.spots().enumerate() {
            names.full.insert(spot.task.name().to_lowercase(), at);
            names.short.entry(spot.task.id.to_lowercase()).or_default().push(at);
        }
        names
    }

    fn find(&self, name: &str) -> Result<usize, String> {
        let key = name.trim().to_lowercase();
        if let Some(at) = self.full.get(&key) {
            return Ok(*at);
        }
        let shown = harmless::line(&name.chars().take(80).collect::<String>());
        match self.short.get(&key).map(Vec::as_slice) {
            Some([one]) => Ok(*one),
            Some(_) => Err(format!("there are several tasks '{shown}'")),
            None => Err(format!("there is no task '{shown}'")),
        }
    }

    /// Both ends of a dependency, where it could be one that is missing.
    fn edge(&self, plan: &Plan, graph: &Graph, said: &Said) -> Result<(usize, usize), String> {
        let (task, need) = (self.find(&said.task)?, self.find(&said.needs)?);
        let spots: Vec<_> = [task, need].iter().filter_map(|at| plan.spots().nth(*at)).collect();
        let [one, two] = spots.as_slice() else { return Err("there is no such task".to_owned()) };
        let (name, other) = (one.task.name(), two.task.name());
        if task == need {
            return Err(format!("'{name}' cannot wait for itself"));
        }
        if one.task.done {
            return Err(format!("'{name}' is done, and waits for nothing"));
        }
        if graph.needs(task).contains(&need) {
            return Err(format!("'{name}' says itself that it needs '{other}'"));
        }
        Ok((task, need))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::{Format, toml_plan};

    fn found(tasks: &[(&str, &[&str])]) -> Found {
        let one = |(id, needs): &(&str, &[&str])| {
            let (area, id) = id.split_once('/').unwrap_or(("", id));
            let area = if area.is_empty() { String::new() } else { format!("area = '{area}'\n") };
            format!("[[task]]\n{area}id = '{id}'\ntitle = 'T'\nneeds = {needs:?}\n")
        };
        let text: String = tasks.iter().map(one).collect();
        let plan = toml_plan::read(&Arc::from("p"), &format!("format = 1\n{text}")).unwrap();
        Found::of(Format::Toml, plan, String::new).unwrap()
    }

    fn said(edges: &[(&str, &str)]) -> Vec<Said> {
        let one = |(task, needs): &(&str, &str)| Said {
            task: (*task).to_owned(),
            needs: (*needs).to_owned(),
            because: String::new(),
        };
        edges.iter().map(one).collect()
    }

    #[test]
    fn what_does_not_fit_is_dropped_and_named() {
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
        let (kept, dropped) = sift(plan(), "claude", said(&edges));
        let kept: Vec<(&str, &str)> = kept.iter().map(|n| (n.task.as_str(), n.needs.as_str())).collect();
        assert_eq!(kept, [("c", "b"), ("x/d", "c")]);
        assert_eq!(
            dropped,
            [
                r"there is no task 'nowhere\u{1b}'",
                "there are several tasks 'd'",
                "'b' says itself that it needs 'a'",
                "'c' cannot wait for itself",
                "by claude: these tasks need each other: a -> c -> b -> a (one of them has to go first: for example, let 'b' not need 'a')",
            ]
        );
    }

    #[test]
    fn a_task_that_is_done_waits_for_nothing_and_a_name_means_one_task() {
        let mut plan = found(&[("d", &[]), ("x/d", &[]), ("x/e", &[])]);
        plan.plan.phases[0].groups[0].tasks[0].done = true;
        let (kept, dropped) = sift(plan, "claude", said(&[("d", "x/d"), ("x/e", "d")]));
        assert!(kept.is_empty(), "{kept:?}");
        assert_eq!(dropped, ["'d' is done, and waits for nothing", "'d' cannot be named by 'x/e'"]);
    }

    #[test]
    fn there_is_an_end_to_how_many_are_looked_at() {
        let names: Vec<String> = (0..700).map(|n| format!("t{n}")).collect();
        let tasks: Vec<(&str, &[&str])> = names.iter().map(|name| (name.as_str(), &[][..])).collect();
        let edges: Vec<(&str, &str)> =
            names.windows(2).map(|two| (two[1].as_str(), two[0].as_str())).collect();
        let (kept, dropped) = sift(found(&tasks), "claude", said(&edges));
        assert_eq!((kept.len(), dropped.len()), (MOST, 1));
    }
}
