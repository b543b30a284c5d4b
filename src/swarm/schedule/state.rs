//! Owns what a batch has come to, event by event.

use std::collections::{BTreeMap, BTreeSet};

use super::action::{Action, Base};
use super::course::Course;
use super::event::Event;
use super::lane::{Lane, Use};
use super::layout::Layout;
use super::options::{Mode, Options};
use super::standing::Standing;
use super::tally::{Tally, Who};
use super::work::Work;

/// A batch at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct State {
    pub(super) work: Work,
    pub(super) options: Options,
    pub(super) layout: Layout,
    pub(super) tasks: Vec<Slip>,
    pub(super) lanes: Vec<Lane>,
    pub(super) landings: usize,
    /// How often something landed.
    pub(super) tips: u32,
    pub(super) course: Course,
    /// How many runs of this batch there is room for.
    pub(super) room: Option<usize>,
    pub(super) spent: u64,
    pub(super) tally: Tally,
    /// By bundle, the ranks of tasks that wait for nothing but their turn.
    pub(super) ready: BTreeMap<usize, BTreeSet<usize>>,
    /// The first of each bundle, by rank.
    pub(super) heads: BTreeSet<(usize, usize)>,
    /// Those of the ready ones that nobody was told are queued.
    pub(super) unsaid: BTreeSet<usize>,
    /// By bundle, the lane that its tasks are done in.
    pub(super) bound: BTreeMap<usize, usize>,
    /// Tasks whose conflict was resolved, which land by themselves.
    pub(super) resolved: BTreeSet<usize>,
    /// Lanes that runs can be spread over.
    pub(super) open: BTreeSet<usize>,
    /// The lane that a run started in last.
    pub(super) last_lane: usize,
    /// How many runs have brought work.
    pub(super) ends: usize,
    /// Lanes that something happened to.
    pub(super) touched: BTreeSet<usize>,
    /// What this event asks for.
    pub(super) out: Vec<Action>,
}

/// One task, as far as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Slip {
    pub(super) standing: Standing,
    /// How many runs were started in this batch.
    pub(super) attempts: u32,
    /// How many failed, over all batches.
    pub(super) failures: u32,
    /// How often in a row no agent could be started for it.
    pub(super) unstarted: u32,
    /// Another batch has it.
    pub(super) claimed: bool,
    /// No other batch may have it.
    pub(super) held: bool,
    /// Where it was run last.
    pub(super) lane: Option<usize>,
    /// On top of what its last run began.
    pub(super) from: Option<Base>,
    /// Its last run was stopped because the batch was: the next one goes on from there.
    pub(super) cut_off: bool,
    /// Which landing brought it.
    pub(super) landed: u32,
    /// When it was done, next to others.
    pub(super) ended: usize,
    /// How many of those it depends on have no result to build on yet.
    pub(super) missing: usize,
    /// On whose account it is skipped.
    pub(super) because: Option<usize>,
    /// Somebody was told to stop it, at once or not.
    pub(super) stopping: Option<bool>,
    /// Its checks failed and run again on the same work: the policy for that has acted already.
    pub(super) again: bool,
}

impl State {
    /// A batch of which nothing has happened.
    pub(crate) fn new(work: &Work, options: &Options) -> State {
        let layout = Layout::new(work, options);
        let families = layout.family.iter().max().map_or(0, |most| most + 1);
        let slip = |task: &super::work::Task| Slip {
            standing: Standing::Waiting,
            attempts: 0,
            failures: task.failures,
            unstarted: 0,
            claimed: false,
            held: false,
            lane: None,
            from: None,
            cut_off: false,
            landed: 0,
            ended: 0,
            missing: task.after.len(),
            because: None,
            stopping: None,
            again: false,
        };
        let mut state = State {
            work: work.clone(),
            options: *options,
            tasks: work.tasks().iter().map(slip).collect(),
            lanes: Vec::new(),
            landings: 0,
            tips: 0,
            course: Course::New,
            room: None,
            spent: 0,
            tally: Tally {
                busy: vec![super::tally::Busy::default(); layout.stages],
                families: vec![0; families],
                bundles: vec![0; layout.sizes.len()],
                ..Tally::default()
            },
            ready: BTreeMap::new(),
            heads: BTreeSet::new(),
            unsaid: BTreeSet::new(),
            bound: BTreeMap::new(),
            resolved: BTreeSet::new(),
            open: BTreeSet::new(),
            last_lane: 0,
            ends: 0,
            touched: BTreeSet::new(),
            out: Vec::new(),
            layout,
        };
        for task in 0..state.tasks.len() {
            state.tally.enter(state.who(task), Standing::Waiting);
            state.sort_in(task);
        }
        state
    }

    /// What the batch had come to with these events.
    pub(crate) fn fold<'a>(
        work: &Work,
        options: &Options,
        events: impl IntoIterator<Item = &'a Event>,
    ) -> State {
        let mut state = State::new(work, options);
        events.into_iter().for_each(|event| drop(state.on(event)));
        state
    }

    /// Takes an event in, and answers what is to be done, in this order. What cannot be, as the batch is, changes nothing.
    #[must_use]
    pub(crate) fn on(&mut self, event: &Event) -> Vec<Action> {
        self.take(event);
        self.advance();
        std::mem::take(&mut self.out)
    }

    /// Takes an event in that nobody acts on yet: nothing starts or lands because of it.
    pub(crate) fn foresee(&mut self, event: &Event) {
        self.take(event);
        self.out.clear();
    }

    fn take(&mut self, event: &Event) {
        match event {
            Event::Begun => self.begin(),
            Event::TakenUp { runs } => self.take_up(runs),
            Event::SetUp { lane } => self.lane_is_set_up(*lane),
            Event::SetUpFailed { lane } => self.lane_has_failed(*lane),
            Event::Started { task, attempt } => self.run_is_at_work(*task, *attempt),
            Event::Ended { task, attempt, end } => self.run_has_ended(*task, *attempt, *end),
            Event::Landed { tasks } => self.have_landed(tasks),
            Event::TakenBack { task, kept } => self.is_taken_back(*task, *kept),
            Event::ConflictCaptured { task } => self.does_not_land(*task, None),
            Event::ConflictResolved { task } => self.is_resolved(*task),
            Event::Finished { task } => self.is_finished(*task),
            Event::CheckAgain { task } => self.check_again(*task),
            Event::ConflictGivenUp { task } => self.is_given_up(*task),
            Event::CheckFailed { task } => self.does_not_land(*task, Some(super::Why::Check)),
            Event::Pause => self.pause(super::PauseReason::Asked),
            Event::Resume => self.resume(),
            Event::Abort { hard } => self.abort(super::Outcome::Aborted, *hard),
            Event::Slots { room } => self.room = *room,
            Event::Spent { total } => self.spent = *total,
            Event::BudgetSet { most } => self.options.budget = *most,
            Event::Claimed { task } => self.claim(*task, true),
            Event::Unclaimed { task } => self.claim(*task, false),
            Event::Retry { task } => self.retry(*task),
        }
    }

    /// How far a task is.
    pub(super) fn standing(&self, task: usize) -> Standing {
        self.tasks[task].standing
    }

    fn who(&self, task: usize) -> Who {
        Who {
            task,
            stage: self.layout.stage[task],
            family: self.layout.family[task],
            bundle: self.layout.bundle[task],
        }
    }

    /// Says how far a task is now; nobody else does. Everything that is counted follows.
    pub(super) fn set(&mut self, task: usize, standing: Standing) {
        let before = std::mem::replace(&mut self.tasks[task].standing, standing);
        let who = self.who(task);
        self.tally.leave(who, before);
        self.tally.enter(who, standing);
        if let Some(lane) = self.tasks[task].lane {
            let (work, landing) = (Standing::has_work, |s| matches!(s, Standing::Landing(_)));
            self.change_lane(lane, |it| {
                it.unlanded = it.unlanded + usize::from(work(standing)) - usize::from(work(before));
                it.landing = it.landing + usize::from(landing(standing)) - usize::from(landing(before));
            });
        }
        let (had, has) = (self.can_be_built_on(before), self.can_be_built_on(standing));
        if had != has {
            for next in self.work.graph().dependents(task).to_vec() {
                let missing = &mut self.tasks[next].missing;
                *missing = if has { *missing - 1 } else { *missing + 1 };
                self.sort_in(next);
            }
        }
        self.sort_in(task);
    }

    /// Whether those who depend on such a task may be able to start. Where things are done on top of each other, it remains to
    /// be seen in which lane.
    fn can_be_built_on(&self, standing: Standing) -> bool {
        let on_top = matches!(self.options.mode, Mode::Phases | Mode::OneLane);
        standing.is_there() || on_top && standing == Standing::Done
    }

    /// Puts a task among those that only wait for their turn, or takes it out.
    pub(super) fn sort_in(&mut self, task: usize) {
        let slip = &self.tasks[task];
        let (rank, bundle) = (self.layout.rank[task], self.layout.bundle[task]);
        let is_ready = slip.standing == Standing::Waiting && slip.missing == 0 && !slip.claimed;
        let ready = self.ready.entry(bundle).or_default();
        let former = ready.first().copied();
        if is_ready {
            if ready.insert(rank) {
                self.unsaid.insert(rank);
            }
        } else if ready.remove(&rank) {
            self.unsaid.remove(&rank);
        }
        let first = ready.first().copied();
        if former != first {
            if let Some(rank) = former {
                self.heads.remove(&(rank, bundle));
            }
            self.heads.extend(first.map(|rank| (rank, bundle)));
        }
    }

    fn claim(&mut self, task: usize, claimed: bool) {
        if task < self.tasks.len() {
            self.tasks[task].claimed = claimed;
            self.sort_in(task);
        }
    }

    /// The lane in which a task's run is, when that is this run.
    pub(super) fn lane_of_run(&self, task: usize, attempt: u32) -> Option<usize> {
        let slip = self.tasks.get(task)?;
        let is_it = slip.attempts == attempt
            && matches!(slip.standing, Standing::Starting | Standing::Running)
            && slip.lane.is_some_and(|lane| self.lanes[lane].at == Use::Run(task));
        if is_it { slip.lane } else { None }
    }

    /// Says that other batches may have a task, if they could not before.
    pub(super) fn release(&mut self, task: usize) {
        if std::mem::take(&mut self.tasks[task].held) {
            self.out.push(Action::Release { task });
        }
    }
}
