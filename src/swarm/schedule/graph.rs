//! Owns who depends on whom, directly and over others.

use std::collections::BTreeSet;

use super::work::Task;

/// Dependencies without a cycle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Graph {
    /// By task, who depends on it.
    dependents: Vec<Vec<usize>>,
    /// All tasks, each behind what it depends on.
    order: Vec<usize>,
    /// By task, a bit for each task that it has to wait for: what it depends on, directly or over tasks that are to be done.
    below: Vec<Vec<u64>>,
}

impl Graph {
    /// Reads the tasks' dependencies. The error is a circle, each of whose tasks depends on the one before it.
    pub(super) fn new(tasks: &[Task]) -> Result<Graph, Vec<usize>> {
        let mut dependents = vec![Vec::new(); tasks.len()];
        for (task, it) in tasks.iter().enumerate() {
            for before in &it.after {
                dependents[*before].push(task);
            }
        }
        let mut missing: Vec<usize> = tasks.iter().map(|t| t.after.len()).collect();
        let mut free: BTreeSet<usize> = (0..tasks.len()).filter(|t| missing[*t] == 0).collect();
        let mut order = Vec::with_capacity(tasks.len());
        while let Some(task) = free.pop_first() {
            order.push(task);
            for next in &dependents[task] {
                missing[*next] -= 1;
                if missing[*next] == 0 {
                    free.insert(*next);
                }
            }
        }
        if let Some(stuck) = missing.iter().position(|m| *m > 0) {
            return Err(circle(tasks, &missing, stuck));
        }
        let words = tasks.len().div_ceil(64);
        let mut below: Vec<Vec<u64>> = vec![vec![0; words]; tasks.len()];
        for task in &order {
            let mut bits = vec![0; words];
            for before in &tasks[*task].after {
                if !tasks[*before].done {
                    bits.iter_mut().zip(&below[*before]).for_each(|(mine, its)| *mine |= its);
                }
                bits[before / 64] |= 1 << (before % 64);
            }
            below[*task] = bits;
        }
        Ok(Graph { dependents, order, below })
    }

    /// Who depends on the task directly.
    pub(super) fn dependents(&self, task: usize) -> &[usize] {
        &self.dependents[task]
    }

    /// All tasks, each behind what it depends on.
    pub(super) fn order(&self) -> &[usize] {
        &self.order
    }

    /// Whether `task` has to wait for `other`. What was done before the batch has nobody wait for what it had depended on.
    pub(super) fn depends(&self, task: usize, other: usize) -> bool {
        self.below[task][other / 64] >> (other % 64) & 1 == 1
    }

    /// Whether one of the two has to wait for the other.
    pub(super) fn are_ordered(&self, one: usize, other: usize) -> bool {
        self.depends(one, other) || self.depends(other, one)
    }
}

/// Walks backwards from a task that never got free, over others of the kind, until one comes again.
fn circle(tasks: &[Task], missing: &[usize], start: usize) -> Vec<usize> {
    let mut path = vec![start];
    let mut at = start;
    while let Some(before) = tasks[at].after.iter().copied().find(|b| missing[*b] > 0) {
        if let Some(first) = path.iter().position(|t| *t == before) {
            path.drain(..first);
            break;
        }
        path.push(before);
        at = before;
    }
    path.reverse();
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tasks(after: &[&[usize]]) -> Vec<Task> {
        after.iter().map(|a| Task { after: a.to_vec(), ..Task::default() }).collect()
    }

    #[test]
    fn tasks_come_behind_what_they_depend_on() {
        let graph = Graph::new(&tasks(&[&[2], &[0], &[], &[0, 1]])).unwrap();
        assert_eq!(graph.order(), [2, 0, 1, 3]);
        assert_eq!(graph.dependents(0), [1, 3]);
        assert!(graph.depends(3, 2) && !graph.depends(2, 3) && graph.are_ordered(2, 3));
        assert!(!graph.depends(1, 1));
    }

    #[test]
    fn nobody_waits_for_what_was_needed_by_something_that_is_done() {
        let mut tasks = tasks(&[&[], &[0], &[1], &[2]]);
        tasks[1].done = true;
        let graph = Graph::new(&tasks).unwrap();
        assert!(graph.depends(2, 1) && graph.depends(3, 1) && graph.depends(3, 2));
        assert!(!graph.depends(2, 0) && !graph.are_ordered(0, 3));
    }

    #[test]
    fn a_circle_is_named_without_what_only_hangs_on_it() {
        assert_eq!(Graph::new(&tasks(&[&[1], &[3], &[], &[4], &[1]])), Err(vec![4, 3, 1]));
        assert_eq!(Graph::new(&tasks(&[&[0]])), Err(vec![0]));
    }
}
