//! Tests of the dependency graph: waves and the critical path, also as properties of random plans.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::plan::{Group, Need, Phase, Size, Task};
use crate::plan_error::SourceLocation;

fn location() -> SourceLocation {
    SourceLocation { file: Arc::from("f"), line: 1, column: 1 }
}

fn build_task(id: usize, needs: &[usize]) -> Task {
    let needs = needs.iter().map(|need| Need { name: format!("t{need}"), location: location() }).collect();
    Task { needs, ..Task::new(format!("t{id}"), "t".to_owned(), location()) }
}

fn plan_of_tasks(tasks: Vec<Task>) -> Plan {
    Plan { phases: vec![build_phase(PhaseOrder::Parallel, tasks)], ..Plan::default() }
}

fn build_phase(order: PhaseOrder, tasks: Vec<Task>) -> Phase {
    Phase { title: String::new(), order, groups: vec![Group { tasks, ..Group::default() }] }
}

#[test]
fn orders_waves_by_phase_and_serial_tasks() {
    let tasks = |ids: &[usize]| ids.iter().map(|id| build_task(*id, &[])).collect();
    let mut last = build_task(5, &[0]);
    last.size = Size::L;
    let phases = vec![
        build_phase(PhaseOrder::Parallel, tasks(&[0, 1])),
        build_phase(PhaseOrder::Serial, tasks(&[2, 3])),
        build_phase(PhaseOrder::Parallel, vec![build_task(4, &[1]), last]),
    ];
    let plan = Plan { phases, ..Plan::default() };
    let graph = DependencyGraph::from_plan(&plan).unwrap();
    assert_eq!(graph.waves(), [vec![0, 1], vec![2], vec![3], vec![4, 5]]);
    assert_eq!(graph.critical_path(&plan), CriticalPath { tasks: vec![0, 2, 3, 5], weight: 10 });
}

#[test]
fn ignores_needs_on_done_tasks() {
    let mut tasks = vec![build_task(0, &[]), build_task(1, &[0]), build_task(2, &[1])];
    tasks[1].done = true;
    let plan = plan_of_tasks(tasks);
    let graph = DependencyGraph::from_plan(&plan).unwrap();
    assert_eq!(graph.waves(), [[0, 2]]);
    assert_eq!(graph.critical_path(&plan).tasks, [0]);
}

/// Promise: strangers/plan-limits
#[test]
fn handles_long_chain_without_recursion() {
    let tasks =
        (0..5_000).map(|n| build_task(n, &(n > 0).then(|| n - 1).into_iter().collect::<Vec<_>>())).collect();
    let plan = plan_of_tasks(tasks);
    let graph = DependencyGraph::from_plan(&plan).unwrap();
    assert_eq!(graph.waves().len(), 5_000);
    assert_eq!(graph.critical_path(&plan).weight, 10_000);
}

/// For each task: the tasks that it may need, its size, and whether it is done.
type RawTasks = Vec<(Vec<prop::sample::Index>, u8, bool)>;

/// Builds a plan, split into phases, whose tasks need only tasks before them.
fn build_plan(raw: &RawTasks, order: &[bool], shuffle: bool) -> Plan {
    let size = raw.len();
    // Within one phase, the order of dependencies may differ from the order of the plan.
    let id = |n: usize| if shuffle { size - 1 - n } else { n };
    let mut tasks: Vec<Task> = raw
        .iter()
        .enumerate()
        .map(|(n, (picks, weight, done))| {
            let needs: Vec<usize> =
                if n == 0 { Vec::new() } else { picks.iter().map(|p| id(p.index(n))).collect() };
            let size = [Size::S, Size::M, Size::L][usize::from(*weight % 3)];
            Task { size, done: *done, ..build_task(id(n), &needs) }
        })
        .collect();
    if shuffle {
        tasks.reverse();
        return plan_of_tasks(tasks);
    }
    let tasks_per_phase = size.div_ceil(order.len().max(1)).max(1);
    let phases = tasks.chunks(tasks_per_phase).zip(order).map(|(tasks, serial)| {
        build_phase(if *serial { PhaseOrder::Serial } else { PhaseOrder::Parallel }, tasks.to_vec())
    });
    Plan { phases: phases.collect(), ..Plan::default() }
}

fn raw() -> impl Strategy<Value = RawTasks> {
    let needs = proptest::collection::vec(any::<prop::sample::Index>(), 0..4);
    proptest::collection::vec((needs, any::<u8>(), proptest::bool::weighted(0.2)), 1..40)
}

proptest! {
    #[test]
    fn waves_respect_needs_and_phases(
        raw in raw(), order in proptest::collection::vec(any::<bool>(), 1..4), shuffle in any::<bool>(),
    ) {
        let plan = build_plan(&raw, &order, shuffle);
        let graph = DependencyGraph::from_plan(&plan).unwrap();
        let waves = graph.waves();
        let positions: Vec<_> = plan.tasks().collect();
        let wave = |task: usize| waves.iter().position(|wave| wave.contains(&task));
        let open: Vec<usize> = (0..positions.len()).filter(|t| !positions[*t].task.done).collect();
        // Each open task is in exactly one wave; done tasks are in none.
        let mut listed: Vec<usize> = waves.concat();
        listed.sort_unstable();
        prop_assert_eq!(&listed, &open);
        prop_assert!(waves.iter().all(|wave| !wave.is_empty() && wave.is_sorted()));
        for one in &open {
            for two in graph.needs(*one).iter().filter(|two| !positions[**two].task.done) {
                prop_assert!(wave(*two) < wave(*one));
            }
            for two in &open {
                if positions[*two].phase < positions[*one].phase {
                    prop_assert!(wave(*two) < wave(*one));
                }
                let same = positions[*two].phase == positions[*one].phase;
                if same && positions[*one].order == PhaseOrder::Serial && two < one {
                    prop_assert!(wave(*two) < wave(*one));
                }
            }
        }
    }

    #[test]
    fn critical_path_has_the_largest_weight(raw in raw(), shuffle in any::<bool>()) {
        let plan = build_plan(&raw, &[false], shuffle);
        let graph = DependencyGraph::from_plan(&plan).unwrap();
        let positions: Vec<_> = plan.tasks().collect();
        let route = graph.critical_path(&plan);
        let weigh = |tasks: &[usize]| tasks.iter().map(|t| positions[*t].task.size.weight()).sum::<usize>();
        prop_assert_eq!(weigh(&route.tasks), route.weight);
        prop_assert!(route.tasks.windows(2).all(|two| graph.needs(two[1]).contains(&two[0])));
        // Slow reference: the largest weight of any path to each task, by repeated relaxation over all tasks.
        let mut best = vec![0; positions.len()];
        for _ in 0..positions.len() {
            for task in (0..positions.len()).filter(|t| !positions[*t].task.done) {
                let below = graph.needs(task).iter().map(|need| best[*need]).max().unwrap_or_default();
                best[task] = below + positions[task].task.size.weight();
            }
        }
        prop_assert_eq!(route.weight, best.into_iter().max().unwrap_or_default());
    }

    #[test]
    fn reports_all_tasks_of_a_cycle(size in 1_usize..12, extra in 0_usize..6) {
        let mut tasks: Vec<Task> = (0..size).map(|n| build_task(n, &[(n + 1) % size])).collect();
        tasks.extend((size..size + extra).map(|n| build_task(n, &[n - 1])));
        tasks.reverse();
        match DependencyGraph::from_plan(&plan_of_tasks(tasks)) {
            Err(PlanError::DependencyCycle { cycle_names, .. }) => {
                prop_assert_eq!(cycle_names.len(), size + 1);
                prop_assert_eq!(&cycle_names[0], &cycle_names[size]);
            }
            other => prop_assert!(false, "{:?}", other.map(|_| ())),
        }
    }
}
