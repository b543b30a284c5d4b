//! Dependencies and stages of a plan, computed independently of the scheduler by simple and slow code.

use std::collections::BTreeSet;

use crate::schedule::options::LandingMode;
use crate::schedule::workload::Workload;

/// Returns the direct and indirect dependencies of each task.
pub(crate) fn transitive_dependencies(workload: &Workload) -> Vec<BTreeSet<usize>> {
    let collect_dependencies = |start: usize| {
        let mut out = BTreeSet::new();
        let mut pending = workload.tasks()[start].depends_on.clone();
        while let Some(task) = pending.pop() {
            if out.insert(task) {
                pending.extend(&workload.tasks()[task].depends_on);
            }
        }
        out
    };
    (0..workload.tasks().len()).map(collect_dependencies).collect()
}

/// Returns the stage of each task, as a key that grows with later stages and is equal within one stage.
pub(crate) fn expected_stages(workload: &Workload, mode: LandingMode) -> Vec<(usize, usize)> {
    let count = workload.tasks().len();
    let plan_phase = |task: usize| workload.phases().iter().position(|p| p.tasks.contains(&task)).unwrap();
    let mut out: Vec<(usize, usize)> = (0..count).map(|task| (plan_phase(task), 0)).collect();
    if mode == LandingMode::OneLane {
        return vec![(0, 0); count];
    }
    // Tasks move to later stages until nothing changes.
    loop {
        let before = out.clone();
        for (task, scheduled_task) in workload.tasks().iter().enumerate() {
            for dependency in &scheduled_task.depends_on {
                let (phase, level) = out[*dependency];
                let minimum = (phase, if mode == LandingMode::Waves { level + 1 } else { 0 });
                out[task] = out[task].max(minimum);
            }
        }
        if out == before {
            return out;
        }
    }
}
