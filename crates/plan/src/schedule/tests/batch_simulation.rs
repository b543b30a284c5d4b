//! Simulation of a batch in which requested actions finish later, in any order, or fail. Users and other
//! batches intervene, and the scheduler process is killed and replaced by another one.

use std::collections::BTreeMap;

use fastrand::Rng;
use proq_base::money::NanoDollars;
use proq_base::run_class::RunClass;

use super::batch_case::{BatchCase, fixed_percent, percent_chance};
use super::reference_model::ReferenceModel;
use crate::schedule::action::{Action, PauseReason};
use crate::schedule::event::{ScheduleEvent, TaskRunEnd};
use crate::schedule::state::State;
use crate::schedule::workload::Workload;

/// Result of one attempt to land a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LandingVerdict {
    Lands,
    Conflicts,
    FailsChecks,
}

/// Something that the simulated process has started and that finishes later.
#[derive(Debug, Clone)]
enum PendingStep {
    FinishSetUp(usize),
    ReportStart(usize, u32),
    EndRun(usize, u32),
    Emit(ScheduleEvent),
    FinishResolution(usize),
}

pub(crate) struct BatchSimulation {
    pub case: BatchCase,
    pub workload: Workload,
    pub state: State,
    pub log: Vec<ScheduleEvent>,
    pub model: ReferenceModel,
    rng: Rng,
    /// What the simulated process has started and waits for.
    pending: Vec<PendingStep>,
    /// Started runs without a recorded end. They continue when the process is killed.
    open_runs: BTreeMap<(usize, u32), OpenRun>,
    /// Verdict of each task of a landing, by landing and task.
    landing_verdicts: BTreeMap<(usize, usize), LandingVerdict>,
    landing_attempts: BTreeMap<usize, u32>,
    resolution_attempts: BTreeMap<usize, u32>,
    first_task_by_lane: BTreeMap<usize, usize>,
    interventions: usize,
    /// Number of the event at which the process is killed.
    pub kill_at: Option<usize>,
    steps: usize,
}

#[derive(Debug, Clone, Copy, Default)]
struct OpenRun {
    is_stopped: bool,
}

/// Returns the end of a run that is not stopped.
pub(crate) fn planned_run_end(case: &BatchCase, task: usize, attempt: u32) -> TaskRunEnd {
    let failure_percent = case.failure_rates.run;
    match fixed_percent(case.seed, 1, task, attempt) {
        n if n >= failure_percent => TaskRunEnd::Done,
        _ => match fixed_percent(case.seed, 2, task, attempt) {
            0..15 => TaskRunEnd::NoChange,
            15..30 => TaskRunEnd::AlreadyDone,
            30..55 => TaskRunEnd::Failed(RunClass::Crashed),
            55..65 => TaskRunEnd::Failed(RunClass::RateLimited),
            65..75 => TaskRunEnd::Failed(RunClass::Stalled),
            75..85 => TaskRunEnd::Failed(RunClass::Budget),
            85..90 => TaskRunEnd::Failed(RunClass::Stopped),
            _ => TaskRunEnd::Failed(RunClass::Failed),
        },
    }
}

/// Returns the verdict on a task's landing at this attempt.
pub(crate) fn planned_verdict(case: &BatchCase, task: usize, occurrence: u32) -> LandingVerdict {
    match fixed_percent(case.seed, 3, task, occurrence) {
        n if n >= case.failure_rates.landing => LandingVerdict::Lands,
        n if n % 3 == 0 => LandingVerdict::FailsChecks,
        _ => LandingVerdict::Conflicts,
    }
}

/// Returns whether a conflict is resolved by the resolver's attempt of this number.
pub fn resolves_conflict(case: &BatchCase, task: usize, occurrence: u32) -> bool {
    fixed_percent(case.seed, 4, task, occurrence) < 60
}

impl BatchSimulation {
    pub fn new(case: &BatchCase) -> BatchSimulation {
        let workload = case.build_workload();
        BatchSimulation {
            state: State::new(&workload, &case.options),
            model: ReferenceModel::new(&workload, case),
            workload,
            log: Vec::new(),
            rng: Rng::with_seed(case.seed ^ 0xD1CE),
            pending: Vec::new(),
            open_runs: BTreeMap::new(),
            landing_verdicts: BTreeMap::new(),
            landing_attempts: BTreeMap::new(),
            resolution_attempts: BTreeMap::new(),
            first_task_by_lane: BTreeMap::new(),
            interventions: 0,
            kill_at: None,
            steps: 0,
            case: case.clone(),
        }
    }

    /// Runs the simulation until the batch has finished.
    pub(crate) fn run_to_end(mut self) -> BatchSimulation {
        self.process_event(&ScheduleEvent::BatchStarted);
        let max_steps = 2_000 + 60 * self.workload.tasks().len();
        loop {
            self.steps += 1;
            assert!(self.steps < max_steps, "it does not come to an end");
            if percent_chance(&mut self.rng, self.case.failure_rates.intervention) && self.interventions < 40
            {
                self.interventions += 1;
                self.intervene_at_random();
            } else if !self.pending.is_empty() {
                let index = self.rng.usize(..self.pending.len());
                let step = self.pending.swap_remove(index);
                self.carry_out_step(step);
            } else if self.state.final_outcome().is_some() {
                break;
            } else if let Some(reason) = self.state.pause_reason() {
                if reason == PauseReason::BudgetSpent {
                    self.process_event(&ScheduleEvent::BudgetSet { limit: None });
                }
                self.process_event(&ScheduleEvent::Resume);
            } else {
                self.unblock();
            }
        }
        assert!(self.open_runs.is_empty(), "runs that nobody knows of");
        self.model.check_final_state(&self.state);
        self
    }

    /// Unblocks a batch without pending steps that has not finished. Only claims of other batches or missing
    /// capacity may block it.
    fn unblock(&mut self) {
        let claimed: Vec<usize> = self.model.claimed_elsewhere.iter().copied().collect();
        assert!(!claimed.is_empty() || self.model.capacity == Some(0), "it stands still");
        for task in claimed {
            self.process_event(&ScheduleEvent::ClaimEnded { task });
        }
        self.process_event(&ScheduleEvent::CapacityChanged { capacity: None });
    }

    /// Logs an event, applies it and carries out the requested actions. A killed process carries out only
    /// some of them.
    pub fn process_event(&mut self, event: &ScheduleEvent) {
        self.model.before_event(event, &self.state);
        self.log.push(event.clone());
        let actions = self.state.handle(event);
        self.model.after_event(event, &self.state);
        for action in &actions {
            self.model.note_stop_request(action);
        }
        let killed = self.kill_at == Some(self.log.len())
            || percent_chance(&mut self.rng, self.case.failure_rates.kill);
        let executed_count = if killed { self.rng.usize(..=actions.len()) } else { actions.len() };
        for action in &actions[..executed_count] {
            self.model.check_action(action);
            self.execute_action(action);
        }
        if killed {
            self.restart_process();
        }
    }

    /// Replaces a killed process by another one, which reads the log and finds the runs that still exist.
    fn restart_process(&mut self) {
        let folded = State::replay_events(&self.workload, &self.case.options, &self.log);
        assert!(folded == self.state, "folding the events makes another state");
        self.state = folded;
        self.pending.clear();
        let mut runs: Vec<(usize, u32)> = self.open_runs.keys().copied().collect();
        let reported: Vec<_> =
            runs.iter().copied().filter(|run| self.model.reported_starts.contains(run)).collect();
        if self.case.failure_rates.intervention > 0
            && percent_chance(&mut self.rng, 10)
            && !reported.is_empty()
        {
            // A run that was reported as started and cannot be found.
            let lost = reported[self.rng.usize(..reported.len())];
            runs.retain(|run| *run != lost);
            self.open_runs.remove(&lost);
        }
        for (task, attempt) in &runs {
            self.pending.push(PendingStep::EndRun(*task, *attempt));
        }
        self.process_event(&ScheduleEvent::BatchTakenOver { runs });
    }

    fn carry_out_step(&mut self, step: PendingStep) {
        let event = match step {
            PendingStep::FinishSetUp(lane) => {
                let task = self.first_task_by_lane[&lane];
                if fixed_percent(self.case.seed, 5, task, 0) < self.case.failure_rates.set_up {
                    ScheduleEvent::LaneSetUpFailed { lane }
                } else {
                    ScheduleEvent::LaneSetUp { lane }
                }
            }
            PendingStep::ReportStart(task, attempt) => {
                self.pending.push(PendingStep::EndRun(task, attempt));
                ScheduleEvent::RunStarted { task, attempt }
            }
            PendingStep::EndRun(task, attempt) => {
                let Some(run) = self.open_runs.remove(&(task, attempt)) else { return };
                let was_stopped = run.is_stopped && percent_chance(&mut self.rng, 80);
                let end = if was_stopped {
                    TaskRunEnd::Failed(RunClass::Stopped)
                } else {
                    planned_run_end(&self.case, task, attempt)
                };
                ScheduleEvent::RunEnded { task, attempt, end }
            }
            PendingStep::Emit(event) => event,
            PendingStep::FinishResolution(task) => {
                let attempt = self.resolution_attempts.entry(task).or_default();
                *attempt += 1;
                if resolves_conflict(&self.case, task, *attempt) {
                    ScheduleEvent::ConflictResolved { task }
                } else {
                    ScheduleEvent::ConflictGivenUp { task }
                }
            }
        };
        self.process_event(&event);
    }

    fn execute_action(&mut self, action: &Action) {
        match action {
            Action::CreateLane { lane, task, .. } => {
                self.first_task_by_lane.insert(*lane, *task);
            }
            Action::SetUpLane { lane } => self.pending.push(PendingStep::FinishSetUp(*lane)),
            Action::StartRun { task, attempt, .. } => {
                self.open_runs.insert((*task, *attempt), OpenRun::default());
                // For some runs, the end is the first event.
                let new_step = if percent_chance(&mut self.rng, 90) {
                    PendingStep::ReportStart
                } else {
                    PendingStep::EndRun
                };
                self.pending.push(new_step(*task, *attempt));
            }
            Action::StopRun { task, attempt, .. } => {
                if let Some(run) = self.open_runs.get_mut(&(*task, *attempt)) {
                    run.is_stopped = true;
                }
            }
            Action::Land { landing, tasks } => self.land_tasks(*landing, tasks),
            Action::StartResolution { task } => self.pending.push(PendingStep::FinishResolution(*task)),
            Action::StopResolution { task, .. } => {
                let is_same_task = |step: &PendingStep| matches!(step, PendingStep::FinishResolution(other) if other == task);
                self.pending.retain(|step| !is_same_task(step));
                self.pending.push(PendingStep::Emit(ScheduleEvent::ConflictGivenUp { task: *task }));
            }
            _ => {}
        }
    }

    /// Decides each task's landing, leaves out tasks that depend on one that does not land, and lands the
    /// others in one branch update.
    fn land_tasks(&mut self, landing: usize, tasks: &[usize]) {
        let mut not_landed = Vec::new();
        let mut landed = Vec::new();
        for task in tasks {
            if self.workload.tasks()[*task]
                .depends_on
                .iter()
                .any(|dependency| not_landed.contains(dependency))
            {
                not_landed.push(*task);
                continue;
            }
            let (case, landing_attempts) = (&self.case, &mut self.landing_attempts);
            let verdict = *self.landing_verdicts.entry((landing, *task)).or_insert_with(|| {
                let attempt = landing_attempts.entry(*task).or_default();
                *attempt += 1;
                planned_verdict(case, *task, *attempt)
            });
            match verdict {
                LandingVerdict::Lands => landed.push(*task),
                LandingVerdict::Conflicts => {
                    self.pending.push(PendingStep::Emit(ScheduleEvent::ConflictCaptured { task: *task }));
                }
                LandingVerdict::FailsChecks => {
                    self.pending.push(PendingStep::Emit(ScheduleEvent::CheckFailed { task: *task }));
                }
            }
            if verdict != LandingVerdict::Lands {
                not_landed.push(*task);
            }
        }
        if !landed.is_empty() {
            self.pending.push(PendingStep::Emit(ScheduleEvent::Landed { tasks: landed }));
        }
    }

    /// Applies a random event from a user, another batch or the budget.
    fn intervene_at_random(&mut self) {
        let task = self.rng.usize(..self.workload.tasks().len());
        let total = self.model.spent.nanos() + self.rng.u64(..60);
        let event = match self.rng.usize(..15) {
            0 => ScheduleEvent::Pause,
            1 | 2 => ScheduleEvent::Resume,
            3 => ScheduleEvent::Abort { hard: false },
            4 => ScheduleEvent::Abort { hard: true },
            5 => ScheduleEvent::CapacityChanged { capacity: Some(self.rng.usize(..4)) },
            6 => ScheduleEvent::CapacityChanged { capacity: None },
            7 => ScheduleEvent::CostReported { total: NanoDollars::new(total) },
            8 => ScheduleEvent::BudgetSet {
                limit: percent_chance(&mut self.rng, 50).then_some(NanoDollars::new(total + 50)),
            },
            9 => ScheduleEvent::ClaimedElsewhere { task },
            10 => ScheduleEvent::ClaimEnded { task },
            11 | 12 => ScheduleEvent::Retry { task: self.model.next_failed_task(task) },
            13 => ScheduleEvent::RecheckRequested { task: self.model.next_failed_task(task) },
            _ => ScheduleEvent::ConflictResolved { task: self.model.next_failed_task(task) },
        };
        self.process_event(&event);
    }
}
