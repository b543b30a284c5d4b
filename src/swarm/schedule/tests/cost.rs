//! Owns what scheduling costs: a plan of 1,000 tasks, from its first event to its last. `benches/schedule.sh` prints it.

use std::collections::VecDeque;
use std::io::Write;
use std::time::Duration;

use super::case::{Case, Dice, Trouble};
use crate::swarm::schedule::{Action, End, Event, Mode, Options, Phase, Spread, State, Task, Work};

const TASKS: usize = 1_000;

/// The bound that counts is that of an optimised build; the other only says that nothing grows without measure.
const MOST: Duration = Duration::from_millis(if cfg!(debug_assertions) { 1_500 } else { 50 });

/// The processor time that this thread has used.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}

/// Adds a line to what the bench shows.
fn report(line: &str) {
    if let Some(path) = std::env::var_os("PROQ_BENCH_REPORT") {
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        writeln!(file, "{line}").unwrap();
    }
}

/// Plays a batch in which all goes well, in the order in which things were begun. How many events that takes.
fn play(tasks: Vec<Task>, phases: Vec<Phase>, overlaps: Vec<Vec<usize>>, options: &Options) -> usize {
    let work = Work::new(tasks, phases, overlaps).unwrap();
    let mut state = State::new(&work, options);
    let mut next = VecDeque::from([Event::Begun]);
    let mut events = 0;
    while let Some(event) = next.pop_front() {
        events += 1;
        for action in state.on(&event) {
            match action {
                Action::SetUpLane { lane } => next.push_back(Event::SetUp { lane }),
                Action::StartRun { task, attempt, .. } => {
                    next.push_back(Event::Started { task, attempt });
                    next.push_back(Event::Ended { task, attempt, end: End::Done });
                }
                Action::Land { tasks, .. } => next.push_back(Event::Landed { tasks }),
                _ => {}
            }
        }
    }
    assert!(state.outcome_if_over().is_some());
    events
}

fn measure(name: &str, work: &Work, overlaps: &[Vec<usize>], options: &Options) -> Duration {
    let rounds = if cfg!(debug_assertions) { 1 } else { 31 };
    let mut events = 0;
    let mut times: Vec<Duration> = (0..rounds)
        .map(|_| {
            let input = (work.tasks().to_vec(), work.phases().to_vec(), overlaps.to_vec());
            let before = processor_time();
            events = play(input.0, input.1, input.2, options);
            processor_time().saturating_sub(before)
        })
        .collect();
    times.sort_unstable();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let (low, median, high) = (times[0], times[rounds / 2], times[rounds - 1]);
    report(&format!(
        "{name:<50} {events:>5} events {:>8.1} ms ({:.1}-{:.1}), {rounds} rounds",
        ms(median),
        ms(low),
        ms(high)
    ));
    median
}

/// Overlaps of all kinds: none, small groups, everybody with everybody, who are then done one after the other.
#[test]
fn a_thousand_tasks_cost_little() {
    let mut dice = Dice::new(7);
    let some: Vec<Vec<usize>> = (0..200).map(|_| (0..4).map(|_| dice.below(TASKS)).collect()).collect();
    let all = vec![(0..TASKS).collect::<Vec<usize>>()];
    report(&format!("{TASKS} tasks, from the first event to the last: median (min-max) of processor time"));
    for mode in [Mode::Continuous, Mode::Waves, Mode::Phases, Mode::OneLane] {
        for spread in [Spread::AffinityFirst, Spread::LoadBalanced] {
            for (kind, edges, overlaps) in
                [("apart", 3, &Vec::new()), ("in groups", 3, &some), ("all overlap, no edges", 0, &all)]
            {
                let options = Options { mode, spread, max_parallel: 8, ..Options::default() };
                let nothing = Trouble { runs: 0, landings: 0, set_up: 0, people: 0, kills: 0 };
                let case = Case {
                    seed: 1,
                    tasks: TASKS,
                    edges,
                    groups: 0,
                    phases: 5,
                    past: false,
                    options,
                    trouble: nothing,
                };
                let name = format!("{mode:?}, {spread:?}, {kind}");
                let median = measure(&name, &case.work(), overlaps, &options);
                assert!(median <= MOST, "{name}: {median:?}");
            }
        }
    }
}
