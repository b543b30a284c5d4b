//! Owns a world in which a batch is played: what is asked for happens, sooner or later, in any order, or goes wrong; people get
//! in between, and the process that asks is killed and another one goes on.

use std::collections::BTreeMap;

use super::case::{Case, Dice, fixed};
use super::watch::Watch;
use crate::store::records::RunClass;
use crate::swarm::schedule::{Action, End, Event, PauseReason, State, Work};

/// What becomes of a task's landing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Lands,
    Conflicts,
    IsRed,
}

/// Something that will happen.
#[derive(Debug, Clone)]
enum Next {
    SetUp(usize),
    Start(usize, u32),
    End(usize, u32),
    Tell(Event),
    Resolved(usize),
}

pub(super) struct World {
    pub(super) case: Case,
    pub(super) work: Work,
    pub(super) state: State,
    pub(super) log: Vec<Event>,
    pub(super) watch: Watch,
    dice: Dice,
    /// What this process has begun and waits for.
    next: Vec<Next>,
    /// Runs that were started and of which no end was written. They live on when the process dies.
    runs: BTreeMap<(usize, u32), Run>,
    /// What was found out about each landing.
    landings: BTreeMap<(usize, usize), Verdict>,
    verdicts: BTreeMap<usize, u32>,
    resolutions: BTreeMap<usize, u32>,
    first_task: BTreeMap<usize, usize>,
    interventions: usize,
    /// Kill the process at this event.
    pub(super) kill_at: Option<usize>,
    steps: usize,
}

#[derive(Debug, Clone, Copy, Default)]
struct Run {
    stopped: bool,
}

/// How a run of a task ends, if nobody stops it.
pub(super) fn end_of(case: &Case, task: usize, attempt: u32) -> End {
    let bad = case.trouble.runs;
    match fixed(case.seed, 1, task, attempt) {
        n if n >= bad => End::Done,
        _ => match fixed(case.seed, 2, task, attempt) {
            0..15 => End::NoChange,
            15..30 => End::Already,
            30..55 => End::Failed(RunClass::Crashed),
            55..65 => End::Failed(RunClass::RateLimited),
            65..75 => End::Failed(RunClass::Stalled),
            75..85 => End::Failed(RunClass::Budget),
            85..90 => End::Failed(RunClass::Stopped),
            _ => End::Failed(RunClass::Failed),
        },
    }
}

/// What becomes of a task's landing, when it is tried for this time.
pub(super) fn verdict_of(case: &Case, task: usize, time: u32) -> Verdict {
    match fixed(case.seed, 3, task, time) {
        n if n >= case.trouble.landings => Verdict::Lands,
        n if n % 3 == 0 => Verdict::IsRed,
        _ => Verdict::Conflicts,
    }
}

/// Whether a conflict is resolved, when somebody is sent for this time.
pub(super) fn is_resolved(case: &Case, task: usize, time: u32) -> bool {
    fixed(case.seed, 4, task, time) < 60
}

impl World {
    pub(super) fn new(case: &Case) -> World {
        let work = case.work();
        World {
            state: State::new(&work, &case.options),
            watch: Watch::new(&work, case),
            work,
            log: Vec::new(),
            dice: Dice::new(case.seed ^ 0xD1CE),
            next: Vec::new(),
            runs: BTreeMap::new(),
            landings: BTreeMap::new(),
            verdicts: BTreeMap::new(),
            resolutions: BTreeMap::new(),
            first_task: BTreeMap::new(),
            interventions: 0,
            kill_at: None,
            steps: 0,
            case: case.clone(),
        }
    }

    /// Plays the batch to its end.
    pub(super) fn play(mut self) -> World {
        self.tell(&Event::Begun);
        let most = 2_000 + 60 * self.work.tasks().len();
        loop {
            self.steps += 1;
            assert!(self.steps < most, "it does not come to an end");
            if self.dice.hits(self.case.trouble.people) && self.interventions < 40 {
                self.interventions += 1;
                self.intervene();
            } else if !self.next.is_empty() {
                let at = self.dice.below(self.next.len());
                let next = self.next.swap_remove(at);
                self.happen(next);
            } else if self.state.outcome_if_over().is_some() {
                break;
            } else if let Some(why) = self.state.pause_reason() {
                if why == PauseReason::Budget {
                    self.tell(&Event::BudgetSet { most: None });
                }
                self.tell(&Event::Resume);
            } else {
                self.let_go();
            }
        }
        assert!(self.runs.is_empty(), "runs that nobody knows of");
        self.watch.over(&self.state);
        self
    }

    /// Nothing is on its way, and the batch is not over: others have to be in the way of it.
    fn let_go(&mut self) {
        let claimed: Vec<usize> = self.watch.claimed.iter().copied().collect();
        assert!(!claimed.is_empty() || self.watch.room == Some(0), "it stands still");
        for task in claimed {
            self.tell(&Event::Unclaimed { task });
        }
        self.tell(&Event::Slots { room: None });
    }

    /// Writes an event down and does what is asked for then, unless the process is killed meanwhile.
    pub(super) fn tell(&mut self, event: &Event) {
        self.watch.before(event, &self.state);
        self.log.push(event.clone());
        let actions = self.state.on(event);
        self.watch.after(event, &self.state);
        for action in &actions {
            self.watch.is_asked(action);
        }
        let killed = self.kill_at == Some(self.log.len()) || self.dice.hits(self.case.trouble.kills);
        let most = if killed { self.dice.below(actions.len() + 1) } else { actions.len() };
        for action in &actions[..most] {
            self.watch.action(action);
            self.carry_out(action);
        }
        if killed {
            self.take_up();
        }
    }

    /// The process was killed. Another one reads what was written, and looks at what runs.
    fn take_up(&mut self) {
        let folded = State::fold(&self.work, &self.case.options, &self.log);
        assert!(folded == self.state, "folding the events makes another state");
        self.state = folded;
        self.next.clear();
        let mut runs: Vec<(usize, u32)> = self.runs.keys().copied().collect();
        let told: Vec<_> = runs.iter().copied().filter(|run| self.watch.told_started.contains(run)).collect();
        if self.case.trouble.people > 0 && self.dice.hits(10) && !told.is_empty() {
            // One that was at work, and is nowhere to be found.
            let lost = told[self.dice.below(told.len())];
            runs.retain(|run| *run != lost);
            self.runs.remove(&lost);
        }
        for (task, attempt) in &runs {
            self.next.push(Next::End(*task, *attempt));
        }
        self.tell(&Event::TakenUp { runs });
    }

    fn happen(&mut self, next: Next) {
        let event = match next {
            Next::SetUp(lane) => {
                let task = self.first_task[&lane];
                if fixed(self.case.seed, 5, task, 0) < self.case.trouble.set_up {
                    Event::SetUpFailed { lane }
                } else {
                    Event::SetUp { lane }
                }
            }
            Next::Start(task, attempt) => {
                self.next.push(Next::End(task, attempt));
                Event::Started { task, attempt }
            }
            Next::End(task, attempt) => {
                let Some(run) = self.runs.remove(&(task, attempt)) else { return };
                let stopped = run.stopped && self.dice.hits(80);
                let end =
                    if stopped { End::Failed(RunClass::Stopped) } else { end_of(&self.case, task, attempt) };
                Event::Ended { task, attempt, end }
            }
            Next::Tell(event) => event,
            Next::Resolved(task) => {
                let time = self.resolutions.entry(task).or_default();
                *time += 1;
                if is_resolved(&self.case, task, *time) {
                    Event::ConflictResolved { task }
                } else {
                    Event::ConflictGivenUp { task }
                }
            }
        };
        self.tell(&event);
    }

    fn carry_out(&mut self, action: &Action) {
        match action {
            Action::MakeLane { lane, task, .. } => {
                self.first_task.insert(*lane, *task);
            }
            Action::SetUpLane { lane } => self.next.push(Next::SetUp(*lane)),
            Action::StartRun { task, attempt, .. } => {
                self.runs.insert((*task, *attempt), Run::default());
                // Sometimes the end is the first that is heard of it.
                let next = if self.dice.hits(90) { Next::Start } else { Next::End };
                self.next.push(next(*task, *attempt));
            }
            Action::StopRun { task, attempt, .. } => {
                if let Some(run) = self.runs.get_mut(&(*task, *attempt)) {
                    run.stopped = true;
                }
            }
            Action::Land { landing, tasks } => self.land(*landing, tasks),
            Action::Resolve { task } => self.next.push(Next::Resolved(*task)),
            Action::StopResolve { task, .. } => {
                let own = |next: &Next| matches!(next, Next::Resolved(other) if other == task);
                self.next.retain(|next| !own(next));
                self.next.push(Next::Tell(Event::ConflictGivenUp { task: *task }));
            }
            _ => {}
        }
    }

    /// Looks at each of the tasks, leaves out who depends on one that does not land, and lets the others land by one move.
    fn land(&mut self, landing: usize, tasks: &[usize]) {
        let mut bad = Vec::new();
        let mut landed = Vec::new();
        for task in tasks {
            if self.work.tasks()[*task].after.iter().any(|before| bad.contains(before)) {
                bad.push(*task);
                continue;
            }
            let (case, verdicts) = (&self.case, &mut self.verdicts);
            let verdict = *self.landings.entry((landing, *task)).or_insert_with(|| {
                let time = verdicts.entry(*task).or_default();
                *time += 1;
                verdict_of(case, *task, *time)
            });
            match verdict {
                Verdict::Lands => landed.push(*task),
                Verdict::Conflicts => self.next.push(Next::Tell(Event::ConflictCaptured { task: *task })),
                Verdict::IsRed => self.next.push(Next::Tell(Event::CheckFailed { task: *task })),
            }
            if verdict != Verdict::Lands {
                bad.push(*task);
            }
        }
        if !landed.is_empty() {
            self.next.push(Next::Tell(Event::Landed { tasks: landed }));
        }
    }

    /// Somebody gets in between.
    fn intervene(&mut self) {
        let task = self.dice.below(self.work.tasks().len());
        let total = self.watch.spent + self.dice.below(60) as u64;
        let event = match self.dice.below(15) {
            0 => Event::Pause,
            1 | 2 => Event::Resume,
            3 => Event::Abort { hard: false },
            4 => Event::Abort { hard: true },
            5 => Event::Slots { room: Some(self.dice.below(4)) },
            6 => Event::Slots { room: None },
            7 => Event::Spent { total },
            8 => Event::BudgetSet { most: self.dice.hits(50).then_some(total + 50) },
            9 => Event::Claimed { task },
            10 => Event::Unclaimed { task },
            11 | 12 => Event::Retry { task: self.watch.some_failed(task) },
            13 => Event::CheckAgain { task: self.watch.some_failed(task) },
            _ => Event::ConflictResolved { task: self.watch.some_failed(task) },
        };
        self.tell(&event);
    }
}
