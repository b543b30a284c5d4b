//! Owns the tests of what depends on what: waves, the longest way, and that both hold for any plan.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::swarm::plan::{Group, Need, Phase};
use crate::swarm::{Place, Size, Task};

fn place() -> Place {
    Place { file: Arc::from("f"), line: 1, column: 1 }
}

fn task(id: usize, needs: &[usize]) -> Task {
    let needs = needs.iter().map(|need| Need { name: format!("t{need}"), place: place() }).collect();
    Task { needs, ..Task::new(format!("t{id}"), "t".to_owned(), place()) }
}

fn plan_of_tasks(tasks: Vec<Task>) -> Plan {
    Plan { phases: vec![phase(Order::Parallel, tasks)], ..Plan::default() }
}

fn phase(order: Order, tasks: Vec<Task>) -> Phase {
    Phase { title: String::new(), order, groups: vec![Group { tasks, ..Group::default() }] }
}

#[test]
fn phases_come_one_after_the_other_and_serial_ones_task_by_task() {
    let tasks = |ids: &[usize]| ids.iter().map(|id| task(*id, &[])).collect();
    let mut last = task(5, &[0]);
    last.size = Size::L;
    let phases = vec![
        phase(Order::Parallel, tasks(&[0, 1])),
        phase(Order::Serial, tasks(&[2, 3])),
        phase(Order::Parallel, vec![task(4, &[1]), last]),
    ];
    let plan = Plan { phases, ..Plan::default() };
    let graph = Graph::of(&plan).unwrap();
    assert_eq!(graph.waves(), [vec![0, 1], vec![2], vec![3], vec![4, 5]]);
    assert_eq!(graph.longest(&plan), Route { tasks: vec![0, 2, 3, 5], weight: 10 });
}

#[test]
fn what_is_done_holds_nobody_up() {
    let mut tasks = vec![task(0, &[]), task(1, &[0]), task(2, &[1])];
    tasks[1].done = true;
    let plan = plan_of_tasks(tasks);
    let graph = Graph::of(&plan).unwrap();
    assert_eq!(graph.waves(), [[0, 2]]);
    assert_eq!(graph.longest(&plan).tasks, [0]);
}

#[test]
fn a_long_chain_takes_no_stack() {
    let tasks =
        (0..5_000).map(|n| task(n, &(n > 0).then(|| n - 1).into_iter().collect::<Vec<_>>())).collect();
    let plan = plan_of_tasks(tasks);
    let graph = Graph::of(&plan).unwrap();
    assert_eq!(graph.waves().len(), 5_000);
    assert_eq!(graph.longest(&plan).weight, 10_000);
}

/// For each task which of the others it may need, its size, and whether it is done.
type Raw = Vec<(Vec<prop::sample::Index>, u8, bool)>;

/// A plan whose tasks need only those before them, cut into phases.
fn plan_of(raw: &Raw, order: &[bool], shuffle: bool) -> Plan {
    let size = raw.len();
    // Who may need whom does not have to be the order of the plan, within one phase.
    let id = |n: usize| if shuffle { size - 1 - n } else { n };
    let mut tasks: Vec<Task> = raw
        .iter()
        .enumerate()
        .map(|(n, (picks, weight, done))| {
            let needs: Vec<usize> =
                if n == 0 { Vec::new() } else { picks.iter().map(|p| id(p.index(n))).collect() };
            let size = [Size::S, Size::M, Size::L][usize::from(*weight % 3)];
            Task { size, done: *done, ..task(id(n), &needs) }
        })
        .collect();
    if shuffle {
        tasks.reverse();
        return plan_of_tasks(tasks);
    }
    let share = size.div_ceil(order.len().max(1)).max(1);
    let phases = tasks
        .chunks(share)
        .zip(order)
        .map(|(tasks, serial)| phase(if *serial { Order::Serial } else { Order::Parallel }, tasks.to_vec()));
    Plan { phases: phases.collect(), ..Plan::default() }
}

fn raw() -> impl Strategy<Value = Raw> {
    let needs = proptest::collection::vec(any::<prop::sample::Index>(), 0..4);
    proptest::collection::vec((needs, any::<u8>(), proptest::bool::weighted(0.2)), 1..40)
}

proptest! {
    #[test]
    fn waves_respect_whatever_has_to_come_first(
        raw in raw(), order in proptest::collection::vec(any::<bool>(), 1..4), shuffle in any::<bool>(),
    ) {
        let plan = plan_of(&raw, &order, shuffle);
        let graph = Graph::of(&plan).unwrap();
        let waves = graph.waves();
        let spots: Vec<_> = plan.spots().collect();
        let wave = |task: usize| waves.iter().position(|wave| wave.contains(&task));
        let open: Vec<usize> = (0..spots.len()).filter(|t| !spots[*t].task.done).collect();
        // Each open task is in one wave, no other is in any.
        let mut listed: Vec<usize> = waves.concat();
        listed.sort_unstable();
        prop_assert_eq!(&listed, &open);
        prop_assert!(waves.iter().all(|wave| !wave.is_empty() && wave.is_sorted()));
        for one in &open {
            for two in graph.needs(*one).iter().filter(|two| !spots[**two].task.done) {
                prop_assert!(wave(*two) < wave(*one));
            }
            for two in &open {
                if spots[*two].phase < spots[*one].phase {
                    prop_assert!(wave(*two) < wave(*one));
                }
                let same = spots[*two].phase == spots[*one].phase;
                if same && spots[*one].order == Order::Serial && two < one {
                    prop_assert!(wave(*two) < wave(*one));
                }
            }
        }
    }

    #[test]
    fn the_longest_way_is_one_and_no_other_is_longer(raw in raw(), shuffle in any::<bool>()) {
        let plan = plan_of(&raw, &[false], shuffle);
        let graph = Graph::of(&plan).unwrap();
        let spots: Vec<_> = plan.spots().collect();
        let route = graph.longest(&plan);
        let weigh = |tasks: &[usize]| tasks.iter().map(|t| spots[*t].task.size.weight()).sum::<usize>();
        prop_assert_eq!(weigh(&route.tasks), route.weight);
        prop_assert!(route.tasks.windows(2).all(|two| graph.needs(two[1]).contains(&two[0])));
        // The slow way: as long as any way to each task, found by going over all until nothing changes.
        let mut best = vec![0; spots.len()];
        for _ in 0..spots.len() {
            for task in (0..spots.len()).filter(|t| !spots[*t].task.done) {
                let below = graph.needs(task).iter().map(|need| best[*need]).max().unwrap_or_default();
                best[task] = below + spots[task].task.size.weight();
            }
        }
        prop_assert_eq!(route.weight, best.into_iter().max().unwrap_or_default());
    }

    #[test]
    fn a_circle_is_found_and_named_in_full(size in 1_usize..12, extra in 0_usize..6) {
        let mut tasks: Vec<Task> = (0..size).map(|n| task(n, &[(n + 1) % size])).collect();
        tasks.extend((size..size + extra).map(|n| task(n, &[n - 1])));
        tasks.reverse();
        match Graph::of(&plan_of_tasks(tasks)) {
            Err(Error::Cycle { names, .. }) => {
                prop_assert_eq!(names.len(), size + 1);
                prop_assert_eq!(&names[0], &names[size]);
            }
            other => prop_assert!(false, "{:?}", other.map(|_| ())),
        }
    }
}
