//! Owns starting runs: in order of their turn, as many as there is room for.

use super::action::{Action, Base};
use super::course::Course;
use super::lane::{Lane, Use};
use super::place::Place;
use super::standing::{Standing, Why};
use super::state::State;

impl State {
    /// How many runs there may be at once.
    fn most(&self) -> usize {
        self.options.max_parallel.max(1).min(self.room.unwrap_or(usize::MAX))
    }

    /// Starts what can be. Says whether more could, were there room.
    pub(super) fn start_due(&mut self) -> bool {
        let Some(gate) = self.last_stage_to_start().filter(|_| self.may_spend()) else { return false };
        let mut from = (0, 0);
        while let Some((rank, bundle)) = self.heads.range(from..).next().copied() {
            if self.layout.stage[self.layout.by_rank[rank]] > gate {
                break;
            }
            if self.tally.under_way >= self.most() {
                self.say_queued(gate);
                return true;
            }
            from = (rank, bundle + 1);
            if self.is_occupied(bundle) {
                continue;
            }
            let place = |rank: &usize| {
                let task = self.layout.by_rank[*rank];
                self.place(task).map(|place| (task, place))
            };
            match self.ready[&bundle].iter().find_map(place) {
                Some((task, Place::Lane(lane))) => self.begin_run(task, lane),
                Some((task, Place::New)) => self.prepare(task),
                None => {}
            }
        }
        false
    }

    /// The last stage whose tasks may start: the first that is not through, or the end of the first phase with a conflict. None
    /// when all are through.
    fn last_stage_to_start(&self) -> Option<usize> {
        let open = self.tally.first_open_stage()?;
        let conflicts = self.tally.conflicts.iter().chain(&self.tally.resolving);
        let held = conflicts.map(|task| self.layout.last_stage[*task]).min();
        Some(held.map_or(open, |held| open.min(held)))
    }

    /// Tells, once, of each task that could start but for room.
    fn say_queued(&mut self, gate: usize) {
        while let Some(rank) = self.unsaid.first().copied() {
            let task = self.layout.by_rank[rank];
            if self.layout.stage[task] > gate {
                break;
            }
            self.unsaid.remove(&rank);
            self.out.push(Action::Queue { task });
        }
    }

    /// Has a lane made for a task, which takes its place of a run from now on.
    fn prepare(&mut self, task: usize) {
        let lane = self.lanes.len();
        self.lanes.push(Lane {
            at: Use::SettingUp(task),
            tasks: vec![task],
            load: u64::from(self.work.tasks()[task].weight),
            family: self.layout.family[task],
            base: self.tips,
            unlanded: 0,
            landing: 0,
            remains: None,
            kept: false,
        });
        self.open.insert(lane);
        self.assign(task, lane);
        self.set(task, Standing::Preparing);
        self.out.push(Action::MakeLane { lane, task, from: self.tips });
        self.out.push(Action::SetUpLane { lane });
    }

    fn assign(&mut self, task: usize, lane: usize) {
        self.bound.insert(self.layout.bundle[task], lane);
        self.last_lane = lane;
        let slip = &mut self.tasks[task];
        slip.held = true;
        if let Some(former) = slip.lane.replace(lane).filter(|former| *former != lane) {
            self.touched.insert(former);
        }
    }

    fn begin_run(&mut self, task: usize, lane: usize) {
        let weight = u64::from(self.work.tasks()[task].weight);
        let tips = self.tips;
        let goes_on = self.goes_on(task, lane) && matches!(self.tasks[task].from, Some(Base::Landed(_)));
        self.assign(task, lane);
        self.change_lane(lane, |it| {
            (it.at, it.kept) = (Use::Run(task), false);
            if it.unlanded == 0 && !goes_on {
                it.base = tips;
            }
            if it.tasks.last() != Some(&task) {
                it.tasks.push(task);
                it.load += weight;
            }
        });
        self.tasks[task].attempts += 1;
        self.set(task, Standing::Starting);
        self.say_start(task, lane);
    }

    /// Whether a task was cut off in this lane and nothing else has run there since.
    fn goes_on(&self, task: usize, lane: usize) -> bool {
        self.tasks[task].cut_off && self.lanes[lane].remains == Some(task)
    }

    /// Asks for the run that is to start in a lane. What a run that came to nothing left there is taken back first, unless it was
    /// cut off and this task goes on from there.
    pub(super) fn say_start(&mut self, task: usize, lane: usize) {
        let goes_on = self.goes_on(task, lane);
        let it = &self.lanes[lane];
        let top = it.tasks.iter().rev().find(|other| **other != task && self.holds(**other, lane));
        let from = top.map_or(Base::Landed(it.base), |top| Base::Task(*top));
        if let Some(left) = it.remains.filter(|_| !goes_on) {
            self.out.push(Action::TakeBack { lane, task: left, to: from });
        }
        self.tasks[task].from = Some(from);
        let attempt = self.tasks[task].attempts;
        self.out.push(Action::StartRun { task, lane, attempt, from });
    }

    pub(super) fn lane_is_set_up(&mut self, lane: usize) {
        let Some(Use::SettingUp(task)) = self.lanes.get(lane).map(|it| it.at) else { return };
        self.turn(lane, Use::Idle);
        if self.standing(task) != Standing::Preparing {
            return;
        }
        // There may be less room by now, or no wish to go on.
        let fits = self.tally.under_way <= self.most() && self.may_spend();
        if fits && self.tasks[task].missing == 0 && !self.tasks[task].claimed {
            self.begin_run(task, lane);
        } else {
            self.wait_again(task);
        }
    }

    pub(super) fn lane_has_failed(&mut self, lane: usize) {
        let Some(Use::SettingUp(task)) = self.lanes.get(lane).map(|it| it.at) else { return };
        self.turn(lane, Use::Gone);
        self.out.push(Action::DiscardLane { lane });
        if self.standing(task) != Standing::Preparing {
            return;
        }
        match self.course {
            // It was stopped for that; another lane will do when the batch goes on.
            Course::Stopping { .. } => self.wait_again(task),
            _ => self.settle(task, Standing::Failed(Why::SetUp)),
        }
    }
}
