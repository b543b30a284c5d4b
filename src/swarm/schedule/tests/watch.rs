//! Owns a simple model beside the scheduler: what may be asked for at a moment, and what has to have become of each task.

use std::collections::{BTreeMap, BTreeSet};

use super::case::Case;
use super::stages::{everything_below, stages};
use crate::store::records::RunClass;
use crate::swarm::schedule::{
    Action, Base, End, Event, Fate, Left, MergePolicy, Mode, Options, Outcome, State, TaskPolicy, Why, Work,
};

/// What a lane holds.
#[derive(Debug, Default)]
struct Lane {
    set_up: bool,
    gone: bool,
    /// After how many landings its lowest work began.
    base: u32,
    /// Work from there up.
    works: Vec<usize>,
    /// Work of a run that came to nothing, on top.
    remains: Option<usize>,
    /// Whether the task that left it was cut off: it may go on from there.
    cut_off: bool,
    run: Option<usize>,
}

pub(super) struct Watch {
    pub(super) below: Vec<BTreeSet<usize>>,
    pub(super) claimed: BTreeSet<usize>,
    pub(super) room: Option<usize>,
    pub(super) spent: u64,
    pub(super) told_started: BTreeSet<(usize, u32)>,
    work: Work,
    options: Options,
    stages: Vec<(usize, usize)>,
    lanes: BTreeMap<usize, Lane>,
    at_work: BTreeMap<usize, (u32, usize)>,
    begun: BTreeSet<(usize, u32)>,
    stopped: BTreeSet<usize>,
    landed: BTreeMap<usize, u32>,
    tips: u32,
    conflicts: BTreeSet<usize>,
    /// Those that had a conflict or were tried again by a person: later stages may have begun.
    late: BTreeSet<usize>,
    /// Those that a person took up again once they had come to an end: later phases may have begun, too.
    reopened: BTreeSet<usize>,
    done: BTreeSet<usize>,
    /// Those whose checks run again on the same work.
    again: BTreeSet<usize>,
    fates: BTreeMap<usize, Fate>,
    failures: Vec<u32>,
    ran: BTreeSet<usize>,
    held: BTreeSet<usize>,
    paused: bool,
    aborted: bool,
    stopped_by_policy: bool,
    /// All that is at work is stopped, by a person or a policy.
    stops_all: bool,
    landings: BTreeSet<usize>,
}

impl Watch {
    pub(super) fn new(work: &Work, case: &Case) -> Watch {
        let tasks = work.tasks();
        let options = case.options;
        let fate = |task: usize| match &tasks[task] {
            it if it.done => Some((task, Fate::Already)),
            it if it.failures >= options.max_attempts => Some((task, Fate::SetAside)),
            _ => None,
        };
        Watch {
            below: everything_below(work),
            claimed: BTreeSet::new(),
            room: None,
            spent: 0,
            told_started: BTreeSet::new(),
            stages: stages(work, options.mode),
            lanes: BTreeMap::new(),
            at_work: BTreeMap::new(),
            begun: BTreeSet::new(),
            stopped: BTreeSet::new(),
            landed: BTreeMap::new(),
            tips: 0,
            conflicts: BTreeSet::new(),
            late: BTreeSet::new(),
            reopened: BTreeSet::new(),
            done: BTreeSet::new(),
            again: BTreeSet::new(),
            fates: (0..tasks.len()).filter_map(fate).collect(),
            failures: tasks.iter().map(|t| t.failures).collect(),
            ran: BTreeSet::new(),
            held: BTreeSet::new(),
            paused: false,
            aborted: false,
            stopped_by_policy: false,
            stops_all: false,
            landings: BTreeSet::new(),
            work: work.clone(),
            options,
        }
    }

    /// A task that has no result, from `near` on; else `near`.
    pub(super) fn some_failed(&self, near: usize) -> usize {
        let bad = |task: &usize| self.fates.get(task).is_some_and(|fate| is_in_the_way(*fate));
        (near..self.work.tasks().len()).chain(0..near).find(bad).unwrap_or(near)
    }

    /// Takes in what is about to be told.
    pub(super) fn before(&mut self, event: &Event, state: &State) {
        self.note_late(event);
        let over = state.outcome_if_over().is_some();
        match event {
            Event::Pause if !over => self.paused = true,
            Event::Resume => {
                (self.paused, self.aborted, self.stopped_by_policy) = (false, false, false);
                self.stops_all = false;
            }
            Event::Abort { .. } if !over => (self.aborted, self.stops_all) = (true, true),
            Event::Slots { room } => self.room = *room,
            Event::Spent { total } => self.spent = *total,
            Event::BudgetSet { most } => self.options.budget = *most,
            Event::Claimed { task } => drop(self.claimed.insert(*task)),
            Event::Unclaimed { task } => drop(self.claimed.remove(task)),
            Event::SetUp { lane } => self.is_set_up(*lane),
            Event::SetUpFailed { lane } => self.set_up_failed(*lane),
            Event::Started { task, attempt } => drop(self.told_started.insert((*task, *attempt))),
            Event::Ended { task, end, .. } => self.ended(*task, *end),
            Event::Landed { tasks } => self.has_landed(tasks),
            Event::ConflictCaptured { task } if self.options.resolve => {
                self.again.remove(task);
                self.conflicts.insert(*task);
            }
            Event::ConflictCaptured { task } => {
                self.again.remove(task);
                self.cannot_land(*task, Why::Conflict);
            }
            Event::CheckFailed { task } => self.cannot_land(*task, Why::Check),
            Event::ConflictResolved { task } => {
                let given_up = matches!(self.fates.get(task), Some(Fate::Failed(Why::Conflict | Why::Check)));
                if self.conflicts.remove(task) || given_up {
                    self.fates.remove(task);
                    self.stopped.remove(task);
                    self.done.insert(*task);
                }
            }
            Event::CheckAgain { task } => {
                if self.fates.get(task) == Some(&Fate::Failed(Why::Check)) {
                    self.fates.remove(task);
                    self.done.insert(*task);
                    self.again.insert(*task);
                }
            }
            Event::ConflictGivenUp { task } => {
                if self.conflicts.contains(task) && !self.stopped.remove(task) {
                    self.cannot_land(*task, Why::Conflict);
                }
            }
            Event::Retry { task } => self.retried(*task),
            Event::TakenUp { runs } => self.taken_up(runs),
            Event::Begun
            | Event::Pause
            | Event::Abort { .. }
            | Event::TakenBack { .. }
            | Event::Finished { .. } => {}
        }
    }

    /// Notes whose stages and phases later ones need not have waited for.
    fn note_late(&mut self, event: &Event) {
        if let Event::ConflictCaptured { task } | Event::Retry { task } = event {
            self.late.insert(*task);
            self.late.extend((0..self.below.len()).filter(|other| self.below[*other].contains(task)));
        }
        if let Event::Retry { task } | Event::CheckAgain { task } | Event::ConflictResolved { task } = event
            && self.fates.contains_key(task)
        {
            self.reopened.insert(*task);
            self.reopened.extend((0..self.below.len()).filter(|other| self.below[*other].contains(task)));
        }
    }

    /// Looks at what it made of it.
    pub(super) fn after(&mut self, event: &Event, state: &State) {
        if let Event::Landed { tasks } = event {
            assert!(tasks.iter().all(|task| state.fate(*task) == Some(Fate::Landed)));
        }
        self.paused &= state.outcome_if_over().is_none();
        if state.pause_reason().is_some() && self.work.tasks().len() <= 40 {
            self.skips_are_exact(state);
        }
    }

    fn is_set_up(&mut self, lane: usize) {
        let it = self.lanes.get_mut(&lane).unwrap();
        if !std::mem::replace(&mut it.set_up, true) {
            it.works.clear();
        }
    }

    fn set_up_failed(&mut self, lane: usize) {
        let it = self.lanes.get_mut(&lane).unwrap();
        if !it.set_up && !std::mem::replace(&mut it.gone, true) {
            let task = it.works.pop().unwrap();
            // One that was stopped over it can be begun another time.
            if !self.stops_all {
                self.fails(task, Fate::Failed(Why::SetUp));
            }
        }
    }

    fn ended(&mut self, task: usize, end: End) {
        let (_, lane) = self.at_work.remove(&task).expect("an end without a run");
        let it = self.lanes.get_mut(&lane).unwrap();
        it.run = None;
        let stopped = self.stopped.remove(&task);
        match end {
            End::Done => {
                it.works.push(task);
                self.done.insert(task);
            }
            End::NoChange => drop(self.fates.insert(task, Fate::NoChange)),
            End::Already => drop(self.fates.insert(task, Fate::Already)),
            End::NotStarted => unreachable!("every run of a trial begins"),
            End::Failed(class) => {
                it.cut_off = stopped && matches!(class, RunClass::Stopped | RunClass::Interrupted);
                it.remains = Some(task);
                if stopped && matches!(class, RunClass::Stopped | RunClass::Interrupted) {
                    return;
                }
                self.failures[task] += u32::from(class != RunClass::Stopped);
                if self.failures[task] >= self.options.max_attempts {
                    self.fails(task, Fate::SetAside);
                } else if matches!(class, RunClass::Budget | RunClass::Stopped) {
                    self.fails(task, Fate::Failed(Why::Run(class)));
                }
            }
        }
    }

    fn fails(&mut self, task: usize, fate: Fate) {
        self.fates.insert(task, fate);
        self.stopped_by_policy |= self.options.on_failure != TaskPolicy::SkipDependents;
        self.stops_all |= self.options.on_failure == TaskPolicy::StopAll;
    }

    fn cannot_land(&mut self, task: usize, why: Why) {
        self.conflicts.remove(&task);
        self.done.remove(&task);
        self.fates.insert(task, Fate::Failed(why));
        if self.again.remove(&task) {
            return;
        }
        self.stopped_by_policy |= self.options.on_merge_failure == MergePolicy::Abort;
        self.stops_all |= self.options.on_merge_failure == MergePolicy::Abort;
    }

    fn has_landed(&mut self, tasks: &[usize]) {
        self.tips += 1;
        for task in tasks {
            self.again.remove(task);
            assert!(self.done.remove(task), "task {task} lands and was not to");
            self.landed.insert(*task, self.tips);
            self.fates.insert(*task, Fate::Landed);
            let missing =
                self.work.tasks()[*task].after.iter().find(|before| !self.is_there(**before)).copied();
            // What lands by the same move counts as below.
            assert!(missing.is_none_or(|before| tasks.contains(&before)), "{task} lands without {missing:?}");
        }
    }

    fn retried(&mut self, task: usize) {
        self.failures[task] = 0;
        if self.fates.get(&task).is_some_and(|fate| is_in_the_way(*fate)) {
            self.fates.remove(&task);
            // What stands on the work that is done anew.
            let mut next = vec![task];
            while let Some(task) = next.pop() {
                for other in 0..self.below.len() {
                    if self.work.tasks()[other].after.contains(&task) && !self.fates.contains_key(&other) {
                        self.done.remove(&other);
                        next.push(other);
                    }
                }
            }
        }
    }

    fn taken_up(&mut self, runs: &[(usize, u32)]) {
        let lost = |(task, (attempt, _)): (&usize, &(u32, usize))| {
            (!runs.contains(&(*task, *attempt)) && self.told_started.contains(&(*task, *attempt)))
                .then_some(*task)
        };
        let lost: Vec<usize> = self.at_work.iter().filter_map(lost).collect();
        for task in lost {
            self.ended(task, End::Failed(RunClass::Interrupted));
        }
    }

    fn is_there(&self, task: usize) -> bool {
        matches!(self.fates.get(&task), Some(Fate::Landed | Fate::Already))
    }

    /// Notes what is to be stopped, whether or not the process lives to do it.
    pub(super) fn is_asked(&mut self, action: &Action) {
        match action {
            Action::StopRun { task, attempt, .. }
                if self.at_work.get(task).is_some_and(|run| run.0 == *attempt) =>
            {
                self.stopped.insert(*task);
            }
            Action::StopResolve { task, .. } => drop(self.stopped.insert(*task)),
            _ => {}
        }
    }

    /// Looks at something that is about to be done.
    pub(super) fn action(&mut self, action: &Action) {
        match action {
            Action::MakeLane { lane, task, from } => {
                assert!(*from <= self.tips);
                assert!(self.lanes.get(lane).is_none_or(|it| !it.set_up), "lane {lane} is made twice");
                self.held.insert(*task);
                // Its first task stands in `works` until it is set up, to be known when that fails.
                self.lanes.insert(*lane, Lane { works: vec![*task], ..Lane::default() });
            }
            Action::StartRun { task, lane, attempt, from } => self.starts(*task, *lane, *attempt, *from),
            Action::TakeBack { lane, .. } => self.lanes.get_mut(lane).unwrap().remains = None,
            Action::Land { landing, tasks } => {
                // One that was on its way goes on.
                assert!(!self.landings.insert(*landing) || !self.aborted, "something lands after an abort");
                let together = tasks.iter().all(|t| self.stages[*t] == self.stages[tasks[0]]);
                assert!(together, "tasks of several stages land together");
                assert!(self.options.mode != Mode::Continuous || tasks.len() == 1);
            }
            Action::Resolve { .. } => assert!(!self.aborted && !self.is_spent(), "a resolution too many"),
            Action::Release { task } => drop(self.held.remove(task)),
            Action::DiscardLane { lane } => {
                if let Some(it) = self.lanes.get_mut(lane) {
                    it.gone = true;
                    let lost = it.works.iter().find(|task| it.set_up && !self.landed.contains_key(task));
                    let lost = lost.filter(|task| !matches!(self.fates.get(task), Some(Fate::Already)));
                    assert!(lost.is_none() && it.run.is_none(), "lane {lane} goes with work in it");
                }
            }
            _ => {}
        }
    }

    fn is_spent(&self) -> bool {
        self.options.budget.is_some_and(|most| self.spent >= most)
    }

    fn starts(&mut self, task: usize, lane: usize, attempt: u32, from: Base) {
        assert!(self.begun.insert((task, attempt)), "task {task} is started twice by attempt {attempt}");
        assert!(attempt == 1 || self.begun.contains(&(task, attempt - 1)), "attempt {attempt} before others");
        assert!(!self.fates.contains_key(&task) && !self.done.contains(&task), "task {task} had its end");
        assert!(!self.paused && !self.aborted && !self.is_spent(), "task {task} is started all the same");
        assert!(!self.stopped_by_policy, "task {task} is started after a failure");
        let most = self.options.max_parallel.min(self.room.unwrap_or(usize::MAX));
        assert!(self.at_work.len() < most, "{} runs at work, of {most}", self.at_work.len() + 1);
        self.is_its_turn(task);
        let it = self.lanes.get_mut(&lane).expect("a lane that was never made");
        let is_clean = it.remains.is_none_or(|left| left == task && it.cut_off);
        assert!(it.set_up && !it.gone && it.run.is_none() && is_clean, "lane {lane} is not fit: {it:?}");
        it.remains = None;
        match from {
            Base::Landed(tip) => {
                assert!(tip <= self.tips);
                // What began the lane stands there as long as it has not run.
                let kept = it.works.iter().find(|t| !self.landed.contains_key(*t) && self.done.contains(*t));
                assert_eq!(kept, None, "work in lane {lane} is passed over");
                it.works.clear();
                it.base = tip;
            }
            Base::Task(below) => {
                let at = it.works.iter().position(|t| *t == below).expect("it stands on what is not there");
                it.works.truncate(at + 1);
            }
        }
        for before in &self.work.tasks()[task].after {
            let there = match self.fates.get(before) {
                Some(Fate::Already) => true,
                Some(Fate::Landed) => self.landed[before] <= it.base || it.works.contains(before),
                _ => it.works.contains(before) && self.done.contains(before),
            };
            assert!(there, "task {task} starts from {from:?} without {before}");
        }
        it.run = Some(task);
        self.at_work.insert(task, (attempt, lane));
        self.ran.insert(task);
        self.held.insert(task);
    }

    /// Nobody whose files overlap is at work, the stages before are through but for conflicts, and no phase before has one.
    fn is_its_turn(&self, task: usize) {
        for group in self.work.overlaps().iter().filter(|group| group.contains(&task)) {
            let other = group
                .iter()
                .find(|other| self.at_work.contains_key(other) && self.stages[**other] == self.stages[task]);
            assert_eq!(other, None, "overlaps with {task} and is at work");
        }
        let waits = (0..self.stages.len()).find(|other| {
            self.stages[*other] < self.stages[task]
                && !self.fates.contains_key(other)
                && !self.late.contains(other)
                && !self.is_blocked(*other)
        });
        assert_eq!(waits, None, "task {task} starts before its stage");
        let is_before = |other: &&usize| self.stages[**other].0 < self.stages[task].0;
        let open = self.conflicts.iter().filter(is_before).find(|other| !self.reopened.contains(other));
        assert_eq!(open, None, "task {task} starts before its phase");
    }

    /// Whether a task has nothing to build on: what it depends on has no result, or has nothing to build on itself.
    fn is_blocked(&self, task: usize) -> bool {
        let mut next = vec![task];
        let mut seen = BTreeSet::new();
        while let Some(task) = next.pop() {
            for before in &self.work.tasks()[task].after {
                match self.fates.get(before) {
                    Some(fate) if is_in_the_way(*fate) => return true,
                    Some(_) => {}
                    None if self.conflicts.contains(before) => {}
                    None => next.extend(seen.insert(*before).then_some(*before)),
                }
            }
        }
        false
    }

    fn skips_are_exact(&self, state: &State) {
        for task in 0..self.below.len() {
            let own = self.fates.contains_key(&task) || self.conflicts.contains(&task);
            let skipped = state.fate(task) == Some(Fate::Skipped);
            assert_eq!(skipped, !own && self.is_blocked(task), "task {task}: {:?}", state.fate(task));
        }
    }

    /// Looks at the end.
    pub(super) fn over(&self, state: &State) {
        let outcome = state.outcome_if_over().unwrap();
        self.skips_are_exact(state);
        let mut complete = true;
        for task in 0..self.below.len() {
            let fate = state.fate(task).expect("a task without an end");
            complete &= matches!(fate, Fate::Landed | Fate::Already);
            match (self.fates.get(&task), fate) {
                (Some(own), _) => assert_eq!(*own, fate, "task {task}"),
                (None, Fate::Skipped) => {}
                (None, Fate::Left(left)) => {
                    assert!(
                        matches!(outcome, Outcome::Stopped | Outcome::Aborted),
                        "task {task} is left over"
                    );
                    let kept = self.done.contains(&task) || self.conflicts.contains(&task);
                    assert_eq!(kept, left == Left::NotLanded, "task {task}");
                    assert!(kept || self.ran.contains(&task) == (left == Left::CutOff), "task {task}");
                }
                (None, other) => panic!("task {task} came to {other:?} by nothing"),
            }
        }
        assert_eq!(complete, outcome == Outcome::Complete);
        assert!(self.at_work.is_empty());
        assert_eq!(self.held, BTreeSet::new(), "tasks are held after the end");
    }
}

/// Whether those who depend on such a task are skipped.
fn is_in_the_way(fate: Fate) -> bool {
    matches!(fate, Fate::NoChange | Fate::Failed(_) | Fate::SetAside)
}
