//! Dependency graph of a plan: names resolved to tasks, waves and the critical path.

use std::collections::{BTreeMap, BTreeSet};

use proq_base::explain::closest_match;

use super::plan::{PhaseOrder, Plan, PlanTask};
use super::plan_error::PlanError;

/// Dependencies between the tasks of a plan. A task's number is its index in [`Plan::tasks`].
#[derive(Debug, Clone)]
pub struct DependencyGraph {
    /// The tasks that each task names as its needs, in the plan's order, each once.
    needs: Vec<Vec<usize>>,
    /// For each open task of a serial phase, the open task directly before it in that phase. None for all
    /// others.
    serial_predecessor: Vec<Option<usize>>,
    /// The open tasks of each phase.
    open_tasks_by_phase: Vec<Vec<usize>>,
}

/// A sequence of tasks through the plan, each of which waits for the one before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CriticalPath {
    /// The tasks in order.
    pub tasks: Vec<usize>,
    /// The sum of the tasks' weights.
    pub weight: usize,
}

impl DependencyGraph {
    /// Builds the graph of a plan.
    ///
    /// # Errors
    /// Fails for a name that two tasks have; for a need that no task or more than one task matches; for a
    /// cycle of needs; and for a need on a later task.
    pub fn from_plan(plan: &Plan) -> Result<DependencyGraph, PlanError> {
        let positions: Vec<PlanTask<'_>> = plan.tasks().collect();
        let names = NameIndex::from_positions(&positions)?;
        let mut needs = Vec::new();
        for position in &positions {
            let needed: BTreeSet<usize> = position
                .task
                .needs
                .iter()
                .map(|need| names.resolve_need(&positions, position, need))
                .collect::<Result<_, _>>()?;
            needs.push(needed.into_iter().collect());
        }
        let mut open_by_phase = vec![Vec::new(); plan.phases.len()];
        let mut serial_predecessor = vec![None; positions.len()];
        for (index, position) in positions.iter().enumerate().filter(|(_, position)| !position.task.done) {
            let phase: &mut Vec<usize> = &mut open_by_phase[position.phase];
            serial_predecessor[index] =
                phase.last().copied().filter(|_| position.order == PhaseOrder::Serial);
            phase.push(index);
        }
        let graph = DependencyGraph { needs, serial_predecessor, open_tasks_by_phase: open_by_phase };
        graph.require_no_cycle(&positions, &names)?;
        graph.require_order(&positions, &names)?;
        Ok(graph)
    }

    /// Returns the tasks that a task names as its needs, in the plan's order.
    pub fn needs(&self, task: usize) -> &[usize] {
        &self.needs[task]
    }

    /// Returns the open tasks in waves. The tasks of a wave need only done tasks and tasks of earlier waves.
    pub fn waves(&self) -> Vec<Vec<usize>> {
        let mut waves = Vec::new();
        for phase in &self.open_tasks_by_phase {
            let mut depth: BTreeMap<usize, usize> = BTreeMap::new();
            for task in self.topological_order(phase) {
                let need_depth = self.predecessors(task).filter_map(|need| depth.get(&need)).max();
                depth.insert(task, need_depth.map_or(0, |n| n + 1));
            }
            let mut levels = vec![Vec::new(); depth.values().max().map_or(0, |n| n + 1)];
            for (task, level) in &depth {
                levels[*level].push(*task);
            }
            waves.extend(levels);
        }
        waves
    }

    /// Returns the critical path: in each phase the sequence of open tasks with the largest weight, one phase
    /// after another. The plan takes at least that long, however many agents run.
    pub fn critical_path(&self, plan: &Plan) -> CriticalPath {
        let weights: Vec<usize> = plan.tasks().map(|position| position.task.size.weight()).collect();
        let mut out = CriticalPath::default();
        for phase in &self.open_tasks_by_phase {
            let mut best: BTreeMap<usize, (usize, Option<usize>)> = BTreeMap::new();
            for task in self.topological_order(phase) {
                let need_weights =
                    self.predecessors(task).filter_map(|need| Some((best.get(&need)?.0, need)));
                // On equal weight, take the task that comes first in the plan.
                let heaviest_need =
                    need_weights.reduce(|first, second| if second.0 > first.0 { second } else { first });
                let weight = weights[task] + heaviest_need.map_or(0, |(weight, _)| weight);
                best.insert(task, (weight, heaviest_need.map(|(_, need)| need)));
            }
            let path_ends = best.iter().map(|(task, (weight, _))| (*weight, *task));
            let Some((weight, last)) =
                path_ends.reduce(|first, second| if second.0 > first.0 { second } else { first })
            else {
                continue;
            };
            let mut path = vec![last];
            while let Some((_, Some(need))) = path.last().and_then(|task| best.get(task)) {
                path.push(*need);
            }
            path.reverse();
            out.tasks.extend(path);
            out.weight += weight;
        }
        out
    }

    /// Returns the tasks that must be done before a task: its needs, and the task before it in a serial
    /// phase.
    fn predecessors(&self, task: usize) -> impl Iterator<Item = usize> + '_ {
        self.needs[task].iter().copied().chain(self.serial_predecessor[task])
    }

    /// Sorts the tasks of one phase so that each task comes after its predecessors (Kahn's algorithm).
    fn topological_order(&self, phase: &[usize]) -> Vec<usize> {
        let members: BTreeSet<usize> = phase.iter().copied().collect();
        let mut unmet_needs: BTreeMap<usize, usize> = BTreeMap::new();
        let mut followers: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for task in phase {
            let needs: BTreeSet<usize> =
                self.predecessors(*task).filter(|need| members.contains(need)).collect();
            unmet_needs.insert(*task, needs.len());
            for need in needs {
                followers.entry(need).or_default().push(*task);
            }
        }
        let mut ready: BTreeSet<usize> =
            phase.iter().copied().filter(|task| unmet_needs[task] == 0).collect();
        let mut out = Vec::new();
        while let Some(task) = ready.pop_first() {
            out.push(task);
            for follower in followers.remove(&task).unwrap_or_default() {
                let unmet = unmet_needs.entry(follower).or_default();
                *unmet -= 1;
                if *unmet == 0 {
                    ready.insert(follower);
                }
            }
        }
        out
    }

    /// Fails if needs form a cycle. Searches depth first from each task, without recursion, because a chain
    /// may be as long as the plan.
    fn require_no_cycle(&self, positions: &[PlanTask<'_>], names: &NameIndex) -> Result<(), PlanError> {
        #[derive(Clone, Copy, PartialEq)]
        enum VisitState {
            Unvisited,
            OnPath,
            CycleFree,
        }
        let mut visits = vec![VisitState::Unvisited; positions.len()];
        for start in 0..positions.len() {
            let mut path: Vec<(usize, usize)> = Vec::new();
            if visits[start] == VisitState::Unvisited {
                visits[start] = VisitState::OnPath;
                path.push((start, 0));
            }
            while let Some((task, next)) = path.last_mut() {
                let Some(need) = self.needs[*task].get(*next).copied() else {
                    visits[*task] = VisitState::CycleFree;
                    path.pop();
                    continue;
                };
                *next += 1;
                match visits[need] {
                    VisitState::CycleFree => {}
                    VisitState::Unvisited => {
                        visits[need] = VisitState::OnPath;
                        path.push((need, 0));
                    }
                    VisitState::OnPath => {
                        let cycle_start = path.iter().position(|(task, _)| *task == need).unwrap_or_default();
                        let tasks: Vec<usize> = path[cycle_start..].iter().map(|(task, _)| *task).collect();
                        return Err(cycle_error(positions, names, &tasks));
                    }
                }
            }
        }
        Ok(())
    }

    /// Refuses a need on an open task that comes later: in a later phase, or later in the same serial phase.
    fn require_order(&self, positions: &[PlanTask<'_>], names: &NameIndex) -> Result<(), PlanError> {
        for (index, position) in positions.iter().enumerate().filter(|(_, position)| !position.task.done) {
            for need in self.needs[index].iter().copied().filter(|need| !positions[*need].task.done) {
                let needed = &positions[need];
                let reason = if needed.phase > position.phase {
                    format!("it is in phase {}, and this is phase {}", needed.phase + 1, position.phase + 1)
                } else if needed.phase == position.phase
                    && position.order == PhaseOrder::Serial
                    && need > index
                {
                    format!("the tasks of phase {} run one after the other", position.phase + 1)
                } else {
                    continue;
                };
                return Err(PlanError::NeedsLaterTask {
                    location: names.need_location(positions, index, need),
                    task: position.task.full_name(),
                    need: needed.task.full_name(),
                    reason,
                });
            }
        }
        Ok(())
    }
}

/// Returns the error for a cycle, starting at the cycle's first task in the plan.
fn cycle_error(positions: &[PlanTask<'_>], names: &NameIndex, tasks: &[usize]) -> PlanError {
    let first = tasks.iter().enumerate().min_by_key(|(_, task)| **task).map_or(0, |(index, _)| index);
    let closed_cycle: Vec<usize> = tasks.iter().cycle().skip(first).take(tasks.len() + 1).copied().collect();
    PlanError::DependencyCycle {
        location: names.need_location(positions, closed_cycle[0], closed_cycle[1]),
        cycle_names: closed_cycle.iter().map(|task| positions[*task].task.full_name()).collect(),
    }
}

/// Index of tasks by name. It ignores case, because branch names derive from task names.
struct NameIndex {
    /// The task of each area and id, in lowercase.
    by_full_name: BTreeMap<(String, String), usize>,
    /// The tasks of each id, in lowercase.
    by_id: BTreeMap<String, Vec<usize>>,
}

impl NameIndex {
    fn from_positions(positions: &[PlanTask<'_>]) -> Result<NameIndex, PlanError> {
        let mut names = NameIndex { by_full_name: BTreeMap::new(), by_id: BTreeMap::new() };
        for (index, position) in positions.iter().enumerate() {
            let task = position.task;
            if let Some(other) = names.by_full_name.insert(name_key(task.area.as_deref(), &task.id), index) {
                return Err(PlanError::DuplicateTask {
                    name: task.full_name(),
                    first: positions[other].task.location.clone(),
                    second: task.location.clone(),
                });
            }
            names.by_id.entry(task.id.to_lowercase()).or_default().push(index);
        }
        Ok(names)
    }

    /// Resolves a need of the task at `position`: a task in the same area, or the only task with that id.
    fn resolve_need(
        &self,
        positions: &[PlanTask<'_>],
        position: &PlanTask<'_>,
        need: &super::plan::Need,
    ) -> Result<usize, PlanError> {
        match self.matching_tasks(position, &need.name) {
            [only_match] => Ok(*only_match),
            [] => Err(PlanError::UnknownNeed {
                location: need.location.clone(),
                task: position.task.full_name(),
                need: need.name.clone(),
                suggestion: suggest_name(positions, position, &need.name),
            }),
            matches => Err(PlanError::AmbiguousNeed {
                location: need.location.clone(),
                task: position.task.full_name(),
                need: need.name.clone(),
                candidates: matches.iter().map(|task| positions[*task].task.full_name()).collect(),
            }),
        }
    }

    /// Returns the tasks that a name matches: by area and ID, else in the area of `position`, else in any
    /// area.
    fn matching_tasks(&self, position: &PlanTask<'_>, name: &str) -> &[usize] {
        if let Some((area, id)) = name.split_once('/') {
            return self
                .by_full_name
                .get(&name_key(Some(area), id))
                .map(std::slice::from_ref)
                .unwrap_or_default();
        }
        match self.by_full_name.get(&name_key(position.task.area.as_deref(), name)) {
            Some(in_same_area) => std::slice::from_ref(in_same_area),
            None => self.by_id.get(&name.to_lowercase()).map(Vec::as_slice).unwrap_or_default(),
        }
    }

    /// Returns the location where `task` names `need`.
    fn need_location(
        &self,
        positions: &[PlanTask<'_>],
        task: usize,
        need: usize,
    ) -> super::plan_error::SourceLocation {
        let position = &positions[task];
        let named = position.task.needs.iter().find(|n| self.matching_tasks(position, &n.name) == [need]);
        named.map_or(&position.task.location, |need| &need.location).clone()
    }
}

/// Returns area and ID in lowercase, the area empty for none.
fn name_key(area: Option<&str>, id: &str) -> (String, String) {
    (area.unwrap_or_default().to_lowercase(), id.to_lowercase())
}

/// Returns the full name of the task that `name` most likely means, as a suggestion in an error.
fn suggest_name(positions: &[PlanTask<'_>], position: &PlanTask<'_>, name: &str) -> Option<String> {
    let others = || positions.iter().map(|s| s.task).filter(|task| !std::ptr::eq(*task, position.task));
    let id = name.rsplit('/').next().unwrap_or(name);
    // The same id in another area is the best suggestion.
    if let Some(same_id) = others().find(|task| task.id.eq_ignore_ascii_case(id)) {
        return Some(same_id.full_name());
    }
    let names: Vec<(String, String)> = others().map(|task| (task.id.clone(), task.full_name())).collect();
    let nearest_id = closest_match(id, names.iter().map(|(id, _)| id.as_str()))?;
    names.iter().find(|(id, _)| id == nearest_id).map(|(_, name)| name.clone())
}

#[cfg(test)]
mod tests;
