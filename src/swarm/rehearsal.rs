//! Owns playing a plan through in memory: which lane each task would be done in, and how long all of it would take.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use super::Plan;
use super::batch::{Batch, all, phases_of};
use super::graph::Graph;
use super::run::runs_of;
use super::schedule::{Action, End, Event, Options, State, Task, Work};
use crate::lane::Project;

/// How many batches of the past are looked at, the last ones.
const BATCHES: usize = 20;

/// How many runs make a pace.
const RUNS: usize = 3;

/// What would come of a plan if each run went well and took as long as its task's size says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rehearsal {
    /// By task, its lane, from 1; none for one that is done.
    pub(crate) lanes: Vec<Option<usize>>,
    /// How long it takes, where a small task takes 1.
    pub(crate) span: usize,
}

/// How long runs took in the past.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pace {
    /// What a small task takes: the median of all, each divided by the size of its task.
    pub(crate) small: Duration,
    /// How many runs that is known from.
    pub(crate) runs: usize,
}

impl Rehearsal {
    /// Plays it, with the decisions of the scheduler itself. `overlaps` are groups of tasks about the same files. None for what
    /// is no plan that could be scheduled.
    pub(crate) fn of(
        plan: &Plan,
        graph: &Graph,
        overlaps: Vec<Vec<usize>>,
        options: &Options,
    ) -> Option<Rehearsal> {
        let tasks = plan.spots().enumerate().map(|(at, spot)| Task {
            after: graph.needs(at).to_vec(),
            weight: u32::try_from(spot.task.size.weight()).unwrap_or(u32::MAX),
            agent: plan.agent_of(spot).map(ToOwned::to_owned),
            failures: 0,
            done: spot.task.done,
        });
        let work = Work::new(tasks.collect(), phases_of(plan), overlaps).ok()?;
        Some(play(&work, options))
    }
}

fn play(work: &Work, options: &Options) -> Rehearsal {
    let mut state = State::new(work, options);
    let mut lanes = vec![None; work.tasks().len()];
    let mut due = VecDeque::from([Event::Begun]);
    // The runs by when they end.
    let mut running: BinaryHeap<Reverse<(usize, usize, u32)>> = BinaryHeap::new();
    let mut now = 0;
    loop {
        while let Some(event) = due.pop_front() {
            for action in state.on(&event) {
                match action {
                    Action::SetUpLane { lane } => due.push_back(Event::SetUp { lane }),
                    Action::StartRun { task, lane, attempt, .. } => {
                        lanes[task] = Some(lane + 1);
                        let weight = usize::try_from(work.tasks()[task].weight).unwrap_or(1);
                        running.push(Reverse((now + weight, task, attempt)));
                        due.push_back(Event::Started { task, attempt });
                    }
                    Action::Land { tasks, .. } => due.push_back(Event::Landed { tasks }),
                    _ => {}
                }
            }
        }
        let Some(Reverse((end, task, attempt))) = running.pop() else {
            return Rehearsal { lanes, span: now };
        };
        now = end;
        due.push_back(Event::Ended { task, attempt, end: End::Done });
    }
}

impl Pace {
    /// That of the repository's last batches. None where too little was run.
    pub(crate) fn of(project: &Project) -> Option<Pace> {
        let mut took = Vec::new();
        for record in all(project, true).into_iter().rev().take(BATCHES) {
            let Ok(batch) = Batch::load(project, &record.id) else { continue };
            let Ok(lines) = batch.log(project) else { continue };
            for run in runs_of(&batch, &lines) {
                let well = run.end.as_ref().is_some_and(|end| end.well);
                let task = batch.tasks.iter().position(|task| task.name == run.task);
                let weight = task.map(|task| batch.work.tasks()[task].weight.max(1));
                if let (true, Some(ended), Some(weight)) = (well, run.ended, weight) {
                    took.push(ended.since(run.began) / weight);
                }
            }
        }
        took.sort_unstable();
        (took.len() >= RUNS).then(|| Pace { small: took[took.len() / 2], runs: took.len() })
    }

    /// How long so many small tasks take, one after the other.
    pub(crate) fn of_small(&self, count: usize) -> Duration {
        self.small.saturating_mul(u32::try_from(count).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::schedule::{Mode, Spread};

    fn work(tasks: &[(&[usize], u32)], overlaps: Vec<Vec<usize>>) -> Work {
        let task = |(after, weight): &(&[usize], u32)| Task {
            after: after.to_vec(),
            weight: *weight,
            ..Task::default()
        };
        Work::new(tasks.iter().map(task).collect(), Vec::new(), overlaps).unwrap()
    }

    #[test]
    fn it_takes_as_long_as_the_lanes_let_it() {
        // Two ways of 1 + 4, and one of 2.
        let diamond = work(&[(&[], 1), (&[0], 4), (&[0], 4), (&[], 2)], Vec::new());
        let with = |max_parallel| play(&diamond, &Options { max_parallel, ..Options::default() }).span;
        assert_eq!((with(1), with(2), with(3)), (11, 6, 5));
    }

    #[test]
    fn who_shares_files_shares_a_lane_one_after_the_other() {
        let plan = work(&[(&[], 2), (&[], 2), (&[], 2)], vec![vec![0, 2]]);
        let played = play(&plan, &Options { max_parallel: 3, ..Options::default() });
        assert_eq!(played.span, 4);
        assert_eq!(played.lanes[0], played.lanes[2]);
        assert_ne!(played.lanes[0], played.lanes[1]);
    }

    #[test]
    fn every_mode_comes_to_its_end() {
        let plan = work(&[(&[], 1), (&[0], 2), (&[0], 4), (&[1, 2], 1)], Vec::new());
        for mode in [Mode::Continuous, Mode::Waves, Mode::Phases, Mode::OneLane] {
            for spread in [Spread::AffinityFirst, Spread::RoundRobin, Spread::LoadBalanced] {
                let played = play(&plan, &Options { mode, spread, max_parallel: 2, ..Options::default() });
                assert!(played.lanes.iter().all(Option::is_some), "{mode:?} {spread:?}: {played:?}");
                // The longest way, or everything one after the other.
                let span = if matches!(mode, Mode::OneLane) { 8..=8 } else { 6..=8 };
                assert!(span.contains(&played.span), "{mode:?} {spread:?}: {played:?}");
            }
        }
    }

    #[test]
    fn what_is_done_takes_no_time_and_no_lane() {
        let tasks = [(true, vec![]), (false, vec![0])];
        let tasks = tasks.map(|(done, after)| Task { done, after, weight: 4, ..Task::default() });
        let plan = Work::new(tasks.to_vec(), Vec::new(), Vec::new()).unwrap();
        let played = play(&plan, &Options { max_parallel: 1, ..Options::default() });
        assert_eq!(played, Rehearsal { lanes: vec![None, Some(1)], span: 4 });
    }
}
