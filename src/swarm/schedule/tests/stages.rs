//! Owns what the tests themselves say about a plan: who depends on whom over others, and which stage a task is in. Plain and slow.

use std::collections::BTreeSet;

use crate::swarm::schedule::{Mode, Work};

/// By task, all that it depends on, directly or not.
pub(super) fn everything_below(work: &Work) -> Vec<BTreeSet<usize>> {
    let below = |start: usize| {
        let mut out = BTreeSet::new();
        let mut next = work.tasks()[start].after.clone();
        while let Some(task) = next.pop() {
            if out.insert(task) {
                next.extend(&work.tasks()[task].after);
            }
        }
        out
    };
    (0..work.tasks().len()).map(below).collect()
}

/// By task, something that is less for earlier stages and equal within one.
pub(super) fn stages(work: &Work, mode: Mode) -> Vec<(usize, usize)> {
    let count = work.tasks().len();
    let named = |task: usize| work.phases().iter().position(|p| p.tasks.contains(&task)).unwrap();
    let mut out: Vec<(usize, usize)> = (0..count).map(|task| (named(task), 0)).collect();
    if mode == Mode::OneLane {
        return vec![(0, 0); count];
    }
    // Moved up until nothing moves any more.
    loop {
        let before = out.clone();
        for (task, it) in work.tasks().iter().enumerate() {
            for below in &it.after {
                let (phase, level) = out[*below];
                let least = (phase, if mode == Mode::Waves { level + 1 } else { 0 });
                out[task] = out[task].max(least);
            }
        }
        if out == before {
            return out;
        }
    }
}
