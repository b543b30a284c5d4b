//! Owns what depends on what in a plan: names become tasks, and waves and the longest way through follow from them.

use std::collections::{BTreeMap, BTreeSet};

use super::plan::Spot;
use super::{Error, Order, Plan};
use crate::explain::nearest;

/// The tasks that each task of a plan needs. A task is its place in [`Plan::spots`].
#[derive(Debug, Clone)]
pub(crate) struct Graph {
    /// Those that it names, in the plan's order, each once.
    needs: Vec<Vec<usize>>,
    /// The open one right before it in a phase whose tasks go one after the other.
    before: Vec<Option<usize>>,
    /// What is left to be done, phase by phase.
    open: Vec<Vec<usize>>,
}

/// A way through the plan, one task after the other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Route {
    /// The tasks.
    pub(crate) tasks: Vec<usize>,
    /// Their sizes together.
    pub(crate) weight: usize,
}

impl Graph {
    /// The graph of a plan.
    ///
    /// # Errors
    /// For a name that two tasks have, or none, or several could have; for tasks that need each other in a circle, or one
    /// that comes later.
    pub(crate) fn of(plan: &Plan) -> Result<Graph, Error> {
        let spots: Vec<Spot<'_>> = plan.spots().collect();
        let names = Names::of(&spots)?;
        let mut needs = Vec::new();
        for spot in &spots {
            let found: BTreeSet<usize> = spot
                .task
                .needs
                .iter()
                .map(|need| names.find(&spots, spot, need))
                .collect::<Result<_, _>>()?;
            needs.push(found.into_iter().collect());
        }
        let mut open = vec![Vec::new(); plan.phases.len()];
        let mut before = vec![None; spots.len()];
        for (at, spot) in spots.iter().enumerate().filter(|(_, spot)| !spot.task.done) {
            let phase: &mut Vec<usize> = &mut open[spot.phase];
            before[at] = phase.last().copied().filter(|_| spot.order == Order::Serial);
            phase.push(at);
        }
        let graph = Graph { needs, before, open };
        graph.require_no_cycle(&spots, &names)?;
        graph.require_order(&spots, &names)?;
        Ok(graph)
    }

    /// The tasks that a task names, in the plan's order.
    pub(crate) fn needs(&self, task: usize) -> &[usize] {
        &self.needs[task]
    }

    /// The open tasks in waves: each wave needs only what is in waves before it, or done.
    pub(crate) fn waves(&self) -> Vec<Vec<usize>> {
        let mut waves = Vec::new();
        for phase in &self.open {
            let mut depth: BTreeMap<usize, usize> = BTreeMap::new();
            for task in self.sorted(phase) {
                let below = self.first(task).filter_map(|need| depth.get(&need)).max();
                depth.insert(task, below.map_or(0, |n| n + 1));
            }
            let mut levels = vec![Vec::new(); depth.values().max().map_or(0, |n| n + 1)];
            for (task, level) in &depth {
                levels[*level].push(*task);
            }
            waves.extend(levels);
        }
        waves
    }

    /// The way through the open tasks that takes longest, by their sizes: the plan takes no less, however many agents work.
    pub(crate) fn longest(&self, plan: &Plan) -> Route {
        let weights: Vec<usize> = plan.spots().map(|spot| spot.task.size.weight()).collect();
        let mut out = Route::default();
        for phase in &self.open {
            let mut best: BTreeMap<usize, (usize, Option<usize>)> = BTreeMap::new();
            for task in self.sorted(phase) {
                let below = self.first(task).filter_map(|need| Some((best.get(&need)?.0, need)));
                // Of two that take as long, the one that stands first.
                let below = below.reduce(|one, two| if two.0 > one.0 { two } else { one });
                let weight = weights[task] + below.map_or(0, |(weight, _)| weight);
                best.insert(task, (weight, below.map(|(_, need)| need)));
            }
            let last = best.iter().map(|(task, (weight, _))| (*weight, *task));
            let Some((weight, last)) = last.reduce(|one, two| if two.0 > one.0 { two } else { one }) else {
                continue;
            };
            let mut route = vec![last];
            while let Some((_, Some(need))) = route.last().and_then(|task| best.get(task)) {
                route.push(*need);
            }
            route.reverse();
            out.tasks.extend(route);
            out.weight += weight;
        }
        out
    }

    /// What has to be done before a task, within its phase or before: those it names, and the one right before it in line.
    fn first(&self, task: usize) -> impl Iterator<Item = usize> + '_ {
        self.needs[task].iter().copied().chain(self.before[task])
    }

    /// Tasks of one phase so that each comes after those of them that it needs.
    fn sorted(&self, phase: &[usize]) -> Vec<usize> {
        let members: BTreeSet<usize> = phase.iter().copied().collect();
        let mut missing: BTreeMap<usize, usize> = BTreeMap::new();
        let mut followers: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for task in phase {
            let needs: BTreeSet<usize> = self.first(*task).filter(|need| members.contains(need)).collect();
            missing.insert(*task, needs.len());
            for need in needs {
                followers.entry(need).or_default().push(*task);
            }
        }
        let mut ready: BTreeSet<usize> = phase.iter().copied().filter(|task| missing[task] == 0).collect();
        let mut out = Vec::new();
        while let Some(task) = ready.pop_first() {
            out.push(task);
            for follower in followers.remove(&task).unwrap_or_default() {
                let left = missing.entry(follower).or_default();
                *left -= 1;
                if *left == 0 {
                    ready.insert(follower);
                }
            }
        }
        out
    }

    /// Follows names from each task, without recursion: a chain may be as long as the plan.
    fn require_no_cycle(&self, spots: &[Spot<'_>], names: &Names) -> Result<(), Error> {
        #[derive(Clone, Copy, PartialEq)]
        enum Seen {
            New,
            OnTheWay,
            Clear,
        }
        let mut seen = vec![Seen::New; spots.len()];
        for start in 0..spots.len() {
            let mut way: Vec<(usize, usize)> = Vec::new();
            if seen[start] == Seen::New {
                seen[start] = Seen::OnTheWay;
                way.push((start, 0));
            }
            while let Some((task, next)) = way.last_mut() {
                let Some(need) = self.needs[*task].get(*next).copied() else {
                    seen[*task] = Seen::Clear;
                    way.pop();
                    continue;
                };
                *next += 1;
                match seen[need] {
                    Seen::Clear => {}
                    Seen::New => {
                        seen[need] = Seen::OnTheWay;
                        way.push((need, 0));
                    }
                    Seen::OnTheWay => {
                        let from = way.iter().position(|(task, _)| *task == need).unwrap_or_default();
                        let tasks: Vec<usize> = way[from..].iter().map(|(task, _)| *task).collect();
                        return Err(cycle(spots, names, &tasks));
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether what comes first by its phase needs nothing that comes later.
    fn require_order(&self, spots: &[Spot<'_>], names: &Names) -> Result<(), Error> {
        for (at, spot) in spots.iter().enumerate().filter(|(_, spot)| !spot.task.done) {
            for need in self.needs[at].iter().copied().filter(|need| !spots[*need].task.done) {
                let other = &spots[need];
                let why = if other.phase > spot.phase {
                    format!("it is in phase {}, and this is phase {}", other.phase + 1, spot.phase + 1)
                } else if other.phase == spot.phase && spot.order == Order::Serial && need > at {
                    format!("the tasks of phase {} go one after the other", spot.phase + 1)
                } else {
                    continue;
                };
                return Err(Error::TooLate {
                    place: names.place(spots, at, need),
                    task: spot.task.name(),
                    need: other.task.name(),
                    why,
                });
            }
        }
        Ok(())
    }
}

/// The error for a circle, told from the task that stands first in the plan.
fn cycle(spots: &[Spot<'_>], names: &Names, tasks: &[usize]) -> Error {
    let first = tasks.iter().enumerate().min_by_key(|(_, task)| **task).map_or(0, |(at, _)| at);
    let around: Vec<usize> = tasks.iter().cycle().skip(first).take(tasks.len() + 1).copied().collect();
    Error::Cycle {
        place: names.place(spots, around[0], around[1]),
        names: around.iter().map(|task| spots[*task].task.name()).collect(),
    }
}

/// The tasks by their names, upper and lower case the same: names of branches come of them.
struct Names {
    /// By area and ID.
    full: BTreeMap<(String, String), usize>,
    /// By ID.
    short: BTreeMap<String, Vec<usize>>,
}

impl Names {
    fn of(spots: &[Spot<'_>]) -> Result<Names, Error> {
        let mut names = Names { full: BTreeMap::new(), short: BTreeMap::new() };
        for (at, spot) in spots.iter().enumerate() {
            let task = spot.task;
            if let Some(other) = names.full.insert(key(task.area.as_deref(), &task.id), at) {
                return Err(Error::Twice {
                    name: task.name(),
                    first: spots[other].task.from.clone(),
                    second: task.from.clone(),
                });
            }
            names.short.entry(task.id.to_lowercase()).or_default().push(at);
        }
        Ok(names)
    }

    /// The task that `need` of `spot` names: in its own area, or the only one of that ID.
    fn find(&self, spots: &[Spot<'_>], spot: &Spot<'_>, need: &super::plan::Need) -> Result<usize, Error> {
        match self.look_up(spot, &need.name) {
            [one] => Ok(*one),
            [] => Err(Error::Unknown {
                place: need.place.clone(),
                task: spot.task.name(),
                need: need.name.clone(),
                near: near(spots, spot, &need.name),
            }),
            several => Err(Error::Ambiguous {
                place: need.place.clone(),
                task: spot.task.name(),
                need: need.name.clone(),
                all: several.iter().map(|task| spots[*task].task.name()).collect(),
            }),
        }
    }

    fn look_up(&self, spot: &Spot<'_>, name: &str) -> &[usize] {
        if let Some((area, id)) = name.split_once('/') {
            return self.full.get(&key(Some(area), id)).map(std::slice::from_ref).unwrap_or_default();
        }
        match self.full.get(&key(spot.task.area.as_deref(), name)) {
            Some(own) => std::slice::from_ref(own),
            None => self.short.get(&name.to_lowercase()).map(Vec::as_slice).unwrap_or_default(),
        }
    }

    /// Where `task` names `need`.
    fn place(&self, spots: &[Spot<'_>], task: usize, need: usize) -> super::Place {
        let spot = &spots[task];
        let named = spot.task.needs.iter().find(|n| self.look_up(spot, &n.name) == [need]);
        named.map_or(&spot.task.from, |need| &need.place).clone()
    }
}

fn key(area: Option<&str>, id: &str) -> (String, String) {
    (area.unwrap_or_default().to_lowercase(), id.to_lowercase())
}

/// The name that was probably meant, as it would have to be written.
fn near(spots: &[Spot<'_>], spot: &Spot<'_>, name: &str) -> Option<String> {
    let others = || spots.iter().map(|s| s.task).filter(|task| !std::ptr::eq(*task, spot.task));
    let id = name.rsplit('/').next().unwrap_or(name);
    // The right ID in another area is nearest of all.
    if let Some(same) = others().find(|task| task.id.eq_ignore_ascii_case(id)) {
        return Some(same.name());
    }
    let names: Vec<(String, String)> = others().map(|task| (task.id.clone(), task.name())).collect();
    let best = nearest(id, names.iter().map(|(id, _)| id.as_str()))?;
    names.iter().find(|(id, _)| id == best).map(|(_, name)| name.clone())
}

#[cfg(test)]
mod tests;
